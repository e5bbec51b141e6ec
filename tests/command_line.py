"""A command line that ran, and what the front door's fixtures give."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ended]
Written = Callable[..., str]
"""Writes a file and returns its name."""

Refused = Callable[..., str]
"""Runs what must be refused and returns the line that says why."""
