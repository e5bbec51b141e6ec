"""What reads weigh, by size: worked out once for each size, since the same sizes come again in every block."""

from collections.abc import Callable

from relaycast_pallets.subscriber.policies import MeteringPolicy
from relaycast_xcm.primitives import DbWeight, Weight

SIZES_KEPT = 1 << 12
"""Sizes whose weights are remembered, of each kind of read; then they are forgotten."""


class _BySize(dict[int, Weight]):
    """Weights of one kind of read by the bytes read, of which ``largest`` are charged at most."""

    __slots__ = ("_charge", "_db_weight", "_largest")

    def __init__(self, charge: Callable[[DbWeight, int], Weight], db_weight: DbWeight, largest: int) -> None:
        super().__init__()
        self._charge, self._db_weight, self._largest = charge, db_weight, largest

    def __missing__(self, size: int) -> Weight:
        if len(self) >= SIZES_KEPT:
            self.clear()
        weight = self[size] = self._charge(self._db_weight, min(size, self._largest))
        return weight


class Charges:
    """Weights by size under one ``metering``: of a relay ``node``, of a relay ``value``, of a ``cached`` node.

    No read is charged for more than ``largest`` bytes. What the relay chain holds may be longer: a version 0 trie has
    its values inside its nodes. A read that does not fit leaves less than the largest charge, so that no honest block
    panics. ``most`` is the largest charge of all.
    """

    __slots__ = ("cached", "largest", "most", "node", "value")

    def __init__(self, metering: MeteringPolicy, db_weight: DbWeight, largest: int) -> None:
        self.largest = largest
        self.node = _BySize(metering.relay_node, db_weight, largest)
        self.value = _BySize(metering.relay_value, db_weight, largest)
        self.cached = _BySize(metering.cached_node, db_weight, largest)
        self.most = self.node[largest].max(self.value[largest]).max(self.cached[largest])
