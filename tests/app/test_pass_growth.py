"""The work of a pass grows with what it reads and no faster: calls are counted, which is the same on every machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log
from statistics import linear_regression
from types import FrameType

import pytest

from relaycast.bench.proof_pass import PassBench, PassOptions
from relaycast_trie import Engine


class CountedPass(PassBench):
    """A subscriber whose passes and seals count the calls of Python's own functions and of built-in ones."""

    calls = 0

    def _note(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event in {"call", "c_call"}

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        sys.setprofile(self._note if name in {"prune", "verify", "seal"} else None)
        try:
            yield
        finally:
            sys.setprofile(None)


def calls(engine: Engine, *, keys: int, changed: int, publishers: int = 1) -> int:
    """Return the calls of two blocks in which some keys change, after two that fill the caches."""
    options = PassOptions(
        keys=keys, published=keys // publishers, publishers=publishers, changed=changed, engine=engine
    )
    bench = CountedPass(options)
    bench.run(2)
    bench.calls = 0
    bench.run(2)
    return bench.calls


KINDS: dict[str, Callable[[Engine, int], int]] = {
    "keys of which one in ten changes": lambda engine, size: calls(engine, keys=100 * size, changed=10 * size),
    "changed keys": lambda engine, size: calls(engine, keys=2_000, changed=20 * size),
    "publishers": lambda engine, size: calls(engine, keys=40 * size, changed=4 * size, publishers=size),
    "keys that stay": lambda engine, size: calls(engine, keys=100 * size, changed=20),
}


@pytest.mark.parametrize("engine", ["plain", "array"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_calls_in_proportion_to_what_grows(engine: Engine, kind: str) -> None:
    sizes = (2, 4, 8, 16)
    counts = [KINDS[kind](engine, size) for size in sizes]
    exponent = linear_regression(list(map(log, sizes)), list(map(log, counts))).slope
    assert exponent < 1.05, f"{counts} calls at sizes {sizes}"
