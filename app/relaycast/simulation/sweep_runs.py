"""The cells of a sweep, run here or on Spark: each is kept as soon as it is done."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from relaycast.simulation.sweep import Cell, run_cell, table_schema
from relaycast.simulation.sweep_folder import SweepFolder
from relaycast.simulation.worker_processes import worked
from relaycast_ledger.segments.simulated import Progress
from relaycast_trie import Engine

if TYPE_CHECKING:
    import pyarrow as pa

    from relaycast_spark.session import Spark

Row = dict[str, Any]
Cells = dict[int, bytes]
"""Cells as workers take them, by number."""

Runner = Callable[[Cells], Iterator[tuple[int, list[Row]]]]
"""Runs cells and gives the rows of each as it is done."""

AHEAD = 2
"""Cells that wait at Spark for a free core."""


def in_processes(cells: Cells, *, workers: int, trie_engine: Engine) -> Iterator[tuple[int, list[Row]]]:
    """Run cells in ``workers`` processes of this machine; yield the rows of each as it is done."""
    return worked(partial(run_cell, trie_engine=trie_engine), cells, workers=workers)


def on_spark(
    cells: Cells, schema: "pa.Schema", spark: "Spark", *, trie_engine: Engine
) -> Iterator[tuple[int, list[Row]]]:
    """Run cells on Spark, a job with one task each, and give the rows of each as it is done."""
    from relaycast_spark.proof_jobs import named  # noqa: PLC0415 - needs PySpark
    from relaycast_spark.spread_work import spread_work  # noqa: PLC0415

    work = partial(run_cell, trie_engine=trie_engine)

    def run(number: int, cell: bytes) -> list[Row]:
        with named(spark, f"sweep: cell {number}"):
            rows: list[Row] = spread_work(spark, [cell], work, schema).toArrow().to_pylist()
        return rows

    at_once = spark.sparkContext.defaultParallelism + AHEAD
    with ThreadPoolExecutor(at_once, thread_name_prefix="cell") as pool:
        under_way: dict[Future[list[Row]], int] = {}
        try:
            waiting = iter(cells.items())
            while True:
                while len(under_way) < at_once and (following := next(waiting, None)) is not None:
                    under_way[pool.submit(run, *following)] = following[0]
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED)[0]:
                    yield under_way.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            spark.sparkContext.cancelAllJobs()
            raise


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
