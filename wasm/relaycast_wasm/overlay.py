"""The storage that a runtime sees: the state below, and over it what was written, in transactions that can be undone.

Law: ``OverlayedChanges`` and ``Ext`` of sp-state-machine. Nothing reaches the state until somebody takes ``changes``.
What was looked at in the state below is noted: a block carries it (its PoV). So does it every change, one that writes
the value that stands there, or removes a key that is not there, included. What a transaction read stays noted when it
is rolled back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from types import EllipsisType

from sortedcontainers import SortedSet

from relaycast_pallets.frame.storage import Values
from relaycast_pallets.frame.tries import Name
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_wasm.appended import Appended
from relaycast_wasm.backing import Backing, StateBacking
from relaycast_wasm.proof_meter import ProofMeter

__all__ = [
    "CHILD_KEYS",
    "Backing",
    "Name",
    "NoTransaction",
    "OverlayedChanges",
    "Removed",
    "StateBacking",
    "Values",
]

CHILD_KEYS = b":child_storage:"
"""Keys of the top trie that no function of it writes to (``CHILD_STORAGE_KEY_PREFIX``)."""

Written = bytes | Appended | None
"""What stands for a key in the overlay; ``None`` where it was removed."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What removing many keys came to (``MultiRemovalResults``): ``cursor`` is the next key when a limit stopped it."""

    cursor: bytes | None = None
    backend: int = 0
    """Keys of the state below that were not removed before."""

    unique: int = 0
    """Keys removed in all."""

    loops: int = 0
    """Keys of the state below that were visited, removed ones too."""


class NoTransaction(Exception):
    """A transaction is to end, and none is open."""


class OverlayedChanges:
    """Changes over a ``backing``, in nested transactions; keys and values are bytes, ``name`` says of which trie.

    With ``recording``, ``proof_bytes`` says how large the proof of what was read is.
    """

    def __init__(self, backing: Backing, *, recording: bool = False) -> None:
        self.backing = backing
        self.reads: dict[Name, set[bytes]] = {}
        """Keys whose value was read of the state below."""

        self.seeks: dict[Name, set[bytes]] = {}
        """Keys that were looked for in the state below without their value: is there one, and which is next."""

        self.tried: list[dict[Name, Values]] = []
        """Changes whose root was asked for; without those of the top trie, the root of child tries alone."""

        self._meter = ProofMeter(backing) if recording else None
        self._tries: dict[Name, _TrieChanges] = {}
        self._frames: list[dict[tuple[Name, bytes], Written | EllipsisType]] = []
        """What each open transaction has overwritten: the first old value of each key, ``...`` where none was."""

        self._noted: list[tuple[dict[Name, set[bytes]], Name, bytes]] = []
        """The keys of ``reads`` and ``seeks`` in the order in which they came."""

        self._protected = 0
        self._root: bytes | None = None

    def get(self, key: bytes, name: Name = None) -> bytes | None:
        trie = self._tries.get(name)
        if trie is not None:
            found = trie.values.get(key, ...)
            if found is not ...:
                return found.whole() if isinstance(found, Appended) else found
        self._note(self.reads, name, key)
        return self.backing.get(name, key)

    def exists(self, key: bytes, name: Name = None) -> bool:
        """Return whether ``key`` has a value, which is not read for it."""
        trie = self._tries.get(name)
        if trie is not None:
            found = trie.values.get(key, ...)
            if found is not ...:
                return found is not None
        self._note(self.seeks, name, key)
        return self.backing.exists(name, key)

    def put(self, key: bytes, value: bytes | None, name: Name = None) -> None:
        """Write ``value``, or remove ``key`` with ``None``."""
        self._put(self._changed(name), key, value, name)

    def append(self, key: bytes, item: bytes, name: Name = None) -> None:
        """Append an encoded ``item`` to the SCALE vector at ``key``; what is no vector gives way to a new one."""
        trie = self._changed(name)
        found: Written | EllipsisType = trie.values.get(key, ...)
        if found is ...:
            self._note(self.reads, name, key)
            found = self.backing.get(name, key)
        vector = found if isinstance(found, Appended) else Appended.of(found or b"")
        self._put(trie, key, vector.with_item(item), name)

    def next_key(self, key: bytes, name: Name = None) -> bytes | None:
        """Return the first key after ``key`` that has a value; ``None`` at the end."""
        below = self._below(key, name)
        trie = self._tries.get(name)
        if trie is None:
            return below
        for own, value in trie.after(key):
            if below is not None and below < own:
                return below
            if value is not None:
                return own
            if below == own:
                below = self._below(own, name)
        return below

    def clear_prefix(
        self, prefix: bytes, name: Name = None, *, limit: int | None = None, cursor: bytes | None = None
    ) -> Removed:
        """Remove every key under ``prefix`` that was written here, and up to ``limit`` keys of the state below.

        What was removed here before is visited again in the state below, and counts. The ``cursor`` is the first key
        below that may go.
        """
        trie = self._changed(name)
        own = [key for key, value in trie.under(prefix) if value is not None]
        for key in own:
            self._put(trie, key, None, name)
        removed = loops = 0
        for found in self._keys_below(prefix, name, cursor):
            if loops == limit:
                return Removed(found, removed, len(own) + removed, loops)
            loops += 1
            if trie.values.get(found, ...) is not None:
                self._put(trie, found, None, name)
                removed += 1
        return Removed(None, removed, len(own) + removed, loops)

    def start_transaction(self) -> None:
        self._frames.append({})

    def roll_back_transaction(self) -> None:
        """Undo what the innermost transaction wrote; raises ``NoTransaction``."""
        if len(self._frames) <= self._protected:
            raise NoTransaction
        self._root = None
        for (name, key), old in self._frames.pop().items():
            values = self._tries[name].values
            if old is ...:
                del values[key]
            else:
                values[key] = old
        for name in [name for name, trie in self._tries.items() if name is not None and not trie.values]:
            del self._tries[name]

    def commit_transaction(self) -> None:
        """Make what the innermost transaction wrote part of the one around it; raises ``NoTransaction``."""
        if len(self._frames) <= self._protected:
            raise NoTransaction
        frame = self._frames.pop()
        if not self._frames:
            return
        outer = self._frames[-1]
        if len(outer) < len(frame):
            frame.update(outer)
            self._frames[-1] = frame
            return
        for place, old in frame.items():
            outer.setdefault(place, old)

    @contextmanager
    def in_runtime(self) -> Iterator[None]:
        """Keep the transactions that are open from being ended, and roll back in the end those opened meanwhile."""
        before, self._protected = self._protected, len(self._frames)
        try:
            yield
        finally:
            while len(self._frames) > self._protected:
                self.roll_back_transaction()
            self._protected = before

    def mark(self) -> tuple[int, int]:
        """Return the number of accesses so far, for ``forget``."""
        return len(self._noted), len(self.tried)

    def forget(self, mark: tuple[int, int]) -> None:
        """Drop the accesses recorded since ``mark``."""
        noted, tried = mark
        while len(self._noted) > noted:
            seen, name, key = self._noted.pop()
            seen[name].discard(key)
            if not seen[name]:
                del seen[name]
        del self.tried[tried:]

    @property
    def depth(self) -> int:
        """The number of open transactions."""
        return len(self._frames)

    def changes(self) -> dict[Name, Values]:
        """Return all that was written, by trie, in open transactions too; the entries of child tries are not in it."""
        changes = {name: trie.materialised() for name, trie in self._tries.items()}
        top = changes.setdefault(None, {})
        for key in [key for key in top if key.startswith(CHILD_KEYS)]:
            del top[key]
        return changes

    def root(self, state_version: StateVersion) -> bytes:
        """Return the state root with all that was written; until the next write it stays as it was first asked for."""
        if self._root is None:
            changes = self.changes()
            self.tried.append(changes)
            self._root = self.backing.root(changes, state_version=state_version)
        return self._root

    def child_root(self, info: ChildInfo, state_version: StateVersion) -> bytes:
        """Return the root of a child trie, and write it into the top trie where something was written to the child.

        Right after ``root`` it is what stands in the top trie (sp-state-machine ``child_storage_root``).
        """
        entry = info.prefixed_storage_key()
        trie = self._tries.get(info)
        if self._root is not None or trie is None:
            return self.get(entry) or EMPTY_ROOT
        values = trie.materialised()
        self.tried.append({info: values})
        root = self.backing.child_root(info, values, state_version=state_version)
        self.put(entry, None if root == EMPTY_ROOT else root)
        return root

    def proof_bytes(self) -> int | None:
        """Return the bytes of the proof of all that was read so far, as encoded; ``None`` where nobody records."""
        return None if self._meter is None else self._meter.measure(self.reads, self.seeks)

    def _changed(self, name: Name) -> "_TrieChanges":
        self._root = None
        trie = self._tries.get(name)
        if trie is None:
            trie = self._tries[name] = _TrieChanges()
        return trie

    def _put(self, trie: "_TrieChanges", key: bytes, value: Written, name: Name) -> None:
        values = trie.values
        if self._frames:
            frame, place = self._frames[-1], (name, key)
            if place not in frame:
                frame[place] = values.get(key, ...)
        if key not in values:
            trie.came.append(key)
        values[key] = value

    def _keys_below(self, prefix: bytes, name: Name, cursor: bytes | None) -> Iterator[bytes]:
        """Yield the keys of the state below that start with ``prefix``, from the ``cursor`` on."""
        start = prefix
        if cursor is not None and cursor > prefix:
            if not cursor.startswith(prefix):  # clients find that out with the root in hand
                self._note(self.seeks, name, b"")
                self.backing.exists(name, b"")
                return
            start = cursor
            self._note(self.seeks, name, start)
        self._note(self.seeks, name, prefix)
        for found in self.backing.keys(name, prefix, start):
            self._note(self.seeks, name, found)
            yield found

    def _below(self, key: bytes, name: Name) -> bytes | None:
        found = self.backing.next_key(name, key)
        self._note(self.seeks, name, key)
        if found is not None:
            self._note(self.seeks, name, found)
        return found

    def _note(self, seen: dict[Name, set[bytes]], name: Name, key: bytes) -> None:
        keys = seen.get(name)
        if keys is None:
            keys = seen[name] = set()
        if key not in keys:
            keys.add(key)
            self._noted.append((seen, name, key))


class _TrieChanges:
    """What was written to one trie. ``came`` are keys that are not in the order yet, which is built when asked for."""

    __slots__ = ("_order", "came", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, Written] = {}
        self.came: list[bytes] = []
        self._order: SortedSet = SortedSet()

    def after(self, key: bytes) -> Iterator[tuple[bytes, Written]]:
        """Iterate over keys after ``key`` and what is written there."""
        return self._from(key, inclusive=False)

    def under(self, prefix: bytes) -> list[tuple[bytes, Written]]:
        """Return the keys that start with ``prefix`` and what is written there."""
        return list(takewhile(lambda item: item[0].startswith(prefix), self._from(prefix, inclusive=True)))

    def materialised(self) -> Values:
        """Return a copy of it all."""
        return {key: it.whole() if isinstance(it, Appended) else it for key, it in self.values.items()}

    def _from(self, key: bytes, *, inclusive: bool) -> Iterator[tuple[bytes, Written]]:
        if self.came:
            self._order.update(self.came)
            self.came.clear()
        values = self.values
        for own in self._order.irange(minimum=key, inclusive=(inclusive, True)):
            if own in values:
                yield own, values[own]
