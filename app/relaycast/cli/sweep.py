"""``relaycast sweep``: a grid of scenarios, seeds and policies as one Spark job, and one tidy table."""

import json as json_text
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.spark import Master, Ui, bulk_session
from relaycast.cli.options import AllowOversize, Json, TrieEngine
from relaycast.out_file import written
from relaycast.terminal import counted

if TYPE_CHECKING:
    import pyarrow as pa

Out = Annotated[Path, Parameter(name="--out", help="the Parquet file that the table goes to")]

OUT = Path("sweep.parquet")


def sweep(
    file: Annotated[str, Parameter(help="a sweep in TOML: scenarios, seeds, blocks, policies, vary")],
    /,
    *,
    out: Out = OUT,
    trie_engine: TrieEngine = "auto",
    master: Master = None,
    spark_ui: Ui = False,
    allow_oversize: AllowOversize = False,
    json: Json = False,
) -> ExitCode:
    """Run every combination of a sweep file and write one table: a row for each subscriber of each run.

    scenarios = ["oracle", "mine.toml"], and as wanted seeds = [1, 2, 3], blocks = 100, policies = [[], ["cache=none"]],
    and in a table [vary] values by path: "parachains.2000.publish.keys" = [10, 100].

    Exit code 1 when a run fails or has blocks that do not fit into a PoV, 3 when one violates an invariant.
    --allow-oversize is for studies of such blocks.

    Example: relaycast sweep sweep.toml --out sweep.parquet
    """
    from relaycast.simulation.sweep import load_sweep, run_cell, table_schema  # noqa: PLC0415

    cells = load_sweep(file)
    schema = table_schema(cells)
    with (
        written(out, "--out") as stream,
        bulk_session(master, ui=spark_ui, compiled=trie_engine == "array") as (spark, progress),
    ):
        import pyarrow.parquet as pq  # noqa: PLC0415

        from relaycast_spark.proof_jobs import watched  # noqa: PLC0415
        from relaycast_spark.spread_work import spread_work  # noqa: PLC0415

        work = partial(run_cell, trie_engine=trie_engine)
        frame = spread_work(spark, [msgspec.json.encode(cell) for cell in cells], work, schema)
        tables = []
        watched(
            spark,
            lambda: tables.append(frame.toArrow()),
            stage="done",
            rows=len(cells),
            unit="runs",
            progress=progress,
        )
        table = tables[0].cast(schema).sort_by([("cell", "ascending"), ("para_id", "ascending")])
        pq.write_table(table, stream, compression="zstd")
    failed = len(table) - table.column("error").null_count
    broken = table.column("invariants_ok").to_pylist().count(False)
    oversize = sum(1 for blocks in table.column("oversize_blocks").to_pylist() if blocks)
    if json:
        told = {"cells": len(cells), "rows": len(table), "failed": failed, "oversize": oversize, "out": str(out)}
        print(json_text.dumps(told))
    else:
        rows = f"{counted(len(cells), 'run')}, {counted(len(table), 'row')} (one for each subscriber of a run)"
        ends = f"{failed or 'none'} of a failed run, {broken or 'none'} with a violated invariant"
        print(f"{rows}: {ends}, {oversize or 'none'} with blocks that do not fit")
        if oversize:
            _print_oversize(table, oversize)
        print(f"table: {out}")
    if failed or (oversize and not broken and not allow_oversize):
        return ExitCode.CHECK_FAILED
    return ExitCode.INVARIANT_VIOLATED if broken else ExitCode.FINE


def _print_oversize(table: "pa.Table", rows: int) -> None:
    """Say which rows have blocks that do not fit, the first of them with what its fullest block carries."""
    from relaycast.terminal import console  # noqa: PLC0415

    first = next(row for row in table.to_pylist() if row["oversize_blocks"])
    text = f"blocks that do not fit in {rows:,} rows, first in cell {first['cell']}: {first['fullest_block']}"
    console().print(text, style="red", markup=False, soft_wrap=True)
