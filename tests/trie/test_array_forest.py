"""Many tries in one set of tables: the roots, nodes and proofs of as many plain tries over one database."""

from collections import Counter, deque
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaycast_trie import ArrayTrie, CompactProof, MemoryDB, StateVersion, StorageProof, TrieDBMut, blake2_256
from relaycast_trie.array.forest import ArrayForest, Sealing, seal_together, witnesses
from relaycast_trie.kernels import compact, witness
from relaycast_trie.node_codec import EMPTY_ROOT
from relaycast_trie.plain.trie_db import Recorder
from relaycast_trie.plain.trie_update import update_trie
from searches import examples
from strategies import STOCK, Changes, Pairs, changes, keys, pairs, state_versions
from twins import twin_of

QUESTIONS = STOCK[::7]
blocks = st.lists(st.tuples(st.dictionaries(st.integers(0, 2), changes), state_versions), max_size=6)
Block = tuple[dict[int, Changes], StateVersion]


def plain_block(tries: list[TrieDBMut], block: Block) -> None:
    changed, version = block
    for trie, some in changed.items():
        tries[trie].state_version = version
        for key, value in dict(some).items():
            if value is None:
                tries[trie].remove(key)
            else:
                tries[trie].insert(key, value)
        tries[trie].commit()


@given(blocks, st.integers(1, 3))
@settings(max_examples=examples(80))
def test_a_database_that_is_told_holds_what_that_of_plain_tries_does(session: list[Block], window: int) -> None:
    """A forest tells node by node what comes and what goes; whoever asks late gets everything at once."""
    forest, told, plain = ArrayForest(window=window), MemoryDB(), MemoryDB()
    tries = [TrieDBMut(plain) for _ in range(3)]
    for _ in tries:
        forest.add()
    for block in session:
        forest.state_version = block[1]
        told.emplace_all(*forest.seal({trie: dict(some) for trie, some in block[0].items()}, told=True))
        told.remove_all(forest.close(told=True))
        plain_block(tries, block)
        assert [forest.root(trie) for trie in range(3)] == [trie.root for trie in tries]
        assert all(blake2_256(told.get(node_hash) or b"") == node_hash for node_hash in told)
        assert Counter(forest.hashed()[0]) == told.references()
        for trie in tries:
            assert forest.prove(trie.root, QUESTIONS) == StorageProof.generate(plain, trie.root, QUESTIONS)
            assert [forest.get(trie.root, key) for key in QUESTIONS] == [trie.get(key) for key in QUESTIONS]
    for _ in range(window):
        told.remove_all(forest.close(told=True))
    assert told.references() == plain.references()


@given(st.lists(changes, min_size=1, max_size=6), st.integers(1, 3))
def test_the_last_roots_can_be_read_and_no_others(session: list[Changes], window: int) -> None:
    forest, db = ArrayForest(window=window), MemoryDB()
    trie, roots = TrieDBMut(db), []
    number = forest.add()
    for changed in session:
        forest.seal({number: dict(changed)}, told=False)
        forest.close(told=False)
        for key, value in dict(changed).items():
            if value is None:
                trie.remove(key)
            else:
                trie.insert(key, value)
        roots.append(trie.commit(prune=False))
    for root in roots[-window:]:
        assert forest.prove(root, QUESTIONS) == StorageProof.generate(db, root, QUESTIONS)
    for root in set(roots) - set(roots[-window:]) - {db.null_hash}:
        assert root not in forest
        with pytest.raises(KeyError):
            forest.prove(root, QUESTIONS)


THROUGH_FORESTS = witness.witnesses_of, compact.compact_list
"""Kernels that the next test tries by what calls them."""

chains = st.dictionaries(st.integers(0, 3), st.tuples(changes, st.lists(keys, max_size=3), st.lists(keys, max_size=2)))


@twin_of("witness.witnesses_of", "compact.compact_list")
@given(st.lists(chains, max_size=5), st.integers(2, 3))
@settings(max_examples=examples(120))
def test_tries_sealed_together_are_those_sealed_alone_and_so_is_what_blocks_carry_of_them(
    session: list[dict[int, tuple[Changes, list[bytes], list[bytes]]]], window: int
) -> None:
    forests = [ArrayForest(window=window)]
    forests += [ArrayForest(window=window, beside=forests[0]) for _ in range(3)]
    plain = [MemoryDB() for _ in forests]
    roots, kept = [EMPTY_ROOT] * len(forests), [deque[bytes]() for _ in forests]
    for forest in forests:
        forest.add()
    for block in session:
        sealings = [Sealing(forests[it], 0, dict(changed), *asked) for it, (changed, *asked) in block.items()]
        proofs = witnesses(sealings) if sealings else []
        if sealings:
            seal_together(sealings)
        for at, proof, (_, _, changed, reads, seeks) in zip(block, proofs, sealings, strict=True):
            root, recorder = roots[at], Recorder()
            update = update_trie(plain[at], root, changed, reads=reads, seeks=seeks, recorder=recorder)
            assert proof.recorded == recorder.nodes
            assert (len(proof), proof.proof_bytes) == (len(recorder.nodes), sum(map(len, recorder.nodes.values())))
            if recorder.nodes:
                whole = CompactProof.of_nodes(recorder.nodes, root).to_bytes()
                assert proof.compacted() in (None, whole)
            plain[at].emplace_all(update.hashes, update.nodes)
            kept[at].append(b"".join(update.dropped))
            while len(kept[at]) >= window:
                plain[at].remove_all(kept[at].popleft())
            forests[at].close(told=False)
            roots[at] = update.root
            assert forests[at].root(0) == update.root
        for forest, db in zip(forests, plain, strict=True):
            assert set(forest.hashed()[0]) == set(db.references())
    for forest in forests[1:]:
        forest.leave()
    assert set(forests[0].hashed()[0]) == set(plain[0].references())


@given(pairs, st.lists(st.lists(keys, max_size=5), max_size=6), state_versions)
def test_many_proofs_in_one_call_are_those_made_one_by_one(
    held: Pairs, wanted: list[list[bytes]], version: StateVersion
) -> None:
    trie = ArrayTrie.from_pairs(held, state_version=version)
    ends = np.cumsum([0, *map(len, wanted)])
    made = trie.prove_many([key for some in wanted for key in some], ends)
    assert made.proofs() == [trie.prove(some) for some in wanted]
    assert made.ends[0] == 0
    assert made.offsets[made.ends[-1]] == len(made.data)
    assert np.diff(made.ends).tolist() == [len(proof.nodes) for proof in made.proofs()]


@given(pairs, st.lists(st.lists(keys, max_size=8), max_size=6), st.sampled_from([b"", b"v" * 31, b"v" * 33]))
def test_proofs_in_columns_hold_once_what_equal_values_repeat(
    held: Pairs, wanted: list[list[bytes]], value: bytes
) -> None:
    """Values that are hashed, and whole branches below keys that begin otherwise and go on alike."""
    alike = {first + key: value for first in (b"", b"\x10", b"\x2f") for key in held}
    asked = [[first + key for first in (b"", b"\x10", b"\x2f") for key in some] for some in wanted]
    trie = ArrayTrie.from_pairs(alike)
    made = trie.prove_many([key for some in asked for key in some], np.cumsum([0, *map(len, asked)]))
    assert made.proofs() == [trie.prove(some) for some in asked]
    assert np.diff(made.ends).tolist() == [len(proof.nodes) for proof in made.proofs()]
    assert made.offsets[made.ends[-1]] == len(made.data)


@given(pairs, st.lists(st.lists(keys, max_size=5), max_size=6), state_versions)
def test_places_of_nodes_say_what_proofs_hold_in_every_trie_of_the_same_pairs(
    held: Pairs, wanted: list[list[bytes]], version: StateVersion
) -> None:
    ends, asked = np.cumsum([0, *map(len, wanted)]), [key for some in wanted for key in some]
    trie, twin = (ArrayTrie.from_pairs(held, state_version=version) for _ in range(2))
    made, placed = trie.prove_many(asked, ends), twin.place_many(asked, ends)
    data, offsets = trie.nodes_at(placed.places)
    assert placed.ends.tolist() == made.ends.tolist()
    assert (data.tobytes(), offsets.tolist()) == (made.data.tobytes(), made.offsets.tolist())


def test_more_nodes_than_one_call_writes_are_found_by_their_places() -> None:
    trie = ArrayTrie.from_pairs({key.to_bytes(2, "big"): bytes([key % 251]) * (key % 90) for key in range(900)})
    every = [key for key, _ in trie.items()]
    placed = trie.place_many(every, np.array([0, len(every)]))
    assert len(placed.places) > 3 * 256
    data, offsets = trie.nodes_at(placed.places[::-1])
    assert {data[begin:end].tobytes() for begin, end in pairwise(offsets.tolist())} == trie.prove(every).nodes


def test_nodes_whose_hashes_begin_alike_are_two() -> None:
    """Eight bytes in common can be found by trying, all 32 cannot."""
    trie = ArrayTrie.from_pairs({b"a": b"x" * 40, b"b": b"y" * 40})
    trie.root  # noqa: B018 - hashes all
    hashes = trie._arena.entries.value_hash.reshape(-1, 32)
    hashes[1, :31] = hashes[0, :31]
    assert np.diff(trie.prove_many([b"a", b"b"], np.array([0, 2])).ends) == [5]
    hashes[1] = hashes[0]
    assert np.diff(trie.prove_many([b"a", b"b"], np.array([0, 2])).ends) == [4]


def test_many_proofs_can_be_those_of_an_older_version() -> None:
    trie = ArrayTrie.from_pairs({key: key * 20 for key in STOCK}, window=2)
    old = trie.commit()
    before = trie.prove(STOCK[:9])
    trie.update(STOCK[:5], [b"new"] * 5)
    assert trie.prove_many(STOCK[:9], np.array([0, 9]), at=old).proofs() == [before]
    assert trie.prove_many(STOCK[:9], np.array([0, 9])).proofs() != [before]


@pytest.mark.parametrize("ends", [[], [1, 2], [0, 1], [0, 2, 1, 2], [[0, 2]]])
def test_ends_that_do_not_fit_the_keys_are_refused(ends: list[int]) -> None:
    with pytest.raises(ValueError, match="ends of keys ascend from 0 to 2"):
        ArrayTrie.from_pairs({b"a": b"1"}).prove_many([b"a", b"b"], np.array(ends, np.int64))


@pytest.mark.parametrize("window", [0, 3])
def test_values_that_are_rewritten_for_ever_do_not_fill_the_memory(window: int) -> None:
    """Values of several sizes lie one behind the other; those that nobody reads make room when it runs out."""
    trie = ArrayTrie.from_pairs({b"%d" % n: bytes(n % 50) for n in range(300)}, window=window)
    sizes = []
    for block in range(120):
        trie.update([b"%d" % n for n in range(300)], [bytes([block]) * ((n + block) % 50) for n in range(300)])
        trie.commit()
        sizes.append(trie.memory_bytes)
    assert max(sizes[60:]) < 1.5 * max(sizes[10:60])
    assert trie.items() == sorted((b"%d" % n, bytes([119]) * ((n + 119) % 50)) for n in range(300))
