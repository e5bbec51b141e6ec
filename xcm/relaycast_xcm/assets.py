"""Fungible assets: what messages withdraw, pay fees with and deposit, and the filters that pick among them.

A list of assets is sorted by id and names no id twice; bytes that break this do not decode, as upstream. Assets that
are not fungible are known by name and refused.
"""

import itertools
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from typing import Protocol

import msgspec

from relaycast_trie.exceptions import CodecError
from relaycast_xcm.codec import COMPACT_U32, COMPACT_U128, Codec, Json, ListOf, Struct, Tagged, XcmReader, wrong
from relaycast_xcm.exceptions import AssetNotFound, HoldingWouldOverflow, Overflow, TooExpensive
from relaycast_xcm.location import LOCATION, Location
from relaycast_xcm.primitives import Weight

MAX_ITEMS_IN_ASSETS = 20
"""Assets that one list holds (staging-xcm)."""


class Fungible(msgspec.Struct, frozen=True):
    """An amount, never zero."""

    amount: int

    def __post_init__(self) -> None:
        if not 0 < self.amount < 1 << 128:
            raise ValueError(f"an amount is a u128 above zero, got {self.amount}")


class Asset(msgspec.Struct, frozen=True):
    """Some of what ``id`` names."""

    id: Location
    fun: Fungible

    @classmethod
    def fungible(cls, id: Location, amount: int) -> "Asset":  # noqa: A002 - the field's name
        return cls(id, Fungible(amount))

    @property
    def amount(self) -> int:
        return self.fun.amount

    def __str__(self) -> str:
        return f"{self.amount} of {self.id}"


Assets = tuple[Asset, ...]


def assets(items: Iterable[Asset]) -> Assets:
    """Return the assets as a list in order, those of one id added up."""
    amounts: dict[Location, int] = {}
    for item in items:
        amounts[item.id] = amounts.get(item.id, 0) + item.amount
    return tuple(Asset.fungible(asset_id, amounts[asset_id]) for asset_id in sorted(amounts, key=LOCATION.order))


class WildFungibility(IntEnum):
    """Which assets of an id a wildcard means."""

    FUNGIBLE = 0
    NON_FUNGIBLE = 1


class All(msgspec.Struct, frozen=True):
    """Every asset in holding."""


class AllOf(msgspec.Struct, frozen=True):
    """Every asset of one id."""

    id: Location
    fun: WildFungibility = WildFungibility.FUNGIBLE


class AllCounted(msgspec.Struct, frozen=True):
    """Every asset in holding, up to ``count`` of them."""

    count: int


class AllOfCounted(msgspec.Struct, frozen=True):
    """Every asset of one id, up to ``count`` of them."""

    id: Location
    fun: WildFungibility
    count: int


WildAsset = All | AllOf | AllCounted | AllOfCounted


class Definite(msgspec.Struct, frozen=True):
    """These assets."""

    assets: Assets


class Wild(msgspec.Struct, frozen=True):
    """Whatever the wildcard means."""

    wild: WildAsset


AssetFilter = Definite | Wild


class _AmountCodec(Codec[int]):
    """A compact u128 that is not zero."""

    type_name = COMPACT_U128.type_name

    def encode(self, value: int) -> bytes:
        return COMPACT_U128.encode(value)

    def decode(self, reader: XcmReader) -> int:
        start = reader.offset
        amount = COMPACT_U128.decode(reader)
        if not amount:
            raise CodecError("a fungible asset of amount zero", start)
        return amount

    def to_json(self, value: int) -> Json:
        return COMPACT_U128.to_json(value)

    def from_json(self, data: Json, path: str) -> int:
        amount = COMPACT_U128.from_json(data, path)
        if not amount:
            raise wrong(path, "an amount above zero", data)
        return amount


class _AssetsCodec(ListOf[Asset]):
    """``Assets``: at most 20, sorted by id, each id once."""

    def __init__(self) -> None:
        super().__init__(ASSET, limit=MAX_ITEMS_IN_ASSETS, name="Assets")

    def encode(self, value: Iterable[Asset]) -> bytes:
        listed = tuple(value)
        if not _in_order(listed):
            raise ValueError("assets are sorted by id and name each id once: build them with assets(...)")
        return super().encode(listed)

    def decode(self, reader: XcmReader) -> Assets:
        start = reader.offset
        decoded = super().decode(reader)
        if not _in_order(decoded):
            raise CodecError("assets out of order", start)
        return decoded

    def from_json(self, data: Json, path: str) -> Assets:
        listed = super().from_json(data, path)
        if not _in_order(listed):
            raise ValueError(f"{path}: assets are sorted by id and name each id once")
        return listed


def _in_order(listed: Assets) -> bool:
    ids = [LOCATION.order(asset.id) for asset in listed]
    return all(left < right for left, right in itertools.pairwise(ids))


_FUNGIBILITY: Tagged[Fungible] = Tagged(
    "Fungibility", {0: Struct(Fungible, {"amount": _AmountCodec()}, transparent=True)}, known={1: "NonFungible"}
)
_WILD_FUNGIBILITY: Tagged[WildFungibility] = Tagged("WildFungibility", {}, units=WildFungibility)
_WILD_ASSET: Tagged[WildAsset] = Tagged(
    "WildAsset",
    {
        0: Struct(All, {}),
        1: Struct(AllOf, {"id": LOCATION, "fun": _WILD_FUNGIBILITY}),
        2: Struct(AllCounted, {"count": COMPACT_U32}, transparent=True),
        3: Struct(AllOfCounted, {"id": LOCATION, "fun": _WILD_FUNGIBILITY, "count": COMPACT_U32}),
    },
)
ASSET: Codec[Asset] = Struct(Asset, {"id": LOCATION, "fun": _FUNGIBILITY})
ASSETS: Codec[Assets] = _AssetsCodec()
ASSET_FILTER: Tagged[AssetFilter] = Tagged(
    "AssetFilter",
    {
        0: Struct(Definite, {"assets": ASSETS}, transparent=True),
        1: Struct(Wild, {"wild": _WILD_ASSET}, transparent=True),
    },
)


MAX_ASSETS_INTO_HOLDING = 64
"""Ids that holding has room for (polkadot-sdk runtimes)."""

REF_TIME_PER_SECOND = 1_000_000_000_000
BYTES_PER_MB = 1_024 * 1_024


class Holding:
    """Amounts by asset id."""

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

    def buy_weight(self, weight: Weight, payment: Asset) -> Assets:  # noqa: ARG002 - the protocol's arguments
        raise TooExpensive

    def refund_weight(self, weight: Weight) -> Asset | None:  # noqa: ARG002 - the protocol's argument
        return None

    def settle(self) -> None: ...


class FixedRateTrader(msgspec.Struct):
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
