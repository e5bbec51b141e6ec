"""The plainest subscriber: what it wants, and the last value of each key that reached it."""

from relaycast_pallets.subscriber.subscription import (
    Infinite,
    SubscribedKey,
    Subscriptions,
    TimedOut,
    TtlState,
    ValidFor,
)
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.checkpoint import U32, DumpRow, Hash

Kept = tuple[bytes, TtlState]


class WantedDump(DumpRow, frozen=True):
    """The keys that a parachain wants of a publisher."""

    publisher: U32
    keys: list[Hash]


class KeptDump(DumpRow, frozen=True):
    """The last value of a key; ``remaining_blocks`` are none of a value that never expires, 0 of one that has."""

    publisher: U32
    key: Hash
    value: bytes
    remaining_blocks: U32 | None


class KeptValues:
    """Keeps the last value of every key.

    It remembers outside of the chain's state and therefore joins it (``State.join``), as every such handler has to:
    what a panicking block told it is forgotten.
    """

    def __init__(self) -> None:
        self.wanted: dict[ParaId, list[SubscribedKey]] = {}
        self.values: dict[tuple[ParaId, SubscribedKey], Kept] = {}
        self._replaced: list[tuple[tuple[ParaId, SubscribedKey], Kept | None]] = []

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return list(self.wanted.items()), Weight.ZERO

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        self._replaced.append(((publisher, key), self.values.get((publisher, key))))
        self.values[publisher, key] = value, ttl_state
        return Weight.ZERO

    def mark(self) -> int:
        return len(self._replaced)

    def roll_back(self, mark: int, /) -> None:
        while len(self._replaced) > mark:
            place, before = self._replaced.pop()
            if before is None:
                del self.values[place]
            else:
                self.values[place] = before

    def dump(self) -> tuple[list[WantedDump], list[KeptDump]]:
        """Return what is wanted, and what is kept, as data."""
        wanted = [WantedDump(int(publisher), list(map(bytes, keys))) for publisher, keys in self.wanted.items()]
        kept = [
            KeptDump(int(publisher), bytes(key), value, _remaining(ttl_state))
            for (publisher, key), (value, ttl_state) in self.values.items()
        ]
        return wanted, kept

    def load(self, wanted: list[WantedDump], kept: list[KeptDump]) -> None:
        """Want and keep what another did."""
        self.wanted = {ParaId(it.publisher): list(map(SubscribedKey, it.keys)) for it in wanted}
        self.values = {
            (ParaId(it.publisher), SubscribedKey(it.key)): (it.value, _ttl_state(it.remaining_blocks)) for it in kept
        }
        self._replaced.clear()

    def settle(self) -> None:
        """Forget what was replaced: the block that did it is sealed."""
        self._replaced.clear()


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
