"""The state of a chain of which some nodes are known: it seals real roots, and refuses by name what it lacks.

Law: its roots and proofs are those of the whole state, or there is ``MissingNode`` and nothing changes. Plain tries
work on it, whatever engine is chosen: arrays take whole contents.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from relaycast_pallets.frame.partial_storage import PartialStorage
from relaycast_pallets.frame.state import NO_CHANGES, State
from relaycast_pallets.frame.state_dump import KnownDump, StateDump, changes_in, dump_state, history_of
from relaycast_pallets.frame.state_history import History
from relaycast_pallets.frame.state_tries import NO_KEYS, Keys, Name, PlainTries, Tries
from relaycast_pallets.frame.storage import Storage, Values
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.engine import Engine, check_engine
from relaycast_trie.exceptions import MissingNode, RootMismatch
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.partial_trie import PartialTrie, StateWitness, explore
from relaycast_trie.plain.trie_db import NodeRecorder
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.checkpoint import CheckpointRefused, refusing

Known = dict[Name, PartialTrie]


class PartialState(State):
    """The state with the root of a ``witness``, as far as its nodes show it; values are written in version 1.

    Raises ``InvalidNode`` and ``TooManyNodes``.
    """

    top: PartialStorage

    def __init__(self, witness: StateWitness, *, window: int = 256) -> None:
        self._begin(window)
        self.top = PartialStorage(self._journal)
        known, db = _known_of(witness), MemoryDB()
        for trie in known.values():
            db.emplace_all(trie.uses, [witness.nodes[node_hash] for node_hash in trie.uses])
        roots = {name: trie.root for name, trie in known.items()}
        self._hold_known(known, PlainTries(db, StateVersion.V1, window, roots))
        self._history = History(self.root, _inline_of(known), window=window)

    @property
    def engine(self) -> Engine:
        """``plain``; another choice changes nothing."""
        return "plain"

    @engine.setter
    def engine(self, engine: Engine) -> None:
        check_engine(engine)

    def child(self, child_info: ChildInfo) -> Storage:
        """Return the storage of a child trie; raises ``MissingNode`` where its root is not known."""
        storage = self._children.get(child_info)
        if storage is None:
            self.top.gaps.check(child_info.prefixed_storage_key())
            storage = self._children[child_info] = PartialStorage(self._journal)
        return storage

    def commit(
        self,
        *,
        changes: Mapping[Name, Values] = NO_CHANGES,
        reads: Keys = NO_KEYS,
        seeks: Keys = NO_KEYS,
        tried: Collection[Mapping[Name, Values]] = (),
        recorder: NodeRecorder | None = None,
    ) -> bytes:
        """Seal, see ``State.commit``; raises ``MissingNode`` where a child trie cannot go, with nothing sealed."""
        emptied = [info for info, storage in self._children.items() if storage.unsealed and not storage]
        entries = [info.prefixed_storage_key() for info in emptied]
        self.top.ensure_removable([entry for entry in entries if entry in self.top.values])
        return super().commit(changes=changes, reads=reads, seeks=seeks, tried=tried, recorder=recorder)

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

    def dump(self) -> StateDump:
        """Return all nodes that are known, and what was written since; not inside a transaction."""
        if self._journal.frame is not None:
            raise ValueError("a state cannot be put away inside a transaction")
        unsealed = {name: storage.changes for name, storage in self._storages().items() if storage.unsealed}
        dump = dump_state(self.state_version, {}, self._history, unsealed)
        return replace(dump, known=KnownDump.of(self._plain.db, self._plain.roots, self._plain.dropped))

    def load(self, dump: StateDump) -> None:
        """Hold what another state held, see ``State.load``; raises ``CheckpointRefused``."""
        if dump.known is None:
            raise CheckpointRefused("a whole state, where this one has gaps")
        with refusing("what its tries hold"):
            db, roots = dump.known.database(), dump.known.roots_by_name()
            known = {name: explore(db, root) for name, root in roots.items()}
            self._hold_known(known, PlainTries(db, dump.state_version, self.window, roots, dump.known.dropped))
        history = history_of(dump, {}, window=self.window)
        history.inline, history.unbuilt = _inline_of(known), 0
        if self.root != history.roots[-1]:
            raise CheckpointRefused(f"a state has the root 0x{self.root.hex()}, expected 0x{history.roots[-1].hex()}")
        self._history = history
        with refusing("what is not sealed"):
            self.write(changes_in(dump.unsealed)[0])

    def _hold_known(self, known: Known, plain: PlainTries) -> None:
        self._plain = plain
        self._tries = Tries.over(plain, window=self.window)
        self.top.hold(known[None])
        for info in {*self._children, *(name for name in known if name is not None)}:
            storage = self._children.setdefault(info, PartialStorage(self._journal))
            assert isinstance(storage, PartialStorage)
            if info in known:
                storage.hold(known[info])
            else:
                storage.replace_all({})

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


def _inline_of(known: Known) -> dict[Name, set[bytes]]:
    return {name: set(trie.inline) for name, trie in known.items()}
