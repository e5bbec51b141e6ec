"""The numbers that chains agree on: parachain ids, block numbers, weights and what database access weighs.

A weight has two dimensions: ``ref_time`` in picoseconds of reference hardware and ``proof_size`` in bytes of proof.
Both are u64 and saturate; a meter is never over its limit unless ``consume`` is told to.
"""

from typing import Annotated, ClassVar, Self

from msgspec import Struct

U32_MAX = (1 << 32) - 1
U64_MAX = (1 << 64) - 1
U128_MAX = (1 << 128) - 1


class Rust(str):
    """The Rust spelling of a Python annotation: metadata is generated from it, nothing else reads it."""

    __slots__ = ()


u8 = Annotated[int, Rust("u8")]
u16 = Annotated[int, Rust("u16")]
u32 = Annotated[int, Rust("u32")]
u64 = Annotated[int, Rust("u64")]
u128 = Annotated[int, Rust("u128")]

Balance = Annotated[int, Rust("u128")]
"""An amount in the smallest unit of a chain's token."""

Compact64 = Annotated[int, Rust("Compact<u64>")]
Compact128 = Annotated[int, Rust("Compact<u128>")]

AccountId = Annotated[bytes, Rust("AccountId32")]
"""32 bytes."""

Lookup = Annotated[bytes, Rust("MultiAddress<AccountId32, ()>")]
"""An account id that a call names by its address: whoever decodes the call has looked it up."""

H256 = Annotated[bytes, Rust("H256")]
"""A hash of 32 bytes."""

Bytes32 = Annotated[bytes, Rust("[u8; 32]")]
"""32 bytes that need not be a hash."""

VecU8 = Annotated[bytes, Rust("Vec<u8>")]
"""Bytes with their length."""

BlockNumber = Annotated[int, Rust("u32")]
"""A block's height on its own chain."""

BlockCount = Annotated[int, Rust("u32")]
"""A span of blocks."""


class ParaId(int):
    """A parachain's number on its relay chain: a u32, encoded as four little-endian bytes."""

    __slots__ = ()

    def __new__(cls, number: int) -> Self:
        if not 0 <= number <= U32_MAX:
            raise ValueError(f"a parachain id is a u32, got {number}")
        return super().__new__(cls, number)

    @property
    def is_system(self) -> bool:
        """Whether the relay chain's governance owns the id."""
        return self < LOWEST_PUBLIC_ID

    def encode(self) -> bytes:
        """Four bytes: the id stands plain in storage keys, compact only inside a ``Parachain`` junction."""
        return self.to_bytes(4, "little")

    def __repr__(self) -> str:
        return f"ParaId({int(self)})"

    __str__ = int.__repr__


LOWEST_PUBLIC_ID = ParaId(2_000)
"""Parachains below this id are system parachains: they publish without registering (polkadot-parachain-primitives)."""


class Weight(Struct, frozen=True):
    """Work: ``ref_time`` in picoseconds and ``proof_size`` in bytes. Arithmetic saturates at 0 and at 2**64 - 1."""

    ref_time: int
    proof_size: int = 0

    ZERO: ClassVar["Weight"]
    MAX: ClassVar["Weight"]

    def __post_init__(self) -> None:
        if not (0 <= self.ref_time <= U64_MAX and 0 <= self.proof_size <= U64_MAX):
            raise ValueError(f"a weight is two u64, got {self.ref_time} and {self.proof_size}")

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(min(self.ref_time + other.ref_time, U64_MAX), min(self.proof_size + other.proof_size, U64_MAX))

    def __sub__(self, other: "Weight") -> "Weight":
        return self.saturating_sub(other)

    def __mul__(self, factor: int) -> "Weight":
        return Weight(min(self.ref_time * factor, U64_MAX), min(self.proof_size * factor, U64_MAX))

    __rmul__ = __mul__

    def saturating_sub(self, other: "Weight") -> "Weight":
        return Weight(max(self.ref_time - other.ref_time, 0), max(self.proof_size - other.proof_size, 0))

    def checked_sub(self, other: "Weight") -> "Weight | None":
        """Return the difference, or ``None`` where either dimension would fall below zero."""
        return self.saturating_sub(other) if other.all_lte(self) else None

    def all_lte(self, other: "Weight") -> bool:
        return self.ref_time <= other.ref_time and self.proof_size <= other.proof_size

    def all_gte(self, other: "Weight") -> bool:
        return other.all_lte(self)

    def any_gt(self, other: "Weight") -> bool:
        return not self.all_lte(other)

    def min(self, other: "Weight") -> "Weight":
        """Return the smaller of each dimension."""
        return Weight(min(self.ref_time, other.ref_time), min(self.proof_size, other.proof_size))

    def max(self, other: "Weight") -> "Weight":
        """Return the larger of each dimension."""
        return Weight(max(self.ref_time, other.ref_time), max(self.proof_size, other.proof_size))

    def __str__(self) -> str:
        return f"({_amount(self.ref_time, 'ps')}, {_amount(self.proof_size, 'B')})"


def _amount(amount: int, unit: str) -> str:
    """Return an amount with its unit; the largest u64 stands for no limit."""
    return f"unlimited {unit}" if amount == U64_MAX else f"{amount:,} {unit}"


Weight.ZERO = Weight(0, 0)
Weight.MAX = Weight(U64_MAX, U64_MAX)


class WeightMeter:
    """What has been consumed of a limit (sp-weights ``WeightMeter``); reaching the limit exactly is allowed."""

    __slots__ = ("_limit", "_proof_size", "_ref_time")

    def __init__(self, limit: Weight = Weight.MAX) -> None:
        self._limit = limit
        self._ref_time = 0
        self._proof_size = 0

    @property
    def limit(self) -> Weight:
        return self._limit

    @property
    def consumed(self) -> Weight:
        return Weight(self._ref_time, self._proof_size)

    def remaining(self) -> Weight:
        return self._limit.saturating_sub(self.consumed)

    def can_consume(self, weight: Weight) -> bool:
        ref_time, proof_size = self._ref_time + weight.ref_time, self._proof_size + weight.proof_size
        return ref_time <= self._limit.ref_time and proof_size <= self._limit.proof_size

    def try_consume(self, weight: Weight) -> bool:
        """Consume ``weight`` if it fits; return whether it did."""
        ref_time, proof_size = self._ref_time + weight.ref_time, self._proof_size + weight.proof_size
        if ref_time > self._limit.ref_time or proof_size > self._limit.proof_size:
            return False
        self._ref_time, self._proof_size = ref_time, proof_size
        return True

    def consume(self, weight: Weight) -> None:
        """Consume ``weight`` whether it fits or not, saturating: for work that has been done already."""
        self._ref_time = min(self._ref_time + weight.ref_time, U64_MAX)
        self._proof_size = min(self._proof_size + weight.proof_size, U64_MAX)

    def __repr__(self) -> str:
        return f"WeightMeter(consumed={self.consumed}, limit={self._limit})"


class DbWeight(Struct, frozen=True):
    """What one database ``read`` and one ``write`` weigh, in picoseconds; proof bytes are charged apart."""

    read: int
    write: int

    def reads(self, count: int) -> Weight:
        return Weight(min(self.read * count, U64_MAX))

    def writes(self, count: int) -> Weight:
        return Weight(min(self.write * count, U64_MAX))

    def reads_writes(self, reads: int, writes: int) -> Weight:
        return Weight(min(self.read * reads + self.write * writes, U64_MAX))


ROCKS_DB = DbWeight(read=25_000_000, write=100_000_000)
"""frame-support ``RocksDbWeight``: 25 and 100 microseconds."""

PARITY_DB = DbWeight(read=8_000_000, write=50_000_000)
"""frame-support ``ParityDbWeight``: 8 and 50 microseconds."""

ZERO_DB = DbWeight(read=0, write=0)
"""The ``()`` of upstream's test runtimes: access costs nothing."""
