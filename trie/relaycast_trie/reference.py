"""The whole idea on one page: the root of a trie, and the proof of some keys, by recursion and nothing else.

Slow, and for keys of ordinary length only; the engines must agree with it.
"""

from collections.abc import Iterable, Mapping

from relaycast_trie.hasher import blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import HashedValue, Value
from relaycast_trie.node_codec import EMPTY_NODE, StateVersion, encode_branch, encode_leaf

Paths = dict[bytes, bytes]
"""Values by what is left of their paths, in nibbles."""


def trie_root(pairs: Mapping[bytes, bytes], *, state_version: StateVersion) -> bytes:
    """Return the hash of the root node, which is hashed however short it is."""
    return blake2_256(encode(paths_of(pairs), state_version))


def prove(pairs: Mapping[bytes, bytes], keys: Iterable[bytes], *, state_version: StateVersion) -> frozenset[bytes]:
    """Return the nodes and external values on the paths of ``keys``: the root, and what below it has its own hash."""
    proof: set[bytes] = set()
    for key in keys:
        proof |= touched(paths_of(pairs), to_nibbles(key), state_version, is_root=True)
    return frozenset(proof)


def encode(paths: Paths, state_version: StateVersion) -> bytes:
    """Return the bytes of the node at the head of ``paths``."""
    if not paths:
        return EMPTY_NODE
    shared = common_start(paths)
    rest = {path[len(shared) :]: value for path, value in paths.items()}
    if len(rest) == 1:
        return encode_leaf(shared, stored(rest[b""], state_version))
    value = stored(rest[b""], state_version) if b"" in rest else None
    children = [reference(encode(below(rest, nibble), state_version)) for nibble in range(16)]
    return encode_branch(shared, children, value)


def touched(paths: Paths, path: bytes, state_version: StateVersion, *, is_root: bool = False) -> set[bytes]:
    """Return the nodes with a hash that a walk along ``path`` meets from here on."""
    if not paths:
        return {EMPTY_NODE} if is_root else set()
    node = encode(paths, state_version)
    met = {node} if is_root or len(node) >= 32 else set()
    shared = common_start(paths)
    if not path.startswith(shared):
        return met
    if path == shared:
        value = paths.get(path, b"")
        return met | {value} if state_version.is_external(value) else met
    rest = {known[len(shared) :]: value for known, value in paths.items()}
    nibble = path[len(shared)]
    return met | touched(below(rest, nibble), path[len(shared) + 1 :], state_version)


def below(paths: Paths, nibble: int) -> Paths:
    """Return the paths that go on with ``nibble``, without it."""
    return {path[1:]: value for path, value in paths.items() if path and path[0] == nibble}


def common_start(paths: Paths) -> bytes:
    """Return the nibbles that all ``paths`` start with."""
    first, last = min(paths), max(paths)
    count = 0
    while count < len(first) and first[count] == last[count]:
        count += 1
    return first[:count]


def stored(value: bytes, state_version: StateVersion) -> Value:
    """Return ``value`` as a node holds it: from 33 bytes on, version 1 holds its hash."""
    return HashedValue(blake2_256(value)) if state_version.is_external(value) else value


def reference(node: bytes) -> bytes | None:
    """Return how a parent names a child: by its bytes when they are shorter than a hash; not at all if it is empty."""
    if node == EMPTY_NODE:
        return None
    return node if len(node) < 32 else blake2_256(node)


def paths_of(pairs: Mapping[bytes, bytes]) -> Paths:
    """Return values by path."""
    return {to_nibbles(key): value for key, value in pairs.items()}
