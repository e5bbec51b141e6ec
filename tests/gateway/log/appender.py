"""A process that appends to a log from several threads until it is killed, and says what was acknowledged.

It writes a line for each acknowledged append: thread, first number of the batch there, first ``seq``, length.
"""

import sys
from concurrent.futures import Future
from functools import partial
from random import Random
from threading import Thread

from relaycast_gateway.icrc16 import array, blob, nat
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.record import EventDraft, EventRecord

THREADS = 3
CHAINS = 1
"""One more thread appends without waiting, as chains do."""


def namespace(thread: int) -> str:
    return f"thread.{thread}"


def number_of(thread: int, log: EventLog) -> int:
    """Return how many events of a thread the log has: where it goes on."""
    newest = log.read(namespaces=[namespace(thread)], limit=1_000_000)[-1:]
    return int(newest[0].data.content[0].content) + 1 if newest else 0


def drafts(thread: int, first: int, length: int, draw: Random) -> list[EventDraft]:
    return [
        EventDraft(namespace(thread), array(nat(number), blob(draw.randbytes(draw.randrange(400)))), b"", number)
        for number in range(first, first + length)
    ]


def say(thread: int, first: int, seq: int, length: int) -> None:
    sys.stdout.write(f"{thread} {first} {seq} {length}\n")
    sys.stdout.flush()


def acknowledge(thread: int, first: int, future: "Future[list[EventRecord]]") -> None:
    say(thread, first, future.result()[0].seq, len(future.result()))


def append(thread: int, log: EventLog, seed: str) -> None:
    draw, number = Random(f"{seed} {thread}"), number_of(thread, log)
    while True:
        length = draw.randrange(1, 20)
        batch = drafts(thread, number, length, draw)
        if thread < THREADS:
            records = log.append(*batch)
            say(thread, number, records[0].seq, len(records))
        else:
            future = log.append_soon(batch)
            future.add_done_callback(partial(acknowledge, thread, number))
            if draw.random() < 0.2:
                future.result()
        number += length


def main() -> None:
    path, seed, count_kept = sys.argv[1:]
    log = EventLog.open(path, retention=Retention(count=int(count_kept) or None))
    print("open", flush=True)
    for thread in range(THREADS + CHAINS):
        Thread(target=append, args=(thread, log, seed)).start()


if __name__ == "__main__":
    main()
