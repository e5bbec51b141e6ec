"""The Spark session, made in one place, with its settings and the Java process that it runs in.

Law: the command line comes first, then the user's ``spark-defaults.conf``, then the settings here. The Java process
that this process starts ends with it, whatever the moment. Without PySpark or a fitting Java, ``SparkUnavailable`` says
in one line what to install.
"""

import atexit
import logging
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, NoReturn

from relaycast_ledger.staged_file import FULL_DISK
from relaycast_spark.exceptions import JobFailed, SparkUnavailable
from relaycast_spark.pyspark_internals import ends_with_us, hush_accumulators, kill_java, remove_at_exit
from relaycast_trie.extras import install_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Spark = SparkSession


LOCAL_ADDRESS = "127.0.0.1"

DEFAULTS = "spark-defaults.conf"

SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # as all others write; by default a form of 96 bits
    "spark.driver.maxResultSize": "0",
    "spark.ui.retainedJobs": "100",  # what the driver remembers of jobs that are done, pages or none
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.rpc.message.maxSize": "512",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "4",  # a minute, in place of ten
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.PYTHONHASHSEED": "0",
}

LOCAL_SETTINGS = {
    "spark.driver.bindAddress": LOCAL_ADDRESS,
    "spark.driver.host": LOCAL_ADDRESS,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # short jobs: half the start time
}
"""For a Spark inside this process's machine alone."""


def local_settings(scratch: str) -> dict[str, str]:
    """Return settings for a Spark with a local master: it keeps its files in ``scratch``.

    Spark's default is ``/tmp``. ``SPARK_LOCAL_DIRS`` overrides them.
    """
    places = {"spark.local.dir": scratch, "spark.sql.warehouse.dir": f"{scratch}/warehouse"}
    return LOCAL_SETTINGS | places | {"spark.driver.defaultJavaOptions": f'"-Djava.io.tmpdir={scratch}"'}


_LINE = re.compile(r"\s*([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*?)\s*")


def defaults_folder() -> Path | None:
    """Return the folder of the user's ``spark-defaults.conf``, where Spark would look for it; nothing without one."""
    home, folder = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    wanted = Path(folder) if folder else Path(home) / "conf" if home else None
    return wanted if wanted is not None and (wanted / DEFAULTS).is_file() else None


MASTERS = ("local", "local[N]", "local[*]", "local-cluster[..]", "spark://HOST:PORT", "yarn", "k8s://HOST:PORT")
"""Forms of a master that spark-submit accepts."""

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^\s/]+:\d+(,[^\s/]+:\d+)*|k8s://\S+|yarn"
)


def is_master(text: str) -> bool:
    """Return whether ``text`` is a valid master."""
    return _MASTER.fullmatch(text) is not None


def like_master(text: str) -> str:
    """Return the closest master to an invalid text; an empty text if none is close."""
    rest = re.sub(r"^[^\[:]*", "", text)
    head = text.removesuffix(rest)
    for name in get_close_matches(head.lower(), ("local", "local-cluster", "spark", "yarn", "k8s"), n=3, cutoff=0.5):
        if is_master(name + rest):
            return name + rest
    return ""


def user_defaults() -> dict[str, str]:
    """Return the settings of the user's ``spark-defaults.conf``; a line is a name and a value, or a comment."""
    folder = defaults_folder()
    if folder is None:
        return {}
    lines = (folder / DEFAULTS).read_text(encoding="utf-8", errors="replace").splitlines()
    found = (_LINE.fullmatch(line) for line in lines if not line.lstrip().startswith(("#", "!")))
    return {it[1]: it[2] for it in found if it is not None}


CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables by which PySpark makes every session one of Spark Connect."""

OLDEST_JAVA = 17
"""Spark 4 runs on Java 17 and later."""

LEAST_HANDLES = 400
"""Files that Spark's Java process has open at least: it raises its own limit as far as it may."""

INSTALL_JAVA = "install Java 17 (Debian: apt install openjdk-17-jre-headless), or let JAVA_HOME point to it"
INSTALL_SPARK = install_command("spark")

SCRATCH = "relaycast-spark-"
"""Name prefix of Spark's spill folder, inside TMPDIR."""

STOP_SECONDS = 10.0
"""Time for Spark to stop after an interrupt; then its Java process is killed."""

MASTER_SECONDS = 10.0
"""Time for a cluster's master to answer."""

JVM_GONE = "the Java process that Spark runs in has ended"

TRACEBACK = "Traceback (most recent call last):"

TABLE_WRITER = "org.apache.hadoop."
"""Where Java's trace tells tables from what Spark spills: those are written by file systems of Hadoop."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Where Spark runs: ``master`` as spark-submit takes it, ``None`` for what was submitted with, or this machine."""

    master: str | None = None
    app_name: str = "relaycast"
    ui: bool = False
    extra: tuple[tuple[str, str], ...] = ()
    """Settings of Spark's own, over those of the user's ``spark-defaults.conf`` and ours."""


def require_spark() -> None:
    """Raise ``SparkUnavailable`` unless PySpark and a fitting Java are here."""
    try:
        import pyspark  # noqa: F401, PLC0415
    except ImportError:
        raise SparkUnavailable("PySpark is not installed", INSTALL_SPARK) from None
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < LEAST_HANDLES:
        raise SparkUnavailable(f"no more than {most:,} file handles", f"let it have {LEAST_HANDLES} (ulimit -Hn)")
    remote = next((name for name in CONNECT if name in os.environ), "")
    if remote:
        _refuse_connect(f"{remote}={os.environ[remote]}")
    require_java()


def _refuse_connect(setting: str) -> NoReturn:
    raise SparkUnavailable(
        f"{setting} asks for Spark Connect, which has no SparkContext to name, watch and cancel jobs by",
        "unset it and give --master, or --engine local",
    )


def require_java() -> int:
    """Return the version of the Java that Spark will use; raises ``SparkUnavailable``."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"there is no Java in JAVA_HOME={home}" if home else "there is no Java on the PATH"
        raise SparkUnavailable(where, INSTALL_JAVA)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        raise SparkUnavailable(f"{java} does not run", INSTALL_JAVA) from None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    version = int(found[1]) if found else 0
    if version < OLDEST_JAVA:
        got = f"Java {version}" if version else "no Java that says its version"
        raise SparkUnavailable(f"{java} is {got}, Spark 4 needs {OLDEST_JAVA} or later", INSTALL_JAVA)
    return version


@contextmanager
def spark_session(settings: SessionSettings | None = None) -> Iterator["SparkSession"]:
    """Give a session, and stop it at the end unless it was there before.

    Raises ``SparkUnavailable``, and ``JobFailed`` for whatever PySpark raises meanwhile; a full disk is an ``OSError``.
    """
    require_spark()
    from pyspark.sql import SparkSession  # noqa: PLC0415

    given, wanted = SparkSession.getActiveSession(), settings or SessionSettings()
    if given is not None:
        with _configured(given, wanted.extra), _one_line_errors():
            yield given
        return
    logging.getLogger().addFilter(_is_not_of_the_gateway)  # it stays: objects of the JVM are let go of later, too
    session = build_session(wanted)
    hush_accumulators(session)
    with _stopped(session), _one_line_errors():
        yield session


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn what PySpark raises into ``JobFailed``, or the ``OSError`` of a full disk."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (ConnectionError, Py4JNetworkError) as error:
        raise JobFailed(JVM_GONE) from error
    except (PySparkException, Py4JError) as error:
        full = full_disk_of(error)
        raise (OSError(full, os.strerror(full)) if full else JobFailed(reason_of(error))) from error


@contextmanager
def _stopped(session: "SparkSession") -> Iterator[None]:
    """Stop a session at the end; one that was interrupted has ``STOP_SECONDS`` for it.

    After SIGTERM, Python may still wait for an answer of the JVM in many places. Killing the JVM when the time is over
    ends every wait.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415

    with bounded_end(lambda: kill_java(session)) as begin:
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                begin()
            raise
        finally:
            with suppress(Py4JError, ConnectionError):  # the JVM may be gone already: an interrupt reaches it, too
                session.stop()


@contextmanager
def bounded_end(kill: Callable[[], object], seconds: float = STOP_SECONDS) -> Iterator[Callable[[], None]]:
    """Call ``kill`` unless the body ends within ``seconds`` of SIGTERM, or of a call of the yielded function.

    If SIGTERM has no Python handler, or this is not the main thread, signals are left alone.
    """
    timer = threading.Timer(seconds, kill)
    timer.daemon = True

    def begin() -> None:
        if timer.ident is None:
            timer.start()

    before = signal.getsignal(signal.SIGTERM)
    watches = callable(before) and threading.current_thread() is threading.main_thread()

    def asked(number: int, frame: FrameType | None) -> None:
        begin()
        assert callable(before)
        before(number, frame)

    if watches:
        signal.signal(signal.SIGTERM, asked)
    try:
        yield begin
    finally:
        timer.cancel()
        if watches:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _configured(session: "SparkSession", extra: tuple[tuple[str, str], ...]) -> Iterator[None]:
    """Set what can be set in a running session, and set it back; raises ``SparkUnavailable`` for all else."""
    fixed = next((name for name, _ in extra if not session.conf.isModifiable(name)), None)
    if fixed is not None:
        raise SparkUnavailable(f"{fixed} cannot be set in a Spark that runs already", "set it where that one starts")
    before = {name: session.conf.get(name, None) for name, _ in extra}
    for name, value in extra:
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            with suppress(Exception):  # the JVM may be gone already
                if old is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, old)


def _is_not_of_the_gateway(record: logging.LogRecord) -> bool:
    """py4j logs a broken connection as the root logger, which prints to standard error."""
    return "py4j" not in Path(record.pathname).parts


@cache
def _scratch() -> str:
    """Return the folder where a local Spark of this process keeps its files; it is removed when the process ends.

    Successive sessions share a JVM, and so the folder.
    """
    folder = tempfile.mkdtemp(prefix=SCRATCH)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def build_session(settings: SessionSettings) -> "SparkSession":
    """Start Spark; raises ``SparkUnavailable`` when it does not."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    submitted = is_submitted() and settings.master is None
    theirs = {} if submitted else user_defaults()
    master = (
        "that of spark-submit" if submitted else retrying(settings.master or theirs.get("spark.master", "local[*]"))
    )
    if not submitted:
        refuse_silent(master)
    builder = SparkSession.builder.appName(settings.app_name)
    if not submitted:
        builder = builder.master(master)
        for name, value in environment(master).items():
            os.environ.setdefault(name, value)
    scratch = _scratch() if is_local(master) and not submitted else ""
    chosen = chosen_settings(settings, theirs, scratch)
    for name, value in (theirs | chosen).items():
        if name == "spark.remote" or (name, value) == ("spark.api.mode", "connect"):
            _refuse_connect(f"{name}={value}")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with tempfile.TemporaryFile() as said:
        try:
            with _stderr_into(said.fileno()), ends_with_us():
                session: SparkSession = builder.getOrCreate()
        except (PySparkException, Py4JError, RuntimeError, OSError) as error:
            raise SparkUnavailable(f"Spark does not start with --master {master}", _reason(error, said)) from None
    if scratch:
        remove_at_exit(session, scratch)
    return session


def refuse_silent(master: str) -> None:
    """Raise ``SparkUnavailable`` where nothing listens at a cluster's address: Spark itself would try for a minute."""
    found = re.findall(r"(?:^spark://|^k8s://(?:\w+://)?|,)\[?([^\s/,]+?)\]?:(\d+)", master)
    reasons = []
    for host, port in found:
        try:
            socket.create_connection((host, int(port)), MASTER_SECONDS / len(found)).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {(error.strerror or str(error)).lower()}")
        else:
            return
    if reasons:
        raise SparkUnavailable(
            f"nothing answers at --master {master} ({', '.join(reasons)})", "start it or name another"
        )


def chosen_settings(settings: SessionSettings, theirs: dict[str, str], scratch: str) -> dict[str, str]:
    """Return the settings that Spark is started with, besides the user's own defaults.

    Only a Spark with a local master gets the folder ``scratch``.
    """
    ours = SETTINGS | (local_settings(scratch) if scratch else {}) | {"spark.ui.enabled": "false"}
    chosen = {name: value for name, value in ours.items() if name not in theirs}
    return chosen | ({"spark.ui.enabled": "true"} if settings.ui else {}) | dict(settings.extra)


@contextmanager
def _stderr_into(descriptor: int) -> Iterator[None]:
    """Let the JVM that is started meanwhile inherit another standard error: it greets everybody at length."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def reason_of(error: Exception) -> str:
    """Return what a failed job says in one line, without the traceback of the machine that it ran on.

    Where a Python worker raised, that is its error, as ``SegmentFailed`` and others print it.
    """
    *_, traceback = str(error).rpartition(TRACEBACK)
    raised = [line for line in traceback.splitlines()[1:] if line and not line.startswith(" ")]
    if TRACEBACK in str(error) and raised:
        return re.sub(r"^(?:\w+\.)+(?=\w+)", "", raised[0])
    lines = [line.strip().removeprefix("Caused by: ") for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[-1 if told else 0]


def full_disk_of(error: Exception) -> int:
    """Return the number by which the system refused to write more of a table; 0 for any other error."""
    *_, cause = str(error).rpartition("Caused by: ")
    numbers = FULL_DISK if TABLE_WRITER in cause else ()
    return next((number for number in numbers if os.strerror(number) in cause), 0)


def _reason(error: Exception, said: IO[bytes]) -> str:
    """Return one line of why Spark did not start: the last that names an error, of what was raised or said."""
    said.seek(0)
    lines = [*said.read().decode("utf-8", "replace").splitlines(), *str(error).splitlines()]
    told = [line.strip() for line in lines if "Exception: " in line or "Error: " in line]
    return told[-1] if told else type(error).__name__


def is_submitted() -> bool:
    """Whether spark-submit started this process, and its JVM with it: master and environment are its own."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_local(master: str) -> bool:
    """Whether Spark runs inside this process's machine."""
    return master.startswith("local")


def retrying(master: str) -> str:
    """Return a local master that tries a failed task again, as clusters do: ``local[2]`` alone never would."""
    plain = re.fullmatch(r"local\[(\d+|\*)\]", master)
    if master == "local":
        return "local[1,4]"
    return f"local[{plain[1]},4]" if plain else master


def environment(master: str) -> dict[str, str]:
    """Return what Spark reads from the environment, as far as nobody has set it."""
    wanted = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(defaults_folder() or Path(__file__).parent / "conf"),
    }
    if is_local(master):
        wanted["SPARK_LOCAL_IP"] = LOCAL_ADDRESS
    return wanted
