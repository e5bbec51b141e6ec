"""Tries and forests on arrays, built, changed, read and proven, beside plain ones that do the same."""

from itertools import pairwise
from typing import Any

import numpy as np

from exercise.drawing import Changes, Exercise
from exercise.outcomes import refuses
from relaycast_trie import ArrayTrie, MemoryDB, StateVersion, StorageProof, TrieDBMut, blake2_256, trie_root
from relaycast_trie.array.forest import ArrayForest

ROW_WIDTHS = [(2, 5), (1_100, 33), (3, 40), (1, 0), (32, 32), (33, 600)]
"""Bytes of keys and values. Tables with the longest keys grow until kernels prefetch memory."""


def applied(held: dict[bytes, bytes], changed: Changes) -> dict[bytes, bytes]:
    """Return what is held after changes."""
    return {key: value for key, value in (held | changed).items() if value is not None}


def change_plainly(trie: TrieDBMut, changed: Changes) -> None:
    for key, value in changed.items():
        if value is None:
            trie.remove(key)
        else:
            trie.insert(key, value)


def a_trie_changes(draw: Exercise, version: StateVersion, window: int) -> None:
    """Puts, removals and commits; every version in the window answers as its plain twin, the present one too."""
    held = draw.pairs(30)
    trie = ArrayTrie.from_pairs(held, state_version=version, window=window)
    db = MemoryDB()
    plain = TrieDBMut(db, state_version=version)
    change_plainly(plain, dict(held))
    kept = {plain.commit(prune=False): held}
    for block in range(5):
        if block == 3:
            trie.state_version = plain.state_version = StateVersion(1 - version)
        changed = draw.changes(held)
        put = {key: value for key, value in changed.items() if value is not None}
        trie.update(list(put), list(put.values()))
        trie.remove([key for key, value in changed.items() if value is None])
        change_plainly(plain, put | {key: None for key, value in changed.items() if value is None})
        held = applied(held, changed)
        kept[plain.commit(prune=False)] = held
        assert trie.commit() == plain.root
        for root in {*trie.roots, plain.root} if window else {plain.root}:
            reads(draw, trie, db, kept[root], root if window else None, root)
    assert len(trie) == len(held)


def reads(
    draw: Exercise, trie: ArrayTrie, db: MemoryDB, held: dict[bytes, bytes], at: bytes | None, root: bytes
) -> None:
    """Ask a version of a trie for everything that can be asked, many proofs in one call among it."""
    assert trie.items(at=at) == sorted(held.items())
    groups = [draw.questions(held) for _ in range(4)] + [[]]
    wanted = [key for group in groups for key in group]
    data, offsets, found = trie.get_many(wanted, at=at)
    values = [data[start:end].tobytes() for start, end in pairwise(offsets)]
    assert [value if there else None for value, there in zip(values, found, strict=True)] == [
        held.get(key) for key in wanted
    ]
    made = trie.prove_many(wanted, np.cumsum([0, *map(len, groups)]), at=at).proofs()
    assert made == [StorageProof.generate(db, root, group) for group in groups]
    assert trie.prove(groups[0], at=at) == made[0]


def whole_tries(draw: Exercise) -> None:
    """Tries built at once from columns of every shape: sorted or not, of one width or many, with keys that repeat."""
    noise = np.random.default_rng(draw.random.randrange(99))
    for count, width, value_width in ((0, 4, 5), (1, 0, 0), (40, 1, 32), (60, 2, 5), (70, 32, 33), (300, 9, 40)):
        keys = noise.integers(0, 4 if width > 2 else 256, (count, width), np.uint8)
        values = noise.integers(0, 256, (count, value_width), np.uint8)
        held = {key.tobytes(): value.tobytes() for key, value in zip(keys, values, strict=True)}
        db = MemoryDB()
        plain = TrieDBMut(db)
        change_plainly(plain, dict(held))
        root = plain.commit(prune=False)
        trie = ArrayTrie.from_arrays(keys, values, window=1)
        assert trie.commit() == root
        reads(draw, trie, db, held, root, root)
        same_shape = {key[::-1]: held[key][::-1] for key in sorted(held)[::9]}
        for more in (same_shape, draw.pairs(count + 2), {bytes([0x22]) * length: draw.value() for length in range(60)}):
            trie.update(list(more), list(more.values()))
            change_plainly(plain, dict(more))
            held |= more
            root = plain.commit(prune=False)
            assert trie.root == root
        assert trie.prove(list(held)) == StorageProof.generate(db, root, held)
        assert trie.prove([bytes([0x22]) * 59]) == StorageProof.generate(db, root, [bytes([0x22]) * 59])


def rows_change(draw: Exercise, version: StateVersion, key_width: int, value_width: int) -> None:
    """Matrices of a few keys and values, which are put as they are and hashed at once if a root was asked for before.

    Some are for tables of other widths or too full, some have fewer values than keys.
    """
    noise = np.random.default_rng(draw.random.randrange(99))

    def rows(count: int, width: int) -> Any:
        some = np.array([0, 1, 16, 255], np.uint8)[noise.integers(0, 4, (count, width))]
        some[:, : width // 2] = 17
        return some

    keys, values = rows(40, key_width), noise.integers(0, 256, (40, value_width), np.uint8)
    trie = ArrayTrie.from_arrays(keys, values, state_version=version)
    held = {key.tobytes(): value.tobytes() for key, value in zip(keys, values, strict=True)}
    for turn in range(12):
        count, width = draw.random.randrange(5), value_width + (turn == 9)
        some = draw.random.choice([rows(count, key_width), keys[noise.integers(0, 40, count)]])
        new = noise.integers(0, 256, (count, width), np.uint8)
        assert refuses(trie.update, some, new[1:]) == (count > 0)
        assert refuses(trie.update, some[:0], new) == (count > 0)
        trie.update(some, new)
        held |= {key.tobytes(): value.tobytes() for key, value in zip(some, new, strict=True)}
        if turn == 6:
            trie.remove(keys[:9])
            held = applied(held, {key.tobytes(): None for key in keys[:9]})
        if turn % 5 != 3:
            assert trie.root == trie_root(held, state_version=version, engine="plain")
    assert trie.items() == sorted(held.items())


def a_forest_grows(draw: Exercise, window: int) -> None:
    """Several tries sealed together; what is told of nodes that come and go is what a plain database holds."""
    forest, told, plain = ArrayForest(window=window), MemoryDB(), MemoryDB()
    tries, held = [TrieDBMut(plain) for _ in range(3)], [draw.pairs(20) for _ in range(3)]
    for _ in tries:
        forest.add()
    for block in range(5):
        changed = {number: draw.changes(held[number]) for number in draw.random.sample(range(3), 2)}
        if block == 3:
            changed = {0: dict.fromkeys(held[0]), 1: draw.changes(held[1])}
        told.emplace_all(*forest.seal(changed, told=True))
        told.remove_all(forest.close(told=True))
        for number, some in changed.items():
            change_plainly(tries[number], some)
            tries[number].commit()
            held[number] = applied(held[number], some)
        assert [forest.root(number) for number in range(3)] == [trie.root for trie in tries]
        hashes, nodes = forest.hashed()
        assert set(hashes) == set(told.references())
        assert [blake2_256(node) for node in nodes] == hashes
        for trie in tries:
            wanted = draw.keys(6)
            assert forest.prove(trie.root, wanted) == StorageProof.generate(plain, trie.root, wanted)
            assert [forest.get(trie.root, key) for key in wanted] == [trie.get(key) for key in wanted]
    for _ in range(window):
        told.remove_all(forest.close(told=True))
    assert told.references() == plain.references()
