"""The Parquet tables of a run: columns, the rows of each block, and files from records or from parts made elsewhere.

Law: rows are in the order in which blocks are added, in groups of a fixed number: the same records give the same bytes,
in whatever parts they come. Keys are bytes, parachains and bytes are 64-bit integers. The schema's version and the
run's id are in the metadata.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_collator.wasm_parachain import StorageItemShare
from relaycast_ledger.accounting import TOTALS, KeyAccount, PublisherAccount
from relaycast_ledger.arrow_columns import column, schema_of
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_ledger.record_fields import row_reader
from relaycast_ledger.records import BlockRecord, Delivery, ToldDeletion, WasmBlockRecord

ROWS_A_GROUP = 1 << 14

Values = tuple[Any, ...]
"""A row as one value for each field of its table."""

KeyNames = Mapping[tuple[int, bytes], str]
"""Names by publisher and key."""


class Table:
    """A table with a row for each ``kind`` of value that a record has; all its columns may be null.

    A column is ``name=path``, a path below the value, or a name that is the path (``record_fields``). The columns that
    say ``where`` come first: they are read from the block's record.
    """

    def __init__(self, kind: type, columns: str, *, of: type = BlockRecord, where: str = "block=tick para_id") -> None:
        found = []
        for owner, text in ((of, where), (kind, columns)):
            named = [column.partition("=") for column in text.split()]
            found.append([(name, owner, path or name) for name, _, path in named])
        self.schema = schema_of(chain(*found))
        self.where, self.values = (row_reader(them[0][1], [path for _, _, path in them]) for them in found)

    def rows(self, record: object, values: Iterable[object]) -> list[Values]:
        """Return the rows of values in the record of their block."""
        where = self.where(record)
        return [where + row for row in map(self.values, values)]

    def batch(self, rows: Sequence[Values]) -> pa.RecordBatch:
        """Return rows in Arrow's form."""
        values = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        columns = [column(field.type, held) for field, held in zip(self.schema, values, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class NamedKey(NamedTuple):
    """What a key took, and its name where that is known."""

    it: KeyAccount
    name: str | None


BLOCKS = Table(
    BlockRecord,
    """
    number relay_parent warm_up collected_bytes proof_nodes proof_bytes static_nodes=account.static.nodes static_bytes
    pruned_unsubscribed_nodes=account.pruned_unsubscribed.nodes
    pruned_unsubscribed_bytes=account.pruned_unsubscribed.node_bytes
    own_bytes own_pov_bytes=pov.own_bytes message_bytes message_pov_bytes=pov.message_bytes
    pov_bytes=pov.pov_bytes compressed_bytes=pov.compressed_bytes max_pov_bytes=pov.max_pov_bytes
    block_ref_time=pov.ref_time oversize=pov.is_oversize waiting_bytes refused_bytes budget_bytes
    ref_time=consumed.ref_time proof_size=consumed.proof_size callbacks complete
    cursor_publisher=cursor.0 cursor_key=cursor.1 disabled panic
    """,
)
"""``block`` is the relay block of simulated time in which the parachain's block ``number`` was built.

Percentiles of a run are those of the rows without ``warm_up``, of all rows of a reader if it has no other.
``own_bytes`` are the nodes of the parachain's own state that the block reads and rewrites, ``own_pov_bytes`` the same
as the compact proof that the block carries. ``pov_bytes`` are everything that the block carries, ``compressed_bytes``
the same as the relay chain gets it, at most ``max_pov_bytes`` of them. ``block_ref_time`` are picoseconds of the whole
block, ``ref_time`` and ``proof_size`` what the pass was charged. Null of a block that panicked, which nobody sends.
"""

PROOFS = Table(
    PublisherAccount,
    """
    publisher reason=ending._value_ nodes=structure.nodes node_bytes=structure.node_bytes
    pruned_nodes=pruned.nodes pruned_bytes=pruned.node_bytes
    keys keys_walked keys_changed callbacks sibling_bytes ref_time=consumed.ref_time proof_size=consumed.proof_size
    """
    + " ".join(f"{name}_nodes={name}.nodes {name}_bytes={name}.node_bytes" for name in TOTALS),
)
"""What a publisher took of the block: ``nodes`` are those in the proof but for external values (``value_*``).

``reason`` says how the pass left the publisher, and with it why what is not there is not there.
"""

KEYS = Table(
    NamedKey,
    """
    publisher=it.publisher key=it.key name reason=it.ending._value_
    nodes=it.structure.nodes node_bytes=it.structure.node_bytes top_bytes=it.top.node_bytes
    value_nodes=it.value.nodes value_bytes=it.value.node_bytes
    cached_nodes=it.cached.nodes cached_bytes=it.cached.node_bytes
    pruned_nodes=it.pruned.nodes pruned_bytes=it.pruned.node_bytes
    """,
)
"""What each subscribed key of a publisher took of the block; together they are the publisher's row in ``PROOFS``.

A node counts with the first key, in the order of the keys, whose path leads through it: a row says what its key adds to
those before it. ``name`` is what was hashed into the key, null where only the key is known. ``top_bytes`` are a part of
``node_bytes``: the way to the publisher, which counts with its first key.
"""

DELIVERIES = Table(
    Delivery,
    """
    publisher key value_bytes ttl=entry.ttl when_inserted=entry.when_inserted
    published_at delivered_at latency_blocks conflated told_again
    """,
    where="para_id",
)
"""One row for each callback; one that was ``told_again`` repeats an entry that the subscriber already got.

A callback without a value tells of a deletion (policy ``told``): its publication is null as well.
"""

RUNTIMES = Table(
    WasmBlockRecord,
    """
    number relay_parent warm_up spec_version extrinsics=built.extrinsics failed_extrinsics=built.failed_extrinsics
    left_out=built.left_out upward_messages=built.upward_messages
    relay_proof_bytes=built.relay_proof_bytes own_proof_bytes=built.own_proof_bytes own_pov_bytes=pov.own_bytes
    pov_bytes=pov.pov_bytes compressed_bytes=pov.compressed_bytes max_pov_bytes=pov.max_pov_bytes
    oversize=pov.is_oversize refusal log=logged
    """,
    of=WasmBlockRecord,
)
"""One row for each block of a real runtime, built or refused.

``own_pov_bytes`` is its own proof in compact form; ``log`` are the lines that its code logged.
"""

ITEMS = Table(StorageItemShare, "pallet item reads writes proof_bytes", of=WasmBlockRecord)
"""What each storage item took of a real runtime's block; together they are ``own_proof_bytes`` of ``RUNTIMES``."""

TABLES = {
    "blocks": BLOCKS,
    "proofs": PROOFS,
    "keys": KEYS,
    "deliveries": DELIVERIES,
    "runtimes": RUNTIMES,
    "items": ITEMS,
}


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
        rows, account = self.rows, record.account
        rows["blocks"] += BLOCKS.rows(record, [record])
        if account is not None:
            rows["proofs"] += PROOFS.rows(record, account.publishers)
            if "keys" in rows:
                name_of = self._key_names.get
                rows["keys"] += KEYS.rows(
                    record, [NamedKey(it, name_of((it.publisher, it.key))) for it in account.keys]
                )
        rows["deliveries"] += DELIVERIES.rows(record, record.deliveries)
        rows["deliveries"] += [_deletion_row(record, it) for it in record.deletions]

    def add_wasm_block(self, record: WasmBlockRecord) -> None:
        """Add the rows of one block of a Wasm parachain."""
        if "runtimes" in self.rows:
            self.rows["runtimes"] += RUNTIMES.rows(record, [record])
            self.rows["items"] += ITEMS.rows(record, record.shares)

    def take(self, name: str) -> pa.RecordBatch:
        """Return the rows of one table, and keep them no longer."""
        rows, self.rows[name] = self.rows[name], []
        return TABLES[name].batch(rows)


def _deletion_row(record: BlockRecord, deletion: ToldDeletion) -> Values:
    """Return a callback without a value; the columns of a publication are null."""
    held = {
        "para_id": record.para_id,
        "publisher": deletion.publisher,
        "key": deletion.key,
        "delivered_at": deletion.told_at,
        "conflated": 0,
        "told_again": False,
    }
    return tuple(map(held.get, DELIVERIES.schema.names))


class RunTables:
    """Writes the tables of one run that ``rows`` are made of into ``folder``, to be closed at the end."""

    def __init__(self, folder: Path, run_id: str, rows: TableRows) -> None:
        self._rows = rows
        self._files = {name: _File(folder / f"{name}.parquet", TABLES[name].schema, run_id) for name in self._rows.rows}

    def add(self, record: BlockRecord) -> None:
        """Add the rows of one block."""
        self._rows.add(record)
        self._hand_on(ROWS_A_GROUP)

    def add_wasm_block(self, record: WasmBlockRecord) -> None:
        """Add the rows of one block of a Wasm parachain."""
        self._rows.add_wasm_block(record)
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
