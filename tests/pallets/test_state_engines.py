"""A state on array tries holds what it holds on plain ones: roots, proofs of every block kept, and all nodes."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaycast_pallets import State, StateDiscarded
from relaycast_pallets.frame import tries as choice_module
from relaycast_pallets.frame.state import StateDump, commit_together
from relaycast_pallets.frame.tries import ArrayTries, EngineChoice, PlainTries
from relaycast_trie import ChildInfo, StateVersion, StorageProof, blake2_256
from relaycast_trie.engine import Engine
from relaycast_trie.plain.trie_db import Recorder
from searches import examples
from strategies import STOCK, Changes, Pairs, changes, pairs, state_versions

NAMES = [ChildInfo(b"one"), ChildInfo(b"two"), ChildInfo(b"three")]
QUESTIONS = STOCK[::9]

blocks = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([None, *NAMES]), changes, max_size=4),
        st.dictionaries(st.sampled_from([None, *NAMES]), changes, max_size=2),
        st.sampled_from([None, None, None, *StateVersion]),
        st.sampled_from(["go on", "go on", "look", "load", "empty a child"]),
    ),
    max_size=8,
)
Block = tuple[dict[ChildInfo | None, Changes], dict[ChildInfo | None, Changes], StateVersion | None, str]


class Undone(Exception):
    """Something goes wrong inside a transaction."""


def write(state: State, changed: dict[ChildInfo | None, Changes]) -> None:
    for name, some in changed.items():
        storage = state.top if name is None else state.child(name)
        for key, value in some:
            if value is None:
                storage.kill(key)
            else:
                storage.put(key, value)


def undo(state: State, changed: dict[ChildInfo | None, Changes]) -> None:
    """Write inside a transaction that fails."""
    with state.transaction():
        write(state, changed)
        raise Undone


def write_block(state: State, block: Block) -> None:
    """Do what a block does, but for sealing it."""
    wanted, undone, version, deed = block
    if version is not None:
        state.migrate(version)
    with pytest.raises(Undone):
        undo(state, undone)
    write(state, wanted)
    if deed == "empty a child":
        state.child(NAMES[0]).clear_prefix(b"")


def step(state: State, block: Block) -> State:
    """Let a block pass; the state goes on in what is returned."""
    write_block(state, block)
    state.commit()
    if block[3] == "look":
        len(state.db)
    return loaded_from(state) if block[3] == "load" else state


def loaded_from(state: State) -> State:
    """Return a fresh state that was given what ``state`` puts away, as a file has it."""
    other = State({b"other": b"value"}, {NAMES[1]: {b"key": bytes(40)}}, window=state.window, engine=state.engine)
    other.load(msgspec.msgpack.decode(msgspec.msgpack.encode(state.dump()), type=StateDump))
    return other


def answers(state: State, roots: list[bytes]) -> Iterator[object]:
    """Yield what can be asked of a state: is each root kept, and which nodes prove some keys under it."""
    for root in roots:
        try:
            yield state.prove_read(root, QUESTIONS).nodes
            yield [state.prove_child_read(root, name, QUESTIONS).nodes for name in NAMES]
        except StateDiscarded:
            yield "discarded"


def nodes(state: State) -> dict[bytes, bytes | None]:
    """Return the database as whoever looks sees it."""
    return {node_hash: state.db.get(node_hash) for node_hash in state.db}


def counts_in_the_end(state: State) -> dict[bytes, int]:
    """Return how often everything is used once the window is over; until then a value that moves may count twice."""
    for _ in range(state.window):
        state.commit()
    return state.db.references()


@given(pairs, pairs, blocks, state_versions, st.integers(1, 4))
@settings(max_examples=examples(60))
def test_array_tries_answer_as_plain_ones_do(
    top: Pairs, child: Pairs, session: list[Block], version: StateVersion, window: int
) -> None:
    plain = State(top, {NAMES[0]: child}, state_version=version, window=window, engine="plain")
    array = State(top, {NAMES[0]: child}, state_version=version, window=window, engine="array")
    roots = [plain.root]
    for block in session:
        plain, array = step(plain, block), step(array, block)
        roots.append(plain.root)
        assert array.root == plain.root
        assert list(answers(array, roots)) == list(answers(plain, roots))
    assert array.snapshot() == plain.snapshot()
    assert nodes(array) == nodes(plain)
    assert counts_in_the_end(array) == counts_in_the_end(plain)


@given(pairs, blocks, st.integers(1, 4), st.lists(st.booleans(), min_size=8, max_size=8), st.booleans())
@settings(max_examples=examples(60))
def test_moving_between_engines_changes_nothing(
    top: Pairs, session: list[Block], window: int, moves: list[bool], looked: bool
) -> None:
    """At every block the state may go to the other engine, with older blocks, mixed versions and shown nodes."""
    plain = State(top, window=window, engine="plain")
    moving = State(top, window=window, engine="plain")
    if looked:
        assert len(moving.db) == len(plain.db)
    db, roots = moving.db if looked else None, [plain.root]
    for block, moves_now in zip(session, moves, strict=False):
        plain, moving = step(plain, block), step(moving, block)
        if moves_now:
            moving._move()
        roots.append(plain.root)
        assert moving.root == plain.root
        assert list(answers(moving, roots)) == list(answers(plain, roots))
        if db is not None and block[3] != "load":
            assert nodes(moving) == nodes(plain)
        db = None if db is None else moving.db
    assert nodes(moving) == nodes(plain)
    assert counts_in_the_end(moving) == counts_in_the_end(plain)


@given(
    st.lists(st.tuples(pairs, st.integers(1, 3), blocks), min_size=2, max_size=4),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.sampled_from(["array", "auto"]),
)
@settings(max_examples=examples(60))
def test_states_sealed_together_are_those_sealed_alone(
    worlds: list[tuple[Pairs, int, list[Block]]], moves: list[bool], engine: Engine
) -> None:
    """Each with its own window and version, with child tries or none, shown or not, loaded, undone."""
    choice = EngineChoice(engine)
    together = [State(top, window=window, engine=choice) for top, window, _ in worlds]
    alone = [State(top, window=window, engine="plain") for top, window, _ in worlds]
    roots = [[state.root] for state in alone]
    for number, moves_now in enumerate(moves):
        for at in [at for at, state in enumerate(together) if moves_now and engine == "auto"]:
            together[at]._move()
        sealing, proofs = list[int](), list[StorageProof]()
        for at, (_, _, session) in enumerate(worlds):
            if number < len(session):
                sealing.append(at)
                for state in (together[at], alone[at]):
                    write_block(state, session[number])
                recorder = Recorder()
                alone[at].commit(reads={None: QUESTIONS[:number]}, recorder=recorder)
                proofs.append(StorageProof.of_recorded(recorder.nodes))
        assert commit_together([(together[at], QUESTIONS[:number]) for at in sealing]) == proofs
        for at in sealing:
            roots[at].append(alone[at].root)
            if worlds[at][2][number][3] == "look":
                assert nodes(together[at]) == nodes(alone[at])
            elif worlds[at][2][number][3] == "load":
                together[at].load(together[at].dump())
        for at, (shared, own) in enumerate(zip(together, alone, strict=True)):
            assert shared.root == own.root
            assert list(answers(shared, roots[at])) == list(answers(own, roots[at]))
            assert shared.dump() == own.dump()


def test_a_database_once_shown_stays_the_same_object_and_full() -> None:
    state = State({bytes([number]): bytes(40) for number in range(64)}, window=2, engine="plain")
    db = state.db
    state._move()
    for number in range(4):
        state.put(bytes([number]), bytes([number]) * 40)
        assert db.get(state.commit()) is not None
        assert db is state.db
    state._move()
    assert db is state.db


def test_two_publishers_with_equal_tries_stay_provable_when_one_changes() -> None:
    state = State(window=1, engine="array")
    state.commit()
    for name in NAMES[:2]:
        state.child(name).put(b"key", bytes(40))
    state.commit()
    state.child(NAMES[1]).put(b"key", bytes(41))
    root = state.commit()
    proof = state.prove_child_read(root, NAMES[0], [b"key"])
    assert proof.verify_child(root, NAMES[0], [b"key"])[b"key"] == bytes(40)


def seal(state: State, *, blocks: int, changed: int) -> None:
    for block in range(blocks):
        for number in range(changed):
            state.child(NAMES[0]).put(blake2_256(b"%d" % number), b"%d" % block)
        state.commit()


def kind(state: State) -> type:
    return type(state._tries)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels count as loaded, or not: as another test of this process left it does not matter."""
    monkeypatch.setattr(choice_module, "kernels_are_loaded", lambda: True)


@pytest.mark.usefixtures("loaded")
def test_a_state_that_seals_much_goes_to_arrays_and_one_that_seals_little_comes_back() -> None:
    state, plain = State(window=4), State(window=4, engine="plain")
    assert kind(state) is PlainTries
    for blocks, changed, wanted in ((3, 200, ArrayTries), (400, 1, PlainTries), (3, 200, ArrayTries)):
        for one in (state, plain):
            seal(one, blocks=blocks, changed=changed)
        assert kind(state) is wanted
        assert state.root == plain.root
        assert nodes(state) == nodes(plain)


@pytest.mark.usefixtures("loaded")
def test_seals_that_alternate_between_much_and_little_do_not_throw_a_state_back_and_forth() -> None:
    state, moves = State(), 0
    for _ in range(40):
        before = kind(state)
        seal(state, blocks=1, changed=120)
        seal(state, blocks=1, changed=1)
        moves += kind(state) is not before
    assert moves == 1


def seals_until_it_moves(choice: EngineChoice) -> int:
    sealed = 0
    while not choice.moves(in_arrays=False, keys=lambda: 1_000):
        choice.note(10, 100, in_arrays=False)
        sealed += 1
    return sealed


def test_kernels_are_loaded_when_work_as_long_as_that_has_been_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "kernels_are_loaded", lambda: False)
    monkeypatch.setattr(choice_module, "kernels_are_compiled", lambda: True)
    choice = EngineChoice("auto")
    assert 100 < seals_until_it_moves(choice) < 1_000
    assert not choice.loads_in_arrays(10_000)
    assert choice.loads_in_arrays(1_000_000)


def test_kernels_that_nobody_has_compiled_yet_are_waited_for_by_long_work_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice_module, "kernels_are_loaded", lambda: False)
    monkeypatch.setattr(choice_module, "kernels_are_compiled", lambda: False)
    choice = EngineChoice("auto")
    assert 5_000 < seals_until_it_moves(choice) < 20_000
    assert not choice.loads_in_arrays(1_000_000)
    assert choice.loads_in_arrays(10_000_000)


@pytest.mark.usefixtures("loaded")
def test_states_that_are_sealed_together_go_to_arrays_together_and_stay_there() -> None:
    choice = EngineChoice("auto")
    states, kinds = [State(engine=choice) for _ in range(5)], []
    for block in range(30):
        for state in states:
            state.put(b"key", b"%d" % block)
            for number in range(20):
                state.put(b"%d" % number, b"%d" % block)
        commit_together([(state, []) for state in states])
        kinds.append([kind(state) for state in states])
    assert kinds[-1] == [ArrayTries] * 5
    assert sum(len(set(them)) > 1 for them in kinds) <= 1


@pytest.mark.parametrize("engine", ["plain", "array"])
def test_a_forced_engine_stays(engine: "str") -> None:
    state = State({b"key": b"value"}, engine=engine)  # type: ignore[arg-type]
    wanted = ArrayTries if engine == "array" else PlainTries
    assert kind(state) is wanted
    seal(state, blocks=30, changed=40)
    seal(state, blocks=300, changed=1)
    assert kind(state) is wanted
    thawed = loaded_from(state)
    seal(thawed, blocks=1, changed=2)
    assert kind(thawed) is wanted


@pytest.mark.usefixtures("loaded")
def test_another_engine_holds_from_the_next_block_on() -> None:
    state, plain = State(window=4, engine="plain"), State(window=4, engine="plain")
    for engine, wanted in (("array", ArrayTries), ("plain", PlainTries), ("auto", PlainTries)):
        state.engine = engine  # type: ignore[assignment]
        assert state.engine == engine
        for one in (state, plain):
            seal(one, blocks=2, changed=1)
        assert kind(state) is wanted
        assert nodes(state) == nodes(plain)


@pytest.mark.usefixtures("loaded")
def test_the_engine_that_is_chosen_already_forgets_nothing() -> None:
    state = State(window=4)
    for _ in range(3):
        state.engine = "auto"
        seal(state, blocks=1, changed=60)
    assert kind(state) is ArrayTries


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="auto, plain, array"):
        State(engine="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="auto, plain, array"):
        State().engine = "fast"  # type: ignore[assignment]
