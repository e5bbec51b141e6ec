"""A state put away as data and taken over by another: it goes on as if it had come there by the same blocks."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pallets.test_state_engines import NAMES, Block, answers, blocks, counts_in_the_end, loaded_from, nodes, step
from relaycast_pallets import State
from relaycast_pallets.frame.state import StateDump
from relaycast_trie import ChildInfo, StateVersion
from relaycast_trie.engine import Engine
from relaycast_xcm.checkpoint import CheckpointRefused
from searches import examples
from strategies import Pairs, pairs, state_versions

ENGINES: list[Engine] = ["plain", "array"]
BIG = b"\x01" * 40
"""Long enough to stand outside of its node in version 1."""


@given(pairs, pairs, blocks, blocks, state_versions, st.integers(1, 5), st.sampled_from(ENGINES))
@settings(max_examples=examples(60))
def test_a_loaded_state_goes_on_as_the_one_that_was_put_away(
    top: Pairs,
    child: Pairs,
    before: list[Block],
    after: list[Block],
    version: StateVersion,
    window: int,
    engine: Engine,
) -> None:
    """Nobody asks for an older state until the end: then the blocks that were loaded are gone through late."""
    state = State(top, {NAMES[0]: child}, state_version=version, window=window, engine=engine)
    roots = [state.root]
    for block in before:
        state = step(state, block)
        roots.append(state.root)
    again, asked_backwards = loaded_from(state), loaded_from(state)
    assert again.dump() == state.dump()
    for block in after:
        state, again, asked_backwards = step(state, block), step(again, block), step(asked_backwards, block)
        roots.append(state.root)
        assert again.root == state.root
    assert again.snapshot() == state.snapshot()
    assert again.dump() == state.dump()
    assert list(answers(again, roots)) == list(answers(state, roots))
    assert list(answers(asked_backwards, roots[::-1])) == list(answers(state, roots[::-1]))
    assert nodes(again) == nodes(state)
    assert nodes(asked_backwards) == nodes(state)
    assert counts_in_the_end(again) == counts_in_the_end(state) == counts_in_the_end(asked_backwards)


@given(pairs, pairs, blocks, state_versions, st.integers(1, 4))
@settings(max_examples=examples(40))
def test_a_dump_does_not_depend_on_the_engine(
    top: Pairs, child: Pairs, session: list[Block], version: StateVersion, window: int
) -> None:
    dumps = []
    for engine in ENGINES:
        state = State(top, {NAMES[0]: child}, state_version=version, window=window, engine=engine)
        for block in session:
            state = step(state, block)
        dumps.append(state.dump())
    assert dumps[0] == dumps[1]


def sealed(*, blocks: int = 5, engine: Engine = "plain", window: int = 4) -> State:
    """Return a state with a child trie, of which each block changes something."""
    state = State({b"fixed": BIG}, {NAMES[0]: {b"key": BIG}}, window=window, engine=engine)
    for number in range(blocks):
        state.put(b"number", bytes([number]))
        state.child(NAMES[0]).put(b"key", bytes([number]) * 40)
        state.child(NAMES[1]).put(bytes([number]), BIG)
        state.commit()
    return state


@pytest.mark.parametrize("engine", ENGINES)
def test_references_are_counted_as_if_the_state_had_come_here_itself(engine: Engine) -> None:
    state = sealed(engine="plain")
    again = State(window=4, engine=engine)
    again.load(state.dump())
    assert again.db.references() == state.db.references()


@pytest.mark.parametrize("engine", ENGINES)
def test_older_states_are_put_together_when_they_are_asked_for(engine: Engine) -> None:
    state = sealed(engine=engine)
    oldest = state.dump().oldest
    again = loaded_from(state)
    assert again._history.unbuilt == 3
    again.prove_read(again.root, [b"number"])
    assert again._history.unbuilt == 3, "the newest state needs none"
    again.prove_read(again.dump().blocks[1].root, [b"number"])
    assert again._history.unbuilt == 2, "no more than what was asked for"
    proof = again.prove_child_read(oldest, NAMES[0], [b"key"])
    assert proof.verify_child(oldest, NAMES[0], [b"key"])[b"key"] == bytes([1]) * 40
    assert again._history.unbuilt == 0


def test_what_was_written_since_the_last_seal_is_put_away_too() -> None:
    state = sealed()
    state.put(b"number", b"open")
    state.child(NAMES[0]).kill(b"key")
    state.child(ChildInfo(b"new")).put(b"key", b"value")
    again = loaded_from(state)
    assert again.snapshot() == state.snapshot()
    assert again.dump() == state.dump()
    assert again.commit() == state.commit()
    assert again.dump() == state.dump()


def test_storages_stay_the_same_objects() -> None:
    state, again = sealed(), State({b"old": BIG}, {NAMES[2]: {b"old": BIG}}, window=4)
    top, gone, held = again.top, again.child(NAMES[2]), again.child(NAMES[0])
    assert again.next_key(b"a") == b"old"
    again.load(state.dump())
    assert again.top is top
    assert again.child(NAMES[0]) is held
    assert [key for key, _ in again.iter_prefix(b"") if not key.startswith(b":")] == [b"fixed", b"number"]
    assert len(gone) == 0
    assert again.children() == NAMES[:2]


def test_nothing_is_put_away_inside_a_transaction() -> None:
    state = sealed()
    with state.transaction(), pytest.raises(ValueError, match="inside a transaction"):
        state.dump()


def test_a_smaller_window_keeps_the_newest_states() -> None:
    state, again = sealed(), State(window=2)
    again.load(state.dump())
    roots = [state.dump().oldest, *(block.root for block in state.dump().blocks)]
    assert [root in again._history for root in roots] == [False, False, True, True]
    assert again.db.get(roots[2]) is not None


GOOD = sealed().dump()
TOP, CHILD = GOOD.tries[0], GOOD.tries[1]


@pytest.mark.parametrize(
    ("dump", "reason"),
    [
        (replace(GOOD, tries=GOOD.tries[1:]), "a state has the root"),  # a trie is missing
        (replace(GOOD, tries=[TOP, replace(CHILD, values=[b"other"])]), "a state has the root"),
        (replace(GOOD, blocks=GOOD.blocks[::-1]), "a state has the root"),  # another block is the last one
        (replace(GOOD, state_version=StateVersion.V0, tries=[replace(TOP, inline=[0])]), "a state has the root"),
        (replace(GOOD, tries=[replace(TOP, keys=TOP.keys[:1])]), "the top trie: 1 keys with 2 values"),
        (replace(GOOD, tries=[replace(CHILD, inline=[1])]), r"child trie 0x6f6e65: list index out of range"),
        (replace(GOOD, tries=[replace(TOP, keys=[b"fixed", b":child_storage:default:one"])]), "names a child trie"),
        (replace(GOOD, unsealed=[replace(GOOD.blocks[0].replaced[0], values=[])]), "the top trie: 1 keys with 0"),
        (
            replace(GOOD, unsealed=[replace(GOOD.blocks[0].replaced[0], keys=[b":child_storage:default:one"])]),
            "what is not sealed: 0x.* names a child trie",
        ),
    ],
)
def test_a_dump_that_no_state_has_written_is_refused(dump: StateDump, reason: str) -> None:
    with pytest.raises(CheckpointRefused, match=reason):
        State(window=4).load(dump)


def forged(**changed: Any) -> StateDump:
    """Return a dump whose second block replaced something else."""
    first, second, *others = GOOD.blocks
    return replace(GOOD, blocks=[first, replace(second, **changed), *others])


@pytest.mark.parametrize(
    "dump",
    [
        replace(GOOD, oldest=bytes(32)),
        forged(root=bytes(32)),
        forged(replaced=[]),
        forged(replaced=[replace(GOOD.blocks[1].replaced[0], values=[b"other"])]),
        forged(replaced=[replace(GOOD.blocks[1].replaced[0], keys=[b":child_storage:default:one"])]),
        forged(replaced=[replace(GOOD.blocks[1].replaced[0], keys=[b":child_storage:default:none"])]),
        forged(state_version=StateVersion.V0),
    ],
)
def test_a_forged_history_is_refused_when_an_older_state_is_asked_for(dump: StateDump) -> None:
    state = State(window=4)
    state.load(dump)
    state.prove_read(state.root, [b"number"])
    with pytest.raises(CheckpointRefused, match="before it"):
        len(state.db)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("state_version", 2, r"\$.state_version"),
        ("oldest", bytes(31), r"length >= 32 - at `\$.oldest`"),
        ("tries", [[None, [b"key"], ["text"], []]], r"\$.tries\[0\]\[2\]\[0\]"),
        ("tries", [[None, [b"key"], [b"value"], [-1]]], r">= 0 - at `\$.tries\[0\]\[3\]\[0\]"),
        ("tries", [[None, [b"key"], [b"value"], [], 1]], "length 4, got 5"),
        ("tries", [[None, [b"key"], [None], []]], "got `None`"),  # only what a block replaced may be nothing
        ("blocks", [[bytes(33), 1, []]], "length <= 32"),
        ("more", 1, "unknown field `more`"),
    ],
)
def test_what_is_no_dump_does_not_decode(field: str, value: object, reason: str) -> None:
    plain = msgspec.to_builtins(GOOD, builtin_types=(bytes,))
    with pytest.raises(msgspec.ValidationError, match=reason):
        msgspec.msgpack.decode(msgspec.msgpack.encode(plain | {field: value}), type=StateDump)
