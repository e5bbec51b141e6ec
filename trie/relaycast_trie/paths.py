"""The way down a trie along many paths at once.

A path is nibbles, one to a byte (``nibbles``). Among sorted paths, those that lead to the same node are neighbours. So
a descent meets each node once, with the range ``[low, high)`` of the paths that lead to it, and splits the range where
they part. ``descend`` is that walk over nodes that need not all be there. ``under`` and ``ways`` are its two steps, for
walks that do more than look at each node.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from relaycast_trie.exceptions import CodecError, InvalidNode
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.node import Branch, Empty, Node, Value
from relaycast_trie.node_codec import decode_known_node

Visit = tuple[bytes, bytes, Node, int, int, int, int, Value | None]
"""A node on the way: ``(reference, carrier, node, depth, low, high, first, value)``.

- ``reference`` is how its parent names it: 32 bytes are its hash, fewer are the node itself.
- ``carrier`` is the hash under which its bytes are found: its own, or that of the node that contains it.
- ``depth`` is the number of nibbles above it.
- ``[low, high)`` are the paths that lead to it, at least one; ``first`` is the first of them that its partial key fits.
- ``value`` is what the node holds for path number ``first``: ``None`` where that path does not end here, or has no
  value, or there is no such path.
"""

Way = tuple[int, int, int]
"""A nibble, and the range of the paths that continue with it."""

_NEXT = tuple(bytes([nibble + 1]) for nibble in range(16))


def descend(paths: Sequence[bytes], root: bytes, nodes: Mapping[bytes, bytes]) -> Iterator[Visit]:
    """Yield every node that ``paths`` lead to below ``root``: parents first, children in the order of the paths.

    ``paths`` ascend strictly; ``nodes`` are the known ones, by hash. Nothing is yielded for a node that is not among
    them, nor for what is below it. Raises ``InvalidNode`` where the bytes of a node do not decode.
    """
    work = [(root, root, 0, 0, len(paths))] if paths else []
    while work:
        reference, carrier, depth, low, high = work.pop()
        data = nodes.get(reference) if len(reference) == HASH_LENGTH else reference
        if data is None:
            continue
        carrier = reference if data is not reference else carrier
        try:
            node = decode_known_node(data)
        except CodecError as error:
            raise InvalidNode(reference, error.reason, error.offset) from None
        if isinstance(node, Empty):
            yield reference, carrier, node, depth, low, high, low, None
            continue
        first, last, end = low, high, depth + len(node.partial)
        if end > depth:
            first, last = under(paths, paths[low][:depth] + node.partial, low, high)
        ends_here = first < last and len(paths[first]) == end
        yield reference, carrier, node, depth, low, high, first, node.value if ends_here else None
        if first < last and isinstance(node, Branch):
            for nibble, start, stop in reversed(ways(paths, end, first + ends_here, last)):
                child = node.children[nibble]
                if child is not None:
                    work.append((child, carrier, end + 1, start, stop))


def under(paths: Sequence[bytes], prefix: bytes, low: int, high: int) -> tuple[int, int]:
    """Return the range of those sorted ``paths`` in ``[low, high)``, at least one, that start with ``prefix``.

    An empty range stands where such paths would: those before it are less than ``prefix``, the others greater.
    """
    if paths[low].startswith(prefix):
        if high - low == 1 or paths[high - 1].startswith(prefix):
            return low, high
    elif high - low == 1:
        return (low, low) if prefix < paths[low] else (high, high)
    start = bisect_left(paths, prefix, low, high)
    return start, bisect_left(paths, prefix + b"\x10", start, high)


def ways(paths: Sequence[bytes], depth: int, low: int, high: int) -> list[Way]:
    """Split the sorted ``paths`` in ``[low, high)`` by their nibble at ``depth``; the nibbles come in ascending order.

    The paths share all nibbles before that one, and none of them ends there.
    """
    found: list[Way] = []
    if low == high:
        return found
    greatest = paths[high - 1][depth]
    while (nibble := paths[low][depth]) != greatest:
        stop = low + 1
        if paths[stop][depth] == nibble:
            stop = bisect_left(paths, paths[low][:depth] + _NEXT[nibble], stop, high)
        found.append((nibble, low, stop))
        low = stop
    found.append((nibble, low, high))
    return found
