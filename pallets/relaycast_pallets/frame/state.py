"""The state of a chain: keys and values in a real trie and its child tries, sealed block by block.

Between seals everything happens in flat storage. ``commit`` writes the changed keys alone into the tries and the root
of every child trie into the top trie, and returns the state root. An empty child trie has no entry there. The last
``window`` sealed states can still be proven from; older ones are pruned without a rest.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from relaycast_pallets.frame.state_dump import StateDump, changes_in, contents_of, dump_state, history_of
from relaycast_pallets.frame.state_history import History, put_back, without_child_roots
from relaycast_pallets.frame.state_transaction import RollsBack, Transaction
from relaycast_pallets.frame.state_tries import NO_KEYS, Asked, Keys, Name, TrieContents, Tries, long_keys
from relaycast_pallets.frame.storage import Journal, Storage, Values
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.engine import Engine
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.trie_db import NodeRecorder
from relaycast_trie.plain.trie_update import update_trie
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.checkpoint import CheckpointRefused, refusing

Snapshot = tuple[dict[bytes, bytes], dict[bytes, dict[bytes, bytes]]]
"""Everything a state holds: the top trie, and the child tries that are not empty by their name."""

NO_CHANGES: Mapping[Name, Values] = MappingProxyType({})


class StateDiscarded(RelaycastError, message="the state {root} is not among those kept"):
    """The state with this ``root`` was never sealed here, or has left the window ("state already discarded")."""

    root: bytes


class State:
    """A chain's state; the methods of the top trie's storage are its own, ``child`` gives those of a child trie.

    ``top`` and ``children`` (by name, without prefix) are the genesis, sealed as they are. ``engine`` says what works
    on the tries; nothing but time follows from it.
    """

    def __init__(
        self,
        top: Mapping[bytes, bytes] | None = None,
        children: Mapping[ChildInfo, Mapping[bytes, bytes]] | None = None,
        *,
        state_version: StateVersion = StateVersion.V1,
        window: int = 256,
        engine: Engine = "auto",
    ) -> None:
        self._begin(window)
        held: dict[Name, Mapping[bytes, bytes]] = {None: top or {}}
        held.update((children or {}).items())
        version = StateVersion(state_version)
        long = {name: long_keys(values) for name, values in held.items()} if version is StateVersion.V0 else {}
        self._hold({name: TrieContents(values, long.get(name, ())) for name, values in held.items()}, version, engine)
        self._history = History(self.root, long, window=window)

    def _begin(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"at least the last state is kept, got a window of {window}")
        self.window = window
        self._journal = Journal()
        self._companions: list[RollsBack] = []
        self._children: dict[ChildInfo, Storage] = {}
        self.top = Storage(self._journal)

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
        return sorted(info for info, storage in self._children.items() if storage)

    def join(self, companion: RollsBack) -> None:
        """Let ``companion`` be taken back together with the storage when a transaction fails."""
        self._companions.append(companion)

    def transaction(self) -> "Transaction":
        """Return a ``with`` block that leaves no trace when it raises; an outer failure undoes inner successes."""
        return Transaction(self._journal, self._companions)

    @property
    def root(self) -> bytes:
        """The state root of the last seal."""
        return self._tries.root(None)

    @property
    def db(self) -> MemoryDB:
        """The nodes and external values of all sealed states that are kept, by their hash; the same object always.

        Array tries begin to fill it when it is first asked for.
        """
        self._recall(0)
        return self._tries.db

    def nodes_under(self, root: bytes) -> MemoryDB:
        """Return a database with all nodes of the sealed state with this ``root``; raises ``StateDiscarded``."""
        self._require(root)
        return self._tries.db

    @property
    def engine(self) -> Engine:
        """What works on the tries; another choice holds after the next ``commit`` at the latest."""
        return self._tries.engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._tries.engine = engine

    @property
    def state_version(self) -> StateVersion:
        """How values are written from now on, see ``migrate``."""
        return self._tries.state_version

    def commit(
        self,
        *,
        changes: Mapping[Name, Values] = NO_CHANGES,
        reads: Keys = NO_KEYS,
        seeks: Keys = NO_KEYS,
        tried: Collection[Mapping[Name, Values]] = (),
        recorder: NodeRecorder | None = None,
    ) -> bytes:
        """Write ``changes``, seal what changed since the last seal and return the new state root.

        The ``recorder`` learns which nodes of the state before a block carries (see ``witness``): those that its
        changes touch, and what ``record`` adds. Removals of absent keys are among the changes. Not inside a
        transaction.
        """
        if self._journal.frame is not None:
            raise ValueError("a state cannot be sealed inside a transaction")
        asked: Asked | None = None
        if recorder is not None:
            removed = {name: [key for key, value in held.items() if value is None] for name, held in changes.items()}
            lost = [them for them in tried if them != changes]
            self.record(recorder, reads={**reads, None: ()}, seeks={**seeks, None: ()}, tried=lost)
            self.record(recorder, seeks={name: keys for name, keys in removed.items() if name is not None})
            looked = {*seeks.get(None, ()), *removed.get(None, ())}
            asked = Asked(recorder, reads.get(None, ()), looked)
        self.write(changes)
        changed = [info for info, storage in self._children.items() if storage.unsealed]
        sealed: dict[Name, tuple[Values, Values]] = {info: self._children[info].take_changes() for info in changed}
        if changed:
            below = None if recorder is None else Asked(recorder)
            self._tries.seal({info: written for info, (written, _) in sealed.items()}, below)
        for info in changed:
            self._write_child_root(info)
        if self.top.unsealed or recorder is not None:
            written, replaced = self.top.take_changes()
            self._tries.seal({None: written}, asked)
            sealed[None] = written, without_child_roots(replaced, changed)
        self._history.note(self.root, self.state_version, sealed)
        self._tries.close(self._contents)
        return self.root

    def record(
        self,
        recorder: NodeRecorder,
        *,
        reads: Keys = NO_KEYS,
        seeks: Keys = NO_KEYS,
        tried: Collection[Mapping[Name, Values]] = (),
    ) -> None:
        """Let the ``recorder`` learn which nodes of the state sealed last it takes to look at keys, by trie.

        ``reads`` are read, external values among it, ``seeks`` looked for without their values; a child trie takes the
        way through the top trie. ``tried`` are changes over it whose state root is worked out, or, where the top trie
        is not among them, the roots of their child tries.
        """
        ways = {name.prefixed_storage_key() for name in {*reads, *seeks}.union(*tried) if name is not None}
        looked = {**seeks, None: {*seeks.get(None, ()), *ways}}
        for name in {**reads, **looked}:
            if (name is None or self._tries.root(name) != EMPTY_ROOT) and (reads.get(name) or looked.get(name)):
                wanted, sought = reads.get(name, ()), looked.get(name, ())
                update_trie(self.db, self._tries.root(name), {}, reads=wanted, seeks=sought, recorder=recorder)
        for changes in tried:
            if None in changes:
                self.root_with(changes, recorder=recorder)
                continue
            for info, values in changes.items():
                assert info is not None
                self.child_root_with(info, values, recorder=recorder)

    def root_with(
        self,
        changes: Mapping[Name, Values],
        *,
        state_version: StateVersion | None = None,
        recorder: NodeRecorder | None = None,
    ) -> bytes:
        """Return what the state root would be with ``changes`` by trie, over what is not sealed yet; nothing is kept.

        Changes are written in ``state_version``, by default the state's own. Entries of child tries follow. The
        ``recorder`` learns which nodes that takes.
        """
        version = self.state_version if state_version is None else state_version
        entries: Values = {}
        for info in {name for name, storage in self._children.items() if storage.unsealed} | changes.keys():
            if info is not None:
                root = self.child_root_with(info, changes.get(info, {}), state_version=version, recorder=recorder)
                entries[info.prefixed_storage_key()] = None if root == EMPTY_ROOT else root
        written = {**self.top.changes, **changes.get(None, {}), **entries}
        return update_trie(self.db, self.root, written, state_version=version, recorder=recorder).root

    def child_root_with(
        self,
        info: ChildInfo,
        changes: Values,
        *,
        state_version: StateVersion | None = None,
        recorder: NodeRecorder | None = None,
    ) -> bytes:
        """Return what the root of a child trie would be with ``changes``, see ``root_with``."""
        version, root = self.state_version if state_version is None else state_version, self._tries.root(info)
        written = {**self.child(info).changes, **changes}
        learning = None if root == EMPTY_ROOT else recorder
        return update_trie(self.db, root, written, state_version=version, recorder=learning).root

    def migrate(self, state_version: StateVersion) -> None:
        """Write values in another state version from now on; those there stay as they are until written again."""
        self._tries.state_version = StateVersion(state_version)

    def prove_read(self, root: bytes, keys: Iterable[bytes]) -> StorageProof:
        """Prove ``keys`` of the top trie of the sealed state with this ``root``; raises ``StateDiscarded``."""
        self._require(root)
        return self._tries.prove(root, list(keys))

    def prove_child_read(self, root: bytes, child_info: ChildInfo, keys: Iterable[bytes]) -> StorageProof:
        """Prove ``keys`` of a child trie and the way to its root in the top trie; raises ``StateDiscarded``."""
        self._require(root)
        return self._tries.prove_child(root, child_info, list(keys))

    def keeps(self, root: bytes) -> bool:
        """Return whether the sealed state with this ``root`` can be proven from."""
        return root in self._history

    def last_changed(self) -> dict[ChildInfo | None, list[bytes]]:
        """Return the keys that the last ``commit`` wrote or removed, by trie; none before there was one."""
        blocks = self._history.blocks
        return {name: list(values) for name, values in blocks[-1].values.items()} if blocks else {}

    def keep(self, window: int) -> None:
        """Let the last ``window`` sealed states be proven from. A state that can be proven from now stays so."""
        self.window = window
        self.load(self.dump())

    def snapshot(self) -> Snapshot:
        """Return a copy of everything held now, sealed or not: two states are equal when their snapshots are."""
        children = {info.storage_key: dict(storage.values) for info, storage in self._children.items() if storage}
        return dict(self.top.values), children

    def dump(self) -> StateDump:
        """Return all that is held, and all that can be proven from, as data; not inside a transaction."""
        if self._journal.frame is not None:
            raise ValueError("a state cannot be put away inside a transaction")
        inline, sealed = self._history.inline, self._sealed_values()
        without_child_roots(sealed[None], self._children)
        contents = {name: TrieContents(values, inline.get(name, ())) for name, values in sealed.items()}
        unsealed = {name: storage.changes for name, storage in self._storages().items() if storage.unsealed}
        return dump_state(self.state_version, contents, self._history, unsealed)

    def load(self, dump: StateDump) -> None:
        """Hold what another state held, as if it had come here by the same blocks; raises ``CheckpointRefused``.

        The ``engine`` and the ``window`` stay; ``db`` is another object from now on.
        """
        contents = contents_of(dump)
        history = history_of(dump, contents, window=self.window)
        with refusing("what its tries hold"):
            self._hold(contents, dump.state_version, self.engine)
        if self.root != history.roots[-1]:
            raise CheckpointRefused(f"a state has the root 0x{self.root.hex()}, expected 0x{history.roots[-1].hex()}")
        self._history = history
        with refusing("what is not sealed"):
            self.write(changes_in(dump.unsealed)[0])

    def _hold(self, contents: Mapping[Name, TrieContents], state_version: StateVersion, engine: Engine) -> None:
        """Hold this, as sealed, and nothing else; the entries of child tries in the top trie follow."""
        top, inline = contents[None]
        for key in top:
            if key.startswith(CHILD_STORAGE_PREFIX):
                raise ValueError(f"0x{key.hex()} names a child trie: give its entries instead of its root")
        children = {info: held for info, held in contents.items() if info is not None and held.values}
        tries = Tries(state_version=state_version, window=self.window, engine=engine)
        tries.fill(dict(children.items()))
        roots = {info.prefixed_storage_key(): tries.root(info) for info in children}
        tries.fill({None: TrieContents({**top, **roots}, inline)})
        self._tries = tries
        self.top.replace_all({**top, **roots})
        for info in {*self._children, *children}:
            self.child(info).replace_all(children[info].values if info in children else {})

    def write(self, changes: Mapping[Name, Values]) -> None:
        """Write ``changes`` by trie; ``None`` removes."""
        for name, written in changes.items():
            storage = self if name is None else self.child(name)
            for key, value in written.items():
                if value is None:
                    storage.kill(key)
                else:
                    storage.put(key, value)

    def _recall(self, first: int) -> None:
        """Take the tries through blocks that were loaded, all after the ``first``; raises ``CheckpointRefused``."""
        history = self._history
        if first >= history.unbuilt:
            return
        before, steps = history.unwound(self._sealed_values(), first)
        steps = steps[: history.unbuilt - first]
        past = State(window=len(steps) + 1, engine="plain")
        with refusing("a state before it"):
            past._hold(before, StateVersion.V1, "plain")
            roots = [past.root]
            for step in steps:
                past.migrate(step.state_version)
                past.write(step.written)
                roots.append(past.commit())
        if roots != history.roots[first : history.unbuilt + 1]:
            raise CheckpointRefused("a state before it has another root than its blocks lead to")
        self._tries.recall(past._tries)
        history.unbuilt = first

    def _storages(self) -> dict[Name, Storage]:
        return {None: self.top} | dict[Name, Storage](self._children.items())

    def _sealed_values(self) -> dict[Name, dict[bytes, bytes]]:
        """Return a copy of what was sealed last."""
        values: dict[Name, dict[bytes, bytes]] = {}
        for name, storage in self._storages().items():
            values[name] = dict(storage.values)
            put_back(values[name], storage.unsealed)
        return values

    def _contents(self) -> dict[Name, TrieContents]:
        inline = self._history.inline
        return {name: TrieContents(storage.values, inline.get(name, ())) for name, storage in self._storages().items()}

    def _write_child_root(self, info: ChildInfo) -> None:
        key, root = info.prefixed_storage_key(), self._tries.root(info)
        if root == EMPTY_ROOT:
            self.top.kill(key)
        else:
            self.top.put(key, root)

    def _require(self, root: bytes) -> None:
        if not self.keeps(root):
            raise StateDiscarded(root)
        first = self._history.blocks_before(root)
        if first is not None:
            self._recall(first)

    def __repr__(self) -> str:
        return f"<State 0x{self.root.hex()}, {len(self.top)} keys, {len(self.children())} child tries>"
