"""The plainest subscriber: what it wants, and the last value of each key that reached it."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from relaycast_pallets.subscriber.subscription import (
    Infinite,
    SubscribedKey,
    Subscriptions,
    TimedOut,
    TtlState,
    Update,
    ValidFor,
)
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.checkpoint import U32, Count

Kept = tuple[bytes, TtlState]


WantedRow = tuple[ParaId, list[SubscribedKey]]
"""The keys that a parachain wants of a publisher."""

KeptRow = tuple[ParaId, SubscribedKey, bytes, U32 | None]
"""The last value of a key, and the blocks that remain: none of a value that never expires, 0 of one that has."""

WeightRow = tuple[ParaId, SubscribedKey, Count, Count]
"""The declared weight of a key's callback."""


class LatestValues:
    """Keeps the last value of every key; its callbacks use the weight declared for them, by default none.

    It remembers outside of the chain's state and therefore joins it (``State.join``), as every such handler has to:
    what a panicking block or a refused call told it is forgotten.
    """

    def __init__(self) -> None:
        self.wanted: dict[ParaId, list[SubscribedKey]] = {}
        self.values: dict[tuple[ParaId, SubscribedKey], Kept] = {}
        self.weights: dict[tuple[ParaId, SubscribedKey], Weight] = {}
        self._undo: list[Callable[[], object]] = []
        self._deletes = False
        """Whether a value was dropped since the last block was sealed."""

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return list(self.wanted.items()), Weight.ZERO

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        (weight,) = self.on_data_updated_many(publisher, [(key, value, ttl_state)])
        return weight

    def on_data_updated_many(self, publisher: ParaId, updates: Sequence[Update]) -> list[Weight]:
        kept = {(publisher, key): (value, ttl_state) for key, value, ttl_state in updates}
        self._undo.append(partial(_restore, self.values, [(place, self.values.get(place)) for place in kept]))
        self.values.update(kept)
        return [self.weights.get(place, Weight.ZERO) for place in kept]

    def callback_weight(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Return the weight declared for a key's callback."""
        return self.weights.get((publisher, key), Weight.ZERO)

    def declare(self, publisher: ParaId, keys: Iterable[SubscribedKey], weight: Weight) -> None:
        """Declare the weight that a callback for each of these keys uses."""
        for key in keys:
            if weight == Weight.ZERO:
                self.weights.pop((publisher, key), None)
            else:
                self.weights[publisher, key] = weight

    def on_data_deleted(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        place = publisher, key
        if place in self.values:
            if not self._deletes:
                self._deletes = True
                self._undo.append(partial(self._reorder, list(self.values)))
            self._undo.append(partial(_restore, self.values, [(place, self.values.pop(place))]))
        return self.weights.get(place, Weight.ZERO)

    def subscribe(self, publisher: ParaId, keys: Iterable[SubscribedKey]) -> None:
        """Want more ``keys`` of a publisher."""
        self._want({**self.wanted, publisher: [*self.wanted.get(publisher, ()), *keys]})

    def unsubscribe(self, publisher: ParaId, keys: Collection[SubscribedKey]) -> None:
        """Want these keys no more; what was kept of them stays."""
        others = {known: wanted for known, wanted in self.wanted.items() if known != publisher}
        left = [key for key in self.wanted.get(publisher, ()) if key not in keys]
        self._want({**others, publisher: left} if left else others)

    def _want(self, wanted: dict[ParaId, list[SubscribedKey]]) -> None:
        self._undo.append(partial(setattr, self, "wanted", self.wanted))
        self.wanted = wanted

    def mark(self) -> int:
        return len(self._undo)

    def roll_back(self, mark: int, /) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    def dump(self) -> tuple[list[WantedRow], list[KeptRow], list[WeightRow]]:
        """Return what is wanted, what is kept, and the declared weights, as data."""
        kept = [(*place, value, _remaining(ttl_state)) for place, (value, ttl_state) in self.values.items()]
        weights = [(*place, weight.ref_time, weight.proof_size) for place, weight in self.weights.items()]
        return list(self.wanted.items()), kept, weights

    def load(self, wanted: list[WantedRow], kept: list[KeptRow], weights: Iterable[WeightRow]) -> None:
        """Want, keep and declare what another did."""
        self.wanted = dict(wanted)
        self.values = {(publisher, key): (value, _ttl_state(left)) for publisher, key, value, left in kept}
        self.weights = {(publisher, key): Weight(*weight) for publisher, key, *weight in weights}
        self.settle()

    def settle(self) -> None:
        """Forget what was replaced: the block that did it is sealed."""
        self._undo.clear()
        self._deletes = False

    def _reorder(self, order: list[tuple[ParaId, SubscribedKey]]) -> None:
        """Restore the order that values had before one was dropped."""
        values = dict(self.values)
        self.values.clear()
        self.values.update((place, values[place]) for place in order)
        self._deletes = False


def _restore(
    values: dict[tuple[ParaId, SubscribedKey], Kept],
    replaced: Iterable[tuple[tuple[ParaId, SubscribedKey], Kept | None]],
) -> None:
    for place, before in replaced:
        if before is None:
            del values[place]
        else:
            values[place] = before


def _remaining(ttl_state: TtlState) -> int | None:
    match ttl_state:
        case Infinite():
            return None
        case ValidFor():
            return ttl_state.remaining_blocks
        case TimedOut():
            return 0


def _ttl_state(remaining_blocks: int | None) -> TtlState:
    if remaining_blocks is None:
        return Infinite()
    return ValidFor(remaining_blocks) if remaining_blocks else TimedOut()
