"""Arrow columns from Python values, put together from buffers.

Law: pandas stays out. ``pyarrow.array`` looks for it, wherever it is installed, as soon as it is handed a list, and
loading it takes longer than a short run.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, get_origin

import pyarrow as pa

from relaycast_ledger.record_fields import type_at

Buffers = list[pa.Buffer | None]

ARROW_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    bytes: pa.binary(),
    str: pa.string(),
}


def schema_of(columns: Iterable[tuple[str, type, str]]) -> pa.Schema:
    """Return the schema of columns: each a name, the type of its records, and the path to its value in them."""
    return pa.schema([(name, _arrow_type(kind, path)) for name, kind, path in columns])


def _arrow_type(kind: type, path: str) -> pa.DataType:
    found = type_at(kind, path).kind
    if get_origin(found) is tuple:
        return pa.list_(ARROW_TYPES[int])
    return next(arrow for python, arrow in ARROW_TYPES.items() if issubclass(found, python))


def column(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Return ``values``, ``None`` for null, as an array of int64, double, bool, binary, string, or lists of int64.

    Raises ``TypeError`` for another type, and ``OverflowError`` for a number beyond 64 bits.
    """
    made = _MAKERS.get(str(kind)) if not pa.types.is_list(kind) else _lists
    if made is None:
        raise TypeError(f"columns are made of int64, double, bool, binary, string and lists of int64, got {kind}")
    present = [value is not None for value in values]
    return made(kind, values, None if all(present) else _bits(present))


def _numbers(kind: pa.DataType, values: Sequence[int | None], nulls: pa.Buffer | None) -> pa.Array:
    data = array("q", [0 if value is None else value for value in values])
    return pa.Array.from_buffers(kind, len(values), [nulls, pa.py_buffer(data.tobytes())])


def _reals(kind: pa.DataType, values: Sequence[float | None], nulls: pa.Buffer | None) -> pa.Array:
    data = array("d", [0.0 if value is None else value for value in values])
    return pa.Array.from_buffers(kind, len(values), [nulls, pa.py_buffer(data.tobytes())])


def _flags(kind: pa.DataType, values: Sequence[bool | None], nulls: pa.Buffer | None) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [nulls, _bits(values)])


def _bytes(kind: pa.DataType, values: Sequence[bytes | None], nulls: pa.Buffer | None) -> pa.Array:
    given = [value or b"" for value in values]
    buffers: Buffers = [nulls, _offsets(map(len, given)), pa.py_buffer(b"".join(given))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _texts(kind: pa.DataType, values: Sequence[str | None], nulls: pa.Buffer | None) -> pa.Array:
    return _bytes(kind, [None if value is None else value.encode() for value in values], nulls)


def _lists(kind: pa.DataType, values: Sequence[Sequence[int] | None], nulls: pa.Buffer | None) -> pa.Array:
    given = [value or () for value in values]
    items = column(kind.value_type, [item for value in given for item in value])
    return pa.Array.from_buffers(kind, len(values), [nulls, _offsets(map(len, given))], children=[items])


def _offsets(lengths: Iterable[int]) -> pa.Buffer:
    return pa.py_buffer(array("i", accumulate(lengths, initial=0)).tobytes())


def _bits(flags: Sequence[object]) -> pa.Buffer:
    bits = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        if flag:
            bits[index >> 3] |= 1 << (index & 7)
    return pa.py_buffer(bytes(bits))


_MAKERS: dict[str, Callable[..., pa.Array]] = {
    "int64": _numbers,
    "double": _reals,
    "bool": _flags,
    "binary": _bytes,
    "string": _texts,
}
