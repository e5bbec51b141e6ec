"""The state of a chain: keys and values in a real trie and its child tries, sealed block by block.

Between seals everything happens in flat storage. ``commit`` carries the changed keys alone into the tries, writes the
root of every child trie into the top trie (an empty child trie has no entry there) and gives the state root.
The last ``window`` sealed states can still be proven from; older ones are pruned without a rest.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Protocol

from relaycast_pallets.storage import Journal, Storage
from relaycast_trie.build import build_trie
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.memory_db import MemoryDB, PruningJournal
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.storage_proof import StorageProof
from relaycast_trie.trie_db_mut import TrieDBMut

Snapshot = tuple[dict[bytes, bytes], dict[bytes, dict[bytes, bytes]]]
"""Everything a state holds: the top trie, and the child tries that are not empty by their name."""


class StateDiscarded(RelaycastError):
    """The state with this ``root`` was never sealed here, or has left the window ("state already discarded")."""

    def __init__(self, root: bytes) -> None:
        super().__init__(root)
        self.root = root

    def __str__(self) -> str:
        return f"the state 0x{self.root.hex()} is not among those kept"


class RollsBack(Protocol):
    """Something beside the storage that a failed transaction takes back, such as an event log."""

    def mark(self) -> int: ...

    def roll_back(self, mark: int, /) -> None: ...


class State:
    """A chain's state; the methods of the top trie's storage are its own, ``child`` gives those of a child trie.

    ``top`` and ``children`` (by name, without prefix) are the genesis, sealed as they are.
    """

    def __init__(
        self,
        top: Mapping[bytes, bytes] | None = None,
        children: Mapping[ChildInfo, Mapping[bytes, bytes]] | None = None,
        *,
        state_version: StateVersion = StateVersion.V1,
        window: int = 256,
    ) -> None:
        if window < 1:
            raise ValueError(f"at least the last state is kept, got a window of {window}")
        self.state_version = StateVersion(state_version)
        self.window = window
        self.db = MemoryDB()
        self._journal = Journal()
        self._companions: list[RollsBack] = []
        self._children: dict[ChildInfo, Storage] = {}
        self._tries: dict[ChildInfo | None, TrieDBMut] = {}
        self._load(dict(top or {}), children or {})
        self._sealed: deque[tuple[bytes, list[PruningJournal]]] = deque([(self.root, [])])
        self._kept = Counter([self.root])

    def get(self, key: bytes) -> bytes | None:
        return self.top.get(key)

    def exists(self, key: bytes) -> bool:
        return self.top.exists(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Write into the top trie; the entries of child tries are written by ``commit`` alone."""
        if key.startswith(CHILD_STORAGE_PREFIX):
            raise ValueError(f"0x{key.hex()} names a child trie: its root is written when the state is sealed")
        self.top.put(key, value)

    def kill(self, key: bytes) -> None:
        """Remove ``key`` from the top trie; one that is not there is no error."""
        if key.startswith(CHILD_STORAGE_PREFIX):
            raise ValueError(f"0x{key.hex()} names a child trie: it goes when the child trie is empty")
        self.top.kill(key)

    def next_key(self, key: bytes) -> bytes | None:
        return self.top.next_key(key)

    def iter_prefix(self, prefix: bytes, *, start_after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the top trie, see ``Storage.iter_prefix``."""
        return self.top.iter_prefix(prefix, start_after=start_after)

    def count_prefix(self, prefix: bytes) -> int:
        return self.top.count_prefix(prefix)

    def clear_prefix(self, prefix: bytes) -> int:
        """Remove the top trie's keys under ``prefix``, which must not lead to child tries, and count them."""
        if prefix.startswith(CHILD_STORAGE_PREFIX) or CHILD_STORAGE_PREFIX.startswith(prefix):
            raise ValueError(f"0x{prefix.hex()} leads to child tries: clear those")
        return self.top.clear_prefix(prefix)

    def child(self, child_info: ChildInfo) -> Storage:
        """Return the storage of a child trie, which stays the same object; one that never held anything is empty."""
        storage = self._children.get(child_info)
        if storage is None:
            storage = self._children[child_info] = Storage(self._journal)
        return storage

    def children(self) -> list[ChildInfo]:
        """Return the names of the child tries that hold something now, in order."""
        return sorted(info for info, storage in self._children.items() if len(storage))

    def join(self, companion: RollsBack) -> None:
        """Let ``companion`` be taken back together with the storage when a transaction fails."""
        self._companions.append(companion)

    def transaction(self) -> "Transaction":
        """Return a ``with`` block that leaves no trace when it raises; an outer failure undoes inner successes."""
        return Transaction(self._journal, self._companions)

    @property
    def root(self) -> bytes:
        """The state root of the last seal."""
        return self._trie(None).root

    def commit(self) -> bytes:
        """Seal what changed since the last seal and return the new state root; not inside a transaction."""
        if self._journal.frame is not None:
            raise ValueError("a state cannot be sealed inside a transaction")
        journals = []
        for info, storage in self._children.items():
            if storage.unsealed:
                journals.append(self._seal(info, storage))
                self._write_child_root(info, storage)
        if self.top.unsealed:
            journals.append(self._seal(None, self.top))
        self._keep(journals)
        return self.root

    def migrate(self, state_version: StateVersion) -> None:
        """Write values in another state version from now on; those there stay as they are until written again."""
        self.state_version = StateVersion(state_version)
        for trie in self._tries.values():
            trie.state_version = state_version

    def prove_read(self, root: bytes, keys: Iterable[bytes]) -> StorageProof:
        """Prove ``keys`` of the top trie of the sealed state with this ``root``; raises ``StateDiscarded``."""
        self._require(root)
        return StorageProof.generate(self.db, root, keys)

    def prove_child_read(self, root: bytes, child_info: ChildInfo, keys: Iterable[bytes]) -> StorageProof:
        """Prove ``keys`` of a child trie and the way to its root in the top trie; raises ``StateDiscarded``."""
        self._require(root)
        return StorageProof.generate_child(self.db, root, child_info, keys)

    def snapshot(self) -> Snapshot:
        """Return a copy of everything held now, sealed or not: two states are equal when their snapshots are."""
        children = {info.storage_key: dict(storage.items()) for info, storage in self._children.items() if len(storage)}
        return dict(self.top.items()), children

    def _load(self, top: dict[bytes, bytes], children: Mapping[ChildInfo, Mapping[bytes, bytes]]) -> None:
        for key in top:
            if key.startswith(CHILD_STORAGE_PREFIX):
                raise ValueError(f"0x{key.hex()} names a child trie: give its entries instead of its root")
        for info, values in children.items():
            if values:
                self._children[info] = Storage(self._journal, values)
                root = build_trie(values, self.db.emplace, state_version=self.state_version)
                self._tries[info] = TrieDBMut(self.db, root, state_version=self.state_version)
                top[info.prefixed_storage_key()] = root
        self.top = Storage(self._journal, top)
        root = build_trie(top, self.db.emplace, state_version=self.state_version)
        self._tries[None] = TrieDBMut(self.db, root, state_version=self.state_version)

    def _trie(self, info: ChildInfo | None) -> TrieDBMut:
        trie = self._tries.get(info)
        if trie is None:
            trie = self._tries[info] = TrieDBMut(self.db, state_version=self.state_version)
        return trie

    def _seal(self, info: ChildInfo | None, storage: Storage) -> PruningJournal:
        trie = self._trie(info)
        for key in storage.unsealed:
            value = storage.get(key)
            if value is None:
                trie.remove(key)
            else:
                trie.insert(key, value)
        storage.unsealed.clear()
        trie.commit(prune=False)
        return trie.journal

    def _write_child_root(self, info: ChildInfo, storage: Storage) -> None:
        key = info.prefixed_storage_key()
        if len(storage):
            self.top.put(key, self._trie(info).root)
        else:
            self.top.kill(key)

    def _keep(self, journals: list[PruningJournal]) -> None:
        self._sealed.append((self.root, journals))
        self._kept[self.root] += 1
        while len(self._sealed) > self.window:
            old_root, _ = self._sealed.popleft()
            self._kept[old_root] -= 1
            if not self._kept[old_root]:
                del self._kept[old_root]
            for journal in self._sealed[0][1]:
                self.db.prune(journal)
            self._sealed[0] = (self._sealed[0][0], [])

    def _require(self, root: bytes) -> None:
        if root not in self._kept:
            raise StateDiscarded(root)

    def __repr__(self) -> str:
        return f"<State 0x{self.root.hex()}, {len(self.top)} keys, {len(self.children())} child tries>"


class Transaction:
    """One ``with`` block over a state, see ``State.transaction``."""

    __slots__ = ("_companions", "_journal", "_marks", "_outer")

    def __init__(self, journal: Journal, companions: list[RollsBack]) -> None:
        self._journal = journal
        self._companions = companions

    def __enter__(self) -> None:
        self._outer = self._journal.frame
        self._marks = [(companion, companion.mark()) for companion in self._companions]
        self._journal.frame = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        frame = self._journal.frame
        assert frame is not None
        self._journal.frame = self._outer
        if kind is not None:
            for (storage, key), (old, was_unsealed) in frame.items():
                storage.restore(key, old, was_unsealed=was_unsealed)
            for companion, mark in self._marks:
                companion.roll_back(mark)
        elif self._outer is not None:
            for change, before in frame.items():
                self._outer.setdefault(change, before)
