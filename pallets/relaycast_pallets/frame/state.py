"""The state of a chain: keys and values in a real trie and its child tries, sealed block by block.

Between seals everything happens in flat storage. ``commit`` writes the changed keys alone into the tries and the root
of every child trie into the top trie, and returns the state root. An empty child trie has no entry there. The last
``window`` sealed states can still be proven from; older ones are pruned without a rest.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct, field

from relaycast_pallets.frame.storage import OverlayStorage, RollsBack, Transaction, UndoLog, Values
from relaycast_pallets.frame.tries import (
    LOOKS_A_KEY,
    NO_KEYS,
    ArrayTries,
    Contents,
    EngineChoice,
    Inline,
    Keys,
    Name,
    PlainTries,
    Tries,
    WitnessRequest,
    long_keys,
    seal_together,
)
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.engine import Engine
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.partial_trie import MOST_PLACES
from relaycast_trie.plain.trie_db import NodeRecorder, Recorder
from relaycast_trie.plain.trie_update import update_trie
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.checkpoint import CheckpointRefused, Count, Dump, DumpRow, Hash, refusing

if TYPE_CHECKING:
    from relaycast_trie.array.forest import Sealing

V = TypeVar("V")


class Replaced(Struct, frozen=True):
    """A block's changes, backwards: the values that it replaced, and which of these were ``inline``.

    The entries of child tries in the top trie are not among them. ``root`` is the state's after the block.
    """

    root: bytes
    state_version: StateVersion
    values: dict[Name, Values]
    inline: Inline = field(default_factory=dict)


class History:
    """The last ``window`` states that were sealed, the first of which has the root ``oldest``."""

    __slots__ = ("_kept", "blocks", "inline", "oldest", "unbuilt", "window")

    def __init__(self, oldest: bytes, inline: Inline, *, window: int) -> None:
        self.window = window
        self.oldest = oldest
        self.inline = inline
        self.blocks: deque[Replaced] = deque()
        self.unbuilt = 0
        """The number of blocks, the oldest ones, that were loaded and that the tries know nothing of."""

        self._kept = Counter([oldest])

    @property
    def roots(self) -> list[bytes]:
        """The roots of the states that are kept, the oldest first; some may be equal."""
        return [self.oldest, *(block.root for block in self.blocks)]

    def note(self, root: bytes, state_version: StateVersion, changes: Mapping[Name, tuple[Values, Values]]) -> None:
        """Note a block that left the state with this ``root``: what it wrote to each trie, and what stood there."""
        inline = {}
        for name, (written, _) in changes.items():
            known = self.inline.setdefault(name, set())
            if known:
                inline[name] = known & written.keys()
                known.difference_update(written)
            if state_version is StateVersion.V0:
                known.update(long_keys({key: value for key, value in written.items() if value is not None}))
        before = {name: replaced for name, (_, replaced) in changes.items()}
        self.add(Replaced(root, state_version, before, {name: keys for name, keys in inline.items() if keys}))

    def add(self, block: Replaced) -> None:
        """Add a block; the oldest state goes if there are too many."""
        self.blocks.append(block)
        self._kept[block.root] += 1
        while len(self.blocks) >= self.window:
            self._kept[self.oldest] -= 1
            if not self._kept[self.oldest]:
                del self._kept[self.oldest]
            self.oldest = self.blocks.popleft().root
            self.unbuilt = max(0, self.unbuilt - 1)

    def blocks_before(self, root: bytes) -> int | None:
        """Return how many blocks stand before the last state with this root if the tries know nothing of that state."""
        if not self.unbuilt or root in self.roots[self.unbuilt :]:
            return None
        return max(at for at, known in enumerate(self.roots[: self.unbuilt]) if known == root)

    def unwound(
        self, held: dict[Name, dict[bytes, bytes]], first: int
    ) -> tuple[Inline, list[tuple[StateVersion, dict[Name, Values]]]]:
        """Take what is ``held`` now back to the end of the ``first`` blocks.

        Return which long values were inside of their nodes then, and what each block after them wrote, in what version.
        """
        inline = {name: set(keys) for name, keys in self.inline.items()}
        steps = []
        for block in islice(reversed(self.blocks), len(self.blocks) - first):
            written = {}
            for name, replaced in block.values.items():
                values = held.setdefault(name, {})
                written[name] = {key: values.get(key) for key in replaced}
                put_back(values, replaced)
                inline[name] = (inline.get(name, set()) - replaced.keys()) | block.inline.get(name, set())
            steps.append((block.state_version, written))
        without_child_roots(held[None], [name for name in held if name is not None])
        return inline, steps[::-1]

    def __contains__(self, root: bytes) -> bool:
        return root in self._kept


def put_back(values: dict[bytes, bytes], replaced: Values) -> None:
    """Undo the changes that ``replaced`` these values."""
    for key, value in replaced.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value


def without_child_roots(values: dict[bytes, V], children: Iterable[ChildInfo]) -> dict[bytes, V]:
    """Take the entries of these child tries out of values of the top trie."""
    for info in children:
        values.pop(info.prefixed_storage_key(), None)
    return values


class TrieDump(DumpRow, Generic[V], frozen=True):
    """Values of a trie by its ``name``, ``None`` for the top trie; ``inline`` are places in ``keys``, see ``Inline``.

    The entries of child tries are not among those of the top trie. ``None`` stands for no value.
    """

    name: bytes | None
    keys: list[bytes]
    values: list[V]
    inline: list[Count]


Changed = TrieDump[bytes | None]


class BlockDump(DumpRow, frozen=True):
    """A block that left a state with this ``root``, and what it replaced."""

    root: Hash
    state_version: StateVersion
    replaced: list[Changed]


class RootDump(DumpRow, frozen=True):
    """The root of a trie by its ``name``, ``None`` for the top trie."""

    name: bytes | None
    root: Hash


class KnownDump(Dump, frozen=True):
    """The database of a state with gaps: ``nodes`` with how often each is used, and the hashes that blocks drop."""

    nodes: list[bytes]
    uses: list[Annotated[int, Meta(ge=1, le=MOST_PLACES)]]
    roots: list[RootDump]
    dropped: list[bytes]

    @classmethod
    def of(cls, tries: PlainTries) -> "KnownDump":
        """Return what is in a database, in the order of the hashes."""
        found = [(count, tries.db.get(node_hash)) for node_hash, count in sorted(tries.db.references().items())]
        return cls(
            nodes=[node for _, node in found if node is not None],
            uses=[count for count, _ in found],
            roots=[RootDump(_bare(name), tries.roots[name]) for name in _in_order(tries.roots)],
            dropped=list(tries.dropped),
        )

    def tries(self, state_version: StateVersion, window: int) -> PlainTries:
        """Return the tries; ``ValueError`` where they do not fit together."""
        if len(self.nodes) != len(self.uses):
            raise ValueError(f"{len(self.nodes)} nodes with {len(self.uses)} uses")
        roots = {_name(it.name): it.root for it in self.roots}
        if None not in roots:
            raise ValueError("no root of the top trie")
        db = MemoryDB()
        for node, uses in zip(self.nodes, self.uses, strict=True):
            db.emplace_all([db.hasher.digest(node)] * uses, [node] * uses)
        return PlainTries(db, state_version, window, roots, self.dropped)


class StateDump(Dump, frozen=True, omit_defaults=True):
    """A state; ``blocks`` follow on the one whose state has the root ``oldest``, and ``unsealed`` on all of them.

    A state with gaps has its ``known`` nodes in place of ``tries``.
    """

    state_version: StateVersion
    tries: list[TrieDump[bytes]]
    oldest: Hash
    blocks: list[BlockDump]
    unsealed: list[Changed]
    known: KnownDump | None = None


def rows_of(tries: Mapping[Name, Mapping[bytes, bytes | None]], inline: Inline) -> list[TrieDump[Any]]:
    """Return values by trie and key as rows: the top trie first, then child tries by name; keys in order."""
    rows = []
    for name in _in_order(tries):
        held, inside = tries[name], inline.get(name, ())
        keys = sorted(held)
        values = [None if value is None else bytes(value) for value in map(held.__getitem__, keys)]
        places = [place for place, key in enumerate(keys) if key in inside] if inside else []
        rows.append(TrieDump(_bare(name), list(map(bytes, keys)), values, places))
    return rows


def values_in(rows: Iterable[TrieDump[V]]) -> tuple[dict[Name, dict[bytes, V]], Inline]:
    """Return values by trie and key, and which of them stood inside of their nodes; raises ``CheckpointRefused``."""
    values: dict[Name, dict[bytes, V]] = {}
    inline: Inline = {}
    for row in rows:
        with refusing("the top trie" if row.name is None else f"child trie 0x{row.name.hex()}"):
            name, keys = _name(row.name), row.keys
            if len(keys) != len(row.values):
                raise ValueError(f"{len(keys)} keys with {len(row.values)} values")
            values[name] = dict(zip(keys, row.values, strict=True))
            if row.inline:
                inline[name] = {keys[place] for place in row.inline}
    return values, inline


def _in_order(names: Iterable[Name]) -> list[Name]:
    return sorted(names, key=lambda name: _bare(name) or b"")


def _bare(name: Name) -> bytes | None:
    return None if name is None else name.storage_key


def _name(bare: bytes | None) -> Name:
    return None if bare is None else ChildInfo(bare)


Snapshot = tuple[dict[bytes, bytes], dict[bytes, dict[bytes, bytes]]]
"""Everything a state holds: the top trie, and the child tries that are not empty by their name."""

NO_CHANGES: Mapping[Name, Values] = MappingProxyType({})


class StateDiscarded(RelaycastError, message="the state {root} is not among those kept"):
    """The state with this ``root`` was never sealed here, or has left the window ("state already discarded")."""

    root: bytes


class State:
    """A chain's state; the methods of the top trie's storage are its own, ``child`` gives those of a child trie.

    ``top`` and ``children`` (by name, without prefix) are the genesis, sealed as they are. ``engine`` says what works
    on the tries; nothing but time follows from it. States that are sealed together share a choice, see
    ``commit_together``.
    """

    def __init__(
        self,
        top: Mapping[bytes, bytes] | None = None,
        children: Mapping[ChildInfo, Mapping[bytes, bytes]] | None = None,
        *,
        state_version: StateVersion = StateVersion.V1,
        window: int = 256,
        engine: Engine | EngineChoice = "auto",
    ) -> None:
        self._begin(window)
        self._choice = engine if isinstance(engine, EngineChoice) else EngineChoice(engine)
        self._choice.states += 1
        held: dict[Name, Mapping[bytes, bytes]] = {None: top or {}}
        held.update((children or {}).items())
        version = StateVersion(state_version)
        inline = {name: long_keys(values) for name, values in held.items()} if version is StateVersion.V0 else {}
        self._hold(held, inline, version)
        self._history = History(self.root, inline, window=window)

    def begun_again(self, *, window: int, engine: Engine) -> "State":
        """Return a state that begins as this one did, without hashing anything; this one has sealed no block."""
        tries, history = self._tries, self._history
        assert isinstance(tries, PlainTries), "a state begins again from plain tries"
        assert not history.blocks, "a state begins again from its genesis"
        again = State(window=window, engine=engine)
        again._tries = PlainTries(tries.db.copy(), tries.state_version, window, tries.roots)
        for name, storage in self._storages().items():
            (again.top if name is None else again.child(name)).replace_all(storage.values)
        inline = {name: set(keys) for name, keys in history.inline.items()}
        again._history = History(self.root, inline, window=window)
        return again

    def _begin(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"at least the last state is kept, got a window of {window}")
        self.window = window
        self._undo = UndoLog()
        self._companions: list[RollsBack] = []
        self._children: dict[ChildInfo, OverlayStorage] = {}
        self._proven: dict[tuple[bytes, ChildInfo, tuple[bytes, ...]], StorageProof] = {}
        self.top = OverlayStorage(self._undo)
        self._tries: Tries
        self._shown: bool

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
        """Iterate over the top trie, see ``OverlayStorage.iter_prefix``."""
        return self.top.iter_prefix(prefix, start_after=start_after)

    def count_prefix(self, prefix: bytes) -> int:
        return self.top.count_prefix(prefix)

    def clear_prefix(self, prefix: bytes) -> int:
        """Remove the top trie's keys under ``prefix``, which must not lead to child tries, and count them."""
        if prefix.startswith(CHILD_STORAGE_PREFIX) or CHILD_STORAGE_PREFIX.startswith(prefix):
            raise ValueError(f"0x{prefix.hex()} leads to child tries: clear those")
        return self.top.clear_prefix(prefix)

    def child(self, child_info: ChildInfo) -> OverlayStorage:
        """Return the storage of a child trie, which stays the same object; one that never held anything is empty."""
        storage = self._children.get(child_info)
        if storage is None:
            storage = self._children[child_info] = OverlayStorage(self._undo)
        return storage

    def children(self) -> list[ChildInfo]:
        """Return the names of the child tries that hold something now, in order."""
        return sorted(info for info, storage in self._children.items() if storage)

    def join(self, companion: RollsBack) -> None:
        """Let ``companion`` be taken back together with the storage when a transaction fails."""
        self._companions.append(companion)

    def transaction(self) -> "Transaction":
        """Return a ``with`` block that leaves no trace when it raises; an outer failure undoes inner successes."""
        return Transaction(self._undo, self._companions)

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
        return self.nodes_under(self.root)

    def nodes_under(self, root: bytes) -> MemoryDB:
        """Return a database with all nodes of the sealed state with this ``root``; raises ``StateDiscarded``."""
        self._require(root)
        self._shown = True
        self._tries.show()
        return self._tries.db

    @property
    def engine(self) -> Engine:
        """What works on the tries; another choice is made between blocks, and holds after the next ``commit``."""
        return self._choice.engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._choice.choose(engine)
        if engine == "plain" and isinstance(self._tries, ArrayTries):
            self._tries = self._tries.in_plain()

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
        if self._undo.frame is not None:
            raise ValueError("a state cannot be sealed inside a transaction")
        request: WitnessRequest | None = None
        if recorder is not None:
            removed = {name: [key for key, value in held.items() if value is None] for name, held in changes.items()}
            lost = [them for them in tried if them != changes]
            self.record(recorder, reads={**reads, None: ()}, seeks={**seeks, None: ()}, tried=lost)
            self.record(recorder, seeks={name: keys for name, keys in removed.items() if name is not None})
            looked = {*seeks.get(None, ()), *removed.get(None, ())}
            request = WitnessRequest(recorder, reads.get(None, ()), looked)
        self._write_to_seal(changes)
        changed = [info for info, storage in self._children.items() if storage.unsealed]
        sealed: dict[Name, tuple[Values, Values]] = {info: self._children[info].take_changes() for info in changed}
        if changed:
            below = None if recorder is None else WitnessRequest(recorder)
            self._seal({info: written for info, (written, _) in sealed.items()}, below)
        for info in changed:
            self._write_child_root(info)
        if self.top.unsealed or recorder is not None:
            written, replaced = self.top.take_changes()
            self._seal({None: written}, request)
            sealed[None] = written, without_child_roots(replaced, changed)
        return self._end_block(sealed)

    def _end_block(self, sealed: Mapping[Name, tuple[Values, Values]]) -> bytes:
        """Keep what a block replaced, and return the state root that it left."""
        self._proven.clear()
        self._history.note(self.root, self.state_version, sealed)
        self._tries.close()
        if self._choice.moves(in_arrays=isinstance(self._tries, ArrayTries), keys=self._count_keys):
            self._move()
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
        """Prove ``keys`` of a child trie and the way to its root in the top trie; raises ``StateDiscarded``.

        Many parachains read the same feed: until the next seal a proof that was made is there for the next one.
        """
        wanted = root, child_info, tuple(keys)
        proof = self._proven.get(wanted)
        if proof is None:
            self._require(root)
            proof = self._proven[wanted] = self._tries.prove_child(root, child_info, list(wanted[2]))
        return proof

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
        if self._undo.frame is not None:
            raise ValueError("a state cannot be put away inside a transaction")
        blocks = [BlockDump(it.root, it.state_version, rows_of(it.values, it.inline)) for it in self._history.blocks]
        unsealed = {name: storage.changes for name, storage in self._storages().items() if storage.unsealed}
        tries, known = self._dump_tries()
        return StateDump(self.state_version, tries, self._history.oldest, blocks, rows_of(unsealed, {}), known)

    def load(self, dump: StateDump) -> None:
        """Hold what another state held, as if it had come here by the same blocks; raises ``CheckpointRefused``.

        The ``engine`` and the ``window`` stay; ``db`` is another object from now on.
        """
        self._proven.clear()
        history = History(dump.oldest, self._load_tries(dump), window=self.window)
        for block in dump.blocks:
            history.add(Replaced(block.root, block.state_version, *values_in(block.replaced)))
        history.unbuilt = 0 if dump.known else len(history.blocks)
        if self.root != history.roots[-1]:
            raise CheckpointRefused(f"a state has the root 0x{self.root.hex()}, expected 0x{history.roots[-1].hex()}")
        self._history = history
        with refusing("what is not sealed"):
            self.write(values_in(dump.unsealed)[0])

    def _dump_tries(self) -> tuple[list[TrieDump[bytes]], KnownDump | None]:
        sealed = self._sealed_values()
        without_child_roots(sealed[None], self._children)
        return rows_of({name: held for name, held in sealed.items() if held}, self._history.inline), None

    def _load_tries(self, dump: StateDump) -> Inline:
        """Hold what tries held, and return which long values stand inside of their nodes."""
        values, inline = values_in(dump.tries)
        with refusing("what its tries hold"):
            if isinstance(self._tries, ArrayTries):
                self._tries.leave()
            self._hold({None: {}, **values}, inline, dump.state_version)
        return inline

    def _hold(self, contents: Contents, inline: Inline, state_version: StateVersion) -> None:
        """Hold this, as sealed, and nothing else; the entries of child tries in the top trie follow."""
        for key in contents[None]:
            if key.startswith(CHILD_STORAGE_PREFIX):
                raise ValueError(f"0x{key.hex()} names a child trie: give its entries instead of its root")
        children = {info: held for info, held in contents.items() if info is not None and held}
        tries, self._shown = PlainTries(MemoryDB(), state_version, self.window), False
        in_arrays = self._choice.loads_in_arrays(sum(map(len, contents.values())))
        self._tries = ArrayTries(tries, self.window, {}, {}, choice=self._choice) if in_arrays else tries
        self._tries.fill(dict(children.items()), inline)
        top = {**contents[None], **{info.prefixed_storage_key(): self._tries.root(info) for info in children}}
        self._tries.fill({None: top}, inline)
        self.top.replace_all(top)
        for info in {*self._children, *children}:
            self.child(info).replace_all(children.get(info, {}))

    def _seal(self, changes: Mapping[Name, Values], request: WitnessRequest | None) -> None:
        looked = 0 if request is None else len(request.reads) + len(request.seeks)
        keys = sum(map(len, changes.values())) + looked // LOOKS_A_KEY
        self._choice.note(len(changes), keys, in_arrays=isinstance(self._tries, ArrayTries))
        self._tries.seal(changes, request)

    def _move(self) -> None:
        """Go on in arrays instead of plain tries, or in plain tries instead of arrays."""
        if isinstance(self._tries, ArrayTries):
            self._tries = self._tries.in_plain()
        else:
            held = {name: storage.values for name, storage in self._storages().items()}
            inline, choice, shown = self._history.inline, self._choice, self._shown
            self._tries = ArrayTries(self._tries, self.window, held, inline, choice=choice, shown=shown)

    def _count_keys(self) -> int:
        return sum(len(storage.values) for storage in self._storages().values())

    def _write_to_seal(self, changes: Mapping[Name, Values]) -> None:
        self.write(changes)

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
        before = self._sealed_values()
        inline, steps = history.unwound(before, first)
        steps = steps[: history.unbuilt - first]
        past = State(window=len(steps) + 1, engine="plain")
        with refusing("a state before it"):
            past._hold(before, inline, StateVersion.V1)
            roots = [past.root]
            for version, written in steps:
                past.migrate(version)
                past.write(written)
                roots.append(past.commit())
        if roots != history.roots[first : history.unbuilt + 1]:
            raise CheckpointRefused("a state before it has another root than its blocks lead to")
        assert isinstance(past._tries, PlainTries)
        self._tries.recall(past._tries)
        history.unbuilt = first

    def _storages(self) -> dict[Name, OverlayStorage]:
        return {None: self.top} | dict[Name, OverlayStorage](self._children.items())

    def _sealed_values(self) -> dict[Name, dict[bytes, bytes]]:
        """Return a copy of what was sealed last."""
        values: dict[Name, dict[bytes, bytes]] = {}
        for name, storage in self._storages().items():
            values[name] = dict(storage.values)
            put_back(values[name], storage.unsealed)
        return values

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


def commit_together(blocks: Sequence[tuple[State, Collection[bytes]]]) -> list[StorageProof]:
    """Seal several states, those in arrays in one go; each comes with the keys of its top trie that a block read.

    Returns what each block carries of its state, as ``State.commit`` would record it.
    """
    proofs: dict[int, StorageProof] = {}
    groups: dict[tuple[EngineChoice, StateVersion], list[tuple[int, Sealing]]] = {}
    taken: dict[int, tuple[Values, Values]] = {}
    for number, (state, reads) in enumerate(blocks):
        tries = state._tries
        if not isinstance(tries, ArrayTries) or tries.shown or any(it.unsealed for it in state._children.values()):
            recorder = Recorder()
            state.commit(reads={None: reads}, recorder=recorder)
            proofs[number] = StorageProof.of_recorded(recorder.nodes)
            continue
        if state._undo.frame is not None:
            raise ValueError("a state cannot be sealed inside a transaction")
        taken[number] = state.top.take_changes()
        group = groups.setdefault((state._choice, tries.state_version), [])
        group.append((number, tries.top(taken[number][0], reads)))
    for group in groups.values():
        proofs.update(zip((number for number, _ in group), seal_together([it for _, it in group]), strict=True))
    for number, changes in taken.items():
        state, reads = blocks[number]
        state._choice.note(1, len(changes[0]) + len(reads) // LOOKS_A_KEY, in_arrays=True)
        state._end_block({None: changes})
    return [proofs[number] for number in range(len(blocks))]
