"""Jobs on Spark: named, watched, several at a time, or as tasks that all run at once and talk to the driver.

Law: what goes over a line between a task and the driver is bytes, never pickled; a caller of the driver must know a key
that travels with the tasks.
"""

import secrets
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from relaycast_spark.exceptions import JobFailed, SparkUnavailable
from relaycast_spark.pyspark_internals import partitions_of
from relaycast_spark.session import LOCAL_ADDRESS, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
R = TypeVar("R")
Row = dict[str, Any]

TASKS_A_CORE = 4
"""Tasks per core of a stage: enough that a slow one does not delay the end."""

AHEAD = 2
"""Jobs that wait for a free core, so that no core waits for the next job."""

POLL_SECONDS = 0.25

GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What ``setJobGroup`` sets for a thread."""


def spread(frame: "DataFrame") -> "DataFrame":
    """Return the rows in as many partitions as keep every core busy; large inputs have them already."""
    wanted = TASKS_A_CORE * frame.sparkSession.sparkContext.defaultParallelism
    return frame if partitions_of(frame) * 2 >= wanted else frame.repartition(wanted)


def group_of(what: str) -> str:
    """Return a new name for a group of jobs."""
    return f"relaycast: {what} ({uuid4().hex[:8]})"


@contextmanager
def named(spark: "SparkSession", what: str, group: str = "") -> Iterator[None]:
    """Name the jobs of this thread ``what`` on Spark's pages and in its event log; a caller's own name comes back."""
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in GROUP_PROPERTIES}
    context.setJobGroup(group or group_of(what), what, interruptOnCancel=True)
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM may be gone already
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def rows_done(spark: "SparkSession", group: str, rows: int) -> int:
    """Return the progress of the last stage of a group's jobs, in rows."""
    tracker = spark.sparkContext.statusTracker()
    stages = [
        info
        for job in tracker.getJobIdsForGroup(group)
        if (found := tracker.getJobInfo(job)) is not None
        for number in found.stageIds
        if (info := tracker.getStageInfo(number)) is not None
    ]
    if not stages:
        return 0
    last = max(stages, key=lambda info: info.stageId)
    return last.numCompletedTasks * rows // max(1, last.numTasks)


def as_done(
    submit: Callable[[T], Future[R]], items: Iterable[T], *, at_once: int, meanwhile: Callable[[], None] | None = None
) -> Iterator[tuple[T, Future[R]]]:
    """Submit ``items``, at most ``at_once`` at a time, and yield each with its future as soon as that is done.

    ``meanwhile`` is called every ``POLL_SECONDS``.
    """
    under_way: dict[Future[R], T] = {}

    def finished() -> Iterator[tuple[T, Future[R]]]:
        seconds = None if meanwhile is None else POLL_SECONDS
        while not (ended := wait(under_way, seconds, FIRST_COMPLETED).done):
            assert meanwhile is not None
            meanwhile()
        for future in ended:
            yield under_way.pop(future), future

    for item in items:
        while len(under_way) >= at_once:
            yield from finished()
        under_way[submit(item)] = item
    while under_way:
        yield from finished()


def jobs_as_done(
    spark: "SparkSession",
    items: Iterable[T],
    work: Callable[[T], R],
    name: Callable[[T], str],
    *,
    at_once: int = 0,
    shown: Callable[[Iterable[tuple[str, T]]], None] | None = None,
) -> Generator[tuple[T, Future[R]]]:
    """Do ``work`` on each item in a job of its own and yield the item with its future as soon as that is done.

    Unless ``at_once`` says how many, there are a few more jobs at a time than cores. ``shown`` is called now and then
    with the groups of the jobs under way. Closing the iterator cancels them, and no other jobs.
    """
    context = spark.sparkContext
    at_once = at_once or max(1, context.defaultParallelism) + AHEAD
    under_way: dict[str, T] = {}

    def job(group: str, item: T) -> R:
        with named(spark, name(item), group):
            return work(item)

    def submit(task: tuple[str, T]) -> Future[R]:
        under_way[task[0]] = task[1]
        return pool.submit(job, *task)

    tasks = ((group_of(name(item)), item) for item in items)
    meanwhile = None if shown is None else lambda: shown(under_way.items())
    with ThreadPoolExecutor(at_once, thread_name_prefix="job") as pool:
        try:
            for (group, item), future in as_done(submit, tasks, at_once=at_once, meanwhile=meanwhile):
                del under_way[group]
                yield item, future
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            with suppress(Exception):  # the JVM may be gone already
                for group in under_way:
                    context.cancelJobGroup(group)
            raise


def spread_work(
    spark: "SparkSession", items: Sequence[bytes], work: Callable[[bytes], list[Row]], schema: pa.Schema
) -> "DataFrame":
    """Return the rows that ``work`` makes of each item, a task for each; workers must be able to import ``work``."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - runs without Spark import this module

    pieces = list(items)

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield pa.RecordBatch.from_pylist(work(pieces[number]), schema)

    return spark.range(len(pieces), numPartitions=len(pieces)).mapInArrow(each, from_arrow_schema(schema))


Work = Callable[[Connection], None]
"""The work of a task in a gang, which talks over its line; it is pickled on its way to the task."""

KEY_BYTES = 32

FAILED = b"failed"
"""Sent over a line in place of a task's number when no tasks will start."""

TOO_FEW_CORES = "SPARK-24819"
"""Spark's name for its refusal of tasks that cannot all run at the same time."""

PATIENCE = 30
"""Seconds that tasks have to end once their work is done."""


@dataclass(frozen=True, slots=True)
class Member:
    """A task of a gang: it calls the driver at ``address`` with the ``key`` and works."""

    number: int
    work: Work
    address: tuple[str, int]
    key: bytes = field(repr=False)

    def run(self) -> int:
        with self.called(str(self.number).encode()) as line:
            self.work(line)
        return self.number

    def called(self, said: bytes) -> Connection:
        """Call the driver, say who calls, and return the line."""
        line: Any = Client(self.address, authkey=self.key)
        line.send_bytes(said)
        return line  # type: ignore[no-any-return]


@contextmanager
def gang_of(spark: "SparkSession", works: Sequence[Work], name: str) -> Iterator[list[Connection]]:
    """Run each of ``works`` in a task of Spark's barrier mode, all at the same time, and yield the lines to them.

    The tasks end with this context, whatever they are doing. Raises ``SparkUnavailable`` where a local Spark has fewer
    cores than there are tasks, and ``JobFailed`` where they do not start.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local") and len(works) > context.defaultParallelism:
        needed = f"{len(works)} tasks run at the same time, and it has {context.defaultParallelism} cores"
        raise SparkUnavailable(f"--master {context.master} has too few cores", needed)
    if not works:
        yield []
        return
    settings, group, key = context.getConf(), group_of(name), secrets.token_bytes(KEY_BYTES)
    host = settings.get("spark.driver.host") or LOCAL_ADDRESS
    failures: list[str] = []
    with Listener((settings.get("spark.driver.bindAddress") or host, 0), backlog=len(works), authkey=key) as listener:
        members = [Member(number, work, (host, listener.address[1]), key) for number, work in enumerate(works)]

        def run_tasks() -> None:
            try:
                with named(spark, name, group):
                    tasks = context.parallelize(members, len(members)).barrier()
                    tasks.mapPartitions(lambda given: (member.run() for member in given)).collect()
            except Exception as error:
                few = f"{context.master} has too few cores: {len(members)} tasks run at the same time"
                failures.append(few if TOO_FEW_CORES in str(error) else reason_of(error))
                with suppress(OSError, EOFError):  # nobody listens once the run is over
                    members[0].called(FAILED).close()

        job = threading.Thread(target=run_tasks, name=group, daemon=True)
        lines: dict[int, Connection] = {}
        try:
            job.start()
            while len(lines) < len(works):
                number, line = _answered(listener)
                if number is None:
                    line.close()
                    raise JobFailed(failures[0])
                lines[number] = line
            yield [lines[number] for number in range(len(works))]
            job.join(PATIENCE)
        finally:
            with suppress(Exception):  # the JVM may be gone already
                context.cancelJobGroup(group)
            for line in lines.values():
                line.close()


def _answered(listener: Listener) -> tuple[int | None, Connection]:
    """Return the number of the task that calls next and the line to it; ``None`` where no task will call."""
    while True:
        try:
            line: Any = listener.accept()
            said = line.recv_bytes(len(FAILED) + 8)
        except (AuthenticationError, EOFError, ConnectionError):  # not one of ours, or a task that is gone
            continue
        return (None if said == FAILED else int(said)), line
