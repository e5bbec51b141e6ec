"""The worker's half of publishers in bulk: publications in, the child root after each block that changes one out.

Every publisher's trie is one of its own, and follows from its publications alone: rows of one publisher come together,
in the order of their blocks, and nothing else is kept. No Spark.

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

from relaycast_pallets.published_entry import expires_at
from relaycast_spark.publications import MAX_U32, bytes_in, numbers_in
from relaycast_trie import ArrayTrie, StateVersion, warm_up
from relaycast_trie.scale import encode_compact

Batches = Iterator[pa.RecordBatch]
Ints = npt.NDArray[np.int64]

PUBLISHER_ROOTS = pa.schema(
    [("para_id", pa.int64()), ("block", pa.int64()), ("changed", pa.int64()), ("child_root", pa.binary())]
)
"""A publisher's child root after a block; ``changed`` counts the keys that the block published or let expire.

The root is null where nothing is left.
"""


def replay_publishers(batches: Batches, *, state_version: StateVersion, last_block: int = MAX_U32) -> Batches:
    """Replay publications (rows of ``PUBLICATIONS``, publisher by publisher, blocks ascending) up to ``last_block``."""
    warm_up()
    publisher: _Publisher | None = None
    for batch in batches:
        entries, found = encoded_entries(batch), _Found()
        publishers, blocks = numbers_in(batch.column("para_id")), numbers_in(batch.column("block"))
        for start, end in _runs(publishers, blocks):
            para_id, block = int(publishers[start]), int(blocks[start])
            if publisher is None or publisher.para_id != para_id:
                if publisher is not None:
                    publisher.pass_until(last_block, found)
                publisher = _Publisher(para_id, state_version)
            if block <= last_block:
                publisher.publish(block, batch.slice(start, end - start), entries.slice(start, end - start), found)
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
        self._expires: dict[bytes, int] = {}
        self._due: list[tuple[int, bytes]] = []
        self._block = 0
        self._published: list[pa.Array] = []

    def publish(self, block: int, rows: pa.RecordBatch, entries: pa.Array, found: _Found) -> None:
        """Let rows of one block take effect: of a block that came before, more of them."""
        if block != self._block:
            self.pass_until(block - 1, found)
            self._block = block
        keys = rows.column("key")
        self._published.append(keys)
        self._trie.update(_strings(keys), _strings(entries))
        ttls = numbers_in(rows.column("ttl"))
        if self._expires or ttls.any():
            for key, ttl in zip(keys.to_pylist(), ttls.tolist(), strict=True):
                self._note(key, ttl)

    def pass_until(self, last: int, found: _Found) -> None:
        """Close the open block, and let those up to ``last`` pass in which nothing is published."""
        if self._published:
            changed = len(pa.chunked_array(self._published).unique())
            self._published.clear()
            found.add(self.para_id, self._block, changed + self._expire(self._block), self._root())
        while self._due and self._due[0][0] <= last:
            block = self._due[0][0]
            gone = self._expire(block)
            if gone:
                found.add(self.para_id, block, gone, self._root())

    def _note(self, key: bytes, ttl: int) -> None:
        self._expires.pop(key, None)
        at = expires_at(ttl, self._block)
        if at is not None:
            self._expires[key] = at
            heapq.heappush(self._due, (at, key))

    def _expire(self, block: int) -> int:
        gone = []
        while self._due and self._due[0][0] <= block:
            at, key = heapq.heappop(self._due)
            if self._expires.get(key) == at:
                del self._expires[key]
                gone.append(key)
        if gone:
            self._trie.remove(gone)
        return len(gone)

    def _root(self) -> bytes | None:
        return self._trie.root if len(self._trie) else None


def _runs(publishers: Ints, blocks: Ints) -> Iterator[tuple[int, int]]:
    """Yield where the rows of one publisher in one block start and end."""
    starts = np.flatnonzero((np.diff(publishers) != 0) | (np.diff(blocks) != 0)) + 1
    ends = [0, *starts.tolist(), len(blocks)]
    yield from ((start, end) for start, end in pairwise(ends) if start < end)


def _strings(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    data, ends = bytes_in(column)
    part = np.frombuffer(data[ends[0] : ends[-1]], np.uint8)
    return part, cast(Ints, ends.astype(np.int64) - ends[0])
