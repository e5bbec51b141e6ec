"""A block's own proof by storage item: whose keys need which of its nodes.

A node belongs to the storage item whose keys lead through it. One that several items of a pallet need is shared by
them, one that several pallets need, such as the root, by all. A node that stands on no key's way was read because a
removal moved it: it belongs to the removed key's item. The bytes of all shares are the bytes of the proof.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from relaycast_collator.wasm_parachain import StorageItemShare
from relaycast_trie import Branch, Empty, HashedValue, StorageProof
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Node
from relaycast_trie.node_codec import decode_node
from relaycast_wasm.chain import BuiltBlock
from relaycast_wasm.overlay import Name

Item = tuple[str, str]
"""Pallet and storage item."""

TRIE, SHARED = "trie", "shared"
"""Whose nodes are that the keys of several pallets need, and of several items of one pallet."""


class Names(Protocol):
    """Names storage keys."""

    def of(self, key: bytes, /) -> Item:
        """Return the pallet and the item of a key of the top trie."""
        ...


def shares_of(block: BuiltBlock, names: Names) -> tuple[StorageItemShare, ...]:
    """Return the shares of a block's proof, the largest first."""
    touched: dict[Name, dict[bytes, Item]] = {}
    reads, writes = Counter[Item](), Counter[Item]()
    for keys, counter in ((block.reads, reads), (block.seeks, None), (block.changes, writes)):
        for name, its_keys in keys.items():
            known = touched.setdefault(name, {})
            for key in its_keys:
                item = known.get(key)
                if item is None:
                    item = known[key] = names.of(key if name is None else name.prefixed_storage_key())
                if counter is not None:
                    counter[item] += 1
    owners = _Owners(block.own_proof, block.parent_root)
    for name, items in touched.items():
        owners.walk(name, items, block.changes.get(name, {}))
    proof_bytes = Counter[Item]()
    for node_hash, data in owners.nodes.items():
        proof_bytes[owners.owner_of(node_hash)] += len(data)
    shares = [
        StorageItemShare(pallet, item, reads[pallet, item], writes[pallet, item], proof_bytes[pallet, item])
        for pallet, item in {**proof_bytes, **reads, **writes}
    ]
    return tuple(sorted(shares, key=lambda it: (-it.proof_bytes, it.pallet, it.item)))


class _Owners:
    """Which items need which ``nodes`` of a proof."""

    def __init__(self, proof: StorageProof, root: bytes) -> None:
        self.nodes = proof.by_hash()
        self._root = root
        self._items: dict[bytes, set[Item]] = defaultdict(set)
        self._decoded: dict[bytes, Node] = {}

    def owner_of(self, node_hash: bytes) -> Item:
        items = self._items.get(node_hash, set())
        if len(items) == 1:
            return next(iter(items))
        pallets = {pallet for pallet, _ in items}
        return (pallets.pop() if len(pallets) == 1 else TRIE), SHARED

    def walk(self, name: Name, items: Mapping[bytes, Item], changes: Mapping[bytes, bytes | None]) -> None:
        """Go the way of each key of one trie."""
        root = self._root if name is None else self._child_root(name)
        if root is None:
            return
        moved: list[tuple[Node, Item]] = []
        for key, item in items.items():
            way = self._way(root, key)
            for node_hash, node in way:
                self._items[node_hash].add(item)
                if key in changes and changes[key] is None and node is not None:
                    moved.append((node, item))
        self._note_moved(moved)

    def _note_moved(self, branches: Iterable[tuple[Node, Item]]) -> None:
        """Give the children of branches on the way of removed keys to these, where no key leads through them."""
        found: dict[bytes, set[Item]] = defaultdict(set)
        for node, item in branches:
            for reference in _children(node):
                if reference in self.nodes and reference not in self._items:
                    found[reference].add(item)
        for reference, items in found.items():
            self._items[reference] |= items

    def _way(self, root: bytes, key: bytes) -> list[tuple[bytes, Node | None]]:
        """Return the nodes of the proof that ``key`` leads through, with its value where that stands by itself."""
        path, depth, reference = to_nibbles(key), 0, root
        way: list[tuple[bytes, Node | None]] = []
        while True:
            node = self._node(reference)
            if node is None:
                return way
            if len(reference) == HASH_LENGTH:
                way.append((reference, node))
            if isinstance(node, Empty) or path[depth : depth + len(node.partial)] != node.partial:
                return way
            depth += len(node.partial)
            if depth == len(path):
                if isinstance(node.value, HashedValue) and node.value.hash in self.nodes:
                    way.append((node.value.hash, None))
                return way
            child = node.children[path[depth]] if isinstance(node, Branch) else None
            if child is None:
                return way
            reference, depth = child, depth + 1

    def _node(self, reference: bytes) -> Node | None:
        node = self._decoded.get(reference)
        if node is None:
            data = self.nodes.get(reference) if len(reference) == HASH_LENGTH else reference
            if data is None:
                return None
            node = self._decoded[reference] = decode_node(data)
        return node

    def _child_root(self, info: ChildInfo) -> bytes | None:
        """Return the root of a child trie as the proof of the top trie has it."""
        path = to_nibbles(info.prefixed_storage_key())
        reference, depth = self._root, 0
        while True:
            node = self._node(reference)
            if node is None or isinstance(node, Empty) or path[depth : depth + len(node.partial)] != node.partial:
                return None
            depth += len(node.partial)
            if depth == len(path):
                return node.value if isinstance(node.value, bytes) else None
            child = node.children[path[depth]] if isinstance(node, Branch) else None
            if child is None:
                return None
            reference, depth = child, depth + 1


def _children(node: Node) -> Iterable[bytes]:
    return (child for child in node.children if child is not None) if isinstance(node, Branch) else ()
