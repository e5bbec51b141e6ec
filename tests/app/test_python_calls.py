"""A block of a subscriber or publisher of ten keys calls no more Python functions than it did.

The ceilings only fall: whoever makes a count smaller writes the smaller number here.
"""

import pytest

from app.python_calls import a_block, by_module, of_publisher, of_subscriber
from relaycast_trie.engine import Engine

OF_SUBSCRIBER: dict[Engine, int] = {"plain": 4_055, "array": 2_500}
OF_PUBLISHER: dict[Engine, int] = {"plain": 3_175, "array": 2_575}


@pytest.mark.parametrize("engine", ["plain", "array"])
def test_a_block_calls_no_more_functions_than_before(engine: Engine) -> None:
    for ceiling, calls in (
        (OF_SUBSCRIBER[engine], of_subscriber(engine)),
        (OF_PUBLISHER[engine], of_publisher(engine)),
    ):
        count = a_block(calls)
        assert count <= ceiling, f"{count} calls, where {ceiling} are allowed: {by_module(calls)}"
