"""How fast the gateway is: one figure for each part, with the goal that it is held against.

::

    python benches/bench_gateway.py [append index push filters candypath candid] [--events 100000] [--folder DIR]

Without names every part runs. A part is a function of ``Given`` that yields lines; ``PARTS`` lists them. Logs lie below
``--folder``, so that the disk is the one that is meant; a figure is the best of three rounds.

Pushes go over 32 connections to a receiver in another process, which answers each with 204. Filters are evaluated over
a plain dict of attributes, CandyPath over the ICRC-16 map of the same. No peer of those runs here: Knative's compiled
filters (Go) are published at 425 to 1,713 ns. Candid stands beside two peers (``candid_codecs.py``); a goal that it
misses is red, and the exit status 1.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any

import psutil

import candid_codecs
from relaycast_gateway.clock import SystemClock
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.encoding import encoder
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.http_sender import HttpSender
from relaycast_gateway.delivery.order import DeliveryOrder
from relaycast_gateway.delivery.sender import Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.store import DeliveryStore
from relaycast_gateway.icrc import candy_path
from relaycast_gateway.icrc16 import blob, boolean, from_json, map_of, nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft

ROUNDS = 3
BATCH = 100
"""Events of one append: about a relay block of the oracle preset."""

THREADS = 8
APPEND_GOAL = 30_000
INDEX_GOAL = 200
CONNECTIONS = 32
PUSH_GOAL = 3_000
PUSHES_OF = 5
"""One in this many of the events is pushed."""

FILTER_GOAL = 300
EVALUATIONS = 5_000
"""In one round."""

FILTER_ROUNDS = 100


EVENT: Mapping[str, object] = {
    "specversion": "1.0",
    "id": "00Z8",
    "source": "/chains/2000",
    "type": "io.relaycast.data.published",
    "subject": "0x70726963652f444f54",
    "datacontenttype": "application/json",
    "sequence": "00000000000000001000",
    "blocknumber": 1_000,
}

TYPE = {"exact": {"type": "io.relaycast.data.published"}}
SOURCE = {"prefix": {"source": "/chains/"}}
SUBJECT = {"suffix": {"subject": "444f54"}}

CANDY_PATHS = (
    "type == io.relaycast.data.published",
    "blocknumber == 1000",
    "source ~= /chains/",
    "type: [a, b, io.relaycast.data.published]",
    "type == io.relaycast.data.published & blocknumber > 5",
    "other == x",
    "other.deeper == x",
    "other.* == x",
)

FILTERS: Mapping[str, dict[str, Any]] = {
    "exact": TYPE,
    "prefix": SOURCE,
    "suffix": SUBJECT,
    "not": {"not": TYPE},
    "exact, absent": {"exact": {"other": "x"}},
    "exact, integer": {"exact": {"blocknumber": "1000"}},
    "all of 2": {"all": [TYPE, SOURCE]},
    "all of 3": {"all": [TYPE, SOURCE, SUBJECT]},
    "any of 3, the last": {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}, TYPE]},
    "sql: =": {"sql": "type = 'io.relaycast.data.published'"},
    "sql: LIKE": {"sql": "source LIKE '/chains/%'"},
    "sql: IN": {"sql": "type IN ('a', 'b', 'io.relaycast.data.published')"},
    "sql: = AND LIKE AND LIKE": {
        "sql": "type = 'io.relaycast.data.published' AND source LIKE '/chains/%' AND subject LIKE '%444f54'"
    },
    "sql: arithmetic": {"sql": "INT(blocknumber) % 10 = 0"},
    "sql: absent": {"sql": "other = 'x'"},
}


@dataclass(frozen=True, slots=True)
class Given:
    """What a part is run with: how many ``events``, and a ``folder`` of its own; a part adds to ``missed``."""

    events: int
    folder: Path
    missed: list[str] = field(default_factory=list)


Part = Callable[[Given], Iterator[str]]


def drafts(count: int) -> list[EventDraft]:
    """Return events as the chains tell them: a published value with its headers, 550 bytes as stored."""
    return [
        EventDraft(
            namespace=f"io.relaycast.data.published{number % 4}",
            data=map_of(
                {
                    "publisher": nat(2_000),
                    "key": blob(number.to_bytes(32, "big")),
                    "value": blob(bytes(16)),
                    "ttl": nat(10),
                    "expiresAt": nat(number + 10),
                    "blockNumber": nat(number),
                    "blockHash": blob(bytes(32)),
                    "stateRoot": blob(bytes(32)),
                    "childRoot": blob(bytes(32)),
                    "superseded": boolean(False),
                }
            ),
            source=bytes(29),
            occurred_ns=number,
            subject=f"price/{number}",
            headers=(
                ("ce:source", text("/oracle/relay")),
                ("ce:blocknumber", nat(number)),
                ("ce:blockhash", text("0x" + "00" * 32)),
                ("ce:publisher", nat(2_000)),
                ("ce:ttlstate", text("valid_for")),
            ),
        )
        for number in range(count)
    ]


def append(given: Given) -> Iterator[str]:
    """Durable appends: by chains, which do not wait, and by threads that wait for each of their own."""
    batch = drafts(BATCH)
    files = [given.folder / f"append-{number}" for number in range(ROUNDS)]
    rate = max(_pipelined(batch, given, file) for file in files)
    yield f"append, {BATCH} at a time, without waiting: {rate:,.0f} durable events/s, goal {APPEND_GOAL:,}"
    yield f"  on disk {min(file.stat().st_size for file in files) / given.events:,.0f} bytes an event"
    small = [EventDraft("com.example.price", map_of({"price": nat(5)}), bytes(29), 0)] * BATCH
    for name, events in (("chain", batch), ("small", small)):
        rate = max(_pipelined(events, given, None) for _ in range(ROUNDS))
        yield f"append, {BATCH} {name} events at a time, in memory: {rate:,.0f} events/s"
    rate = max(_pipelined(small, given, given.folder / f"small-{number}") for number in range(ROUNDS))
    yield f"append, {BATCH} small events at a time, without waiting: {rate:,.0f} durable events/s"

    for size in (BATCH, 1):
        waited = [_waiting(given, given.folder / f"waiting-{size}-{number}", size) for number in range(ROUNDS)]
        yield f"append, {size} at a time, {THREADS} threads that wait: {max(waited):,.0f} durable events/s"


def _pipelined(batch: list[EventDraft], given: Given, file: Path | None) -> float:
    with EventLog.open(file) as log:
        began = time.perf_counter()
        futures = [log.append_soon(batch) for _ in range(given.events // BATCH)]
        for future in futures:
            future.result()
        return log.last_seq / (time.perf_counter() - began)


def _waiting(given: Given, file: Path, size: int) -> float:
    batch, calls = drafts(size), max(1, given.events // (10 if size == 1 else 1) // size // THREADS)

    def work() -> None:
        for _ in range(calls):
            log.append(*batch)

    with EventLog.open(file) as log:
        threads = [Thread(target=work) for _ in range(THREADS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return log.last_seq / (time.perf_counter() - began)


def index(given: Given) -> Iterator[str]:
    """Memory of the index, opening a log, and reads by what the index knows."""
    file = given.folder / "index"
    with EventLog.open(file) as log:
        batch = drafts(BATCH)
        for _ in range(given.events // BATCH):
            log.append_soon(batch)
        log.purge()
    resident = psutil.Process(os.getpid()).memory_info().rss
    began = time.perf_counter()
    with EventLog.open(file) as log:
        opened = time.perf_counter() - began
        grown = psutil.Process(os.getpid()).memory_info().rss - resident
        yield f"index: {log.index_bytes / log.last_seq:,.0f} bytes an event, goal at most {INDEX_GOAL}"
        yield f"  the process grew by {grown / log.last_seq:,.0f} bytes an event while it opened the log"
        yield f"opening a log of {log.last_seq:,} events: {opened * 1e3:,.0f} ms"
        page = min(_seconds(lambda: log.read(log.last_seq // 2, limit=1_000)) for _ in range(ROUNDS))
        yield f"reading pages of 1,000: {1_000 / page:,.0f} events/s"
        names = ["io.relaycast.data.published3"]
        few = min(
            _seconds(lambda: log.read(log.last_seq // 2, limit=10, namespaces=names, occurred_from=90))
            for _ in range(10)
        )
        yield f"reading 10 by namespace and time, in the middle: {few * 1e3:,.2f} ms"
        none = min(_seconds(lambda: log.read(limit=10, occurred_from=1 << 60)) for _ in range(ROUNDS))
        yield f"reading by a time that no event has: {none * 1e3:,.2f} ms"


class Sink(asyncio.Protocol):
    """Answers each request with 204 as soon as its body is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.held = b""

    def data_received(self, data: bytes) -> None:
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self.held) < end + 4 + length:
                return
            self.held = self.held[end + 4 + length :]
            self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def receive() -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def pushed(folder: Path, port: int, subscriptions: int, events: int) -> float:
    """Return acknowledged events a second."""
    guard, clock = SinkGuard(["127.0.0.1"]), SystemClock()
    each = events // subscriptions
    with EventLog.open(folder / "events.sqlite") as log:
        log.append(*drafts(each))
        store = DeliveryStore.open(folder / "delivery.sqlite")
        deliveries = EventDeliveries(log, store, sender_of=lambda it: HttpSender(it, guard, clock), clock=clock)
        for number in range(subscriptions):
            target = Target("HTTP", f"http://127.0.0.1:{port}/", {"method": "POST"})
            window = CONNECTIONS // subscriptions
            order = DeliveryOrder(f"s{number}", target, lambda _: True, encoder("HTTP", {}), window=window)
            deliveries.add(order, 0)
        began = time.perf_counter()
        await deliveries.start()
        while any(state.delivered < each for state in deliveries.states()):
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - began
        await deliveries.stop()
        store.close()
    return subscriptions * each / seconds


def push(given: Given) -> Iterator[str]:
    """Events that a receiver in another process acknowledged, in binary mode: many subscriptions, and a wide one."""
    with Popen([sys.executable, __file__, "--receive"], stdout=PIPE) as receiver:
        assert receiver.stdout is not None
        port = int(receiver.stdout.readline())
        try:
            for subscriptions in (CONNECTIONS, 1):
                rates = []
                for _ in range(ROUNDS):
                    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                        rates.append(asyncio.run(pushed(Path(folder), port, subscriptions, given.events // PUSHES_OF)))
                yield (
                    f"push over HTTP, {subscriptions} subscriptions, window {CONNECTIONS // subscriptions}:"
                    f" {max(rates):,.0f} acknowledged events/s, goal {PUSH_GOAL:,}"
                )
        finally:
            receiver.kill()


def filters(_: Given) -> Iterator[str]:
    """Compiled filters: one evaluation, and how long it takes to compile them."""
    yield f"filters, goal {FILTER_GOAL} ns for a dialect:"
    for name, given in FILTERS.items():
        predicate = compile_filter(given)
        evaluation = min(_seconds(lambda it=predicate: _evaluate(it)) for _ in range(FILTER_ROUNDS)) / EVALUATIONS  # type: ignore[misc]
        compiling = min(_seconds(lambda it=given: compile_filter(it)) for _ in range(FILTER_ROUNDS))  # type: ignore[misc]
        yield f"  {name:<28}{evaluation * 1e9:>7,.0f} ns, {compiling * 1e6:>6,.1f} us to compile"


def candypath(_: Given) -> Iterator[str]:
    """CandyPath filters of ICRC-72: one evaluation, and how long it takes to compile them."""
    yield f"CandyPath, goal {FILTER_GOAL} ns for one comparison:"
    tree = map_of({name: text(each) if isinstance(each, str) else from_json(each) for name, each in EVENT.items()})
    for written in CANDY_PATHS:
        predicate = candy_path(written)
        evaluation = min(_seconds(lambda it=predicate: _evaluate(it, tree)) for _ in range(FILTER_ROUNDS)) / EVALUATIONS  # type: ignore[misc]
        compiling = min(_seconds(lambda it=written: candy_path(it)) for _ in range(FILTER_ROUNDS))  # type: ignore[misc]
        yield f"  {written:<50}{evaluation * 1e9:>7,.0f} ns, {compiling * 1e6:>6,.1f} us to compile"


def candid(given: Given) -> Iterator[str]:
    """Candid messages of an event: encoding and decoding, beside two peers."""
    yield from candid_codecs.compared(drafts(1)[0], given.missed)


def _evaluate(predicate: Callable[[Any], bool], event: object = EVENT) -> None:
    for _ in range(EVALUATIONS):
        predicate(event)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


PARTS: Mapping[str, Part] = {
    "append": append,
    "index": index,
    "push": push,
    "filters": filters,
    "candypath": candypath,
    "candid": candid,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all unless named")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where logs are written, a temporary folder if absent"
    )
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive:
        asyncio.run(receive())
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}, expected some of {', '.join(PARTS)}")
    missed: list[str] = []
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="bench-gateway-", dir=given.folder) as folder:
            for line in PARTS[name](Given(given.events, Path(folder), missed)):
                print(line, flush=True)
    for line in missed:
        print(f"\033[31mmissed: {line}\033[0m" if sys.stdout.isatty() else f"missed: {line}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
