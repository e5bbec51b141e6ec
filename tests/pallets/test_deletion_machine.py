"""A reader that is told of deletions knows what is published, whatever happens on the way (a model: ``ToldReader``).

Random networks compare single blocks with the specification, also under other policies and with weights.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from long_hauls import soak
from pallets.subscriber_invariants import Wanted
from pallets.subscriber_mutants import tell_every_absent_key
from pallets.subscriber_world import World
from pallets.test_subscriber_machine import (
    CarriedNetwork,
    Network,
    budgets,
    floods,
    networks,
    publishers,
    seeds,
)
from pallets.test_upgrade_machine import UpgradedNetwork
from relaycast_pallets import Policies
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.subscriber.policies import IgnoreDeletions
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions, delivered_of
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_xcm.primitives import ParaId
from searches import examples


@dataclass
class ToldReader:
    """One reader's values of followed keys that were delivered and not deleted, independent of what the pallet records.

    ``begin`` before each block, ``hear`` after it. ``uncertain`` are keys that may have been delivered while deletions
    were silent: one deletion of each may be told, or not. Among them are all that the pallet has not dealt with since
    it was told to forget a root: deletions being silent, nothing else says that they were delivered.
    """

    values: dict[Wanted, bytes] = field(default_factory=dict)
    uncertain: set[Wanted] = field(default_factory=set)
    tells: bool = True

    def begin(self, world: World) -> None:
        """Forget keys that are followed no more; a disabled publisher is followed as it was."""
        for wanted in [*self.values, *self.uncertain]:
            publisher, key = wanted
            keys = world.handler.wanted.get(publisher) or ()
            if not keys or (key not in keys and publisher not in world.storage.disabled_publishers):
                self.values.pop(wanted, None)
                self.uncertain.discard(wanted)

    def hear(self, world: World) -> None:
        """Apply a block's callbacks; asserts that each deletion is of a delivered key that is absent."""
        delivered = world.subscriber.delivered
        assert delivered.deletions == world.handler.deleted
        assert self.tells or not delivered.deletions
        world.handler.deleted.clear()
        told = [update[:2] for update in delivered.updates] + delivered.deletions
        assert len(set(told)) == len(told), "a key is told twice in one block"
        for publisher, key, entry in delivered.updates:
            self.values[publisher, key] = entry.value
            self.uncertain.discard((publisher, key))
        for wanted in delivered.deletions:
            assert world.entry(*wanted) is None, f"{wanted} is there, and told as deleted"
            assert wanted in self.values or wanted in self.uncertain, f"{wanted} is told as deleted and never was told"
            self.values.pop(wanted, None)
            self.uncertain.discard(wanted)

    def switch(self, world: World, *, tells: bool) -> None:
        """Be told of deletions from now on, or no more."""
        if tells and not self.tells:
            every = {(publisher, key) for publisher, keys in world.handler.wanted.items() for key in keys}
            dealt_with = dealt_with_by(world)
            self.uncertain = {
                it for it in every if it not in self.values or it not in dealt_with or world.entry(*it) is None
            }
        self.tells = tells

    def knows_everything(self, world: World) -> None:
        """Assert, while the relay chain does not change, that the reader has exactly what is published."""
        published: dict[Wanted, bytes] = {}
        for publisher, keys in world.handler.wanted.items():
            for key in keys:
                entry = world.entry(publisher, key)
                if entry is not None:
                    published[publisher, key] = PublishedEntry.decode(entry).value
        seen = {it: value for it, value in self.values.items() if it[0] not in world.storage.disabled_publishers}
        stale = seen.keys() - published.keys() - self.uncertain
        assert not (self.tells and stale), f"{stale} are deleted, and the reader does not know"
        for it, value in published.items():
            assert it[0] in world.storage.disabled_publishers or seen.get(it) == value


def dealt_with_by(world: World) -> set[Wanted]:
    """Return the keys that count as delivered when deletions are told from now on."""
    storage = world.storage
    return {
        (publisher, key)
        for publisher in storage.digests()
        for key in delivered_of(storage, publisher, storage.subscribed_keys.get(publisher) or ())
    }


class ToldNetwork(Network):
    """The network of the subscriber's machine with a reader that is told."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = ToldReader(tells=self.policies().deletion.notifies)

    def policies(self) -> Policies:
        return Policies(deletion=NotifyDeletions())

    @rule(pubsub_bytes=budgets, seed=seeds, flood=floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        self.reader.begin(self.world)
        super().block(pubsub_bytes, seed, flood)
        self.reader.hear(self.world)

    @rule(publisher=publishers)
    def tidy_up(self, publisher: ParaId) -> None:
        """The handler drops a publisher for one block alone."""
        wanted = self.world.handler.wanted.get(publisher)
        if wanted:
            self.world.subscribe(publisher, [])
            self.block(0, b"")
            self.world.subscribe(publisher, wanted)

    def teardown(self) -> None:
        super().teardown()
        self.reader.knows_everything(self.world)


class ToldCarriedNetwork(ToldNetwork, CarriedNetwork):
    """The same where the own trie is charged."""

    def policies(self) -> Policies:
        return Policies(metering=MeterOwnState(), deletion=NotifyDeletions())


class SwitchedNetwork(ToldNetwork):
    """Runtime upgrades tell of deletions, and cease to."""

    def policies(self) -> Policies:
        return Policies(deletion=IgnoreDeletions())

    @rule()
    def tell(self) -> None:
        self.world.upgrade(policies=Policies(deletion=NotifyDeletions()))
        self.reader.switch(self.world, tells=True)

    @rule()
    def tell_no_more(self) -> None:
        self.world.upgrade(policies=Policies(deletion=IgnoreDeletions()))
        self.reader.switch(self.world, tells=False)
        assert not list(self.world.storage.delivered_keys.items())


class ToldUpgradedNetwork(ToldNetwork, UpgradedNetwork):
    """Depth limits, value bounds, orders and meterings change on the way; deletions are told all along."""

    def policies(self) -> Policies:
        return Policies(deletion=NotifyDeletions())


MACHINES = (ToldNetwork, ToldCarriedNetwork, ToldUpgradedNetwork, SwitchedNetwork)


@pytest.mark.parametrize(
    "machine",
    [ToldNetwork, ToldCarriedNetwork, SwitchedNetwork, pytest.param(ToldUpgradedNetwork, marks=pytest.mark.slow)],
)
def test_a_reader_that_is_told_of_deletions_knows_what_is_published(machine: type[Network]) -> None:
    run_state_machine_as_test(machine, settings=networks(examples(40)))


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_a_reader_that_is_told_knows_what_is_published_over_many_steps(machine: type[Network]) -> None:
    run_state_machine_as_test(machine, settings=settings(networks(40), stateful_step_count=60))


@soak(rounds=20)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_reader_that_is_told_knows_what_is_published_in_many_networks(
    machine: type[Network], soak_round: int
) -> None:
    chosen = settings(networks(150), stateful_step_count=60, database=None)
    run_state_machine_as_test(seed(soak_round)(machine), settings=chosen)


def test_the_model_finds_a_pallet_that_tells_every_absent_key(monkeypatch: pytest.MonkeyPatch) -> None:
    tell_every_absent_key(monkeypatch)
    quietly = settings(networks(200), phases=[Phase.generate], database=None, report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(ToldNetwork, settings=quietly)
