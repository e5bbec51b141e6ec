"""A machine of everything that can happen to a subscriber: publishers, subscriptions, budgets, calls and liars.

After every block all invariants hold; at the end the relay chain stands still and every value arrives in time.
"""

import gc
import os
import sys
from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from long_hauls import soak
from pallets.block_vectors import ALPHA, BETA, OTHER_PUBLIC, PUBLIC, keys, path_key
from pallets.subscriber_invariants import ChangesTold, Settled, all_hold, nothing_is_lost, slack_of
from pallets.subscriber_world import MOCK, World
from relaycast_pallets import Origin, Panic, ParachainInherentData, Policies, SubscribedKey, Subscriber
from relaycast_pallets.frame.state import StateDump
from relaycast_pallets.subscriber import storage as subscriber_storage
from relaycast_pallets.subscriber.plan import SubscriptionChange
from relaycast_pallets.subscriber.variants.drafts import AfterFirstKey, ForgetUnchanged, SystemFirstNumeric
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_trie import node_codec, warm_up
from relaycast_xcm.primitives import ParaId
from searches import examples

PUBLISHERS = [ALPHA, BETA, PUBLIC, OTHER_PUBLIC]
CRAFTED = [path_key(first + second + third) for first in ("0", "1") for second in ("00", "01", "10") for third in "01f"]
LAST_NIBBLES = [SubscribedKey(bytes(31) + bytes([last])) for last in (0x00, 0x01, 0x10, 0x1F)]
STOCK = [*CRAFTED, *LAST_NIBBLES, *keys(14)]
CONFIG = replace(MOCK, max_value_length=200)

publishers = st.sampled_from(PUBLISHERS)
some_keys = st.lists(st.sampled_from(STOCK), min_size=1, max_size=8)
values = st.sampled_from(
    [b"", b"same", bytes(5), bytes(23), bytes(24), bytes(31), b"\x01" * 40, b"\x02" * 40, bytes(200)]
)
budgets = st.sampled_from([0, 1, 400, 800, 1_500, 2_500, 4_000, 8_000, 1 << 20])
floods = st.sampled_from([0, 0, 0, 400, 1_500, 4_000])
"""Bytes of a message that takes its place in a block, where it fits."""

seeds = st.binary(max_size=2)
ROOT = Origin.root()


class Network(RuleBasedStateMachine):
    """Publishers, one subscriber, and collators honest and not."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.new_world()
        self.told = ChangesTold()
        for publisher in PUBLISHERS[:3]:
            self.world.subscribe(publisher, STOCK[::3])

    def new_world(self) -> World:
        return World(config=CONFIG, policies=self.policies())

    def policies(self) -> Policies:
        return Policies()

    @rule(publisher=publishers, written=some_keys, value=values, ttl=st.integers(0, 3))
    def publish(self, publisher: ParaId, written: list[SubscribedKey], value: bytes, ttl: int) -> None:
        self.world.publish(publisher, written, value, ttl=ttl)

    @rule(publisher=publishers, value=values)
    def publish_everything(self, publisher: ParaId, value: bytes) -> None:
        self.world.publish(publisher, STOCK, value)

    @rule(publisher=publishers, deleted=some_keys)
    def delete(self, publisher: ParaId, deleted: list[SubscribedKey]) -> None:
        self.world.delete(publisher, deleted)

    @rule(publisher=publishers)
    def delete_everything(self, publisher: ParaId) -> None:
        self.world.delete(publisher, STOCK)

    @rule(publisher=publishers, wanted=some_keys)
    def subscribe(self, publisher: ParaId, wanted: list[SubscribedKey]) -> None:
        self.world.subscribe(publisher, wanted)

    @rule(publisher=publishers, wanted=some_keys)
    def subscribe_more(self, publisher: ParaId, wanted: list[SubscribedKey]) -> None:
        self.world.subscribe(publisher, [*self.world.handler.wanted.get(publisher, ()), *wanted])

    @rule(publisher=publishers)
    def drop(self, publisher: ParaId) -> None:
        self.world.subscribe(publisher, [])

    @rule(publisher=publishers)
    def clear_cache(self, publisher: ParaId) -> None:
        if self.world.storage.keeps_anything_of(publisher):
            self.world.subscriber.clear_publisher_cache(ROOT, publisher)
            self.told.forget(publisher)
            assert not self.world.cached(publisher)

    @rule(publisher=publishers)
    def clear_root(self, publisher: ParaId) -> None:
        if publisher in self.world.storage.previous_roots():
            self.world.subscriber.clear_stored_roots(ROOT, publisher)
            self.told.forget(publisher)

    @precondition(lambda self: self.world.storage.disabled_publishers.count())
    @rule()
    def enable(self) -> None:
        for publisher in [publisher for publisher, _ in self.world.storage.disabled_publishers.items()]:
            self.world.subscriber.enable_publisher(ROOT, publisher)

    @rule()
    def restart(self) -> None:
        """Forget all that is not in storage."""
        world = self.world
        config, policies = world.subscriber.config, world.subscriber.policies
        world.subscriber = Subscriber(world.system, world.handler, config, policies=policies)
        world.parachain.subscriber = world.subscriber
        world.storage = world.subscriber.storage

    @rule()
    def put_away(self) -> None:
        """Load what both states put away into the same states: the pallet goes on from its storage."""
        before = self.world.everything()
        for state in (self.world.relay, self.world.state):
            state.load(msgspec.msgpack.decode(msgspec.msgpack.encode(state.dump()), type=StateDump))
        assert self.world.everything() == before

    @rule(pubsub_bytes=budgets, seed=seeds, flood=floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        self.told.note(self.world)
        self.world.seal()
        for publisher, view in self.world.subscriber.plan().views.items():
            if view.change in {SubscriptionChange.REMOVED, SubscriptionChange.NEW}:
                self.told.forget(publisher)
        self.world.system.initialize(self.world.number)
        block = self.world.block(pubsub_bytes, seed=seed, flood=flood, seal=False)
        all_hold(self.world, block, self.told)

    @rule(pubsub_bytes=budgets, seed=seeds, chance=st.randoms(use_true_random=False))
    def dishonest_block(self, pubsub_bytes: int, seed: bytes, chance: Random) -> None:
        """A tampered inherent is refused without a trace, or it was an omission inside the slack."""
        world = self.world
        world.seal()
        honest, _ = world.prune(pubsub_bytes, seed=seed)
        lie = tampered(honest, sorted(world.collect().nodes), chance)
        if set(lie.relay_chain_state) == set(honest.relay_chain_state):
            return
        before, calls, told = world.everything(), len(world.handler.calls), dict(world.handler.values)
        try:
            with world.state.transaction():
                outcome = world.parachain.set_validation_data(lie, seed)
                raise Accepted
        except Panic:
            assert world.everything() == before
        except Accepted:
            del world.handler.calls[calls:]
            world.handler.deleted.clear()
            world.handler.values = told
            assert set(lie.relay_chain_state) < set(honest.relay_chain_state)
            assert not outcome.result.is_complete
            assert not outcome.meter.can_consume(slack_of(world, outcome.result))

    def teardown(self) -> None:
        """The relay chain stands still: every value arrives within the passes that its cost allows."""
        self.block(0, b"")
        settled = Settled.of(self.world, share=4)
        for number in range(settled.passes):
            self.block(settled.pubsub_bytes, b"%d" % number)
        nothing_is_lost(self.world)
        self.block(1 << 20, b"")
        assert not self.world.storage.relay_proof_processing_cursor.exists()


class NumericNetwork(Network):
    """The same with publishers in the order of their numbers."""

    def policies(self) -> Policies:
        return Policies(order=SystemFirstNumeric())


class CarriedNetwork(Network):
    """The same where the own trie is charged; it is sealed after each block, as chains do."""

    def policies(self) -> Policies:
        return Policies(metering=MeterOwnState())

    @rule(pubsub_bytes=budgets, seed=seeds, flood=floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        super().block(pubsub_bytes, seed, flood)
        self.world.state.commit()

    def teardown(self) -> None:
        """Old nodes may have to go first: with room for any key, a few passes for each publisher will do."""
        for number in range(40):
            self.block(12_000, b"%d" % number)
        nothing_is_lost(self.world)
        self.block(1 << 20, b"")
        assert not self.world.storage.relay_proof_processing_cursor.exists()


class ForgetfulNetwork(Network):
    """A wrong policy, to see that the machine finds it."""

    def policies(self) -> Policies:
        return Policies(root_commit=ForgetUnchanged())


class LosingNetwork(Network):
    """Another one."""

    def policies(self) -> Policies:
        return Policies(root_commit=AfterFirstKey())


class Accepted(Exception):
    """Takes a block back that was not refused."""


def tampered(honest: ParachainInherentData, collected: list[bytes], chance: Random) -> ParachainInherentData:
    """Return the inherent with nodes left out, put in, put in the place of others, cut or given twice."""
    nodes = list(honest.relay_chain_state)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(nodes)) if nodes else 0
        match chance.randrange(6):
            case 0 | 1 if nodes:
                del nodes[at]
            case 2 if nodes:
                nodes[at] = chance.choice([b"junk", *collected])
            case 3 if nodes:
                nodes[at] = nodes[at][:-1]
            case 4 if nodes:
                nodes = nodes[: len(nodes) // 2]
            case _:
                nodes.insert(at, chance.choice([b"", b"junk", *collected]))
    return replace(honest, relay_chain_state=tuple(nodes))


def networks(usual: int) -> settings:
    """Return ``usual`` networks in the dev profile, five times as many in ci."""
    many = usual * (5 if os.environ.get("HYPOTHESIS_PROFILE") == "ci" else 1)
    return settings(
        max_examples=many,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


SLOWER = [pytest.param(it, marks=pytest.mark.slow) for it in (NumericNetwork, CarriedNetwork)]


@pytest.mark.parametrize("machine", [Network, *SLOWER])
def test_all_invariants_hold_whatever_happens(machine: type[Network]) -> None:
    run_state_machine_as_test(machine, settings=networks(examples(60)))


@pytest.mark.parametrize("machine", [ForgetfulNetwork, LosingNetwork])
def test_the_machine_finds_what_is_wrong(machine: type[Network]) -> None:
    quietly = settings(networks(200), phases=[Phase.generate], database=None, report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=quietly)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Network, NumericNetwork, CarriedNetwork])
def test_all_invariants_hold_over_many_steps(machine: type[Network]) -> None:
    """70 networks of up to 60 steps each: more than 2,000 in all."""
    run_state_machine_as_test(machine, settings=settings(networks(70), stateful_step_count=60))


@soak(rounds=40)
@pytest.mark.parametrize("machine", [Network, NumericNetwork, CarriedNetwork])
def test_all_invariants_hold_in_many_networks(machine: type[Network], soak_round: int) -> None:
    chosen = settings(networks(200), stateful_step_count=60, database=None)
    run_state_machine_as_test(seed(soak_round)(machine), settings=chosen)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_all_invariants_hold_over_one_long_life(number: int) -> None:
    live_long(number)


@soak(rounds=100)
def test_all_invariants_hold_over_many_long_lives(soak_round: int) -> None:
    live_long(1_000 + soak_round)


def live_long(number: int) -> None:
    """Take 2,500 steps with one network that is never made anew."""
    chance, network = Random(number), Network()
    for _ in range(2_500):
        network.world.handler.calls.clear()
        publisher, some = chance.choice(PUBLISHERS), chance.sample(STOCK, chance.randrange(1, 8))
        match chance.randrange(12):
            case 0 | 1 | 2:
                network.publish(publisher, some, chance.choice([b"same", chance.randbytes(chance.choice([5, 40]))]), 0)
            case 3:
                network.delete(publisher, some)
            case 4 if chance.random() < 0.3:
                network.subscribe(publisher, some)
            case 5 if chance.random() < 0.3:
                network.subscribe_more(publisher, some)
            case 6 if network.world.storage.disabled_publishers.count():
                network.enable()
            case 7:
                network.restart()
            case _:
                network.block(chance.choice([0, 800, 1_500, 2_500, 4_000, 1 << 20]), chance.randbytes(1))
    network.teardown()


@given(
    written=st.dictionaries(st.sampled_from(STOCK), values, min_size=1),
    rewritten=st.dictionaries(st.sampled_from(STOCK), st.none() | values, max_size=6),
    wanted=some_keys,
    share=st.integers(2, 8),
)
def test_a_change_between_two_tries_is_told_exactly(
    written: dict[SubscribedKey, bytes],
    rewritten: dict[SubscribedKey, bytes | None],
    wanted: list[SubscribedKey],
    share: int,
) -> None:
    """Exactly the subscribed entries that differ between two tries are delivered, in one pass as in many."""
    world = World(config=replace(CONFIG, max_trie_depth=64))
    world.subscribe(ALPHA, wanted)
    for key, value in written.items():
        world.publish(ALPHA, [key], value)
    world.block()
    before = {key: world.entry(ALPHA, key) for key in wanted}
    for key, rewrite in rewritten.items():
        if rewrite is None:
            world.delete(ALPHA, [key])
        else:
            world.publish(ALPHA, [key], rewrite)
    changed = {key for key in wanted if world.entry(ALPHA, key) not in {None, before[key]}}
    world.seal()
    settled, told = Settled.of(world, share=share), []
    for _ in range(settled.passes):
        told += [key for _, key in world.block(settled.pubsub_bytes, seal=False).called]
    assert sorted(told) == sorted(changed)


@pytest.mark.slow
def test_ten_thousand_blocks_take_no_more_memory_than_a_thousand() -> None:
    """Counted in allocations. Beside what is remembered of pure functions, within its bounds, nothing grows."""
    warm_up()  # the array engine may be loaded in the middle otherwise
    world, chance = World(config=CONFIG), Random(1)
    for publisher in PUBLISHERS[:2]:
        world.subscribe(publisher, STOCK)
        world.publish(publisher, STOCK, bytes(40))
    sizes: list[int] = []
    for number in range(10_000):
        for publisher in PUBLISHERS[:2]:
            world.publish(publisher, [chance.choice(STOCK)], chance.randbytes(40))
        world.system.initialize(number)
        assert world.block(seed=b"seed").result.is_complete
        world.state.commit()
        world.handler.calls.clear()
        if number % 1_000 == 999:
            node_codec.KNOWN_NODES.clear()
            subscriber_storage._OF_NODE_HASHES.digest.cache_clear()  # type: ignore[attr-defined]
            gc.collect()
            sizes.append(sys.getallocatedblocks())
    assert max(sizes[1:]) < sizes[0] + 1_000, sizes
