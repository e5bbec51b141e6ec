"""The worker's half of a batch run: segments in, one row for each relay block out. Plain Python, no Spark.

The local engine itself is replayed from a checkpoint on; added are what collators hand over and parts of the run's own
files. A chain that reads nothing leaves no trace but its head, and goes as the spine lets it. A block that fails names
itself in its row and ends its segment.

A row is one relay block with all that was built on the block before it. Numbers are signed 64-bit: Spark knows no
others.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from relaycast_collator import BlockBuilt, BlockPanicked, Collation, Fact
from relaycast_ledger import BlockRecord, Delivery, Invariants, ToldDeletion, Violation
from relaycast_ledger.segments.checkpoint import closing_digest, thaw
from relaycast_ledger.segments.fast_forward import FrugalCollator, StaticReads
from relaycast_ledger.segments.simulated import Advanced, Preparation, Simulated
from relaycast_pallets.broadcaster.storage import publisher_of
from relaycast_spark.exceptions import SpineDiverged
from relaycast_trie import StorageProof, blake2_256
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.gc_policy import uncollected
from relaycast_xcm import ParaId

Row = dict[str, Any]


def list_of(**fields: pa.DataType) -> pa.DataType:
    """Return the type of a list of rows with these columns."""
    return pa.list_(pa.struct([pa.field(name, kind) for name, kind in fields.items()]))


NUMBER, BYTES, TEXT, FLAG = pa.int64(), pa.binary(), pa.string(), pa.bool_()

DELIVERIES = list_of(
    publisher=NUMBER,
    key=BYTES,
    value=BYTES,
    ttl=NUMBER,
    when_inserted=NUMBER,
    published_at=NUMBER,
    delivered_at=NUMBER,
    conflated=NUMBER,
)

WANTED = list_of(publisher=NUMBER, keys=pa.list_(BYTES))
"""What a subscriber subscribes to."""

READS = list_of(source=TEXT, nodes=NUMBER, proof_bytes=NUMBER)

SUBSCRIBERS = list_of(
    para_id=NUMBER,
    number=NUMBER,
    relay_parent=NUMBER,
    relay_root=BYTES,
    wanted=WANTED,
    collected_bytes=NUMBER,
    collected_hash=BYTES,
    collected=BYTES,
    proof_bytes=NUMBER,
    proof_nodes=NUMBER,
    pruned_hash=BYTES,
    pruned=BYTES,
    static_bytes=NUMBER,
    own_bytes=NUMBER,
    reads=READS,
    budget_bytes=NUMBER,
    ref_time=NUMBER,
    proof_size=NUMBER,
    complete=FLAG,
    cursor_publisher=NUMBER,
    cursor_key=BYTES,
    deliveries=DELIVERIES,
    disabled=pa.list_(NUMBER),
    panic=TEXT,
    head_hash=BYTES,
    parent_head=BYTES,
    messages=BYTES,
    messages_before=BYTES,
)
"""One block of a subscriber. What it was given is there when asked for, and ``wanted``: what it subscribed to.

``collected`` and ``pruned`` are proofs as SCALE, ``parent_head`` the header that the block stands on, ``messages``
those that it was given (``InboundMessagesData``), ``messages_before`` the parachain's own storage items about messages.
"""

GIVEN = ("wanted", "collected", "pruned", "parent_head", "messages", "messages_before")

PUBLISHERS = list_of(para_id=NUMBER, sent=NUMBER, published=NUMBER, refused=NUMBER, value_bytes=NUMBER)
"""What the relay block took of each publisher."""

CHILD_ROOTS = list_of(para_id=NUMBER, child_root=BYTES)
"""Roots of the tries that changed; null where nothing is left in one."""

VIOLATIONS = list_of(invariant=TEXT, tick=NUMBER, para_id=NUMBER, seen=TEXT)

REPLAYED = pa.schema(
    [
        ("segment", NUMBER),
        ("block", NUMBER),
        ("state_root", BYTES),
        ("header_hash", BYTES),
        ("child_roots", CHILD_ROOTS),
        ("publishers", PUBLISHERS),
        ("subscribers", SUBSCRIBERS),
        ("told", BYTES),
        ("events", BYTES),
        ("checked", NUMBER),
        ("violated", NUMBER),
        ("violations", VIOLATIONS),
        ("error", TEXT),
    ]
)
"""One relay block; ``error`` says why it could not be replayed, and then the rest is null.

``told`` is what the run's tables and figures get of it and of the blocks before it since ``told`` was last there:
``relaycast_ledger.run_part``. ``events`` are lines of the event log.
"""

SEGMENTS = pa.schema(
    [("segment", NUMBER), ("first", NUMBER), ("last", NUMBER), ("checkpoint", BYTES), ("closing", BYTES)]
)
"""What a worker starts from: blocks ``first`` to ``last``, the state before them, and a digest of that after them."""


def given_of(collation: Collation, wanted: Mapping[ParaId, Sequence[bytes]], messages_before: bytes) -> Row:
    """Return what a subscriber's block was given, as part of its row."""
    inherent = collation.inherent
    return {
        "wanted": _wanted_rows(wanted),
        "collected": collation.collected.encode(),
        "pruned": StorageProof(inherent.relay_chain_state).encode(),
        "parent_head": inherent.validation_data.parent_head,
        "messages": inherent.messages.encode(),
        "messages_before": messages_before,
    }


def row_of(record: BlockRecord, collation: Collation, head_hash: bytes, *, given: Row | None) -> Row:
    """Return a subscriber's block as a row; ``given`` is what ``given_of`` says of it, where that is kept."""
    collected, pruned = collation.collected.encode(), StorageProof(collation.inherent.relay_chain_state).encode()
    return {
        "para_id": int(record.para_id),
        "number": record.number,
        "relay_parent": record.relay_parent,
        "relay_root": collation.inherent.validation_data.relay_parent_storage_root,
        "collected_bytes": record.collected_bytes,
        "collected_hash": blake2_256(collected),
        "proof_bytes": record.proof_bytes,
        "proof_nodes": record.proof_nodes,
        "pruned_hash": blake2_256(pruned),
        "static_bytes": record.static_bytes,
        "own_bytes": record.own_bytes,
        "reads": [
            {"source": source, "nodes": totals.nodes, "proof_bytes": totals.proof_bytes}
            for source, totals in record.reads.items()
        ],
        "budget_bytes": record.budget_bytes,
        "ref_time": record.consumed.ref_time,
        "proof_size": record.consumed.proof_size,
        "complete": record.complete,
        "cursor_publisher": None if record.cursor is None else int(record.cursor[0]),
        "cursor_key": None if record.cursor is None else bytes(record.cursor[1]),
        "deliveries": [
            *(_delivery_row(delivery) for delivery in record.deliveries),
            *(_deletion_row(deletion) for deletion in record.deletions),
        ],
        "disabled": [int(publisher) for publisher in record.disabled],
        "panic": record.panic,
        "head_hash": head_hash,
        **(given or dict.fromkeys(GIVEN)),
    }


def violation_row(violation: Violation) -> Row:
    """Return a violated invariant as a row."""
    return {
        "invariant": violation.invariant,
        "tick": violation.tick,
        "para_id": int(violation.para_id),
        "seen": violation.seen,
    }


def violation_of(row: Row) -> Violation:
    """Return the violation that ``violation_row`` made a row of."""
    return Violation(row["invariant"], row["tick"], ParaId(row["para_id"]), row["seen"])


def _wanted_rows(wanted: Mapping[ParaId, Sequence[bytes]]) -> list[Row]:
    return [{"publisher": int(publisher), "keys": [bytes(key) for key in keys]} for publisher, keys in wanted.items()]


def _deletion_row(deletion: ToldDeletion) -> Row:
    """Return a callback without a value; the publication's columns are null."""
    return {
        **dict.fromkeys(DELIVERIES.value_type.names),
        "publisher": int(deletion.publisher),
        "key": bytes(deletion.key),
        "delivered_at": deletion.told_at,
        "conflated": 0,
    }


def _delivery_row(delivery: Delivery) -> Row:
    return {
        "publisher": int(delivery.publisher),
        "key": bytes(delivery.key),
        "value": delivery.entry.value,
        "ttl": delivery.entry.ttl,
        "when_inserted": delivery.entry.when_inserted,
        "published_at": delivery.published_at,
        "delivered_at": delivery.delivered_at,
        "conflated": delivery.conflated,
    }


ROWS_A_BATCH = 32
"""Relay blocks that a worker holds as rows before it hands them on."""

Batches = Iterator[pa.RecordBatch]


class Replay:
    """A simulation that tells all about each block that it lets pass."""

    def __init__(self, simulation: Simulated, *, segment: int, keep_proofs: bool = False) -> None:
        self.simulation = simulation
        self.segment = segment
        self.keep_proofs = keep_proofs
        chains = simulation.chains
        static = StaticReads(chains.relay_chain.state)
        self._working = {
            para_id: FrugalCollator(collator, static, chains.relay_chain)
            for para_id, collator in chains.collators.items()
        }
        self._plain = dict(chains.collators)
        self._child_roots = self._read_child_roots()
        self._subscriber_blocks: list[tuple[BlockBuilt | BlockPanicked, bytes]] = []
        """Those of one relay block, in the order of their records, each with what its chain knew of messages before."""

    def block(self, number: int, *, tells: bool = True) -> Row:
        """Let relay block ``number`` pass and return its row; what it does not tell the next one that does tells."""
        chains = self.simulation.chains
        self.simulation.ledger.invariants = checks = Invariants()
        self._subscriber_blocks.clear()
        chains.collators.update(self._working)
        chains.listeners.append(self._on_fact)
        try:
            advanced = self.simulation.advance(number)
        finally:
            chains.collators.update(self._plain)
            chains.listeners.remove(self._on_fact)
            self.simulation.ledger.invariants = Invariants()
        block = chains.relay_chain.head
        return {
            "segment": self.segment,
            "block": number,
            "state_root": block.state_root,
            "header_hash": block.hash,
            "child_roots": self._changed_child_roots(),
            "publishers": [
                {"para_id": it.para_id, "sent": it.sent, "published": it.published, "refused": it.refused}
                | {"value_bytes": it.value_bytes}
                for it in advanced.publishers
            ],
            "subscribers": self._subscriber_rows(advanced),
            "told": self.simulation.take_told() if tells else None,
            "events": advanced.events,
            "checked": checks.checked,
            "violated": checks.violated,
            "violations": [violation_row(violation) for violation in checks.violations],
            "error": None,
        }

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, BlockPanicked) or (isinstance(fact, BlockBuilt) and fact.subscribes):
            self._subscriber_blocks.append((fact, self._working[fact.para_id].messages_before))

    def _subscriber_rows(self, advanced: Advanced) -> list[Row]:
        rows = []
        for record, (fact, messages_before) in zip(advanced.records, self._subscriber_blocks, strict=True):
            head = fact.block.header if isinstance(fact, BlockBuilt) else fact.head
            given = None
            if self.keep_proofs:
                wanted = self.simulation.chains.parachains[record.para_id].kept.wanted
                given = given_of(fact.collation, wanted, messages_before)
            rows.append(row_of(record, fact.collation, head.hash, given=given))
        return rows

    def _changed_child_roots(self) -> list[Row]:
        before, after = self._child_roots, self._read_child_roots()
        self._child_roots = after
        changed = [info for info in sorted(before.keys() | after.keys()) if before.get(info) != after.get(info)]
        return [{"para_id": publisher_of(info), "child_root": after.get(info)} for info in changed]

    def _read_child_roots(self) -> dict[ChildInfo, bytes | None]:
        state = self.simulation.chains.relay_chain.state
        return {
            info: state.get(info.prefixed_storage_key()) for info in state.children() if publisher_of(info) is not None
        }


def replay_segments(batches: Batches, prepare: Preparation, *, keep_proofs: bool = False) -> Batches:
    """Replay segments (rows of ``SEGMENTS``) and give rows of ``REPLAYED``.

    The checkpoint of each is loaded into a simulation that ``prepare`` returns.
    """
    for batch in batches:
        for row in batch.to_pylist():
            simulation = prepare()
            thaw(row["checkpoint"], simulation)
            yield from _replay_segment(Replay(simulation, segment=row["segment"], keep_proofs=keep_proofs), row)


def rows_to_batch(rows: list[Row]) -> pa.RecordBatch:
    """Return rows as one batch of the table ``REPLAYED``."""
    return pa.RecordBatch.from_pylist(rows, REPLAYED)


def _replay_segment(replay: Replay, segment: Row) -> Batches:
    first, last = segment["first"], segment["last"]
    for start in range(first, last + 1, ROWS_A_BATCH):
        with uncollected():
            rows = list(_replay_blocks(replay, start, min(start + ROWS_A_BATCH - 1, last), segment))
        yield rows_to_batch(rows)
        if rows[-1].get("error") is not None:
            break


def _replay_blocks(replay: Replay, first: int, last: int, segment: Row) -> Iterator[Row]:
    """Yield the rows of some blocks; the row of one that fails is the last."""
    for number in range(first, last + 1):
        try:
            yield replay.block(number, tells=number == last)
            if number == segment["last"] and closing_digest(replay.simulation) != segment["closing"]:
                raise SpineDiverged(number)
        except Exception as error:
            yield {"segment": replay.segment, "block": number, "error": f"{type(error).__name__}: {error}"}
            return
