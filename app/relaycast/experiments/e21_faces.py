"""E21: latency and losses of a slow consumer on each face.

One publisher, more and more values in a block. On each face of the gateway's log, and on chain, a fast reader and a
slow one.
"""

from collections.abc import Iterator, Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.face_readers import (
    BLOCK_SECONDS,
    FACES,
    FAST,
    KEPT_EVENTS,
    MOST_WAITING_BYTES,
    PALLET,
    READERS,
    SLOW,
    SLOW_EVENTS_A_BLOCK,
    WAMP,
    FaceRun,
)
from relaycast_ledger.face_deliveries import FaceFigures

LOADS = (10, 20, 40, 80, 160)
"""Values in each block."""

SECOND_NS = 1_000_000_000


class FaceRow(Row, frozen=True, kw_only=True):
    """A reader on a face, and what it got of the ``values`` in each block. Latencies count from the block."""

    face: str
    reader: str
    values_per_block: int
    blocks: int
    selected: int
    delivered: int
    lost: int
    conflated: int
    lost_share: float
    conflated_share: float
    p50_seconds: float | None
    p95_seconds: float | None
    max_seconds: float | None


def measure(scale: Scale) -> list[FaceRow]:
    """Run every load once: all readers of all faces read the same log."""
    return list(_rows(scale))


def _rows(scale: Scale) -> Iterator[FaceRow]:
    blocks = scale.pick(24, 8)
    for values in scale.pick(LOADS, LOADS[1:4:2]):
        figures = FaceRun(values, blocks=blocks, seed=scale.seed).figures()
        for face in FACES:
            for reader in READERS:
                yield _row(figures[reader, face], face, reader, values, blocks)


def _row(it: FaceFigures, face: str, reader: str, values: int, blocks: int) -> FaceRow:
    return FaceRow(
        face=face,
        reader=reader,
        values_per_block=values,
        blocks=blocks,
        selected=it.selected,
        delivered=it.delivered,
        lost=it.lost,
        conflated=it.conflated,
        lost_share=round(it.lost / it.selected, 4),
        conflated_share=round(it.conflated / it.selected, 4),
        p50_seconds=_seconds(it.p50_ns),
        p95_seconds=_seconds(it.p95_ns),
        max_seconds=_seconds(it.max_ns),
    )


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / SECOND_NS, 3)


def answer(rows: Sequence[FaceRow]) -> str:
    """Say what becomes of a slow reader's events on each face."""
    most = max(row.values_per_block for row in rows)
    slow = {row.face: row for row in rows if row.values_per_block == most and row.reader == SLOW}
    lost = ", ".join(f"{slow[face].lost_share:.0%} ({face})" for face in FACES)
    overtaken = ", ".join(f"{slow[face].conflated_share:.0%} ({face})" for face in FACES)
    late = ", ".join(f"{slow[face].p95_seconds or 0:.3g} s ({face})" for face in FACES if slow[face].delivered)
    fast = max(row.p95_seconds or 0 for row in rows if row.reader == FAST and row.face != PALLET)
    unharmed = (
        "no fast reader loses an event" if not _fast_losses(rows) else f"fast readers lose {_fast_losses(rows):,}"
    )
    return (
        f"Of {most} values a block, of which it manages {SLOW_EVENTS_A_BLOCK}, a slow reader loses {lost}; newer "
        f"values overtake {overtaken}; of what it gets, 95% arrives within {late}; {unharmed} beside a slow one off "
        f"chain, and 95% of all arrive within {fast:.3g} s (values all new in every block of {BLOCK_SECONDS} s; the "
        f"log keeps {KEPT_EVENTS:,} events; a WAMP client may leave {MOST_WAITING_BYTES >> 10} KiB waiting; readers "
        "and their connections are modelled)."
    )


def _fast_losses(rows: Sequence[FaceRow]) -> int:
    return sum(row.lost for row in rows if row.reader == FAST and row.face != PALLET)


def chart(rows: Sequence[FaceRow]) -> Chart:
    """Draw what slow readers lose and what is overtaken, by face."""
    measures = (("never arrived", "lost_share"), ("overtaken before it was seen", "conflated_share"))
    return Chart(
        title="What a slow reader misses, by face",
        mark="line",
        x=Axis(field="values", title="values in a block"),
        y=Axis(field="share", title="events selected", percent=True),
        colour=Axis(field="face", title="", names=True, order=FACES),
        panel=Axis(field="measure", title="", names=True, order=tuple(name for name, _ in measures)),
        points=[
            {"values": row.values_per_block, "share": getattr(row, field), "face": row.face, "measure": name}
            for row in rows
            if row.reader == SLOW
            for name, field in measures
        ],
        width=320,
    )


EXPERIMENT = Experiment(
    name="E21",
    slug="faces",
    question="What does a slow reader miss, on each face?",
    row=FaceRow,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Chains, event log, subscriptions, deliveries, router, orchestrator and broadcaster are the real ones, in one "
        "process and in virtual time. The readers are modelled: a fast one takes a millisecond for an event, a slow "
        f"one a {SLOW_EVENTS_A_BLOCK}th of a block. On chain the slow one has the budget for about "
        f"{SLOW_EVENTS_A_BLOCK} values. No time passes on networks and disks.",
        f"A WAMP reader for whom more than {MOST_WAITING_BYTES >> 10} KiB wait loses its session, connects again at "
        f"once and goes on live, without asking the history: {WAMP} alone has no acknowledgement.",
        "CloudEvents wait in the log for their reader, and those that retention drops meanwhile are lost. ICRC-72 also "
        "holds what waits in memory, 32 MiB of it. On chain a value is overtaken, never queued: what arrives is new.",
        "Latency counts from the block that holds the value to the moment at which the reader is done with it.",
    ),
)
