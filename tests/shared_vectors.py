"""Test vectors: the selection that travels with the project, and the full set beside it where that is checked out.

A test of vectors runs once over ``tests/vectors`` and once, in slices, over ``../shared/vectors``; what is absent is
skipped with the reason, never passed over in silence.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

Case = dict[str, Any]

OWN = Path(__file__).parent / "vectors"
SHARED = Path(__file__).parents[2] / "shared"
_LISTS = ("sets", "cases", "states", "accepted")
"""Under which name a file keeps its cases when it is an object."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Every ``slices``-th case of ``file``, starting with the one numbered ``start``."""

    file: str
    own: bool
    start: int = 0
    slices: int = 1

    @property
    def name(self) -> str:
        """Return how the selection is called in a test's name."""
        return "own" if self.own else f"shared-{self.start + 1}of{self.slices}"

    def cases(self) -> list[Case]:
        """Return the cases; skips the test when the file is not there."""
        path = OWN / self.file if self.own else shared(f"vectors/{self.file}")
        return cases_in(path)[self.start :: self.slices]


def over(file: str, *, slices: int = 1) -> pytest.MarkDecorator:
    """Parametrise ``cases`` of a test: the project's own selection, then the shared file in ``slices``."""
    selections = [
        Selection(file, own=True),
        *(Selection(file, own=False, start=n, slices=slices) for n in range(slices)),
    ]
    return pytest.mark.parametrize("cases", selections, indirect=True, ids=lambda selection: selection.name)


def shared(path: str) -> Path:
    """Return a path below ``../shared``; skips the test when it is not there."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not beside this checkout")
    return found


@lru_cache(maxsize=4)
def cases_in(path: Path) -> list[Case]:
    """Return the cases of a file: its list, the list it holds under a known name, or the object as one case."""
    content = json.loads(path.read_text())
    if isinstance(content, list):
        return content
    return next((content[name] for name in _LISTS if name in content), [content])


def unhex(text: str) -> bytes:
    """Return the bytes of hexadecimal digits, with ``0x`` before them or without."""
    return bytes.fromhex(text.removeprefix("0x"))


def unhex_or_none(text: str | None) -> bytes | None:
    """Return the bytes, or ``None`` where the vector has none."""
    return None if text is None else unhex(text)


def unhex_all(texts: Iterable[str]) -> list[bytes]:
    """Return the bytes of each text."""
    return [unhex(text) for text in texts]


def unhex_pairs(pairs: Iterable[list[str]]) -> list[tuple[bytes, bytes]]:
    """Return keys with their values."""
    return [(unhex(key), unhex(value)) for key, value in pairs]
