"""Matrices of keys and values change a trie on a short way of their own; it ends where the long one does."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaycast_trie import ArrayTrie, MemoryDB, StateVersion, TrieDBMut, trie_root
from relaycast_trie.array import arena as arena_module
from relaycast_trie.kernels.settle import change
from searches import examples
from strategies import state_versions

Rows = npt.NDArray[np.uint8]
DEEDS = ["put", "put", "put", "remove", "root", "root", "commit", "list"]
ROOM = Path(__file__).parents[2] / "trie"


def rows(count: int, width: int, seed: int, *, letters: int = 256) -> Rows:
    """Return rows of few different bytes, so that keys share prefixes and meet one another."""
    drawn = np.random.default_rng(seed).integers(0, letters, (count, width), np.uint8)
    return drawn if letters == 256 else np.array([0x00, 0x01, 0x10, 0xFF], np.uint8)[drawn]


def pairs(keys: Rows, values: Rows) -> dict[bytes, bytes]:
    return dict(zip(map(bytes, keys), map(bytes, values), strict=True))


def plain_root(held: dict[bytes, bytes], state_version: StateVersion) -> bytes:
    return trie_root(held, state_version=state_version, engine="plain")


@settings(max_examples=examples(60))
@given(
    st.sampled_from([(3, 5), (3, 40), (4, 30), (32, 32), (32, 33), (4, 0)]),
    st.lists(
        st.tuples(st.sampled_from(DEEDS), st.integers(0, 99)),
        max_size=12,
    ),
    state_versions,
    st.sampled_from([0, 0, 2]),
)
def test_any_sequence_of_rows_ends_where_the_plain_engine_does(
    widths: tuple[int, int], steps: list[tuple[str, int]], state_version: StateVersion, window: int
) -> None:
    key_width, value_width = widths
    keys, values = rows(40, key_width, 1, letters=4), rows(40, value_width, 2)
    trie = ArrayTrie.from_arrays(keys, values, state_version=state_version, window=window)
    trie.update(keys[:1], values[:1])
    held = pairs(keys, values) | pairs(keys[:1], values[:1])
    past: list[tuple[bytes, dict[bytes, bytes]]] = []
    for what, seed in steps:
        count = 1 + seed % 4
        some, new = rows(count, key_width, seed, letters=4), rows(count, value_width, seed)
        if seed % 3:
            some = keys[rows(count, 1, seed).reshape(-1) % 40]
        if what == "put":
            trie.update(some, new)
            held |= pairs(some, new)
        elif what == "list":
            trie.update([*map(bytes, some)], [*map(bytes, new)])
            held |= pairs(some, new)
        elif what == "remove":
            trie.remove(some)
            held = {key: value for key, value in held.items() if key not in set(map(bytes, some))}
        elif what == "root":
            assert trie.root == plain_root(held, state_version)
        else:
            past.append((trie.commit(), dict(held)))
    assert trie.root == plain_root(held, state_version)
    assert dict(trie.items()) == held
    assert trie.prove(keys[:3]) == ArrayTrie.from_pairs(held, state_version=state_version).prove(keys[:3])
    for root, then in past[-window:] if window else []:
        assert dict(trie.items(at=root)) == then


def big(count: int = 2_000, *, width: int = 40) -> tuple[ArrayTrie, Rows, Rows]:
    keys, values = rows(count, 32, 1), rows(count, width, 2)
    trie = ArrayTrie.from_arrays(keys, values)
    trie.update(keys[:1], values[:1])
    return trie, keys, values


@pytest.mark.parametrize("changed", [10, 249, 250, 600, 2_000])
def test_few_and_many_rows_give_one_root(changed: int) -> None:
    trie, keys, values = big()
    for seed in (3, 4):
        new = rows(changed, 40, seed)
        trie.update(keys[:changed], new)
        values[:changed] = new
        assert trie.root == ArrayTrie.from_arrays(keys, values).root
    assert len(trie._arena.work.stale) == arena_module.FEW, "room for much is not kept"


def test_new_rows_are_added_until_the_tables_are_full_and_beyond() -> None:
    trie, keys, values = big(200)
    held = pairs(keys, values)
    for seed in range(20):
        some, new = rows(9, 32, 100 + seed), rows(9, 40, seed)
        trie.update(some, new)
        held |= pairs(some, new)
        assert trie.root == plain_root(held, StateVersion.V1)
    assert dict(trie.items()) == held


def test_a_root_is_ready_where_one_was_asked_for_after_the_last_change() -> None:
    trie, keys, _ = big()
    trie.update(keys[:5], rows(5, 40, 3))
    ready, first = [trie._arena.hashed], trie.root
    for seed in (4, 3):
        trie.update(keys[:5], rows(5, 40, seed))
        ready.append(trie._arena.hashed)
    assert ready == [False, True, False], "what was hashed in vain once is not hashed in vain again"
    assert trie.root == first


def test_a_trie_that_keeps_versions_hashes_on_commit_alone() -> None:
    trie, keys, _ = big()
    trie.window = 2
    assert trie.root
    trie.update(keys[:5], rows(5, 40, 3))
    assert not trie._arena.hashed


def test_a_trie_of_one_short_node_has_the_root_of_the_plain_engine() -> None:
    held = {bytes([i]): b"" for i in range(9)}
    trie = ArrayTrie.from_pairs(held)
    assert trie.root
    trie.remove([bytes([i]) for i in range(1, 9)])
    assert trie.root == plain_root({b"\x00": b""}, StateVersion.V1)
    trie.remove([b"\x00"])
    assert trie.root == plain_root({}, StateVersion.V1)


def odd(kind: str, matrix: Rows) -> Any:
    if kind == "read-only":
        matrix = matrix.copy()
        matrix.flags.writeable = False
    elif kind == "every second":
        matrix = np.repeat(matrix, 2, axis=0)[::2]
    elif kind == "by columns":
        matrix = np.asfortranarray(matrix)
    elif kind == "not aligned":
        matrix = np.frombuffer(b"?" + matrix.tobytes(), np.uint8)[1:].reshape(matrix.shape)
    elif kind == "list":
        return [*map(bytes, matrix)]
    elif kind == "offsets":
        return matrix.reshape(-1), np.arange(len(matrix) + 1) * matrix.shape[1]
    return matrix


@pytest.mark.parametrize("kind", ["read-only", "every second", "by columns", "not aligned", "list", "offsets"])
def test_rows_that_lie_in_another_way_are_put_too_and_nothing_is_compiled_for_them(kind: str) -> None:
    trie, keys, values = big(100)
    assert trie.root
    before = len(getattr(change, "signatures", []))
    values[:5] = rows(5, 40, 3)
    trie.update(odd(kind, keys[:5]), odd(kind, values[:5]))
    assert trie.root == plain_root(pairs(keys, values), StateVersion.V1)
    assert len(getattr(change, "signatures", [])) == before


@pytest.mark.parametrize(
    ("key_shape", "value_shape", "kind"),
    [
        ((3, 32), (2, 40), np.uint8),  # fewer values than keys
        ((0, 32), (2, 40), np.uint8),
        ((3, 32), (0, 40), np.uint8),
        ((96,), (3, 40), np.uint8),  # no matrix
        ((3, 32), (3, 5, 8), np.uint8),  # no matrix either
        ((3, 32), (3, 40), np.int8),
    ],
)
def test_what_are_no_rows_is_refused_and_changes_nothing(key_shape: Any, value_shape: Any, kind: Any) -> None:
    trie, _, _ = big(100)
    before = trie.root, trie.items()
    with pytest.raises(ValueError, match=r"matrix|values"):
        trie.update(np.zeros(key_shape, kind), np.zeros(value_shape, kind))
    assert (trie.root, trie.items()) == before


@pytest.mark.parametrize("widths", [(40, 20, 7), (7, 20, 40), (0, 33)])
def test_rows_of_another_width_are_put_too(widths: tuple[int, ...]) -> None:
    trie, keys, values = big(100, width=20)
    held = pairs(keys, values)
    for width in widths:
        assert trie.root
        new = rows(5, width, width)
        trie.update(keys[:5], new)
        held |= pairs(keys[:5], new)
        assert trie.root == plain_root(held, StateVersion.V1)
    short = rows(5, 3, 9)
    trie.update(short, rows(5, 20, 8))
    assert trie.root == plain_root(held | pairs(short, rows(5, 20, 8)), StateVersion.V1)
    assert dict(trie.items()) == held | pairs(short, rows(5, 20, 8))


@pytest.mark.parametrize("before", list(StateVersion))
def test_rows_are_stored_as_the_new_version_says(before: StateVersion) -> None:
    keys, values = rows(100, 32, 1), rows(100, 40, 2)
    trie = ArrayTrie.from_arrays(keys, values, state_version=before)
    plain = TrieDBMut(MemoryDB(), state_version=before)
    for key, value in pairs(keys, values).items():
        plain.insert(key, value)
    for version in (before, StateVersion(1 - before), before):
        trie.state_version = plain.state_version = version
        new = rows(5, 40, 3 + version)
        trie.update(keys[:5], new)
        for key, value in pairs(keys[:5], new).items():
            plain.insert(key, value)
        assert trie.root == plain.commit()


def test_keys_of_another_width_are_put_too() -> None:
    for width in (31, 33):
        trie, keys, values = big(100)
        assert trie.root
        other = rows(5, width, 4)
        trie.update(other, values[:5])
        assert trie.root == plain_root(pairs(keys, values) | pairs(other, values[:5]), StateVersion.V1)


def test_a_pickled_trie_changes_its_own_tables() -> None:
    trie, keys, values = big(100)
    twin = pickle.loads(pickle.dumps(trie))
    before = trie.root
    values[:5] = rows(5, 40, 3)
    twin.update(keys[:5], values[:5])
    assert twin.root == plain_root(pairs(keys, values), StateVersion.V1)
    assert trie.root == before


SEQUENCE = """
import numpy as np
from relaycast_trie import ArrayTrie, StateVersion, trie_root
draw = np.random.default_rng(7)
for key_width, value_width in ((3, 0), (3, 30), (4, 100), (32, 32)):
    for version in StateVersion:
        keys = draw.choice(np.array([0, 1, 16, 255], np.uint8), (30, key_width))
        values = draw.integers(0, 256, (30, value_width), np.uint8)
        trie = ArrayTrie.from_arrays(keys, values, state_version=version)
        held = dict(zip(map(bytes, keys), map(bytes, values)))
        for turn in range(6):
            some = draw.choice(np.array([0, 1, 16, 255], np.uint8), (2, key_width))
            new = draw.integers(0, 256, (2, value_width), np.uint8)
            trie.update(some, new)
            held.update(zip(map(bytes, some), map(bytes, new)))
            if turn != 3:
                assert trie.root == trie_root(held, state_version=version, engine="plain")
            if turn == 4:
                trie.remove(keys[:5])
                held = {key: value for key, value in held.items() if key not in set(map(bytes, keys[:5]))}
print("done")
"""


def run(**environment: str) -> str:
    known = {name: os.environ[name] for name in ("PATH", "HOME", "NUMBA_CACHE_DIR") if name in os.environ}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SEQUENCE],
        capture_output=True,
        text=True,
        check=False,
        env={**known, "PYTHONPATH": str(ROOM), **environment},
    )
    return result.stdout + result.stderr


def test_rows_are_put_uncompiled() -> None:
    assert "done" in run(NUMBA_DISABLE_JIT="1")
