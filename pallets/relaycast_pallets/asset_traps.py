"""Asset traps: what messages left in holding, by a hash of who left it and what it is (pallet-xcm).

Trapped assets belong to no account. A chain lets their origin claim them; ``ClaimAsset`` is not executed here.
"""

from typing import ClassVar

from relaycast_pallets.frame.system import BYTES32, IDENTITY, U32, Event, StorageMap, System
from relaycast_trie import blake2_256
from relaycast_xcm import Assets, Location
from relaycast_xcm.assets import ASSETS
from relaycast_xcm.location import XCM_VERSION
from relaycast_xcm.primitives import H256


class AssetsTrapped(Event, frozen=True):
    """A message of ``origin`` left ``assets`` in holding; ``hash`` names the trap."""

    pallet: ClassVar[str] = "XcmPallet"
    hash: H256
    origin: Location
    assets: str
    """Amounts and ids, as in ``5 of Here``."""


class AssetTraps:
    """Counts, for each origin and list of assets, how often the one left the other behind."""

    PALLET = "XcmPallet"

    def __init__(self, system: System) -> None:
        self.system = system
        self.count = StorageMap(system.state, self.PALLET, "AssetTraps", (IDENTITY, BYTES32), U32)

    def drop_assets(self, origin: Location, assets: Assets) -> None:
        """Trap what is left of a message."""
        trap = trap_of(origin, assets)
        self.count.insert(trap, (self.count.get(trap) or 0) + 1)
        self.system.deposit_event(AssetsTrapped(trap, origin, ", ".join(map(str, assets))))


def trap_of(origin: Location, assets: Assets) -> bytes:
    """Return the key of a trap: the hash of the origin and of ``VersionedAssets::V5``."""
    return blake2_256(origin.encode() + bytes([XCM_VERSION]) + ASSETS.encode(assets))
