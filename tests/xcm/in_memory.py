"""Handlers that keep everything in dictionaries: a publisher's store and a ledger of accounts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm import Asset, Location, ParaId

Stored = dict[tuple[int, bytes], tuple[bytes, int]]


class PublisherUnknown(RelaycastError):
    """The parachain may not publish."""


class StoreFull(RelaycastError):
    """Nothing more is kept."""


class AccountEmpty(RelaycastError):
    """The account does not have the asset."""


@dataclass
class Store:
    """Keeps what parachains publish, ``most`` entries at most; public ones must be ``registered``."""

    registered: frozenset[int] = frozenset()
    stored: Stored = field(default_factory=dict)
    most: int = 100

    def handle_publish(self, publisher: ParaId, key: bytes, value: bytes, *, ttl: int) -> None:
        if not publisher.is_system and publisher not in self.registered:
            raise PublisherUnknown(publisher)
        if len(self.stored) >= self.most:
            raise StoreFull(self.most)
        self.stored[publisher, key] = (value, ttl)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = dict(self.stored)
        try:
            yield
        except BaseException:
            self.stored = before
            raise


@dataclass
class Ledger:
    """Accounts of locations; ``closed`` ones take no deposit."""

    amounts: dict[tuple[Location, Location], int] = field(default_factory=dict)
    closed: frozenset[Location] = frozenset()

    def withdraw(self, asset: Asset, who: Location) -> None:
        held = self.amounts.get((who, asset.id), 0)
        if held < asset.amount:
            raise AccountEmpty(who, asset)
        self.amounts[who, asset.id] = held - asset.amount

    def deposit(self, asset: Asset, who: Location) -> None:
        if who in self.closed:
            raise AccountEmpty(who, asset)
        self.amounts[who, asset.id] = self.amounts.get((who, asset.id), 0) + asset.amount

    def transfer(self, asset: Asset, source: Location, destination: Location) -> None:
        self.withdraw(asset, source)
        self.deposit(asset, destination)

    def balance(self, who: Location, asset_id: Location) -> int:
        return self.amounts.get((who, asset_id), 0)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = dict(self.amounts)
        try:
            yield
        except BaseException:
            self.amounts = before
            raise
