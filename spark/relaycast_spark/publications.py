"""Recorded publications: what a table of them holds, and how its rows are read. Plain Python over Arrow, no Spark.

A row is one value that a parachain publishes. ``block`` counts relay blocks from 1. ``key`` is a name, which is hashed,
or 32 bytes. ``ttl`` counts relay blocks, 0 for ever. Text stands for bytes as ``0x`` and hex digits.

Law: nothing is guessed. What is no publication raises ``RowRefused`` with its row and column.
"""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import accumulate
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_spark.exceptions import InputColumns, RowRefused

Ints = npt.NDArray[np.int64]

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
    raise InputColumns(place, ", ".join(map(_shown_name, names)), f"{', '.join(known)}; ttl may be missing{meant}")


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
        _refuse(column.is_valid().to_pylist().index(False), name, "null", "a value in every row")
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
        _refuse(int(outside[0]), name, f"{values[outside[0]]}", expected)
    return values.astype(np.int64)


def _keys(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        _check(_whole(bytes_in(column)[1], 32), column, "key", "32 bytes, or a name as text")
        return column
    coded = column.dictionary_encode()
    names = coded.dictionary.to_pylist()
    keys = [key_of(name) for name in names]
    if None in keys:
        rows = column.to_pylist()
        wrong = next(row for row, name in enumerate(rows) if key_of(name) is None)
        _refuse(wrong, "key", _shown_text(rows[wrong]), KEY_EXPECTED)
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
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _whole(ends: npt.NDArray[np.int32], size: int) -> list[bool]:
    found: list[bool] = ((ends[1:] - ends[:-1]) == size).tolist()
    return found


def _check(holds: Any, column: pa.Array, name: str, expected: str) -> None:
    """Raise ``RowRefused`` for the first row in which a check does not hold."""
    flags = holds if isinstance(holds, list) else None if holds.true_count == len(holds) else holds.to_pylist()
    if flags is None or all(flags):
        return
    row = flags.index(False)
    value = column[row].as_py()
    show: Callable[[Any], str] = _shown_text if isinstance(value, str) else _shown_bytes
    _refuse(row, name, show(value), expected)


def _refuse(row: int, column: str, got: str, expected: str) -> NoReturn:
    raise RowRefused(row, column, got, expected)


def _shown_text(text: str) -> str:
    return ascii(text) if len(text) <= 70 else f"{text[:60]!a}... ({len(text)} characters)"


def _shown_bytes(data: bytes) -> str:
    return f"{len(data)} bytes, 0x{data[:24].hex()}{'...' if len(data) > 24 else ''}"


def _shown_name(name: str) -> str:
    return ascii(name)[1:-1][:40]
