"""``relaycast sweep``: a grid of scenarios, seeds and policies, run side by side, and one tidy table."""

import json as json_text
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.spark import Conf, Master, RunEngine, Ui, bulk_session, resumable
from relaycast.cli.options import AllowOversize, AllowStarved, Json, TrieEngine, Workers, checked_workers
from relaycast.out_file import written
from relaycast.refusal import BadInput
from relaycast.terminal import counted, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from relaycast.simulation.sweep import Cell
    from relaycast.simulation.sweep_runs import Runner
    from relaycast_ledger.segments.simulated import Progress
    from relaycast_spark.session import Spark
    from relaycast_trie import Engine

Out = Annotated[Path, Parameter(name="--out", help="the Parquet file that the table goes to")]

Resume = Annotated[
    bool,
    Parameter(name="--resume", negative="--no-resume", help="go on where an interrupted sweep ended, or start over"),
]

OUT = Path("sweep.parquet")


def sweep(
    file: Annotated[str, Parameter(help="a sweep in TOML: scenarios, seeds, blocks, policies, vary")],
    /,
    *,
    out: Out = OUT,
    trie_engine: TrieEngine = "auto",
    engine: RunEngine = "local",
    workers: Workers = None,
    resume: Resume = True,
    master: Master = None,
    conf: Conf = None,
    spark_ui: Ui = False,
    allow_oversize: AllowOversize = False,
    allow_starved: AllowStarved = False,
    json: Json = False,
) -> ExitCode:
    """Run every combination of a sweep file and write one table: a row for each subscriber of each run.

    scenarios = ["oracle", "mine.toml"], and as wanted seeds = [1, 2, 3], blocks = 100, policies = [[], ["cache=none"]],
    and in a table [vary] values by path: "parachains.2000.publish.keys" = [10, 100].

    Exit code 1 when a run fails, has blocks that do not fit into a PoV, or starves a reader, 3 when one violates an
    invariant. --allow-oversize and --allow-starved are for studies of such runs. Each finished run is saved at once:
    after an interrupt or a kill, the same command continues. With --engine spark, each run is a Spark task.

    Example: relaycast sweep sweep.toml --out sweep.parquet
    """
    from relaycast.simulation.sweep import load_sweep  # noqa: PLC0415

    if engine == "local":
        _refuse_beside_local({"--master": master, "--conf": conf, "--spark-ui": spark_ui})
    elif workers is not None:
        raise BadInput("--workers", f"{workers} with --engine spark", "--master local[N], or --engine local")
    cells = load_sweep(file)

    def work() -> ExitCode:
        import pyarrow.parquet as pq  # noqa: PLC0415

        from relaycast.simulation.sweep_folder import sweep_folder  # noqa: PLC0415
        from relaycast.simulation.sweep_runs import completed  # noqa: PLC0415

        runner = (
            _processes(checked_workers(workers), trie_engine)
            if engine == "local"
            else _spark(cells, bulk_session(master, conf, ui=spark_ui, compiled=trie_engine == "array"), trie_engine)
        )
        with sweep_folder(out, cells, option="--out") as folder, written(out, "--out") as stream:
            with runner as (run, progress):
                table = completed(cells, folder, run, resume=resume, shown=progress)
            pq.write_table(table, stream, compression="zstd")
            folder.remove()
        return _told(table, len(cells), out, allowed=_Allowed(allow_oversize, allow_starved), json=json)

    return resumable(work)


def _refuse_beside_local(options: dict[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise BadInput(name, f"{value} with --engine local", "--engine spark beside it")


@contextmanager
def _processes(workers: int, trie_engine: "Engine") -> "Iterator[tuple[Runner, Progress]]":
    from relaycast.cli.tables.bars import stage_progress  # noqa: PLC0415
    from relaycast.simulation.sweep import run_cell  # noqa: PLC0415
    from relaycast.simulation.worker_processes import worked  # noqa: PLC0415
    from relaycast_trie.engine import warm_up_for  # noqa: PLC0415

    warm_up_for(trie_engine)  # before any worker looks for compiled kernels
    with stage_progress() as progress:
        yield partial(worked, partial(run_cell, trie_engine=trie_engine), workers=workers), progress


@contextmanager
def _spark(
    cells: "list[Cell]", session: "AbstractContextManager[tuple[Spark, Progress]]", trie_engine: "Engine"
) -> "Iterator[tuple[Runner, Progress]]":
    from relaycast.simulation.sweep import run_cell, table_schema  # noqa: PLC0415
    from relaycast.simulation.sweep_runs import on_spark  # noqa: PLC0415

    with session as (spark, progress):
        work = partial(run_cell, trie_engine=trie_engine)
        yield partial(on_spark, work, schema=table_schema(cells), spark=spark), progress


class _Allowed(NamedTuple):
    """The failures that keep the exit code 0."""

    oversize: bool
    starved: bool


def _told(table: "pa.Table", cells: int, out: Path, *, allowed: _Allowed, json: bool) -> ExitCode:
    failed = len(table) - table.column("error").null_count
    broken = table.column("invariants_ok").to_pylist().count(False)
    oversize = sum(1 for blocks in table.column("oversize_blocks").to_pylist() if blocks)
    starved = table.column("starved").to_pylist().count(True)
    if json:
        told = {"cells": cells, "rows": len(table), "failed": failed, "oversize": oversize, "starved": starved}
        print(json_text.dumps({**told, "out": str(out)}))
    else:
        rows = f"{counted(cells, 'run')}, {counted(len(table), 'row')} (one for each subscriber of a run)"
        ends = f"{failed or 'none'} of a failed run, {broken or 'none'} with a violated invariant"
        say(f"{rows}: {ends}, {oversize or 'none'} with blocks that do not fit")
        if oversize:
            _print_oversize(table, oversize)
        if starved:
            first = next(row["cell"] for row in table.to_pylist() if row["starved"])
            say(f"starved readers in {counted(starved, 'row')}, first in cell {first}", style="red")
        print(f"table: {out}")
    unfit = (oversize and not allowed.oversize) or (starved and not allowed.starved)
    if failed or (unfit and not broken):
        return ExitCode.CHECK_FAILED
    return ExitCode.INVARIANT_VIOLATED if broken else ExitCode.FINE


def _print_oversize(table: "pa.Table", rows: int) -> None:
    """Say which rows have blocks that do not fit, the first of them with what its fullest block carries."""
    first = next(row for row in table.to_pylist() if row["oversize_blocks"])
    say(
        f"blocks that do not fit in {rows:,} rows, first in cell {first['cell']}: {first['fullest_block']}", style="red"
    )
