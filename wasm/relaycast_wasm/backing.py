"""The state below an overlay: that of the parent block."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.storage import Values
from relaycast_pallets.frame.tries import Keys, Name
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.trie_db import NodeRecorder


class Backing(Protocol):
    """A state that is only read; ``name`` is a child trie, or ``None``, the top trie."""

    def get(self, name: Name, key: bytes) -> bytes | None: ...

    def exists(self, name: Name, key: bytes) -> bool:
        """Return whether ``key`` has a value, which is not read for it."""
        ...

    def next_key(self, name: Name, key: bytes) -> bytes | None:
        """Return the first key after ``key``; ``None`` at the end."""
        ...

    def keys(self, name: Name, prefix: bytes, start: bytes) -> Iterator[bytes]:
        """Iterate over the keys under ``prefix``, from ``start`` on, which is one of them or ``prefix`` itself."""
        ...

    def root(self, changes: Mapping[Name, Values], *, state_version: StateVersion) -> bytes:
        """Return the root of the top trie with these changes, the roots of changed child tries written into it."""
        ...

    def child_root(self, info: ChildInfo, changes: Values, *, state_version: StateVersion) -> bytes: ...

    def record(self, recorder: NodeRecorder, reads: Keys, seeks: Keys) -> None:
        """Let the ``recorder`` learn which nodes it takes to read keys, and to look for others without their values."""
        ...


class StateBacking:
    """A ``State`` as it stands now, unsealed changes included."""

    def __init__(self, state: State) -> None:
        self._state = state

    def get(self, name: Name, key: bytes) -> bytes | None:
        return (self._state.top if name is None else self._state.child(name)).get(key)

    def exists(self, name: Name, key: bytes) -> bool:
        return (self._state.top if name is None else self._state.child(name)).exists(key)

    def next_key(self, name: Name, key: bytes) -> bytes | None:
        return (self._state.top if name is None else self._state.child(name)).next_key(key)

    def keys(self, name: Name, prefix: bytes, start: bytes) -> Iterator[bytes]:
        storage = self._state.top if name is None else self._state.child(name)
        if start != prefix and storage.exists(start):
            yield start
        yield from (key for key, _ in storage.iter_prefix(prefix, start_after=start if start != prefix else None))

    def root(self, changes: Mapping[Name, Values], *, state_version: StateVersion) -> bytes:
        return self._state.root_with(changes, state_version=state_version)

    def child_root(self, info: ChildInfo, changes: Values, *, state_version: StateVersion) -> bytes:
        return self._state.child_root_with(info, changes, state_version=state_version)

    def record(self, recorder: NodeRecorder, reads: Keys, seeks: Keys) -> None:
        self._state.record(recorder, reads=reads, seeks=seeks)
