"""What can keep a batch run from its end: one class for each way.

::

    RelaycastError
    └── SparkRefusal
        ├── SparkUnavailable       no PySpark, no Java, or not the right one
        ├── SpineDiverged          a replayed segment does not end where the relay chain's own pass did
        ├── JobFailed              Spark gave a job up
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
