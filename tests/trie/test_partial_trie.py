"""Tries of which some nodes are known: what the nodes show, and what is a gap."""

from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import EMPTY_ROOT, InvalidNode, MissingNode, StateVersion, StorageProof, blake2_256, build_database
from relaycast_trie.exceptions import TooManyNodes
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node_codec import encode_branch, encode_leaf
from relaycast_trie.plain import partial_trie
from relaycast_trie.plain.partial_trie import NO_GAPS, Gaps, StateWitness, explore

KEYS = st.binary(max_size=4).map(lambda data: bytes(byte & 0x11 for byte in data))
PAIRS = st.dictionaries(KEYS, st.sampled_from([0, 1, 31, 32, 33, 60]).map(bytes) | st.binary(max_size=50), max_size=30)


def missing(ask: Callable[[], object]) -> MissingNode | None:
    """Return the error for a gap, where there is one."""
    try:
        ask()
    except MissingNode as error:
        return error
    return None


@given(PAIRS, st.sampled_from(StateVersion))
def test_a_trie_all_nodes_of_which_are_known_is_read_whole(pairs: dict[bytes, bytes], version: StateVersion) -> None:
    db, root = build_database(pairs, state_version=version)
    known = explore(db, root)
    assert known.values == pairs
    assert not known.gaps
    assert sorted(known.uses) == sorted(chain(*([it] * count for it, count in db.references().items())))
    assert known.inline == {key for key, value in pairs.items() if version is StateVersion.V0 and len(value) > 32}


@given(PAIRS, st.lists(KEYS, max_size=4), st.sampled_from(StateVersion))
def test_a_key_is_known_or_in_a_gap(pairs: dict[bytes, bytes], asked: list[bytes], version: StateVersion) -> None:
    db, root = build_database(pairs, state_version=version)
    known = explore(StorageProof.generate(db, root, asked).by_hash() if asked else {}, root)
    for key in {*pairs, *asked, b"\x00\x01\x10\x11\x00"}:
        error = missing(lambda key=key: known.gaps.check(key))  # type: ignore[misc]
        if error is None:
            assert known.values.get(key) == pairs.get(key)
        else:
            assert key not in {*known.values, *asked}
            assert to_nibbles(key).startswith(error.path)
            assert error.node_hash in db


@given(st.lists(KEYS, max_size=8, unique=True), KEYS, KEYS, st.booleans())
def test_a_gap_between_two_keys_is_found(missing_keys: list[bytes], one: bytes, other: bytes, after: bool) -> None:
    named = set(map(to_nibbles, missing_keys))
    paths = [path for path in named if not any(path != it and path.startswith(it) for it in named)]
    gaps, (low, high) = Gaps({path: blake2_256(path) for path in paths}, {}), sorted([one, other])
    start, end = to_nibbles(low), to_nibbles(high)
    expected = any(start.startswith(path) or start <= path <= end for path in paths)
    error = missing(lambda: gaps.check_between(low, high, b"", after=after))
    assert (error is not None) == expected
    assert error is None or error.path in paths


def test_the_empty_trie_has_no_gap() -> None:
    assert explore({}, EMPTY_ROOT).values == {}
    assert not explore({}, EMPTY_ROOT).gaps


def test_a_lone_missing_child_is_named_and_two_of_them_are_not() -> None:
    pairs = {bytes([0x10, number]): bytes([number]) * 40 for number in (0x00, 0x10, 0x20)}
    db, root = build_database(pairs, state_version=StateVersion.V1)
    one = explore(StorageProof.generate(db, root, [b"\x10\x00", b"\x10\x10"]).by_hash(), root)
    assert [(it.branch, it.path) for it in one.gaps.lone] == [(b"\x01\x00", b"\x01\x00\x02")]
    assert not explore(StorageProof.generate(db, root, [b"\x10\x00"]).by_hash(), root).gaps.lone


def test_a_branch_with_a_missing_value_of_its_own_never_collapses() -> None:
    db, root = build_database(
        {b"\x10": bytes(40), b"\x10\x00": b"a", b"\x10\x10": bytes(50)}, state_version=StateVersion.V1
    )
    known = explore(StorageProof.generate(db, root, [b"\x10\x00"]).by_hash(), root)
    assert len(known.gaps.nodes) == len(known.gaps.values) == 1
    assert not known.gaps.lone


def test_a_value_at_half_a_byte_is_refused() -> None:
    leaf = encode_leaf(b"\x01", bytes(40))
    with pytest.raises(InvalidNode, match="where no key ends"):
        explore({blake2_256(leaf): leaf}, blake2_256(leaf))


def test_nodes_that_share_each_other_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_trie, "MOST_PLACES", 1_000)
    node, nodes = encode_leaf(b"\x01" * 4, bytes(31)), []
    for _ in range(8):
        nodes.append(node)
        node = encode_branch(b"\x01" * 3, [blake2_256(node)] * 16, None)
    nodes.append(node)
    with pytest.raises(TooManyNodes):
        explore(StateWitness.of_nodes(blake2_256(node), nodes).nodes, blake2_256(node))


def test_no_gaps_let_everything_pass() -> None:
    NO_GAPS.check(b"a")
    NO_GAPS.check_prefix(b"")
    assert not NO_GAPS
