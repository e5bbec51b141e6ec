"""The files of an experiment: a Parquet table, the chart as SVG and HTML, and the sentence.

Law: each file is written beside its place and moved there; nothing in it tells when or where it was written. Columns of
wall time stand in a table of their own, so that the other one is the same bytes each time.
"""

from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast.experiments.chart_files import can_draw, html_of, specification, svg_of
from relaycast.experiments.experiment import Result
from relaycast.out_file import written
from relaycast_ledger.arrow_columns import column
from relaycast_ledger.outcome import SCHEMA_VERSION

KINDS = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def write(result: Result, folder: Path) -> list[str]:
    """Write the files into ``folder`` and return their names; without the libraries for charts there are two."""
    stem = result.experiment.stem
    measured = result.experiment.measured
    contents = {f"{stem}.parquet": _parquet(result, without=measured), f"{stem}.txt": f"{result.answer}\n".encode()}
    if measured:
        contents[f"{stem}-measured.parquet"] = _parquet(result)
    if can_draw():
        drawn = specification(result.chart)
        contents[f"{stem}.svg"] = svg_of(drawn, label=result.chart.title).encode()
        contents[f"{stem}.html"] = html_of(drawn).encode()
    for name, data in contents.items():
        with written(folder / name, "--out") as stream:
            stream.write(data)
    return list(contents)


def as_json(result: Result, files: list[str]) -> dict[str, Any]:
    """Return what ``--json`` says of an experiment."""
    return {
        "name": result.experiment.name,
        "answer": result.answer,
        "seed": result.scale.seed,
        "quick": result.scale.quick,
        "digest": result.digest,
        "files": files,
        "rows": result.rows,
    }


def schema_of(result: Result, *, without: tuple[str, ...] = ()) -> pa.Schema:
    """Return the columns of an experiment's table, with its command and, unless it tells of times, its answer."""
    hints = get_type_hints(result.experiment.row)
    about = {
        "relaycast.schema": str(SCHEMA_VERSION),
        "relaycast.command": result.command,
    }
    if not without:
        about["relaycast.answer"] = result.answer
    names = [name for name in result.experiment.row.__struct_fields__ if name not in without]
    return pa.schema([(name, _kind(hints[name])) for name in names], metadata=about)


def _parquet(result: Result, *, without: tuple[str, ...] = ()) -> bytes:
    schema = schema_of(result, without=without)
    columns = [column(field.type, [row[field.name] for row in result.rows]) for field in schema]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _kind(hint: Any) -> pa.DataType:
    """Return the column type of ``int``, ``float``, ``str`` or ``bool``, or of one of them or ``None``."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    return KINDS[kinds[0]]
