"""The storage that a runtime sees: the state below, and over it what was written, in transactions that can be undone.

Nothing reaches the state until somebody takes ``changes``. What was read of the state below is noted, for it is what a
block must carry of it (its PoV): every change too, one that writes the value that stands there, or removes a key that
is not there, included.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sortedcontainers import SortedSet

from relaycast_pallets.frame.state import State
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.exceptions import CodecError
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.scale import ScaleReader, encode_compact

Name = ChildInfo | None
"""A child trie, or the top trie."""

Values = dict[bytes, bytes | None]
"""New values by key; ``None`` where the key goes."""


class Backing(Protocol):
    """The state below an overlay: that of the parent block."""

    def get(self, name: Name, key: bytes) -> bytes | None: ...

    def next_key(self, name: Name, key: bytes) -> bytes | None:
        """Return the first key after ``key``; ``None`` at the end."""
        ...

    def root(self, changes: Mapping[Name, Values], *, state_version: StateVersion) -> bytes:
        """Return the root of the top trie with these changes, the roots of changed child tries written into it."""
        ...

    def child_root(self, info: ChildInfo, changes: Values, *, state_version: StateVersion) -> bytes: ...


class StateBacking:
    """A ``State`` as it stands now, unsealed changes included."""

    def __init__(self, state: State) -> None:
        self._state = state

    def get(self, name: Name, key: bytes) -> bytes | None:
        return (self._state.top if name is None else self._state.child(name)).get(key)

    def next_key(self, name: Name, key: bytes) -> bytes | None:
        return (self._state.top if name is None else self._state.child(name)).next_key(key)

    def root(self, changes: Mapping[Name, Values], *, state_version: StateVersion) -> bytes:
        return self._state.root_with(changes, state_version=state_version)

    def child_root(self, info: ChildInfo, changes: Values, *, state_version: StateVersion) -> bytes:
        return self._state.child_root_with(info, changes, state_version=state_version)


@dataclass(frozen=True, slots=True)
class Removed:
    """What removing many keys came to (``MultiRemovalResults``): ``cursor`` is the next key when a limit stopped it."""

    cursor: bytes | None = None
    backend: int = 0
    """Keys removed of the state below."""

    unique: int = 0
    """Keys removed in all."""

    loops: int = 0
    """Keys of the state below that were visited, removed ones too."""


class NoTransaction(Exception):
    """A transaction is to end, and none is open."""


class OverlayedChanges:
    """Changes over a ``backing``, in nested transactions; keys and values are bytes, ``name`` says of which trie."""

    def __init__(self, backing: Backing) -> None:
        self.backing = backing
        self.reads: dict[Name, set[bytes]] = {}
        """Keys whose value was read of the state below."""

        self.seeks: dict[Name, set[bytes]] = {}
        """Keys whose place was looked for in the state below, without their value: the next key after another."""

        self._layers: list[dict[Name, Values]] = [{}]
        self._order: dict[Name, SortedSet] = {}
        """Every key that some layer names: a superset is enough to go through them in order."""

    def get(self, key: bytes, name: Name = None) -> bytes | None:
        for layer in reversed(self._layers):
            values = layer.get(name)
            if values is not None and key in values:
                return values[key]
        self.reads.setdefault(name, set()).add(key)
        return self.backing.get(name, key)

    def exists(self, key: bytes, name: Name = None) -> bool:
        return self.get(key, name) is not None

    def put(self, key: bytes, value: bytes | None, name: Name = None) -> None:
        """Write ``value``, or remove ``key`` with ``None``."""
        self._layers[-1].setdefault(name, {})[key] = value
        self._order.setdefault(name, SortedSet()).add(key)

    def next_key(self, key: bytes, name: Name = None) -> bytes | None:
        """Return the first key after ``key`` that has a value; ``None`` at the end."""
        below = self._below(key, name)
        for own in self._order.get(name, SortedSet()).irange(minimum=key, inclusive=(False, True)):
            while below is not None and below < own:
                if self._written(below, name) is not None or not self._is_written(below, name):
                    return below
                below = self._below(below, name)
            if self._written(own, name) is not None:
                return bytes(own)
        while below is not None and self._is_written(below, name) and self._written(below, name) is None:
            below = self._below(below, name)
        return below

    def append(self, key: bytes, item: bytes, name: Name = None) -> None:
        """Append an encoded ``item`` to the SCALE vector at ``key``; what is no vector gives way to a new one."""
        self.put(key, appended(self.get(key, name) or b"", item), name)

    def clear_prefix(
        self, prefix: bytes, name: Name = None, *, limit: int | None = None, cursor: bytes | None = None
    ) -> Removed:
        """Remove every key under ``prefix`` that was written here, and up to ``limit`` keys of the state below.

        What was removed here before is visited again in the state below, and counts.
        """
        own = [it for it in self._order.get(name, ()) if it.startswith(prefix) and self._written(it, name) is not None]
        for key in own:
            self.put(key, None, name)
        backend = loops = 0
        removed = set(own)
        start = prefix if cursor is None else cursor
        found: bytes | None = start if self._stands_below(start, name) else self._below(start, name)
        while found is not None and found.startswith(prefix):
            if limit is not None and loops == limit:
                return Removed(found, backend, len(removed), loops)
            loops += 1
            backend += self._written(found, name) is not None or not self._is_written(found, name)
            removed.add(found)
            self.put(found, None, name)
            found = self._below(found, name)
        return Removed(None, backend, len(removed), loops)

    def _stands_below(self, key: bytes, name: Name) -> bool:
        self.seeks.setdefault(name, set()).add(key)
        return self.backing.get(name, key) is not None

    def start_transaction(self) -> None:
        self._layers.append({})

    def roll_back_transaction(self) -> None:
        """Undo what the innermost transaction wrote; raises ``NoTransaction``."""
        if len(self._layers) == 1:
            raise NoTransaction
        self._layers.pop()

    def commit_transaction(self) -> None:
        """Make what the innermost transaction wrote part of the one around it; raises ``NoTransaction``."""
        if len(self._layers) == 1:
            raise NoTransaction
        for name, values in self._layers.pop().items():
            self._layers[-1].setdefault(name, {}).update(values)

    @property
    def depth(self) -> int:
        """The number of open transactions."""
        return len(self._layers) - 1

    def changes(self) -> dict[Name, Values]:
        """Return all that was written, in every layer, by trie."""
        merged: dict[Name, Values] = {}
        for layer in self._layers:
            for name, values in layer.items():
                merged.setdefault(name, {}).update(values)
        return merged

    def root(self, state_version: StateVersion) -> bytes:
        return self.backing.root(self.changes(), state_version=state_version)

    def child_root(self, info: ChildInfo, state_version: StateVersion) -> bytes:
        return self.backing.child_root(info, self.changes().get(info, {}), state_version=state_version)

    def _below(self, key: bytes, name: Name) -> bytes | None:
        found = self.backing.next_key(name, key)
        seeks = self.seeks.setdefault(name, set())
        seeks.add(key)
        if found is not None:
            seeks.add(found)
        return found

    def _is_written(self, key: bytes, name: Name) -> bool:
        return any(key in layer.get(name, ()) for layer in self._layers)

    def _written(self, key: bytes, name: Name) -> bytes | None:
        for layer in reversed(self._layers):
            values = layer.get(name)
            if values is not None and key in values:
                return values[key]
        return None


def appended(vector: bytes, item: bytes) -> bytes:
    """Return a SCALE vector with one more ``item``; what does not begin with a length counts as empty."""
    reader = ScaleReader(vector)
    try:
        count = reader.compact() if vector else 0
        if count >= 2**32 - 1:
            raise CodecError("a vector's length is a u32", 0)
    except CodecError:
        return encode_compact(1) + item
    return encode_compact(count + 1) + vector[reader.offset :] + item
