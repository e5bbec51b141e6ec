"""A level and the highest it has reached."""


class HighWater:
    """Counts what is held now."""

    __slots__ = ("high", "now")

    def __init__(self) -> None:
        self.now = 0
        self.high = 0

    def add(self, count: int) -> None:
        """Raise the level, or lower it with a negative count."""
        self.now += count
        self.high = max(self.high, self.now)
