"""The metering that charges all that a block carries: it covers the own trie, uses stay exact, sweeps are spread."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from pallets.block_vectors import ALPHA, BETA, PUBLIC, keys
from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact, nothing_is_lost
from pallets.subscriber_world import MOCK, Block, World
from relaycast_pallets import Origin, Policies, State
from relaycast_pallets.subscriber.node_cache import marked_placements
from relaycast_pallets.subscriber.policies import EveryRead
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState, RefCountedNodes
from relaycast_trie.plain.trie_update import witness
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight

CARRIED = Policies(metering=MeterOwnState())


def carried_world(policies: Policies = CARRIED) -> World:
    """Return a world whose relay chain can be looked back on, since keys may be of old roots."""
    relay = State({bytes([number]) * 32: bytes(40) for number in range(20)}, window=400)
    return World(config=replace(MOCK, max_value_length=300), policies=policies, relay=relay)


def sealed_block(world: World, pubsub_bytes: int, *, seed: bytes = b"") -> tuple[Block, int]:
    """Build a block and seal the own state; return also the own bytes that the cache made it carry."""
    top, prefix = world.state.top, world.storage.cached_trie_nodes.prefix
    world.seal()
    top.reads = set()
    inherent, pruning = world.prune(pubsub_bytes, seed=seed)
    top.reads = set()
    before = len(world.handler.calls)
    outcome = world.parachain.set_validation_data(inherent, seed)
    reads = sorted(key for key in top.reads if key.startswith(prefix))
    top.reads = None
    changes = {key: top.get(key) for key in sorted(top.unsealed) if key.startswith(prefix)}
    own = witness(world.state.db, world.state.root, reads, changes).proof_bytes if reads or changes else 0
    world.state.commit()
    return Block(world.collect(), pruning, inherent, outcome, tuple(world.handler.calls[before:])), own


def uses_are_exact(world: World) -> None:
    """Check that each node is stored with the number of keys on whose path it is, each in its own trie; no others."""
    nodes, roots = world.relay_nodes(), world.storage.previous_roots()
    for publisher in world.storage.digests():
        wanted = world.storage.subscribed_keys.get(publisher) or ()
        bases = world.storage.processed_roots(publisher, wanted) or {}
        expected: Counter[bytes] = Counter()
        for key in wanted:
            base = bases.get(key, roots.get(publisher))
            if base is not None:
                expected.update(it for _, it in marked_placements(SubscribedPaths.of([key]), base, nodes))
        stored = RefCountedNodes(world.storage.cache_of(publisher))
        assert {it: stored.uses(it) for it in world.cached(publisher)} == expected


def covered(block: Block, own: int) -> None:
    """Check that what was charged covers relay nodes and own nodes together, and stays within the limit."""
    result, limit = block.result, block.outcome.meter.limit.proof_size
    relay = sum(read.size for read in result.reads if read.source.is_relay)
    assert relay + own <= result.consumed.proof_size <= limit


def fill(world: World, publisher: ParaId, count: int, number: int = 0) -> None:
    for place, wanted in enumerate(keys(count, prefix=str(publisher))):
        world.publish(publisher, [wanted], bytes([number, place % 256]) * 20)


def follow(count: int = 60, policies: Policies = CARRIED) -> World:
    world = carried_world(policies)
    for publisher in (ALPHA, PUBLIC):
        world.subscribe(publisher, keys(count, prefix=str(publisher)))
        fill(world, publisher, count)
    sealed_block(world, 1 << 20)
    world.handler.take()
    return world


@pytest.mark.parametrize("pubsub_bytes", [4_000, 9_000, 20_000, 1 << 20])
def test_what_is_charged_covers_all_that_a_block_carries(pubsub_bytes: int) -> None:
    world = follow()
    for number in range(1, 20):
        fill(world, ALPHA, 40, number)
        world.delete(PUBLIC, keys(60, prefix=str(PUBLIC))[number : number + 2])
        block, own = sealed_block(world, pubsub_bytes, seed=bytes([number]))
        covered(block, own)
        uses_are_exact(world)


def test_under_the_default_a_tight_budget_is_carried_many_times_over() -> None:
    """What the policy is for: the same blocks carry more than the budget where the own trie is not charged."""
    seen: dict[bool, float] = {}
    for policies in (CARRIED, Policies(metering=EveryRead())):
        world, most = follow(policies=policies), 0.0
        for number in range(1, 12):
            fill(world, ALPHA, 60, number)
            block, own = sealed_block(world, 9_000)
            relay = sum(read.size for read in block.result.reads if read.source.is_relay)
            most = max(most, (relay + own) / 9_000)
        seen[policies is CARRIED] = most
    assert seen[True] <= 1 < seen[False]


def test_what_is_charged_is_close_to_what_is_carried() -> None:
    world = follow()
    fill(world, ALPHA, 60, 7)
    block, own = sealed_block(world, 1 << 20)
    relay = sum(read.size for read in block.result.reads if read.source.is_relay)
    assert block.result.consumed.proof_size < 1.25 * (relay + own)


def drained(world: World, pubsub_bytes: int) -> list[int]:
    """Build blocks until a pass is complete; return how many nodes of the first publisher were left after each."""
    left: list[int] = []
    for number in range(120):
        block, own = sealed_block(world, pubsub_bytes, seed=bytes([number]))
        covered(block, own)
        uses_are_exact(world)
        left.append(len(world.storage.cached_trie_nodes.second_keys(ALPHA)))
        if block.result.is_complete:
            return left
    raise AssertionError(f"not complete after {len(left)} blocks")


def test_a_cache_that_keys_are_removed_from_goes_over_several_blocks() -> None:
    world = follow()
    before, wanted = len(world.cached(ALPHA)), keys(60, prefix=str(ALPHA))[:20]
    world.subscribe(ALPHA, wanted)
    left = drained(world, 5_000)
    assert len(left) > 3
    assert 0 < left[0] < before
    cache_is_exact(world)
    nothing_is_lost(world)
    assert {told for publisher, told, *_ in world.handler.calls if publisher == ALPHA} == set(wanted)


def test_a_child_trie_that_is_gone_takes_its_cache_over_several_blocks() -> None:
    world = follow()
    world.delete(ALPHA, keys(60, prefix=str(ALPHA)))
    left = drained(world, 3_000)
    assert len(left) > 2
    assert left[-1] == 0
    assert ALPHA not in world.storage.previous_roots()


def test_a_publisher_that_comes_back_loses_its_old_nodes_first() -> None:
    world = follow()
    wanted = world.handler.wanted.pop(ALPHA)
    sealed_block(world, 1 << 20)
    assert world.cached(ALPHA)
    world.subscribe(ALPHA, wanted[:10])
    assert len(drained(world, 5_000)) > 2
    cache_is_exact(world)
    assert sorted(told for publisher, told, *_ in world.handler.calls if publisher == ALPHA) == wanted[:10]


def test_keys_that_come_before_those_that_went_are_dealt_with_do_not_bring_old_nodes_back() -> None:
    """Nothing fits the block in which keys went; in the next one more are wanted, and the old nodes still go first."""
    world = follow()
    wanted = keys(60, prefix=str(ALPHA))
    for count, pubsub_bytes in ((20, 0), (25, 1 << 20)):
        world.subscribe(ALPHA, wanted[:count])
        block, own = sealed_block(world, pubsub_bytes)
        covered(block, own)
        uses_are_exact(world)
    assert block.called == [(ALPHA, each) for each in wanted[:25]]
    cache_is_exact(world)


def test_a_root_that_is_forgotten_is_rebuilt_without_counting_twice() -> None:
    world = follow()
    world.subscriber.clear_stored_roots(Origin.root(), ALPHA)
    assert ALPHA not in world.storage.digests()
    block, own = sealed_block(world, 1 << 20)
    covered(block, own)
    uses_are_exact(world)
    cache_is_exact(world)
    assert len(block.calls) == 60


def test_reads_weigh_what_keeps_them() -> None:
    both = ROCKS_DB.reads_writes(1, 1)
    metering = MeterOwnState()
    assert metering.relay_node(ROCKS_DB, 100) == both + Weight(0, 100)
    assert metering.relay_value(ROCKS_DB, 100) == Weight(ROCKS_DB.read, 100)
    assert metering.cached_node(ROCKS_DB, 100) == both


@pytest.mark.parametrize("budget", [0, 700, 2_500, 6_000, 30_000])
def test_all_invariants_hold_under_it(budget: int) -> None:
    """Publications, deletions, subscriptions and interruptions, at one budget each, then it settles."""
    chance, world, told = Random(budget), carried_world(), ChangesTold()
    publishers = [ALPHA, BETA, PUBLIC]
    for number in range(60):
        publisher = chance.choice(publishers)
        stock = keys(14, prefix=str(publisher))
        match chance.randrange(6):
            case 0 | 1 | 2:
                world.publish(publisher, chance.sample(stock, 5), chance.randbytes(chance.choice([5, 40, 200])))
            case 3:
                world.delete(publisher, chance.sample(stock, chance.choice([2, 14])))
            case 4:
                world.subscribe(publisher, chance.sample(stock, chance.randrange(1, 10)))
            case _:
                world.subscribe(publisher, [*world.handler.wanted.get(publisher, ()), *chance.sample(stock, 2)])
        told.note(world)
        world.seal()
        for para_id, view in world.subscriber.plan().views.items():
            if view.change.value in {"new", "removed"}:
                told.forget(para_id)
        block, own = sealed_block(world, budget if number % 3 else 2 * budget, seed=bytes([number]))
        covered(block, own)
        uses_are_exact(world)
        all_hold(world, block, told)
    block, _ = sealed_block(world, 1 << 20)
    assert block.result.is_complete
    nothing_is_lost(world)
    cache_is_exact(world)
