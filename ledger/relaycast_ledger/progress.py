"""How far a batch run is: told to whoever draws it."""

from typing import Protocol


class Progress(Protocol):
    """Something that shows stages; ``total`` and ``done`` count the stage's rows."""

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None: ...

    def advance(self, stage: str, rows: int) -> None: ...


class Unseen:
    """Shows nothing."""

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        """Show nothing."""

    def advance(self, stage: str, rows: int) -> None:
        """Show nothing."""
