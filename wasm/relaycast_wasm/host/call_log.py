"""What a runtime logs during one call, within a limit: later lines are counted."""

MOST_CHARACTERS = 4 << 20


class CallLog(list[str]):
    """Lines in the order they came, up to ``MOST_CHARACTERS`` in all."""

    def __init__(self) -> None:
        super().__init__()
        self._left = MOST_CHARACTERS
        self._lost = 0

    def append(self, line: str) -> None:
        if self._left <= 0:
            self._lost += 1
            return
        super().append(line if len(line) <= self._left else f"{line[: self._left]}...")
        self._left -= len(line) + 1

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, and the number of those left out."""
        more = (f"... and {self._lost:,} more lines",) if self._lost else ()
        return *self, *more
