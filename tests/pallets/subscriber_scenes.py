"""Small networks that go through what a trap needs, each checking every invariant on its way."""

import random
from dataclasses import replace

from pallets.block_vectors import ALPHA, BETA, OTHER_PUBLIC, PUBLIC, keys, path_key, staircase
from pallets.subscriber_invariants import ChangesTold, all_hold, nothing_is_lost, refused
from pallets.subscriber_world import World
from relaycast_trie import UnusedNodes

CRAFTED = [path_key(f"{first}{second}{third}") for first in "01" for second in "01" for third in "01f"]


def drive(world: World, *, blocks: int = 24, seed: int = 5) -> None:
    """Run a network of crowded keys, a small budget, deletions and changed subscriptions; then let it settle."""
    chance, told = random.Random(seed), ChangesTold()
    for publisher in (ALPHA, PUBLIC, OTHER_PUBLIC):
        world.subscribe(publisher, CRAFTED[:9])
        world.publish(publisher, CRAFTED, bytes(30))
    for number in range(blocks):
        for publisher in (ALPHA, PUBLIC) if number % 3 else ():
            world.publish(publisher, chance.sample(CRAFTED, 3), chance.choice([b"same", bytes([number]) * 40]), ttl=90)
            world.delete(publisher, chance.sample(CRAFTED, number % 2))
        told.note(world)
        if number == blocks // 2:
            world.subscribe(ALPHA, CRAFTED[2:10])
            told.forget(ALPHA)
        all_hold(world, world.block(chance.choice([0, 900, 2_500, 20_000]), seed=bytes([number])), told)
    for number in range(6):
        told.note(world)
        block = world.block(20_000, seed=bytes([number]))
        all_hold(world, block, told)
    assert block.result.is_complete
    nothing_is_lost(world)


def grow_wide(world: World) -> None:
    """Full branches and one that goes: what a bound on node sizes leaves out."""
    every = keys(300)
    world.subscribe(ALPHA, every[:20])
    world.publish(ALPHA, every, bytes(40))
    told = ChangesTold()
    all_hold(world, world.block(), told)
    world.publish(ALPHA, every[:2], bytes(41))
    all_hold(world, world.block(), told)


def grow_deep(world: World) -> None:
    """A trie too deep, whose first key can be read before that shows."""
    deep, early = staircase(12, subscribed=path_key("f")), path_key("0001")
    world.subscribe(ALPHA, [early, deep[0]])
    world.publish(ALPHA, [early, *deep], bytes(40))
    world.subscribe(BETA, keys(3))
    world.publish(BETA, keys(3), bytes(40))
    all_hold(world, world.block(), ChangesTold())
    assert (BETA, keys(3)[0]) in world.handler.values


def pad(world: World) -> None:
    """A collator adds as many foreign nodes as cached ones are read."""
    world.subscribe(ALPHA, keys(20))
    world.publish(ALPHA, keys(40), bytes(40))
    world.block()
    world.publish(ALPHA, keys(20)[:1], bytes(41))
    world.seal()
    _, result = world.prune()
    cached = sum(not read.source.is_relay for read in result.reads)
    junk = tuple(b"junk%d" % number for number in range(cached))
    assert cached
    cause = refused(world, lambda honest: replace(honest, relay_chain_state=honest.relay_chain_state + junk)).cause
    assert isinstance(cause, UnusedNodes)
