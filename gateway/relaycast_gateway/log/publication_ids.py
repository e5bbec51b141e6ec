"""WAMP's publication ids: random in 1 to 2^53, unique for as long as the log lives, without a table of them.

An id is a permutation of ``seq`` under the log's own key: a Feistel network over 26 and 27 bits. Whoever has the key
finds the record of an id by running it backwards.
"""

from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.uint64]

ROUNDS = 6
LOW_BITS = 27
HIGH_BITS = 26
FEW = 16
"""Events whose ids are made one by one."""

_LOW = np.uint64((1 << LOW_BITS) - 1)
_HIGH = np.uint64((1 << HIGH_BITS) - 1)
_SHIFT = np.uint64(LOW_BITS)
_LOW_BITS_SET, _HIGH_BITS_SET = int(_LOW), int(_HIGH)
_WORD = (1 << 64) - 1
_MULTIPLIERS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
"""The round function is the finalizer of SplitMix64; these are its multipliers."""

_MULTIPLIER_0, _MULTIPLIER_1 = map(int, _MULTIPLIERS)


class PublicationIds:
    """The ids of a log with this ``key``, any bytes up to 64."""

    def __init__(self, key: bytes) -> None:
        self._keys = np.frombuffer(blake2b(key=key, digest_size=8 * ROUNDS).digest(), "<u8")
        self._few_keys: list[int] = self._keys.tolist()

    def of(self, seqs: Any) -> list[int]:
        """Return the ids of events by their ``seq``, each below 2^53."""
        if len(seqs) <= FEW:
            return [self._of_one(seq) for seq in seqs]
        low, high = _halves(np.asarray(seqs, np.uint64))
        for number in range(ROUNDS):
            low, high = self._round(number, low, high)
        return [number + 1 for number in ((high << _SHIFT) | low).tolist()]

    def seq_of(self, pub_id: int) -> int:
        """Return the ``seq`` that an id of 1 to 2^53 belongs to, whether or not the log has got so far."""
        low, high = (pub_id - 1) & _LOW_BITS_SET, (pub_id - 1) >> LOW_BITS
        for number in reversed(range(ROUNDS)):
            if number % 2:
                low ^= _mixed_one(high, self._few_keys[number]) & _LOW_BITS_SET
            else:
                high ^= _mixed_one(low, self._few_keys[number]) & _HIGH_BITS_SET
        return high << LOW_BITS | low

    def _of_one(self, seq: int) -> int:
        """Do the same for one event: an array would cost more than the work."""
        low, high = seq & _LOW_BITS_SET, seq >> LOW_BITS
        for number, key in enumerate(self._few_keys):
            if number % 2:
                low ^= _mixed_one(high, key) & _LOW_BITS_SET
            else:
                high ^= _mixed_one(low, key) & _HIGH_BITS_SET
        return (high << LOW_BITS | low) + 1

    def _round(self, number: int, low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
        """Return both halves, one of them changed by the other: the same step undoes it."""
        if number % 2:
            return low ^ (_mixed(high, self._keys[number]) & _LOW), high
        return low, high ^ (_mixed(low, self._keys[number]) & _HIGH)


def _halves(numbers: Numbers) -> tuple[Numbers, Numbers]:
    return numbers & _LOW, numbers >> _SHIFT


def _mixed(numbers: Numbers, key: np.uint64) -> Numbers:
    mixed = numbers + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MULTIPLIERS[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MULTIPLIERS[1]
    result: Numbers = mixed ^ (mixed >> np.uint64(31))
    return result


def _mixed_one(number: int, key: int) -> int:
    """Do the same to one number."""
    mixed = number + key & _WORD
    mixed = (mixed ^ mixed >> 30) * _MULTIPLIER_0 & _WORD
    mixed = (mixed ^ mixed >> 27) * _MULTIPLIER_1 & _WORD
    return mixed ^ mixed >> 31
