"""The Parquet tables of a run: columns, the rows of each block, and files from records or from parts made elsewhere.

Law: rows are in the order in which blocks are added, in groups of a fixed number: the same records give the same bytes,
in whatever parts they come. Keys are bytes, parachains and bytes are 64-bit integers. The schema's version and the
run's id are in the metadata.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import asdict

from relaycast_ledger.accounting import COUNTS, TOTALS, KeyAccount, PublisherAccount
from relaycast_ledger.arrow_columns import column
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_ledger.pov import PovSize
from relaycast_ledger.records import BlockRecord, Delivery, GuestRecord, ToldDeletion

NUMBER, BYTES, TEXT, FLAG = pa.int64(), pa.binary(), pa.string(), pa.bool_()

BLOCKS = pa.schema(
    [
        ("block", NUMBER),
        ("para_id", NUMBER),
        ("number", NUMBER),
        ("relay_parent", NUMBER),
        ("warm_up", FLAG),
        ("collected_bytes", NUMBER),
        ("proof_nodes", NUMBER),
        ("proof_bytes", NUMBER),
        ("static_nodes", NUMBER),
        ("static_bytes", NUMBER),
        ("pruned_unsubscribed_nodes", NUMBER),
        ("pruned_unsubscribed_bytes", NUMBER),
        ("own_bytes", NUMBER),
        ("own_pov_bytes", NUMBER),
        ("message_bytes", NUMBER),
        ("message_pov_bytes", NUMBER),
        ("pov_bytes", NUMBER),
        ("compressed_bytes", NUMBER),
        ("max_pov_bytes", NUMBER),
        ("block_ref_time", NUMBER),
        ("oversize", FLAG),
        ("waiting_bytes", NUMBER),
        ("refused_bytes", NUMBER),
        ("budget_bytes", NUMBER),
        ("ref_time", NUMBER),
        ("proof_size", NUMBER),
        ("callbacks", NUMBER),
        ("complete", FLAG),
        ("cursor_publisher", NUMBER),
        ("cursor_key", BYTES),
        ("disabled", pa.list_(NUMBER)),
        ("panic", TEXT),
    ]
)
"""``block`` is the relay block of simulated time in which the parachain's block ``number`` was built.

Percentiles of a run are those of the rows without ``warm_up``, of all rows of a reader if it has no other.
``own_bytes`` are the nodes of the parachain's own state that the block reads and rewrites, ``own_pov_bytes`` the same
as the compact proof that the block carries. ``pov_bytes`` are everything that the block carries, ``compressed_bytes``
the same as the relay chain gets it, at most ``max_pov_bytes`` of them. ``block_ref_time`` are picoseconds of the whole
block, ``ref_time`` and ``proof_size`` what the pass was charged. Null of a block that panicked, which nobody sends.
"""

PROOFS = pa.schema(
    [
        ("block", NUMBER),
        ("para_id", NUMBER),
        ("publisher", NUMBER),
        ("reason", TEXT),
        ("nodes", NUMBER),
        ("node_bytes", NUMBER),
        ("pruned_nodes", NUMBER),
        ("pruned_bytes", NUMBER),
        ("keys", NUMBER),
        *((name, NUMBER) for name in (*COUNTS, "ref_time", "proof_size")),
        *((f"{name}_{unit}", NUMBER) for name in TOTALS for unit in ("nodes", "bytes")),
    ]
)
"""What a publisher took of the block: ``nodes`` are those in the proof but for external values (``value_*``).

``reason`` says how the pass left the publisher, and with it why what is not there is not there.
"""

KEYS = pa.schema(
    [
        ("block", NUMBER),
        ("para_id", NUMBER),
        ("publisher", NUMBER),
        ("key", BYTES),
        ("name", TEXT),
        ("reason", TEXT),
        ("nodes", NUMBER),
        ("node_bytes", NUMBER),
        ("top_bytes", NUMBER),
        ("value_nodes", NUMBER),
        ("value_bytes", NUMBER),
        ("cached_nodes", NUMBER),
        ("cached_bytes", NUMBER),
        ("pruned_nodes", NUMBER),
        ("pruned_bytes", NUMBER),
    ]
)
"""What each subscribed key of a publisher took of the block; together they are the publisher's row in ``PROOFS``.

A node counts with the first key, in the order of the keys, whose path leads through it: a row says what its key adds to
those before it. ``name`` is what was hashed into the key, null where only the key is known. ``top_bytes`` are a part of
``node_bytes``: the way to the publisher, which counts with its first key.
"""

DELIVERIES = pa.schema(
    [
        ("para_id", NUMBER),
        ("publisher", NUMBER),
        ("key", BYTES),
        ("value_bytes", NUMBER),
        ("ttl", NUMBER),
        ("when_inserted", NUMBER),
        ("published_at", NUMBER),
        ("delivered_at", NUMBER),
        ("latency_blocks", NUMBER),
        ("conflated", NUMBER),
        ("told_again", FLAG),
    ]
)
"""One row for each callback; one that was ``told_again`` repeats an entry that the subscriber already got.

A callback without a value tells of a deletion (policy ``told``): its publication is null as well.
"""

RUNTIMES = pa.schema(
    [
        ("block", NUMBER),
        ("para_id", NUMBER),
        ("number", NUMBER),
        ("relay_parent", NUMBER),
        ("warm_up", FLAG),
        ("spec_version", NUMBER),
        ("extrinsics", NUMBER),
        ("failed_extrinsics", NUMBER),
        ("left_out", NUMBER),
        ("upward_messages", NUMBER),
        ("relay_proof_bytes", NUMBER),
        ("own_proof_bytes", NUMBER),
        ("own_pov_bytes", NUMBER),
        ("pov_bytes", NUMBER),
        ("compressed_bytes", NUMBER),
        ("max_pov_bytes", NUMBER),
        ("oversize", FLAG),
        ("refusal", TEXT),
        ("log", TEXT),
    ]
)
"""One row for each block of a real runtime, built or refused.

``own_pov_bytes`` is its own proof in compact form; ``log`` are the lines that its code logged.
"""

ITEMS = pa.schema(
    [
        ("block", NUMBER),
        ("para_id", NUMBER),
        ("pallet", TEXT),
        ("item", TEXT),
        ("reads", NUMBER),
        ("writes", NUMBER),
        ("proof_bytes", NUMBER),
    ]
)
"""What each storage item took of a real runtime's block; together they are ``own_proof_bytes`` of ``RUNTIMES``."""

Row = dict[str, Any]

Values = tuple[Any, ...]
"""A row as one value for each field of its table."""

KeyNames = Mapping[tuple[int, bytes], str]
"""Names by publisher and key."""


TABLES = {
    "blocks": BLOCKS,
    "proofs": PROOFS,
    "keys": KEYS,
    "deliveries": DELIVERIES,
    "runtimes": RUNTIMES,
    "items": ITEMS,
}
_NAMES = {table: tuple(schema.names) for table, schema in TABLES.items()}


class TableRows:
    """Rows of blocks, by table, until they are taken; those of keys and of ``runtimes`` are kept where asked for."""

    def __init__(
        self, *, by_key: bool = False, key_names: KeyNames = MappingProxyType({}), runtimes: bool = False
    ) -> None:
        asked = {"keys": by_key, "runtimes": runtimes, "items": runtimes}
        self.rows: dict[str, list[Values]] = {name: [] for name in TABLES if asked.get(name, True)}
        self._key_names = key_names

    def add(self, record: BlockRecord) -> None:
        """Add the rows of one block."""
        rows = self.rows
        rows["blocks"].append(_values("blocks", block_row(record)))
        for account in () if record.account is None else record.account.publishers:
            row = {"block": record.tick, "para_id": int(record.para_id), **proof_row(account)}
            rows["proofs"].append(_values("proofs", row))
        if "keys" in rows and record.account is not None:
            for it in record.account.keys:
                name = self._key_names.get((it.publisher, it.key))
                rows["keys"].append((record.tick, record.para_id, *key_values(it, name)))
        told = [*map(delivery_row, record.deliveries), *map(deletion_row, record.deletions)]
        rows["deliveries"] += [_values("deliveries", {"para_id": int(record.para_id), **row}) for row in told]

    def add_guest(self, record: GuestRecord) -> None:
        """Add the rows of one block of a guest."""
        if "runtimes" in self.rows:
            place = {"block": record.tick, "para_id": int(record.para_id)}
            self.rows["runtimes"].append(_values("runtimes", {**place, **guest_row(record)}))
            self.rows["items"] += [_values("items", {**place, **asdict(share)}) for share in record.shares]

    def take(self, name: str) -> pa.RecordBatch:
        """Return the rows of one table, and keep them no longer."""
        rows, self.rows[name] = self.rows[name], []
        return batch_of(name, rows)


def batch_of(table: str, rows: Sequence[Values]) -> pa.RecordBatch:
    """Return rows of a table in Arrow's form."""
    schema = TABLES[table]
    values = zip(*rows, strict=True) if rows else [()] * len(schema)
    columns = [column(field.type, held) for field, held in zip(schema, values, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _values(table: str, row: Row) -> Values:
    return tuple(map(row.get, _NAMES[table]))


def block_row(record: BlockRecord) -> Row:
    """Return a block as a row of ``BLOCKS``."""
    account, cursor, pov = record.account, record.cursor, record.pov
    row: Row = {
        "block": record.tick,
        "para_id": int(record.para_id),
        "number": record.number,
        "relay_parent": record.relay_parent,
        "warm_up": record.warm_up,
        "collected_bytes": record.collected_bytes,
        "proof_nodes": record.proof_nodes,
        "proof_bytes": record.proof_bytes,
        "static_bytes": record.static_bytes,
        "own_bytes": record.own_bytes,
        "message_bytes": record.message_bytes,
        "waiting_bytes": record.waiting_bytes,
        "refused_bytes": record.refused_bytes,
        "budget_bytes": record.budget_bytes,
        "ref_time": record.consumed.ref_time,
        "proof_size": record.consumed.proof_size,
        "callbacks": len(record.deliveries),
        "complete": record.complete,
        "cursor_publisher": None if cursor is None else int(cursor[0]),
        "cursor_key": None if cursor is None else bytes(cursor[1]),
        "disabled": [int(publisher) for publisher in record.disabled],
        "panic": record.panic,
    }
    if pov is not None:
        row |= {"message_pov_bytes": pov.message_bytes, "block_ref_time": pov.ref_time, **_pov_row(pov)}
    if account is not None:
        row["static_nodes"] = account.static.nodes
        row["pruned_unsubscribed_nodes"] = account.pruned_unsubscribed.nodes
        row["pruned_unsubscribed_bytes"] = account.pruned_unsubscribed.node_bytes
    return row


def guest_row(record: GuestRecord) -> Row:
    """Return a guest's block as the rest of a row of ``RUNTIMES``; sizes are null of one that was refused."""
    names = ["number", "relay_parent", "warm_up", "spec_version", "refusal"]
    if record.refusal is None:
        names += ["extrinsics", "failed_extrinsics", "left_out", "upward_messages"]
        names += ["relay_proof_bytes", "own_proof_bytes"]
    row: Row = {name: getattr(record, name) for name in names}
    row["log"] = "\n".join(record.log) or None
    return row if record.pov is None else row | _pov_row(record.pov)


def _pov_row(pov: PovSize) -> Row:
    """Return the sizes that modelled chains and guests have in common."""
    return {
        "own_pov_bytes": pov.own_bytes,
        "pov_bytes": pov.pov_bytes,
        "compressed_bytes": pov.compressed_bytes,
        "max_pov_bytes": pov.max_pov_bytes,
        "oversize": pov.is_oversize,
    }


def proof_row(account: PublisherAccount) -> Row:
    """Return what a publisher took of a block as the rest of a row of ``PROOFS``."""
    row: Row = account.columns()
    row["reason"] = row.pop("ending")
    structure, pruned = account.structure, account.pruned
    row["nodes"], row["node_bytes"] = structure.nodes, structure.node_bytes
    row["pruned_nodes"], row["pruned_bytes"] = pruned.nodes, pruned.node_bytes
    return row


def key_values(account: KeyAccount, name: str | None) -> tuple[Any, ...]:
    """Return what the key called ``name`` took of a block: the fields of ``KEYS`` from ``publisher`` on."""
    structure, value, cached, pruned = account.structure, account.value, account.cached, account.pruned
    return (
        account.publisher,
        account.key,
        name,
        account.ending.value,
        structure.nodes,
        structure.node_bytes,
        account.top.node_bytes,
        value.nodes,
        value.node_bytes,
        cached.nodes,
        cached.node_bytes,
        pruned.nodes,
        pruned.node_bytes,
    )


def delivery_row(delivery: Delivery) -> Row:
    """Return a callback as the rest of a row of ``DELIVERIES``."""
    return {
        "publisher": int(delivery.publisher),
        "key": bytes(delivery.key),
        "value_bytes": len(delivery.entry.value),
        "ttl": delivery.entry.ttl,
        "when_inserted": delivery.entry.when_inserted,
        "published_at": delivery.published_at,
        "delivered_at": delivery.delivered_at,
        "latency_blocks": delivery.latency_blocks,
        "conflated": delivery.conflated,
        "told_again": delivery.told_again,
    }


def deletion_row(deletion: ToldDeletion) -> Row:
    """Return a callback without a value as the rest of a row of ``DELIVERIES``."""
    return {
        "publisher": int(deletion.publisher),
        "key": bytes(deletion.key),
        "delivered_at": deletion.told_at,
        "conflated": 0,
        "told_again": False,
    }


ROWS_A_GROUP = 1 << 14


class RunTables:
    """Writes the tables of one run that ``rows`` are made of into ``folder``, to be closed at the end."""

    def __init__(self, folder: Path, run_id: str, rows: TableRows) -> None:
        self._rows = rows
        self._files = {name: _File(folder / f"{name}.parquet", TABLES[name], run_id) for name in self._rows.rows}

    def add(self, record: BlockRecord) -> None:
        """Add the rows of one block."""
        self._rows.add(record)
        self._hand_on(ROWS_A_GROUP)

    def add_guest(self, record: GuestRecord) -> None:
        """Add the rows of one block of a guest."""
        self._rows.add_guest(record)
        self._hand_on(ROWS_A_GROUP)

    def append(self, part: Mapping[str, pa.RecordBatch]) -> None:
        """Add rows that come after all that were added, by table."""
        self._hand_on(1)
        for name, batch in part.items():
            self._files[name].append(batch)

    def close(self) -> None:
        """Write what is left."""
        self._hand_on(1)
        for file in self._files.values():
            file.close()

    def _hand_on(self, rows: int) -> None:
        """Give files what they are to write, once it is so many ``rows``."""
        for name, waiting in self._rows.rows.items():
            if len(waiting) >= rows:
                self._files[name].append(self._rows.take(name))

    def __enter__(self) -> "RunTables":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _File:
    """A table's file, written in groups."""

    def __init__(self, file: Path, schema: pa.Schema, run_id: str) -> None:
        about = {"relaycast.schema": str(SCHEMA_VERSION), "relaycast.run_id": run_id}
        self._schema = schema.with_metadata(about)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._count = 0

    def append(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._count += len(batch)
        if self._count >= ROWS_A_GROUP:
            self._write(self._count - self._count % ROWS_A_GROUP)

    def close(self) -> None:
        if self._count:
            self._write(self._count)
        self._writer.close()

    def _write(self, rows: int) -> None:
        """Write so many rows of those that wait, in groups."""
        waiting = pa.Table.from_batches(self._waiting, self._schema)
        for start in range(0, rows, ROWS_A_GROUP):
            group = waiting.slice(start, min(ROWS_A_GROUP, rows - start))
            self._writer.write_table(group.combine_chunks())
        self._waiting, self._count = waiting.slice(rows).to_batches(), self._count - rows
