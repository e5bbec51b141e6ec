"""States of which some nodes are known: they do what the whole state does, or refuse by name and stay as they are."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from long_hauls import soak
from partial_states import CHILDREN, Pair, play, random_state, witness_of
from relaycast_pallets.frame.partial_state import PartialState
from relaycast_pallets.frame.state import State, StateDiscarded, StateDump
from relaycast_trie import ChildInfo, Engine, MissingNode, StateVersion
from relaycast_trie.nibbles import from_nibbles
from relaycast_trie.plain.partial_trie import StateWitness
from relaycast_xcm.checkpoint import CheckpointRefused
from searches import examples

SEEDS = st.integers(0, 1 << 32)


@pytest.mark.parametrize("first", range(0, examples(100), 25))
def test_a_fork_agrees_with_the_whole_state_or_refuses_by_name(first: int) -> None:
    pairs = [play(seed) for seed in range(first, first + 25)]
    assert sum(pair.refused for pair in pairs) > 20, "gaps are met"
    assert sum(pair.answered for pair in pairs) > 20, "and most is known"


@soak(20)
def test_a_fork_agrees_with_the_whole_state_in_any_history(soak_round: int) -> None:
    for seed in range(25 * soak_round, 25 * soak_round + 25):
        play(seed, blocks=12, steps=24)


@given(SEEDS)
def test_every_gap_is_answered_by_an_error_and_never_by_a_short_list(seed: int) -> None:
    pair = Pair(Random(seed))
    storages = [pair.partial.top, *map(pair.partial.child, pair.partial.children())]
    for storage in storages:
        for path in [*storage.gaps.nodes, *storage.gaps.values]:
            below = from_nibbles(path + b"\x00" * (len(path) % 2))
            above = from_nibbles(path[: len(path) & ~1])
            asks: list[tuple[Callable[..., object], tuple[bytes, ...]]] = [
                *((ask, (below,)) for ask in (storage.get, storage.exists, storage.kill)),
                *((ask, (above,)) for ask in (storage.count_prefix, storage.clear_prefix)),
                *((lambda key, it=storage: list(it.iter_prefix(key)), (key,)) for key in (above, b"")),
                (storage.put, (below, b"new")),
                (storage.__len__, ()),
            ]
            for ask, given_ in asks:
                with pytest.raises(MissingNode):
                    ask(*given_)
    assert pair.partial.commit() == pair.whole.root


@given(SEEDS)
def test_what_the_witness_proves_is_known(seed: int) -> None:
    random = Random(seed)
    whole = random_state(random)
    known = random.sample(sorted(whole.snapshot()[0]), min(5, len(whole.snapshot()[0])))
    below = {info: sorted(whole.child(info).values) for info in whole.children()}
    partial = PartialState(witness_of(whole, known, below))
    assert [partial.get(key) for key in known] == [whole.get(key) for key in known]
    for info, keys in below.items():
        assert not partial.child(info).gaps
        assert [key for key, _ in partial.child(info).iter_prefix(b"")] == keys


def _two(*, lone_is_known: bool) -> PartialState:
    """Return a state with the keys 0x1000 and 0x11..., of which the second is known or not."""
    whole = State({b"\x10\x00": b"one", b"\x11\x00": bytes(40), b"\x20": bytes(60)}, engine="plain")
    keys = [b"\x10\x00", *([b"\x11"] if lone_is_known else [])]
    return PartialState(witness_of(whole, keys, {}))


def test_a_removal_that_needs_a_missing_sibling_is_refused_by_name() -> None:
    state = _two(lone_is_known=False)
    before = state.snapshot()
    with pytest.raises(MissingNode, match="at nibble path '11'"):
        state.kill(b"\x10\x00")
    with pytest.raises(MissingNode, match="at nibble path '11'"):
        state.top.clear_prefix(b"\x10")
    assert state.snapshot() == before


def test_what_keeps_a_branch_is_loaded_before_what_goes() -> None:
    state = _two(lone_is_known=False)
    state.put(b"\x10\x01", b"keeps the branch")
    state.kill(b"\x10\x00")
    before = state.snapshot()
    state.load(state.dump())
    assert state.snapshot() == before


def test_a_removal_beside_a_known_sibling_goes_on_although_its_value_is_missing() -> None:
    state, twin = _two(lone_is_known=True), State({b"\x11\x00": bytes(40), b"\x20": bytes(60)}, engine="plain")
    state.kill(b"\x10\x00")
    assert state.commit() == twin.root
    with pytest.raises(MissingNode, match="'1100'"):
        state.get(b"\x11\x00")


def test_long_values_of_version_0_stay_inline_when_their_node_moves() -> None:
    pairs = {b"\x10\x00": b"one", b"\x11\x00": bytes(90), b"\x20": bytes(60)}
    whole = State(pairs, state_version=StateVersion.V0, engine="plain")
    whole.migrate(StateVersion.V1)
    state = PartialState(witness_of(whole, list(pairs), {}))
    for it in (whole, state):
        it.kill(b"\x10\x00")
    assert state.commit() == whole.commit() != State({**pairs, b"\x10\x00": b"one"}).root
    for it in (whole, state):
        it.put(b"\x11\x00", bytes(90))
    assert state.commit() == whole.commit()


def test_a_child_trie_whose_entry_cannot_go_is_refused_when_it_is_sealed() -> None:
    names = [ChildInfo.new_default(bytes([0x10])), ChildInfo.new_default(bytes([0x11]))]
    whole = State({}, {name: {b"k": name.storage_key * 40} for name in names}, engine="plain")
    state = PartialState(witness_of(whole, [], {names[0]: [b"k"]}))
    state.child(names[0]).kill(b"k")
    before = state.snapshot()
    with pytest.raises(MissingNode):
        state.commit()
    assert (state.root, state.snapshot()) == (whole.root, before)


def test_changes_that_empty_a_child_trie_whose_entry_cannot_go_are_refused_before_anything_is_sealed() -> None:
    names = [ChildInfo.new_default(bytes([at])) for at in (0x10, 0x11, 0x20)]
    whole = State({}, {name: {b"k": name.storage_key * 40} for name in names}, engine="plain")
    state = PartialState(witness_of(whole, [], {names[0]: [b"k"], names[2]: [b"k"]}))
    before = state.snapshot(), state.root
    with pytest.raises(MissingNode):
        state.commit(changes={names[2]: {b"k": b"new"}, names[0]: {b"k": None}})
    assert (state.snapshot(), state.root) == before
    state.child(names[2]).put(b"k", b"new")
    for it in (whole, state):
        it.child(names[2]).put(b"k", b"new")
        it.commit()
    assert state.root == whole.root, "the refusal left nothing behind"


def test_a_child_trie_of_which_only_the_root_is_known_is_one_gap() -> None:
    whole = State({b"a": b"b"}, {CHILDREN[0]: {b"k": bytes(40)}}, engine="plain")
    state = PartialState(witness_of(whole, [CHILDREN[0].prefixed_storage_key()], {}))
    assert state.children() == [CHILDREN[0]]
    with pytest.raises(MissingNode):
        state.child(CHILDREN[0]).get(b"k")
    with pytest.raises(MissingNode):
        state.child(CHILDREN[0]).put(b"k", b"v")
    with pytest.raises(MissingNode):
        state.prove_child_read(state.root, CHILDREN[0], [b"k"])


def test_a_state_whose_root_is_missing_is_one_gap() -> None:
    state = PartialState(StateWitness(bytes(32), {}))
    for key in (b"", b"a"):
        with pytest.raises(MissingNode):
            state.get(key)


def test_states_that_left_the_window_are_discarded() -> None:
    whole = State({bytes([key]): bytes(40) for key in range(40)}, engine="plain")
    state = PartialState(witness_of(whole, [bytes([3])], {}), window=3)
    for number in range(5):
        state.put(bytes([3]), b"%d" % number * 40)
        state.commit()
    with pytest.raises(StateDiscarded):
        state.prove_read(whole.root, [bytes([3])])
    assert len(state.prove_read(state.root, [bytes([3])]))


def test_a_fork_takes_the_plain_engine_whatever_is_chosen() -> None:
    state = _two(lone_is_known=True)
    chosen: Engine = "array"
    state.engine = chosen
    assert [state.engine] == ["plain"]


def test_a_fork_loads_no_dump_of_a_whole_state_and_a_whole_state_none_of_a_fork() -> None:
    whole = State({b"\x10\x00": b"one", b"\x11\x00": bytes(40), b"\x20": bytes(60)}, engine="plain")
    fork = _two(lone_is_known=False)
    with pytest.raises(CheckpointRefused, match="a whole state, where this one has gaps"):
        fork.load(whole.dump())
    with pytest.raises(CheckpointRefused):
        whole.load(fork.dump())


@given(SEEDS)
def test_a_dump_is_the_same_after_it_was_written_down(seed: int) -> None:
    random = Random(seed)
    pair = Pair(random)
    for _ in range(3):
        pair.step(random)
    dump = pair.partial.dump()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(dump), type=StateDump) == dump
