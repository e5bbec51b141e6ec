"""The timestamp pallet: the time of the block, which an inherent sets once (pallet-timestamp).

A block without its time, with two, or with one that is too early is invalid. Upstream panics then; here a
``TimestampInvalid`` says which it is.
"""

from relaycast_pallets.frame.dispatch import Origin, ensure_none
from relaycast_pallets.frame.system import System
from relaycast_pallets.frame.typed_storage import BOOL, U64, StorageValue
from relaycast_pallets.frame.weights import CallWeight, Term, WeightTable
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import ROCKS_DB, U64_MAX, Compact64, Weight, u64

WEIGHTS = WeightTable.of(
    CallWeight("set", Term(Weight(8_684_000, 1_493), 2, 1), {}, "pallet-timestamp's weights.rs of April 2024"),
)
"""What calls weigh."""

MINIMUM_PERIOD = 3_000
"""Half a slot of six seconds, in milliseconds."""

SLOT_MILLISECONDS = 2 * MINIMUM_PERIOD
GENESIS_MILLISECONDS = 1_735_689_600_000
"""The modelled time of block 0: 1 January 2025. Block n was built n slots after it, however fast blocks come."""


class TimestampInvalid(RelaycastError, message="{reason}"):
    """The block is invalid, for this ``reason``."""

    reason: str


class Timestamp:
    """The time of the current block, in milliseconds since 1970."""

    PALLET = "Timestamp"

    def __init__(self, system: System, *, minimum_period: u64 = MINIMUM_PERIOD) -> None:
        self.system = system
        self.minimum_period = minimum_period
        self._now = StorageValue(system.state, self.PALLET, "Now", U64, default=0)
        self._did_update = StorageValue(system.state, self.PALLET, "DidUpdate", BOOL, default=False)

    def weight(self, call: str) -> Weight:
        """Return what ``call`` weighs."""
        return WEIGHTS[call].at(ROCKS_DB)

    def set(self, origin: Origin, now: Compact64) -> Weight:
        """Set the time of the block, ``minimum_period`` after the last one's or later.

        Raises ``BadOrigin`` unless it is an inherent, ``TimestampInvalid`` for a second time or one that is too early.
        """
        ensure_none(origin)
        if not 0 <= now <= U64_MAX:
            raise ValueError(f"a time is a u64, got {now}")
        if self._did_update.get():
            raise TimestampInvalid(f"the time of block {self.system.block_number} is set already")
        earliest = self.now + self.minimum_period if self.now else 0
        if now < earliest:
            raise TimestampInvalid(f"the time of a block must be at least {earliest}, got {now}")

        self._now.put(now)
        self._did_update.put(True)
        return self.weight("set")

    @property
    def now(self) -> int:
        """The time of the current block, or of the last one until it is set; 0 before the first."""
        return self._now.get() or 0

    def on_finalize(self) -> None:
        """End the block; raises ``TimestampInvalid`` when its time was not set."""
        if not self._did_update.get():
            raise TimestampInvalid(f"the time of block {self.system.block_number} is not set")
        self._did_update.kill()

    def __repr__(self) -> str:
        return f"<Timestamp {self.now}>"
