"""Holding: the assets that a message has in hand while it runs, and the price of weight.

Assets enter by withdrawal and leave by deposit or as fees; what a filter takes is gone from holding, no more and no
less.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from msgspec import Struct

from relaycast_xcm.assets import (
    All,
    AllCounted,
    AllOf,
    AllOfCounted,
    Asset,
    AssetFilter,
    Assets,
    Definite,
    WildFungibility,
    assets,
)
from relaycast_xcm.location import Location
from relaycast_xcm.primitives import Weight
from relaycast_xcm.xcm_error import AssetNotFound, HoldingWouldOverflow, Overflow, TooExpensive

MAX_ASSETS_INTO_HOLDING = 64
"""Ids that holding has room for (polkadot-sdk runtimes)."""

REF_TIME_PER_SECOND = 1_000_000_000_000
BYTES_PER_MB = 1_024 * 1_024


class Holding:
    """Amounts by asset id."""

    __slots__ = ("_amounts",)

    def __init__(self) -> None:
        self._amounts: dict[Location, int] = {}

    @property
    def assets(self) -> Assets:
        if not self._amounts:
            return ()
        return assets(Asset.fungible(asset_id, amount) for asset_id, amount in self._amounts.items())

    @property
    def is_empty(self) -> bool:
        return not self._amounts

    def ensure_room(self, incoming: Iterable[Asset]) -> None:
        """Raise ``HoldingWouldOverflow`` for too many ids, ``Overflow`` for an amount above u128."""
        after = dict(self._amounts)
        for asset in incoming:
            after[asset.id] = after.get(asset.id, 0) + asset.amount
            if after[asset.id] >> 128:
                raise Overflow
        if len(after) > MAX_ASSETS_INTO_HOLDING:
            raise HoldingWouldOverflow

    def subsume(self, incoming: Iterable[Asset]) -> None:
        for asset in incoming:
            self._amounts[asset.id] = self._amounts.get(asset.id, 0) + asset.amount

    def try_take(self, asset: Asset) -> bool:
        """Take the whole asset or nothing; return which."""
        held = self._amounts.get(asset.id, 0)
        if held < asset.amount:
            return False
        self._remove(asset)
        return True

    def saturating_take(self, chosen: AssetFilter) -> Assets:
        """Take as much as there is of what the filter picks, and return it."""
        taken = self._picked(chosen)
        for asset in taken:
            self._remove(asset)
        return taken

    def snapshot(self) -> dict[Location, int]:
        return dict(self._amounts)

    def restore(self, amounts: dict[Location, int]) -> None:
        self._amounts = dict(amounts)

    def _picked(self, chosen: AssetFilter) -> Assets:
        if isinstance(chosen, Definite):
            held = ((item, min(item.amount, self._amounts.get(item.id, 0))) for item in chosen.assets)
            return tuple(Asset.fungible(item.id, amount) for item, amount in held if amount)
        wild = chosen.wild
        match wild:
            case All():
                return self.assets
            case AllCounted(count):
                return self.assets[:count]
            case AllOf(asset_id, fun) | AllOfCounted(asset_id, fun):
                most = wild.count if isinstance(wild, AllOfCounted) else 1
                amount = self._amounts.get(asset_id, 0) if fun is WildFungibility.FUNGIBLE and most else 0
                return (Asset.fungible(asset_id, amount),) if amount else ()

    def _remove(self, asset: Asset) -> None:
        left = self._amounts[asset.id] - asset.amount
        if left:
            self._amounts[asset.id] = left
        else:
            del self._amounts[asset.id]


class AssetHandler(Protocol):
    """Moves assets in and out of the accounts that locations own; what it raises is kept as the cause of the failure.

    ``transaction()`` undoes everything inside it when an exception leaves it.
    """

    def withdraw(self, asset: Asset, who: Location) -> None: ...

    def deposit(self, asset: Asset, who: Location) -> None: ...

    def transfer(self, asset: Asset, source: Location, destination: Location) -> None: ...

    def transaction(self) -> AbstractContextManager[None]: ...


class NoAssets:
    """Handles no asset."""

    __slots__ = ()

    def withdraw(self, asset: Asset, who: Location) -> None:  # noqa: ARG002 - the protocol's arguments
        raise AssetNotFound

    def deposit(self, asset: Asset, who: Location) -> None:  # noqa: ARG002 - the protocol's arguments
        raise AssetNotFound

    def transfer(self, asset: Asset, source: Location, destination: Location) -> None:  # noqa: ARG002
        raise AssetNotFound

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()


class AssetTrap(Protocol):
    """Takes the assets that a message leaves in holding."""

    def drop_assets(self, origin: Location, assets: Assets) -> None: ...


class NoTrap:
    """Lets go of what is left: the assets are lost."""

    __slots__ = ()

    def drop_assets(self, origin: Location, assets: Assets) -> None: ...


class WeightTrader(Protocol):
    """Sells weight for one message and buys back what was not used."""

    def buy_weight(self, weight: Weight, payment: Asset) -> Assets:
        """Return what is left of ``payment``; raise ``TooExpensive`` where it does not pay, and keep nothing."""
        ...

    def refund_weight(self, weight: Weight) -> Asset | None:
        """Give back the fee for ``weight`` that was not used; ``None`` if there is nothing to give back.

        Never more than this trader sold: at most the weight bought from it, and the fees paid to it.
        """
        ...

    def settle(self) -> None:
        """Hand the fees to whoever earns them: the message is done."""
        ...


class NoTrader:
    """Sells nothing."""

    __slots__ = ()

    def buy_weight(self, weight: Weight, payment: Asset) -> Assets:  # noqa: ARG002 - the protocol's arguments
        raise TooExpensive

    def refund_weight(self, weight: Weight) -> Asset | None:  # noqa: ARG002 - the protocol's argument
        return None

    def settle(self) -> None: ...


class FixedRateTrader(Struct):
    """Sells weight for one asset at fixed rates (``FixedRateOfFungible``); one object serves one message.

    Nobody earns the fees: they are burned.
    """

    asset_id: Location
    units_per_second: int
    units_per_mb: int = 0
    bought: Weight = Weight.ZERO
    paid: int = 0

    def buy_weight(self, weight: Weight, payment: Asset) -> Assets:
        price = self._price(weight)
        if price and (payment.id != self.asset_id or payment.amount < price):
            raise TooExpensive
        self.bought += weight
        self.paid += price
        left = payment.amount - price
        return (Asset.fungible(payment.id, left),) if left else ()

    def refund_weight(self, weight: Weight) -> Asset | None:
        weight = weight.min(self.bought)
        amount = min(self._price(weight), self.paid)
        self.bought -= weight
        self.paid -= amount
        return Asset.fungible(self.asset_id, amount) if amount else None

    def settle(self) -> None: ...

    def _price(self, weight: Weight) -> int:
        return (
            self.units_per_second * weight.ref_time // REF_TIME_PER_SECOND
            + self.units_per_mb * weight.proof_size // BYTES_PER_MB
        )
