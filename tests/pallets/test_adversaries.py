"""A collator that lies, attack by attack, in every state that the subscriber can be in; and publishers that mean harm.

The matrix is generated: each attack is made in every way that a situation allows. Whatever is not the honest set of
nodes is refused, but for omissions inside the last ``min_weight`` of the budget, and a refused block leaves no trace.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact, nothing_is_lost, refused
from pallets.subscriber_world import ALPHA, BETA, OTHER_PUBLIC, PLENTY, PUBLIC, Block, World, keys, path_key, staircase
from relaycast_pallets import (
    BlockPanicked,
    IncompleteBelowLimit,
    ParachainInherentData,
    SubscribedKey,
    ValidationOutcome,
)
from relaycast_trie import DuplicateNode, MissingNode, RootMismatch, UnusedNodes
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
    for publisher in PUBLISHERS:
        wanted = keys(count, prefix=str(publisher))
        world.subscribe(publisher, wanted[: count // 2])
        for number, written in enumerate(wanted):
            world.publish(publisher, [written], str(publisher).encode() * 10 + bytes([number]))
    return world


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


def add(situation: Situation) -> Iterator[Nodes]:
    nodes = situation.honest.relay_chain_state
    for junk in (b"", b"\x00", b"junk", bytes(1_000)):
        yield (*nodes, junk)
        yield (junk, *nodes)


def inflate(situation: Situation) -> Iterator[Nodes]:
    """Add true nodes that are not needed: pruned ones, cached ones, those of keys that nobody wants."""
    world, nodes = situation.world, situation.honest.relay_chain_state
    yield from ((*nodes, node) for node in sorted(world.collect().nodes - set(nodes))[::2])
    every = list(world.relay_nodes().values())
    yield from ((*nodes, node) for node in random.Random(1).sample(every, 20) if node not in nodes)
    for publisher in PUBLISHERS:
        yield from ((*nodes, node) for node in sorted(world.cached(publisher).values())[::3] if node not in nodes)


def swap(situation: Situation) -> Iterator[Nodes]:
    """Put another node in the place of each: junk, or a true one that is not needed; the count stays the same."""
    world, nodes = situation.world, situation.honest.relay_chain_state
    others = [b"junk", *sorted(world.collect().nodes - set(nodes))[:1]]
    for index in range(len(nodes)):
        for other in others:
            yield (*nodes[:index], other, *nodes[index + 1 :])


def flip(situation: Situation) -> Iterator[Nodes]:
    nodes = situation.honest.relay_chain_state
    chance = random.Random(2)
    for index, node in enumerate(nodes):
        place = chance.randrange(len(node) * 8)
        flipped = (int.from_bytes(node, "big") ^ 1 << place).to_bytes(len(node), "big")
        yield (*nodes[:index], flipped, *nodes[index + 1 :])


def duplicate(situation: Situation) -> Iterator[Nodes]:
    nodes = situation.honest.relay_chain_state
    for index, node in enumerate(nodes):
        yield (*nodes[:index], node, *nodes[index:])
    yield nodes + nodes


def truncate(situation: Situation) -> Iterator[Nodes]:
    nodes = situation.honest.relay_chain_state
    for index, node in enumerate(nodes):
        yield (*nodes[:index], node[:-1], *nodes[index + 1 :])
        yield nodes[:index]


def reorder(situation: Situation) -> Iterator[Nodes]:
    """Order means nothing: these are no attacks, and do exactly what the honest proof does."""
    nodes = situation.honest.relay_chain_state
    yield nodes[::-1]
    for seed in range(3):
        yield tuple(random.Random(seed).sample(nodes, len(nodes)))


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
    add: {UnusedNodes},
    inflate: {UnusedNodes},
    swap: INCOMPLETE,
    flip: INCOMPLETE,
    duplicate: {DuplicateNode},
    truncate: INCOMPLETE,
    reorder: set(),
    stale_root: {RootMismatch},
    wrong_cursor: INCOMPLETE,
    wrong_seed: INCOMPLETE,
    stop_early: INCOMPLETE,
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
    except BlockPanicked as panic:
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


@pytest.mark.upstream("collator_omits_data_below_limit")
@pytest.mark.upstream("collator_includes_extraneous_data")
@pytest.mark.upstream("collator_wrong_cursor")
@pytest.mark.upstream("collator_inflated_proof")
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_every_attack_is_refused_or_within_the_slack(attack: Attack, name: str) -> None:
    situation = SITUATIONS[name]()
    if attack is not stale_root:
        assert not isinstance(verdict(situation, situation.honest.relay_chain_state), Exception)
    seen: Counter[str] = Counter()
    for nodes in attack(situation):
        seen[judge(situation, nodes, verdict(situation, nodes))] += 1
    assert set(seen) <= {error.__name__ for error in ATTACKS[attack]} | {"honest", "slack"}
    if attack in {add, duplicate, stale_root, swap, flip}:
        assert not seen.keys() & {"honest", "slack"}
        assert seen.total() > 0
    if attack is reorder:
        assert seen.keys() == {"honest"}
    if name in {"first block", "cached, changed", "too deep"}:
        assert "slack" not in seen, "far from the limit nothing can be left out"


def test_the_slack_is_real_and_its_victim_comes_next() -> None:
    """Near the limit an omission passes; the cursor stands at what was left out, and the next block delivers it."""
    situation = SITUATIONS["a third of the budget"]()
    world = situation.world
    passed = [
        nodes
        for nodes in omit_from_the_end(situation)
        if isinstance(verdict(situation, nodes), ValidationOutcome)
        and set(nodes) != set(situation.honest.relay_chain_state)
    ]
    assert passed
    outcome = world.parachain.set_validation_data(world.inherent(passed[0], situation.pubsub_bytes), SEED)
    assert outcome.result.cursor is not None
    assert world.block(seed=b"next").result.is_complete
    nothing_is_lost(world)
    cache_is_exact(world)


def test_two_nodes_left_out_and_two_put_in_are_not_overlooked() -> None:
    """Sets are compared: a proof with as many foreign nodes as it lacks has the right count."""
    situation = SITUATIONS["cached, changed"]()
    nodes = situation.honest.relay_chain_state
    cached = sorted(situation.world.cached(ALPHA).values())
    for index in range(len(nodes) - 1):
        changed = (*nodes[:index], *nodes[index + 2 :], *cached[:2])
        assert len(changed) == len(nodes)
        assert isinstance(verdict(situation, changed), Exception)


def test_a_refused_block_is_as_if_it_had_not_been() -> None:
    situation = SITUATIONS["cached, changed"]()
    world = situation.world
    refused(world, lambda inherent: replace(inherent, relay_chain_state=inherent.relay_chain_state[1:]), seed=SEED)
    block = world.block(seed=SEED, seal=False)
    assert {publisher for publisher, _ in block.called} == set(PUBLISHERS)
    nothing_is_lost(world)


def test_stopping_early_only_delays() -> None:
    """A collator that uses all of the slack in every block cannot keep a value back for ever."""
    situation = SITUATIONS["a third of the budget"]()
    world = situation.world
    for number in range(40):
        seed = bytes([number])
        candidates = (
            world.prune(pubsub_bytes, seed=seed)[0].relay_chain_state
            for pubsub_bytes in range(max(0, situation.pubsub_bytes - 1_100), situation.pubsub_bytes, 50)
        )
        for nodes in candidates:
            try:
                outcome = world.parachain.set_validation_data(world.inherent(nodes, situation.pubsub_bytes), seed)
            except BlockPanicked:
                continue
            if outcome.result.is_complete:
                nothing_is_lost(world)
                return
            break
        else:
            world.block(situation.pubsub_bytes, seed=seed, seal=False)
    nothing_is_lost(world)


@pytest.mark.upstream("publisher_pathological_trie")
def test_a_publisher_of_deep_paths_harms_no_other() -> None:
    """Nine keys break a depth limit of eight; the others get what they get without it, in the same block."""
    with_it, without_it = SITUATIONS["too deep"]().world, subscribed_world()
    without_it.subscribe(BETA, [])
    with_it, without_it = (strip_to(world) for world in (with_it, without_it))
    ours, theirs = with_it.block(seed=SEED), without_it.block(seed=SEED)
    assert ours.called == theirs.called
    wasted = sum(read.size for read in ours.result.reads if read.publisher == BETA)
    assert 0 < wasted < 8 * 750
    assert with_it.storage.previous_roots().keys() == {ALPHA, PUBLIC, OTHER_PUBLIC}
    after = with_it.block(seed=SEED)
    assert {read.publisher for read in after.result.reads} <= {None}


def strip_to(world: World) -> World:
    """Leave only subscriptions that name keys."""
    world.handler.wanted = {publisher: wanted for publisher, wanted in world.handler.wanted.items() if wanted}
    return world


@pytest.mark.upstream("publisher_rapid_changes")
def test_a_publisher_that_rewrites_everything_delays_others_by_blocks_not_for_ever() -> None:
    world, told = subscribed_world(), ChangesTold()
    told.check(world, world.block())
    update(world, (PUBLIC,), b"one change")
    blocks: list[Block] = []
    for number in range(30):
        world.publish(ALPHA, keys(8, prefix=str(ALPHA)), bytes([number]) * 300)
        blocks.append(world.block(2_600, seed=bytes([number])))
        all_hold(world, blocks[-1], told)
        if (PUBLIC, world.handler.wanted[PUBLIC][2]) in blocks[-1].called:
            break
    assert 1 < len(blocks) < 10


def test_heartbeats_cost_paths_of_what_was_rewritten() -> None:
    """The same value written again moves ``when_inserted``: it is told again and costs its path."""
    world = subscribed_world(count=60)
    first = world.block()
    for _ in range(3):
        wanted = world.handler.wanted[ALPHA][:1]
        world.publish(ALPHA, wanted, b"beat")
        block = world.block()
        assert block.called == [(ALPHA, wanted[0])]
        assert block.inherent.proof_bytes * 5 < first.inherent.proof_bytes


def test_values_at_the_limit_fit_into_the_slack_they_define() -> None:
    """A value of the greatest length that does not fit leaves less than ``min_weight``: the honest block stands."""
    world = World()
    world.subscribe(ALPHA, keys(3))
    world.publish(ALPHA, keys(3), bytes(world.subscriber.config.max_value_length))
    world.seal()
    for pubsub_bytes in range(0, 2_000, 37):
        situation = Situation(world, pubsub_bytes)
        assert isinstance(verdict(situation, situation.honest.relay_chain_state), ValidationOutcome)


@pytest.mark.parametrize("depth", [8, 9])
def test_crafted_keys_that_are_not_subscribed_deepen_the_paths_of_others(depth: int) -> None:
    """The limit counts nodes on subscribed paths, whoever put them there."""
    world = World()
    steps = staircase(depth)
    world.subscribe(ALPHA, [steps[0], path_key("f")])
    world.publish(ALPHA, [*steps, path_key("f")], bytes(40))
    world.block()
    assert (ALPHA in world.storage.disabled_publishers) is (depth > 8)
