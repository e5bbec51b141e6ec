"""The fullest block of a run in words: what it carries against what it may, and what its bytes are for."""

from relaycast.report.templates import percent
from relaycast_ledger.outcome import FullBlock

MAX_CAUSES = 3
"""How many causes of a block's size a sentence names, the largest first."""

MEANINGS = {
    "static": "static keys",
    "top": "the way to publishers",
    "new": "new nodes",
    "changed": "changed nodes",
    "unseen": "nodes that the cache does not have",
    "value": "values",
    "pubsub": "pub-sub",
    "own": "own state",
    "messages": "messages",
    "callbacks": "callbacks",
    "rest": "header and lengths",
    "relay": "relay proof",
    "extrinsics": "extrinsics",
}
"""Causes as a sentence has them."""


def fullest(it: FullBlock) -> str:
    """Return where the block stands, how full it is, and by which causes."""
    bytes_too = f"{it.sent_bytes:,} of {it.max_pov_bytes:,} bytes compressed"
    text = f"relay block {it.block} has {bytes_too} ({it.pov_bytes:,} before: {causes(it)})"
    if it.ref_time > it.max_ref_time:
        text += f" and takes {it.ref_time / 1e12:.2f} of {it.max_ref_time / 1e12:g} seconds"
    return text


def share_taken(it: FullBlock) -> str:
    """Return how much of the largest PoV the compressed block takes."""
    return percent(it.sent_bytes / it.max_pov_bytes)


def causes(it: FullBlock) -> str:
    """Return the largest causes with their bytes, the largest first."""
    ordered = sorted(it.by_cause.items(), key=lambda item: -item[1])
    named = [f"{size:,} {MEANINGS[cause]}" for cause, size in ordered[:MAX_CAUSES]]
    left = sum(size for _, size in ordered[MAX_CAUSES:])
    return ", ".join([*named, f"{left:,} other"] if left else named)
