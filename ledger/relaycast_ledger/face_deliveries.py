"""What the faces of an event log delivered, as a table, and what it comes to.

A row is an event that a subscription selects: it is there whether the event arrived or not, and one that never arrived
has no time. An event that arrived twice may have two rows; the first arrival counts.

Law: the figures of a run and a face follow from the rows and from the events of the log alone. An event is

- **lost** where it was selected and never arrived;
- **conflated** where its key was published again before the consumer saw it, whether it arrived later or never;
- late by the time from its block to its first arrival.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_ledger.arrow_columns import column, schema_of
from relaycast_ledger.outcome import rank
from relaycast_ledger.staged_file import staged


class FaceDelivery(NamedTuple):
    """A row of the table; ``id`` is the event's, in Crockford Base32."""

    run: str
    face: str
    subscription: str
    namespace: str
    id: str
    delivered_ns: int | None
    """Nanoseconds since 1970, ``None`` where it never arrived."""


FACE_DELIVERIES = schema_of((name, FaceDelivery, name) for name in FaceDelivery._fields)


class LoggedEvent(NamedTuple):
    """What the figures need of an event; ``subject`` is its key, if it has one."""

    run: str
    seq: int
    namespace: str
    id: str
    subject: str | None
    occurred_ns: int


class FaceFigures(NamedTuple):
    """What a face did in a run. Latencies are of the events that arrived, by nearest rank; ``None`` of nothing."""

    run: str
    face: str
    selected: int
    delivered: int
    lost: int
    conflated: int
    p50_ns: int | None
    p95_ns: int | None
    max_ns: int | None


def write_face_deliveries(path: Path, deliveries: Sequence[FaceDelivery]) -> None:
    """Write the table as Parquet; the file is there when all of it is."""
    columns = [column(field.type, [row[at] for row in deliveries]) for at, field in enumerate(FACE_DELIVERIES)]
    with staged(path) as file:
        pq.write_table(pa.Table.from_arrays(columns, schema=FACE_DELIVERIES), file)


def face_figures(events: Iterable[LoggedEvent], deliveries: Iterable[FaceDelivery]) -> list[FaceFigures]:
    """Return the figures of each run and face, in their order."""
    known = {(it.run, it.namespace, it.id): it for it in events}
    superseded = _superseded(known.values())
    first: dict[tuple[str, str, str, str, str], int | None] = {}
    for it in deliveries:
        place = it.run, it.face, it.subscription, it.namespace, it.id
        times = [moment for moment in (first.get(place), it.delivered_ns) if moment is not None]
        first[place] = min(times, default=None)
    found = []
    for (run, face), rows in groupby(sorted(first), key=lambda place: place[:2]):
        selected = list(rows)
        arrived = {place: moment for place in selected if (moment := first[place]) is not None}
        latencies = sorted(
            moment - known[run, place[3], place[4]].occurred_ns
            for place, moment in arrived.items()
            if (run, place[3], place[4]) in known
        )
        conflated = 0
        for place in selected:
            until = superseded.get((run, place[3], place[4]))
            conflated += until is not None and (place not in arrived or arrived[place] > until)
        p50, p95 = (rank(latencies, percent) if latencies else None for percent in (50, 95))
        found.append(
            FaceFigures(
                run,
                face,
                len(selected),
                len(arrived),
                len(selected) - len(arrived),
                conflated,
                p50,
                p95,
                latencies[-1] if latencies else None,
            )
        )
    return found


def _superseded(events: Iterable[LoggedEvent]) -> dict[tuple[str, str, str], int]:
    """Return when the key of an event was published again, by run, namespace and id."""
    newest: dict[tuple[str, str, str], LoggedEvent] = {}
    found: dict[tuple[str, str, str], int] = {}
    for it in sorted(events, key=lambda it: it.seq):
        if it.subject is not None:
            before = newest.get((it.run, it.namespace, it.subject))
            if before is not None:
                found[before.run, before.namespace, before.id] = it.occurred_ns
            newest[it.run, it.namespace, it.subject] = it
    return found
