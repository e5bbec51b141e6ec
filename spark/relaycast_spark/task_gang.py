"""Tasks that all run at the same time, each at the end of a line to the driver: Spark's barrier mode starts them.

Law: what goes over a line is bytes, never pickled; who calls the driver must know a key that travels with the tasks.
"""

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any

from relaycast_spark.exceptions import JobFailed, SparkUnavailable
from relaycast_spark.session import reason_of
from relaycast_spark.settings import LOCAL_ADDRESS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work = Callable[[Connection], None]
"""What a task does, told over its line; it is pickled on its way there."""

KEY_BYTES = 32

FAILED = b"failed"
"""What comes over a line in place of a task's number when there will be no tasks."""

TOO_FEW_CORES = "SPARK-24819"
"""What Spark names its refusal of tasks that cannot all run at the same time."""

PATIENCE = 30
"""Seconds that tasks have to end once their work is done."""


@dataclass(frozen=True, slots=True)
class Answering:
    """The way from a task to the driver."""

    host: str
    port: int
    key: bytes = field(repr=False)

    def call(self) -> Connection:
        """Return a new line to the driver."""
        line: Any = Client((self.host, self.port), authkey=self.key)
        return line  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Member:
    """One task of a gang."""

    number: int
    work: Work
    driver: Answering

    def run(self) -> int:
        """Call the driver and work; return the number."""
        with self.driver.call() as line:
            line.send_bytes(str(self.number).encode())
            self.work(line)
        return self.number


@contextmanager
def gang_of(spark: "SparkSession", works: Sequence[Work], name: str) -> Iterator[list[Connection]]:
    """Run each of ``works`` in a task of its own and give the lines to them, in their order.

    The tasks end with this, whatever they are doing. Raises ``SparkUnavailable`` where a local Spark has fewer cores
    than there are tasks, and ``JobFailed`` where they do not start.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local") and len(works) > context.defaultParallelism:
        needed = f"{len(works)} tasks run at the same time, and it has {context.defaultParallelism} cores"
        raise SparkUnavailable(f"--master {context.master} has too few cores", needed)
    if not works:
        yield []
        return
    settings = context.getConf()
    host = settings.get("spark.driver.host") or LOCAL_ADDRESS
    key, group = secrets.token_bytes(KEY_BYTES), f"relaycast: {name} ({id(works)})"
    with Listener((settings.get("spark.driver.bindAddress") or host, 0), backlog=len(works), authkey=key) as listener:
        driver = Answering(host, listener.address[1], key)
        members = [Member(number, work, driver) for number, work in enumerate(works)]
        job = _Job(context, members, group, name)
        lines: dict[int, Connection] = {}
        try:
            job.thread.start()
            while len(lines) < len(works):
                number, line = _answered(listener)
                if number is None:
                    line.close()
                    raise JobFailed(job.failure)
                lines[number] = line
            yield [lines[number] for number in range(len(works))]
            job.thread.join(PATIENCE)
        finally:
            job.is_over = True
            with suppress(Exception):  # the JVM may be gone already
                context.cancelJobGroup(group)
            for line in lines.values():
                line.close()


def _answered(listener: Listener) -> tuple[int | None, Connection]:
    """Return the number of the task that calls next and the line to it; ``None`` where there will be none."""
    while True:
        try:
            line: Any = listener.accept()
            said = line.recv_bytes(len(FAILED) + 8)
        except (AuthenticationError, EOFError, ConnectionError):  # somebody else, or a task that is gone
            continue
        return (None if said == FAILED else int(said)), line


class _Job:
    """The job of a gang, waited for in a thread."""

    def __init__(self, context: Any, members: list[Member], group: str, name: str) -> None:
        self.context, self.members, self.group, self.name = context, members, group, name
        self.failure = ""
        self.is_over = False
        self.thread = threading.Thread(target=self._run, name=group, daemon=True)

    def _run(self) -> None:
        try:
            self.context.setJobGroup(self.group, self.name, interruptOnCancel=True)
            tasks = self.context.parallelize(self.members, len(self.members)).barrier()
            tasks.mapPartitions(_run_all).collect()
        except Exception as error:
            self.failure = reason_of(error)
            if TOO_FEW_CORES in str(error):
                self.failure = (
                    f"{self.context.master} has too few cores: {len(self.members)} tasks run at the same time"
                )
            if not self.is_over:
                with suppress(OSError, EOFError), self.members[0].driver.call() as line:
                    line.send_bytes(FAILED)


def _run_all(members: Iterator[Member]) -> Iterator[int]:
    for member in members:
        yield member.run()
