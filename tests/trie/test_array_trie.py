"""The array engine holds what the plain engine holds: roots, reads, proofs, changes, versions; byte for byte."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaycast_trie import ArrayTrie, MemoryDB, StateVersion, StorageProof, TrieDBMut, trie_root, warm_up
from relaycast_trie.array import array_trie as array_module
from relaycast_trie.reference import trie_root as reference_root
from searches import examples
from shared_vectors import Case, over, unhex, unhex_all, unhex_or_none, unhex_pairs
from strategies import Changes, Pairs, changes, keys, pairs, pairs_with_questions, state_versions, values

EMPTY_ROOT = bytes.fromhex("03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314")


def plain_root(held: Pairs, state_version: StateVersion) -> bytes:
    return trie_root(held, state_version=state_version, engine="plain")


def grown(held: Pairs, state_version: StateVersion, *, window: int = 0) -> ArrayTrie:
    """Return a trie that was not built at once but by puts into its tables."""
    first, *others = sorted(held)
    trie = ArrayTrie.from_pairs({first: held[first]}, state_version=state_version, window=window)
    trie._mixed = True
    for key in reversed(others):
        trie.update([key], [held[key]])
    return trie


@over("trie_db/roots.json", slices=4)
def test_roots_are_those_of_trie_db(cases: list[Case]) -> None:
    for case in cases:
        held = dict(unhex_pairs(case["pairs"]))
        for state_version in StateVersion:
            trie = ArrayTrie.from_pairs(held, state_version=state_version)
            assert trie.root.hex() == case[f"v{state_version}_root"], case["name"]
            assert trie.items() == sorted(held.items())


@over("trie_db/proofs.json", slices=8)
def test_proofs_are_those_of_the_recorder(cases: list[Case], subset: "SetsByName") -> None:
    for case in cases:
        if case["access"] != "value" or case["set"] not in subset:
            continue
        trie = ArrayTrie.from_pairs(subset[case["set"]], state_version=StateVersion(case["layout"]))
        wanted = unhex_all(case["keys"])
        proof = trie.prove(wanted)
        assert proof.nodes == set(unhex_all(case["storage_proof"])), case["set"]
        assert [trie.get(key) for key in wanted] == [unhex_or_none(value) for value in case["values"]]


SetsByName = dict[str, Pairs]


@pytest.fixture(scope="module")
def subset() -> SetsByName:
    from shared_vectors import OWN, SHARED, cases_in  # noqa: PLC0415

    path = SHARED / "vectors/trie_db/roots.json"
    cases = cases_in(path if path.exists() else OWN / "trie_db/roots.json")
    return {case["name"]: dict(unhex_pairs(case["pairs"])) for case in cases}


@over("trie_db/updates.json", slices=4)
@pytest.mark.parametrize("window", [0, 2])
def test_updates_and_migrations_give_the_roots_of_trie_db(cases: list[Case], window: int) -> None:
    for case in cases:
        trie = ArrayTrie.from_pairs(
            unhex_pairs(case["start"]), state_version=StateVersion(case["build_layout"]), window=window
        )
        trie.state_version = StateVersion(case["update_layout"])
        trie.commit()
        for step in case["steps"]:
            delta = [(unhex(key), unhex_or_none(value)) for key, value in step["delta"]]
            put = {key: value for key, value in delta if value is not None}
            trie.update(list(put), list(put.values()))
            trie.remove([key for key, value in delta if value is None])
            assert trie.commit().hex() == step["root"], case["name"]


@given(pairs, state_versions)
def test_a_trie_built_at_once_equals_the_plain_one(held: Pairs, state_version: StateVersion) -> None:
    trie = ArrayTrie.from_pairs(held, state_version=state_version)
    assert trie.root == plain_root(held, state_version) == reference_root(held, state_version=state_version)
    assert dict(trie.items()) == held
    assert len(trie) == len(held)


@given(pairs_with_questions(), state_versions, st.booleans())
def test_proofs_and_reads_equal_those_of_the_plain_engine(
    asked: tuple[Pairs, list[bytes]], state_version: StateVersion, by_puts: bool
) -> None:
    held, questions = asked
    trie = grown(held, state_version) if by_puts else ArrayTrie.from_pairs(held, state_version=state_version)
    db = MemoryDB()
    plain = TrieDBMut(db, state_version=state_version)
    for key, value in held.items():
        plain[key] = value
    root = plain.commit()
    assert trie.root == root
    proof = trie.prove(questions)
    assert proof == StorageProof.generate(db, root, questions)
    assert dict(proof.verify(root, questions, strict=True).values) == {key: held.get(key) for key in questions}
    assert [trie.get(key) for key in questions] == [held.get(key) for key in questions]


@pytest.mark.parametrize(
    ("held", "gone", "put"),
    [
        ({}, [b"gone"], {b"a": b"1", b"bc": b"22"}),  # no strings have no width: the tables grew before any came
        ({b"a": b"", b"b": b""}, [b"c"], {b"d": b"1"}),  # strings of no bytes say nothing about how many there are
        ({b"": b"1"}, [b"c"], {b"": b"2", b"d": b"3"}),  # the same among keys
    ],
)
def test_tables_that_grew_take_strings_of_another_width(held: Pairs, gone: list[bytes], put: Pairs) -> None:
    trie = ArrayTrie.from_pairs(held)
    trie._mixed = True
    trie.remove(gone)
    for key, value in put.items():
        trie.update([key], [value])
    for column in (trie._arena.entries.key, trie._arena.entries.value):
        assert column.width >= 0 or len(column.at) == len(column.size) == len(trie._arena.entries.state)
    assert dict(trie.items()) == {**held, **put}
    assert trie.root == plain_root({**held, **put}, StateVersion.V1)


@settings(max_examples=examples(150))
@given(pairs, st.lists(st.tuples(changes, st.booleans()), max_size=6), state_versions, st.integers(0, 3), st.booleans())
def test_any_sequence_of_changes_keeps_every_version(
    held: Pairs, steps: list[tuple[Changes, bool]], state_version: StateVersion, window: int, never_rebuild: bool
) -> None:
    trie = ArrayTrie.from_pairs(held, state_version=state_version, window=window)
    trie._mixed = never_rebuild
    now = dict(held)
    past: list[tuple[bytes, Pairs]] = []
    for change, commits in steps:
        put = {key: value for key, value in change if value is not None}
        gone = [key for key, value in change if value is None and key not in put]
        trie.update(list(put), list(put.values()))
        trie.remove(gone)
        now = {key: value for key, value in {**now, **put}.items() if key not in gone}
        if commits:
            past.append((trie.commit(), dict(now)))
        assert dict(trie.items()) == now
        assert trie.root == plain_root(now, state_version)
        for root, then in past[-window:] if window else []:
            questions = [*[*then][:4], b"\x10\x10"]
            assert trie.prove(questions, at=root).verify(root, questions, strict=True).values == {
                key: then.get(key) for key in questions
            }
            assert dict(trie.items(at=root)) == then


@given(st.lists(st.tuples(keys, values), max_size=20))
def test_of_a_key_that_comes_twice_the_last_value_counts(given_pairs: list[tuple[bytes, bytes]]) -> None:
    trie = ArrayTrie.from_arrays([key for key, _ in given_pairs], [value for _, value in given_pairs])
    assert dict(trie.items()) == dict(given_pairs)
    other = ArrayTrie()
    other.update([key for key, _ in given_pairs], [value for _, value in given_pairs])
    assert other.root == trie.root


def matrix(count: int, width: int, seed: int = 1) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)


def test_matrices_offsets_and_lists_make_the_same_trie() -> None:
    key_rows, value_rows = matrix(500, 32), matrix(500, 40, seed=2)
    offsets = np.arange(501, dtype=np.int64) * 40
    known = {key.tobytes(): value.tobytes() for key, value in zip(key_rows, value_rows, strict=True)}
    roots = {
        ArrayTrie.from_arrays(key_rows, value_rows).root,
        ArrayTrie.from_arrays(key_rows, (value_rows.reshape(-1), offsets)).root,
        ArrayTrie.from_arrays(list(known), list(known.values())).root,
        ArrayTrie.from_pairs(known).root,
        plain_root(known, StateVersion.V1),
    }
    assert len(roots) == 1


def test_get_many_gives_data_offsets_and_what_was_found() -> None:
    trie = ArrayTrie.from_pairs({b"a": b"1", b"b": b"", b"c": b"333"})
    data, offsets, found = trie.get_many([b"c", b"x", b"b", b"a"])
    assert data.tobytes() == b"3331"
    assert offsets.tolist() == [0, 3, 3, 3, 4]
    assert found.tolist() == [True, False, True, True]
    assert b"a" in trie
    assert b"x" not in trie


def test_an_update_leaves_the_callers_arrays_alone() -> None:
    key_rows, value_rows = matrix(64, 32), matrix(64, 32, seed=2)
    key_rows = key_rows[np.argsort(key_rows[:, 0], kind="stable")]
    before = key_rows.tobytes(), value_rows.tobytes()
    trie = ArrayTrie.from_arrays(key_rows, value_rows)
    trie.update(key_rows[:3], matrix(3, 32, seed=3))
    trie.remove(key_rows[5:9])
    trie.update(matrix(2, 7, seed=4), matrix(2, 50, seed=5))
    assert trie.root
    assert (key_rows.tobytes(), value_rows.tobytes()) == before


def test_the_empty_trie_has_the_empty_root_and_its_node_as_proof() -> None:
    trie = ArrayTrie()
    assert trie.root == EMPTY_ROOT
    assert trie.prove([]).nodes == frozenset()
    assert trie.prove([b"a"]).verify(EMPTY_ROOT, [b"a"]).values == {b"a": None}
    trie.update([b"a"], [b"1"])
    trie.remove([b"a", b"b"])
    assert trie.root == EMPTY_ROOT
    assert len(trie) == 0


def test_a_version_is_forgotten_after_the_window_and_its_slots_are_used_again() -> None:
    trie = ArrayTrie.from_arrays(matrix(400, 32), matrix(400, 32, seed=2), window=3)
    first = trie.commit()
    sizes = []
    for seed in range(30):
        trie.update(matrix(400, 32)[:20], matrix(20, 32, seed=10 + seed))
        trie.commit()
        sizes.append(trie.memory_bytes)
    assert first not in trie.roots
    assert len(trie.roots) == 3
    assert sizes[-1] == sizes[10]
    with pytest.raises(KeyError, match="none of the last 3 committed roots"):
        trie.get(b"a", at=first)


@pytest.mark.parametrize(
    ("bad_keys", "bad_values", "message"),
    [
        (np.zeros((2, 3), np.int64), [b"", b""], "uint8"),
        (np.zeros(6, np.uint8), [b"", b""], "matrix"),
        ([b"a", b"b"], [b"1"], "2 keys with 1 values"),
        ([b"a"], (np.zeros(3, np.uint8), np.array([0, 4])), "offsets of values"),  # ends beyond the data
        ([b"a", b"b"], (np.zeros(3, np.uint8), np.array([0, 2, 1])), "offsets of values"),  # goes back
        ([b"a"], (np.zeros(3, np.uint8), np.array([-1, 1])), "offsets of values"),
        ([b"a"], (np.zeros(3, np.uint8), np.array([0.0, 1.0])), "integer offsets"),
        ([b"k" * 0x8000], [b"1"], "at most 32767 bytes"),
    ],
)
def test_what_is_no_trie_is_refused_and_changes_nothing(bad_keys: object, bad_values: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArrayTrie.from_arrays(bad_keys, bad_values)  # type: ignore[arg-type]
    trie = ArrayTrie.from_pairs({b"a": b"1", b"b": b"2" * 40})
    before = trie.root, trie.items()
    with pytest.raises(ValueError, match=message):
        trie.update(bad_keys, bad_values)  # type: ignore[arg-type]
    assert (trie.root, trie.items()) == before


def test_a_trie_and_its_versions_pickle() -> None:
    trie = ArrayTrie.from_pairs({bytes([i]): bytes([i]) * i for i in range(50)}, window=2)
    root = trie.commit()
    trie.update([b"new"], [b"value"])
    twin = pickle.loads(pickle.dumps(trie))
    assert twin.root == trie.root
    assert twin.items(at=root) == trie.items(at=root)


def test_threads_read_one_trie_at_the_same_time() -> None:
    trie = ArrayTrie.from_arrays(matrix(5_000, 32), matrix(5_000, 32, seed=2))
    wanted = [key.tobytes() for key in matrix(5_000, 32)[::50]]
    expected = trie.prove(wanted).nodes
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(trie.prove(wanted).nodes == expected)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


def test_memory_stays_under_160_bytes_a_key() -> None:
    count = 50_000
    trie = ArrayTrie.from_arrays(matrix(count, 32), matrix(count, 32, seed=2))
    assert trie.memory_bytes <= 160 * count


def test_warm_up_tells_how_long_it_took() -> None:
    assert warm_up() > 0


@pytest.mark.parametrize("count", [array_module.KERNELS_SORT_FROM - 1, array_module.KERNELS_SORT_FROM])
def test_a_mapping_in_any_order_has_the_root_of_its_sorted_pairs(count: int) -> None:
    pairs = {b"prefix of all" + (7 * i % 1009).to_bytes(4, "little"): bytes([i % 256]) * 40 for i in range(count)}
    assert ArrayTrie.from_pairs(pairs).root == trie_root(pairs, engine="plain")


def test_few_keys_from_lists_change_a_trie_as_rows_do() -> None:
    held = {bytes([i]) * 32: bytes([i]) * 8 for i in range(60)}
    trie = ArrayTrie.from_pairs(held)
    for put, written in (
        ([b"\x01" * 32], [b"a" * 8]),
        ([b"\x02" * 32, b"\x03" * 32], [b"b" * 8, b"c" * 8]),
        ([b"\x04" * 32], [b"another length"]),
        ([b"\x05" * 32, b"short"], [b"d" * 8, b""]),
        ([], []),
    ):
        trie.update(put, written)
        held |= zip(put, written, strict=True)
        assert trie.root == ArrayTrie.from_pairs(held).root
    with pytest.raises(ValueError, match="2 keys with 1 values"):
        trie.update([b"\x01" * 32, b"\x02" * 32], [b"e" * 8])
    assert trie.root == ArrayTrie.from_pairs(held).root
