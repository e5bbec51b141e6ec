"""What can keep a run over many segments from its end: one class for each way.

::

    RelaycastError
    ├── SegmentFailed       a block could not be replayed; the other segments are kept
    └── WorkFolderInUse     another process writes the same run or table

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
