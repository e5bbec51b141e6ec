"""Moving bytes between arrays, as single machine instructions where the size is known.

INVARIANT: every caller has checked that both ends lie inside their arrays. With ``NUMBA_BOUNDSCHECK=1`` or
``NUMBA_DISABLE_JIT=1`` the same functions are plain loops over indexed bytes, so that a broken promise shows.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import config as numba_config
from numba import types
from numba.core import cgutils as numba_cgutils
from numba.extending import intrinsic as numba_intrinsic

from relaycast_trie.kernels.compiling import JIT, face, kernel
from relaycast_trie.kernels.disk_cache import CHECKED as CHECKED  # noqa: PLC0414 - kernels ask for it here

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

config: Any = numba_config
cgutils: Any = numba_cgutils


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make an instruction of a function that writes LLVM code."""
    make: Any = numba_intrinsic
    return make(function)


def instruction(twin: Callable[..., Any], *, checked: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Make an instruction of a function that writes LLVM code; where nothing is compiled it is its ``twin``.

    A ``checked`` one is its compiled twin where indices are looked at.
    """

    def made(function: Callable[..., Any]) -> Any:
        if checked and CHECKED:
            return kernel(twin)
        return intrinsic(function) if JIT else twin

    return made


if TYPE_CHECKING:

    def int64(number: Any) -> int:
        """Return a number as 64 bits wide."""
        return int(number)

else:
    int64 = np.int64


def compiled_for(feature: str) -> bool:
    """Return whether the CPU that kernels are compiled for has ``feature``.

    That is this machine's, or the one that ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` describe to numba.
    """
    if config.CPU_FEATURES is not None:
        return f"+{feature}" in config.CPU_FEATURES.split(",")
    return bool(binding.get_host_cpu_features().get(feature, False))


MASKED = compiled_for("avx512bw")
"""Whether the CPU can read up to 64 bytes and no more in one instruction."""


def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Return the address of byte ``at`` of an array."""
    data = context.make_array(array_type)(context, builder, array).data
    byte = ir.IntType(8).as_pointer()
    return builder.gep(builder.bitcast(data, byte), [at])


def _copy_checked(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
    """Copy ``size`` bytes one by one; raises ``IndexError`` for a place before an array."""
    if size < 0 or target_at < 0 or source_at < 0:
        raise IndexError("bytes are copied from or to before an array")
    for i in range(size):
        target[target_at + i] = source[source_at + i]


def _store_checked(target: Bytes, at: int, word: int) -> None:
    """Write the 8 bytes of a number one by one, little-endian; ``IndexError`` for a place before the array."""
    if at < 0:
        raise IndexError("a word is written before an array")
    for i in range(8):
        target[at + i] = int64(word >> np.uint64(8 * i)) & 255


def _load_checked(source: Bytes, at: int) -> int:
    """Return 8 bytes, read one by one, as a big-endian number; ``IndexError`` for a place before the array."""
    if at < 0:
        raise IndexError("a word is read before an array")
    word = 0
    for i in range(8):
        word = word << 8 | int(source[at + i])
    return word


@instruction(_copy_checked, checked=True)
def _copy(typingctx: Any, target: Any, target_at: Any, source: Any, source_at: Any, size: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = _address(context, builder, signature.args[0], args[0], args[1])
        of = _address(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, to, of, args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


def _masked(context: Any, builder: Any, array_type: Any, array: Any, at: Any, size: Any) -> Any:
    """Return ``size`` bytes of an array, at most 64 and not below 0, with zeros behind; no byte beyond is touched."""
    number, chunk = ir.IntType(64), ir.VectorType(ir.IntType(8), 64)
    flags = ir.VectorType(ir.IntType(1), 64)
    ones = ir.Constant(number, 0xFFFF_FFFF_FFFF_FFFF)
    none = builder.icmp_signed("<=", size, ir.Constant(number, 0))
    shift = builder.sub(ir.Constant(number, 64), builder.select(none, ir.Constant(number, 1), size))
    full = builder.icmp_signed(">=", size, ir.Constant(number, 64))
    mask = builder.select(full, ones, builder.lshr(ones, builder.and_(shift, ir.Constant(number, 63))))
    mask = builder.select(none, ir.Constant(number, 0), mask)
    of = builder.bitcast(_address(context, builder, array_type, array, at), chunk.as_pointer())
    kind = ir.FunctionType(chunk, (chunk.as_pointer(), ir.IntType(32), flags, chunk))
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.load.v64i8.p0")
    return builder.call(
        function, (of, ir.Constant(ir.IntType(32), 1), builder.bitcast(mask, flags), ir.Constant(chunk, None))
    )


@intrinsic
def _copy_chunk(typingctx: Any, target: Any, target_at: Any, source: Any, source_at: Any, size: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _masked(context, builder, signature.args[2], args[2], args[3], args[4])
        to = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(data, builder.bitcast(to, data.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@instruction(_load_checked, checked=True)
def _load(typingctx: Any, source: Any, source_at: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        of = builder.bitcast(_address(context, builder, signature.args[0], args[0], args[1]), word.as_pointer())
        return builder.bswap(builder.load(of, align=1))

    return types.uint64(source, types.int64), generate


@instruction(_store_checked, checked=True)
def _store(typingctx: Any, target: Any, target_at: Any, word: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(64).as_pointer()
        to = builder.bitcast(_address(context, builder, signature.args[0], args[0], args[1]), pointer)
        builder.store(args[2], to, align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, types.uint64), generate


@instruction(lambda _array, _index: None)
def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = ir.Constant(ir.IntType(64), signature.args[0].dtype.bitwidth // 8)
        address = _address(context, builder, signature.args[0], args[0], builder.mul(args[1], size))
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), (byte, number, number, number))
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, (address, *(ir.Constant(number, flag) for flag in (0, 3, 1))))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _of_bits(argument: Any, write: Callable[[Any, Any], Any], twin: Callable[[int], int]) -> Any:
    """Return an instruction that takes a 64-bit number and returns one, which ``write`` writes."""

    @instruction(twin)
    def counted(typingctx: Any, bits: Any) -> Any:  # noqa: ARG001
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return write(builder, args[0])

        return types.int64(argument), generate

    return counted


_FALSE = ir.Constant(ir.IntType(1), 0)
_ones = _of_bits(types.int64, lambda builder, bits: builder.ctpop(bits), lambda bits: int(bits).bit_count())
_leading_zeros = _of_bits(
    types.uint64, lambda builder, bits: builder.ctlz(bits, _FALSE), lambda bits: 64 - int(bits).bit_length()
)
_trailing_zeros = _of_bits(
    types.int64,
    lambda builder, bits: builder.cttz(bits, _FALSE),
    lambda bits: (int(bits) & -int(bits)).bit_length() - 1,
)


@face
def copy(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
    """Copy ``size`` bytes from ``source[source_at]`` on to ``target[target_at]`` on."""
    _copy(target, target_at, source, source_at, size)


@kernel
def copy32(target: Bytes, target_at: int, source: Bytes, source_at: int) -> None:
    """Copy 32 bytes, from ``source[source_at]`` on to ``target[target_at]`` on."""
    _copy(target, target_at, source, source_at, 32)


@kernel
def copy128(target: Bytes, target_at: int, source: Bytes, source_at: int) -> None:
    """Copy 128 bytes, from ``source[source_at]`` on to ``target[target_at]`` on."""
    _copy(target, target_at, source, source_at, 128)


if MASKED and not CHECKED:

    @kernel
    def copy_padded(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
        """Copy ``size`` bytes, at most 128, and write zeros behind them: 128 bytes of ``target`` change."""
        _copy_chunk(target, target_at, source, source_at, size)
        _copy_chunk(target, target_at + 64, source, source_at + 64, size - 64)

    @kernel
    def copy_loose(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
        """Copy ``size`` bytes; up to 64 bytes of ``target`` behind them may change."""
        if size <= 64:
            _copy_chunk(target, target_at, source, source_at, size)
        else:
            _copy(target, target_at, source, source_at, size)

else:

    @kernel
    def copy_padded(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
        """Copy ``size`` bytes, at most 128, and write zeros behind them: 128 bytes of ``target`` change."""
        for i in range(128):
            target[target_at + i] = 0
        _copy(target, target_at, source, source_at, size)

    @kernel
    def copy_loose(target: Bytes, target_at: int, source: Bytes, source_at: int, size: int) -> None:
        """Copy ``size`` bytes; up to 64 bytes of ``target`` behind them may change."""
        if CHECKED:
            target[target_at + size + 63] = 0
        _copy(target, target_at, source, source_at, size)


@kernel
def load64(source: Bytes, at: int) -> int:
    """Return the 8 bytes from ``source[at]`` on as a big-endian number."""
    return _load(source, at)  # type: ignore[no-any-return]


@kernel
def store64(target: Bytes, at: int, word: int) -> None:
    """Write a 64-bit number to ``target[at]`` and the 7 bytes behind, little-endian."""
    _store(target, at, np.uint64(word))


@kernel
def prefetch(array: npt.NDArray[Any], index: int) -> None:
    """Ask the memory for ``array[index]`` ahead of time; an index beyond its end does no harm."""
    _prefetch(array, index)


@kernel
def count_ones(bits: int) -> int:
    """Return how many bits of a number are one."""
    return _ones(bits)  # type: ignore[no-any-return]


@kernel
def leading_zeros(word: int) -> int:
    """Return how many of the 64 bits of ``word`` are zero above its highest one."""
    return _leading_zeros(np.uint64(word))  # type: ignore[no-any-return]


@kernel
def lowest_bit(bits: int) -> int:
    """Return the index of the lowest one bit of a number that is not 0."""
    return _trailing_zeros(bits)  # type: ignore[no-any-return]
