"""A trie as its definition cuts it into leaves and branches, and the same read out of the array engine's tables.

The twins of kernels on tables compare the two. Neither side calls a kernel.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from naive import nibbles, shared_nibbles_of
from relaycast_trie import Branch, HashedValue, Leaf, blake2_256
from relaycast_trie.kernels import tables
from relaycast_trie.node import Node, Value
from relaycast_trie.node_codec import encode_node


class Tip(NamedTuple):
    """A leaf, whose partial key is the key from nibble ``start`` on."""

    start: int
    key: bytes
    value: bytes


class Fork(NamedTuple):
    """A branch, whose partial key goes from nibble ``start`` to nibble ``depth``."""

    start: int
    depth: int
    path: tuple[int, ...]
    ends: tuple[bytes, bytes] | None
    """The key that ends here, and its value."""
    ways: dict[int, "Shape"]


Shape: TypeAlias = Tip | Fork


def shape(held: dict[bytes, bytes], *, start: int = 0) -> Shape | None:
    """Return the trie of some pairs whose keys agree in their first ``start`` nibbles; ``None`` for no pairs."""
    if len(held) < 2:
        return next((Tip(start, key, value) for key, value in held.items()), None)
    paths = {key: bytes(nibbles(key)) for key in held}
    low, high = min(paths.values()), max(paths.values())
    depth = shared_nibbles_of(low, high)
    below: dict[int, dict[bytes, bytes]] = {}
    ends = None
    for key, path in sorted(paths.items()):
        if len(path) == depth:
            ends = key, held[key]
        else:
            below.setdefault(path[depth], {})[key] = held[key]
    ways = {way: child for way, some in below.items() if (child := shape(some, start=depth + 1))}
    return Fork(start, depth, tuple(low[:depth]), ends, ways)


def read(entries: tables.Entries, branches: tables.Branches, node: int) -> Shape | None:
    """Return the trie below a node of the tables, and check what the tables say more than once."""
    if node == 0:
        return None
    if node > 0:
        return Tip(int(entries.start[node - 1]), string(entries.key, node - 1), string(entries.value, node - 1))
    row = [int(cell) for cell in branches.row[-node - 1]]
    ways = {way: child for way in range(16) if (child := read(entries, branches, row[way]))}
    assert row[tables.WAYS] == sum(1 << way for way in ways)
    valued, ends = row[tables.VALUED] - 1, None
    if valued >= 0:
        assert entries.start[valued] == tables.NO_START
        ends = string(entries.key, valued), string(entries.value, valued)
    path = tuple(nibbles(string(entries.key, row[tables.SAMPLE])))[: row[tables.DEPTH]]
    return Fork(row[tables.START], row[tables.DEPTH], path, ends, ways)


def string(column: tables.Column, index: int) -> bytes:
    """Return a byte string of a column."""
    at, size = index * column.width, column.width
    if column.width < 0:
        at, size = int(column.at[index]), int(column.size[index])
    return column.data[at : at + size].tobytes()


def numbered(branches: tables.Branches, entries: tables.Entries, node: int) -> Iterator[tuple[int, Shape]]:
    """Yield the numbers of the nodes below and at ``node`` with what they are, a branch before its children."""
    found = read(entries, branches, node)
    if found is not None:
        yield node, found
    if node < 0:
        for way in range(16):
            yield from numbered(branches, entries, int(branches.row[-node - 1, way]))


def stored(value: bytes, external_from: int) -> Value:
    return HashedValue(blake2_256(value)) if len(value) >= external_from else value


def as_node(found: Shape, external_from: int) -> Node:
    """Return a leaf or a branch as the plain codec encodes it."""
    if isinstance(found, Tip):
        return Leaf(bytes(nibbles(found.key)[found.start :]), stored(found.value, external_from))
    children = [reference(found.ways[way], external_from) if way in found.ways else None for way in range(16)]
    value = stored(found.ends[1], external_from) if found.ends else None
    return Branch(bytes(found.path[found.start :]), tuple(children), value)


def encoded(found: Shape, external_from: int) -> bytes:
    return encode_node(as_node(found, external_from))


def reference(found: Shape, external_from: int) -> bytes:
    """Return what a parent holds of a node: its bytes, or their hash from 32 bytes on."""
    data = encoded(found, external_from)
    return data if len(data) < 32 else blake2_256(data)


def height(found: Shape) -> int:
    """Return 0 for a leaf, and for a branch one more than its highest child."""
    if isinstance(found, Tip):
        return 0
    return 1 + max(map(height, found.ways.values()))
