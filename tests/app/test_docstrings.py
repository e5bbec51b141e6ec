"""What docstrings show is what happens."""

import doctest
from importlib import import_module

import pytest

MODULES = ("relaycast.choices", "relaycast.network", "relaycast.predict", "relaycast.predict_block")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    attempted = doctest.testmod(import_module(name), raise_on_error=True, optionflags=doctest.ELLIPSIS).attempted
    assert attempted
