"""Recorded publications as a table, and the publishers' tries that follow from it. Plain Python over Arrow, no Spark.

A row is one value that a parachain publishes. ``block`` counts relay blocks from 1. ``key`` is a name, which is hashed,
or 32 bytes. ``ttl`` counts relay blocks, 0 for ever. Text stands for bytes as ``0x`` and hex digits. A row that is no
publication raises ``RowRefused`` with its row and column.

A publisher's trie follows from its publications alone. Rows of one publisher come together, in the order of their
blocks; out comes the child root after each block that changes it.

Law: each publication takes effect in its block. Queues, weights, limits and registration, which hold it up on a real
relay chain, belong to a simulation.
"""

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import relaycast_trie
from relaycast_ledger.exceptions import InputColumns, TableRefused
from relaycast_pallets.broadcaster.storage import INFINITE
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_spark.exceptions import RowRefused
from relaycast_trie import StateVersion
from relaycast_trie.scale import encode_compact

Batches = Iterator[pa.RecordBatch]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint8]
"""Keys, one a row."""

Roots = list[tuple[int, int, int, bytes | None]]
"""Rows of ``PUBLISHER_ROOTS``."""

KEY_BYTES = 32
TAIL_BYTES = 8
"""Bytes behind the value of an entry: its ttl and the block that it came in, each a u32."""

PUBLICATIONS = pa.schema(
    [
        ("block", pa.int64()),
        ("para_id", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("ttl", pa.int64()),
    ]
)
"""Publications as they are worked with: a key has 32 bytes, a value is bytes."""

SEQUENCE = "sequence"
"""A column that says in which order publications, or blocks, come where nothing else does."""

PUBLISHER_ROOTS = pa.schema(
    [("para_id", pa.int64()), ("block", pa.int64()), ("changed", pa.int64()), ("child_root", pa.binary())]
)
"""A publisher's child root after a block; ``changed`` counts the keys that the block published or let expire.

The root is null where nothing is left.
"""

OPTIONAL = frozenset({"ttl"})
"""Columns that may be missing: what has no ttl never expires."""

MAX_BLOCK = 1_000_000
MAX_U32 = 2**32 - 1
RANGES = {"block": (1, MAX_BLOCK), "para_id": (0, MAX_U32), "ttl": (0, MAX_U32)}

KEY_EXPECTED = "a name, or 0x and 64 hex digits"
VALUE_EXPECTED = "0x and an even number of hex digits"

_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


def check_columns(names: Sequence[str], place: str) -> None:
    """Raise ``InputColumns`` unless these are the columns of publications, each once, in any order."""
    known = PUBLICATIONS.names
    strange = [name for name in names if name not in known]
    twice = [name for name in known if list(names).count(name) > 1]
    missing = [name for name in known if name not in names and name not in OPTIONAL]
    if not (strange or twice or missing):
        return
    hint = get_close_matches(strange[0], missing or known, n=1) if strange else []
    meant = f" (did you mean {hint[0]}?)" if hint else ""
    raise InputColumns(
        place, ", ".join(ascii(name)[1:-1][:40] for name in names), f"{', '.join(known)}; ttl may be missing{meant}"
    )


def decoded(batch: pa.RecordBatch, *, place: str = "the publications") -> pa.RecordBatch:
    """Return a batch as one of ``PUBLICATIONS``; raises ``InputColumns`` and ``RowRefused``."""
    check_columns(batch.schema.names, place)
    columns = {name: _plain(batch.column(name), name, place) for name in batch.schema.names}
    numbers = {name: _numbers(columns[name], name) for name in RANGES if name in columns}
    numbers.setdefault("ttl", np.zeros(batch.num_rows, np.int64))
    made = {name: _number_column(values) for name, values in numbers.items()}
    made["key"], made["value"] = _keys(columns["key"]), _values(columns["value"])
    return pa.RecordBatch.from_arrays([made[name] for name in PUBLICATIONS.names], schema=PUBLICATIONS)


def key_of(name: str) -> bytes | None:
    """Return the key that a text stands for: 32 bytes in hex, or a name to be hashed; ``None`` when it is neither."""
    if not name.startswith("0x"):
        return bytes(SubscribedKey.from_data(name.encode())) if name else None
    return bytes.fromhex(name[2:]) if len(name) == 66 and _HEX.fullmatch(name) else None


def numbers_in(column: pa.Array) -> Ints:
    """Return the numbers of an int64 column without nulls."""
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.empty(0, np.int64)
    return np.frombuffer(data, np.int64)[column.offset : column.offset + len(column)]


def bytes_in(column: pa.Array) -> tuple[memoryview, npt.NDArray[np.int32]]:
    """Return all data of a binary column without nulls, and where each string starts and the last one ends."""
    _, offsets, data = column.buffers()
    if offsets is None or not len(column):
        return memoryview(b""), np.zeros(1, np.int32)
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return memoryview(b"" if data is None else data), ends


def binary_column(strings: Sequence[bytes]) -> pa.Array:
    """Return strings as a column, put together from buffers: pandas stays out."""
    offsets = np.fromiter(accumulate(map(len, strings), initial=0), np.int32, len(strings) + 1)
    return pa.Array.from_buffers(
        pa.binary(), len(strings), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(strings))]
    )


def _plain(column: pa.Array, name: str, place: str) -> pa.Array:
    """Return a column as int64, uint64, string or binary, without nulls."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if column.null_count:
        raise RowRefused(column.is_valid().to_pylist().index(False), name, "null", "a value in every row")
    if name in RANGES:
        if pa.types.is_integer(kind):
            return column.cast(pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.string())
    expected = "whole numbers" if name in RANGES else "bytes, or text"
    raise InputColumns(place, f"{name} as {kind}", f"{name} as {expected}")


def _numbers(column: pa.Array, name: str) -> Ints:
    least, most = RANGES[name]
    expected = f"a whole number from {least:,} to {most:,}"
    if pa.types.is_string(column.type):
        _check(pc.match_substring_regex(column, "^[0-9]{1,18}$"), column, name, expected)
        column = column.cast(pa.int64())
    data = column.buffers()[1]
    kind = np.uint64 if pa.types.is_unsigned_integer(column.type) else np.int64
    values = (
        np.frombuffer(data, kind)[column.offset : column.offset + len(column)] if len(column) else np.empty(0, kind)
    )
    outside = np.flatnonzero((values < least) | (values > most))
    if len(outside):
        raise RowRefused(int(outside[0]), name, f"{values[outside[0]]}", expected)
    return values.astype(np.int64)


def _keys(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        sizes = np.diff(bytes_in(column)[1])
        _check((sizes == KEY_BYTES).tolist(), column, "key", "32 bytes, or a name as text")
        return column
    coded = column.dictionary_encode()
    names = coded.dictionary.to_pylist()
    keys = [key_of(name) for name in names]
    if None in keys:
        rows = column.to_pylist()
        wrong = next(row for row, name in enumerate(rows) if key_of(name) is None)
        raise RowRefused(wrong, "key", _shown_text(rows[wrong]), KEY_EXPECTED)
    codes = np.frombuffer(coded.indices.buffers()[1], np.int32)[: len(column)] if len(column) else np.empty(0, np.int32)
    table = np.frombuffer(b"".join(cast(list[bytes], keys)), np.uint8).reshape(-1, 32)
    offsets = np.arange(len(column) + 1, dtype=np.int32) * 32
    data = pa.py_buffer(np.ascontiguousarray(table[codes]))
    return pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(offsets), data])


def _values(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return column
    _check(pc.match_substring_regex(column, "^0x([0-9a-fA-F]{2})*$"), column, "value", VALUE_EXPECTED)
    return binary_column([bytes.fromhex(text[2:]) for text in column.to_pylist()])


def _number_column(values: Ints) -> pa.Array:
    """Return numbers as a column, without pandas."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _check(holds: Any, column: pa.Array, name: str, expected: str) -> None:
    """Raise ``RowRefused`` for the first row in which a check does not hold."""
    flags = holds if isinstance(holds, list) else None if holds.true_count == len(holds) else holds.to_pylist()
    if flags is None or all(flags):
        return
    row = flags.index(False)
    value = column[row].as_py()
    show: Callable[[Any], str] = _shown_text if isinstance(value, str) else _shown_bytes
    raise RowRefused(row, name, show(value), expected)


def _shown_text(text: str) -> str:
    return ascii(text) if len(text) <= 70 else f"{text[:60]!a}... ({len(text)} characters)"


def _shown_bytes(data: bytes) -> str:
    return f"{len(data)} bytes, 0x{data[:24].hex()}{'...' if len(data) > 24 else ''}"


def told_apart(batches: Batches, order: Sequence[str]) -> Batches:
    """Pass on rows that are sorted by these columns; raises ``TableRefused`` where two rows agree in all of them."""
    last: list[pa.RecordBatch] = []
    for batch in batches:
        rows = pa.Table.from_batches([*last, batch.select(order)])
        agree = (pc.equal(column.slice(1), column.slice(0, max(len(rows) - 1, 0))) for column in rows.columns)
        repeated = pc.index(reduce(pc.and_, agree), pa.scalar(value=True)).as_py()
        if repeated >= 0:
            row = rows.slice(repeated, 1).to_pylist()[0]
            got = f"0x{row['key'].hex()} twice in block {row['block']:,} of publisher {row['para_id']}"
            raise TableRefused("the publications", got, f"a column {SEQUENCE} that says which comes last")
        last = rows.slice(max(len(rows) - 1, 0)).to_batches()
        yield batch


def replay_publishers(batches: Batches, *, state_version: StateVersion, last_block: int = MAX_U32) -> Batches:
    """Replay publications (rows of ``PUBLICATIONS``, publisher by publisher, blocks ascending) up to ``last_block``.

    Raises ``RowRefused`` for a key of another length.
    """
    relaycast_trie.warm_up()
    publisher: _Publisher | None = None
    for batch in batches:
        entries, found = encoded_entries(batch), Roots()
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
        yield _roots_batch(found)
    if publisher is not None:
        found = Roots()
        publisher.pass_until(last_block, found)
        yield _roots_batch(found)


def encoded_entries(batch: pa.RecordBatch) -> pa.Array:
    """Return what child tries hold for these publications: ``PublishedEntry`` as SCALE."""
    values = batch.column("value")
    _, ends = bytes_in(values)
    sizes, codes = np.unique(ends[1:] - ends[:-1], return_inverse=True)
    lengths = pa.array([encode_compact(int(size)) for size in sizes], pa.binary()).take(pa.array(codes, pa.int64()))
    tails = np.stack([numbers_in(batch.column(name)) for name in ("ttl", "block")], axis=1).astype("<u4")
    tail = pa.Array.from_buffers(pa.binary(8), len(tails), [None, pa.py_buffer(np.ascontiguousarray(tails))])
    return pc.binary_join_element_wise(lengths, values, tail.cast(pa.binary()), pa.scalar(b"", pa.binary()))


def _roots_batch(found: Roots) -> pa.RecordBatch:
    columns = zip(*found, strict=True) if found else [()] * len(PUBLISHER_ROOTS)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, PUBLISHER_ROOTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PUBLISHER_ROOTS)


class _Publisher:
    """One publisher's trie as far as it has come; the newest block is open until the next one begins."""

    def __init__(self, para_id: int, state_version: StateVersion) -> None:
        self.para_id = para_id
        self._trie = relaycast_trie.ArrayTrie(state_version=state_version, window=0)
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

    def publish(self, block: int, keys: Keys, entries: pa.Array, found: Roots) -> None:
        """Let rows of one block take effect: of a block that came before, more of them."""
        if block != self._block:
            self.pass_until(block - 1, found)
            self._block = block
        self._published.append(keys)
        self._trie.update(keys, _strings(entries))

    def pass_until(self, last: int, found: Roots) -> None:
        """Close the open block, and let those up to ``last`` pass in which nothing is published."""
        if self._published:
            changed = _different(self._published)
            self._published.clear()
            found.append((self.para_id, self._block, changed + self._expire(self._block), self._root()))
        while self._blocks_due and self._blocks_due[0] <= last:
            block = self._blocks_due[0]
            gone = self._expire(block)
            if gone:
                found.append((self.para_id, block, gone, self._root()))

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
