"""Reading a trie out of a database of nodes, or out of a proof, and recording which nodes and values a read touched.

A read follows one path from the root. A node it needs and does not find is a ``MissingNode``, one whose bytes make no
sense an ``InvalidNode``. A wrong value is never returned, as long as the database finds only what has the hash.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Protocol

from relaycast_trie.exceptions import CodecError, InvalidNode, MissingNode, RootMismatch
from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH, Hasher
from relaycast_trie.nibbles import all_to_nibbles, from_nibbles, to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import EMPTY_NODE, decode_known_node
from relaycast_trie.paths import under, ways
from relaycast_trie.plain.memory_db import NodeSource

FEW_KEYS = 64
"""Keys whose order and paths are worked out once, as the same few are asked for again and again."""


class NodeRecorder(Protocol):
    """Anything that wants to know what a read touches."""

    def record(self, node_hash: bytes, data: bytes, /) -> None: ...


class Recorder:
    """Collects every node that was found by its hash, and every external value (sp-trie ``Recorder``).

    Inline nodes come with their parent.
    """

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: dict[bytes, bytes] = {}

    def record(self, node_hash: bytes, data: bytes, /) -> None:
        self.nodes[node_hash] = data

    def __repr__(self) -> str:
        return f"<Recorder {len(self.nodes)} nodes, {sum(map(len, self.nodes.values()))} bytes>"


class TrieDB:
    """A trie with this 32-byte ``root`` in ``db``, read only (trie-db ``TrieDB``)."""

    __slots__ = ("db", "hasher", "recorder", "root")

    def __init__(
        self, db: NodeSource, root: bytes, *, hasher: Hasher = BLAKE2B_256, recorder: NodeRecorder | None = None
    ) -> None:
        if len(root) != HASH_LENGTH:
            raise ValueError(f"a root has {HASH_LENGTH} bytes, got {len(root)}")
        self.db = db
        self.root = root
        self.hasher = hasher
        self.recorder = recorder

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, ``None`` when the trie holds none.

        Raises ``RootMismatch`` when the database lacks the root, ``MissingNode`` and ``InvalidNode`` further down.
        """
        path = to_nibbles(key)
        value = self._find(path, self.root, 0)
        return None if value is None else self.fetch_value(value, path)

    def lookup(self, path: bytes) -> Value | None:
        """Return what the node at the end of ``path`` (nibbles) holds, an external value as its hash."""
        return self._find(path, self.root, 0)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """Return the values of ``keys`` in their order; what ``get`` reads for them is read once.

        Raises what ``get`` raises.
        """
        given = tuple(keys)
        wanted, paths = _sorted_paths_of_few(given) if len(given) <= FEW_KEYS else _sorted_paths(given)
        values: dict[bytes, bytes | None] = dict.fromkeys(given)
        work: list[tuple[bytes, int, int, int]] = [(self.root, 0, 0, len(paths))] if paths else []
        while work:
            reference, depth, low, high = work.pop()
            path = paths[low]
            if high - low == 1:
                value = self._find(path, reference, depth)
                if value is not None:
                    values[wanted[low]] = self.fetch_value(value, path)
                continue
            node = self.load(reference, path[:depth])
            if isinstance(node, Empty):
                continue
            if node.partial:
                low, high = under(paths, path[:depth] + node.partial, low, high)
                depth += len(node.partial)
            if low < high and len(paths[low]) == depth:
                if node.value is not None:
                    values[wanted[low]] = self.fetch_value(node.value, paths[low])
                low += 1
            if low < high and isinstance(node, Branch):
                for nibble, start, stop in reversed(ways(paths, depth, low, high)):
                    child = node.children[nibble]
                    if child is not None:
                        work.append((child, depth + 1, start, stop))
        return values

    def get_hash(self, key: bytes) -> bytes | None:
        """Return the hash of the value of ``key``, ``None`` when the trie holds none (trie-db ``Trie::get_hash``).

        A value that is stored outside of its node is not read.
        """
        value = self._find(to_nibbles(key), self.root, 0)
        if value is None:
            return None
        return value.hash if isinstance(value, HashedValue) else self.hasher.digest(value)

    def __contains__(self, key: bytes) -> bool:
        return self._find(to_nibbles(key), self.root, 0) is not None

    def __getitem__(self, key: bytes) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def lookup_first_descendant(self, key: bytes) -> bytes | None:
        """Return the Merkle value of the first node at or below ``key``: 32 bytes are a hash, fewer an inline node.

        ``None`` when no key starts with ``key`` (trie-db ``Trie::lookup_first_descendant``).
        """
        path, depth, reference = to_nibbles(key), 0, self.root
        while True:
            node = self.load(reference, path[:depth])
            rest = path[depth:]
            if isinstance(node, Empty):
                return None
            if node.partial.startswith(rest):
                return reference
            if isinstance(node, Leaf) or not rest.startswith(node.partial):
                return None
            depth += len(node.partial)
            child = node.children[path[depth]]
            if child is None:
                return None
            depth += 1
            reference = child

    def items(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over keys and values under ``prefix``, in the order of the keys."""
        for path, reference, node in self.nodes(prefix=prefix):
            if not isinstance(node, Empty) and node.value is not None:
                full = path + node.partial
                if len(full) % 2:
                    raise InvalidNode(reference, f"a value at {len(full)} nibbles, where no key ends")
                key = from_nibbles(full)
                if key.startswith(prefix):
                    yield key, self.fetch_value(node.value, full)

    def nodes(self, *, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes, Node]]:
        """Iterate over ``(path, reference, node)``, parents before children, children in ascending order.

        The reference is the node's hash, or its own bytes when it stands inline in its parent. Only nodes that lead
        to keys under ``prefix`` come.
        """
        wanted = to_nibbles(prefix)
        stack: list[tuple[bytes, bytes]] = [(b"", self.root)]
        while stack:
            path, reference = stack.pop()
            node = self.load(reference, path)
            yield path, reference, node
            if isinstance(node, Branch):
                below = path + node.partial
                for index in range(15, -1, -1):
                    child = node.children[index]
                    deeper = below + bytes([index])
                    if child is not None and (deeper.startswith(wanted) or wanted.startswith(deeper)):
                        stack.append((deeper, child))

    def load(self, reference: bytes, path: bytes) -> Node:
        """Return the node that a parent names by ``reference``; ``path`` says where, for errors."""
        if len(reference) != HASH_LENGTH:
            data = reference
        else:
            found = self.db.get(reference)
            if found is None:
                found = self._absent(reference, path)
            data = found
            if self.recorder is not None:
                self.recorder.record(reference, data)
        try:
            return decode_known_node(data)
        except CodecError as error:
            raise InvalidNode(reference, error.reason, error.offset) from None

    def fetch_value(self, value: Value, path: bytes) -> bytes:
        """Return the bytes of a node's value, from the database when they are stored under their hash."""
        if not isinstance(value, HashedValue):
            return value
        data = self.db.get(value.hash)
        if data is None:
            raise MissingNode(value.hash, path)
        if self.recorder is not None:
            self.recorder.record(value.hash, data)
        return data

    def _absent(self, node_hash: bytes, path: bytes) -> bytes:
        if node_hash == self.hasher.digest(EMPTY_NODE):
            return EMPTY_NODE
        raise MissingNode(node_hash, path) if path else RootMismatch(self.root)

    def _find(self, path: bytes, reference: bytes, depth: int) -> Value | None:
        """Return what the node at the end of ``path`` holds, from the one ``reference`` names at ``depth`` on."""
        while True:
            node = self.load(reference, path[:depth])
            if isinstance(node, Empty) or not path.startswith(node.partial, depth):
                return None
            depth += len(node.partial)
            if depth == len(path):
                return node.value
            if isinstance(node, Leaf):
                return None
            child = node.children[path[depth]]
            if child is None:
                return None
            depth, reference = depth + 1, child

    def __repr__(self) -> str:
        return f"<TrieDB 0x{self.root.hex()}>"


def _sorted_paths(keys: tuple[bytes, ...]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys in their order, each once, and their paths."""
    ordered = sorted(set(keys))
    return ordered, all_to_nibbles(ordered)


_sorted_paths_of_few = lru_cache(maxsize=256)(_sorted_paths)
