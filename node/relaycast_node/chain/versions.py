"""What a chain's tries held after each block: the values of the oldest block, and those that later blocks gave to keys.

Law: blocks of the best branch are noted in the order of their numbers, undone in the reverse order, and forgotten from
the oldest on. A value is looked up by bisection among those of its key; nothing is copied for a block. What blocks
beside the best branch changed lies over the state that they branch off from. What is in a gap of the trie raises
``MissingNode``, after every block: gaps never close.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge

from sortedcontainers import SortedSet

from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.plain.partial_trie import NO_GAPS, Gaps

Values = Mapping[bytes, bytes | None]


class TrieVersions:
    """One trie, from the values that it held at the oldest block, as far as they are known."""

    def __init__(self, oldest: Mapping[bytes, bytes] | None = None, gaps: Gaps = NO_GAPS) -> None:
        self._oldest = dict(oldest or {})
        self._gaps = gaps
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
            self._drop_if_unknown(key)

    def forget(self, number: int, changes: Values) -> None:
        """Let block ``number``, the first one that was noted, be the oldest block; ``changes`` are what it wrote."""
        for key, value in changes.items():
            assert self._numbers[key].pop(0) == number, "blocks are forgotten from the first one on"
            self._values[key].pop(0)
            if value is None:
                self._oldest.pop(key, None)
            else:
                self._oldest[key] = value
            self._drop_if_unknown(key)

    def _drop_if_unknown(self, key: bytes) -> None:
        """Keep no empty lists, and no key that no block has."""
        if self._numbers[key]:
            return
        del self._numbers[key], self._values[key]
        if key not in self._oldest and self._keys is not None:
            self._keys.discard(key)

    def get(self, key: bytes, number: int) -> bytes | None:
        """Return the value of ``key`` after block ``number``."""
        numbers = self._numbers.get(key)
        if numbers:
            place = len(numbers) if numbers[-1] <= number else bisect_right(numbers, number)
            if place:
                return self._values[key][place - 1]
        value = self._oldest.get(key)
        if value is None and self._gaps:
            self._gaps.check(key)
        return value

    def keys(self, number: int, prefix: bytes = b"", *, after: bytes | None = None) -> Iterator[bytes]:
        """Iterate over the keys under ``prefix`` after block ``number`` in order, those behind ``after`` alone."""
        if self._keys is None:
            self._keys = SortedSet(self._oldest.keys() | self._numbers.keys())
        start, inclusive = (prefix, True) if after is None or after < prefix else (after, False)
        seen = start if start.startswith(prefix) else None
        for key in self._keys.irange(start, inclusive=(inclusive, True)):
            if not key.startswith(prefix):
                break
            if self.get(key, number) is not None:
                if self._gaps:
                    assert seen is not None, "keys under the prefix follow one"
                    self._gaps.check_between(seen, key, prefix, after=not inclusive)
                    seen, inclusive = key, False
                yield key
        if self._gaps and seen is not None:
            self._gaps.check_between(seen, None, prefix, after=not inclusive)


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
        found = self._children.get(storage_key)
        if found is None:
            self.get(CHILD_STORAGE_PREFIX + storage_key)  # where it is not known, nothing below it is
        return PastState(found or TrieVersions(), {}, self._number)


class ForkedState(PastState):
    """The state after a block beside the best branch: what was ``written`` since they parted, over the state there."""

    __slots__ = ("_over", "_written", "_written_below")

    def __init__(self, base: PastState, written: Values, below: Mapping[bytes, Values]) -> None:
        self._over = base
        self._written = written
        self._written_below = below

    @classmethod
    def of(cls, base: PastState, written: Sequence[tuple[Values, Mapping[bytes, Values]]]) -> "ForkedState":
        """Put what blocks wrote over ``base``, the oldest block first: to the top trie, and to child tries by name."""
        top: dict[bytes, bytes | None] = {}
        below: dict[bytes, dict[bytes, bytes | None]] = {}
        for changes, child_changes in written:
            top.update(changes)
            for name, changed in child_changes.items():
                below.setdefault(name, {}).update(changed)
        return cls(base, top, below)

    def get(self, key: bytes) -> bytes | None:
        return self._written[key] if key in self._written else self._over.get(key)

    def keys(self, prefix: bytes = b"", *, after: bytes | None = None) -> Iterator[bytes]:
        added = sorted(
            key
            for key, value in self._written.items()
            if value is not None and key.startswith(prefix) and (after is None or key > after)
        )
        kept = (key for key in self._over.keys(prefix, after=after) if key not in self._written)
        yield from merge(kept, added)

    def child(self, storage_key: bytes) -> PastState:
        return ForkedState(self._over.child(storage_key), self._written_below.get(storage_key, {}), {})
