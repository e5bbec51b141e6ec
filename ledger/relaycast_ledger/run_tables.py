"""A run's Parquet tables, from records of blocks or from parts that were put together elsewhere.

Law: rows stand in the order of the run, in groups of a fixed number, so that the same records give the same bytes, in
whatever parts they come. The schema's version and the run's id stand in the metadata.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_ledger.guest_records import GuestRecord
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_ledger.records import BlockRecord
from relaycast_ledger.table_rows import TABLES, TableRows

ROWS_A_GROUP = 1 << 14


class RunTables:
    """Writes the tables of one run that ``rows`` are made of into ``folder``, to be closed at the end."""

    def __init__(self, folder: Path, run_id: str, rows: TableRows) -> None:
        self._rows = rows
        self._files = {name: _File(folder / f"{name}.parquet", TABLES[name], run_id) for name in self._rows.rows}

    def add(self, record: BlockRecord) -> None:
        """Add the rows of one block."""
        self._rows.add(record)
        self._hand_on(ROWS_A_GROUP)

    def add_guest(self, record: GuestRecord) -> None:
        """Add the rows of one block of a guest."""
        self._rows.add_guest(record)
        self._hand_on(ROWS_A_GROUP)

    def append(self, part: Mapping[str, pa.RecordBatch]) -> None:
        """Add rows that come after all that were added, by table."""
        self._hand_on(1)
        for name, batch in part.items():
            self._files[name].append(batch)

    def close(self) -> None:
        """Write what is left."""
        self._hand_on(1)
        for file in self._files.values():
            file.close()

    def _hand_on(self, rows: int) -> None:
        """Give files what they are to write, once it is so many ``rows``."""
        for name, waiting in self._rows.rows.items():
            if len(waiting) >= rows:
                self._files[name].append(self._rows.take(name))

    def __enter__(self) -> "RunTables":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _File:
    """A table's file, written in groups."""

    def __init__(self, file: Path, schema: pa.Schema, run_id: str) -> None:
        about = {"relaycast.schema": str(SCHEMA_VERSION), "relaycast.run_id": run_id}
        self._schema = schema.with_metadata(about)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._count = 0

    def append(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._count += len(batch)
        if self._count >= ROWS_A_GROUP:
            self._write(self._count - self._count % ROWS_A_GROUP)

    def close(self) -> None:
        if self._count:
            self._write(self._count)
        self._writer.close()

    def _write(self, rows: int) -> None:
        """Write so many rows of those that wait, in groups."""
        waiting = pa.Table.from_batches(self._waiting, self._schema)
        for start in range(0, rows, ROWS_A_GROUP):
            group = waiting.slice(start, min(ROWS_A_GROUP, rows - start))
            self._writer.write_table(group.combine_chunks())
        self._waiting, self._count = waiting.slice(rows).to_batches(), self._count - rows
