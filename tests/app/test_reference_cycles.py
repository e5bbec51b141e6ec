"""What blocks leave is freed at once: no object of theirs refers to itself on a way around.

A collection would find such objects later. Until then one error that was kept with its frames holds all of a block.
"""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from relaycast.scenario.files import load_preset
from relaycast.simulation.simulation import Simulation
from relaycast_trie import ProofError, StorageProof, trie_root
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.exceptions import ProcessMessageError


@contextmanager
def cycles() -> Iterator[Counter[str]]:
    """Count by type, when the block ends, what only a collection would free."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(type(it).__name__ for it in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


SLOWER = ("heavy-messages", "mass-expiry", "late-subscriber")


@pytest.mark.parametrize("preset", ["oracle", *(pytest.param(it, marks=pytest.mark.slow) for it in SLOWER)])
def test_blocks_leave_nothing_to_collect(preset: str) -> None:
    simulation = Simulation.prepare(replace(load_preset(preset), blocks=8))
    blocks = simulation.blocks()
    next(blocks)
    with cycles() as found:
        for _ in range(6):
            next(blocks)
    assert found == {}


def test_refusals_of_many_proofs_leave_nothing_to_collect() -> None:
    root, empty = trie_root({b"a": b"b"}), StorageProof([])
    with cycles() as found:
        (refused,) = StorageProof.verify_many([root], [empty], [[b"a"]], engine="plain")
        assert isinstance(refused, ProofError)
        del refused
    assert found == {}


def test_a_barrier_that_keeps_refusals_with_their_frames_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessMessageError, "as_value", lambda self: self)
    with pytest.raises(AssertionError):
        test_blocks_leave_nothing_to_collect("oracle")


def test_an_error_that_is_kept_comes_without_frames_and_so_do_its_causes() -> None:
    def fail() -> None:
        try:
            raise ValueError("first")
        except ValueError as error:
            raise RelaycastError("then") from error

    with pytest.raises(RelaycastError, match="then") as caught:
        fail()
    kept = caught.value.as_value()
    assert kept is caught.value
    assert isinstance(kept.__cause__, ValueError)
    assert (kept.__traceback__, kept.__cause__.__traceback__) == (None, None)
