"""What the chapters show and define, each run once in a process: for the site, the pictures and the tests."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any


@cache
def run_of(chapter: str) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Run a chapter as it is; return what its cells show, in their order, and the names that they define."""
    outputs, definitions = import_module(chapter).app.run()
    return outputs, definitions
