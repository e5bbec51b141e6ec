"""The one refusal of the Candid codec."""


class CandidError(ValueError):
    """Types, a value or bytes are no Candid, or do not fit the types they are read at.

    ``reason`` says what was expected and what came. ``place`` is a line and column of a text, a byte of a message or
    the path into a value. ``mismatch`` marks a value that is well-formed and does not fit its type: an ``opt`` around
    it reads as null.
    """

    def __init__(self, reason: str, place: str = "", mismatch: bool = False) -> None:
        super().__init__(reason, place, mismatch)
        self.reason = reason
        self.place = place
        self.mismatch = mismatch

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason

    def within(self, part: str) -> "CandidError":
        """Return the same refusal one step further out in a value."""
        return CandidError(self.reason, f"{part}{self.place}", self.mismatch)
