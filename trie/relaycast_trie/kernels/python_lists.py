"""Byte strings out of a Python list into one array and back, through CPython's own functions.

Kernels are given the address of a list, ``id(strings)``, and ask CPython for its items. That is worth its dependence:
the root of a dict of 100,000 keys takes 36 ms rather than 63, SCALE bytes to 1,000 verified values 0.8 rather than 4.9
ms, one ``get`` 1.6 rather than 13 us, compared with ``bytearray().join``, slices of ``bytes`` and a call of each kernel
(Intel Xeon, AVX-512). Strings that are no longer in the cache are asked for ahead of time. These kernels keep the
interpreter's lock; an interpreter that has none works plainly.
"""

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.np.arrayobj import populate_array as numba_populate_array

from relaycast_trie.kernels.compiling import JIT, inlined, locked_kernel
from relaycast_trie.kernels.memory import CHECKED, Bytes, Int32s, Int64s, _address, cgutils, int64, intrinsic

populate_array: Any = numba_populate_array

NOT_BYTES = -2
"""In place of the common width: something in the list is not exactly ``bytes``, or too long."""
MIXED = -1
"""In place of the common width: there are several."""

TOO_LONG = 1 << 31
"""Bytes of the shortest string that is not taken: sizes are 32 bits wide."""

OBJECTS_AHEAD = 8
STRINGS_AHEAD = 3
"""How many strings ahead the memory is asked for their head, and for what they hold."""
LINE = 64
"""Bytes that memory comes in."""

LOCKED = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether nobody changes a list while a kernel that keeps the interpreter's lock reads it."""


def gathered_plainly(strings: list[Any]) -> tuple[Bytes, Int64s, Int32s, int]:
    """Return what ``gathered`` returns, by Python's own means."""
    if type(strings) is not list:
        raise TypeError(f"expected a list of byte strings, got {type(strings).__name__}")
    offsets, sizes = np.zeros(len(strings) + 1, np.int64), np.zeros(len(strings), np.int32)
    if any(type(string) is not bytes or len(string) >= TOO_LONG for string in strings):
        return np.empty(0, np.uint8), offsets, sizes, NOT_BYTES
    sizes[:] = [len(string) for string in strings]
    np.cumsum(sizes, out=offsets[1:])
    widths = set(sizes.tolist())
    return (
        np.frombuffer(bytearray().join(strings), np.uint8),
        offsets,
        sizes,
        (MIXED if len(widths) > 1 else max(widths, default=0)),
    )


if JIT and LOCKED:
    _WORD = ir.IntType(64)

    @intrinsic
    def _count(typingctx: Any, strings: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            python = context.get_python_api(builder)
            return python.list_size(builder.inttoptr(args[0], python.pyobj))

        return types.int64(types.int64), generate

    @intrinsic
    def _item(typingctx: Any, strings: Any, index: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            python = context.get_python_api(builder)
            item = python.list_getitem(builder.inttoptr(args[0], python.pyobj), args[1])
            return builder.ptrtoint(item, _WORD)

        return types.int64(types.int64, types.int64), generate

    @intrinsic
    def _type(typingctx: Any, item: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            python = context.get_python_api(builder)
            return builder.ptrtoint(python.get_type(builder.inttoptr(args[0], python.pyobj)), _WORD)

        return types.int64(types.int64), generate

    @intrinsic
    def _string(typingctx: Any, item: Any) -> Any:  # noqa: ARG001
        """Where the bytes of a ``bytes`` object start, and how many there are."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            python = context.get_python_api(builder)
            start, size = cgutils.alloca_once(builder, python.cstring), cgutils.alloca_once(builder, python.py_ssize_t)
            python.bytes_as_string_and_size(builder.inttoptr(args[0], python.pyobj), start, size)
            address = builder.ptrtoint(builder.load(start), _WORD)
            return context.make_tuple(builder, signature.return_type, (address, builder.load(size)))

        pair: Any = types.UniTuple
        return pair(types.int64, 2)(types.int64), generate

    @intrinsic
    def _ask_for(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), (byte, number, number, number))
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            flags = (ir.Constant(number, flag) for flag in (0, 3, 1))
            builder.call(function, (builder.inttoptr(args[0], byte), *flags))
            return context.get_dummy_value()

        return types.void(types.int64), generate

    @intrinsic
    def _byte(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()))

        return types.uint8(types.int64), generate

    @intrinsic
    def _view(typingctx: Any, address: Any, size: Any) -> Any:  # noqa: ARG001
        """Return the bytes from an address on as an array, which borrows them."""
        array_type = types.Array(types.uint8, 1, "C")

        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            array = context.make_array(array_type)(context, builder)
            start = builder.inttoptr(args[0], array.data.type)
            populate_array(array, start, [args[1]], [_WORD(1)], _WORD(1), None)
            return array._getvalue()

        return array_type(types.int64, types.int64), generate

    @intrinsic
    def _copy(typingctx: Any, target: Any, at: Any, address: Any, size: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = _address(context, builder, signature.args[0], args[0], args[1])
            cgutils.raw_memcpy(builder, to, builder.inttoptr(args[2], ir.IntType(8).as_pointer()), args[3], 1)
            return context.get_dummy_value()

        return types.void(target, types.int64, types.int64, types.int64), generate

    @locked_kernel
    def _gather(strings: int, exact: int) -> tuple[Bytes, Int64s, Int32s, int]:
        """Return the strings of a list one after another, their offsets, their sizes, and their common width.

        ``strings`` is the address of the list and ``exact`` that of the type ``bytes``. The width is ``MIXED`` where
        there are several, and ``NOT_BYTES``, the rest without meaning, where an item is of another type or too long.
        """
        count = _count(strings)
        offsets, sizes = np.empty(count + 1, np.int64), np.empty(count, np.int32)
        addresses = np.empty(count, np.int64)
        for i in range(count):
            addresses[i] = _item(strings, i)
        total, width = int64(0), int64(0)
        for i in range(count):
            if i + OBJECTS_AHEAD < count:
                _ask_for(addresses[i + OBJECTS_AHEAD])
            address, size = int64(0), int64(TOO_LONG)
            if _type(addresses[i]) == exact:
                address, size = _string(addresses[i])
            if size >= TOO_LONG:
                return np.empty(0, np.uint8), offsets, sizes, int64(NOT_BYTES)
            if i == 0:
                width = size
            elif size != width:
                width = int64(MIXED)
            addresses[i], offsets[i], sizes[i] = address, total, size
            total += size
        offsets[count] = total
        data = np.empty(total, np.uint8)
        for i in range(count):
            if i + STRINGS_AHEAD < count:
                following = addresses[i + STRINGS_AHEAD]
                for line in range(LINE, int64(sizes[i + STRINGS_AHEAD]), LINE):
                    _ask_for(following + line)
            if CHECKED:
                for byte in range(sizes[i]):
                    data[offsets[i] + byte] = _byte(addresses[i] + byte)
            else:
                _copy(data, offsets[i], addresses[i], int64(sizes[i]))
        return data, offsets, sizes, width

    def gathered(strings: list[Any]) -> tuple[Bytes, Int64s, Int32s, int]:
        """Return all strings one after another, their offsets, their sizes, and the width that they share.

        The width is ``MIXED`` where they share none. It is ``NOT_BYTES``, and the rest without meaning, where one is
        not exactly ``bytes`` or has 2 GiB and more: of those nothing is read.

        INVARIANT: this frame keeps the list alive, and the lock keeps it as it is.
        """
        if type(strings) is not list:
            raise TypeError(f"expected a list of byte strings, got {type(strings).__name__}")
        found: tuple[Bytes, Int64s, Int32s, int] = _gather(id(strings), id(bytes))
        return found

else:
    gathered = gathered_plainly


NO_STRING = -1
"""In place of where a string starts: there is none, which is ``None`` in a list."""


def scattered_plainly(data: Bytes, starts: Int64s, sizes: Int32s) -> list[bytes | None]:
    """Return what ``scattered`` returns, by Python's own means."""
    whole = data.tobytes()
    places = zip(starts.tolist(), sizes.tolist(), strict=True)
    return [None if at == NO_STRING else whole[at : at + size] for at, size in places]


if JIT and LOCKED:

    @intrinsic
    def _put(typingctx: Any, strings: Any, index: Any, data: Any, at: Any, size: Any) -> Any:  # noqa: ARG001
        """Make ``bytes`` an item of a list; 0 where there is no memory for it."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            python = context.get_python_api(builder)
            start = _address(context, builder, signature.args[2], args[2], args[3])
            made = python.bytes_from_string_and_size(start, args[4])
            there = builder.icmp_unsigned("!=", made, ir.Constant(made.type, None))
            with builder.if_else(there) as (yes, no):
                with yes:
                    python.list_setitem(builder.inttoptr(args[0], python.pyobj), args[1], made)
                with no:
                    python.err_clear()
            return builder.zext(there, ir.IntType(64))

        return types.int64(types.int64, types.int64, data, types.int64, types.int64), generate

    @inlined
    def put_string(strings: int, index: int, data: Bytes, at: int, size: int) -> bool:
        """Make ``data[at : at + size]`` item ``index`` of the list at the address ``strings``; return whether it is.

        It is not where there is no memory for it. INVARIANT: the caller keeps the interpreter's lock.
        """
        if CHECKED and size > 0 and (at < 0 or at + size > len(data)):
            return bool(data[len(data)] == 0)
        return bool(_put(strings, index, data, at, size))

    @locked_kernel
    def _scatter(data: Bytes, starts: Int64s, sizes: Int32s, strings: int) -> bool:
        """Make ``data[starts[i] : starts[i] + sizes[i]]`` item ``i`` of the list at the address ``strings``.

        Items for which the start is ``NO_STRING`` stay. Returns whether there was memory for all.
        """
        for i in range(len(starts)):
            if starts[i] != NO_STRING and not put_string(strings, i, data, starts[i], int64(sizes[i])):
                return False
        return True

    def scattered(data: Bytes, starts: Int64s, sizes: Int32s) -> list[bytes | None]:
        """Return the strings ``data[starts[i] : starts[i] + sizes[i]]``, ``None`` where the start is ``NO_STRING``.

        INVARIANT: all of them lie in ``data``; nobody else has the list before it is complete.
        """
        strings: list[bytes | None] = [None] * len(starts)
        if not _scatter(data, starts, sizes, id(strings)):
            raise MemoryError("no memory for byte strings")
        return strings

else:
    scattered = scattered_plainly
