"""Whole states and witnesses of parts of them, at random, and one change or question after another to both."""

from collections.abc import Callable
from random import Random

from relaycast_pallets.frame.partial_state import PartialState
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.storage import OverlayStorage
from relaycast_trie import ChildInfo, MissingNode, StateVersion, StorageProof
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.plain.partial_trie import StateWitness

CHILDREN = [ChildInfo.new_default(name) for name in (b"pubsub\x01", b"pubsub\x02", b"z")]
SIZES = (0, 1, 3, 31, 32, 33, 40, 90)


def random_key(random: Random) -> bytes:
    """Return a short key of few letters, so that keys share their beginnings."""
    return bytes(random.choice((0x00, 0x01, 0x10, 0x11, 0xF0)) for _ in range(random.randrange(1, 5)))


def random_state(random: Random) -> State:
    """Return a state with child tries, long values of which stand inside of their nodes or outside."""

    def held(most: int) -> dict[bytes, bytes]:
        return {random_key(random): random.randbytes(random.choice(SIZES)) for _ in range(random.randrange(most))}

    children = {info: held(12) for info in CHILDREN if random.random() < 0.7}
    state = State(held(40), children, state_version=random.choice(list(StateVersion)), engine="plain", window=4)
    state.migrate(StateVersion.V1)
    return state


def witness_of(state: State, top: list[bytes], children: dict[ChildInfo, list[bytes]]) -> StateWitness:
    """Return what proofs of these keys hold of a state."""
    proofs = [state.prove_read(state.root, top)]
    proofs += [state.prove_child_read(state.root, info, keys) for info, keys in children.items()]
    return StateWitness.of_nodes(state.root, StorageProof.merge(proofs))


def random_witness(random: Random, state: State) -> StateWitness:
    """Return a witness of a few keys, of those that are there and others."""

    def some(values: list[bytes], most: int) -> list[bytes]:
        known = random.sample(values, min(len(values), random.randrange(most)))
        return [*known, *(random_key(random) for _ in range(random.randrange(4)))]

    top = [key for key in sorted(state.top.values) if not key.startswith(CHILD_STORAGE_PREFIX)]
    below = {info: some(sorted(state.child(info).values), 8) for info in CHILDREN if random.random() < 0.7}
    return witness_of(state, some(top, 24), below)


class Pair:
    """A whole state and a fork of it that knows a part."""

    def __init__(self, random: Random) -> None:
        self.whole = random_state(random)
        self.partial = PartialState(random_witness(random, self.whole), window=4)
        self.refused = self.answered = 0

    def both(self, act: Callable[[State], object]) -> None:
        """Let both do something: the fork does the same, or refuses by name and stays as it was."""
        before = self.partial.snapshot(), self.partial.root
        try:
            found = act(self.partial)
        except MissingNode:
            assert (self.partial.snapshot(), self.partial.root) == before
            self.refused += 1
            return
        self.answered += 1
        assert found == act(self.whole)

    def step(self, random: Random) -> None:
        """Change something, or ask something."""
        info = random.choice([None, None, *CHILDREN])
        known = sorted(self.whole.top.values if info is None else self.whole.child(info).values)
        known = [key for key in known if not key.startswith(CHILD_STORAGE_PREFIX)]
        key = random.choice(known) if known and random.random() < 0.6 else random_key(random)
        value = random.randbytes(random.choice(SIZES))
        start = random.choice([None, random_key(random)])
        prefix = key[: random.randrange(info is None, 3)]

        def storage(state: State) -> OverlayStorage:
            return state.top if info is None else state.child(info)

        acts: list[Callable[[State], object]] = [
            lambda state: storage(state).get(key),
            lambda state: storage(state).exists(key),
            lambda state: storage(state).next_key(key),
            lambda state: list(storage(state).iter_prefix(prefix, start_after=start)),
            lambda state: storage(state).count_prefix(prefix),
            lambda state: set(self._proof(state, info, key)),
        ]
        changes: list[Callable[[State], object]] = [
            lambda state: storage(state).put(key, value),
            lambda state: storage(state).put(key, value),
            lambda state: storage(state).kill(key),
            lambda state: storage(state).kill(key),
            lambda state: storage(state).clear_prefix(prefix),
        ]
        self.both(random.choice(acts if random.random() < 0.4 else changes))

    @staticmethod
    def _proof(state: State, info: ChildInfo | None, key: bytes) -> StorageProof:
        return state.prove_read(state.root, [key]) if info is None else state.prove_child_read(state.root, info, [key])

    def seal(self) -> bool:
        """Seal both and return whether the fork could: a child trie may not be able to go."""
        before = self.partial.snapshot(), self.partial.root
        try:
            root = self.partial.commit()
        except MissingNode:
            assert (self.partial.snapshot(), self.partial.root) == before
            return False
        assert root == self.whole.commit()
        return True

    def store_and_load(self) -> None:
        """Let the fork go on from its own dump."""
        before = self.partial.snapshot(), self.partial.root
        self.partial.load(self.partial.dump())
        assert (self.partial.snapshot(), self.partial.root) == before


def play(seed: int, *, blocks: int = 6, steps: int = 8) -> Pair:
    """Play one random history to its end."""
    random = Random(seed)
    pair = Pair(random)
    for _ in range(blocks):
        for _ in range(random.randrange(steps)):
            pair.step(random)
        if random.random() < 0.2:
            pair.store_and_load()
        if not pair.seal():
            break
    return pair
