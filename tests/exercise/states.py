"""States whose transactions roll back and whose roots leave the window, on arrays and on plain tries."""

from typing import TypeVar

from exercise.drawing import CHILD, Changes, Exercise
from exercise.outcomes import result
from relaycast_pallets import State
from relaycast_pallets.frame.state import commit_together
from relaycast_trie import CHILD_STORAGE_PREFIX, ChildInfo, CompactProof, Engine, StateVersion

ENGINES: tuple[Engine, Engine] = ("array", "plain")

Entry = TypeVar("Entry", bytes, bytes | None)


def ordinary(entries: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """Return what is no root of a child trie: a state writes those itself."""
    return {key: value for key, value in entries.items() if not key.startswith(CHILD_STORAGE_PREFIX)}


class Undone(Exception):
    """A transaction ends badly."""


def a_state_passes_blocks(draw: Exercise, window: int) -> None:
    """Blocks with transactions that roll back and roots that leave the window, on arrays and on plain tries."""
    top = ordinary(draw.pairs(20))
    array = State(top, {CHILD: top}, window=window, engine="array")
    plain = State(top, {CHILD: top}, window=window, engine="plain")
    roots = [plain.root]
    for block in range(4):
        changed, undone, wanted = draw.changes(top), draw.changes(top), draw.questions(top)
        for state in (array, plain):
            write(state, changed)
            try:
                with state.transaction():
                    write(state, undone)
                    raise Undone
            except Undone:
                state.commit()
            if block == 2:
                state.migrate(StateVersion.V0)
        roots.append(plain.root)
        assert array.root == plain.root
        for root in roots:
            assert result(array.prove_read, root, wanted) == result(plain.prove_read, root, wanted)
            below = [result(state.prove_child_read, root, CHILD, wanted) for state in (array, plain)]
            assert below[0] == below[1]
    assert {node_hash: array.db.get(node_hash) for node_hash in array.db} == {
        node_hash: plain.db.get(node_hash) for node_hash in plain.db
    }


def blocks_are_witnessed(draw: Exercise) -> None:
    """Blocks that are sealed with their witnesses, on arrays and on plain tries."""
    top = ordinary(draw.pairs(20))
    array, plain = (State(top, window=2, engine=engine) for engine in ENGINES)
    for _ in range(6):
        changed, wanted, root = ordinary(draw.changes(top)), set(draw.questions(top)), plain.root
        proofs = []
        for state in (array, plain):
            write(state, changed, children=())
            proofs += commit_together([(state, wanted)])
        assert array.root == plain.root
        assert proofs[0].nodes == proofs[1].nodes
        assert not proofs[1].nodes or proofs[0].compacted() in {None, CompactProof.encode(proofs[1], root).to_bytes()}


def write(state: State, changed: Changes, *, children: tuple[ChildInfo, ...] = (CHILD,)) -> None:
    for storage in (state.top, *map(state.child, children)):
        for key, value in ordinary(changed).items():
            if value is None:
                storage.kill(key)
            else:
                storage.put(key, value)
