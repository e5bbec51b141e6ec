"""Every storage function, called from WebAssembly: what it takes, gives and leaves behind."""

from typing import Any

import pytest

from relaycast_pallets.frame.state import State
from relaycast_trie import StateVersion, generate_proof
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.hasher import BLAKE2B_256, KECCAK_256
from relaycast_trie.node_codec import EMPTY_ROOT
from relaycast_trie.plain.build import build_database, build_root
from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u32, encode_vec
from relaycast_wasm import HostFault, OverlayedChanges, StateBacking
from relaycast_wasm.host.everything import HOST_FUNCTIONS
from wasm.called_module import At, Call, Outcome, Room, outcomes

TOP = {b"key": b"value", b"p1": b"1", b"p2": b"2", b"p3": b"3"}
CHILD = {b"key": b"in the child", b"p1": b"1", b"p2": b"2"}
INFO = ChildInfo(b"child")
NONE = 2**64 - 1
NO_LIMIT = b"\x00"
VALUE = encode_option(encode_bytes(b"value"))
USED: set[str] = set()


def state() -> State:
    return State(TOP, {INFO: CHILD}, engine="plain")


def ask(*calls: Call, overlay: OverlayedChanges | None = None) -> list[Outcome]:
    USED.update(f"ext_{name}" for name, *_ in calls)
    return outcomes(calls, overlay or OverlayedChanges(StateBacking(state())))


def results(*calls: Call, overlay: OverlayedChanges | None = None) -> list[Any]:
    return [it.result for it in ask(*calls, overlay=overlay)]


def limit(number: int | None) -> bytes:
    return encode_option(None if number is None else encode_u32(number))


def removals(cursor: bytes | None, *counts: int) -> bytes:
    return encode_option(None if cursor is None else encode_bytes(cursor)) + b"".join(map(encode_u32, counts))


@pytest.fixture(params=["storage", "default_child_storage"])
def group(request: pytest.FixtureRequest) -> tuple[str, tuple[bytes, ...], bytes]:
    """The same functions of the top trie and of a child trie: their prefix, first arguments, and value of ``key``."""
    of_child = request.param != "storage"
    return request.param, (b"child",) if of_child else (), b"in the child" if of_child else b"value"


Group = tuple[str, tuple[bytes, ...], bytes]


def test_values_are_written_read_and_removed(group: Group) -> None:
    name, trie, value = group
    assert results(
        (f"{name}_get_version_1", *trie, b"key"),
        (f"{name}_exists_version_1", *trie, b"key"),
        (f"{name}_clear_version_1", *trie, b"key"),
        (f"{name}_get_version_1", *trie, b"key"),
        (f"{name}_exists_version_1", *trie, b"key"),
        (f"{name}_set_version_1", *trie, b"key", b""),
        (f"{name}_get_version_1", *trie, b"key"),
    ) == [encode_option(encode_bytes(value)), 1, None, b"\x00", 0, None, b"\x01\x00"]


def test_a_read_fills_what_there_is_room_for_and_tells_what_is_left_behind_the_offset(group: Group) -> None:
    name, trie, value = group
    read = f"{name}_read_version_1"
    size = len(value)
    assert (
        ask(
            (read, *trie, b"key", Room(2), 1),
            (read, *trie, b"key", Room(20), 2),
            (read, *trie, b"key", Room(2), size),
            (read, *trie, b"key", Room(2), size + 1),  # past the end nothing is left
            (read, *trie, b"key", Room(2), 2**32 - 1),
            (read, *trie, b"none", Room(2), 0),
        )
        == [
            Outcome(b"\x01" + encode_u32(size - 1), (value[1:3],)),
            Outcome(b"\x01" + encode_u32(size - 2), (value[2:].ljust(20, b"\0"),)),
            Outcome(b"\x01" + encode_u32(0), (bytes(2),)),
            Outcome(b"\x01" + encode_u32(0), (bytes(2),)),
            Outcome(b"\x01" + encode_u32(0), (bytes(2),)),
            Outcome(b"\x00", (bytes(2),)),
        ]
    )


def test_a_read_into_a_buffer_fills_all_or_nothing_unless_a_part_will_do(group: Group) -> None:
    name, trie, value = group
    read = f"{name}_read_version_2"
    assert ask(
        (read, *trie, b"key", Room(2), 0, 0),
        (read, *trie, b"key", Room(2), 0, 1),
        (read, *trie, b"key", Room(12), 1, 0),
        (read, *trie, b"key", Room(2), 99, 0),
        (read, *trie, b"none", Room(2), 0, 1),
    ) == [
        Outcome(len(value), (bytes(2),)),
        Outcome(len(value), (value[:2],)),
        Outcome(len(value) - 1, (value[1:].ljust(12, b"\0"),)),
        Outcome(0, (bytes(2),)),
        Outcome(NONE, (bytes(2),)),
    ]


def test_the_next_key_is_found_in_what_is_written_and_below(group: Group) -> None:
    name, trie, _ = group
    last = b"p2" if trie else b"p3"
    assert results(
        (f"{name}_next_key_version_1", *trie, b"key"),
        (f"{name}_set_version_1", *trie, b"p0", b""),
        (f"{name}_clear_version_1", *trie, b"p1"),
        (f"{name}_next_key_version_1", *trie, b"key"),
        (f"{name}_next_key_version_1", *trie, b"p0"),
        (f"{name}_next_key_version_1", *trie, last),
    ) == [b"\x01\x08p1", None, None, b"\x01\x08p0", b"\x01\x08p2", b"\x00"]
    assert ask(
        (f"{name}_next_key_version_2", *trie, b"key", Room(2)),
        (f"{name}_next_key_version_2", *trie, b"key", Room(1)),
        (f"{name}_next_key_version_2", *trie, last, Room(2)),
    ) == [Outcome(2, (b"p1",)), Outcome(2, (b"\0",)), Outcome(0, (b"\0\0",))]


def test_a_prefix_goes_up_to_a_limit(group: Group) -> None:
    name, trie, _ = group
    clear = f"{name}_clear_prefix_version"
    overlay = OverlayedChanges(StateBacking(state()))
    assert results(
        (f"{name}_set_version_1", *trie, b"p9", b""),
        (f"{clear}_2", *trie, b"p", limit(1)),
        (f"{clear}_3", *trie, b"p", limit(1), b"\x00"),
        (f"{clear}_3", *trie, b"p", limit(2), b"\x01\x08p2"),
        (f"{clear}_2", *trie, b"p", NO_LIMIT + b"and more"),
        (f"{clear}_1", *trie, b"k"),
        (f"{name}_next_key_version_1", *trie, b""),
        overlay=overlay,
    ) == [
        None,
        b"\x01" + encode_u32(1),
        removals(b"p2", 0, 0, 1),
        removals(None, *((1, 1, 1) if trie else (2, 2, 2))),
        b"\x00" + encode_u32(2 if trie else 3),  # keys that are gone already count
        None,
        b"\x00" if trie else encode_option(encode_bytes(INFO.prefixed_storage_key())),
    ]


def test_a_prefix_goes_in_steps_with_a_cursor_in_a_buffer(group: Group) -> None:
    name, trie, _ = group
    clear = f"{name}_clear_prefix_version_4"
    counts = [b"".join(map(encode_u32, it)) for it in ((1, 2, 1), (1, 1, 1), (0, 0, 0))]
    found = ask(
        (f"{name}_set_version_1", *trie, b"p9", b""),
        (clear, *trie, b"p", 1, NONE, Room(1), Room(12)),
        ("misc_last_cursor_version_1", Room(2)),
        (clear, *trie, b"p", 1, b"p2", Room(4), Room(12)),
        (clear, *trie, b"p", 0, b"p4", Room(2), Room(12)),
    )
    rest = Outcome(2, (b"p3\0\0", counts[1])) if not trie else Outcome(0, (bytes(4), counts[1]))
    assert found[1:] == [
        Outcome(2, (b"\0", counts[0])),
        Outcome(2, (b"p2",)),
        rest,
        Outcome(0, (bytes(2), counts[2])),
    ]


def test_a_child_trie_is_killed_whole_or_up_to_a_limit() -> None:
    kill, get = "default_child_storage_storage_kill_version", "default_child_storage_next_key_version_1"
    assert results((f"{kill}_1", b"child"), (get, b"child", b"")) == [None, b"\x00"]
    assert results(
        ("default_child_storage_set_version_1", b"child", b"new", b""),
        (f"{kill}_2", b"child", limit(2)),
        (f"{kill}_2", b"child", limit(3)),
        (f"{kill}_3", b"child", limit(2)),
        (f"{kill}_3", b"other", limit(2)),
        (get, b"child", b""),
    ) == [None, 0, 1, b"\x01" + encode_u32(2), b"\x00" + encode_u32(0), b"\x00"]
    assert results(
        (f"{kill}_4", b"child", limit(1), b"\x00"),
        (f"{kill}_4", b"child", limit(None), b"\x01\x08p1"),
    ) == [removals(b"p1", 1, 1, 1), removals(None, 2, 2, 2)]
    counted = b"".join(map(encode_u32, (2, 2, 2)))
    assert ask((f"{kill}_5", b"child", 2, NONE, Room(3), Room(12))) == [Outcome(2, (b"p2\0", counted))]


def test_items_are_appended() -> None:
    assert results(
        ("storage_append_version_1", b"vector", b"a"),
        ("storage_append_version_1", b"vector", b"b"),
        ("storage_get_version_1", b"vector"),
        ("storage_set_version_1", b"vector", b"\x01"),
        ("storage_append_version_1", b"vector", b"c"),
        ("storage_get_version_1", b"vector"),
    ) == [None, None, encode_option(encode_bytes(b"\x08ab")), None, None, encode_option(encode_bytes(b"\x04c"))]


def test_transactions_nest() -> None:
    assert results(
        ("storage_start_transaction_version_1",),
        ("storage_set_version_1", b"key", b"new"),
        ("default_child_storage_set_version_1", b"child", b"key", b"new"),
        ("storage_start_transaction_version_1",),
        ("storage_clear_version_1", b"key"),
        ("storage_commit_transaction_version_1",),
        ("storage_get_version_1", b"key"),
        ("storage_rollback_transaction_version_1",),
        ("storage_get_version_1", b"key"),
        ("default_child_storage_get_version_1", b"child", b"key"),
    )[6:] == [b"\x00", None, VALUE, encode_option(encode_bytes(b"in the child"))]


@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_a_transaction_that_is_not_open_is_a_fault(end: str) -> None:
    overlay = OverlayedChanges(StateBacking(state()))
    overlay.start_transaction()  # the caller's, which no runtime ends
    with pytest.raises(HostFault, match="no transaction is open"):
        ask((f"storage_{end}_transaction_version_1",), overlay=overlay)


def test_transactions_that_a_runtime_leaves_open_are_rolled_back() -> None:
    overlay = OverlayedChanges(StateBacking(state()))
    ask(
        ("storage_set_version_1", b"kept", b""),
        ("storage_start_transaction_version_1",),
        ("storage_set_version_1", b"lost", b""),
        overlay=overlay,
    )
    assert overlay.changes() == {None: {b"kept": b""}}


def test_places_of_child_tries_are_not_written_to_by_functions_of_the_top_trie() -> None:
    overlay = OverlayedChanges(StateBacking(state()))
    found = results(
        ("storage_set_version_1", INFO.prefixed_storage_key(), b"x"),
        ("storage_clear_version_1", INFO.prefixed_storage_key()),
        ("storage_set_version_1", b":child_storage:", b"x"),
        ("storage_append_version_1", b":child_storage:other:a", b"x"),
        ("storage_clear_prefix_version_2", b"", NO_LIMIT),
        ("storage_clear_prefix_version_2", b":child_st", NO_LIMIT),
        ("storage_clear_prefix_version_2", b":child_storage:x", NO_LIMIT),
        ("storage_get_version_1", INFO.prefixed_storage_key()),
        ("storage_set_version_1", b":child_storage", b"x"),
        overlay=overlay,
    )
    nothing = b"\x00" + encode_u32(0)
    root = build_root(CHILD, state_version=StateVersion.V1)
    assert found == [None, None, None, None, nothing, nothing, nothing, b"\x01" + encode_bytes(root), None]
    assert overlay.changes() == {None: {b":child_storage": b"x"}}


@pytest.mark.parametrize("version", [0, 1])
def test_roots_are_those_of_state_and_changes_in_the_version_asked_for(version: int) -> None:
    value = bytes(40)
    changed = {**CHILD, b"long": value}
    child_root = build_root(changed, state_version=StateVersion(version))
    top = {**TOP, b"long": value, INFO.prefixed_storage_key(): child_root}
    assert (
        results(
            ("storage_set_version_1", b"long", value),
            ("default_child_storage_set_version_1", b"child", b"long", value),
            ("default_child_storage_root_version_2", b"child", version),
            ("storage_root_version_2", 256 + version),  # the version is a u8
            ("default_child_storage_root_version_2", b"none", version),
        )[2:]
        == [child_root, build_root(top, state_version=StateVersion(version)), EMPTY_ROOT]
    )


def test_roots_of_before_versions_are_of_version_0() -> None:
    value = bytes(40)
    child_root = build_root({**CHILD, b"long": value}, state_version=StateVersion.V0)
    root = build_root({**TOP, INFO.prefixed_storage_key(): child_root}, state_version=StateVersion.V0)
    write: Call = ("default_child_storage_set_version_1", b"child", b"long", value)
    assert results(write, ("default_child_storage_root_version_1", b"child"), ("storage_root_version_1",))[1:] == [
        child_root,
        root,
    ]
    assert ask(
        write,
        ("default_child_storage_root_version_3", b"child", Room(33)),
        ("default_child_storage_root_version_3", b"child", Room(31)),
        ("storage_root_version_3", Room(32)),
    )[1:] == [Outcome(None, (child_root + b"\0",)), Outcome(None, (bytes(31),)), Outcome(None, (root,))]
    with pytest.raises(HostFault, match="32 bytes"):
        ask(("storage_root_version_3", Room(31)))
    assert results(("storage_changes_root_version_1", bytes(32))) == [b"\x00"]


def test_an_empty_child_trie_has_no_entry_in_the_root() -> None:
    assert results(("default_child_storage_storage_kill_version_1", b"child"), ("storage_root_version_2", 1))[1] == (
        build_root(TOP, state_version=StateVersion.V1)
    )


@pytest.mark.parametrize(("name", "hasher"), [("blake2_256", BLAKE2B_256), ("keccak_256", KECCAK_256)])
def test_roots_and_proofs_of_tries_that_are_handed_over(name: str, hasher: Any) -> None:
    values = {b"a": bytes(40), b"ab": b"2", b"b": b"3"}
    pairs = encode_vec(encode_bytes(key) + encode_bytes(value) for key, value in [(b"a", b"lost"), *values.items()])
    items = encode_vec(map(encode_bytes, values.values()))
    ordered = {encode_compact(index): value for index, value in enumerate(values.values())}
    roots = [build_root(values, state_version=version, hasher=hasher) for version in StateVersion]
    others = [build_root(ordered, state_version=version, hasher=hasher) for version in StateVersion]
    for kind, data, (first, second) in (("root", pairs, roots), ("ordered_root", items, others)):
        assert ask(
            (f"trie_{name}_{kind}_version_1", data),
            (f"trie_{name}_{kind}_version_2", data, 0),
            (f"trie_{name}_{kind}_version_2", data, 1),
            (f"trie_{name}_{kind}_version_3", data, 1, Room(32)),
        ) == [Outcome(first), Outcome(first), Outcome(second), Outcome(None, (second,))]
    for version in StateVersion:
        db, root = build_database(values, state_version=version, hasher=hasher)
        proof = encode_vec(map(encode_bytes, generate_proof(db, root, [b"a"], hasher=hasher)))
        verify = f"trie_{name}_verify_proof_version"
        given = (At(root), proof, b"a")
        assert results(
            (f"{verify}_2", *given, bytes(40), version),
            (f"{verify}_2", *given, bytes(41), version),
            (f"{verify}_2", At(bytes(32)), *given[1:], bytes(40), version),
            (f"{verify}_2", At(root), b"\x04\x04\xff", b"a", bytes(40), version),
            (f"{verify}_1", *given, bytes(40)),
        ) == [1, 0, 0, 0, int(version is StateVersion.V0)]


def test_the_proof_size_is_all_ones_where_nothing_is_recorded_and_grows_with_reads_otherwise() -> None:
    size: Call = ("storage_proof_size_storage_proof_size_version_1",)
    assert results(size) == [NONE]
    recorded = OverlayedChanges(StateBacking(state()), recording=True)
    before, _, after, _, again = results(
        size, ("storage_get_version_1", b"key"), size, ("storage_get_version_1", b"key"), size, overlay=recorded
    )
    assert before == 0 < after == again


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("storage_clear_prefix_version_2", b"p", b"\x01\x00"), "limit"),
        (("storage_clear_prefix_version_2", b"p", b"\x02"), "limit"),
        (("storage_clear_prefix_version_3", b"p", b"\x00", b"\x01\x08p"), "cursor"),
        (("storage_clear_prefix_version_4", b"p", 2**32, NONE, Room(2), Room(12)), "limit"),
        (("storage_root_version_2", 2), "state version"),
        (("default_child_storage_root_version_2", b"child", 2), "state version"),
        (("trie_blake2_256_root_version_2", b"\x00", 2), "state version"),
        (("trie_blake2_256_root_version_1", b"\x04\x04"), "decode"),
        (("storage_get_version_1", 1 << 32 | 2**32 - 1), "memory"),
        (("storage_read_version_1", b"key", 5 << 32 | 2**32 - 4, 0), "memory"),
    ],
)
def test_what_no_such_function_takes_is_a_fault(call: Call, message: str) -> None:
    with pytest.raises(HostFault, match=message):
        ask(call)


def test_every_storage_and_trie_function_was_called_here() -> None:
    groups = ("ext_storage_", "ext_default_child_storage_", "ext_trie_")
    assert {name for name in HOST_FUNCTIONS if name.startswith(groups)} - USED == set()
