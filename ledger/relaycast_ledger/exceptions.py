"""What can keep a run over many segments, or the work on a large table, from its end: one class for each way.

::

    RelaycastError
    ├── SegmentFailed          a block could not be replayed; the other segments are kept
    ├── WorkFolderInUse        another process writes the same run or table
    ├── TableRefused           a table that cannot be read or written
    │   ├── InputColumns       a table without the columns that are read
    │   ├── ParquetRefused     a file that is no Parquet, or Parquet that brings code along
    │   └── PlaceRefused       a place that nothing can be read from, or written to
    └── RowsLost               what was written has other rows than what was to be written

Every argument goes to ``super().__init__``, so that errors pickle.
"""

from relaycast_trie.exceptions import RelaycastError


class SegmentFailed(RelaycastError):
    """``block`` could not be replayed, for this ``reason``; ``others`` failed beside it."""

    block: int
    reason: str
    others: int = 0

    def __str__(self) -> str:
        more = f", and {self.others} more segments failed" if self.others else ""
        return f"block {self.block:,}: {self.reason}{more}; run again to complete what is missing"


class WorkFolderInUse(RelaycastError):
    """Another process writes to ``place``: ``pid``, where it is known."""

    place: str
    pid: str

    def __str__(self) -> str:
        writer = f"process {self.pid}" if self.pid else "another process"
        return f"{self.place}: got {writer} that writes there, expected no other process"


class TableRefused(RelaycastError, message="{place}: got {got}, expected {expected}"):
    """There is ``got`` at ``place``, where ``expected`` is needed."""

    place: str
    got: str
    expected: str


class InputColumns(TableRefused):
    """The table at ``place`` has the columns ``got``; those that are ``expected`` are read."""

    def __str__(self) -> str:
        return f"{self.place}: got the columns {self.got or 'none'}, expected {self.expected}"


class ParquetRefused(TableRefused):
    """A file that is no Parquet, or Parquet that brings code along."""


class PlaceRefused(TableRefused):
    """A place where there is nothing to read, that cannot be written, or that Spark's machines do not share."""


class RowsLost(
    RelaycastError, message="{place}: got {found:,} rows there after {written:,} were written, expected as many"
):
    """``found`` rows stand at ``place`` after ``written`` were written there: nothing of it is kept."""

    place: str
    found: int
    written: int
