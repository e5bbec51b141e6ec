"""The tries under a state: what a block changes goes in, roots and proofs come out.

Plain tries work key by key on a database of nodes and begin at once. Array tries take all changes of a block together,
once the compiled kernels are loaded, and fill the database only when somebody wants to see it. Whatever works, roots,
proofs and the database are the same. ``Tries`` goes from one to the other when that has come to pay.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from msgspec import Struct

from relaycast_pallets.frame.engine_choice import EngineChoice
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.engine import Engine
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.build import build_trie
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.trie_db import NodeRecorder
from relaycast_trie.plain.trie_update import record_witness, update_trie
from relaycast_trie.proofs.storage_proof import StorageProof

Name = ChildInfo | None
"""A child trie, or the top trie."""

Changes = Mapping[bytes, bytes | None]
"""New values by key; ``None`` removes."""

Keys = Mapping[Name, Collection[bytes]]
NO_KEYS: Keys = MappingProxyType({})


class Asked(Struct, frozen=True):
    """What a block asks of a trie before it changes it; the ``recorder`` learns which nodes that and the change take.

    Of the keys ``seeks`` no value is asked for: whether there is one, or which key comes next.
    """

    recorder: NodeRecorder
    reads: Collection[bytes] = ()
    seeks: Collection[bytes] = ()


class TrieContents(NamedTuple):
    """All that a trie holds; ``inline`` are the keys of long values that stand in their nodes, as in version 0."""

    values: Mapping[bytes, bytes]
    inline: Collection[bytes] = ()

    def by_version(self) -> tuple[StateVersion, Mapping[bytes, bytes]]:
        """Return the version that most long values are stored in, and those that are stored in the other one."""
        if not self.inline:
            return StateVersion.V1, {}
        external = long_keys(self.values).difference(self.inline)
        most = StateVersion.V0 if len(external) < len(self.inline) else StateVersion.V1
        return most, {key: self.values[key] for key in (external if most is StateVersion.V0 else self.inline)}


Contents = Mapping[Name, TrieContents]


class _Tries(Protocol):
    """Tries by name, all empty to begin with. A block is one ``seal`` or several, and a ``close``."""

    state_version: StateVersion

    @property
    def roots(self) -> dict[Name, bytes]: ...

    def root(self, name: Name) -> bytes: ...

    def fill(self, contents: Contents) -> None:
        """Write all that tries hold into tries that were empty; no block."""
        ...

    def recall(self, past: "PlainTries") -> None:
        """Be able to prove from what was before these tries were filled: ``past`` went from there to what they held."""
        ...

    def seal(self, changes: Mapping[Name, Changes], asked: Asked | None = None) -> None:
        """Write changes; what is ``asked`` is asked of each of these tries."""
        ...

    def close(self) -> None:
        """End a block: of the oldest one that can be read, what only it reads is dropped if there are too many."""
        ...

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof: ...

    def prove_child(self, root: bytes, child_info: ChildInfo, keys: Sequence[bytes]) -> StorageProof: ...


class PlainTries(_Tries):
    """Tries in a database. ``dropped`` are the hashes that leave it with each of the blocks to come."""

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
        self._roots = dict(roots or {})

    @property
    def roots(self) -> dict[Name, bytes]:
        return dict(self._roots)

    def root(self, name: Name) -> bytes:
        return self._roots.get(name, self.db.null_hash)

    def fill(self, contents: Contents) -> None:
        _fill(self, contents)
        self.db.remove_all(b"".join(self._open))
        self._open.clear()

    def recall(self, past: "PlainTries") -> None:
        for dropped in reversed(past.dropped):
            hashes = _hashes(dropped)
            self.db.emplace_all(hashes, _nodes(past.db, hashes))
            self.dropped.appendleft(dropped)

    def seal(self, changes: Mapping[Name, Changes], asked: Asked | None = None) -> None:
        for name, changed in changes.items():
            if name in self._roots:
                self._roots[name] = self._change(name, changed, asked)
                continue
            held = {key: value for key, value in changed.items() if value is not None}
            self._roots[name] = build_trie(held, self.db.emplace, state_version=self.state_version)

    def _change(self, name: Name, changed: Changes, asked: Asked | None) -> bytes:
        root, reads, seeks, recorder = self._roots[name], *_of_trie(name, self._roots[name], asked)
        update = update_trie(
            self.db, root, changed, reads=reads, seeks=seeks, state_version=self.state_version, recorder=recorder
        )
        self.db.emplace_all(update.hashes, update.nodes)
        self._open += update.dropped
        return update.root

    def close(self) -> None:
        self.dropped.append(b"".join(self._open))
        self._open.clear()
        while len(self.dropped) >= self._window:
            self.db.remove_all(self.dropped.popleft())

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof:
        return StorageProof.generate(self.db, root, keys)

    def prove_child(self, root: bytes, child_info: ChildInfo, keys: Sequence[bytes]) -> StorageProof:
        return StorageProof.generate_child(self.db, root, child_info, keys)


class ArrayTries(_Tries):
    """Tries in a forest of arrays that go on where plain tries with the same ``contents`` stand.

    Unless it is ``shown``, the database holds nothing but what the plain tries left there, for as long as that can be
    read.
    """

    def __init__(self, plain: PlainTries, window: int, contents: Contents, *, shown: bool) -> None:
        from relaycast_trie.array.forest import ArrayForest  # noqa: PLC0415 - loads the compiler

        self.db = plain.db
        self.shown = False
        self._window = window
        self._before = PlainTries(plain.db, plain.state_version, window, dropped=plain.dropped)
        self._forest: ArrayForest = ArrayForest(state_version=plain.state_version, window=window)
        self._numbers: dict[Name, int] = {}
        self.fill({name: contents[name] for name in plain.roots})
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

    def seal(self, changes: Mapping[Name, Changes], asked: Asked | None = None) -> None:
        if asked is not None:
            self.show()
            for name, changed in changes.items():
                reads, seeks, recorder = _of_trie(name, self.root(name), asked)
                if recorder is not None:
                    in_order = {key: changed[key] for key in sorted(changed)}
                    record_witness(self.db, self.root(name), reads, in_order, recorder, seeks=seeks)
        numbered = {self._number(name): changed for name, changed in changes.items()}
        self.db.emplace_all(*self._forest.seal(numbered, told=self.shown))

    def close(self) -> None:
        self.db.remove_all(self._forest.close(told=self.shown))
        dropped = self._before.dropped
        while dropped and len(dropped) + self._forest.closed >= self._window:
            self.db.remove_all(dropped.popleft())
        if not dropped and not self.shown:
            self.db.clear()

    def fill(self, contents: Contents) -> None:
        _fill(self, contents)
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
        return PlainTries(self.db, self.state_version, self._window, self.roots, dropped)

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof:
        if root in self._forest:
            return StorageProof(self._forest.prove(root, keys).nodes)
        return self._before.prove(root, keys)

    def prove_child(self, root: bytes, child_info: ChildInfo, keys: Sequence[bytes]) -> StorageProof:
        entry = child_info.prefixed_storage_key()
        if root not in self._forest:
            return self._before.prove_child(root, child_info, keys)
        child_root = self._forest.get(root, entry)
        below = [] if child_root is None else [(child_root, keys)]
        return StorageProof(self._forest.prove_all([(root, [entry]), *below]).nodes)

    def _number(self, name: Name) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._forest.add()
        return number


class Tries:
    """The tries of a state, plain or in arrays; ``engine`` says which, ``auto`` that it follows from the work.

    What the last ``window`` blocks read can be proven.
    """

    def __init__(self, *, state_version: StateVersion, window: int, engine: Engine) -> None:
        self._window = window
        self._choice = EngineChoice(engine)
        self._shown = False
        self._used: PlainTries | ArrayTries = PlainTries(MemoryDB(), state_version, window)

    @classmethod
    def over(cls, plain: PlainTries, *, window: int) -> "Tries":
        """Return tries that go on from plain ones, and stay plain: arrays take whole contents."""
        tries = cls(state_version=plain.state_version, window=window, engine="plain")
        tries._used = plain
        return tries

    @property
    def db(self) -> MemoryDB:
        """All nodes and external values by their hash, from now on: the same object always."""
        self._shown = True
        if isinstance(self._used, ArrayTries):
            self._used.show()
        return self._used.db

    @property
    def state_version(self) -> StateVersion:
        """How values are written from now on."""
        return self._used.state_version

    @state_version.setter
    def state_version(self, state_version: StateVersion) -> None:
        self._used.state_version = state_version

    @property
    def engine(self) -> Engine:
        """What was chosen; another choice is made between blocks, and holds after the next one at the latest."""
        return self._choice.engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        if engine != self._choice.engine:
            self._choice = EngineChoice(engine)
            if engine == "plain" and isinstance(self._used, ArrayTries):
                self._used = self._used.in_plain()

    def root(self, name: Name) -> bytes:
        """Return the root of a trie as it was sealed last; a trie that was never written to is empty."""
        return self._used.root(name)

    def fill(self, contents: Contents) -> None:
        """Write tries that are not there yet; no block."""
        empty = isinstance(self._used, PlainTries) and not self._used.roots
        if empty and self._choice.loads_in_arrays(sum(len(held.values) for held in contents.values())):
            self._used = self._in_arrays({})
        self._used.fill(contents)

    def recall(self, past: "Tries") -> None:
        """Be able to prove from what was before these tries were filled: ``past`` went from there to what they held."""
        assert isinstance(past._used, PlainTries)
        self._used.recall(past._used)

    def seal(self, changes: Mapping[Name, Changes], asked: Asked | None = None) -> None:
        """Write changes of the open block, no trie twice; what is ``asked`` is asked of each of these tries."""
        self._choice.note(len(changes), sum(map(len, changes.values())), in_arrays=isinstance(self._used, ArrayTries))
        self._used.seal(changes, asked)

    def close(self, contents: Callable[[], Contents]) -> None:
        """End the block, and change engines if that has come to pay; ``contents`` are what the tries hold now."""
        self._used.close()
        in_arrays = isinstance(self._used, ArrayTries)
        if not self._choice.is_restless(in_arrays=in_arrays):
            return
        held = contents()
        if self._choice.moves(sum(len(one.values) for one in held.values())):
            self._used = self._used.in_plain() if isinstance(self._used, ArrayTries) else self._in_arrays(held)

    def prove(self, root: bytes, keys: Sequence[bytes]) -> StorageProof:
        """Prove keys of a trie with this ``root``, as it is or was in one of the blocks that can be read."""
        return self._used.prove(root, keys)

    def prove_child(self, root: bytes, child_info: ChildInfo, keys: Sequence[bytes]) -> StorageProof:
        """Prove keys of a child trie and the way to its root in the top trie with this ``root``."""
        return self._used.prove_child(root, child_info, keys)

    def _in_arrays(self, contents: Contents) -> ArrayTries:
        assert isinstance(self._used, PlainTries)
        return ArrayTries(self._used, self._window, contents, shown=self._shown)


def _of_trie(
    name: Name, root: bytes, asked: Asked | None
) -> tuple[Collection[bytes], Collection[bytes], NodeRecorder | None]:
    """Return reads, seeks and recorder for one trie: a child trie that is empty has no node to be learnt of."""
    if asked is None or (name is not None and root == EMPTY_ROOT):
        return (), (), None
    return asked.reads, asked.seeks, asked.recorder


def long_keys(values: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the keys of values that stand outside of their nodes in version 1, and inside in version 0."""
    is_long = StateVersion.V1.is_external
    return {key for key, value in values.items() if is_long(value)}


def _fill(tries: _Tries, contents: Contents) -> None:
    """Write all tries in the version that most of each is in, then what is in the other one."""
    version = tries.state_version
    parts = {name: held.by_version() for name, held in contents.items()}
    for most in StateVersion:
        tries.state_version = most
        tries.seal({name: contents[name].values for name, part in parts.items() if part[0] is most})
    for most in StateVersion:
        tries.state_version = StateVersion(1 - most)
        tries.seal({name: others for name, (first, others) in parts.items() if first is most and others})
    tries.state_version = version


def _hashes(joined: bytes) -> list[bytes]:
    return [joined[at : at + HASH_LENGTH] for at in range(0, len(joined), HASH_LENGTH)]


def _nodes(db: MemoryDB, hashes: Sequence[bytes]) -> list[bytes]:
    """Return what a database has under these hashes, all of which are there."""
    return [node for node_hash in hashes if (node := db.get(node_hash)) is not None]
