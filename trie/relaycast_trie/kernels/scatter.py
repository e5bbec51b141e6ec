"""Byte strings out of arrays into a Python list, through CPython's own functions: the way back from ``gather``.

A slice of a ``bytes`` object takes 100 to 150 ns with its indices, a string made here 25 to 40. These kernels make
Python objects, so they keep the interpreter's lock; an interpreter that has none slices plainly.
"""

from typing import Any

from llvmlite import ir
from numba import types

from relaycast_trie.kernels.compiling import JIT, inlined, locked_kernel
from relaycast_trie.kernels.gather import LOCKED
from relaycast_trie.kernels.memory import CHECKED, Bytes, Int32s, Int64s, _address, int64, intrinsic

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
