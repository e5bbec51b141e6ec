"""The storage that a runtime sees, from its definition: a transaction is a copy of everything."""

from copy import deepcopy

from relaycast_trie.child_info import ChildInfo
from relaycast_trie.exceptions import CodecError
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.reference import trie_root
from relaycast_trie.scale import ScaleReader, encode_compact

Name = ChildInfo | None
Contents = dict[Name, dict[bytes, bytes]]
Written = dict[Name, dict[bytes, bytes | None]]


class NaiveOverlay:
    """``below`` never changes; ``layers`` are copies of all that is written, the innermost transaction's last."""

    def __init__(self, below: Contents) -> None:
        self.below = below
        self.layers: list[Written] = [{}]

    @property
    def written(self) -> Written:
        return self.layers[-1]

    def start_transaction(self) -> None:
        self.layers.append(deepcopy(self.written))

    def roll_back_transaction(self) -> None:
        self.layers.pop()

    def commit_transaction(self) -> None:
        last = self.layers.pop()
        self.layers[-1] = last

    def held(self, name: Name) -> dict[bytes, bytes]:
        """Return what a trie holds now."""
        both = {**self.below.get(name, {}), **self.written.get(name, {})}
        return {key: value for key, value in both.items() if value is not None}

    def get(self, key: bytes, name: Name = None) -> bytes | None:
        return self.held(name).get(key)

    def put(self, key: bytes, value: bytes | None, name: Name = None) -> None:
        self.written.setdefault(name, {})[key] = value

    def next_key(self, key: bytes, name: Name = None) -> bytes | None:
        return min((it for it in self.held(name) if it > key), default=None)

    def append(self, key: bytes, item: bytes, name: Name = None) -> None:
        value = self.get(key, name) or b""
        reader = ScaleReader(value)
        try:
            count = reader.compact()
            known = count < 2**32
        except CodecError:
            known = False
        self.put(key, encode_compact(count + 1) + value[reader.offset :] + item if known else b"\x04" + item, name)

    def clear_prefix(
        self, prefix: bytes, name: Name, limit: int | None, cursor: bytes | None
    ) -> tuple[bytes | None, int, int, int]:
        """Return the next key, keys removed of what is below, keys removed in all, and keys visited below."""
        own = [key for key, value in self.written.get(name, {}).items() if key.startswith(prefix) and value is not None]
        for key in own:
            self.put(key, None, name)
        below = sorted(key for key in self.below.get(name, {}) if key.startswith(prefix) and key >= (cursor or b""))
        visited = below if limit is None else below[:limit]
        removed = [key for key in visited if self.get(key, name) is not None]
        for key in removed:
            self.put(key, None, name)
        left = below[len(visited) :]
        return left[0] if left else None, len(removed), len(own) + len(removed), len(visited)

    def root(self, version: StateVersion) -> bytes:
        top = self.held(None)
        for name in {*self.below, *self.written}:
            if name is not None:
                top.pop(name.prefixed_storage_key(), None)
                if self.held(name):
                    top[name.prefixed_storage_key()] = trie_root(self.held(name), state_version=version)
        return trie_root(top, state_version=version)

    def child_root(self, info: ChildInfo, version: StateVersion) -> bytes:
        held = self.held(info)
        root = trie_root(held, state_version=version) if held else EMPTY_ROOT
        if info in self.written:
            self.put(info.prefixed_storage_key(), root if held else None)
        return root
