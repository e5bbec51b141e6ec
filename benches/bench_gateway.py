"""How fast the gateway is: one figure for each part, with the goal that it is held against.

::

    python benches/bench_gateway.py [append index ...] [--events 100000] [--folder DIR]

Without names every part runs. A part is a function of ``Given`` that yields lines; ``PARTS`` lists them. Logs lie below
``--folder``, so that the disk is the one that is meant; a figure is the best of three rounds.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psutil

from relaycast_gateway.icrc16 import blob, boolean, map_of, nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft

ROUNDS = 3
BATCH = 100
"""Events of one append: about a relay block of the oracle preset."""

THREADS = 8
APPEND_GOAL = 30_000
INDEX_GOAL = 200


@dataclass(frozen=True, slots=True)
class Given:
    """What a part is run with: how many ``events``, and a ``folder`` of its own."""

    events: int
    folder: Path


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
    """Durable appends: by chains, which do not wait, and by threads that wait for each of theirs."""
    batch = drafts(BATCH)
    rates, sizes = [], []
    for number in range(ROUNDS):
        file = given.folder / f"append-{number}"
        with EventLog.open(file) as log:
            began = time.perf_counter()
            futures = [log.append_soon(batch) for _ in range(given.events // BATCH)]
            for future in futures:
                future.result()
            rates.append(log.last_seq / (time.perf_counter() - began))
        sizes.append(file.stat().st_size / given.events)
    yield f"append, {BATCH} at a time, without waiting: {max(rates):,.0f} durable events/s, goal {APPEND_GOAL:,}"
    yield f"  on disk {min(sizes):,.0f} bytes an event"

    for size in (BATCH, 1):
        waited = [_waiting(given, given.folder / f"waiting-{size}-{number}", size) for number in range(ROUNDS)]
        yield f"append, {size} at a time, {THREADS} threads that wait: {max(waited):,.0f} durable events/s"


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


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


PARTS: Mapping[str, Part] = {"append": append, "index": index}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all unless named")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where logs are written, a temporary folder if absent"
    )
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}, expected some of {', '.join(PARTS)}")
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="bench-gateway-", dir=given.folder) as folder:
            for line in PARTS[name](Given(given.events, Path(folder))):
                print(line, flush=True)


if __name__ == "__main__":
    main()
