"""Proofs that events carry, checked in bulk. Plain Python over Arrow, no Spark.

An event ``data.published`` may bring the proof of its value against the state root of its block. Input are rows of the
exported event log with a column ``run``; output is a row for each event that brings a proof.

Law: a verdict says what the event's own proof makes of its own value and root. Whether the root is the chain's is for
whoever has the chain to say.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from relaycast_pallets.broadcaster.storage import PublishedEntry, derive_child_info
from relaycast_trie import ProofError, RelaycastError, StorageProof
from relaycast_xcm import ParaId

EVENT_PROOFS = pa.schema(
    [
        ("run", pa.string()),
        ("namespace", pa.string()),
        ("id", pa.string()),
        ("state_root", pa.binary()),
        ("proof_nodes", pa.int64()),
        ("proof_bytes", pa.int64()),
        ("verdict", pa.string()),
    ]
)
"""``verdict`` is ``valid``, ``OtherValue``, ``Unreadable``, or the name of the way in which the proof is wrong."""

READS = ("run", "namespace", "id", "data")
"""Columns of events that are read."""

VALID, OTHER_VALUE, UNREADABLE = "valid", "OtherValue", "Unreadable"


def checked_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Check the proofs of events (``READS``) and return ``EVENT_PROOFS``."""
    for batch in batches:
        rows = [row for event in batch.to_pylist() if (row := checked_event(event)) is not None]
        yield pa.RecordBatch.from_pylist(rows, schema=EVENT_PROOFS)


def checked_event(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of one event; ``None`` where it brings no proof."""
    try:
        data = json.loads(event["data"])
    except ValueError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("proof"), list):
        return None
    row = {name: event[name] for name in ("run", "namespace", "id")}
    try:
        nodes = [_bytes(node) for node in data["proof"]]
        root, key, value = (_bytes(data[name]) for name in ("stateRoot", "key", "value"))
        child = derive_child_info(ParaId(data["publisher"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return {**row, "state_root": None, "proof_nodes": 0, "proof_bytes": 0, "verdict": UNREADABLE}
    measured = {"state_root": root, "proof_nodes": len(nodes), "proof_bytes": sum(map(len, nodes))}
    try:
        entry = StorageProof(nodes).verify_child(root, child, [key])[key]
        proven = None if entry is None else PublishedEntry.decode(entry).value
    except ProofError as error:
        return {**row, **measured, "verdict": type(error).__name__}
    except (RelaycastError, ValueError):
        return {**row, **measured, "verdict": UNREADABLE}
    return {**row, **measured, "verdict": VALID if proven == value else OTHER_VALUE}


def _bytes(text: str) -> bytes:
    if not text.startswith("0x"):
        raise ValueError(f"expected hex digits after 0x, got {text!r}")
    return bytes.fromhex(text[2:])
