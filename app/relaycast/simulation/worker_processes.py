"""Processes of this machine that work side by side: what runs and sweeps use where there is no Spark.

Law: a worker ends with the process that started it, whatever the moment. A worker that ends before its work is done is
replaced, and its work is done again by another; work that workers end over again and again is given up.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from relaycast_spark.jobs import as_done
from relaycast_trie.exceptions import RelaycastError

ATTEMPTS = 4
"""How often a piece of work is begun, as Spark does with its tasks."""

LOOK_SECONDS = 0.5
"""How often a worker looks whether its parent is there."""

AHEAD = 2
"""Pieces of work for each worker that are handed in before one is done: nobody waits for the next."""

Work = Callable[[bytes], Any]


class WorkersEnded(
    RelaycastError,
    message="worker processes ended before their work was done, {attempts} times in a row: is memory short?",
):
    """Worker processes ended over a piece of work, ``attempts`` times: something here ends them, or memory is short."""

    attempts: int


@contextmanager
def pool_of(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of ``workers`` processes; they end with the context, whatever they are doing."""
    parent = os.getpid()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=begin_worker, initargs=(parent,))
    try:
        yield pool
    finally:
        started = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.terminate()
        for process in started:
            process.join()


def worked(work: Work, items: dict[int, bytes], *, workers: int) -> Generator[tuple[int, Any]]:
    """Do ``work`` on each item and give what it returns with the item's number, as it comes.

    ``work`` is a function that workers can import. One worker is this process. Raises ``WorkersEnded``, and whatever
    ``work`` raises.
    """
    if workers == 1:
        for number, item in items.items():
            yield number, work(item)
        return
    left, ended = dict(items), 0
    while left:
        done = 0
        try:
            for number, result in _results(work, left, workers):
                del left[number]
                done += 1
                yield number, result
        except BrokenProcessPool:
            ended = 1 if done else ended + 1
            if ended >= ATTEMPTS:
                raise WorkersEnded(ended) from None


def _results(work: Work, items: dict[int, bytes], workers: int) -> Iterator[tuple[int, Any]]:
    at_once = AHEAD * workers
    with pool_of(min(workers, len(items))) as pool:
        for number, future in as_done(lambda it: pool.submit(work, items[it]), list(items), at_once=at_once):
            yield number, future.result()


def begin_worker(parent: int) -> None:
    """Leave interrupts to the process with the number ``parent``, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
