"""Whose word is taken for the hashes of a proof: PRUNE may take the database's, a block takes nobody's."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from pallets.block_vectors import ALPHA, keys
from pallets.subscriber_world import World, meter
from relaycast_pallets import Panic, ProcessingMode, TrackedProof, process_proof
from relaycast_trie import MemoryDB, RootMismatch, StorageProof

K = keys(4)


class Forgery(MemoryDB):
    """A database that passes the past off as the present: the old root node stands under the new root."""

    def __init__(self, world: World, old: bytes, new: bytes) -> None:
        super().__init__(world.relay_nodes().values())
        self._old, self._new = old, new

    def get(self, node_hash: bytes, /) -> bytes | None:
        return super().get(self._old if node_hash == self._new else node_hash)


def forged() -> tuple[World, StorageProof]:
    """Return a world, and a proof that brings forged hashes along."""
    world = World()
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K, b"old")
    old = world.seal()
    world.publish(ALPHA, K, b"new")
    new = world.seal()
    proof = StorageProof.generate(Forgery(world, old, new), new, world.parachain.static_keys())
    assert proof.recorded is not None
    assert new in proof.recorded
    return world, proof


WAYS: list[Callable[[StorageProof], StorageProof]] = [
    lambda proof: proof,
    lambda proof: pickle.loads(pickle.dumps(proof)),
    copy.deepcopy,
    lambda proof: StorageProof.merge([proof, proof]),
]


@pytest.mark.parametrize("way", WAYS, ids=["itself", "pickled", "copied", "merged"])
def test_a_block_hashes_what_it_is_given_whatever_hashes_come_with_it(
    way: Callable[[StorageProof], StorageProof],
) -> None:
    world, proof = forged()
    before, root = world.everything(), world.relay.root
    for tracked in (TrackedProof(way(proof), root), TrackedProof.without_duplicates(tuple(way(proof)), root)):
        assert root not in tracked.nodes
        with pytest.raises(RootMismatch):
            tracked.read_static(world.parachain.static_keys())
    with pytest.raises(Panic, match="RootMismatch"):
        world.parachain.set_validation_data(replace(world.inherent(()), relay_chain_state=tuple(way(proof))), b"")
    result = process_proof(ProcessingMode.VERIFY, way(proof), root, meter(), world.subscriber)
    assert (result.is_complete, result.reads) == (False, [])
    assert world.handler.calls == []
    assert before[2] == []


def test_nothing_is_verified_by_hashes_that_were_taken_on_trust() -> None:
    world, proof = forged()
    before, root = world.everything(), world.relay.root
    trusted = TrackedProof.collected(proof, root)
    assert root in trusted.nodes
    with pytest.raises(ValueError, match="a block hashes what it is given"):
        process_proof(ProcessingMode.VERIFY, trusted, root, meter(), world.subscriber)
    assert world.everything() == before
