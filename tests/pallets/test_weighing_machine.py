"""The subscriber's machine with callbacks that declare a weight, and blocks that limit it.

Weights and the limit change on the way, as runtime upgrades change them, also to weights that never fit.
"""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from pallets.block_vectors import ALPHA, PUBLIC
from pallets.subscriber_invariants import ChangesTold, Settled, all_hold, nothing_is_lost
from pallets.test_subscriber_machine import CONFIG, PUBLISHERS, STOCK, Network, networks, publishers, some_keys
from pallets.weighing_world import WeighingWorld
from relaycast_pallets import Policies, SubscribedKey
from relaycast_pallets.subscriber.proof_pass import CallbackMeter
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_xcm.primitives import ParaId, Weight
from searches import examples

weights = st.builds(Weight, st.integers(0, 6), st.integers(0, 6))
limits = st.builds(Weight, st.integers(0, 20), st.integers(0, 20))
HIGHEST = Weight(6, 6)
"""No callback weighs more than this one."""


def callback_passes(world: WeighingWorld) -> int:
    """Return how many passes the callbacks of all keys can end, if no callback weighs more than the limit.

    Such a pass leaves less free than the first callback of the next pass takes: two passes in a row take more than
    the limit, in the dimension that ended the first.
    """
    limit = world.subscriber.config.callback_limit
    whole = sum(
        (world.weigher.callback_weight(publisher, key) for publisher in PUBLISHERS for key in STOCK), Weight.ZERO
    )
    return 2 * (whole.ref_time // (limit.ref_time + 1) + whole.proof_size // (limit.proof_size + 1)) + 2


class WeighingNetwork(Network):
    """Publishers, one subscriber whose callbacks weigh something, and collators honest and not."""

    world: WeighingWorld

    def new_world(self) -> WeighingWorld:
        return WeighingWorld(each=Weight(2, 1), limit=Weight(9, 9), config=CONFIG, policies=self.policies())

    @rule(publisher=publishers, keys=some_keys, weight=weights)
    def declare(self, publisher: ParaId, keys: list[SubscribedKey], weight: Weight) -> None:
        self.world.weigher.declared |= dict.fromkeys(((publisher, key) for key in keys), weight)

    @rule(limit=limits)
    def allow(self, limit: Weight) -> None:
        self.world.allow(limit)

    def teardown(self) -> None:
        """With a limit that every callback fits, every value arrives within the passes that its costs allow."""
        self.world.allow(self.world.subscriber.config.callback_limit.max(HIGHEST))
        self.block(0, b"")
        settled = Settled.of(self.world, share=4)
        for number in range(settled.passes + callback_passes(self.world)):
            self.block(settled.pubsub_bytes, b"%d" % number)
        nothing_is_lost(self.world)
        assert self.world.prune()[1].is_complete


class CarriedWeighingNetwork(WeighingNetwork):
    """The same where the own trie is charged; it is sealed after each block, as chains do."""

    def policies(self) -> Policies:
        return Policies(metering=MeterOwnState())

    @rule(pubsub_bytes=st.sampled_from([0, 800, 2_500, 8_000, 1 << 20]), seed=st.binary(max_size=2))
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        super().block(pubsub_bytes, seed, flood)
        self.world.state.commit()

    def teardown(self) -> None:
        self.world.allow(self.world.subscriber.config.callback_limit.max(HIGHEST))
        for number in range(40 + callback_passes(self.world)):
            self.block(12_000, b"%d" % number)
        nothing_is_lost(self.world)


@pytest.mark.parametrize("machine", [WeighingNetwork, pytest.param(CarriedWeighingNetwork, marks=pytest.mark.slow)])
def test_all_invariants_hold_while_callbacks_are_metered(machine: type[WeighingNetwork]) -> None:
    run_state_machine_as_test(machine, settings=networks(examples(40)))


@given(
    declared=st.dictionaries(st.tuples(st.sampled_from([ALPHA, PUBLIC]), st.sampled_from(STOCK)), weights, min_size=4),
    limit=limits.map(HIGHEST.max),
    rewrites=st.lists(st.sampled_from(STOCK), max_size=6),
    carried=st.booleans(),
    share=st.integers(2, 6),
)
@settings(max_examples=examples(60), deadline=None)
def test_no_update_is_lost_and_none_is_told_twice(
    declared: dict[tuple[ParaId, SubscribedKey], Weight],
    limit: Weight,
    rewrites: list[SubscribedKey],
    carried: bool,
    share: int,
) -> None:
    """Values that move while passes are cut short by bytes and by callbacks, and then stay put."""
    policies = Policies(metering=MeterOwnState()) if carried else Policies()
    world, told = WeighingWorld(limit=limit, config=CONFIG, policies=policies), ChangesTold()
    world.weigher.declared = declared
    for publisher, key in declared:
        world.subscribe(publisher, [*world.handler.wanted.get(publisher, ()), key])
        world.publish(publisher, [key], bytes(40))
    world.seal()
    settled = Settled.of(world, share=share)
    for key in rewrites:
        world.publish(ALPHA, [key], key)
        all_hold(world, world.block(settled.pubsub_bytes, seed=key), told)
        world.state.commit()
    spare = 3 if carried else 1
    for number in range(spare * (Settled.of(world, share=share).passes + callback_passes(world))):
        all_hold(world, world.block(spare * settled.pubsub_bytes, seed=b"%d" % number), told)
        world.state.commit()
    nothing_is_lost(world)


def test_the_machine_finds_a_meter_that_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_self: Any, _weight: Weight) -> None:
        """Count no callback."""

    monkeypatch.setattr(CallbackMeter, "consume", nothing)
    quietly = settings(networks(200), phases=[Phase.generate], database=None, report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(WeighingNetwork, settings=quietly)
