"""What a block carries of its own state is enough to do the block's work again, and nothing in it is idle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import MemoryDB, MissingNode, RootMismatch, StateVersion, StorageProof, TrieDB, TrieDBMut, witness
from strategies import Changes, Pairs, changes, keys, pairs, state_versions

reads = st.lists(keys, max_size=6)


def trie_of(held: Pairs, version: StateVersion) -> TrieDBMut:
    trie = TrieDBMut(MemoryDB(), state_version=version)
    for key, value in held.items():
        trie.insert(key, value)
    trie.commit()
    return trie


def work(
    db: MemoryDB, root: bytes, asked: list[bytes], changed: dict[bytes, bytes | None]
) -> tuple[list[bytes | None], bytes]:
    """Do what a block does: read, write, and hash the result."""
    values = [TrieDB(db, root).get(key) for key in asked]
    trie = TrieDBMut(db, root)
    for key, value in changed.items():
        if value is None:
            trie.remove(key)
        else:
            trie.insert(key, value)
    return values, trie.commit(prune=False)


@given(pairs, reads, changes, state_versions)
def test_a_witness_is_enough_and_every_node_of_it_is_needed(
    held: Pairs, asked: list[bytes], changed: Changes, version: StateVersion
) -> None:
    trie, wanted = trie_of(held, version), dict(changed)
    before = trie.db.references()
    carried = witness(trie.db, trie.root, asked, wanted)
    assert trie.db.references() == before
    done = work(MemoryDB(carried.nodes), trie.root, asked, wanted)
    for node in carried.nodes - {b"\x00"}:
        with pytest.raises((MissingNode, RootMismatch)):
            work(MemoryDB(carried.nodes - {node}), trie.root, asked, wanted)
    assert done == work(trie.db, trie.root, asked, wanted)


@pytest.mark.parametrize(
    ("changed", "nodes"),
    [
        ({b"\x10": b"new"}, 2),  # the root and the leaf; the value that stands outside of it is written over unread
        ({b"\x20": b"new"}, 1),  # a leaf where none is: only the root changes
        ({b"\x20": None}, 1),  # nothing to remove
        ({b"\x10": None}, 3),  # the root has one child left, which takes its place
    ],
)
def test_what_a_change_touches(changed: dict[bytes, bytes | None], nodes: int) -> None:
    trie = trie_of({b"\x10": bytes(40), b"\x30": bytes(41)}, StateVersion.V1)
    assert len(witness(trie.db, trie.root, [], changed)) == nodes


def test_reading_needs_the_value_that_stands_outside() -> None:
    trie = trie_of({b"\x10": bytes(40), b"\x30": bytes(41)}, StateVersion.V1)
    assert witness(trie.db, trie.root, [b"\x10"], {}) == StorageProof.generate(trie.db, trie.root, [b"\x10"])
