"""Byte strings out of a Python list or dict into one array and back, through CPython's own functions.

Kernels are given the address of a list, ``id(strings)``, and ask CPython for its items. That is worth its dependence:
the root of a dict of 100,000 keys takes 20 ms rather than 63, SCALE bytes to 1,000 verified values 0.8 rather than 4.9
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
from relaycast_trie.kernels.memory import CHECKED, Bytes, Int32s, Int64s, _address, cgutils, copy, int64, intrinsic

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
HEAD = bytes.__basicsize__ - 1
"""Bytes of an object before its string."""
SHORT = 128
"""Bytes of strings that are copied as they are met as long as all have the same number."""

LOCKED = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether nobody changes a list while a kernel that keeps the interpreter's lock reads it."""


Gathered = tuple[Bytes, Int64s, Int32s, int]
"""Strings one after another, their offsets, their sizes, and their common width."""


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


def gathered_pairs_plainly(pairs: dict[Any, Any]) -> tuple[Gathered, Gathered]:
    """Return what ``gathered_pairs`` returns, by Python's own means."""
    if type(pairs) is not dict:
        raise TypeError(f"expected a dict of byte strings, got {type(pairs).__name__}")
    return gathered_plainly(list(pairs)), gathered_plainly(list(pairs.values()))


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

    @intrinsic
    def _pair(typingctx: Any, pairs: Any, place: Any) -> Any:  # noqa: ARG001
        """Return what ``PyDict_Next`` finds at a place of a dict: whether a pair, the next place, key and value."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            thing = context.get_python_api(builder).pyobj
            next_place, key, value = (cgutils.alloca_once(builder, kind) for kind in (_WORD, thing, thing))
            builder.store(args[1], next_place)
            out = (next_place, key, value)
            kind = ir.FunctionType(ir.IntType(32), (thing, *(it.type for it in out)))
            function = cgutils.get_or_insert_function(builder.module, kind, "PyDict_Next")
            found = builder.zext(builder.call(function, (builder.inttoptr(args[0], thing), *out)), _WORD)
            words = (builder.ptrtoint(builder.load(it), _WORD) for it in (key, value))
            return context.make_tuple(builder, signature.return_type, (found, builder.load(next_place), *words))

        four: Any = types.UniTuple
        return four(types.int64, 4)(types.int64, types.int64), generate

    @inlined
    def _copy_string(data: Bytes, at: int, address: int, size: int) -> None:
        """Copy ``size`` bytes from an address on to ``data[at]`` on."""
        if CHECKED:
            for byte in range(size):
                data[at + byte] = _byte(address + byte)
        else:
            _copy(data, at, address, size)

    @locked_kernel
    def _gather_items(addresses: Int64s, exact: int, spread: bool) -> Gathered:
        """Return the strings at these addresses of objects; ``exact`` is the address of the type ``bytes``.

        The width is ``MIXED`` where there are several, and ``NOT_BYTES``, the rest without meaning, where an object is
        of another type or too long. Strings of one width have no offsets and sizes unless ``spread``. The addresses
        change.
        """
        count = len(addresses)
        width, first = int64(0), int64(0)
        if count > 0 and _type(addresses[0]) == exact:
            width = _string(addresses[0])[1]
        data = np.empty(width * count if width <= SHORT else 0, np.uint8)
        while first < count and width <= SHORT:
            if first + OBJECTS_AHEAD < count:
                for line in range(0, HEAD + width, LINE):
                    _ask_for(addresses[first + OBJECTS_AHEAD] + line)
            if _type(addresses[first]) != exact:
                break
            address, size = _string(addresses[first])
            if size != width:
                break
            _copy_string(data, first * width, address, size)
            first += 1
        places = count if spread or first < count else 0
        offsets, sizes = np.empty(places + 1, np.int64), np.empty(places, np.int32)
        for i in range(min(first, places)):
            offsets[i], sizes[i] = i * width, width
        total = first * width
        for i in range(first, count):
            if i + OBJECTS_AHEAD < count:
                _ask_for(addresses[i + OBJECTS_AHEAD])
            address, size = int64(0), int64(TOO_LONG)
            if _type(addresses[i]) == exact:
                address, size = _string(addresses[i])
            if size >= TOO_LONG:
                return data[:0], offsets, sizes, int64(NOT_BYTES)
            if size != width:
                width = int64(MIXED)
            addresses[i], offsets[i], sizes[i] = address, total, size
            total += size
        offsets[places] = total
        if first == count:
            return data, offsets, sizes, width
        whole = np.empty(total, np.uint8)
        copy(whole, 0, data, 0, offsets[first])
        for i in range(first, count):
            if i + STRINGS_AHEAD < count:
                following = addresses[i + STRINGS_AHEAD]
                for line in range(LINE, int64(sizes[i + STRINGS_AHEAD]), LINE):
                    _ask_for(following + line)
            _copy_string(whole, offsets[i], addresses[i], int64(sizes[i]))
        return whole, offsets, sizes, width

    @locked_kernel
    def _gather(strings: int, exact: int) -> Gathered:
        """Return the strings of the list at the address ``strings`` as ``_gather_items`` does."""
        addresses = np.empty(_count(strings), np.int64)
        for i in range(len(addresses)):
            addresses[i] = _item(strings, i)
        return _gather_items(addresses, exact, True)

    @locked_kernel
    def _gather_pairs(pairs: int, count: int, exact: int) -> tuple[Gathered, Gathered]:
        """Return the keys and the values of the dict at the address ``pairs`` as ``_gather_items`` does."""
        keys, values = np.empty(count, np.int64), np.empty(count, np.int64)
        place = int64(0)
        for i in range(count):
            _, place, keys[i], values[i] = _pair(pairs, place)
        return _gather_items(keys, exact, False), _gather_items(values, exact, False)

    def gathered(strings: list[Any]) -> Gathered:
        """Return all strings one after another, their offsets, their sizes, and the width that they share.

        The width is ``MIXED`` where they share none. It is ``NOT_BYTES``, and the rest without meaning, where one is
        not exactly ``bytes`` or has 2 GiB and more: of those nothing is read.

        INVARIANT: this frame keeps the list alive, and the lock keeps it as it is.
        """
        if type(strings) is not list:
            raise TypeError(f"expected a list of byte strings, got {type(strings).__name__}")
        found: Gathered = _gather(id(strings), id(bytes))
        return found

    def gathered_pairs(pairs: dict[Any, Any]) -> tuple[Gathered, Gathered]:
        """Return the keys of a dict and its values, each as ``gathered`` returns a list.

        Offsets and sizes are without meaning where there is a common width.

        INVARIANT: as there; while the lock is kept, there are as many pairs as the dict says.
        """
        if type(pairs) is not dict:
            raise TypeError(f"expected a dict of byte strings, got {type(pairs).__name__}")
        found: tuple[Gathered, Gathered] = _gather_pairs(id(pairs), len(pairs), id(bytes))
        return found

else:
    gathered = gathered_plainly
    gathered_pairs = gathered_pairs_plainly


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
