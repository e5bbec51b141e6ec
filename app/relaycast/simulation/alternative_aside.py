"""The cheaper alternative, tried by a process of its own while the run is under way."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

from relaycast.simulation.alternative import Probe, Probing, probed, probing
from relaycast.simulation.simulation import Simulation
from relaycast.simulation.worker_processes import begin_worker


@contextmanager
def probed_aside(simulation: Simulation) -> Iterator[Callable[[], Probe]]:
    """Run the first blocks of a simulation's scenario in a process of their own, and give what waits for them.

    Where that process ends without an answer, this one runs the blocks itself and meets the same error. The process is
    forked, so this begins before there are threads of Spark.
    """
    again = probing(simulation.scenario, simulation.key_counts)
    fork = get_context("fork")
    near, far = fork.Pipe(duplex=False)
    process = fork.Process(target=_probe, args=(simulation, again, far, os.getpid()), daemon=True)
    process.start()
    far.close()

    def wait() -> Probe:
        try:
            found: Probe = near.recv()
        except (EOFError, OSError):
            return probed(simulation, again)
        return found

    try:
        yield wait
    finally:
        process.kill()
        process.join()
        near.close()


def _probe(simulation: Simulation, again: Probing, pipe: Connection, parent: int) -> None:
    try:
        begin_worker(parent)
        with suppress(Exception):  # its parent meets it, too
            pipe.send(probed(simulation, again))
    finally:
        os._exit(0)  # what the parent's threads held when this process began stays held: nothing is flushed here
