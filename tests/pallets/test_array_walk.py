"""The walk in arrays finds what the plain walk finds: the same reads, in the same order, for the same weight."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pallets import block_vectors
from pallets.block_vectors import ALPHA, BETA, key, keys, path_key
from pallets.subscriber_world import FREE_READS, MOCK, Block, World
from relaycast_pallets import Policies, State, SubscribedKey
from relaycast_pallets.subscriber import array_walk
from relaycast_pallets.subscriber.array_walk import MOST_PRICES, ArrayWalk, WalkedReads
from relaycast_pallets.subscriber.proof_pass import charges_under
from relaycast_pallets.subscriber.result import PublisherChange
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_trie.engine import Engine
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import ParaId
from searches import examples
from spec.test_random_networks import History

MANY = keys(120)


@pytest.fixture(autouse=True)
def few_places_in_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_walk, "MOVED_IN_ARRAYS", 0)


@pytest.mark.parametrize("weighs", [False, True], ids=["free", "weighing"])
def test_a_random_network_is_the_same_in_arrays(monkeypatch: pytest.MonkeyPatch, weighs: bool) -> None:
    def in_arrays(*arguments: Any, **options: Any) -> State:
        return State(*arguments, **{**options, "engine": "array"})

    for seed in range(examples(40)):
        plain = list(History("array", seed, weighs=weighs).blocks())
        with monkeypatch.context() as patch:
            patch.setattr(block_vectors, "State", in_arrays)
            assert list(History("array", seed, weighs=weighs).blocks()) == plain


def found(change: PublisherChange) -> tuple[object, ...]:
    """Return what a pass found of a publisher, in the order in which it found it."""
    return (
        *(
            getattr(change, name)
            for name in ("para_id", "root", "finished", "disabled_by", "changed", "processed_roots")
        ),
        *(change.keys_walked, change.gained, change.lost, change.unseen, list(change.nodes.items()), change.cached),
        *(change.is_compared, change.began_at, change.stopped_at),
    )


def told(world: World, block: Block) -> tuple[object, ...]:
    """Return all that a block did."""
    results = block.pruning, block.outcome.result
    passes = [(list(it.reads), it.turn, it.consumed, it.stopped_by, list(map(found, it.changes))) for it in results]
    return passes, block.inherent.relay_chain_state, block.calls, world.kept()


def moved(world: World, draw: Random) -> None:
    """Let publishers write and delete, and the subscriber want other keys at times."""
    for publisher in (ALPHA, BETA):
        if draw.random() < 0.8:
            some = draw.sample(MANY, draw.choice([1, 3, 40]))
            world.publish(publisher, some, draw.randbytes(1) * draw.choice([1, 20, 24, 40, 300]))
        if draw.random() < 0.3:
            world.delete(publisher, draw.sample(MANY, draw.choice([2, 50])))
        if draw.random() < 0.25:
            world.subscribe(publisher, draw.sample(MANY, draw.randint(1, len(MANY))))


def played(engine: Engine, seed: int, between: Callable[[World, Random], None] = lambda *_: None) -> list[object]:
    """Return what the blocks of a world did."""
    draw = Random(seed)
    world = World(config=draw.choice([MOCK, FREE_READS]))
    world.state.engine = engine
    for publisher in (ALPHA, BETA):
        world.publish(publisher, MANY, b"first")
        world.subscribe(publisher, MANY)
    blocks: list[object] = []
    for _ in range(8):
        moved(world, draw)
        budget = draw.choice([1 << 20, draw.randint(2_000, 30_000)])
        try:
            blocks.append(told(world, world.block(budget, seed=draw.randbytes(2))))
        except RelaycastError as error:
            blocks.append(repr(error))
        between(world, draw)
        if draw.random() < 0.5:
            world.state.commit()
    return blocks


def test_many_keys_and_any_budget_are_the_same_in_arrays() -> None:
    for seed in range(examples(60)):
        assert played("array", seed) == played("plain", seed)


def test_arrays_are_made_anew_of_what_others_wrote_into_the_cache() -> None:
    def disturbed(world: World, draw: Random) -> None:
        storage: SubscriberStorage = world.storage
        chance, stored = draw.random(), sorted(storage.cache_of(ALPHA).all())
        if stored and chance < 0.3:
            storage.cached_trie_nodes.remove(ALPHA, draw.choice(stored))
        elif chance < 0.5:
            world.state.put(storage.cached_trie_nodes.storage_key(ALPHA, bytes(32)), b"\x04\x00")
        elif chance < 0.7:
            with suppress(ZeroDivisionError), world.state.transaction():
                storage.clear_cache(BETA)
                raise ZeroDivisionError
        elif chance < 0.8:
            storage.clear_cache(ALPHA)

    for seed in range(examples(40)):
        assert played("array", seed, disturbed) == played("plain", seed, disturbed)


def test_reads_at_the_same_price_are_the_same_where_the_price_list_was_made_again() -> None:
    world = World(config=FREE_READS)
    world.state.engine = "array"
    world.publish(ALPHA, MANY, b"first")
    world.subscribe(ALPHA, MANY)
    world.seal()
    first = world.prune()[1].reads
    charges_under.cache_clear()
    again = world.prune()[1].reads
    columns = [[it for it in reads.parts if isinstance(it, WalkedReads)] for reads in (first, again)]  # type: ignore[attr-defined]
    assert [it.charges for it in columns[0]] != [it.charges for it in columns[1]]
    assert first == again


def test_every_budget_ends_a_walk_at_the_same_read() -> None:
    worlds = [World(config=FREE_READS), World(config=FREE_READS)]
    for world, engine in zip(worlds, ("plain", "array"), strict=True):
        world.state.engine = engine  # type: ignore[assignment]
        world.publish(ALPHA, MANY[:40], bytes(40))
        world.subscribe(ALPHA, MANY[:30])
        world.block()
        world.publish(ALPHA, MANY[:40:3], bytes(41))
        world.seal()
    whole = sum(read.size for read in worlds[0].prune()[1].reads)
    for budget in range(0, whole + 50, 37):
        plain, array = (world.prune(budget)[1] for world in worlds)
        assert (list(plain.reads), plain.turn, plain.consumed) == (list(array.reads), array.turn, array.consumed)


def test_the_array_engine_walks_in_arrays_but_not_where_deletions_are_told_or_price_lists_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walks: list[ParaId] = []
    go_on = ArrayWalk._go_on

    def noted(self: ArrayWalk, *arguments: Any) -> None:
        walks.append(self._view.para_id)
        go_on(self, *arguments)

    monkeypatch.setattr(ArrayWalk, "_go_on", noted)
    long = replace(MOCK, max_value_length=MOST_PRICES)
    for world in (World(), World(policies=Policies(deletion=NotifyDeletions())), World(config=long)):
        world.publish(ALPHA, [key("a")])
        world.subscribe(ALPHA, [key("a")])
        world.state.engine = "array"
        world.block()
    assert walks == [ALPHA, ALPHA], "once in each mode, in the first world"


def test_a_walk_that_meets_more_placements_than_its_lists_hold_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    crafted = [SubscribedKey(path_key(way)) for way in ("000", "001", "010", "100", "1f0", "1f1")]

    def blocks(engine: Engine) -> list[object]:
        world = World()
        world.state.engine = engine
        world.subscribe(ALPHA, crafted)
        seen: list[object] = []
        for value in (b"one", bytes(40)):
            world.publish(ALPHA, [*crafted, *MANY], value)
            seen.append(told(world, world.block()))
        return seen

    plain = blocks("plain")
    monkeypatch.setattr("relaycast_trie.array.side_by_side.LEAST_ROOM", 1)
    monkeypatch.setattr("relaycast_trie.array.side_by_side.ROOM_A_KEY", 0)
    assert blocks("array") == plain
