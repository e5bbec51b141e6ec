"""The cheaper alternative, tried by a process of its own while the run is under way."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import Probe, probed, probed_blocks
from relaycast.simulation.simulation import Simulation
from relaycast.simulation.worker_processes import begin_worker
from relaycast_trie.engine import Engine


@contextmanager
def probed_aside(simulation: Simulation, *, trie_engine: Engine) -> Iterator[Callable[[], Probe]]:
    """Run the first blocks of a simulation's scenario in a process of their own, and give what waits for them.

    Where that process ends without an answer, this one runs the blocks itself and meets the same error. The process is
    forked, so this begins before there are threads of Spark.
    """
    scenario = simulation.scenario
    last = probed_blocks(scenario, sum(simulation.feeds.count(chain) for chain in scenario.subscribers()))
    fork = get_context("fork")
    near, far = fork.Pipe(duplex=False)
    process = fork.Process(target=_probe, args=(scenario, last, trie_engine, far, os.getpid()), daemon=True)
    process.start()
    far.close()

    def wait() -> Probe:
        try:
            found: Probe = near.recv()
        except (EOFError, OSError):
            return probed(scenario, last, trie_engine=trie_engine)
        return found

    try:
        yield wait
    finally:
        process.kill()
        process.join()
        near.close()


def _probe(scenario: Scenario, last: int, trie_engine: Engine, pipe: Connection, parent: int) -> None:
    try:
        begin_worker(parent)
        with suppress(Exception):  # its parent meets it, too
            pipe.send(probed(scenario, last, trie_engine=trie_engine))
    finally:
        os._exit(0)  # what the parent's threads held when this process began stays held: nothing is flushed here
