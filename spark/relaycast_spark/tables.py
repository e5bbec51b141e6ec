"""The tables of a batch run, as Arrow schemas, and the way from the collator's records to rows.

One row is one relay block with all that was built on the block before it. Beside the columns that anyone can query it
holds parts of the run's own files, put together where the blocks were built. Numbers are signed 64-bit, for Spark
knows no others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from relaycast_collator import Collation
from relaycast_ledger import BlockRecord, Delivery, ToldDeletion, Violation
from relaycast_trie import StorageProof, blake2_256
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
