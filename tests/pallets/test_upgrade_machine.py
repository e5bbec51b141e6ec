"""A subscriber whose code changes between two blocks, while a cursor, bases and a cache are stored.

Two machines upgrade at random moments. The changes of one do not show in callbacks, and all invariants hold. The other
changes every policy to every other; invariants that a policy gives up are not checked under it.
"""

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from pallets import test_subscriber_machine as machine
from pallets.subscriber_invariants import (
    cache_is_exact,
    disabled_publishers_are_silent,
    nothing_is_lost,
    omission_is_within_the_slack,
    one_pass_in_both_modes,
    proof_is_what_was_read,
    times_to_live_count_relay_blocks,
)
from relaycast_pallets import Policies
from relaycast_pallets.subscriber import policies as policy
from relaycast_pallets.subscriber.variants import drafts
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from searches import examples

depths = st.sampled_from([2, 5, 8, 20, 64])
value_bounds = st.sampled_from([1, 60, 200, 1_024, 2_048])
orders = st.sampled_from([policy.SystemFirstShuffled(), drafts.SystemFirstNumeric()])
meterings = st.sampled_from([policy.EveryRead(), MeterOwnState()])
all_policies = st.builds(
    Policies,
    order=orders,
    metering=st.sampled_from([policy.EveryRead(), MeterOwnState(), drafts.ValuesOnly()]),
    root_commit=st.sampled_from([policy.WhenPublisherDone(), drafts.AfterFirstKey(), drafts.ForgetUnchanged()]),
    callback=st.sampled_from([policy.ChangedKeys(), drafts.AllKeysOnChange()]),
    cache=st.sampled_from(
        [policy.StructureNodes(), drafts.NoCache(), *map(policy.StructureNodes, (60, 150, 300, 512))]
    ),
)


class UpgradedNetwork(machine.Network):
    """Upgrades after which callbacks are the same as without."""

    @rule(depth=depths)
    def limit_depth(self, depth: int) -> None:
        self.world.upgrade(max_trie_depth=depth)

    @rule(length=value_bounds)
    def bound_values(self, length: int) -> None:
        self.world.upgrade(max_value_length=length)

    @rule(order=orders, metering=meterings)
    def choose(self, order: policy.OrderPolicy, metering: policy.MeteringPolicy) -> None:
        self.world.upgrade(policies=replace(self.world.subscriber.policies, order=order, metering=metering))

    @rule(pubsub_bytes=machine.budgets, seed=machine.seeds, flood=machine.floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        super().block(pubsub_bytes, seed, flood)
        self.world.state.commit()

    def teardown(self) -> None:
        """The last code stays: every value arrives within a few passes that have room for any key."""
        for number in range(40):
            self.block(20_000, b"%d" % number)
        nothing_is_lost(self.world)
        self.block(1 << 20, b"")
        assert not self.world.storage.relay_proof_processing_cursor.exists()


class ReplacedPolicies(UpgradedNetwork):
    """Upgrades of every policy to every other."""

    @rule(chosen=all_policies)
    def choose_all(self, chosen: Policies) -> None:
        self.world.upgrade(policies=chosen)

    @rule(pubsub_bytes=machine.budgets, seed=machine.seeds, flood=machine.floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        world = self.world
        world.seal()
        world.system.initialize(world.number)
        block = world.block(pubsub_bytes, seed=seed, flood=flood, seal=False)
        one_pass_in_both_modes(block)
        assert block.outcome.meter.consumed.all_lte(block.outcome.meter.limit)
        proof_is_what_was_read(world, block)
        times_to_live_count_relay_blocks(world, block)
        disabled_publishers_are_silent(world, block)
        omission_is_within_the_slack(world, block)
        if block.result.is_complete and world.subscriber.policies.root_commit.keeps_updates:
            nothing_is_lost(world)
        world.state.commit()

    def teardown(self) -> None:
        """Policies that hold every invariant come back: the cache is exact again once every path has changed."""
        metering = self.world.subscriber.policies.metering
        charges = MeterOwnState() if metering.charges_own_state else policy.EveryRead()
        self.world.upgrade(policies=Policies(metering=charges))
        super().teardown()
        for publisher in machine.PUBLISHERS:
            if self.world.root_of(publisher) is not None:
                self.world.publish(publisher, machine.STOCK, b"all of them")
        self.block(1 << 20, b"")
        cache_is_exact(self.world)


@pytest.mark.parametrize("network", [UpgradedNetwork, ReplacedPolicies])
def test_invariants_hold_whenever_the_code_changes(network: type[machine.Network]) -> None:
    run_state_machine_as_test(network, settings=machine.networks(examples(60)))
