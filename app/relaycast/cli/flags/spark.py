"""The options of verbs that run on Spark, and what they are turned into."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode, Terminated
from relaycast.cli.flags.run import RunFlags
from relaycast.cli.options import RUNNING, SPARK, Workers, checked_workers
from relaycast.refusal import BadInput, shown
from relaycast.scenario.scenario import MAX_BLOCKS, Scenario

if TYPE_CHECKING:
    from relaycast.simulation.run_estimate import Way
    from relaycast.simulation.run_files import Finished
    from relaycast_ledger.bulk_work import Engine
    from relaycast_ledger.segments.simulated import Progress
    from relaycast_ledger.table_places import TablePlace
    from relaycast_spark.session import SessionSettings, Spark

RunEngine = Annotated[
    Literal["local", "spark"], Parameter(name="--engine", group=RUNNING, help="this process, or Spark")
]
Master = Annotated[
    str | None, Parameter(name="--master", group=SPARK, help="where Spark runs: local[4], spark://host:7077, ...")
]
Conf = Annotated[
    list[str] | None,
    Parameter(
        name="--conf",
        group=SPARK,
        help="NAME=VALUE, a setting of Spark's, as spark-submit takes it; may be given several times",
    ),
]
Ui = Annotated[bool, Parameter(name="--spark-ui", group=SPARK, help="let Spark serve its web pages meanwhile")]

RowsAFile = Annotated[
    int | None, Parameter(name="--rows-per-file", help="rows that a Parquet file of the table has at most")
]


@dataclass(frozen=True, slots=True)
class SparkFlags:
    """Options of ``run --engine spark``."""

    master: Master = None
    conf: Conf = None
    spark_ui: Ui = False
    resume: Annotated[
        bool | None,
        Parameter(
            name="--resume",
            group=SPARK,
            negative="--no-resume",
            help="run by segments: continue where an interrupted run ended, or start over",
        ),
    ] = None
    segment_blocks: Annotated[
        int | None, Parameter(name="--segment-blocks", group=SPARK, help="blocks that a worker replays at a time")
    ] = None
    keep_proofs: Annotated[
        bool,
        Parameter(name="--keep-proofs", group=SPARK, help="keep every proof, in replayed.parquet beside the report"),
    ] = False
    fail_fast: Annotated[
        bool,
        Parameter(name="--fail-fast", group=SPARK, help="give up at the first block that fails, not after all others"),
    ] = False


def session_settings(master: str | None, conf: list[str] | None, *, ui: bool) -> "SessionSettings":
    """Return where Spark runs, and how; raises ``BadInput`` for what is no setting of Spark's."""
    from relaycast_spark.session import SessionSettings  # noqa: PLC0415

    _check_master(master)
    pairs = [setting.partition("=") for setting in conf or ()]
    for name, sign, value in pairs:
        if not sign or not name.startswith("spark."):
            raise BadInput("--conf", shown(f"{name}{sign}{value}"), "NAME=VALUE with a name that begins with spark.")
        if name == "spark.master":
            raise BadInput("--conf", shown(f"{name}{sign}{value}"), f"--master {value}")
    return SessionSettings(master=master, ui=ui, extra=tuple((name, value) for name, _, value in pairs))


def _check_master(master: str | None) -> None:
    """Raise ``BadInput`` for an invalid master, which Spark would try as a cluster."""
    from relaycast_spark.session import MASTERS, is_master, like_master  # noqa: PLC0415

    if master is not None and not is_master(master):
        meant = like_master(master)
        raise BadInput("--master", shown(master), ", ".join(MASTERS), f"did you mean {meant}?" if meant else "")


@contextmanager
def bulk_session(
    master: str | None, conf: list[str] | None, *, ui: bool, compiled: bool = False
) -> Iterator[tuple["Spark", "Progress"]]:
    """Give a Spark session and what shows its progress; raises ``SparkUnavailable``.

    Work that is ``compiled`` finds the kernels in their cache: this process fills it before any worker looks.
    """
    from relaycast.cli.tables.bars import stage_progress  # noqa: PLC0415
    from relaycast_spark.session import require_spark, spark_session  # noqa: PLC0415
    from relaycast_trie import warm_up  # noqa: PLC0415

    settings = session_settings(master, conf, ui=ui)
    require_spark()
    if compiled:
        warm_up()
    with spark_session(settings) as spark, stage_progress() as progress:
        yield spark, progress


@dataclass(frozen=True, slots=True)
class BulkFlags:
    """Where work on a table of proofs is done, and how large its files are."""

    engine: Annotated[
        Literal["local", "spark"] | None,
        Parameter(
            name="--engine", group=RUNNING, help="processes of this machine, or Spark: Spark where it is installed"
        ),
    ] = None
    workers: Workers = None
    master: Master = None
    conf: Conf = None
    spark_ui: Ui = False
    rows_per_file: RowsAFile = None


NO_BULK_FLAGS = BulkFlags()


def chosen_engine(flags: BulkFlags, places: Iterable["TablePlace"]) -> tuple[Literal["local", "spark"], str]:
    """Return which engine works on tables at these ``places``, and why.

    Raises ``BadInput`` for options of the other engine, and ``SparkUnavailable`` where nothing but Spark will do.
    """
    from relaycast_spark.exceptions import SparkUnavailable  # noqa: PLC0415
    from relaycast_spark.session import require_spark  # noqa: PLC0415

    options = {"--master": flags.master, "--conf": flags.conf, "--spark-ui": flags.spark_ui}
    given = next((f"{name} {value}" for name, value in options.items() if value), "")
    uri = next((str(place) for place in places if place.is_uri), "")
    why = "--engine local" if flags.engine == "local" else ""
    if flags.workers is not None:
        why = why or f"--workers {checked_workers(flags.workers)}"
    if why and flags.engine != "spark" and given:
        name, _, value = given.partition(" ")
        raise BadInput(name, f"{value} with {why}", "--engine spark beside it")
    if why and flags.engine != "spark" and uri:
        raise BadInput(uri, f"a URI with {why}", "--engine spark, or a path of this machine")
    if flags.engine == "spark" and flags.workers is not None:
        raise BadInput("--workers", f"{flags.workers} with --engine spark", "--master local[N], or --engine local")
    if why:
        return "local", why
    asks = given or uri
    try:
        require_spark()
    except SparkUnavailable as lacking:
        if flags.engine == "spark" or asks or "SPARK_REMOTE" in os.environ:
            raise
        return "local", str(lacking)
    return "spark", "--engine spark" if flags.engine else asks or "it is installed here"


@contextmanager
def bulk_engine(
    flags: BulkFlags, chosen: tuple[Literal["local", "spark"], str], target: "TablePlace", rows_a_file: int
) -> Iterator[tuple["Engine", "Progress"]]:
    """Yield the ``chosen`` engine, which writes ``target``, and its progress; print one line that names the engine."""
    from relaycast.terminal import counted, is_hushed  # noqa: PLC0415

    name, why = chosen
    workers = checked_workers(flags.workers) if name == "local" else 0
    where = "on Spark" if name == "spark" else f"in {counted(workers, 'process', 'processes')} of this machine"
    if not is_hushed():
        print(f"relaycast: {where}: {why}", file=sys.stderr)
    if name == "spark":
        with bulk_session(flags.master, flags.conf, ui=flags.spark_ui, compiled=True) as (spark, progress):
            from relaycast_spark.bulk_proofs import SparkEngine  # noqa: PLC0415 - needs PySpark

            engine = SparkEngine(spark, rows_a_file)
            engine.reach(target)
            yield engine, progress
        return
    from relaycast.cli.tables.bars import stage_progress  # noqa: PLC0415
    from relaycast.local_proofs import LocalEngine  # noqa: PLC0415
    from relaycast_trie import warm_up  # noqa: PLC0415

    warm_up()  # before any worker looks for compiled kernels
    with stage_progress() as progress:
        yield LocalEngine(target.work.path, workers=workers, rows_a_file=rows_a_file), progress


def table_place(text: str, option: str, master: str | None, *, is_read: bool) -> "TablePlace":
    """Return where a table lies; raises ``BadInput`` or ``PlaceRefused`` where it could not be read or written."""
    from relaycast.simulation.run_folder import check_writable  # noqa: PLC0415
    from relaycast_ledger.parquet_files import local_footers  # noqa: PLC0415
    from relaycast_ledger.table_places import TablePlace  # noqa: PLC0415

    _check_master(master)
    place = TablePlace(text)
    if is_read and not place.is_uri:
        local_footers(place, option)
    elif not place.is_uri:
        check_writable(place.path.parent)
    return place


def checked_rows_a_file(rows: int | None, default: int | None = None) -> int:
    """Return how many rows a file is to have at most; raises ``BadInput``."""
    from relaycast_ledger.table_places import MOST_ROWS_A_FILE, ROWS_A_FILE  # noqa: PLC0415

    if rows is None:
        return default or ROWS_A_FILE
    if not 1 <= rows <= MOST_ROWS_A_FILE:
        raise BadInput("--rows-per-file", f"{rows:,}", f"a number from 1 to {MOST_ROWS_A_FILE:,}")
    return rows


def resumable(work: Callable[[], ExitCode], resumes: Callable[[], bool] = lambda: True) -> ExitCode:
    """Do ``work`` and, if it is stopped and the same command ``resumes`` it, say so."""
    try:
        return work()
    except KeyboardInterrupt:
        if not resumes():
            raise
        print("relaycast: interrupted, the same command goes on from here", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except Terminated:
        if not resumes():
            raise
        print("relaycast: stopped by SIGTERM, the same command goes on from here", file=sys.stderr)
        return ExitCode.TERMINATED


def refuse_spark_flags(flags: SparkFlags | None) -> None:
    """Raise ``BadInput`` for options that mean nothing to the local engine."""
    for field in fields(flags) if flags is not None else ():
        value = getattr(flags, field.name)
        if value != field.default and (field.name, value) != ("resume", True):
            name = f"--{field.name.replace('_', '-')}"
            raise BadInput(name, f"{value} with --engine local", "--engine spark beside it")


def _segment_option(flags: SparkFlags) -> str:
    """Return the first given option that only a run by segments has; an empty text without one."""
    given = {
        "--no-resume": flags.resume is False,
        "--segment-blocks": flags.segment_blocks is not None,
        "--keep-proofs": flags.keep_proofs,
        "--fail-fast": flags.fail_fast,
        "--resume": flags.resume is True,
    }
    return next((option for option, is_given in given.items() if is_given), "")


def run_on_spark(scenario: Scenario, flags: RunFlags, spark: SparkFlags, *, say: Callable[["Way"], None]) -> "Finished":
    """Run ``scenario`` on Spark and ``say`` how it is spread; raises ``BadInput`` where it cannot start."""
    from relaycast.cli.tables.bars import stage_progress  # noqa: PLC0415
    from relaycast.simulation.run_estimate import estimated  # noqa: PLC0415
    from relaycast.simulation.spark_engine import SparkOptions, simulate_with_spark  # noqa: PLC0415
    from relaycast_spark.session import require_spark  # noqa: PLC0415

    if spark.segment_blocks is not None and not 1 <= spark.segment_blocks <= MAX_BLOCKS:
        raise BadInput("--segment-blocks", str(spark.segment_blocks), f"a number from 1 to {MAX_BLOCKS:,}")
    option = _segment_option(spark)
    if option not in ("", "--resume") and (flags.workers or 1) > 1:
        raise BadInput(option, f"it with --workers {flags.workers}", "no --workers: they build a run without segments")
    settings = session_settings(spark.master, spark.conf, ui=spark.spark_ui)
    require_spark()
    estimate = estimated(scenario, trie_engine=flags.trie_engine)
    if estimate.local < estimate.spark:
        print(f"relaycast: {estimate}", file=sys.stderr)
    options = SparkOptions(
        settings,
        spark.segment_blocks,
        spark.resume is not False,
        spark.keep_proofs,
        spark.fail_fast,
        flags.per_key,
        flags.trie_engine,
        flags.workers,
        segments_for=option,
        estimate=estimate,
    )
    with stage_progress() as progress:
        return simulate_with_spark(scenario, out=flags.out, options=options, progress=progress, say=say)
