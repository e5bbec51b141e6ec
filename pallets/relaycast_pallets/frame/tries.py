"""The tries under a state: what a block changes goes in, roots and proofs come out.

Plain tries work key by key on a database of nodes and begin at once. Array tries take all changes of a block together,
once the compiled kernels are loaded, and fill the database only when it is asked for. Roots, proofs and the database
are the same. ``EngineChoice`` says when moving from one to the other pays: as soon as the time lost by staying would
pay for the move. That bounds the total at twice the best in hindsight, and a state that seals little never waits for
the compiler. Only counts decide, and what lies compiled on disk, no clock.
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from relaycast_trie.child_info import ChildInfo
from relaycast_trie.engine import (
    Engine,
    array_engine,
    arrays_are_at_hand,
    check_engine,
    kernels_are_compiled,
    kernels_are_loaded,
    kernels_can_be_compiled,
)
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.build import build_trie
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.trie_db import NodeRecorder
from relaycast_trie.plain.trie_update import update_trie
from relaycast_trie.proofs.storage_proof import StorageProof

if TYPE_CHECKING:
    from relaycast_trie.array.forest import ArrayForest, Sealing

PLAIN_US_A_TRIE, PLAIN_US_A_KEY = 15, 25
"""What a seal takes for every trie and for every key that it changes, with plain tries."""

LOOKS_A_KEY = 3
"""As many keys that a block only looks at take what one takes that it changes."""

ARRAY_US_A_SEAL, ARRAY_US_A_KEY = 38, 3
"""The same with array tries, which take all tries together."""

LOAD_US = 500_000
"""What loading the kernels takes, where this process has not done it."""

COMPILE_US = 30_000_000
"""What compiling them takes before that, where no earlier run has done it: CPU time, and more on a busy machine."""

PLAIN_LOAD_US_A_KEY, ARRAY_LOAD_US_A_KEY = 6, 2
"""What reading a key into tries takes. Going to arrays reads all keys; going back reads none."""


class EngineChoice:
    """What states that are sealed together have sealed, weighed against what they would have taken otherwise."""

    def __init__(self, engine: Engine) -> None:
        check_engine(engine)
        self.engine = engine
        self.states = 0
        """How many states share the choice, and the time of a seal."""

        self.forest: ArrayForest | None = None
        """One of the forests of these states: the others stand beside it."""

        self._in_arrays = False
        self._lost_us = 0.0

    def choose(self, engine: Engine) -> None:
        """Take another choice."""
        check_engine(engine)
        if engine != self.engine:
            self.engine, self._lost_us = engine, 0.0
            self._in_arrays = engine == "array" or (engine == "auto" and self._in_arrays)

    def note(self, tries: int, keys: int, *, in_arrays: bool) -> None:
        """Count a seal of one state with its number of changed ``keys`` and of ``tries``.

        A state that has yet to follow the others has nothing to say.
        """
        if self._has_to_follow(in_arrays=in_arrays):
            return
        plain = PLAIN_US_A_TRIE * tries + PLAIN_US_A_KEY * keys
        gain = plain - (ARRAY_US_A_SEAL / max(1, self.states) + ARRAY_US_A_KEY * keys)
        self._lost_us = max(0.0, self._lost_us + (-gain if in_arrays else gain))

    def loads_in_arrays(self, keys: int) -> bool:
        """Return whether that many keys are better read into arrays."""
        gain = (PLAIN_LOAD_US_A_KEY - ARRAY_LOAD_US_A_KEY) * keys
        loads = self.engine == "array" or (self.engine == "auto" and gain > _price() and arrays_are_at_hand())
        self._in_arrays |= loads
        return loads

    def moves(self, *, in_arrays: bool, keys: Callable[[], int]) -> bool:
        """Return whether tries with that many ``keys`` change engine now; they go back only when that pays too.

        What one state does the others do after it.
        """
        if self.engine != "auto":
            return self.engine == "array" and not in_arrays
        if self._has_to_follow(in_arrays=in_arrays):
            return True
        if self._lost_us <= _price() or self._lost_us <= _price() + ARRAY_LOAD_US_A_KEY * max(1, self.states) * keys():
            return False
        if not in_arrays and not arrays_are_at_hand():
            return False
        self._lost_us, self._in_arrays = 0.0, not in_arrays
        return True

    def _has_to_follow(self, *, in_arrays: bool) -> bool:
        """Return whether a state does not stand where the first of those that share the choice went."""
        return self.states > 1 and in_arrays != self._in_arrays


def _price() -> float:
    if not kernels_can_be_compiled():
        return math.inf
    if kernels_are_loaded():
        return 0
    return LOAD_US if kernels_are_compiled() else LOAD_US + COMPILE_US


Name = ChildInfo | None
"""A child trie, or the top trie."""

Changes = Mapping[bytes, bytes | None]
"""New values by key; ``None`` removes."""

Keys = Mapping[Name, Collection[bytes]]
NO_KEYS: Keys = MappingProxyType({})


class WitnessRequest(Struct, frozen=True):
    """What a block asks of a trie before it changes it; the ``recorder`` learns which nodes that and the change take.

    Of the keys ``seeks`` no value is asked for: whether there is one, or which key comes next.
    """

    recorder: NodeRecorder
    reads: Collection[bytes] = ()
    seeks: Collection[bytes] = ()


Contents = Mapping[Name, Mapping[bytes, bytes]]
"""All that tries hold, by trie."""

Inline = dict[Name, set[bytes]]
"""Keys of long values that stand in their nodes, by trie: what was written in version 0."""


class PlainTries:
    """Tries in a database, by name. A block is one ``seal`` or several, and a ``close``.

    ``dropped`` are the hashes that leave the database with each of the blocks to come.
    """

    def __init__(
        self,
        db: MemoryDB,
        state_version: StateVersion,
        window: int,
        roots: Mapping[Name, bytes] | None = None,
        dropped: Sequence[bytes] = (),
    ) -> None:
        self.db = db
        self.state_version = state_version
        self.dropped = deque(dropped)
        self._window = window
        self._open: list[bytes] = []
        self.roots = dict(roots or {})

    def root(self, name: Name) -> bytes:
        """Return the root of a trie as it was sealed last; a trie that was never written to is empty."""
        return self.roots.get(name, self.db.null_hash)

    def fill(self, contents: Contents, inline: Inline) -> None:
        """Write all that tries hold into tries that were empty; no block."""
        _fill(self, contents, inline)
        self.db.remove_all(b"".join(self._open))
        self._open.clear()

    def recall(self, past: "PlainTries") -> None:
        """Be able to prove from what was before these tries were filled: ``past`` went from there to what they held."""
        for dropped in reversed(past.dropped):
            hashes = _hashes(dropped)
            self.db.emplace_all(hashes, _nodes(past.db, hashes))
            self.dropped.appendleft(dropped)

    def seal(self, changes: Mapping[Name, Changes], request: WitnessRequest | None = None) -> None:
        """Write changes, no trie twice in a block; the ``request`` is made of each of these tries."""
        for name, changed in changes.items():
            if name in self.roots:
                self.roots[name] = self._change(name, changed, request)
                continue
            held = {key: value for key, value in changed.items() if value is not None}
            self.roots[name] = build_trie(held, self.db.emplace, state_version=self.state_version)

    def _change(self, name: Name, changed: Changes, request: WitnessRequest | None) -> bytes:
        root, reads, seeks, recorder = self.roots[name], *_of_trie(name, self.roots[name], request)
        update = update_trie(
            self.db, root, changed, reads=reads, seeks=seeks, state_version=self.state_version, recorder=recorder
        )
        self.db.emplace_all(update.hashes, update.nodes)
        self._open += update.dropped
        return update.root

    def close(self) -> None:
        """End a block: of the oldest one that can be read, what only it reads is dropped if there are too many."""
        self.dropped.append(b"".join(self._open))
        self._open.clear()
        while len(self.dropped) >= self._window:
            self.db.remove_all(self.dropped.popleft())

    def show(self) -> None:
        """Let the database hold all nodes from now on: it always does."""

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof:
        """Prove keys of a trie with this ``root``, as it is or was in one of the blocks that can be read."""
        return StorageProof.generate(self.db, root, keys)

    def prove_child(self, root: bytes, child_info: ChildInfo, keys: Sequence[bytes]) -> StorageProof:
        """Prove keys of a child trie and the way to its root in the top trie with this ``root``."""
        return StorageProof.generate_child(self.db, root, child_info, keys)


class ArrayTries:
    """Tries in a forest of arrays that go on where plain tries with the same ``contents`` stand; see ``PlainTries``.

    Unless it is ``shown``, the database holds nothing but what the plain tries left there, for as long as that can be
    read. States that share a ``choice`` stand in the same tables.
    """

    def __init__(
        self,
        plain: PlainTries,
        window: int,
        contents: Contents,
        inline: Inline,
        *,
        choice: EngineChoice,
        shown: bool = False,
    ) -> None:
        self.db = plain.db
        self.shown = False
        self._window = window
        self._before = PlainTries(plain.db, plain.state_version, window, dropped=plain.dropped)
        forest: type[ArrayForest] = array_engine("forest").ArrayForest
        self._forest = forest(state_version=plain.state_version, window=window, beside=choice.forest)
        choice.forest = self._forest
        self._numbers: dict[Name, int] = {}
        self.fill({name: contents[name] for name in plain.roots}, inline)
        assert self.roots == plain.roots, "the tries differ from their database"
        self.shown = shown

    @property
    def state_version(self) -> StateVersion:
        return self._forest.state_version

    @state_version.setter
    def state_version(self, state_version: StateVersion) -> None:
        self._forest.state_version = state_version

    @property
    def roots(self) -> dict[Name, bytes]:
        return {name: self._forest.root(number) for name, number in self._numbers.items()}

    def root(self, name: Name) -> bytes:
        number = self._numbers.get(name)
        return self.db.null_hash if number is None else self._forest.root(number)

    def seal(self, changes: Mapping[Name, Changes], request: WitnessRequest | None = None) -> None:
        if request is not None:
            for name in changes:
                self._record(name, changes[name], request)
        numbered = {self._number(name): changed for name, changed in changes.items()}
        self.db.emplace_all(*self._forest.seal(numbered, told=self.shown))

    def _record(self, name: Name, changed: Changes, request: WitnessRequest) -> None:
        reads, seeks, recorder = _of_trie(name, self.root(name), request)
        if recorder is not None:
            from relaycast_trie.array.forest import Sealing, witnesses  # noqa: PLC0415 - loads the compiler

            (found,) = witnesses([Sealing(self._forest, self._number(name), changed, reads, seeks)])
            for node_hash, node in (found.recorded or {}).items():
                recorder.record(node_hash, node)

    def top(self, changed: Changes, reads: Collection[bytes]) -> "Sealing":
        """Return how the top trie is sealed with those of others, see ``forest.seal_together``."""
        from relaycast_trie.array.forest import Sealing  # noqa: PLC0415 - loads the compiler

        return Sealing(self._forest, self._number(None), changed, reads)

    def close(self) -> None:
        self.db.remove_all(self._forest.close(told=self.shown))
        dropped = self._before.dropped
        while dropped and len(dropped) + self._forest.closed >= self._window:
            self.db.remove_all(dropped.popleft())
        if not dropped and not self.shown:
            self.db.clear()

    def fill(self, contents: Contents, inline: Inline) -> None:
        _fill(self, contents, inline)
        self._forest.forget_open()

    def recall(self, past: PlainTries) -> None:
        if self.shown or self._before.dropped:
            self._before.recall(past)
            return
        hashes = [node_hash for node_hash, count in past.db.references().items() for _ in range(count)]
        self.db.emplace_all(hashes, _nodes(past.db, hashes))
        self._before.dropped.extend(past.dropped)

    def show(self) -> None:
        """Let the database hold all nodes from now on."""
        if self.shown:
            return
        older = _hashes(b"".join(self._before.dropped))
        kept = _nodes(self.db, older)
        self.db.clear()
        self.db.emplace_all(older, kept)
        self.db.emplace_all(*self._forest.hashed())
        self.shown = True

    def in_plain(self) -> PlainTries:
        """Return plain tries that go on from here."""
        self.show()
        dropped = [*self._before.dropped, *self._forest.pending()]
        tries = PlainTries(self.db, self.state_version, self._window, self.roots, dropped)
        self.leave()
        return tries

    def leave(self) -> None:
        """Give the tables back what these tries hold of them; nobody asks them any more."""
        self._forest.leave()

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof:
        return self._forest.prove(root, keys) if root in self._forest else self._before.prove(root, keys)

    def prove_child(self, root: bytes, child_info: ChildInfo, keys: Sequence[bytes]) -> StorageProof:
        entry = child_info.prefixed_storage_key()
        if root not in self._forest:
            return self._before.prove_child(root, child_info, keys)
        way, child_root = self._forest.prove(root, [entry]), self._forest.get(root, entry)
        return way if child_root is None else StorageProof.merge([way, self._forest.prove(child_root, keys)])

    def _number(self, name: Name) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._forest.add()
        return number


Tries = PlainTries | ArrayTries


def seal_together(sealings: Sequence["Sealing"]) -> list[StorageProof]:
    """Seal tries that stand in the same tables; return what of each a block carries, as it was before."""
    from relaycast_trie.array import forest  # noqa: PLC0415 - loads the compiler

    proofs = forest.witnesses(sealings)
    forest.seal_together(sealings)
    return proofs


def _of_trie(
    name: Name, root: bytes, request: WitnessRequest | None
) -> tuple[Collection[bytes], Collection[bytes], NodeRecorder | None]:
    """Return reads, seeks and recorder for one trie: a child trie that is empty has no node to be learnt of."""
    if request is None or (name is not None and root == EMPTY_ROOT):
        return (), (), None
    return request.reads, request.seeks, request.recorder


def long_keys(values: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the keys of values that stand outside of their nodes in version 1, and inside in version 0."""
    is_long = StateVersion.V1.is_external
    return {key for key, value in values.items() if is_long(value)}


def _fill(tries: Tries, contents: Contents, inline: Inline) -> None:
    """Write each trie in the version that most of its long values are in, then what is in the other one."""
    version, last = tries.state_version, dict[Name, tuple[StateVersion, Mapping[bytes, bytes]]]()
    for name, held in contents.items():
        inside = inline.get(name, set())
        outside = long_keys(held) - inside if inside else set[bytes]()
        most = StateVersion.V0 if len(outside) < len(inside) else StateVersion.V1
        last[name] = most, {key: held[key] for key in (outside if most is StateVersion.V0 else inside)}
    for most in StateVersion:
        tries.state_version = most
        tries.seal({name: contents[name] for name, (first, _) in last.items() if first is most})
    for most in StateVersion:
        tries.state_version = StateVersion(1 - most)
        tries.seal({name: others for name, (first, others) in last.items() if first is most and others})
    tries.state_version = version


def _hashes(joined: bytes) -> list[bytes]:
    return [joined[at : at + HASH_LENGTH] for at in range(0, len(joined), HASH_LENGTH)]


def _nodes(db: MemoryDB, hashes: Sequence[bytes]) -> list[bytes]:
    """Return what a database has under these hashes, all of which are there."""
    return [node for node_hash in hashes if (node := db.get(node_hash)) is not None]
