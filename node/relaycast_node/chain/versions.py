"""What a chain's tries held after each block: the genesis, and for each key the values that blocks gave it.

Law: blocks are noted in the order of their numbers, and undone in the reverse order. A value is looked up by bisection
among those of its key; nothing is copied for a block.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

from sortedcontainers import SortedSet

Values = Mapping[bytes, bytes | None]


class TrieVersions:
    """One trie, from the values that it held at block 0."""

    def __init__(self, genesis: Mapping[bytes, bytes] | None = None) -> None:
        self._genesis = dict(genesis or {})
        self._numbers: dict[bytes, list[int]] = {}
        self._values: dict[bytes, list[bytes | None]] = {}
        self._keys: SortedSet | None = None

    def note(self, number: int, changes: Values) -> None:
        """Note what block ``number`` wrote; ``None`` where it removed a key."""
        for key, value in changes.items():
            self._numbers.setdefault(key, []).append(number)
            self._values.setdefault(key, []).append(value)
            if self._keys is not None:
                self._keys.add(key)

    def undo(self, number: int, changes: Values) -> None:
        """Forget what block ``number`` wrote, the last one that was noted."""
        for key in changes:
            assert self._numbers[key].pop() == number, "blocks are undone from the last one on"
            self._values[key].pop()

    def get(self, key: bytes, number: int) -> bytes | None:
        """Return the value of ``key`` after block ``number``."""
        numbers = self._numbers.get(key)
        if numbers:
            place = len(numbers) if numbers[-1] <= number else bisect_right(numbers, number)
            if place:
                return self._values[key][place - 1]
        return self._genesis.get(key)

    def keys(self, number: int, prefix: bytes = b"", *, after: bytes | None = None) -> Iterator[bytes]:
        """Iterate over the keys under ``prefix`` after block ``number`` in order, those behind ``after`` alone."""
        if self._keys is None:
            self._keys = SortedSet(self._genesis.keys() | self._numbers.keys())
        start, inclusive = (prefix, True) if after is None or after < prefix else (after, False)
        for key in self._keys.irange(start, inclusive=(inclusive, True)):
            if not key.startswith(prefix):
                return
            if self.get(key, number) is not None:
                yield key


class PastState:
    """A trie as it was after one block."""

    __slots__ = ("_children", "_number", "_top")

    def __init__(self, top: TrieVersions, children: Mapping[bytes, TrieVersions], number: int) -> None:
        self._top = top
        self._children = children
        self._number = number

    def get(self, key: bytes) -> bytes | None:
        return self._top.get(key, self._number)

    def keys(self, prefix: bytes = b"", *, after: bytes | None = None) -> Iterator[bytes]:
        """Iterate over keys in order, see ``TrieVersions.keys``."""
        return self._top.keys(self._number, prefix, after=after)

    def pairs(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Iterate over keys and values in the order of the keys."""
        for key in self.keys(prefix):
            value = self.get(key)
            assert value is not None
            yield key, value

    def child(self, storage_key: bytes) -> "PastState":
        """Return the child trie of this name, without prefix; one that never held anything is empty."""
        return PastState(self._children.get(storage_key) or TrieVersions(), {}, self._number)
