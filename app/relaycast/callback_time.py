"""Weight of callbacks as scenario files and Python give it: microseconds, and bytes of proof."""

from relaycast.feed import whole_number
from relaycast_xcm.primitives import U64_MAX, Weight

PICOSECONDS = 1_000_000
"""Picoseconds in a microsecond."""

MAX_MICROSECONDS = 10**9
"""The most that a callback may declare, or a block allow."""

MAX_PROOF_BYTES = 1 << 30
"""The most bytes of proof that a callback may declare: those of a block's callbacks add up to less than 2^63."""


def weight_of(microseconds: int, proof_bytes: int = 0) -> Weight:
    """Return the weight of one callback."""
    return Weight(microseconds * PICOSECONDS, proof_bytes)


def limit_of(microseconds: int) -> Weight:
    """Return the limit of a block's callbacks; 0 microseconds is no limit, as in the drafts."""
    return Weight(microseconds * PICOSECONDS, U64_MAX) if microseconds else Weight.MAX


def declared(microseconds: int, proof_bytes: int, limit: Weight) -> Weight:
    """Return the weight of one callback; ``TypeError`` or ``ValueError`` if it is invalid or exceeds ``limit``."""
    weight = weight_of(
        _within(microseconds, "callback_us", MAX_MICROSECONDS),
        _within(proof_bytes, "callback_proof_bytes", MAX_PROOF_BYTES),
    )
    if weight.any_gt(limit):
        raise ValueError(f"a callback weighs at most {limit}, the callback limit of a block, got {weight}")
    return weight


def allowed(microseconds: int) -> Weight:
    """Return the limit of a block's callbacks; ``TypeError`` or ``ValueError`` if it is no valid limit."""
    return limit_of(_within(microseconds, "callback_limit_us", MAX_MICROSECONDS))


def _within(number: int, name: str, most: int) -> int:
    if not 0 <= whole_number(number, name) <= most:
        raise ValueError(f"{name} is a number from 0 to {most:,}, got {number}")
    return number
