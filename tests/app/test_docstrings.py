"""What docstrings show is what happens."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("trie", "xcm", "pallets", "collator", "ledger", "spark", "node", "gateway", "app")
MODULES = [
    ".".join(file.relative_to(ROOT / room).with_suffix("").parts)
    for room in ROOMS
    for file in sorted((ROOT / room).rglob("*.py"))
    if re.search(r"^ *>>> ", file.read_text(), re.MULTILINE)
]
"""Every module that shows something."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    assert len(MODULES) >= 8
    attempted = doctest.testmod(import_module(name), raise_on_error=True, optionflags=doctest.ELLIPSIS).attempted
    assert attempted
