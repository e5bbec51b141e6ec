"""A part of a run: rows of its tables and its score, put together where the blocks were built, and joined elsewhere.

Law: parts that follow each other, or that several processes made of the same relay blocks, come to what one process
would have written. A part travels as bytes; bytes that are no part are refused.
"""

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
import pyarrow as pa

from relaycast_ledger.arrow_columns import column
from relaycast_ledger.records import BlockRecord
from relaycast_ledger.run_statistics import RunStatistics, SubscriberStatistics
from relaycast_ledger.run_tables import TABLES, RunTables, TableRows
from relaycast_xcm.checkpoint import CheckpointRefused

ROWS_A_BATCH = 1 << 14


class BlockPlace(NamedTuple):
    """A block of a part: its relay block, its parachain, and how many rows it has in each table of the part."""

    tick: int
    para_id: int
    rows: dict[str, int]


class RunPart(msgspec.Struct, frozen=True):
    """What there is to tell of some blocks: rows by table, in batches that Arrow wrote, and the score by subscriber."""

    rows: dict[str, list[bytes]]
    places: list[BlockPlace]
    tallies: dict[int, SubscriberStatistics]

    def batches(self) -> dict[str, pa.RecordBatch]:
        """Return the rows by table; raises ``CheckpointRefused`` where they are none."""
        return {name: _read(name, given) for name, given in self.rows.items()}


class PartInTheMaking:
    """Blocks that were built here, to be told in parts."""

    def __init__(self, rows: TableRows) -> None:
        self._rows = rows
        self._begin()

    def _begin(self) -> None:
        self._tally, self._places = RunStatistics(tables=self._rows), list[BlockPlace]()
        self._written: dict[str, list[bytes]] = {}

    def add(self, record: BlockRecord) -> None:
        """Count one block in."""
        before = self._counts()
        self._tally.add(record)
        rows = {name: count - before[name] for name, count in self._counts().items() if count != before[name]}
        self._places.append(BlockPlace(record.tick, int(record.para_id), rows))
        self._write(ROWS_A_BATCH)

    def take(self) -> RunPart:
        """Return what was added since the last part was taken."""
        self._write(1)
        part = RunPart(self._written, self._places, self._tally.subscribers)
        self._begin()
        return part

    def _write(self, rows: int) -> None:
        """Let Arrow write the rows of tables that have so many: as objects they take several times as much memory."""
        for name, count in self._counts().items():
            if count >= rows:
                self._written.setdefault(name, []).append(self._rows.take(name).serialize().to_pybytes())

    def _counts(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self._rows.rows.items()}


def add_part(part: RunPart, tally: RunStatistics, tables: RunTables) -> None:
    """Count in a part whose blocks come after all that were counted."""
    tables.append(part.batches())
    for para_id, score in part.tallies.items():
        tally.of(para_id).extend(score)


def add_parts(parts: Sequence[RunPart], order: Mapping[int, int], tally: RunStatistics, tables: RunTables) -> None:
    """Count in parts of the same relay blocks; in each of these parachains come by their ``order``.

    Raises ``CheckpointRefused`` where a part has not the rows that it says it has.
    """
    blocks = [(place, number) for number, part in enumerate(parts) for place in part.places]
    blocks.sort(key=lambda block: (block[0].tick, order[block[0].para_id]))
    for place, number in blocks:
        if (score := parts[number].tallies.pop(place.para_id, None)) is not None:
            tally.of(place.para_id).extend(score)
    made = [part.batches() for part in parts]
    tables.append({name: _joined(name, made, blocks) for name in TABLES if any(name in rows for rows in made)})


def _joined(
    name: str, made: Sequence[Mapping[str, pa.RecordBatch]], blocks: Sequence[tuple[BlockPlace, int]]
) -> pa.RecordBatch:
    """Return the rows of a table in the order of the blocks that they are of, each with the number of its part."""
    batches = [rows[name] if name in rows else TABLES[name].batch([]) for rows in made]
    upto = list(accumulate(map(len, batches)))
    begun = [0, *upto[:-1]]
    taken = array("q")
    for place, number in blocks:
        end = begun[number] + place.rows.get(name, 0)
        taken.extend(range(begun[number], end))
        begun[number] = end
    if begun != upto:
        raise CheckpointRefused(f"a part of the table {name}: got {sum(map(len, batches))} rows, expected {len(taken)}")
    return pa.concat_batches(batches).take(column(pa.int64(), taken))


def _read(name: str, given: Sequence[bytes]) -> pa.RecordBatch:
    if name not in TABLES:
        raise CheckpointRefused(f"a part of a run: got the table {name!r}, expected one of {', '.join(TABLES)}")
    try:
        batch = pa.concat_batches([pa.ipc.read_record_batch(pa.py_buffer(data), TABLES[name].schema) for data in given])
        batch.validate(full=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise CheckpointRefused(f"a part of the table {name}: {error}") from error
    return batch
