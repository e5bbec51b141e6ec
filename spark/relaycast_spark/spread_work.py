"""Independent pieces of work on Spark, each a task of its own: what a sweep is made of."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

Row = dict[str, Any]


def spread_work(
    spark: SparkSession, items: Sequence[bytes], work: Callable[[bytes], list[Row]], schema: pa.Schema
) -> DataFrame:
    """Return the rows that ``work`` makes of each item; ``work`` is a function of a module that workers can import."""
    pieces = list(items)

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield pa.RecordBatch.from_pylist(work(pieces[number]), schema)

    return spark.range(len(pieces), numPartitions=len(pieces)).mapInArrow(each, from_arrow_schema(schema))
