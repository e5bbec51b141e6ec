"""Moving bytes between arrays, as single machine instructions where the size is known.

INVARIANT: every caller has checked that both ends lie inside their arrays. With ``NUMBA_BOUNDSCHECK=1`` or
``NUMBA_DISABLE_JIT=1`` the same functions are plain loops over indexed bytes, so that a broken promise shows.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

JIT = not config.DISABLE_JIT
CHECKED = bool(config.DISABLE_JIT or config.BOUNDSCHECK)
"""Whether bytes are moved one by one with their indices looked at."""

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` on its first call, without the interpreter's lock, and keep the code where that can be.

    A cache folder that cannot be written or found costs a compilation per process, nothing else.
    """
    try:
        return cast(Kernel, njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(Kernel, njit(nogil=True)(function))


def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Return the address of byte ``at`` of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    byte = ir.IntType(8).as_pointer()
    return builder.gep(builder.bitcast(data, byte), [at])


def _fixed_copy(size: int) -> Any:
    @intrinsic
    def copy(typingctx: Any, target: Any, target_at: Any, source: Any, source_at: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), size).as_pointer()
            to = builder.bitcast(_address(context, builder, signature.args[0], args[0], args[1]), vector)
            of = builder.bitcast(_address(context, builder, signature.args[2], args[2], args[3]), vector)
            builder.store(builder.load(of, align=1), to, align=1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64), generate

    return copy


@intrinsic
def _any_copy(typingctx: Any, target: Any, target_at: Any, source: Any, source_at: Any, size: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = _address(context, builder, signature.args[0], args[0], args[1])
        of = _address(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, to, of, args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def _load(typingctx: Any, source: Any, source_at: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        of = builder.bitcast(_address(context, builder, signature.args[0], args[0], args[1]), word.as_pointer())
        return builder.bswap(builder.load(of, align=1))

    return types.uint64(source, types.int64), generate


@intrinsic
def _leading_zeros(typingctx: Any, word: Any) -> Any:  # noqa: ARG001
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _trailing_zeros(typingctx: Any, word: Any) -> Any:  # noqa: ARG001
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


def _copy_checked(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
    for i in range(size):
        target[target_at + i] = source[source_at + i]


def _load_checked(source: Bytes, at: int) -> int:
    word = 0
    for i in range(8):
        word = word << 8 | int(source[at + i])
    return word


if CHECKED:
    _checked = kernel(_copy_checked)
    _checked_word = kernel(_load_checked)

    @kernel
    def copy(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
        """Copy ``size`` bytes."""
        _checked(target, target_at, source, source_at, size)

    @kernel
    def copy32(target: Bytes, target_at: int, source: Bytes, source_at: int) -> None:
        """Copy 32 bytes."""
        _checked(target, target_at, source, source_at, 32)

    @kernel
    def copy128(target: Bytes, target_at: int, source: Bytes, source_at: int) -> None:
        """Copy 128 bytes."""
        _checked(target, target_at, source, source_at, 128)

    @kernel
    def load64(source: Bytes, at: int) -> int:
        """Return 8 bytes as a big-endian number."""
        return _checked_word(source, at)

else:
    _copy32 = _fixed_copy(32)
    _copy128 = _fixed_copy(128)

    @kernel
    def copy(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
        """Copy ``size`` bytes."""
        _any_copy(target, target_at, source, source_at, size)

    @kernel
    def copy32(target: Bytes, target_at: int, source: Bytes, source_at: int) -> None:
        """Copy 32 bytes."""
        _copy32(target, target_at, source, source_at)

    @kernel
    def copy128(target: Bytes, target_at: int, source: Bytes, source_at: int) -> None:
        """Copy 128 bytes."""
        _copy128(target, target_at, source, source_at)

    @kernel
    def load64(source: Bytes, at: int) -> int:
        """Return 8 bytes as a big-endian number."""
        return _load(source, at)  # type: ignore[no-any-return]


if JIT:

    @kernel
    def leading_zeros(word: int) -> int:
        """Return how many of 64 bits are zero before the first one."""
        return _leading_zeros(np.uint64(word))  # type: ignore[no-any-return]

    @kernel
    def lowest_bit(bits: int) -> int:
        """Return the index of the lowest one bit of a number that has one."""
        return _trailing_zeros(bits)  # type: ignore[no-any-return]

else:

    def leading_zeros(word: int) -> int:
        """Return how many of 64 bits are zero before the first one."""
        return 64 - int(word).bit_length()

    def lowest_bit(bits: int) -> int:
        """Return the index of the lowest one bit of a number that has one."""
        return (bits & -bits).bit_length() - 1
