"""The root of a trie: four ways to compute it, one answer, the answer of Substrate's crates and of smoldot."""

import random
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from hypothesis import given

from proof_vectors import TRIES, ProofRoot, ProofVector, drawn_pairs
from relaycast_trie import EMPTY_ROOT, MemoryDB, StateVersion, TrieDBMut, reference, trie_root
from relaycast_trie.hasher import HASHERS, Hasher
from relaycast_trie.plain.build import build_database, build_root
from relaycast_trie.scale import encode_compact
from shared_vectors import Case, over, unhex, unhex_all, unhex_pairs
from strategies import Changes as Delta
from strategies import Pairs, changes, pairs, state_versions
from vector_fields import VectorSource, entries
from yielded_vectors import yields

Root = Callable[[Pairs, StateVersion], bytes]


def by_front_door(held: Pairs, version: StateVersion) -> bytes:
    return trie_root(held, state_version=version, engine="plain")


def by_reference(held: Pairs, version: StateVersion) -> bytes:
    return reference.trie_root(held, state_version=version)


def by_database(held: Pairs, version: StateVersion) -> bytes:
    return build_database(held, state_version=version)[1]


def by_sorted_inserts(held: Pairs, version: StateVersion) -> bytes:
    return inserted(sorted(held.items()), version)


def by_shuffled_inserts(held: Pairs, version: StateVersion) -> bytes:
    entries = sorted(held.items())
    random.Random(len(entries)).shuffle(entries)
    return inserted(entries, version)


def inserted(entries: list[tuple[bytes, bytes]], version: StateVersion) -> bytes:
    trie = TrieDBMut(MemoryDB(), state_version=version)
    for key, value in entries:
        trie[key] = value
    return trie.commit()


EVERY_WAY: list[Root] = [by_front_door, by_database, by_sorted_inserts, by_shuffled_inserts]


@pytest.mark.parametrize("root_of", [*EVERY_WAY, by_reference])
@over("trie_db/roots.json", slices=2)
def test_roots_are_those_of_the_crates(root_of: Root, cases: list[Case]) -> None:
    for vector in cases:
        held = dict(unhex_pairs(vector["pairs"]))
        assert len(held) == vector["n"]
        for version in StateVersion:
            assert root_of(held, version) == unhex(vector[f"v{version}_root"]), vector["name"]


@pytest.mark.parametrize("root_of", [by_front_door, by_shuffled_inserts, by_reference])
@over("smoldot/tries.json", slices=2)
def test_roots_are_those_of_smoldot(root_of: Root, cases: list[Case]) -> None:
    for vector in cases:
        held = dict(unhex_pairs(vector["kv"]))
        for version in StateVersion:
            assert root_of(held, version) == unhex(vector[f"root_v{version}"]), vector["name"]


@over("smoldot/ordered_roots.json")
def test_a_list_is_a_trie_keyed_by_compact_index(cases: list[Case]) -> None:
    for vector in cases:
        held = {encode_compact(index): value for index, value in enumerate(unhex_all(vector["values"]))}
        for version in StateVersion:
            for root_of in EVERY_WAY:
                assert root_of(held, version) == unhex(vector[f"root_v{version}"])


@given(pairs, state_versions)
def test_every_way_gives_the_root_of_the_reference(held: Pairs, version: StateVersion) -> None:
    expected = by_reference(held, version)
    assert [root_of(held, version) for root_of in EVERY_WAY] == [expected] * len(EVERY_WAY)


def root_vector(name: str, why: str, version: int, held: Pairs) -> ProofRoot:
    """Return the vector of a root that every way gives."""
    assert {root_of(held, StateVersion(version)) for root_of in EVERY_WAY} == {
        by_reference(held, StateVersion(version))
    }
    source = VectorSource(upstream="sp-trie trie_root")
    return ProofRoot(id=f"proofs/root/{name}", why=why, source=source, state_version=version, pairs=entries(held))


@yields("proofs/tries")
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("name", TRIES)
def test_a_trie_of_each_shape_has_its_root_and_its_nodes(name: str, version: int) -> Iterator[ProofVector]:
    why, held = TRIES[name]
    yield root_vector(f"{name}-v{version}", f"{why}, state version {version}", version, held)


@yields("proofs/tries")
@pytest.mark.parametrize("number", range(24))
def test_a_random_trie_has_its_root_and_its_nodes(number: int) -> Iterator[ProofVector]:
    draw = random.Random(f"root 7 {number}")
    held = drawn_pairs(draw, draw.choice((3, 8, 16)))
    yield root_vector(f"random-{number}", f"{len(held)} random pairs, number {number}", number % 2, held)


@given(pairs, changes, state_versions)
def test_other_content_has_another_root(held: Pairs, delta: Delta, version: StateVersion) -> None:
    other = dict(held)
    for key, value in delta:
        if value is None:
            other.pop(key, None)
        else:
            other[key] = value
    assert (by_front_door(held, version) == by_front_door(other, version)) == (held == other)


def test_the_empty_trie_has_one_root_in_both_versions() -> None:
    assert {root_of({}, version) for root_of in [*EVERY_WAY, by_reference] for version in StateVersion} == {EMPTY_ROOT}


def test_of_a_key_that_comes_twice_the_last_value_counts() -> None:
    twice = [(b"dog", b"old"), (b"cat", b"meow"), (b"dog", b"new")]
    assert trie_root(twice) == trie_root({b"cat": b"meow", b"dog": b"new"})


def test_pairs_come_as_a_mapping_or_in_any_order() -> None:
    held = {bytes([n]): bytes([n]) * n for n in range(40)}
    assert trie_root(held) == trie_root(reversed(held.items())) == trie_root(iter(held.items()))


@pytest.mark.parametrize("version", StateVersion)
def test_a_state_version_may_be_a_plain_number(version: StateVersion) -> None:
    held = {b"\x01" * 32: bytes(33), b"\x02" * 32: bytes(32)}
    number = cast("StateVersion", int(version))
    roots = {trie_root(held, state_version=each, engine="plain") for each in (version, number)}
    trie = TrieDBMut(MemoryDB(), state_version=number)
    for key, value in held.items():
        trie[key] = value
    assert roots == {trie.commit()}


def test_an_unknown_state_version_is_a_slip_of_the_caller() -> None:
    for held in ({}, {b"key": b"value"}):
        with pytest.raises(ValueError, match="StateVersion"):
            trie_root(held, state_version=cast("StateVersion", 2))


@pytest.mark.parametrize("held", [{"key": b"value"}, {b"key": "value"}, {7: b"value"}])
def test_what_is_not_bytes_has_no_root(held: dict[bytes, bytes]) -> None:
    with pytest.raises(TypeError):
        trie_root(held, engine="plain")


def test_an_unknown_engine_is_a_slip_of_the_caller() -> None:
    with pytest.raises(ValueError, match="engine"):
        trie_root({}, engine="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("hasher", HASHERS.values(), ids=lambda hasher: hasher.name)
def test_a_trie_of_another_hasher_is_the_same_shape_with_other_hashes(hasher: Hasher) -> None:
    held = {bytes([n]): bytes(40) for n in range(20)}
    trie = TrieDBMut(MemoryDB(hasher=hasher))
    for key, value in held.items():
        trie[key] = value
    root = trie.commit()
    assert root == build_root(held, state_version=StateVersion.V1, hasher=hasher)
    assert len(trie.db) == len(build_database(held, state_version=StateVersion.V1)[0])
    assert (root == trie_root(held)) == (hasher.name == "blake2b-256")


def test_keys_of_ten_thousand_bytes_need_no_recursion() -> None:
    stem = b"\x5a" * 10_000
    chain = {stem[:length]: b"v" for length in range(9_000, 10_000)}
    assert by_front_door(chain, StateVersion.V1) == by_sorted_inserts(chain, StateVersion.V1)
