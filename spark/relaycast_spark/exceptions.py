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


class SparkUnavailable(SparkRefusal):
    """Spark cannot start here: ``lacking`` is what is not there, ``remedy`` is what to do about it."""

    def __init__(self, lacking: str, remedy: str) -> None:
        super().__init__(lacking, remedy)
        self.lacking = lacking
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.lacking}: {self.remedy}"


class SpineDiverged(SparkRefusal):
    """The segment up to block ``last`` ends in another state than the pass over the relay chain: a defect of ours."""

    def __init__(self, last: int) -> None:
        super().__init__(last)
        self.last = last

    def __str__(self) -> str:
        return f"the replay up to block {self.last:,} ends in another state than the relay chain did"


class JobFailed(SparkRefusal):
    """Spark gave a job up, for this ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class OutputFull(JobFailed):
    """The disk that a job writes a table to is full, as ``reason`` says in the system's words."""


class TableRefused(SparkRefusal):
    """There is ``got`` at ``place``, where ``expected`` is needed."""

    def __init__(self, place: str, got: str, expected: str) -> None:
        super().__init__(place, got, expected)
        self.place = place
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.place}: got {self.got}, expected {self.expected}"


class InputColumns(TableRefused):
    """The table at ``place`` has the columns ``got``; a stage reads those that are ``expected``."""

    def __str__(self) -> str:
        return f"{self.place}: got the columns {self.got or 'none'}, expected {self.expected}"


class ParquetRefused(TableRefused):
    """A file that is no Parquet, or Parquet that brings code along."""


class PlaceRefused(TableRefused):
    """A place that Spark's machines do not share, or where there is nothing to read."""


class RowsLost(SparkRefusal):
    """``found`` rows stand at ``place`` after ``written`` were written there: nothing of it is kept."""

    def __init__(self, place: str, found: int, written: int) -> None:
        super().__init__(place, found, written)
        self.place = place
        self.found = found
        self.written = written

    def __str__(self) -> str:
        return f"{self.place}: got {self.found:,} rows there after {self.written:,} were written, expected as many"


class RowRefused(SparkRefusal):
    """Row number ``row`` of a table, counted from 0, holds ``got`` in ``column``; ``expected`` says what would do."""

    def __init__(self, row: int, column: str, got: str, expected: str) -> None:
        super().__init__(row, column, got, expected)
        self.row = row
        self.column = column
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"row {self.row + 1:,}, column {self.column}: got {self.got}, expected {self.expected}"


class GapRefused(SparkRefusal):
    """A subscriber stands at block ``head``; the row of block ``number`` has ``got`` where ``expected`` is needed."""

    def __init__(self, head: int, number: int, got: str, expected: str) -> None:
        super().__init__(head, number, got, expected)
        self.head = head
        self.number = number
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"from block {self.head:,} to block {self.number:,}: got {self.got}, expected {self.expected}"
