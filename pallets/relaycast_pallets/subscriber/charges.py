"""What reads weigh, by size: worked out once for each size, since the same sizes come again in every block."""

from collections.abc import Callable

from relaycast_pallets.subscriber.policies import MeteringPolicy
from relaycast_xcm.primitives import DbWeight, Weight

SIZES_KEPT = 1 << 12
"""Sizes whose weights are remembered, of each kind of read; then they are forgotten."""


class _BySize(dict[int, Weight]):
    """Weights of one kind of read by the bytes read."""

    __slots__ = ("_charge", "_db_weight")

    def __init__(self, charge: Callable[[DbWeight, int], Weight], db_weight: DbWeight) -> None:
        super().__init__()
        self._charge, self._db_weight = charge, db_weight

    def __missing__(self, size: int) -> Weight:
        if len(self) >= SIZES_KEPT:
            self.clear()
        weight = self[size] = self._charge(self._db_weight, size)
        return weight


class Charges:
    """Weights by size under one ``metering``: of a relay ``node``, of a relay ``value``, of a ``cached`` node."""

    __slots__ = ("cached", "db_weight", "metering", "node", "value")

    def __init__(self, metering: MeteringPolicy, db_weight: DbWeight) -> None:
        self.metering = metering
        self.db_weight = db_weight
        self.node = _BySize(metering.relay_node, db_weight)
        self.value = _BySize(metering.relay_value, db_weight)
        self.cached = _BySize(metering.cached_node, db_weight)
