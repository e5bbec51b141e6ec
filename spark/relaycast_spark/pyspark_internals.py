"""Names that PySpark keeps to itself: each is used in one function here, and the function says why.

Law: a session that a caller brings is neither changed nor patched by any of these. Importing this needs no PySpark.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PR_SET_PDEATHSIG = 1


@contextmanager
def ends_with_us() -> Iterator[None]:
    """Let a JVM that PySpark starts meanwhile get SIGTERM when the thread that starts it ends, as processes do last.

    PySpark has no option for how it starts Java, and a driver that is killed would leave it. Elsewhere than on Linux
    nothing is changed.
    """
    import pyspark.java_gateway  # noqa: PLC0415

    gateway: Any = pyspark.java_gateway
    if not sys.platform.startswith("linux"):
        yield
        return
    kept = gateway.Popen
    gateway.Popen = _started
    try:
        yield
    finally:
        gateway.Popen = kept


def _started(
    command: list[str], *, preexec_fn: Callable[[], None] | None = None, **options: Any
) -> "subprocess.Popen[bytes]":
    parent, libc = os.getpid(), ctypes.CDLL(None, use_errno=True)

    def before() -> None:
        if preexec_fn is not None:
            preexec_fn()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the wish was heard
            os._exit(1)

    return subprocess.Popen(command, preexec_fn=before, **options)  # noqa: PLW1509, S603 - PySpark has one, too


def kill_java(session: "SparkSession") -> None:
    """Kill the Java process of a session, if this process started it: ``stop`` waits for answers without a limit."""
    process = getattr(getattr(session.sparkContext, "_gateway", None), "proc", None)
    if process is not None:
        process.kill()


def remove_at_exit(session: "SparkSession", folder: str) -> None:
    """Let Java remove an empty ``folder`` last: a driver that is killed cannot."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415

    with suppress(Py4JError, AttributeError):
        cast(Any, session)._jvm.java.io.File(folder).deleteOnExit()


def hush_accumulators(session: "SparkSession") -> None:
    """Let the server that workers' counts come back to print nothing when the JVM closes its connection first.

    It prints a traceback for each worker, and is reached in no other way.
    """
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda _request, _client: None


def hadoop_of(spark: "SparkSession") -> tuple[Any, Any]:
    """Return the package ``org.apache.hadoop`` of a session's JVM, and the configuration of its file systems.

    Tables are moved and removed by Spark's own file systems; PySpark has no other way to them.
    """
    context = cast(Any, spark.sparkContext)
    return context._jvm.org.apache.hadoop, context._jsc.hadoopConfiguration()


def partitions_of(frame: "DataFrame") -> int:
    """Return how many tasks a table is read in; the columns of a DataFrame alone would take a job to say that."""
    return frame.rdd.getNumPartitions()
