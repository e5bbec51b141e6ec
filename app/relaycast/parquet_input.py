"""Parquet that a user hands over: its footer is checked before anything else is read.

Law: what is unpacked is counted as it comes, and refused beyond what a file may hold.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast.inputs import MAX_FILE_BYTES
from relaycast.refusal import BadInput, one_line
from relaycast_ledger.exceptions import ParquetRefused
from relaycast_ledger.parquet_files import open_parquet

ROWS_AT_ONCE = 1 << 10


@contextmanager
def parquet_input(file: Path | bytes, place: str) -> Iterator[pq.ParquetFile]:
    """Give the file, opened; raises ``BadInput`` for whatever is wrong with it, also while it is read."""
    try:
        with open_parquet(file, place) as opened:
            yield opened
    except ParquetRefused as refused:
        raise BadInput(refused.place, refused.got, refused.expected) from None
    except pa.ArrowException as error:
        raise BadInput(place, f"Parquet that does not read ({_short(error)})", "a whole Parquet file") from None
    except OSError as error:
        if error.errno is not None:
            raise BadInput(place, one_line(error.strerror or str(error)), "a file that can be read") from None
        raise BadInput(place, f"Parquet that does not read ({_short(error)})", "a whole Parquet file") from None


def whole_table(data: bytes, place: str) -> pa.Table:
    """Return all rows of a Parquet file; raises ``BadInput``."""
    with parquet_input(data, place) as file:
        batches: list[pa.RecordBatch] = []
        unpacked_bytes = 0
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            unpacked_bytes += batch.nbytes
            if unpacked_bytes > MAX_FILE_BYTES:
                raise BadInput(place, f"more than {MAX_FILE_BYTES:,} bytes of rows", "a smaller file")
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=file.schema_arrow)


def _short(error: Exception) -> str:
    return one_line(str(error))[:60]
