"""Relay proofs that hold what no relay chain writes: a broken root is no absence, and nothing of it stays."""

import pytest

from pallets.block_vectors import ALPHA, keys
from pallets.subscriber_world import World, meter
from relaycast_pallets import (
    ProcessingMode,
    derive_child_info,
    process_proof,
)
from relaycast_trie import MemoryDB, StateVersion, StorageProof, TrieDBMut, blake2_256
from relaycast_trie.exceptions import InvalidChildRoot, InvalidNode

K = keys(10)


@pytest.mark.parametrize("mode", list(ProcessingMode))
@pytest.mark.parametrize("version", list(StateVersion))  # version 0 has long values inside their nodes
def test_a_broken_child_root_is_no_absence(mode: ProcessingMode, version: StateVersion) -> None:
    world = World()
    world.subscribe(ALPHA, K[:1])
    db = MemoryDB()
    top = TrieDBMut(db, state_version=version)
    name = derive_child_info(ALPHA).prefixed_storage_key()
    for value in (bytes(31), bytes(33), bytes(40)):
        top[name] = value
        root = top.commit()
        proof = StorageProof.generate(db, root, [name])
        with pytest.raises(InvalidChildRoot):
            process_proof(mode, proof, root, meter(), world.subscriber)


def test_bytes_that_are_no_node_are_no_absence() -> None:
    world = World()
    world.subscribe(ALPHA, K[:1])
    junk = b"\x01junk"
    with pytest.raises(InvalidNode):
        process_proof(ProcessingMode.PRUNE, StorageProof([junk]), blake2_256(junk), meter(), world.subscriber)
