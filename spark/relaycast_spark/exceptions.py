"""What can keep a batch run from its end: one class for each way.

::

    RelaycastError
    └── SparkRefusal
        ├── SparkUnavailable       no PySpark, no Java, or not the right one
        ├── SpineDiverged          a replayed segment does not end where the relay chain's own pass did
        ├── JobFailed              Spark gave a job up
        │   └── OutputFull         the disk that a job writes a table to is full
        ├── TableRefused           a table that cannot be read or written
        │   ├── InputColumns       a table without the columns that a stage reads
        │   ├── ParquetRefused     a file that is no Parquet, or Parquet that brings code along
        │   └── PlaceRefused       a place that Spark's machines do not share, or where there is nothing to read
        ├── RowsLost               what was written has other rows than what was to be written
        ├── RowRefused             a row of recorded publications that is none
        └── GapRefused             a row behind a gap does not say what the blocks in the gap left

Every argument goes to ``super().__init__``, so that errors pickle.
"""

from relaycast_trie.exceptions import RelaycastError


class SparkRefusal(RelaycastError):
    """Something that keeps a batch run from its end."""


class SparkUnavailable(SparkRefusal, message="{lacking}: {remedy}"):
    """Spark cannot start here: ``lacking`` is what is not there, ``remedy`` is what to do about it."""

    lacking: str
    remedy: str


class SpineDiverged(
    SparkRefusal, message="the replay up to block {last:,} ends in another state than the relay chain did"
):
    """The segment up to block ``last`` ends in another state than the pass over the relay chain: a defect of ours."""

    last: int


class JobFailed(SparkRefusal, message="{reason}"):
    """Spark gave a job up, for this ``reason``."""

    reason: str


class OutputFull(JobFailed):
    """The disk that a job writes a table to is full, as ``reason`` says in the system's words."""


class TableRefused(SparkRefusal, message="{place}: got {got}, expected {expected}"):
    """There is ``got`` at ``place``, where ``expected`` is needed."""

    place: str
    got: str
    expected: str


class InputColumns(TableRefused):
    """The table at ``place`` has the columns ``got``; a stage reads those that are ``expected``."""

    def __str__(self) -> str:
        return f"{self.place}: got the columns {self.got or 'none'}, expected {self.expected}"


class ParquetRefused(TableRefused):
    """A file that is no Parquet, or Parquet that brings code along."""


class PlaceRefused(TableRefused):
    """A place that Spark's machines do not share, or where there is nothing to read."""


class RowsLost(
    SparkRefusal, message="{place}: got {found:,} rows there after {written:,} were written, expected as many"
):
    """``found`` rows stand at ``place`` after ``written`` were written there: nothing of it is kept."""

    place: str
    found: int
    written: int


class RowRefused(SparkRefusal):
    """Row number ``row`` of a table, counted from 0, holds ``got`` in ``column``; ``expected`` says what would do."""

    row: int
    column: str
    got: str
    expected: str

    def __str__(self) -> str:
        return f"row {self.row + 1:,}, column {self.column}: got {self.got}, expected {self.expected}"


class GapRefused(SparkRefusal, message="from block {head:,} to block {number:,}: got {got}, expected {expected}"):
    """A subscriber stands at block ``head``; the row of block ``number`` has ``got`` where ``expected`` is needed."""

    head: int
    number: int
    got: str
    expected: str
