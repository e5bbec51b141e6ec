"""The cells of a sweep, run here or on Spark: each is kept as soon as it is done."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from relaycast.simulation.sweep import Cell, table_schema
from relaycast.simulation.sweep_folder import SweepFolder
from relaycast_ledger.segments.simulated import Progress
from relaycast_spark.jobs import jobs_as_done, spread_work

if TYPE_CHECKING:
    import pyarrow as pa

    from relaycast_spark.session import Spark

Row = dict[str, Any]
Cells = dict[int, bytes]
"""Cells as workers take them, by number."""

Runner = Callable[[Cells], Iterator[tuple[int, list[Row]]]]
"""Runs cells and gives the rows of each as it is done."""


def on_spark(
    work: Callable[[bytes], list[Row]], cells: Cells, schema: "pa.Schema", spark: "Spark"
) -> Iterator[tuple[int, list[Row]]]:
    """Do ``work`` on cells on Spark, a job with one task each, and yield the rows of each as it is done."""

    def run(item: tuple[int, bytes]) -> list[Row]:
        rows: list[Row] = spread_work(spark, [item[1]], work, schema).toArrow().to_pylist()
        return rows

    with closing(jobs_as_done(spark, cells.items(), run, lambda item: f"sweep: cell {item[0]}")) as jobs:
        for (number, _), job in jobs:
            yield number, job.result()


def completed(cells: list[Cell], folder: SweepFolder, run: Runner, *, resume: bool, shown: Progress) -> "pa.Table":
    """Run what is not done yet by ``run`` and return the table of all cells, in their order."""
    import pyarrow as pa  # noqa: PLC0415

    done = folder.begin(resume=resume)
    shown.begin("done", len(cells), done=len(done), unit="runs")
    left = {cell.number: msgspec.json.encode(cell) for cell in cells if cell.number not in done}
    for number, rows in run(left) if left else ():
        folder.keep(number, rows)
        done[number] = rows
        shown.advance("done", 1)
    rows = [row for number in sorted(done) for row in done[number]]
    return pa.Table.from_pylist(rows, table_schema(cells)).sort_by([("cell", "ascending"), ("para_id", "ascending")])
