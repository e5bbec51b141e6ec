"""Why a log cannot be used: its file, or that it was closed.

::

    ValueError
    ├── UnusableLog     the file is damaged, or is no event log of this version
    └── LogClosed       the log was closed

Another process that has the file open is a ``WorkFolderInUse``.
"""


class UnusableLog(ValueError):
    """``place`` holds ``got`` where ``expected`` is needed."""

    def __init__(self, place: str, got: str, expected: str) -> None:
        super().__init__(place, got, expected)
        self.place = place
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.place}: got {self.got}, expected {self.expected}"


class DamagedEvent(UnusableLog):
    """The event ``seq`` of a log cannot be decoded; others can."""

    def __init__(self, place: str, got: str, expected: str, seq: int) -> None:
        super().__init__(f"{place}, event {seq}", got, expected)
        self.seq = seq


class LogClosed(ValueError):
    """The log was closed: nothing can be appended or read."""

    def __str__(self) -> str:
        return "the event log is closed"
