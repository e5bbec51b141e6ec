"""A state as data: what its tries hold, and what the blocks that it keeps replaced. It does not depend on the engine.

What can be proven from follows from that: older states are put together again when somebody asks for them.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, TypeVar

from msgspec import Meta

from relaycast_pallets.frame.state_history import History, Inline, Replaced
from relaycast_pallets.frame.state_tries import Name, TrieContents
from relaycast_pallets.frame.storage import Values
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.partial_trie import MOST_PLACES
from relaycast_xcm.checkpoint import Count, Dump, DumpRow, Hash, refusing

T = TypeVar("T")


class TrieDump(DumpRow, frozen=True):
    """A trie by its ``name``, ``None`` for the top trie; ``inline`` are places in ``keys``, see ``TrieContents``.

    The entries of child tries are not among those of the top trie.
    """

    name: bytes | None
    keys: list[bytes]
    values: list[bytes]
    inline: list[Count]


class ChangesDump(DumpRow, frozen=True):
    """Values of one trie by key; ``None`` where there is none."""

    name: bytes | None
    keys: list[bytes]
    values: list[bytes | None]
    inline: list[Count]


class BlockDump(DumpRow, frozen=True):
    """A block that left a state with this ``root``, and what it replaced."""

    root: Hash
    state_version: StateVersion
    replaced: list[ChangesDump]


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
    def of(cls, db: MemoryDB, roots: Mapping[Name, bytes], dropped: Iterable[bytes]) -> "KnownDump":
        """Return what is in a database, in the order of the hashes."""
        found = [(node_hash, count, db.get(node_hash)) for node_hash, count in sorted(db.references().items())]
        return cls(
            nodes=[node for _, _, node in found if node is not None],
            uses=[count for _, count, _ in found],
            roots=[RootDump(_bare(name), root) for name, root in _in_order(roots)],
            dropped=list(dropped),
        )

    def database(self) -> MemoryDB:
        """Return the database; ``ValueError`` where it does not fit together."""
        if len(self.nodes) != len(self.uses):
            raise ValueError(f"{len(self.nodes)} nodes with {len(self.uses)} uses")
        db = MemoryDB()
        for node, uses in zip(self.nodes, self.uses, strict=True):
            node_hash = db.hasher.digest(node)
            db.emplace_all([node_hash] * uses, [node] * uses)
        return db

    def roots_by_name(self) -> dict[Name, bytes]:
        """Return the roots of all tries."""
        roots = {_name(it.name): it.root for it in self.roots}
        if None not in roots:
            raise ValueError("no root of the top trie")
        return roots


class StateDump(Dump, frozen=True, omit_defaults=True):
    """A state; ``blocks`` follow on the one whose state has the root ``oldest``, and ``unsealed`` on all of them.

    A state with gaps has its ``known`` nodes in place of ``tries``.
    """

    state_version: StateVersion
    tries: list[TrieDump]
    oldest: Hash
    blocks: list[BlockDump]
    unsealed: list[ChangesDump]
    known: KnownDump | None = None


def dump_state(
    state_version: StateVersion,
    contents: Mapping[Name, TrieContents],
    history: History,
    unsealed: Mapping[Name, Values],
) -> StateDump:
    """Return a state that was sealed with these ``contents``, and what was written since."""
    tries, blocks = _in_order(contents), history.blocks
    return StateDump(
        state_version=state_version,
        tries=[_dump_trie(name, held) for name, held in tries if held.values],
        oldest=history.oldest,
        blocks=[BlockDump(it.root, it.state_version, _dump_changes(it.values, it.inline)) for it in blocks],
        unsealed=_dump_changes(unsealed, {}),
    )


def contents_of(dump: StateDump) -> dict[Name, TrieContents]:
    """Return what all tries hold, the top trie among them."""
    contents: dict[Name, TrieContents] = {None: TrieContents({})}
    for trie in dump.tries:
        with refusing(_called(trie.name)):
            keys = trie.keys
            contents[_name(trie.name)] = TrieContents(
                _by_key(keys, trie.values), {keys[place] for place in trie.inline}
            )
    return contents


def history_of(dump: StateDump, contents: Mapping[Name, TrieContents], *, window: int) -> History:
    """Return the states that are kept; the tries know nothing of those before the last one."""
    history = History(dump.oldest, {name: set(held.inline) for name, held in contents.items()}, window=window)
    for block in dump.blocks:
        history.add(Replaced(block.root, block.state_version, *changes_in(block.replaced)))
    history.unbuilt = len(history.blocks)
    return history


def changes_in(changes: Iterable[ChangesDump]) -> tuple[dict[Name, Values], Inline]:
    """Return values by trie and key, and which of them stood inside of their nodes."""
    values: dict[Name, Values] = {}
    inline: Inline = {}
    for change in changes:
        with refusing(_called(change.name)):
            keys, name = change.keys, _name(change.name)
            values[name] = _by_key(keys, change.values)
            if change.inline:
                inline[name] = {keys[place] for place in change.inline}
    return values, inline


def _dump_trie(name: Name, held: TrieContents) -> TrieDump:
    keys = sorted(held.values)
    values = [bytes(held.values[key]) for key in keys]
    return TrieDump(_bare(name), list(map(bytes, keys)), values, _places(keys, held.inline))


def _dump_changes(values: Mapping[Name, Values], inline: Inline) -> list[ChangesDump]:
    found = []
    for name, changed in _in_order(values):
        keys = sorted(changed)
        there = [None if value is None else bytes(value) for value in map(changed.__getitem__, keys)]
        found.append(ChangesDump(_bare(name), list(map(bytes, keys)), there, _places(keys, inline.get(name, ()))))
    return found


def _in_order(tries: Mapping[Name, T]) -> list[tuple[Name, T]]:
    """Return the top trie first, then child tries by name."""
    return sorted(tries.items(), key=lambda item: _bare(item[0]) or b"")


def _places(keys: list[bytes], inline: Collection[bytes]) -> list[int]:
    return [place for place, key in enumerate(keys) if key in inline] if inline else []


def _bare(name: Name) -> bytes | None:
    return None if name is None else name.storage_key


def _name(bare: bytes | None) -> Name:
    return None if bare is None else ChildInfo(bare)


def _called(bare: bytes | None) -> str:
    return "the top trie" if bare is None else f"child trie 0x{bare.hex()}"


def _by_key(keys: list[bytes], values: list[T]) -> dict[bytes, T]:
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys with {len(values)} values")
    return dict(zip(keys, values, strict=True))
