"""The storage that a runtime sees agrees with its definition, in whatever transactions."""

from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import example, given

from relaycast_pallets.frame.state import State
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.scale import encode_compact
from relaycast_wasm import OverlayedChanges, StateBacking
from relaycast_wasm.overlay import NoTransaction, Removed
from strategies import STOCK, state_versions
from wasm.naive_overlay import Contents, NaiveOverlay
from wasm.overlay_steps import CHILDREN, Step, contents, steps, take

A = ChildInfo(b"a")


def overlay_over(held: Contents, version: StateVersion = StateVersion.V1, **options: Any) -> OverlayedChanges:
    children = {name: values for name, values in held.items() if name is not None}
    return OverlayedChanges(StateBacking(State(held[None], children, state_version=version, engine="plain")), **options)


def expected(naive: NaiveOverlay, step: Step, version: StateVersion) -> Any:
    kind, *given = step
    if kind == "child_root":
        return naive.child_root(given[0], version)
    if kind.endswith("_transaction"):
        if kind != "start_transaction" and len(naive.layers) == 1:
            return None
        return getattr(naive, kind)()
    (key, name), *rest = given
    if kind == "exists":
        return naive.get(key, name) is not None
    if kind == "clear_prefix":
        return naive.clear_prefix(key, name, *rest)
    return getattr(naive, kind)(key, *rest, name)


@given(contents, steps, state_versions)
def test_an_overlay_says_what_its_twin_says(held: Contents, taken: list[Step], version: StateVersion) -> None:
    overlay = overlay_over(held, version)
    below = overlay.backing
    roots = {it: below.get(None, it.prefixed_storage_key()) for it in CHILDREN}
    entries = {it.prefixed_storage_key(): root for it, root in roots.items() if root is not None}
    naive = NaiveOverlay({**held, None: {**held[None], **entries}})
    for step in taken:
        said = take(overlay, step, version)
        assert (astuple(said) if isinstance(said, Removed) else said) == expected(naive, step, version), step
    for name in (None, *CHILDREN):
        assert [overlay.get(key, name) for key in STOCK] == [naive.get(key, name) for key in STOCK]
        assert keys_of(overlay, name) == sorted(naive.held(name).keys() - {b""})
    assert overlay.root(version) == naive.root(version)


def keys_of(overlay: OverlayedChanges, name: ChildInfo | None) -> list[bytes]:
    found, key = [], overlay.next_key(b"", name)
    while key is not None:
        found.append(key)
        key = overlay.next_key(key, name)
    return found


@given(contents, steps, state_versions)
@example({None: {b"\x00": b""}, A: {b"\x01": b"x"}}, [("put", (b"\x01", A), None)], StateVersion.V1)
def test_a_state_that_takes_the_changes_has_the_root_that_was_foretold(
    held: Contents, taken: list[Step], version: StateVersion
) -> None:
    children = {name: values for name, values in held.items() if name is not None}
    state = State(held[None], children, state_version=version, engine="plain")
    overlay = OverlayedChanges(StateBacking(state))
    for step in taken:
        take(overlay, step, version)
    foretold = overlay.root(version)
    assert state.commit(changes=overlay.changes()) == foretold
    for name in CHILDREN:
        entry = state.get(name.prefixed_storage_key())
        assert (entry is None) == (not len(state.child(name)))  # an empty child trie has no entry


def test_what_is_rolled_back_is_gone_and_what_is_committed_can_still_be_rolled_back() -> None:
    overlay = overlay_over({None: {b"below": b"1"}})
    overlay.put(b"kept", b"1")
    overlay.start_transaction()
    overlay.put(b"kept", b"2")
    overlay.put(b"below", None)
    overlay.start_transaction()
    overlay.put(b"inner", b"3")
    overlay.put(b"more", b"3")  # the inner transaction writes more keys than the one around it
    overlay.put(b"kept", b"3")
    overlay.commit_transaction()
    assert (overlay.get(b"kept"), overlay.get(b"inner"), overlay.get(b"below")) == (b"3", b"3", None)
    overlay.roll_back_transaction()
    assert (overlay.get(b"kept"), overlay.get(b"inner"), overlay.get(b"below")) == (b"1", None, b"1")
    assert overlay.changes() == {None: {b"kept": b"1"}}


def test_a_hundred_nested_transactions_cost_a_read_nothing() -> None:
    overlay = overlay_over({None: {}})
    for depth in range(100):
        overlay.put(bytes([depth]), b"value")
        overlay.start_transaction()
    assert [overlay.get(bytes([depth])) for depth in range(100)] == [b"value"] * 100
    assert len(overlay._tries[None].values) == 100  # one layer holds them all
    for depth in reversed(range(100)):
        overlay.roll_back_transaction()
        assert overlay.next_key(bytes([depth])) is None
    assert overlay.changes() == {None: {b"\x00": b"value"}}


def test_a_transaction_that_is_not_open_cannot_end() -> None:
    overlay = overlay_over({None: {}})
    for end in (overlay.commit_transaction, overlay.roll_back_transaction):
        with pytest.raises(NoTransaction):
            end()


def test_a_runtime_ends_no_transaction_of_its_caller_and_leaves_none_open() -> None:
    overlay = overlay_over({None: {}})
    overlay.start_transaction()
    with overlay.in_runtime():
        with pytest.raises(NoTransaction):
            overlay.commit_transaction()
        with pytest.raises(NoTransaction):
            overlay.roll_back_transaction()
        overlay.put(b"kept", b"1")
        overlay.start_transaction()
        overlay.put(b"lost", b"1")
        overlay.start_transaction()
    assert overlay.depth == 1
    assert overlay.changes() == {None: {b"kept": b"1"}}
    overlay.roll_back_transaction()
    assert overlay.changes() == {None: {}}


@pytest.mark.parametrize("count", [0, 62, 63, 64, 16_382, 16_383, 16_384])
def test_a_vector_grows_over_the_lengths_of_its_length(count: int) -> None:
    overlay = overlay_over({None: {b"vector": encode_compact(count) + bytes(count)}})
    overlay.append(b"vector", b"\x01")
    overlay.append(b"vector", b"\x02")
    assert overlay.get(b"vector") == encode_compact(count + 2) + bytes(count) + b"\x01\x02"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01\x00",  # 0 in two bytes: one would do
        b"\x02\x00",  # half of a length
        b"\x07" + bytes(5),  # a length of more than four bytes
    ],
)
def test_what_is_no_vector_gives_way_to_one_of_one_item(value: bytes) -> None:
    overlay = overlay_over({None: {b"vector": value}})
    overlay.append(b"vector", b"item")
    assert overlay.get(b"vector") == b"\x04item"


def test_an_item_that_is_rolled_back_leaves_the_vector_to_others() -> None:
    overlay = overlay_over({None: {}})
    overlay.append(b"vector", b"a")
    for item in (b"b", b"c"):
        overlay.start_transaction()
        overlay.append(b"vector", item)
        assert overlay.get(b"vector") == b"\x08a" + item
        overlay.roll_back_transaction()
        assert overlay.get(b"vector") == b"\x04a"
    overlay.append(b"vector", b"d")
    assert overlay.get(b"vector") == b"\x08ad"


def test_a_limit_counts_keys_that_were_removed_before_and_none_of_the_overlay() -> None:
    overlay = overlay_over({None: {b"p1": b"", b"p2": b"", b"p3": b"", b"q": b""}})
    overlay.put(b"p2", None)
    overlay.put(b"p9", b"")
    overlay.put(b"p3", b"new")
    assert overlay.clear_prefix(b"p", limit=2) == Removed(b"p3", backend=1, unique=3, loops=2)
    assert overlay.get(b"p3") is None  # what was written here goes whatever the limit
    assert overlay.clear_prefix(b"p", limit=2) == Removed(b"p3", backend=0, unique=0, loops=2)
    assert overlay.clear_prefix(b"p", limit=2, cursor=b"p3") == Removed(None, backend=0, unique=0, loops=1)
    assert overlay.clear_prefix(b"p", limit=0) == Removed(b"p1", backend=0, unique=0, loops=0)
    assert overlay.clear_prefix(b"p", cursor=b"q") == Removed()
    assert overlay.get(b"q") == b""


def test_the_root_of_a_child_trie_is_written_into_the_top_trie_and_goes_with_the_last_key() -> None:
    overlay = overlay_over({None: {}, A: {b"key": b"value"}})
    entry = A.prefixed_storage_key()
    before = overlay.get(entry)
    assert overlay.child_root(A, StateVersion.V1) == before
    assert overlay.changes() == {None: {}}
    overlay.put(b"key", None, A)
    assert overlay.get(entry) == before
    assert overlay.child_root(A, StateVersion.V1) == EMPTY_ROOT
    assert overlay.get(entry) is None
    assert overlay.changes() == {None: {}, A: {b"key": None}}  # the entry follows from the child


def test_a_root_stays_until_something_is_written() -> None:
    overlay = overlay_over({None: {b"key": bytes(40)}})
    overlay.put(b"key", bytes(41))
    first = overlay.root(StateVersion.V0)
    assert overlay.root(StateVersion.V1) == first
    overlay.put(b"key", bytes(41))
    assert overlay.root(StateVersion.V1) != first


def test_a_root_inside_a_transaction_has_what_is_written_there() -> None:
    overlay = overlay_over({None: {b"key": b"old"}})
    before = overlay.root(StateVersion.V1)
    overlay.start_transaction()
    overlay.put(b"key", b"new")
    inside = overlay.root(StateVersion.V1)
    assert inside == overlay_over({None: {b"key": b"new"}}).root(StateVersion.V1) != before
    overlay.roll_back_transaction()
    assert overlay.root(StateVersion.V1) == before
