"""Many arrays handed over to kernels as one, by their addresses; their layout follows from named tuples.

Numba takes 30 ns for each array that a kernel is given, and 1.2 us for a tuple of twenty. Changing ten values in a
small trie takes less. So all fields of a named tuple, and of those inside it, are written into an array of cells. A
cell is two numbers: address and length of an array, or a number and 0. Its annotations say what a cell holds:
``part_of`` makes the instruction that puts a part together again from them.

INVARIANT: whoever hands arrays over keeps them, and hands them over anew when one of them is replaced or resized.
"""

from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.np.arrayobj import populate_array as numba_populate_array
from numba.np.numpy_support import from_dtype as numba_from_dtype

from relaycast_trie.kernels.compiling import JIT, face
from relaycast_trie.kernels.memory import Int64s, _address, intrinsic

Handed = Any
"""What ``hand_over`` returns: two numbers for each array or number."""

populate_array: Any = numba_populate_array
from_dtype: Any = numba_from_dtype


def things_in(whole: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arrays and numbers of a named tuple in the order of its fields, those of tuples inside it included."""
    things: tuple[Any, ...] = _taking(type(whole))(whole)
    return things


@cache
def _taking(whole: type[Any]) -> Callable[[Any], Any]:
    """Return what takes all things out of such a tuple at once: tables that grow are handed over again and again."""
    return attrgetter(*_paths(whole))


def _paths(whole: type[Any]) -> Iterator[str]:
    for name, kind in _fields(whole).items():
        if _is_tuple(kind):
            yield from (f"{name}.{path}" for path in _paths(kind))
        else:
            yield name


def _fields(whole: type[Any]) -> dict[str, Any]:
    return get_type_hints(whole, include_extras=True)


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple)


def _cells(kind: Any) -> int:
    """Return how many cells a field of this kind takes."""
    return sum(map(_cells, _fields(kind).values())) if _is_tuple(kind) else 1


def _columns(kind: Any) -> int:
    """Return the columns of a matrix, which an annotation tells; 0 for an array of one dimension, -1 for a number."""
    if get_origin(kind) is Annotated:
        columns: int = kind.__metadata__[0]
        return columns
    return -1 if kind is int else 0


def _numba_type(kind: Any) -> Any:
    """Return the type that numba gives to a field of this kind."""
    if _is_tuple(kind):
        make: Any = types.BaseTuple.from_types
        return make([_numba_type(field) for field in _fields(kind).values()], kind)
    columns = _columns(kind)
    if columns < 0:
        return types.int64
    array = get_args(kind)[0] if columns else kind
    (item,) = get_args(get_args(array)[1])
    return types.Array(from_dtype(np.dtype(item)), 2 if columns else 1, "C")


def _put_together(context: Any, builder: Any, kind: Any, cells: Any, at: int) -> Any:
    """Write what makes a field of this kind of the cells from number ``at`` on."""
    word, numba_type = ir.IntType(64), _numba_type(kind)
    if _is_tuple(kind):
        parts = []
        for field in _fields(kind).values():
            parts.append(_put_together(context, builder, field, cells, at))
            at += _cells(field)
        return context.make_tuple(builder, numba_type, parts)
    first = builder.load(builder.gep(cells, [word(2 * at)]))
    columns = _columns(kind)
    if columns < 0:
        return first
    size = numba_type.dtype.bitwidth // 8
    count = builder.load(builder.gep(cells, [word(2 * at + 1)]))
    shape, strides = [count], [word(size)]
    if columns:
        shape, strides = [count, word(columns)], [word(size * columns), word(size)]
    array = context.make_array(numba_type)(context, builder)
    populate_array(array, builder.inttoptr(first, array.data.type), shape, strides, size, None)
    return array._getvalue()


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

    @face
    def _fill_cells(things: tuple[Any, ...], out: Int64s) -> None:
        """Write two numbers for each of ``things``: address and length of an array, or a number and 0."""
        out[2 * len(things) - 1] = 0
        _write_cells(things, out)

    def hand_over(whole: tuple[Any, ...]) -> Handed:
        """Return a named tuple of contiguous arrays and numbers as kernels take it."""
        things = things_in(whole)
        cells = np.empty(2 * len(things), np.int64)
        _fill_cells(things, cells)
        return cells

    def part_of(whole: type[Any], name: str) -> Callable[[Handed], Any]:
        """Return an instruction that takes the field ``name`` of a ``whole`` out of what was handed over."""
        fields = _fields(whole)
        at = sum(_cells(fields[other]) for other in list(fields)[: list(fields).index(name)])

        @intrinsic
        def part(typingctx: Any, handed: Any) -> Any:  # noqa: ARG001
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                word = ir.IntType(64)
                cells = _address(context, builder, signature.args[0], args[0], word(0))
                cells = builder.bitcast(cells, word.as_pointer())
                return _put_together(context, builder, fields[name], cells, at)

            return _numba_type(fields[name])(handed), generate

        taken: Callable[[Handed], Any] = part
        return taken

else:

    def hand_over(whole: tuple[Any, ...]) -> Handed:
        """Return a named tuple of contiguous arrays and numbers as kernels take it."""
        return whole

    def part_of(whole: type[Any], name: str) -> Callable[[Handed], Any]:
        """Return a function that takes the field ``name`` of a ``whole`` out of what was handed over."""
        assert name in _fields(whole)
        return attrgetter(name)


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
    flattened = _flattened

else:

    def flattened(matrix: npt.NDArray[Any]) -> Any:
        """Return a matrix as one row."""
        return matrix.reshape(-1)
