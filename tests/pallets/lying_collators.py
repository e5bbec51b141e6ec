"""Collators that lie: the states that a subscriber can be in, attacks on each of them, and what becomes of it.

Attacks that only move bytes are in ``test_lies``.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from pallets.block_vectors import ALPHA, BETA, OTHER_PUBLIC, PUBLIC, keys, staircase
from pallets.subscriber_world import PLENTY, World
from pallets.weighing_world import WeighingWorld, micros
from relaycast_pallets import (
    IncompleteBelowLimit,
    Panic,
    ParachainInherentData,
    SubscribedKey,
    ValidationOutcome,
)
from relaycast_trie import MissingNode, RootMismatch, UnusedNodes
from relaycast_xcm.primitives import ParaId

Nodes = tuple[bytes, ...]
PUBLISHERS = (ALPHA, BETA, PUBLIC, OTHER_PUBLIC)
SEED = b"the parent's hash"


@dataclass(frozen=True)
class Situation:
    """A world whose relay state is sealed, the budget of the block to come, and the honest inherent for it."""

    world: World
    pubsub_bytes: int

    @cached_property
    def honest(self) -> ParachainInherentData:
        return self.world.prune(self.pubsub_bytes, seed=SEED)[0]


def subscribed_world(*, count: int = 8) -> World:
    world = World()
    publish_and_subscribe(world, count=count)
    return world


def publish_and_subscribe(world: World, *, count: int) -> None:
    for publisher in PUBLISHERS:
        wanted = keys(count, prefix=str(publisher))
        world.subscribe(publisher, wanted[: count // 2])
        for number, written in enumerate(wanted):
            world.publish(publisher, [written], str(publisher).encode() * 10 + bytes([number]))


def update(world: World, publishers: tuple[ParaId, ...] = PUBLISHERS, mark: bytes = b"!") -> None:
    for publisher in publishers:
        wanted = world.handler.wanted[publisher]
        world.publish(publisher, wanted[::2], mark * 50 + str(publisher).encode())


def first_block() -> Situation:
    world = subscribed_world()
    world.seal()
    return Situation(world, PLENTY)


def cached_and_changed() -> Situation:
    world = subscribed_world(count=32)
    world.block()
    update(world)
    world.seal()
    return Situation(world, PLENTY)


def cached_and_unchanged() -> Situation:
    world = subscribed_world()
    world.block()
    world.seal()
    return Situation(world, PLENTY)


def cut_short(share: float) -> Situation:
    """A budget of a share of what the pass would cost."""
    situation = cached_and_changed()
    whole = situation.world.prune(seed=SEED)[1].consumed.proof_size
    return replace(situation, pubsub_bytes=int(whole * share))


def in_the_middle() -> Situation:
    """The pass before was cut short, and what it was about has moved on."""
    situation = cut_short(0.5)
    situation.world.block(situation.pubsub_bytes, seed=SEED, seal=False)
    update(situation.world, (BETA, OTHER_PUBLIC), b"?")
    situation.world.seal()
    return situation


def too_deep() -> Situation:
    world = subscribed_world()
    deep = staircase(10)
    world.subscribe(BETA, deep[:1])
    world.publish(BETA, deep, bytes(40))
    world.seal()
    return Situation(world, PLENTY)


def subscription_changed() -> Situation:
    situation = cached_and_changed()
    situation.world.subscribe(ALPHA, keys(32, prefix=str(ALPHA))[:18])
    situation.world.subscribe(BETA, keys(32, prefix=str(BETA))[:2])
    return situation


def callbacks_cut_short() -> Situation:
    """The block has bytes enough, and its callbacks have time for five of the sixty-four that changed."""
    world = WeighingWorld(each=micros(2), limit=micros(11))
    publish_and_subscribe(world, count=32)
    world.allow(micros(1_000))
    world.block()
    world.allow(micros(11))
    update(world)
    world.seal()
    return Situation(world, PLENTY)


SITUATIONS: dict[str, Callable[[], Situation]] = {
    "first block": first_block,
    "cached, changed": cached_and_changed,
    "cached, unchanged": cached_and_unchanged,
    "subscription changed": subscription_changed,
    "no budget": lambda: cut_short(0),
    "a third of the budget": lambda: cut_short(1 / 3),
    "almost enough": lambda: cut_short(0.99),
    "in the middle": in_the_middle,
    "too deep": too_deep,
    "callbacks cut short": callbacks_cut_short,
}


def omit(situation: Situation) -> Iterator[Nodes]:
    nodes = situation.honest.relay_chain_state
    yield ()
    for index in range(len(nodes)):
        yield nodes[:index] + nodes[index + 1 :]


def omit_from_the_end(situation: Situation) -> Iterator[Nodes]:
    """Leave out what is read last: the first one, two, three, ... reads are all that the block is given."""
    honest, result = situation.world.prune(situation.pubsub_bytes, seed=SEED)
    by_hash = situation.world.relay_nodes()
    read = [by_hash[read.node_hash] for read in result.reads if read.source.is_relay]
    for kept in range(len(read)):
        gone = set(read[kept:])
        yield tuple(node for node in honest.relay_chain_state if node not in gone)


def inflate(situation: Situation) -> Iterator[Nodes]:
    """Add true nodes that are not needed: pruned ones, cached ones, those of keys that nobody wants."""
    world, nodes = situation.world, situation.honest.relay_chain_state
    yield from ((*nodes, node) for node in sorted(world.collect().nodes - set(nodes))[::2])
    every = list(world.relay_nodes().values())
    yield from ((*nodes, node) for node in random.Random(1).sample(every, 20) if node not in nodes)
    for publisher in PUBLISHERS:
        yield from ((*nodes, node) for node in sorted(world.cached(publisher).values())[::3] if node not in nodes)


def stale_root(situation: Situation) -> Iterator[Nodes]:
    """Hand over the proof of a relay state that was replaced."""
    world = situation.world
    stale = situation.honest.relay_chain_state
    update(world, (ALPHA,), b"#")
    world.seal()
    yield stale


def wrong_cursor(situation: Situation) -> Iterator[Nodes]:
    """Prune as if the pass began at each key in turn."""
    world = situation.world
    for publisher in PUBLISHERS:
        for key in world.handler.wanted[publisher][::3]:
            yield pruned_as_if(situation, cursor=(publisher, key))


def wrong_seed(situation: Situation) -> Iterator[Nodes]:
    for number in range(4):
        yield situation.world.prune(situation.pubsub_bytes, seed=bytes([number]))[0].relay_chain_state


def stop_early(situation: Situation) -> Iterator[Nodes]:
    """Prune as if the budget were smaller."""
    whole = situation.world.prune(situation.pubsub_bytes, seed=SEED)[1].consumed.proof_size
    for pubsub_bytes in range(0, whole, max(whole // 40, 1)):
        yield situation.world.prune(pubsub_bytes, seed=SEED)[0].relay_chain_state


def weigh_callbacks_otherwise(situation: Situation) -> Iterator[Nodes]:
    """Prune as if a block had less time for callbacks, or more."""
    subscriber = situation.world.subscriber
    config = subscriber.config
    for count in (0, 1, 2, 3, 4, 6, 8, 1_000):
        subscriber.config = replace(config, callback_limit=micros(2 * count))
        pruned = situation.world.prune(situation.pubsub_bytes, seed=SEED)[0].relay_chain_state
        subscriber.config = config
        yield pruned


def pruned_as_if(situation: Situation, *, cursor: tuple[ParaId, SubscribedKey]) -> Nodes:
    world = situation.world
    stored = world.storage.relay_proof_processing_cursor
    before = stored.get()
    stored.put(cursor)
    pruned = world.prune(situation.pubsub_bytes, seed=SEED)[0].relay_chain_state
    if before is None:
        stored.kill()
    else:
        stored.put(before)
    return pruned


Attack = Callable[[Situation], Iterator[Nodes]]
INCOMPLETE = {IncompleteBelowLimit, MissingNode, RootMismatch, UnusedNodes}
"""A node that is missing ends the pass or the static reads, and leaves what was below it unused."""

ATTACKS: dict[Attack, set[type[Exception]]] = {
    omit: INCOMPLETE,
    omit_from_the_end: INCOMPLETE,
    inflate: {UnusedNodes},
    stale_root: {RootMismatch},
    wrong_cursor: INCOMPLETE,
    wrong_seed: INCOMPLETE,
    stop_early: INCOMPLETE,
    weigh_callbacks_otherwise: INCOMPLETE,
}


class Undone(Exception):
    """Takes a block back, whatever came of it."""


def verdict(situation: Situation, nodes: Nodes) -> ValidationOutcome | Exception:
    """Return what the chain makes of these nodes; the world stays as it was."""
    world = situation.world
    inherent = world.inherent(nodes, situation.pubsub_bytes)
    before, calls, values = world.everything(), len(world.handler.calls), dict(world.handler.values)
    try:
        with world.state.transaction():
            outcome = world.parachain.set_validation_data(inherent, SEED)
            raise Undone
    except Panic as panic:
        assert world.everything() == before, "a refused block leaves everything as it was"
        return panic.cause
    except Undone:
        del world.handler.calls[calls:]
        world.handler.values = values
        return outcome


def judge(situation: Situation, nodes: Nodes, verdict_on_it: ValidationOutcome | Exception) -> str:
    """Return what became of an attack: the refusal's name, ``"honest"``, or ``"slack"``; anything else fails."""
    if isinstance(verdict_on_it, Exception):
        return type(verdict_on_it).__name__
    honest = set(situation.honest.relay_chain_state)
    if set(nodes) == honest:
        return "honest"
    assert set(nodes) < honest, "only an omission can go unnoticed"
    meter = verdict_on_it.meter
    assert not verdict_on_it.result.is_complete
    assert not meter.can_consume(situation.world.subscriber.config.min_weight)
    return "slack"
