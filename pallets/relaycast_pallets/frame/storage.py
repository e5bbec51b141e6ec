"""The keys and values of one trie, flat: every read is one dictionary lookup, every change is remembered.

What changed since the last seal is known by key, with the values before; an ``UndoLog`` holds what a transaction
overwrote. The order of the keys is built when it is first asked for, and put right whenever it is asked for again.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from sortedcontainers import SortedList

from relaycast_trie.plain.partial_trie import NO_GAPS, Gaps

Values = dict[bytes, bytes | None]
"""Values by key; ``None`` where there is none."""


class UndoLog:
    """What the innermost open transaction has overwritten: each key's first old value, and whether it was unsealed.

    ``frame`` is ``None`` outside of transactions.
    """

    __slots__ = ("frame",)

    def __init__(self) -> None:
        self.frame: dict[tuple[OverlayStorage, bytes], tuple[bytes | None, bool]] | None = None


class OverlayStorage:
    """One trie's keys and values. Storages of one state share an ``undo`` log.

    ``reads`` gathers the keys that are read, while somebody puts a set there. ``watched_writes`` counts the writes
    under the prefix that is ``watched``: who keeps what it read there in another form learns when that is stale.
    """

    __slots__ = ("_moved", "_order", "_undo", "_values", "reads", "unsealed", "watched", "watched_writes")

    def __init__(self, undo: UndoLog, values: Mapping[bytes, bytes] | None = None) -> None:
        self._undo = undo
        self._values: dict[bytes, bytes] = dict(values or {})
        self._order: SortedList | None = None
        self._moved: set[bytes] = set()
        self.unsealed: Values = {}
        """What changed since the last seal, with the values that were sealed."""

        self.reads: set[bytes] | None = None
        self.watched: bytes | None = None
        self.watched_writes = 0

    def get(self, key: bytes) -> bytes | None:
        if self.reads is not None:
            self.reads.add(key)
        return self._values.get(key)

    def exists(self, key: bytes) -> bool:
        if self.reads is not None:
            self.reads.add(key)
        return key in self._values

    def put(self, key: bytes, value: bytes) -> None:
        """Write ``value``. An equal value counts as a change: in version 1 it moves a large value out of its node."""
        old = self._values.get(key)
        frame = self._undo.frame
        if frame is not None and (place := (self, key)) not in frame:
            frame[place] = (old, key in self.unsealed)
        self.unsealed.setdefault(key, old)
        self._values[key] = value
        if self.watched is not None and key.startswith(self.watched):
            self.watched_writes += 1
        if old is None and self._order is not None:
            self._disorder(key)

    def kill(self, key: bytes) -> None:
        """Remove ``key``; one that is not there is no error."""
        old = self._values.get(key)
        if old is None:
            return
        frame = self._undo.frame
        if frame is not None and (place := (self, key)) not in frame:
            frame[place] = (old, key in self.unsealed)
        self.unsealed.setdefault(key, old)
        del self._values[key]
        if self.watched is not None and key.startswith(self.watched):
            self.watched_writes += 1
        if self._order is not None:
            self._disorder(key)

    def write_all(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Write these values and, where there is none, remove the key: ``put`` and ``kill`` for many."""
        values, unsealed, frame = self._values, self.unsealed, self._undo.frame
        for key, value in changes.items():
            old = values.get(key)
            if value is None and old is None:
                continue
            if frame is not None and (place := (self, key)) not in frame:
                frame[place] = (old, key in unsealed)
            unsealed.setdefault(key, old)
            if value is None:
                del values[key]
            else:
                values[key] = value
            if self._order is not None and (old is None or value is None):
                self._disorder(key)
        self.watched_writes += len(changes)

    def next_key(self, key: bytes) -> bytes | None:
        """Return the first key after ``key``, which need not exist; ``None`` at the end."""
        return self._next_under(b"", key)

    def iter_prefix(self, prefix: bytes, *, start_after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over ``(key, value)`` under ``prefix`` in the order of the keys.

        ``start_after`` need not exist. Keys may come and go meanwhile: it goes on after
        the last one it gave.
        """
        key = self._next_under(prefix, start_after if start_after is not None and start_after >= prefix else None)
        while key is not None:
            if self.reads is not None:
                self.reads.add(key)
            yield key, self._values[key]
            key = self._next_under(prefix, key)

    def count_prefix(self, prefix: bytes) -> int:
        """Return how many keys start with ``prefix``, without visiting them."""
        order = self._ordered()
        end = _end_of(prefix)
        last: int = len(order) if end is None else order.bisect_left(end)
        return last - int(order.bisect_left(prefix))

    def clear_prefix(self, prefix: bytes) -> int:
        """Remove every key under ``prefix`` and return how many there were."""
        keys = [key for key, _ in self.iter_prefix(prefix)]
        for key in keys:
            self.kill(key)
        return len(keys)

    @property
    def values(self) -> Mapping[bytes, bytes]:
        """All values by key, in no order; a view, which nobody changes."""
        return self._values

    @property
    def gaps(self) -> Gaps:
        """Where nothing is known; nowhere, unless this is part of a state with gaps."""
        return NO_GAPS

    @property
    def changes(self) -> Values:
        """What is to be sealed, ``None`` where a key went."""
        get = self._values.get
        return {key: get(key) for key in self.unsealed}

    def take_changes(self) -> tuple[Values, Values]:
        """Return what is to be sealed now, ``None`` where a key went, and what stood there at the last seal."""
        changes, before = self.changes, self.unsealed
        self.unsealed = {}
        return changes, before

    def replace_all(self, values: Mapping[bytes, bytes]) -> None:
        """Hold these values instead, as sealed; not inside a transaction."""
        self._values = dict(values)
        self._order = None
        self._moved.clear()
        self.unsealed = {}
        self.watched_writes += 1

    def restore(self, key: bytes, old: bytes | None, *, was_unsealed: bool) -> None:
        """Undo a change of ``key``: part of a transaction that rolls back."""
        present = key in self._values
        if old is None:
            self._values.pop(key, None)
        else:
            self._values[key] = old
        if self._order is not None and present != (old is not None):
            self._disorder(key)
        if not was_unsealed:
            self.unsealed.pop(key, None)
        if self.watched is not None and key.startswith(self.watched):
            self.watched_writes += 1

    def _disorder(self, key: bytes) -> None:
        """Note that ``key`` came or went: the order is put right when it is next asked for, or built anew."""
        self._moved.add(key)
        if len(self._moved) > 64 + len(self._values):
            self._order = None

    def _ordered(self) -> SortedList:
        order = self._order
        if order is None or 4 * len(self._moved) > len(order):
            order = self._order = SortedList(self._values)
        else:
            for key in self._moved:
                order.discard(key)
                if key in self._values:
                    order.add(key)
        self._moved.clear()
        return order

    def _next_under(self, prefix: bytes, after: bytes | None) -> bytes | None:
        """Return the first key under ``prefix``, or the first one behind ``after``; ``None`` where there is none."""
        order = self._ordered()
        index: int = order.bisect_left(prefix) if after is None else order.bisect_right(after)
        key: bytes | None = order[index] if index < len(order) else None
        return key if key is not None and key.startswith(prefix) else None

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<OverlayStorage {len(self)} keys, {len(self.unsealed)} unsealed>"


def _end_of(prefix: bytes) -> bytes | None:
    """Return the first byte string after all that start with ``prefix``; ``None`` when there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


class RollsBack(Protocol):
    """Something beside the storage that a failed transaction takes back, such as an event log."""

    def mark(self) -> int: ...

    def roll_back(self, mark: int, /) -> None: ...


class Transaction:
    """One ``with`` block over a state, see ``State.transaction``."""

    __slots__ = ("_companions", "_marks", "_outer", "_undo")

    def __init__(self, undo: UndoLog, companions: list[RollsBack]) -> None:
        self._undo = undo
        self._companions = companions

    def __enter__(self) -> None:
        self._outer = self._undo.frame
        self._marks = [(companion, companion.mark()) for companion in self._companions]
        self._undo.frame = {}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        frame = self._undo.frame
        assert frame is not None
        self._undo.frame = self._outer
        if kind is not None:
            for (storage, key), (old, was_unsealed) in frame.items():
                storage.restore(key, old, was_unsealed=was_unsealed)
            for companion, mark in self._marks:
                companion.roll_back(mark)
        elif self._outer is not None:
            for change, before in frame.items():
                self._outer.setdefault(change, before)
