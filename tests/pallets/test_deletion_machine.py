"""A reader that is told of deletions knows what is published, whatever happens on the way (a model: ``ToldReader``)."""

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from long_hauls import soak
from pallets.subscriber_mutants import tell_every_absent_key
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
from pallets.test_weighing_machine import WeighingNetwork
from pallets.told_reader import ToldReader, both_modes_tell_the_same
from relaycast_pallets import Policies
from relaycast_pallets.subscriber.policies import (
    AllKeysOnChange,
    EverythingCarried,
    NoCache,
    Silent,
    StructureNodes,
    SystemFirstNumeric,
    Told,
    ValuesOnly,
)
from relaycast_xcm.primitives import ParaId
from searches import examples


class ToldNetwork(Network):
    """The network of the subscriber's machine with a reader that is told."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = ToldReader(tells=self.policies().deletion.tells)

    def policies(self) -> Policies:
        return Policies(deletion=Told())

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
        return Policies(metering=EverythingCarried(), deletion=Told())


class SwitchedNetwork(ToldNetwork):
    """Runtime upgrades tell of deletions, and cease to."""

    def policies(self) -> Policies:
        return Policies(deletion=Silent())

    @rule()
    def tell(self) -> None:
        self.world.upgrade(policies=Policies(deletion=Told()))
        self.reader.switch(self.world, tells=True)

    @rule()
    def tell_no_more(self) -> None:
        self.world.upgrade(policies=Policies(deletion=Silent()))
        self.reader.switch(self.world, tells=False)
        assert not list(self.world.storage.delivered_keys.items())


class ToldWeighingNetwork(ToldNetwork, WeighingNetwork):
    """Callbacks weigh something, those that tell of deletions as well."""

    def policies(self) -> Policies:
        return Policies(deletion=Told())


class ToldUpgradedNetwork(ToldNetwork, UpgradedNetwork):
    """Depth limits, value bounds, orders and meterings change on the way; deletions are told all along."""

    def policies(self) -> Policies:
        return Policies(deletion=Told())


class LooseNetwork(ToldNetwork):
    """Policies under which other invariants do not hold; deletions are told all the same."""

    CHOSEN: Policies

    def policies(self) -> Policies:
        return self.CHOSEN

    @rule(pubsub_bytes=budgets, seed=seeds, flood=floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        self.reader.begin(self.world)
        self.world.seal()
        self.world.system.initialize(self.world.number)
        both_modes_tell_the_same(self.world.block(pubsub_bytes, seed=seed, flood=flood, seal=False))
        self.reader.hear(self.world)

    @precondition(lambda self: False)
    @rule()
    def dishonest_block(self) -> None:
        """Lies are refused under the default policies."""

    def teardown(self) -> None:
        for number in range(4):
            self.block(1 << 20, b"%d" % number)
        self.reader.knows_everything(self.world)


class Uncached(LooseNetwork):
    CHOSEN = Policies(cache=NoCache(), order=SystemFirstNumeric(), deletion=Told())


class HalfCached(LooseNetwork):
    CHOSEN = Policies(cache=StructureNodes(100), deletion=Told())


class Eager(LooseNetwork):
    CHOSEN = Policies(callback=AllKeysOnChange(), deletion=Told())


class FreeNodes(LooseNetwork):
    CHOSEN = Policies(metering=ValuesOnly(), deletion=Told())


MACHINES = (
    ToldNetwork,
    ToldCarriedNetwork,
    ToldWeighingNetwork,
    ToldUpgradedNetwork,
    SwitchedNetwork,
    Uncached,
    HalfCached,
    Eager,
)
"""The machines that also run for long."""


QUICK = {ToldNetwork, ToldCarriedNetwork, SwitchedNetwork, HalfCached}


@pytest.mark.parametrize(
    "machine", [it if it in QUICK else pytest.param(it, marks=pytest.mark.slow) for it in (*MACHINES, FreeNodes)]
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
