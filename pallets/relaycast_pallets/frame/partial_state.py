"""The state of a chain of which some nodes are known: it seals real roots, and refuses by name what it lacks.

Law: its roots and proofs are those of the whole state, or there is ``MissingNode`` and nothing changes: for a read, an
iteration, a write, a removal or a seal that needs a missing node or value. Plain tries work on it, whatever engine is
chosen: arrays take whole contents.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping

from relaycast_pallets.frame.state import History, KnownDump, State, StateDump, TrieDump
from relaycast_pallets.frame.storage import OverlayStorage, UndoLog, Values
from relaycast_pallets.frame.tries import EngineChoice, Inline, Name, PlainTries
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.engine import Engine, check_engine
from relaycast_trie.exceptions import MissingNode, RootMismatch
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.partial_trie import NO_GAPS, Gaps, PartialTrie, StateWitness, explore
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.checkpoint import CheckpointRefused, refusing


class PartialStorage(OverlayStorage):
    """One trie's known keys and values, and its gaps; see ``OverlayStorage``."""

    __slots__ = ("_gaps",)

    def __init__(self, undo: UndoLog) -> None:
        super().__init__(undo)
        self._gaps = NO_GAPS

    def hold(self, known: PartialTrie) -> None:
        """Hold what is known of a trie instead, as sealed; not inside a transaction."""
        self.replace_all(known.values)
        self._gaps = known.gaps

    @property
    def gaps(self) -> Gaps:
        return self._gaps

    def get(self, key: bytes) -> bytes | None:
        value = super().get(key)
        if value is None:
            self._gaps.check(key)
        return value

    def exists(self, key: bytes) -> bool:
        return self.get(key) is not None

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self._values:
            self._gaps.check(key)
        super().put(key, value)

    def kill(self, key: bytes) -> None:
        if key not in self._values:
            self._gaps.check(key)
            return
        self.ensure_removable([key])
        super().kill(key)

    def write_all(self, changes: Mapping[bytes, bytes | None]) -> None:
        for key, value in changes.items():
            if value is None:
                self.kill(key)
            else:
                self.put(key, value)

    def clear_prefix(self, prefix: bytes) -> int:
        keys = [key for key, _ in self.iter_prefix(prefix)]
        self.ensure_removable(keys)
        for key in keys:
            super().kill(key)
        return len(keys)

    def count_prefix(self, prefix: bytes) -> int:
        self._gaps.check_prefix(prefix)
        return super().count_prefix(prefix)

    def ensure_removable(self, keys: Collection[bytes]) -> None:
        """Raise ``MissingNode`` where a branch would collapse onto a missing node without these ``keys``."""
        if not self._gaps.lone:
            return
        going = set(keys)
        paths = [to_nibbles(key) for key in going]
        for lone in self._gaps.lone:
            if any(path.startswith(lone.branch) for path in paths) and going.issuperset(self._under(lone.branch)):
                raise MissingNode(lone.node_hash, lone.path)

    def _under(self, path: bytes) -> Iterator[bytes]:
        """Yield the known keys whose path in nibbles begins with ``path``."""
        order = self._ordered()
        start = bisect_left(order, from_nibbles(path + b"\x00" * (len(path) % 2)))
        for key in order.islice(start):
            if not to_nibbles(key).startswith(path):
                return
            yield key

    def _next_under(self, prefix: bytes, after: bytes | None) -> bytes | None:
        key = super()._next_under(prefix, after)
        if after is None or after.startswith(prefix):
            self._gaps.check_between(prefix if after is None else after, key, prefix, after=after is not None)
        return key

    def __len__(self) -> int:
        if self._gaps:
            raise self._gaps.first()
        return super().__len__()

    def __bool__(self) -> bool:
        return bool(self._values or self._gaps)

    def __repr__(self) -> str:
        return f"<PartialStorage {len(self._values)} known keys, {self._gaps!r}, {len(self.unsealed)} unsealed>"


Known = dict[Name, PartialTrie]


class PartialState(State):
    """The state with the root of a ``witness``, as far as its nodes show it; values are written in version 1.

    Raises ``InvalidNode`` and ``TooManyNodes``.
    """

    top: PartialStorage

    def __init__(self, witness: StateWitness, *, window: int = 256) -> None:
        self._begin(window)
        self.top = PartialStorage(self._undo)
        self._choice, self._shown = EngineChoice("plain"), True
        known, db = _known_of(witness), MemoryDB()
        for trie in known.values():
            db.emplace_all(trie.uses, [witness.nodes[node_hash] for node_hash in trie.uses])
        roots = {name: trie.root for name, trie in known.items()}
        inline = self._hold_known(known, PlainTries(db, StateVersion.V1, window, roots))
        self._history = History(self.root, inline, window=window)

    @property
    def engine(self) -> Engine:
        """``plain``; another choice changes nothing."""
        return "plain"

    @engine.setter
    def engine(self, engine: Engine) -> None:
        check_engine(engine)

    def child(self, child_info: ChildInfo) -> OverlayStorage:
        """Return the storage of a child trie; raises ``MissingNode`` where its root is not known."""
        storage = self._children.get(child_info)
        if storage is None:
            self.top.gaps.check(child_info.prefixed_storage_key())
            storage = self._children[child_info] = PartialStorage(self._undo)
        return storage

    def prove_child_read(self, root: bytes, child_info: ChildInfo, keys: Iterable[bytes]) -> StorageProof:
        """Prove ``keys`` of a child trie; raises ``StateDiscarded`` and ``MissingNode``."""
        try:
            return super().prove_child_read(root, child_info, keys)
        except RootMismatch as error:
            raise MissingNode(error.expected) from None

    def write(self, changes: Mapping[Name, Values]) -> None:
        """Write ``changes`` by trie: new values first, for a branch that they keep does not collapse."""
        for removes in (False, True):
            part = {
                name: {it: value for it, value in values.items() if (value is None) == removes}
                for name, values in changes.items()
            }
            super().write(part)

    def _write_to_seal(self, changes: Mapping[Name, Values]) -> None:
        """Write all ``changes`` or none; raises ``MissingNode``, also where an emptied child trie cannot go."""
        with self.transaction():
            self.write(changes)
            emptied = [info for info, storage in self._children.items() if storage.unsealed and not storage]
            entries = [info.prefixed_storage_key() for info in emptied]
            self.top.ensure_removable([entry for entry in entries if entry in self.top.values])

    def _dump_tries(self) -> tuple[list[TrieDump[bytes]], KnownDump]:
        assert isinstance(self._tries, PlainTries)
        return [], KnownDump.of(self._tries)

    def _load_tries(self, dump: StateDump) -> Inline:
        if dump.known is None:
            raise CheckpointRefused("a whole state, where this one has gaps")
        with refusing("what its tries hold"):
            tries = dump.known.tries(dump.state_version, self.window)
            return self._hold_known({name: explore(tries.db, root) for name, root in tries.roots.items()}, tries)

    def _hold_known(self, known: Known, tries: PlainTries) -> Inline:
        self._tries = tries
        self.top.hold(known[None])
        for info in {*self._children, *(name for name in known if name is not None)}:
            storage = self._children.setdefault(info, PartialStorage(self._undo))
            assert isinstance(storage, PartialStorage)
            if info in known:
                storage.hold(known[info])
            else:
                storage.replace_all({})
        return {name: set(trie.inline) for name, trie in known.items()}

    def __repr__(self) -> str:
        return f"<PartialState 0x{self.root.hex()}, {len(self.top.values)} known keys, {self.top.gaps!r}>"


def _known_of(witness: StateWitness) -> Known:
    """Return what is known of the top trie, and of each child trie whose root is known."""
    top = explore(witness.nodes, witness.root)
    known: Known = {None: top}
    for key, root in top.values.items():
        if key.startswith(CHILD_STORAGE_PREFIX) and len(root) == HASH_LENGTH:
            known[ChildInfo.from_prefixed_key(key)] = explore(witness.nodes, root)
    return known
