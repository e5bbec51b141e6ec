"""What a block's proof holds is what running the block again takes, no node more and no node less."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relaycast_pallets.frame.state import State
from relaycast_trie import MemoryDB, MissingNode, RootMismatch, StateVersion
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.plain.trie_db import Recorder
from relaycast_trie.scale import encode_bytes
from relaycast_wasm import OverlayedChanges, StateBacking
from relaycast_wasm.overlay import Name
from strategies import state_versions
from wasm.naive_overlay import Contents
from wasm.overlay_steps import Step, contents, steps_and_roots, take_all
from wasm.proof_backing import ProofBacking

A = ChildInfo(b"a")
LONG, LONGER = bytes(40), bytes(41)
engines = st.sampled_from(["plain", "plain", "array"])


def state_of(held: Contents, version: StateVersion, engine: str = "plain") -> State:
    children = {name: values for name, values in held.items() if name is not None}
    return State(held[None], children, state_version=version, engine=engine)  # type: ignore[arg-type]


def proof_of(held: Contents, taken: list[Step], version: StateVersion, engine: str = "plain") -> set[bytes]:
    """Return the nodes that steps take, after running them again over these alone, and over fewer in vain."""
    state = state_of(held, version, engine)
    root, overlay = state.root, OverlayedChanges(StateBacking(state))
    said = take_all(overlay, taken, version)
    recorder = Recorder()
    sealed = state.commit(
        changes=overlay.changes(), reads=overlay.reads, seeks=overlay.seeks, tried=overlay.tried, recorder=recorder
    )
    assert sealed == overlay.root(version)
    nodes = set(recorder.nodes.values())
    assert again(nodes, root, taken, version) == said
    for node in nodes - {b"\x00"}:
        with pytest.raises((MissingNode, RootMismatch)):
            again(nodes - {node}, root, taken, version)
    return nodes


def again(nodes: set[bytes], root: bytes, taken: list[Step], version: StateVersion) -> object:
    return take_all(OverlayedChanges(ProofBacking(MemoryDB(nodes), root)), taken, version)


@given(contents, steps_and_roots, state_versions, engines)
@example(  # a removal whose merge is rolled back after its root was asked for
    {None: {b"\x00": b"1", b"\x01": LONG, b"\x10": LONGER}},
    [("start_transaction",), ("put", (b"\x00", None), None), ("root",), ("roll_back_transaction",)],
    StateVersion.V1,
    "plain",
)
def test_a_block_runs_again_over_its_proof_and_over_no_less(
    held: Contents, taken: list[Step], version: StateVersion, engine: str
) -> None:
    proof_of(held, taken, version, engine)


TOP: Contents = {None: {b"\x10": LONG, b"\x30": LONGER, b"\x50": bytes(42)}}
"""A root with three leaves of 34 bytes, whose values stand outside: seven nodes."""

BOTH: Contents = {None: {b"\x10": bytes(43)}, A: {b"\x10": LONG, b"\x30": LONGER}}
"""A top trie of a branch and two leaves; a child trie of a branch and two leaves. Their values stand outside."""


@pytest.mark.parametrize(
    ("held", "taken", "count"),
    [
        (TOP, ("get", (b"\x10", None)), 3),  # root, leaf, value
        (TOP, ("exists", (b"\x10", None)), 2),  # whether it is there takes no value
        (TOP, ("get", (b"\x20", None)), 1),  # the root has no such child
        (TOP, ("put", (b"\x10", None), LONG), 2),  # the value that stands there is written over unread
        (TOP, ("put", (b"\x20", None), None), 1),  # a key that is not there goes: the way to it
        (TOP, ("put", (b"\x11", None), None), 2),  # the way ends at a leaf of another key
        (TOP, ("put", (b"\x10", None), None), 2),
        (TOP, ("append", (b"\x10", None), b"item"), 3),  # what is appended to is read
        (TOP, ("next_key", (b"\x10", None)), 3),  # the root and both leaves, of neither the value
        (TOP, ("next_key", (b"\x50", None)), 2),  # the end: the way of what was asked for
        (TOP, ("clear_prefix", (b"\x10", None), None, None), 2),
        (TOP, ("clear_prefix", (b"\x20", None), None, None), 1),  # none there
        (TOP, ("clear_prefix", (b"\x10", None), 0, None), 2),  # a limit of 0 finds out whether there is one
        (BOTH, ("get", (b"\x10", A)), 5),  # the top trie's root and the leaf of the child; its root, leaf and value
        (BOTH, ("get", (b"\x10", ChildInfo(b"none"))), 2),  # the way to the entry that is not there
        (BOTH, ("next_key", (b"\x10", A)), 5),
        (BOTH, ("clear_prefix", (b"", A), None, None), 6),  # the child's three, and of the top trie all: it merges
        (BOTH, ("put", (b"\x20", A), b""), 3),  # the child's root is rewritten
        (BOTH, ("put", (b"\x50", A), None), 3),  # nothing goes: the way to where it would be
        (BOTH, ("put", (b"\x11", A), None), 4),
        (BOTH, ("child_root", A), 2),  # nothing was written: the entry is read
    ],
)
def test_what_one_step_carries(held: Contents, taken: Step, count: int) -> None:
    assert len(proof_of(held, [taken], StateVersion.V1)) == count


def test_what_a_transaction_read_stays_when_it_is_rolled_back() -> None:
    taken: list[Step] = [("start_transaction",), ("get", (b"\x10", None)), ("roll_back_transaction",)]
    assert len(proof_of(TOP, taken, StateVersion.V1)) == 3


def test_no_proof_is_measured_where_none_is_recorded() -> None:
    overlay = OverlayedChanges(StateBacking(state_of(TOP, StateVersion.V1)))
    overlay.get(b"\x10")
    assert overlay.proof_bytes() is None


@given(contents, steps_and_roots, state_versions)
def test_the_measured_proof_is_that_of_what_was_read_each_node_once(
    held: Contents, taken: list[Step], version: StateVersion
) -> None:
    state = state_of(held, version)
    overlay, measured = OverlayedChanges(StateBacking(state), recording=True), 0
    for number in range(len(taken) + 1):
        take_all(overlay, taken[:number][-1:], version)
        recorder = Recorder()
        state.record(recorder, reads=overlay.reads, seeks=overlay.seeks)
        now = overlay.proof_bytes()
        assert now == sum(len(encode_bytes(node)) for node in recorder.nodes.values())
        assert now >= measured
        measured = now


def test_what_is_read_no_more_is_measured_no_more() -> None:
    overlay = OverlayedChanges(StateBacking(state_of(TOP, StateVersion.V1)), recording=True)
    assert overlay.proof_bytes() == 0
    overlay.get(b"\x10")
    reads: dict[Name, set[bytes]] = {None: set(overlay.reads[None])}
    before = overlay.proof_bytes()
    overlay.get(b"\x30")
    assert (overlay.proof_bytes() or 0) > (before or 0)
    overlay.reads = reads
    assert overlay.proof_bytes() == before


def test_a_proof_that_lacks_a_node_is_no_state() -> None:
    with pytest.raises(RelaycastError):
        ProofBacking(MemoryDB(), bytes(32)).get(None, b"key")
