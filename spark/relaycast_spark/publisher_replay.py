"""The worker's half of publishers in bulk: publications in, the child root after each block that changes one out.

Every publisher's trie is one of its own, and follows from its publications alone. So rows of one publisher come
together, in the order of their blocks, and nothing else is kept. No Spark.

Law: each publication takes effect in its block. What holds it up on a real relay chain, queues, weights, limits and
registration, is the business of a simulation.
"""

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from relaycast_pallets.broadcaster.storage import INFINITE
from relaycast_spark.exceptions import RowRefused
from relaycast_spark.publications import MAX_U32, PUBLISHER_ROOTS, bytes_in, numbers_in
from relaycast_trie import ArrayTrie, StateVersion, warm_up
from relaycast_trie.scale import encode_compact

Batches = Iterator[pa.RecordBatch]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint8]
"""Keys, one a row."""

KEY_BYTES = 32
TAIL_BYTES = 8
"""Behind the value of an entry: its ttl and the block that it came in, each a u32."""


def replay_publishers(batches: Batches, *, state_version: StateVersion, last_block: int = MAX_U32) -> Batches:
    """Replay publications (rows of ``PUBLICATIONS``, publisher by publisher, blocks ascending) up to ``last_block``.

    Raises ``RowRefused`` for a key of another length.
    """
    warm_up()
    publisher: _Publisher | None = None
    for batch in batches:
        entries, found = encoded_entries(batch), _Found()
        publishers, blocks, ttls = (numbers_in(batch.column(name)) for name in ("para_id", "block", "ttl"))
        keys = _keys_in(batch.column("key"))
        for first, last in _runs(publishers):
            if publisher is None or publisher.para_id != publishers[first]:
                if publisher is not None:
                    publisher.pass_until(last_block, found)
                publisher = _Publisher(int(publishers[first]), state_version)
            publisher.foresee(keys[first:last], blocks[first:last], ttls[first:last])
            for start, end in _runs(blocks[first:last]):
                rows = slice(first + start, first + end)
                if (block := int(blocks[rows.start])) <= last_block:
                    publisher.publish(block, keys[rows], entries.slice(rows.start, end - start), found)
        yield found.batch()
    if publisher is not None:
        found = _Found()
        publisher.pass_until(last_block, found)
        yield found.batch()


def encoded_entries(batch: pa.RecordBatch) -> pa.Array:
    """Return what child tries hold for these publications: ``PublishedEntry`` as SCALE."""
    values = batch.column("value")
    _, ends = bytes_in(values)
    sizes, codes = np.unique(ends[1:] - ends[:-1], return_inverse=True)
    lengths = pa.array([encode_compact(int(size)) for size in sizes], pa.binary()).take(pa.array(codes, pa.int64()))
    tails = np.stack([numbers_in(batch.column(name)) for name in ("ttl", "block")], axis=1).astype("<u4")
    tail = pa.Array.from_buffers(pa.binary(8), len(tails), [None, pa.py_buffer(np.ascontiguousarray(tails))])
    return pc.binary_join_element_wise(lengths, values, tail.cast(pa.binary()), pa.scalar(b"", pa.binary()))


class _Found:
    """Rows of ``PUBLISHER_ROOTS`` to be."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, bytes | None]] = []

    def add(self, para_id: int, block: int, changed: int, root: bytes | None) -> None:
        self._rows.append((para_id, block, changed, root))

    def batch(self) -> pa.RecordBatch:
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(PUBLISHER_ROOTS)
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, PUBLISHER_ROOTS, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=PUBLISHER_ROOTS)


class _Publisher:
    """One publisher's trie as far as it has come; the newest block is open until the next one begins."""

    def __init__(self, para_id: int, state_version: StateVersion) -> None:
        self.para_id = para_id
        self._trie = ArrayTrie(state_version=state_version, window=0)
        self._due: dict[int, list[Keys]] = {}
        self._blocks_due: list[int] = []
        self._block = 0
        self._published: list[Keys] = []

    def foresee(self, keys: Keys, blocks: Ints, ttls: Ints) -> None:
        """Remember in which blocks these keys expire, unless somebody writes them anew before."""
        mortal = ttls != INFINITE
        if not mortal.any():
            return
        expiry = np.minimum(blocks[mortal] + ttls[mortal], MAX_U32)
        order = np.argsort(expiry, kind="stable")
        ordered, at = keys[mortal][order], expiry[order]
        for start, end in _runs(at):
            if (block := int(at[start])) not in self._due:
                self._due[block] = []
                heapq.heappush(self._blocks_due, block)
            self._due[block].append(ordered[start:end])

    def publish(self, block: int, keys: Keys, entries: pa.Array, found: _Found) -> None:
        """Let rows of one block take effect: of a block that came before, more of them."""
        if block != self._block:
            self.pass_until(block - 1, found)
            self._block = block
        self._published.append(keys)
        self._trie.update(keys, _strings(entries))

    def pass_until(self, last: int, found: _Found) -> None:
        """Close the open block, and let those up to ``last`` pass in which nothing is published."""
        if self._published:
            changed = _different(self._published)
            self._published.clear()
            found.add(self.para_id, self._block, changed + self._expire(self._block), self._root())
        while self._blocks_due and self._blocks_due[0] <= last:
            block = self._blocks_due[0]
            gone = self._expire(block)
            if gone:
                found.add(self.para_id, block, gone, self._root())

    def _expire(self, block: int) -> int:
        """Remove what is due up to ``block``, as far as the entries themselves say so, and count it."""
        before = len(self._trie)
        while self._blocks_due and self._blocks_due[0] <= block:
            keys = _joined(self._due.pop(heapq.heappop(self._blocks_due)))
            data, ends, found = self._trie.get_many(keys)
            self._trie.remove(keys[found][_is_expired(data, ends[1:][found], block)])
        return before - len(self._trie)

    def _root(self) -> bytes | None:
        return self._trie.root if len(self._trie) else None


def _is_expired(data: npt.NDArray[np.uint8], ends: Ints, block: int) -> Flags:
    """Return which of the entries that end there, with ttl and block behind the value, are expired in ``block``."""
    tails = data[ends[:, None] + np.arange(-TAIL_BYTES, 0)]
    ttl, inserted = tails.view("<u4").astype(np.int64).T
    return cast(Flags, (ttl != INFINITE) & (np.minimum(inserted + ttl, MAX_U32) <= block))


def _joined(parts: list[Keys]) -> Keys:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _different(parts: list[Keys]) -> int:
    """Return how many different keys there are."""
    keys = _joined(parts)
    return len(keys) if len(keys) == 1 else len(np.unique(keys.view(f"V{KEY_BYTES}")))


def _runs(numbers: Ints) -> Iterator[tuple[int, int]]:
    """Yield where each run of equal numbers starts and ends."""
    starts = np.flatnonzero(np.diff(numbers)) + 1
    ends = [0, *starts.tolist(), len(numbers)]
    yield from ((start, end) for start, end in pairwise(ends) if start < end)


def _keys_in(column: pa.Array) -> Keys:
    data, ends = _strings(column)
    wrong = np.flatnonzero(np.diff(ends) != KEY_BYTES)
    if len(wrong):
        row = int(wrong[0])
        raise RowRefused(row, "key", f"{ends[row + 1] - ends[row]} bytes", f"{KEY_BYTES} bytes")
    return data.reshape(-1, KEY_BYTES)


def _strings(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    data, ends = bytes_in(column)
    part = np.frombuffer(data[ends[0] : ends[-1]], np.uint8)
    return part, cast(Ints, ends.astype(np.int64) - ends[0])
