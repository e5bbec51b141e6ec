"""How notebooks show tries and proofs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from relaycast.notebook.markup import MAX_ROWS, Cell, card
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.nibbles import digits
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf
from relaycast_trie.node_codec import EMPTY_ROOT, decode_node, encode_node
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.plain.trie_db_mut import TrieDBMut
from relaycast_trie.proofs.compact_proof import CompactProof
from relaycast_trie.proofs.storage_proof import StorageProof, VerifiedProof

if TYPE_CHECKING:
    from relaycast_trie.array.array_trie import ArrayTrie


def trie_card(it: TrieDB) -> str:
    """Return a trie as its database holds it."""
    return root_card("Trie", it.root, it.db.get(it.root), {})


def changing_trie_card(it: TrieDBMut) -> str:
    """Return a trie as it was last committed, and whether it has changed since then."""
    return root_card("Trie", it.root, it.db.get(it.root), {} if it.is_committed else {"since then": "changed"})


def array_trie_card(it: "ArrayTrie") -> str:
    """Return a compiled trie by its root alone."""
    return card("Array trie", {"root": it.root, "keys": len(it)})


def storage_proof_card(it: StorageProof) -> str:
    """Return a proof with its largest nodes."""
    return nodes_card("Storage proof", it.nodes, {"nodes": len(it), "bytes": it.proof_bytes})


def compact_proof_card(it: CompactProof) -> str:
    """Return a compact proof; its nodes are no nodes of a trie."""
    return card("Compact proof", {"nodes": len(it.nodes), "bytes": it.proof_bytes})


def verified_proof_card(it: VerifiedProof) -> str:
    """Return the values that a proof gave, and the absences."""
    rows = [(key, "absent" if value is None else value) for key, value in it.values.items()]
    return card("Verified proof", {"root": it.root, "keys": len(rows)}, columns=("key", "value"), rows=rows)


def nodes_card(title: str, nodes: Iterable[bytes], facts: Mapping[str, Cell]) -> str:
    """Return the card of something that is made of nodes, the largest of them first."""
    ordered = sorted(nodes, key=lambda node: (-len(node), node))
    rows: list[Sequence[Cell]] = [(blake2_256(node), _kind(node), len(node)) for node in ordered[:MAX_ROWS]]
    if len(ordered) > MAX_ROWS:
        rows.append((f"and {len(ordered) - MAX_ROWS:,} more", "", sum(map(len, ordered[MAX_ROWS:]))))
    return card(title, facts, columns=("hash", "node", "bytes"), rows=rows)


def root_card(title: str, root: bytes, data: bytes | None, facts: Mapping[str, Cell]) -> str:
    """Return the card of a trie: what its root node is, and what each of its children leads to."""
    told: dict[str, Cell] = {"root": root, **facts}
    if data is None:
        return card(title, {**told, "root node": "none, it is empty" if root == EMPTY_ROOT else "not there"})
    told["root node"] = _kind(data)
    node = decode_node(data)
    children = node.children if isinstance(node, Branch) else ()
    rows: list[tuple[str, Cell]] = [
        (f"{digits(node.partial)}{nibble:x}" if isinstance(node, Branch) else "", _child(child))
        for nibble, child in enumerate(children)
        if child is not None
    ]
    return card(title, told, columns=("path", "child") if rows else (), rows=rows)


def _child(child: bytes) -> Cell:
    return child if len(child) == HASH_LENGTH else f"inline {_kind(child)}, {len(child)} bytes"


def _kind(data: bytes) -> str:
    """Return what a node is, as its bytes say; bytes that are not all of one are a value."""
    try:
        node = decode_node(data)
    except CodecError:
        return "value"
    if encode_node(node) != data:
        return "value"
    match node:
        case Branch(_, children, value):
            ways = sum(child is not None for child in children)
            return f"branch, {ways} ways{'' if value is None else ', a value'}"
        case Leaf(_, value):
            return "leaf, value outside" if isinstance(value, HashedValue) else f"leaf, {len(value)} bytes of value"
        case Empty():
            return "empty"
