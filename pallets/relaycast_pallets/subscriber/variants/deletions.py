"""The delivered keys of a publisher: subscribed keys whose last callback had a value.

Each key has one bit, set by a callback with a value and cleared by one without. A deletion is told if the bit is set
and the proof shows that the key is absent. So it is told exactly once, whatever happens to roots, node caches and
interrupted passes.
"""

from collections.abc import Callable, Collection, Sequence, Set
from itertools import compress

from relaycast_pallets.subscriber.subscription import SubscribedKey

BITS = 8


class DeliveredKeys:
    """The delivered keys of one publisher among those subscribed now, loaded on first use."""

    __slots__ = ("_keys", "_load")

    def __init__(self, load: Callable[[], Set[SubscribedKey]]) -> None:
        self._load = load
        self._keys: Set[SubscribedKey] | None = None

    @property
    def keys(self) -> Set[SubscribedKey]:
        if self._keys is None:
            self._keys = self._load()
        return self._keys

    def __contains__(self, key: SubscribedKey) -> bool:
        return key in self.keys

    def __repr__(self) -> str:
        return "<DeliveredKeys, not loaded>" if self._keys is None else f"<DeliveredKeys: {len(self._keys)} keys>"


NOTHING_DELIVERED = DeliveredKeys(frozenset)


def bitmap_of(keys: Collection[SubscribedKey], delivered: Set[SubscribedKey]) -> bytes:
    """Return a bit for each of the sorted ``keys``, the first in the lowest bit of the first byte."""
    bits = sum(1 << index for index, key in enumerate(keys) if key in delivered)
    return bits.to_bytes(-(-len(keys) // BITS), "little")


def keys_in(bitmap: bytes, keys: Sequence[SubscribedKey]) -> frozenset[SubscribedKey]:
    """Return the sorted ``keys`` whose bit is set."""
    return frozenset(compress(keys, (byte >> bit & 1 for byte in bitmap for bit in range(BITS))))
