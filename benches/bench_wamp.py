"""Our WAMP router beside crossbar, in one run and under the same load.

::

    python benches/bench_wamp.py [publish latency memory rights] [--events 50000] [--history 1000000] [--folder DIR]

Without names every part runs. ``.ci/peers crossbar`` installs crossbar; without it our figures stand alone. A client in
this process publishes with frames made beforehand, some hundred of them unanswered at any time, and counts PUBLISHED.
Another one subscribes and drops what it gets, because crossbar keeps events in its history only for a live subscriber.
Crossbar's history is in memory: it has no other. Beside the rate stands the CPU time of the router for one event, in
all of its processes and threads: it says more where other programs use the machine.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from wamp_load import Wire, frames, pipelined
from wamp_rights import CHECKS, verdict
from wamp_routers import CROSSBAR, REALM, TOPICS, RunningRouter, crossbar, pattern_of, relaycast

WINDOW = 512
ROUNDS = 3
CARRIERS = [
    ("RawSocket", "msgpack"),
    ("RawSocket", "cbor"),
    ("RawSocket", "json"),
    ("WebSocket", "msgpack"),
    ("WebSocket", "json"),
]
BASE = "crossbar, in memory"
SLOWER = 5
"""Events that ours publish for each one that Crossbar publishes."""

HISTORY_SHARE = 20
"""Events that ours look up for each one of Crossbar, whose answer takes the same time for any number."""

IN_MEMORY_GOAL = 5
DURABLE_GOAL = 3
MEDIAN_GOAL_MS = 1.0
SLOWEST_GOAL_MS = 5.0
"""The 99th percentile."""

CALLS = 2_000
FEEDS = 200
"""Topics of the long history."""

GET_EVENTS = "wamp.subscription.get_events"
ARGS = [1, "abcdefgh"]
KWARGS = {"price": 12.5, "key": "DOT"}


@dataclass(frozen=True, slots=True)
class Given:
    """What a part is run with: ``events`` of a round, ``history`` for look-ups, and a ``folder`` of its own."""

    events: int
    history: int
    folder: Path

    @contextmanager
    def routers(self) -> Iterator[dict[str, RunningRouter]]:
        """Run the routers to compare, each in a folder of its own; crossbar is left out where it is missing."""
        with ExitStack() as stack:
            running = {}
            if CROSSBAR.exists():
                running[BASE] = stack.enter_context(crossbar(self._new("crossbar")))
            running["relaycast, in memory"] = stack.enter_context(relaycast(self._new("memory"), durable=False))
            running["relaycast, durable"] = stack.enter_context(relaycast(self._new("durable"), durable=True))
            yield running

    def _new(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=name, dir=self.folder))

    def events_of(self, router: RunningRouter) -> int:
        return self.events // SLOWER if router.name == "crossbar" else self.events


Part = Callable[[Given], Iterator[str]]


def joined(router: RunningRouter, carrier: str, serializer: str, user: tuple[str, str] | None = None) -> Wire:
    is_websocket = carrier == "WebSocket"
    port = router.websocket_port if is_websocket else router.rawsocket_port
    return Wire(port, serializer, path=router.path if is_websocket else None).join(REALM, user=user)


@dataclass(frozen=True, slots=True)
class Load:
    """What a round came to: publications a second, and CPU seconds of the router for each."""

    rate: float
    cpu: float


def publish(given: Given) -> Iterator[str]:
    """Acknowledged publications with history, by carrier and serializer; the routers take turns."""
    with given.routers() as running:
        for carrier, serializer in CARRIERS:
            loads: dict[str, list[Load]] = {name: [] for name in running}
            for _ in range(ROUNDS):
                for name, router in running.items():
                    loads[name].append(_published(given, router, carrier, serializer))
            best = {name: Load(max(it.rate for it in of), min(it.cpu for it in of)) for name, of in loads.items()}
            for name, it in best.items():
                rates = f"{it.rate:,.0f} PUBLISHED/s, {it.cpu * 1e6:,.0f} us of CPU"
                line = f"publish, {carrier} {serializer}, {name}: {rates}"
                if name != BASE and BASE in best:
                    base = best[BASE]
                    line += f"; {it.rate / base.rate:.1f} times as many, {base.cpu / it.cpu:.1f} times less CPU"
                    line += f", goal {DURABLE_GOAL if 'durable' in name else IN_MEMORY_GOAL}"
                yield line


def _published(given: Given, router: RunningRouter, carrier: str, serializer: str) -> Load:
    events = given.events_of(router)
    publisher, subscriber = joined(router, carrier, serializer), joined(router, carrier, serializer)
    subscriber.subscribe(pattern_of(router), "prefix")
    all_frames = frames(publisher, f"{TOPICS}feed", ARGS, KWARGS, events)
    began = router.cpu_seconds()
    seconds = pipelined(publisher, all_frames, events, WINDOW, [subscriber])
    load = Load(events / seconds, (router.cpu_seconds() - began) / events)
    publisher.close()
    subscriber.close()
    return load


def memory(given: Given) -> Iterator[str]:
    """Memory that an event of the history takes."""
    with given.routers() as running:
        for name, router in running.items():
            publisher, subscriber = joined(router, "RawSocket", "msgpack"), joined(router, "RawSocket", "msgpack")
            subscriber.subscribe(pattern_of(router), "prefix")
            events, before = given.events_of(router), 0
            for _ in range(2):  # the first round fills pools and caches
                before = router.resident_bytes()
                all_frames = frames(publisher, f"{TOPICS}feed", ARGS, KWARGS, events)
                pipelined(publisher, all_frames, events, WINDOW, [subscriber])
            yield f"memory, {name}: {(router.resident_bytes() - before) / events:,.0f} bytes an event"


def latency(given: Given) -> Iterator[str]:
    """``get_events`` over the wire on a long history: random arguments, those of crossbar are one."""
    with given.routers() as running:
        for name, router in running.items():
            is_crossbar = router.name == "crossbar"
            history = given.history // HISTORY_SHARE if is_crossbar else given.history
            fill(router, history)
            caller = joined(router, "RawSocket", "msgpack")
            subscription = caller.subscribe(pattern_of(router), "prefix")
            known = [] if is_crossbar else _samples(caller, subscription, history)
            draw = Random(0)
            calls: list[tuple[tuple[int, ...], dict[str, Any]]] = [
                ((10,), {}) if is_crossbar else ((), random_arguments(draw, known)) for _ in range(CALLS)
            ]
            times, began = [], router.cpu_seconds()
            for args, kwargs in calls:
                start = time.perf_counter()
                caller.call(GET_EVENTS, subscription, *args, **kwargs)
                times.append((time.perf_counter() - start) * 1e3)
            cpu = (router.cpu_seconds() - began) / CALLS * 1e3
            hundredths = statistics.quantiles(times, n=100)
            yield (
                f"get_events(limit=10) of {history:,} events, {name}, "
                f"{'its one argument' if is_crossbar else 'random ones of the eleven arguments'}: "
                f"p50 {hundredths[49]:.2f} ms, p99 {hundredths[98]:.2f} ms, {cpu:.2f} ms of CPU, "
                f"goals {MEDIAN_GOAL_MS} and {SLOWEST_GOAL_MS} ms"
            )


def fill(router: RunningRouter, events: int) -> None:
    """Publish to many topics, in turn."""
    publisher = joined(router, "RawSocket", "msgpack")
    subscribers = []
    if router.name == "crossbar":
        subscribers = [joined(router, "RawSocket", "msgpack")]
        subscribers[0].subscribe(pattern_of(router), "prefix")
    each = 250
    batches = [frames(publisher, f"{TOPICS}feed{number}", ARGS, KWARGS, each) for number in range(FEEDS)]
    for number in range(events // each):
        pipelined(publisher, batches[number % FEEDS], each, each, subscribers)
    for wire in (publisher, *subscribers):
        wire.close()


def _samples(caller: Wire, pattern: int, history: int) -> list[dict[str, Any]]:
    """Return events from all over the history, found by going through it in large pages."""
    found: list[dict[str, Any]] = []
    anchor: dict[str, Any] = {}
    while True:
        events, about = caller.call(GET_EVENTS, pattern, limit=10_000, **anchor)
        found += events[:: max(1, history // 5_000)]
        if not about["more"]:
            return found
        anchor = {"after_publication": events[-1]["publication"]}


def random_arguments(draw: Random, known: list[dict[str, Any]]) -> dict[str, Any]:
    """Return ``limit=10`` and each of the other ten arguments with a probability of a half."""
    kwargs: dict[str, Any] = {"limit": 10}
    if draw.random() < 0.5:
        kwargs["reverse"] = draw.random() < 0.8
    for name in ("from_time", "after_time", "before_time", "until_time"):
        if draw.random() < 0.5:
            kwargs[name] = draw.choice(known)["timestamp"]
    if draw.random() < 0.5:
        kwargs["topic"] = draw.choice(known)["details"]["topic"]
    for name in ("from_publication", "after_publication", "before_publication", "until_publication"):
        if draw.random() < 0.5:
            kwargs[name] = draw.choice(known)["publication"]
    return kwargs


def rights(given: Given) -> Iterator[str]:
    """Run each check of what is right against each router."""
    found: dict[str, dict[str, str]] = {}
    with given.routers() as running:
        names = [name for name in running if "durable" not in name]
        for name in names:
            for title, check in CHECKS.items():
                found.setdefault(title, {})[name] = verdict(check, running[name])
    yield f"{'what is right':<52}" + "  ".join(f"{name:<28}" for name in names)
    for title, verdicts in found.items():
        yield f"{title:<52}" + "  ".join(f"{verdicts[name]:<28}" for name in names)
    for name in names:
        total = sum(verdicts[name] == "yes" for verdicts in found.values())
        yield f"{name}: {total} of {len(found)}"


PARTS: Mapping[str, Part] = {"publish": publish, "latency": latency, "memory": memory, "rights": rights}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all unless named")
    parser.add_argument("--events", type=int, default=50_000, help="of one round; crossbar publishes a fifth")
    parser.add_argument("--history", type=int, default=1_000_000, help="events to look up in; crossbar has a 20th")
    parser.add_argument("--folder", type=Path, default=None, help="where logs are written, a temporary one if absent")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}, expected some of {', '.join(PARTS)}")
    if not CROSSBAR.exists():
        print("no crossbar in .peers/crossbar: `.ci/peers crossbar` installs it; figures of ours alone", flush=True)
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="bench-wamp-", dir=given.folder) as folder:
            for line in PARTS[name](Given(given.events, given.history, Path(folder))):
                print(line, flush=True)


if __name__ == "__main__":
    main()
