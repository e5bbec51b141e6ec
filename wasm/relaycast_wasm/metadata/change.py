"""One change between two runtimes, and whether it breaks clients."""

from dataclasses import dataclass
from typing import Literal

About = Literal[
    "metadata", "version", "pallet", "storage", "call", "event", "error", "constant", "view function", "extrinsic",
    "transaction extension", "runtime api", "custom",
]  # fmt: skip

What = Literal["added", "removed", "renamed", "reindexed", "changed", "deprecated"]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of ``name``: ``before`` and ``after`` are texts, ``None`` where there was or is nothing.

    It ``breaks`` clients where transactions that they encode, or state that they read, would mean something else to
    them; ``why`` says how.
    """

    about: About
    name: str
    what: What
    before: str | None = None
    after: str | None = None
    breaks: bool = False
    why: str = ""

    def __str__(self) -> str:
        shown = f"{self.about} {self.name} {self.what}"
        texts = list(dict.fromkeys(it for it in (self.before, self.after) if it is not None))
        if texts:
            shown += f": {' -> '.join(texts)}"
        return f"{shown} ({self.why})" if self.why else shown
