"""How fast a page of event history is, in process: the events of a million that a subscription asks for.

::

    python benches/bench_history.py [--events 1000000] [--queries 5000] [--file]

Every query takes any of the eleven arguments with even odds, with ``limit`` 10 or without; a page has at most 10
events. Time runs from the arguments of the call to the records. The first query of a view, which scans the index, is
told apart. ``--file`` keeps the events in SQLite below the folder for temporary files.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import map_of, nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules

P50_GOAL, P99_GOAL = 1.0, 5.0
"""Milliseconds."""

BYTES_GOAL = 200
BATCH = 1_000
PAGE = 10

RULES = HistoryRules([HistoryRule(TopicPattern("com.", Match.PREFIX))])
PATTERNS = {
    "prefix": TopicPattern("com.shop.", Match.PREFIX),
    "exact": TopicPattern("com.shop.price.t7"),
    "wildcard": TopicPattern("com..price.", Match.WILDCARD),
}
TOPICS = [f"com.shop.{kind}.t{number}" for kind in ("price", "stock") for number in range(50)]
VISIBILITIES = [*[EVERYBODY] * 8, Visibility(eligible_authrole=("admin",)), Visibility(exclude_authid=("ann",))]
CALLER = {"authid": "ann", "authrole": "user"}


def fill(log: EventLog, clock: VirtualClock, events: int, *, steps_back: bool) -> None:
    """Append events of 100 topics, a fifth of them hidden; the clock goes on, or is set back now and then."""
    draw = Random(7)
    data = map_of({"price": nat(5), "currency": text("EUR")})
    for number in range(events // BATCH):
        clock.set(clock.now_ns() + SECOND)
        if steps_back and number % 50 == 49:
            clock.set(clock.now_ns() - 20 * SECOND)
        log.append_soon(
            [EventDraft(draw.choice(TOPICS), data, b"", 0, visibility=draw.choice(VISIBILITIES)) for _ in range(BATCH)]
        )
    log.purge()


def arguments(draw: Random, shown: list[EventRecord]) -> dict[str, Any]:
    """Return some of the eleven arguments; publications are those of events that the caller sees."""
    early, late = sorted((draw.choice(shown), draw.choice(shown)), key=lambda record: record.seq)
    every = {
        "reverse": True,
        "limit": PAGE,
        "from_time": format_time(min(early.received_ns, late.received_ns)),
        "after_time": format_time(min(early.received_ns, late.received_ns)),
        "before_time": format_time(max(early.received_ns, late.received_ns)),
        "until_time": format_time(max(early.received_ns, late.received_ns)),
        "topic": early.topic,
        "from_publication": early.pub_id,
        "after_publication": early.pub_id,
        "before_publication": late.pub_id,
        "until_publication": late.pub_id,
    }
    return {name: value for name, value in every.items() if draw.random() < 0.5}


def measure(log: EventLog, queries: int) -> Iterator[str]:
    draw, histories = Random(9), EventHistory(log, RULES)
    for name, pattern in PATTERNS.items():
        began = time.perf_counter()
        histories.page(pattern, HistoryQuery(1, limit=PAGE), most_events=PAGE, **CALLER)
        yield f"  {name}: first page, which scans {log.last_seq:,} events: {_ms(began):,.1f} ms"
        wanted = (record for record in log.records(draw.sample(range(1, log.last_seq + 1), 2_000)))
        shown = [it for it in wanted if pattern.matches(it.topic) and it.visibility.allows(**CALLER)]
        firsts: list[float] = []
        times: list[float] = []
        asked: set[str | None] = {pattern.uri}
        for _ in range(queries):
            kwargs = arguments(draw, shown)
            began = time.perf_counter()
            histories.page(pattern, HistoryQuery.of([1], kwargs), most_events=PAGE, **CALLER)
            is_first = "topic" in kwargs and kwargs["topic"] not in asked
            (firsts if is_first else times).append(_ms(began))
            asked.add(kwargs.get("topic"))
        p50, p99 = np.percentile(times, [50, 99])
        yield (
            f"  {name}: p50 {p50:.2f} ms, goal {P50_GOAL:g}; p99 {p99:.2f} ms, goal {P99_GOAL:g}; slowest"
            f" {max(times):.1f} ms of {len(times):,} queries"
        )
        if firsts:
            yield f"  {name}: first page of one topic: p50 {np.percentile(firsts, 50):.1f} ms"
    index, views = log.index_bytes / log.last_seq, histories.memory_bytes / log.last_seq
    yield f"  memory: {index:.0f} bytes an event for the index, {views:.1f} for all views, goal {BYTES_GOAL} together"


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--file", action="store_true", help="in SQLite; in memory if absent")
    given = parser.parse_args()
    for steps_back in (False, True):
        clock = VirtualClock(1_770_000_000 * SECOND)
        with (
            tempfile.TemporaryDirectory(prefix="bench-history-") as folder,
            EventLog.open(Path(folder) / "log" if given.file else None, clock=clock) as log,
        ):
            fill(log, clock, given.events, steps_back=steps_back)
            kind, how = "SQLite" if given.file else "memory", "set back at times" if steps_back else "that only goes on"
            print(f"{log.last_seq:,} events in {kind}, by a clock {how}:", flush=True)
            for line in measure(log, given.queries):
                print(line, flush=True)


if __name__ == "__main__":
    main()
