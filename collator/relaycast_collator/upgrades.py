"""Runtime upgrades: from a relay block on, a chain runs other code, with other constants, policies or subscriptions.

Law: code changes between two blocks. The first block of the new code begins with its migration and deposits
``RuntimeUpgraded``; the collator prunes for that block from the migrated state. If the block panics, the next one
migrates.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from msgspec import Struct, field

from relaycast_collator.latest_values import LatestValues
from relaycast_pallets.broadcaster.config import BroadcasterConfig
from relaycast_pallets.broadcaster.pallet import Broadcaster
from relaycast_pallets.frame.system import RuntimeUpgraded
from relaycast_pallets.parachain_system.pallet import ParachainSystem
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES, Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.variants.migration import migrate
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.checkpoint import CheckpointRefused

Config = TypeVar("Config", BroadcasterConfig, SubscriberConfig)

FIRST_VERSION = 1
"""The ``spec_version`` before the first upgrade; each upgrade adds one."""


class RelayUpgrade(Struct, frozen=True, kw_only=True):
    """A relay chain's new code, from block ``at`` on: ``constants`` of ``BroadcasterConfig`` by name."""

    at: int
    constants: Mapping[str, int] = field(default_factory=dict)


class ParachainUpgrade(Struct, frozen=True, kw_only=True):
    """A parachain's new code, from its first block on relay block ``at`` or a later one; ``None`` stays as it is.

    ``constants`` are those of ``SubscriberConfig`` by name; ``subscriptions`` replace all that there were. Callbacks
    for keys of the publishers in ``weights`` declare these from then on.
    """

    at: int
    constants: Mapping[str, object] = field(default_factory=dict)
    policies: Policies | None = None
    budget: BudgetPolicy | None = None
    subscriptions: Mapping[ParaId, Sequence[SubscribedKey]] | None = None
    weights: Mapping[ParaId, Weight] = field(default_factory=dict)


class _TakenBack(Exception):
    """Ends a transaction that is rolled back."""


class RelayUpgrades:
    """The upgrades of a relay chain in their order; the number of its block decides which of them hold."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self.scheduled: list[RelayUpgrade] = []
        self._broadcaster, self._first = broadcaster, broadcaster.config
        self._done = 0

    def begin_block(self, number: int) -> None:
        """Let block ``number``, which has begun, run the code that is due."""
        while self._done < len(self.scheduled) and self.scheduled[self._done].at <= number:
            self._install(self.scheduled[self._done])
            self._broadcaster.system.deposit_event(RuntimeUpgraded(FIRST_VERSION + self._done))

    def load(self, number: int) -> None:
        """Run the code of block ``number``, whichever ran before."""
        if not self.scheduled:
            return
        self._broadcaster.config, self._done = self._first, 0
        for upgrade in self.scheduled:
            if upgrade.at <= number:
                self._install(upgrade)

    def timeline(self, more: Sequence[RelayUpgrade] = ()) -> list[tuple[int, BroadcasterConfig]]:
        """Return the configurations with the relay block from which each holds, also after ``more`` upgrades."""
        return configs(self._first, [*self.scheduled, *more])

    def _install(self, upgrade: RelayUpgrade) -> None:
        self._broadcaster.config = replace(self._broadcaster.config, **upgrade.constants)  # type: ignore[arg-type]
        self._done += 1


class ParachainUpgrades:
    """The upgrades of a parachain in their order, and how many of them are done."""

    def __init__(self, system: ParachainSystem, kept: LatestValues) -> None:
        self.scheduled: list[ParachainUpgrade] = []
        self.built = 0
        """Number of upgrades whose migration is in the state of the last block."""

        self._system, self._kept, self._subscriber = system, kept, system.subscriber
        self._first = self._subscriber.config, self._subscriber.policies, system.budget
        self._running = 0
        self._stored_by = self._subscriber.policies

    @property
    def policies(self) -> Policies:
        """The policies after all upgrades that are scheduled."""
        chosen = [it.policies for it in self.scheduled if it.policies is not None]
        return chosen[-1] if chosen else self._first[1]

    @property
    def pending(self) -> list[ParachainUpgrade]:
        """The upgrades whose code does not run yet."""
        return self.scheduled[self._running :]

    @property
    def kept_fewer_nodes(self) -> bool:
        """Whether code before the running one left nodes out of the cache."""
        before = [self._first[1], *(it.policies for it in self.scheduled[: self._running] if it.policies is not None)]
        return any(not policies.cache.keeps(bytes(MAX_NODE_BYTES)) for policies in before[:-1])

    def timeline(self, more: Sequence[ParachainUpgrade] = ()) -> list[tuple[int, SubscriberConfig]]:
        """Return the configurations with the relay block from which each holds, also after ``more`` upgrades."""
        return configs(self._first[0], [*self.scheduled, *more])

    def install(self, relay_parent: int) -> None:
        """Run the code that is due on relay block ``relay_parent`` from now on; storage stays as it is."""
        while self._running < len(self.scheduled) and self.scheduled[self._running].at <= relay_parent:
            self._install(self.scheduled[self._running])

    @contextmanager
    def migrated(self) -> Iterator[None]:
        """Show storage as it is after the next block's migration, then roll it back."""
        if self._running == self.built:
            yield
            return
        with suppress(_TakenBack), self._subscriber.system.state.transaction():
            migrate(self._subscriber, self._stored_by)
            yield
            raise _TakenBack

    def begin_block(self) -> None:
        """Migrate the storage in the block that has begun, if its code is new."""
        system = self._subscriber.system
        for version in range(self.built, self._running):
            system.deposit_event(RuntimeUpgraded(FIRST_VERSION + version + 1))
        if self._running > self.built:
            system.meter.consume(migrate(self._subscriber, self._stored_by))

    def end_block(self) -> None:
        """Note that a block of the code that runs was built."""
        self.built, self._stored_by = self._running, self._subscriber.policies

    def load(self, built: int) -> None:
        """Run the code of the last block, after ``built`` upgrades; raises ``CheckpointRefused``."""
        if built > len(self.scheduled):
            raise CheckpointRefused(f"got {built} runtime upgrades, expected at most {len(self.scheduled)}")
        if not self.scheduled:
            return
        self._subscriber.config, self._subscriber.policies, self._system.budget = self._first
        self._running, wanted, weights = 0, self._kept.wanted, dict(self._kept.weights)
        for upgrade in self.scheduled[:built]:
            self._install(upgrade)
        self._kept.wanted, self._kept.weights = wanted, weights
        self.end_block()

    def _install(self, upgrade: ParachainUpgrade) -> None:
        subscriber = self._subscriber
        subscriber.config = replace(subscriber.config, **upgrade.constants)  # type: ignore[arg-type]
        if upgrade.policies is not None:
            subscriber.policies = upgrade.policies
        if upgrade.budget is not None:
            self._system.budget = upgrade.budget
        if upgrade.subscriptions is not None:
            self._kept.wanted = {publisher: list(keys) for publisher, keys in upgrade.subscriptions.items() if keys}
        for publisher, weight in upgrade.weights.items():
            self._kept.declare(publisher, self._kept.wanted.get(publisher, ()), weight)
        self._running += 1


def configs(first: Config, upgrades: Sequence[RelayUpgrade] | Sequence[ParachainUpgrade]) -> list[tuple[int, Config]]:
    """Return the configurations with the relay blocks from which they hold, ``first`` from block 0 on.

    ``ValueError`` for a block before the one of an earlier upgrade, and what the configuration refuses.
    """
    found = [(0, first)]
    for upgrade in upgrades:
        at, config = found[-1]
        if upgrade.at < at:
            raise ValueError(f"upgrades come in the order of their blocks: at is at least {at}, got {upgrade.at}")
        found.append((upgrade.at, replace(config, **upgrade.constants)))  # type: ignore[arg-type]
    return found
