"""Many arrays handed over as one, by their addresses.

Numba takes 30 ns for each array that a kernel is given and 1.2 us for a tuple of twenty, more than it takes to change
ten values in a small trie.

INVARIANT: whoever hands arrays over keeps them, and hands them over anew when one of them is replaced or resized.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.np.arrayobj import populate_array as numba_populate_array

from relaycast_trie.kernels.memory import (
    JIT,
    Int64s,
    _address,
    inlined,
    intrinsic,
    kernel,
)

Handed = Any
"""What ``hand_over`` returns: a cell with address and length of each array, or of a number with the number and 0."""

CELL = 2 if JIT else 1

populate_array: Any = numba_populate_array


@intrinsic
def _write_cells(typingctx: Any, things: Any, out: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        cell = builder.bitcast(_address(context, builder, signature.args[1], args[1], word(0)), word.as_pointer())
        for i, kind in enumerate(signature.args[0].types):
            first, second = builder.extract_value(args[0], i), word(0)
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, first)
                first, second = builder.ptrtoint(array.data, word), builder.extract_value(array.shape, 0)
            builder.store(first, builder.gep(cell, [word(2 * i)]))
            builder.store(second, builder.gep(cell, [word(2 * i + 1)]))
        return context.get_dummy_value()

    for kind in things.types:
        if isinstance(kind, types.Array) and kind.layout != "C":
            raise TypeError("arrays that are handed over are contiguous")
    return types.void(things, out), generate


if JIT:

    @kernel
    def write_cells(things: tuple[Any, ...], out: Int64s) -> None:
        """Write the cells of arrays and numbers."""
        out[2 * len(things) - 1] = 0
        _write_cells(things, out)

    def hand_over(things: tuple[Any, ...]) -> Handed:
        """Return arrays and numbers as kernels take them, in this order."""
        cells = np.empty(2 * len(things), np.int64)
        write_cells(things, cells)
        return cells

else:

    def hand_over(things: tuple[Any, ...]) -> Handed:
        """Return arrays and numbers as kernels take them, in this order."""
        return things


def _thing_in(handed: Handed, number: int) -> Any:
    return handed[number]


@inlined
def number_in(handed: Handed, number: int) -> int:
    """Return a number that was handed over."""
    return handed[CELL * number]  # type: ignore[no-any-return]


def array_of(item: Any, *, columns: int = 0) -> Any:
    """Return an instruction that makes an array of a cell: of one dimension, or a matrix with so many columns."""
    if not JIT:
        return _thing_in
    array_type = types.Array(item, 2 if columns else 1, "C")

    @intrinsic
    def array_in(typingctx: Any, handed: Any, number: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word, size = ir.IntType(64), item.bitwidth // 8
            at = builder.mul(args[1], word(16))
            cell = _address(context, builder, signature.args[0], args[0], at)
            cell = builder.bitcast(cell, word.as_pointer())
            count = builder.load(builder.gep(cell, [word(1)]))
            array = context.make_array(array_type)(context, builder)
            shape, strides = [count], [word(size)]
            if columns:
                shape, strides = [count, word(columns)], [word(size * columns), word(size)]
            data = builder.inttoptr(builder.load(cell), array.data.type)
            populate_array(array, data, shape, strides, size, None)
            return array._getvalue()

        return array_type(handed, types.int64), generate

    return array_in


@intrinsic
def _flattened(typingctx: Any, matrix: Any) -> Any:  # noqa: ARG001
    array_type = types.Array(matrix.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = context.make_array(signature.args[0])(context, builder, args[0])
        array = context.make_array(array_type)(context, builder)
        populate_array(array, whole.data, [whole.nitems], [whole.itemsize], whole.itemsize, None)
        return array._getvalue()

    return array_type(matrix), generate


if JIT:
    bytes_in = array_of(types.uint8)
    int32s_in = array_of(types.int32)
    int64s_in = array_of(types.int64)
    words_in = array_of(types.uint64)
    flattened = _flattened

else:
    bytes_in = int32s_in = int64s_in = words_in = _thing_in

    def flattened(matrix: npt.NDArray[Any]) -> Any:
        """Return a matrix as one row."""
        return matrix.reshape(-1)
