"""``pov.snapshot.toml``: what a run's proofs weigh, for people to keep under version control and to compare with.

Law: figures alone, in a fixed order; nothing in it depends on who ran it or when.
"""

import json
from collections.abc import Iterator

from relaycast.outcome import Outcome, PublisherCost, Spread, SubscriberOutcome


def render_snapshot(run: Outcome) -> str:
    """Return the snapshot of ``run`` as TOML; all sizes in bytes."""
    lines = [
        f"schema = {run.schema}",
        f'run_id = "{run.run_id}"',
        f"name = {_text(run.name)}",
        f"blocks = {run.blocks}",
        f"seed = {run.seed}",
    ]
    for subscriber in run.subscribers:
        lines += _subscriber(subscriber)
    return "\n".join(lines) + "\n"


def _subscriber(it: SubscriberOutcome) -> Iterator[str]:
    yield ""
    yield f"[subscribers.{it.para_id}]"
    for name in ("proof_bytes", "static_bytes", "own_bytes"):
        sizes: Spread = getattr(it, name)
        yield f"{name} = {{ p50 = {sizes.p50}, p99 = {sizes.p99}, max = {sizes.max}, total = {sizes.total} }}"
    yield f"callbacks = {it.callbacks}"
    yield f"incomplete_blocks = {it.incomplete_blocks}"
    for publisher in it.publishers:
        yield from _publisher(it.para_id, publisher)


def _publisher(para_id: int, it: PublisherCost) -> Iterator[str]:
    yield ""
    yield f"[subscribers.{para_id}.publishers.{it.para_id}]"
    for cause, totals in it.by_cause.items():
        yield f"{cause} = {totals.node_bytes}"
    yield f"cached = {it.cached.node_bytes}"
    yield f"pruned = {sum(totals.node_bytes for totals in it.pruned.values())}"
    yield f"sibling_bytes = {it.sibling_bytes}"


def _text(value: str) -> str:
    """Return a TOML basic string: what JSON writes, but that DEL must be escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
