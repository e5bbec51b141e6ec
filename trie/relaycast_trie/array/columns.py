"""Many byte strings in one array: how keys and values reach the kernels.

Strings of one width lie one after another; others lie anywhere in the data, with their places beside it. Everything
that comes from outside is checked here, so that no kernel reads beyond an array.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from relaycast_trie.kernels.build import rank_strings, settle_ties, take_strings
from relaycast_trie.kernels.python_lists import NOT_BYTES, Gathered, gathered, gathered_pairs, scattered
from relaycast_trie.kernels.tables import Column

Array = npt.NDArray[Any]
Strings = npt.NDArray[np.uint8] | tuple[Array, Array] | Sequence[bytes]
"""A matrix with a string a row, all data with the offsets where strings start and the last one ends, or a list."""

MAX_KEY_BYTES = 0x7FFF
"""A partial key has at most 65,535 nibbles."""

_NO_PLACES = np.empty(0, np.int64)
_NO_SIZES = np.empty(0, np.int32)


def fixed(data: Array, width: int) -> Column:
    """Return the column of strings that lie one after another."""
    return Column(data, _NO_PLACES, _NO_SIZES, width)


def column_of(strings: Strings, what: str) -> tuple[Column, int]:
    """Return the column that ``strings`` are, and how many there are; what does not fit is a ``ValueError``."""
    if isinstance(strings, np.ndarray):
        if strings.dtype != np.uint8 or strings.ndim != 2:
            raise ValueError(f"{what} are a matrix of uint8, got {strings.ndim} dimensions of {strings.dtype}")
        return fixed(_writable(strings).reshape(-1), strings.shape[1]), strings.shape[0]
    if isinstance(strings, tuple) and len(strings) == 2 and isinstance(strings[0], np.ndarray):
        return _from_offsets(strings[0], np.asarray(strings[1]), what)
    return column_of_list(cast(Sequence[bytes], strings))


def column_of_list(strings: Sequence[bytes]) -> tuple[Column, int]:
    """Return the column that holds these strings, and how many there are."""
    found = strings_together(strings)
    return _column(found), len(found[2])


def columns_of_pairs(pairs: Mapping[bytes, bytes]) -> tuple[Column, Column]:
    """Return the keys of ``pairs`` as a column that ascends, and their values."""
    keys, values = _columns_of_pairs(pairs)
    order = ascending(keys, len(pairs))
    keys = take(keys, order)  # one after the other, so that the memory of the first one serves the second
    values = take(values, order)
    return keys, values


def _columns_of_pairs(pairs: Mapping[bytes, bytes]) -> tuple[Column, Column]:
    if type(pairs) is dict:
        found = gathered_pairs(pairs)
        if all(part[3] != NOT_BYTES for part in found):
            return _column(found[0]), _column(found[1])
    return column_of_list(list(pairs))[0], column_of_list(list(pairs.values()))[0]


def _column(found: Gathered) -> Column:
    data, offsets, sizes, width = found
    return fixed(data, width) if width >= 0 else Column(data, offsets[:-1], sizes, -1)


def rows_of(strings: list[bytes]) -> Array | None:
    """Return strings of one width as a matrix with a string a row, ``None`` for others: for few, where that is fast."""
    width = len(strings[0]) if strings and type(strings[0]) is bytes else 0
    if not width or not all(type(string) is bytes and len(string) == width for string in strings):
        return None
    return np.frombuffer(bytearray().join(strings), np.uint8).reshape(len(strings), width)


def strings_together(strings: Iterable[bytes]) -> Gathered:
    """Return strings one after another, their offsets, their sizes, and the width that they share, -1 for none.

    Whatever holds bytes is taken for them; anything else is a ``TypeError``, and 2 GiB in one are a ``ValueError``.
    """
    given = strings if type(strings) is list else list(strings)
    found = gathered(given)
    if found[3] == NOT_BYTES:
        found = gathered([it if type(it) is bytes else bytes(memoryview(it)) for it in given])
    if found[3] == NOT_BYTES:
        raise ValueError("a string is longer than 2 GiB")
    return found


def longest(column: Column, count: int) -> int:
    """Return the bytes of the longest of the first ``count`` strings."""
    if column.width >= 0 or not count:
        return max(column.width, 0)
    return int(column.size[:count].max())


def ascending(column: Column, count: int) -> npt.NDArray[np.int32]:
    """Return the order in which strings strictly ascend; of equal ones only the last counts."""
    words = np.empty(count, np.uint64)
    rank_strings(column, longest(column, count), words)
    words.sort()
    order, spare = np.empty((2, count), np.int32)
    return order[: settle_ties(column, words, order, spare)]


def take(column: Column, order: npt.NDArray[np.int32]) -> Column:
    """Return the chosen strings, in the order given, in an array of their own."""
    if column.width >= 0:
        rows = column.data.reshape(-1, column.width) if column.width else np.empty((len(order), 0), np.uint8)
        return fixed(np.take(rows, order, axis=0).reshape(-1) if column.width else column.data[:0], column.width)
    sizes = column.size[order]
    at = np.zeros(len(order) + 1, np.int64)
    np.cumsum(sizes, out=at[1:])
    data = np.empty(int(at[-1]), np.uint8)
    take_strings(column, order, data, at)
    return Column(data, at[:-1], sizes, -1)


def strings_in(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> list[bytes]:
    """Return the strings between consecutive offsets."""
    return cast(list[bytes], scattered(data, offsets[:-1], (offsets[1:] - offsets[:-1]).astype(np.int32)))


def strings_of(column: Column, count: int) -> list[bytes]:
    """Return the first ``count`` strings of a column."""
    column = spread_out(column, count)
    return cast(list[bytes], scattered(column.data, column.at[:count], column.size[:count]))


def joined(columns: Iterable[tuple[Column, int]]) -> tuple[Column, int]:
    """Return all strings of several columns, one column after another."""
    parts = list(columns)
    total = sum(count for _, count in parts)
    widths = {column.width for column, count in parts if count}
    if len(widths) == 1 and (width := widths.pop()) >= 0:
        return fixed(np.concatenate([column.data[: count * width] for column, count in parts]), width), total
    at, sizes, shift = [], [], 0
    for column, count in parts:
        spread = spread_out(column, count)
        at.append(spread.at[:count] + shift)
        sizes.append(spread.size[:count])
        shift += len(column.data)
    return Column(
        np.concatenate([column.data for column, _ in parts]), np.concatenate(at), np.concatenate(sizes), -1
    ), total


def spread_out(column: Column, count: int) -> Column:
    """Return the column with the place of each string beside the data."""
    if column.width < 0:
        return column
    return Column(
        column.data,
        np.arange(count, dtype=np.int64) * column.width,
        np.full(count, column.width, np.int32),
        -1,
    )


def _from_offsets(data: Array, offsets: Array, what: str) -> tuple[Column, int]:
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.ndim != 1 or not np.issubdtype(offsets.dtype, np.integer):
        raise ValueError(f"{what} are uint8 data with integer offsets, got {data.dtype} and {offsets.dtype}")
    at = np.ascontiguousarray(offsets, np.int64)
    if not len(at) or at[0] < 0 or at[-1] > len(data) or bool((at[1:] < at[:-1]).any()):
        raise ValueError(f"offsets of {what} ascend from 0 to at most {len(data)}")
    sizes = at[1:] - at[:-1]
    if len(sizes) and sizes.max() > 0x7FFF_FFFF:
        raise ValueError(f"one of the {what} is longer than 2 GiB")
    return Column(_writable(data), at[:-1].copy(), sizes.astype(np.int32), -1), len(sizes)


def _writable(array: Array) -> Array:
    """Return the array, contiguous and writable: kernels are compiled for such arrays alone and do not write."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable and array.flags.aligned else array.copy()
