"""Nodes to bytes and back, as Substrate writes them (sp-trie ``NodeCodec``), for state versions 0 and 1.

A header byte tells the kind and how many nibbles the partial key has::

    01nnnnnn  leaf                          001nnnnn  leaf with a hashed value
    10nnnnnn  branch without a value        0001nnnn  branch with a hashed value
    11nnnnnn  branch with a value           00000000  the empty trie

When the n bits are all ones, further bytes are added to them, each 255 but the last. Then come the packed nibbles;
of a branch the bitmap of its children; the value (compact length and bytes, or a bare hash); the children (compact
length and bytes). Bytes after the node are ignored, as sp-trie ignores them.
"""

from enum import IntEnum

from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.nibbles import pack, unpack
from relaycast_trie.node import CHILDREN, EMPTY, Branch, HashedValue, Leaf, Node, Value
from relaycast_trie.scale import encode_bytes, encode_compact

LEAF = 0b0100_0000
BRANCH = 0b1000_0000
BRANCH_WITH_VALUE = 0b1100_0000
HASHED_LEAF = 0b0010_0000
HASHED_BRANCH = 0b0001_0000

EMPTY_NODE = b"\x00"
EMPTY_ROOT = blake2_256(EMPTY_NODE)
ESCAPE = b"\x01"
"""What a compact proof puts before a node whose value follows it."""

HASH_CHILD = HASH_LENGTH << 2
HASH_CHILD_PREFIX = bytes([HASH_CHILD])
"""The compact length before a child that is named by its hash, as most are."""

CACHED_NODES = 1 << 13
CACHED_NODE_BYTES = 1 << 10
CACHED_BYTES = 1 << 22
"""Decoded nodes of each generation that ``decode_known_node`` keeps, and bytes of one of them and of all together."""

MAX_PARTIAL_NIBBLES = 0xFFFF
"""Longer partial keys cannot be written (sp-trie ``NIBBLE_SIZE_BOUND``)."""


class StateVersion(IntEnum):
    """How values are stored: ``V0`` inside their node, ``V1`` outside of it from 33 bytes on (sp-core)."""

    V0 = 0
    V1 = 1

    def is_external(self, value: bytes) -> bool:
        """Return whether ``value`` is stored under its hash."""
        return self is StateVersion.V1 and len(value) > HASH_LENGTH


def encode_leaf(partial: bytes, value: Value) -> bytes:
    """Return the bytes of a leaf; ``partial`` in nibbles."""
    if isinstance(value, HashedValue):
        return _header(HASHED_LEAF, 0x1F, len(partial)) + pack(partial) + value.hash
    return _header(LEAF, 0x3F, len(partial)) + pack(partial) + encode_bytes(value)


def encode_branch(
    partial: bytes, children: tuple[bytes | None, ...] | list[bytes | None], value: Value | None
) -> bytes:
    """Return the bytes of a branch; ``partial`` in nibbles, a child as ``Branch`` names it."""
    if value is None:
        header, shown = _header(BRANCH, 0x3F, len(partial)), b""
    elif isinstance(value, HashedValue):
        header, shown = _header(HASHED_BRANCH, 0x0F, len(partial)), value.hash
    else:
        header, shown = _header(BRANCH_WITH_VALUE, 0x3F, len(partial)), encode_bytes(value)
    bitmap = 0
    parts = [header, pack(partial), b"", shown]
    for index, child in enumerate(children):
        if child is not None:
            bitmap |= 1 << index
            parts.append(HASH_CHILD_PREFIX + child if len(child) == HASH_LENGTH else encode_bytes(child))
    parts[2] = bitmap.to_bytes(2, "little")
    return b"".join(parts)


def encode_node(node: Node) -> bytes:
    """Return the bytes of any node."""
    match node:
        case Leaf(partial, value):
            return encode_leaf(partial, value)
        case Branch(partial, children, value):
            return encode_branch(partial, children, value)
        case _:
            return EMPTY_NODE


def decode_node(data: bytes) -> Node:
    """Return the node that ``data`` starts with; raises ``CodecError`` at the byte that does not fit."""
    if not data:
        raise CodecError("a node has at least one byte")
    first = data[0]
    if first >= LEAF:
        mask = 0x3F
        kind = first & 0xC0
    elif first & 0xE0 == HASHED_LEAF:
        kind, mask = HASHED_LEAF, 0x1F
    elif first & 0xF0 == HASHED_BRANCH:
        kind, mask = HASHED_BRANCH, 0x0F
    elif first == 0:
        return EMPTY
    else:
        raise CodecError(f"no node starts with 0x{first:02x}")

    count, offset = _partial_count(data, mask)
    partial, offset = _partial(data, offset, count)
    if kind in {LEAF, HASHED_LEAF}:
        value, _ = _value(data, offset, kind == HASHED_LEAF)
        return Leaf(partial, value)
    return _branch(data, offset, partial, kind)


def bytes_before_children(data: bytes, node: Leaf | Branch) -> int:
    """Return how many bytes of ``data``, which decodes to ``node``, come before its children: of a leaf, all."""
    mask = 0x3F if data[0] >= LEAF else 0x1F if data[0] >= HASHED_LEAF else 0x0F
    count, value = len(node.partial), node.value
    length = (1 if count < mask else 2 + (count - mask) // 255) + (count + 1) // 2 + 2 * isinstance(node, Branch)
    if value is None:
        return length
    if isinstance(value, HashedValue):
        return length + HASH_LENGTH
    return length + len(encode_compact(len(value))) + len(value)


class KnownNodes:
    """Decoded nodes by their bytes, in two generations.

    When the new one is full it becomes the old one, whose nodes are forgotten but for those asked for meanwhile.
    """

    __slots__ = ("_new", "_new_bytes", "_old")

    def __init__(self) -> None:
        self._new: dict[bytes, Node] = {}
        self._old: dict[bytes, Node] = {}
        self._new_bytes = 0

    def decode(self, data: bytes) -> Node:
        """Return what ``decode_node`` returns; nodes that come again and again are decoded once."""
        node = self._new.get(data)
        if node is None:
            node = self._old.get(data)
            if node is None:
                node = decode_node(data)
            self.remember(data, node)
        return node

    def remember(self, data: bytes, node: Node) -> None:
        """Keep ``node``, which ``data`` decodes to."""
        if len(data) > CACHED_NODE_BYTES:
            return
        self._new_bytes += len(data)
        if len(self._new) >= CACHED_NODES or self._new_bytes > CACHED_BYTES:
            self._new, self._old = {}, self._new
            self._new_bytes = len(data)
        self._new[data] = node

    def clear(self) -> None:
        """Forget everything."""
        self._new, self._old = {}, {}
        self._new_bytes = 0

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def __repr__(self) -> str:
        return f"<KnownNodes {len(self)} nodes>"


KNOWN_NODES = KnownNodes()
decode_known_node = KNOWN_NODES.decode


def _header(kind: int, mask: int, count: int) -> bytes:
    if count < mask:
        return bytes([kind | count])
    if count > MAX_PARTIAL_NIBBLES:
        raise ValueError(f"a partial key has at most {MAX_PARTIAL_NIBBLES} nibbles, got {count}")
    full, last = divmod(count - mask, 255)
    return bytes([kind | mask]) + b"\xff" * full + bytes([last])


def _partial_count(data: bytes, mask: int) -> tuple[int, int]:
    count, offset = data[0] & mask, 1
    if count < mask:
        return count, offset
    while count - 1 <= MAX_PARTIAL_NIBBLES:
        if offset >= len(data):
            raise CodecError("the length of the partial key is cut off", offset)
        more = data[offset]
        offset += 1
        count += more
        if more < 255:
            return count, offset
    return MAX_PARTIAL_NIBBLES, offset


def _partial(data: bytes, offset: int, count: int) -> tuple[bytes, int]:
    end = offset + (count + 1) // 2
    if end > len(data):
        raise CodecError(f"a partial key of {count} nibbles is cut off", offset)
    if count % 2 and data[offset] > 0x0F:
        raise CodecError("the padding of an odd partial key is not zero", offset)
    return unpack(data[offset:end], count), end


def _length(data: bytes, offset: int) -> tuple[int, int]:
    """Read a canonical ``Compact<u32>`` that announces bytes which are there."""
    if offset >= len(data):
        raise CodecError("a length is cut off", offset)
    mode = data[offset] & 3
    if mode == 0:
        length, start = data[offset] >> 2, offset + 1
    elif mode == 3:
        start = offset + 5
        length = int.from_bytes(data[offset + 1 : start], "little")
        if data[offset] != 3 or length < 1 << 30:
            raise CodecError("a length is no canonical Compact<u32>", offset)
    else:
        start = offset + (2 if mode == 1 else 4)
        length = int.from_bytes(data[offset:start], "little") >> 2
        if length < (1 << 6 if mode == 1 else 1 << 14):
            raise CodecError("a length is no canonical Compact<u32>", offset)
    if start + length > len(data):
        raise CodecError(f"{length} bytes announced, {max(0, len(data) - start)} left", offset)
    return length, start


def _value(data: bytes, offset: int, hashed: bool) -> tuple[Value, int]:
    if hashed:
        end = offset + HASH_LENGTH
        if end > len(data):
            raise CodecError("the hash of a value is cut off", offset)
        return HashedValue(data[offset:end]), end
    length, start = _length(data, offset)
    return data[start : start + length], start + length


def _branch(data: bytes, offset: int, partial: bytes, kind: int) -> Branch:
    if offset + 2 > len(data):
        raise CodecError("the bitmap of a branch is cut off", offset)
    bitmap = data[offset] | data[offset + 1] << 8
    if not bitmap:
        raise CodecError("a branch has at least one child", offset)
    offset += 2
    value: Value | None = None
    if kind != BRANCH:
        value, offset = _value(data, offset, kind == HASHED_BRANCH)
    children: list[bytes | None] = [None] * CHILDREN
    size = len(data)
    for index in range(CHILDREN):
        if bitmap >> index & 1:
            start, end = offset + 1, offset + 33
            if end > size or data[offset] != HASH_CHILD:
                length, start = _length(data, offset)
                end = start + length
            children[index] = data[start:end]
            offset = end
    return Branch(partial, tuple(children), value)
