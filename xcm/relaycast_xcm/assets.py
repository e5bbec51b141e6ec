"""Fungible assets: what messages withdraw, pay fees with and deposit, and the filters that pick among them.

A list of assets is sorted by id and names no id twice; bytes that break this do not decode, as upstream. Assets that
are not fungible are known by name and refused.
"""

import itertools
from collections.abc import Iterable
from enum import IntEnum

import msgspec

from relaycast_trie.exceptions import CodecError
from relaycast_xcm.codec import COMPACT_U32, COMPACT_U128, Codec, Json, XcmReader, wrong
from relaycast_xcm.compound import ListOf, Struct, Tagged
from relaycast_xcm.location import LOCATION, Location

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
