"""Storage reads in steps, and the storage queries of the new JSON-RPC interface.

Items come one by one, so that a large answer is never held whole. A value that is not there gives no item.

Law: a read of an unbounded part of a state yields ``None`` after each step, so that other clients can run. Blocks may
come and go in between, so each step opens the state anew and continues after the last key.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from relaycast_node.rpc.chain_protocols import ChainFace, StateFace
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.parameters import HexBytes, Misfit, ensure_known, reader_of
from relaycast_node.rpc.rpc_error import invalid_params
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie import CHILD_STORAGE_PREFIX, Branch, blake2_256
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Leaf
from relaycast_trie.node_codec import EMPTY_ROOT, decode_node

Item = dict[str, str]

KEYS_OF_A_STEP = 256
PROOFS_OF_A_STEP = 8
"""Merkle values are found by proofs, which take longer than reads."""

VALUE, HASH = "value", "hash"
MERKLE_VALUE = "closestDescendantMerkleValue"
VALUES_BELOW, HASHES_BELOW = "descendantsValues", "descendantsHashes"
BELOW = (VALUES_BELOW, HASHES_BELOW)
TYPES = (VALUE, HASH, MERKLE_VALUE, *BELOW)
START = "paginationStartKey"

_hex = reader_of(HexBytes)


@dataclass(frozen=True, slots=True)
class StorageQuery:
    """One ``key`` and what is asked of it, one of ``TYPES``; descendants begin behind the key ``after``."""

    key: bytes
    type: str
    after: bytes | None = None


def queries_of(items: list[Any], *, are_paged: bool = False) -> list[StorageQuery]:
    """Return the queries that a client sent; raises ``RpcError`` for what is none.

    Where they ``are_paged``, descendants may have a ``paginationStartKey``.
    """
    return [_query(item, f"items[{index}]", is_paged=are_paged) for index, item in enumerate(items)]


def _query(item: Any, place: str, *, is_paged: bool) -> StorageQuery:
    if not isinstance(item, dict):
        raise invalid_params(place, item, "an object with key and type")
    ensure_known(place, item, ("key", "type", START))
    key = _bytes_in(item, "key", place)
    kind = item.get("type")
    if kind not in TYPES:
        raise invalid_params(f"{place}.type", kind, f"one of {', '.join(TYPES)}")
    if not is_paged or item.get(START) is None:
        return StorageQuery(key, kind)
    if kind not in BELOW:
        raise invalid_params(f"{place}.type", kind, f"{' or '.join(BELOW)}, as there is a {START}")
    return StorageQuery(key, kind, _bytes_in(item, START, place))


def _bytes_in(item: dict[str, Any], name: str, place: str) -> bytes:
    try:
        found: bytes = _hex(item.get(name))
    except Misfit as misfit:
        raise invalid_params(f"{place}.{name}", misfit.got, misfit.expected) from None
    return found


OpenState = Callable[[], StateFace]
"""Opens one state; raises where it is no longer kept."""


def pairs_in_steps(
    open_state: OpenState, prefix: bytes, after: bytes | None = None
) -> Iterator[tuple[bytes, bytes] | None]:
    """Yield keys under ``prefix`` and after ``after``, in order, with their values; ``None`` after a step."""
    while True:
        state = open_state()
        step = [(key, state.get(key)) for key in islice(state.keys(prefix, after=after), KEYS_OF_A_STEP)]
        for key, value in step:
            assert value is not None
            yield key, value
        if len(step) < KEYS_OF_A_STEP:
            return
        after = step[-1][0]
        yield None


def values_in_steps(open_state: OpenState, keys: list[bytes]) -> Iterator[tuple[bytes, bytes | None] | None]:
    """Yield keys with their values; ``None`` after a step."""
    for part in parts_of(keys):
        state = open_state()
        yield from [(key, state.get(key)) for key in part]
        yield None


def parts_of(keys: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the keys of each step."""
    return (keys[start : start + KEYS_OF_A_STEP] for start in range(0, len(keys), KEYS_OF_A_STEP))


@dataclass(frozen=True, slots=True)
class StorageView:
    """The state of ``chain`` after a block, or a ``child`` trie of it by its name."""

    chain: ChainFace
    block_hash: bytes
    child: bytes | None = None

    def state(self) -> StateFace:
        """Open the state, or the child trie of it; raises ``StateDiscarded``."""
        if self.chain.block(self.block_hash) is None:
            raise StateDiscarded(self.block_hash)
        state = self.chain.state_at(self.block_hash)
        return state if self.child is None else state.child(self.child)

    def items(self, queries: Sequence[StorageQuery]) -> Iterator[Item | None]:
        """Yield the answers to queries, ``None`` after a step; raises ``StateDiscarded`` if the state is gone."""
        self.state()
        work = 0
        for query in queries:
            yield from _ANSWERS[query.type](self, query)
            work += KEYS_OF_A_STEP // PROOFS_OF_A_STEP if query.type == MERKLE_VALUE else 1
            if work >= KEYS_OF_A_STEP:
                work = 0
                yield None

    def _value(self, query: StorageQuery) -> Iterator[Item]:
        key, value = query.key, self.state().get(query.key)
        if value is not None:
            yield {"key": hexed(key), VALUE: hexed(value)}

    def _hash(self, query: StorageQuery) -> Iterator[Item]:
        key, value = query.key, self.state().get(query.key)
        if value is not None:
            yield {"key": hexed(key), HASH: hexed(blake2_256(value))}

    def _values_below(self, query: StorageQuery) -> Iterator[Item | None]:
        for found in pairs_in_steps(self.state, query.key, query.after):
            yield None if found is None else {"key": hexed(found[0]), VALUE: hexed(found[1])}

    def _hashes_below(self, query: StorageQuery) -> Iterator[Item | None]:
        for found in pairs_in_steps(self.state, query.key, query.after):
            yield None if found is None else {"key": hexed(found[0]), HASH: hexed(blake2_256(found[1]))}

    def _merkle_value(self, query: StorageQuery) -> Iterator[Item]:
        found = self._closest(query.key)
        if found is not None:
            yield {"key": hexed(query.key), MERKLE_VALUE: hexed(found)}

    def _closest(self, key: bytes) -> bytes | None:
        """Return the Merkle value of the closest node at or below a key, ``None`` where nothing is below it."""
        block = self.chain.block(self.block_hash)
        if block is None:
            raise StateDiscarded(self.block_hash)
        if self.child is None:
            root, nodes = block.header.state_root, self.chain.prove(self.block_hash, [key])
        else:
            entry = CHILD_STORAGE_PREFIX + self.child
            found = self.chain.state_at(self.block_hash).get(entry)
            if found is None:
                return None
            root, nodes = found, self.chain.prove_child(self.block_hash, self.child, [key])
        return closest_merkle_value({blake2_256(node): node for node in nodes}, root, key)


_ANSWERS: dict[str, Callable[[StorageView, StorageQuery], Iterator[Item | None]]] = {
    VALUE: StorageView._value,
    HASH: StorageView._hash,
    MERKLE_VALUE: StorageView._merkle_value,
    VALUES_BELOW: StorageView._values_below,
    HASHES_BELOW: StorageView._hashes_below,
}


def closest_merkle_value(nodes: dict[bytes, bytes], root: bytes, key: bytes) -> bytes | None:
    """Return the hash of the node that is closest to ``key``, at or below it, or the node itself where it is inline.

    ``nodes`` hold the way to the key. The root's Merkle value is its hash in any case.
    """
    if root == EMPTY_ROOT:
        return None
    rest, merkle_value = to_nibbles(key), root
    while True:
        node = decode_node(nodes[merkle_value] if len(merkle_value) == HASH_LENGTH else merkle_value)
        if not isinstance(node, Leaf | Branch):
            return None
        if node.partial.startswith(rest):
            return merkle_value
        if not rest.startswith(node.partial) or not isinstance(node, Branch):
            return None
        rest = rest[len(node.partial) :]
        child = node.children[rest[0]]
        if child is None:
            return None
        rest, merkle_value = rest[1:], child
