"""Slow twins of compiled kernels, written from the definition of what each computes."""

from collections.abc import Iterator
from typing import NamedTuple

from relaycast_trie.exceptions import CodecError
from relaycast_trie.node import Branch, Empty, HashedValue, Value
from relaycast_trie.node_codec import decode_node


def nibbles(key: bytes) -> list[int]:
    return [half for byte in key for half in (byte >> 4, byte & 15)]


def shared_nibbles(left: bytes, right: bytes) -> int:
    shared = 0
    for a, b in zip(nibbles(left), nibbles(right), strict=False):
        if a != b:
            break
        shared += 1
    return shared


def ascending_unique(strings: list[bytes]) -> list[int]:
    """Return the order in which strings ascend; of equal ones the one that comes last."""
    last = {string: index for index, string in enumerate(strings)}
    return [last[string] for string in sorted(last)]


def by_height(heights: list[int]) -> list[list[int]]:
    """Return the numbers of the nodes of each height."""
    levels = range(max(heights, default=-1) + 1)
    return [[node for node, height in enumerate(heights) if height == level] for level in levels]


def shared_nibbles_of(left: bytes, right: bytes) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def together(strings: list[bytes]) -> tuple[bytes, list[int], list[int], int]:
    """Return strings one after another, where each starts and the last ends, their sizes, and their only one or -1."""
    sizes = [len(string) for string in strings]
    width = 0 if not sizes else sizes[0] if len(set(sizes)) == 1 else -1
    return b"".join(strings), [sum(sizes[:i]) for i in range(len(sizes) + 1)], sizes, width


def byte_lists(encoded: bytes) -> list[bytes] | None:
    """Return the strings of a SCALE ``Vec<Vec<u8>>``, ``None`` for anything else, from the definition of compact."""
    found = with_length(encoded)
    if found is None:
        return None
    count, rest = found
    strings: list[bytes] = []
    while len(strings) < count:
        found = with_length(rest)
        if found is None:
            return None
        size, rest = found
        strings.append(rest[:size])
        rest = rest[size:]
    return None if rest else strings


def with_length(data: bytes) -> tuple[int, bytes] | None:
    """Return the compact length at the start, in the fewest bytes that hold it, and what follows, at least as long."""
    for size, shape in ((1, 0), (2, 1), (4, 2), (5, 3)):
        number = int.from_bytes(data[:size], "little")
        if len(data) < size or number & 3 != shape:
            continue
        length = number >> 8 if shape == 3 else number >> 2
        fewest = 1 if length < 2**6 else 2 if length < 2**14 else 4 if length < 2**30 else 5
        if fewest == size and (shape != 3 or data[0] == 3) and length <= len(data) - size:
            return length, data[size:]
    return None


def packed(path: list[int]) -> bytes:
    """Return nibbles two to a byte, an odd first one alone."""
    padded = [0] * (len(path) % 2) + path
    return bytes(high << 4 | low for high, low in zip(padded[::2], padded[1::2], strict=True))


def header_count(data: bytes, most: int) -> tuple[int, int] | None:
    """Return the nibbles that a node's header counts and its bytes, ``None`` for a cut one; never more than 65,535."""
    count, size = data[0] & most, 1
    while count >= most and (size == 1 or data[size - 1] == 255):
        if count > 65_535:
            return 65_535, size
        if size == len(data):
            return None
        count, size = count + data[size], size + 1
    return count, size


def followed(known: dict[bytes, bytes], root: bytes, key: bytes) -> tuple[list[bytes], bytes | None, bool]:
    """Return the hashes of the nodes that a key passes, its value, and whether every node needed is there and decodes.

    ``known`` are nodes and external values by their hashes.
    """
    passed: list[bytes] = []
    path, reference = bytes(nibbles(key)), root
    while True:
        if len(reference) == 32:
            if reference not in known:
                return passed, None, False
            passed.append(reference)
        try:
            node = decode_node(known[reference] if len(reference) == 32 else reference)
        except CodecError:
            return passed, None, False
        if isinstance(node, Empty) or not path.startswith(node.partial):
            return passed, None, True
        path = path[len(node.partial) :]
        if not path:
            break
        child = node.children[path[0]] if isinstance(node, Branch) else None
        if child is None:
            return passed, None, True
        path, reference = path[1:], child
    if isinstance(node.value, HashedValue):
        return passed, known.get(node.value.hash), node.value.hash in known
    return passed, node.value, True


def values_of_known(known: dict[bytes, bytes], reference: bytes, path: bytes = b"") -> Iterator[tuple[bytes, Value]]:
    """Yield all values of nodes that can be reached, with their nibbles, in the order of keys."""
    node = decode_node(known[reference] if len(reference) == 32 else reference)
    if isinstance(node, Empty):
        return
    path += node.partial
    if node.value is not None:
        yield path, node.value
    for way, child in enumerate(node.children if isinstance(node, Branch) else ()):
        if child is not None and (len(child) != 32 or child in known):
            yield from values_of_known(known, child, path + bytes([way]))


class Element(NamedTuple):
    """A node or a value of a compact proof."""

    parent: int
    """The node that it stands under, for a value -(node + 2), for the root -1."""
    height: int
    """0 for a value, otherwise one more than the nodes that stand under it."""


def unfolded(compact: list[bytes]) -> list[Element]:
    """Return how the elements of a compact proof of one trie stand under one another."""
    found: list[Element] = []

    def take(parent: int) -> int:
        at, height = len(found), 1
        escaped = compact[at].startswith(b"\x01")
        node = decode_node(compact[at][escaped:])
        found.append(Element(parent, 0))
        if escaped:
            if at + 1 == len(compact):
                raise IndexError("the last node has no value behind it")
            found.append(Element(-(at + 2), 0))
        for child in node.children if isinstance(node, Branch) else ():
            if child == b"":
                height = max(height, 1 + take(at))
        found[at] = Element(parent, height)
        return height

    take(-1)
    return found
