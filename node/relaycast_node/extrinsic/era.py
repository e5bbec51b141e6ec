"""Eras: from which block to which one an extrinsic may be included (sp-runtime ``generic::Era``).

An immortal extrinsic is valid at any height and signs the genesis hash. A mortal one lives for ``period`` blocks and
signs the hash of the block at which that period began. An era does not name that block: it says at which ``phase`` of
every ``period`` blocks it begins, so its bytes mean something only beside a block number.

>>> Mortal.starting_at(42, period=64).encode().hex()
'a502'
"""

from dataclasses import dataclass

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_u16
from relaycast_xcm.primitives import U64_MAX, BlockNumber

SHORTEST_PERIOD = 4
LONGEST_PERIOD = 1 << 16

FINE_PERIOD = 1 << 12
"""The longest period whose phase is exact; the phase of a longer one is a multiple of ``period / FINE_PERIOD``."""


@dataclass(frozen=True, slots=True)
class Immortal:
    """Valid at every height: its birth block is the genesis block."""

    def encode(self) -> bytes:
        return b"\x00"

    def birth(self, current: BlockNumber) -> BlockNumber:  # noqa: ARG002  # an immortal one has one birth block
        """Return 0, the genesis block."""
        return 0

    def death(self, current: BlockNumber) -> BlockNumber:  # noqa: ARG002
        """Return the largest u64: the era has no end."""
        return U64_MAX


@dataclass(frozen=True, slots=True)
class Mortal:
    """Valid for ``period`` blocks, a power of two, from a block whose number is ``phase`` modulo ``period``."""

    period: int
    phase: int

    def __post_init__(self) -> None:
        if not SHORTEST_PERIOD <= self.period <= LONGEST_PERIOD or self.period.bit_count() != 1:
            raise ValueError(f"a period is a power of two from 4 to 65536, got {self.period}")
        if not 0 <= self.phase < self.period:
            raise ValueError(f"a phase is at least 0 and below the period of {self.period}, got {self.phase}")
        if self.phase % self.phase_step:
            raise ValueError(f"the phase of period {self.period} is a multiple of {self.phase_step}, got {self.phase}")

    @classmethod
    def starting_at(cls, block: BlockNumber, *, period: int) -> "Mortal":
        """Return the era of about ``period`` blocks that begins at ``block`` (sp-runtime ``Era::mortal``).

        The period is rounded up to a power of two from 4 to 65,536. The beginning of a period over 4,096 blocks is
        rounded down to what an era can express.
        """
        rounded = min(max(1 << (max(period, 1) - 1).bit_length(), SHORTEST_PERIOD), LONGEST_PERIOD)
        step = max(rounded // FINE_PERIOD, 1)
        return cls(rounded, block % rounded // step * step)

    @property
    def phase_step(self) -> int:
        """The number that every phase of this period is a multiple of."""
        return max(self.period // FINE_PERIOD, 1)

    def encode(self) -> bytes:
        """Two bytes: the period's exponent less one in the low four bits, the phase in steps above."""
        return encode_u16(self.period.bit_length() - 2 | self.phase // self.phase_step << 4)

    def birth(self, current: BlockNumber) -> BlockNumber:
        """Return the block at which the era that holds ``current`` began."""
        return (max(current, self.phase) - self.phase) // self.period * self.period + self.phase

    def death(self, current: BlockNumber) -> BlockNumber:
        """Return the first block behind the era that holds ``current``."""
        return self.birth(current) + self.period


Era = Immortal | Mortal

IMMORTAL = Immortal()


def decode_era(reader: ScaleReader) -> Era:
    """Read an era: one byte when it is immortal, otherwise two."""
    start = reader.offset
    first = reader.u8()
    if first == 0:
        return IMMORTAL
    encoded = first | reader.u8() << 8
    period = 2 << (encoded & 0xF)
    phase = (encoded >> 4) * max(period // FINE_PERIOD, 1)
    if period < SHORTEST_PERIOD or phase >= period:
        raise CodecError(f"an era of period {period} and phase {phase} is not valid", start)
    return Mortal(period, phase)
