"""Small networks that go through what a trap needs, each checking every invariant on its way."""

import random
from dataclasses import replace
from typing import Any

from pallets.subscriber_invariants import ChangesTold, all_hold, nothing_is_lost, refused
from pallets.subscriber_world import ALPHA, BETA, OTHER_PUBLIC, PUBLIC, World, keys, path_key, staircase
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


def grow_slowly(world: World) -> None:
    """A trie that becomes too deep from below, one level a block."""
    steps, told = staircase(20), ChangesTold()
    world.subscribe(ALPHA, steps[:1])
    world.publish(ALPHA, [steps[0], *steps[-6:]], bytes(40))
    for number in range(14, 1, -1):
        all_hold(world, world.block(), told)
        world.publish(ALPHA, [steps[number - 1]], bytes(40))


def share_a_leaf(world: World) -> None:
    """One key takes the value of another whose leaf has the same bytes."""
    first, second = path_key("1"), path_key("2")
    world.subscribe(ALPHA, [first, second])
    world.publish(ALPHA, [first], bytes(40))
    world.publish(ALPHA, [second], bytes(41))
    told = ChangesTold()
    all_hold(world, world.block(), told)
    entry = world.entry(ALPHA, first)
    assert entry is not None
    world.relay.child(world.relay.children()[0]).put(second, entry)
    all_hold(world, world.block(), told)


def split_a_path(world: World) -> None:
    """A key comes that nobody wants and puts a branch above others."""
    world.subscribe(ALPHA, [path_key("00a"), path_key("00b")])
    world.publish(ALPHA, world.handler.wanted[ALPHA], bytes(40))
    told = ChangesTold()
    all_hold(world, world.block(), told)
    world.publish(ALPHA, [path_key("01")], bytes(40))
    all_hold(world, world.block(), told)


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


def hide_a_publisher(world: World) -> None:
    """A collator leaves out the last node on the way to a child root, and all below it."""
    for publisher in (ALPHA, BETA):
        world.subscribe(publisher, keys(3))
        world.publish(publisher, keys(3), str(publisher).encode())
    world.seal()
    _, result = world.prune()
    tops = [read for read in result.reads if read.source.value == "relay_top"]
    below = {read.node_hash for read in result.reads if read.publisher == BETA}
    gone = {world.relay_nodes()[node_hash] for node_hash in below | {tops[-1].node_hash}}

    def hide(honest: Any) -> Any:
        return replace(honest, relay_chain_state=tuple(node for node in honest.relay_chain_state if node not in gone))

    refused(world, hide)
