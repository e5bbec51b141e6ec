"""What may happen while a pass is interrupted: each scene by itself, and the mutant that it catches.

A publisher that a pass left unfinished has keys that were dealt with against its new root, and keys that were not. The
scenes check every invariant on their way, or yield vectors; a mutant loses an update, tells one twice, or leaves nodes
behind.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    BETA,
    A,
    About,
    B,
    BlockVector,
    C,
    D,
    E,
    F,
    K,
    SmallNetwork,
    cut_short,
    following,
    keys,
    of_bytes,
    path_key,
    staircase,
    told,
    trap,
    values,
    version_0,
)
from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact
from pallets.subscriber_mutants import tell_keys_of_the_disabled
from pallets.subscriber_world import Block, World
from relaycast_pallets import Policies, State, SubscribedKey, derive_child_info
from relaycast_pallets.frame.typed_storage import StorageMap
from relaycast_pallets.parachain_system.pallet import Panic
from relaycast_pallets.subscriber import node_cache, walk
from relaycast_pallets.subscriber.node_cache import NodeCache
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.proof_pass import PublisherPass
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.variants.drafts import AllKeysOnChange, SystemFirstNumeric
from relaycast_trie import StateVersion
from vector_fields import VectorSource
from yielded_vectors import yields

PATCH = pytest.MonkeyPatch
NUMERIC = Policies(order=SystemFirstNumeric())
W = keys(12, prefix="w")
"""Keys of the publisher that is interrupted."""

MORE = [path_key("0"), *keys(4, prefix="more"), path_key("f")]
"""Keys before, between and behind those."""


def follow() -> tuple[World, ChangesTold]:
    """Return a world whose subscriber has dealt with twelve keys of one publisher, which has others too."""
    world, told = World(policies=NUMERIC), ChangesTold()
    world.subscribe(ALPHA, W)
    world.publish(ALPHA, MORE, bytes(40))
    write(world, 0)
    all_hold(world, world.block(), told)
    return world, told


def write(world: World, number: int) -> None:
    """Give each key a long value of its own."""
    for place, wanted in enumerate(W):
        world.publish(ALPHA, [wanted], bytes([number, place]) * 150)


def interrupt(world: World, told: ChangesTold, *, pubsub_bytes: int = 2_500) -> Block:
    """Let a pass end among the publisher's keys, some told and some not."""
    told.note(world)
    block = world.block(pubsub_bytes)
    all_hold(world, block, told)
    assert not block.result.is_complete
    assert 0 < len(block.calls) < len(W)
    return block


def settle(world: World, told: ChangesTold) -> Block:
    """Let a pass deal with everything."""
    told.note(world)
    block = world.block()
    all_hold(world, block, told)
    assert block.result.is_complete
    return block


def put_back(world: World, entries: dict[SubscribedKey, bytes]) -> None:
    """Give keys the very entries that they had."""
    child = world.relay.child(derive_child_info(ALPHA))
    for written, entry in entries.items():
        child.put(written, entry)


def entries_of(world: World) -> dict[SubscribedKey, bytes]:
    entries = {wanted: world.entry(ALPHA, wanted) for wanted in (*W, *MORE)}
    return {wanted: entry for wanted, entry in entries.items() if entry is not None}


# The scenes.


def the_child_trie_is_gone_between_two_blocks() -> None:
    """It is gone and back before the subscriber looks again: a change like any other, told once."""
    world, told = follow()
    write(world, 1)
    first = interrupt(world, told)
    held = entries_of(world)
    world.delete(ALPHA, [*W, *MORE])
    world.seal()
    put_back(world, held)
    block = settle(world, told)
    assert sorted([*first.called, *block.called]) == [(ALPHA, wanted) for wanted in W]


def the_child_trie_is_gone_for_a_block() -> None:
    """The subscriber sees that it is gone: nothing of the interrupted pass counts, and all is told when it is back."""
    world, told = follow()
    write(world, 1)
    interrupt(world, told)
    held = entries_of(world)
    world.delete(ALPHA, [*W, *MORE])
    assert settle(world, told).calls == ()
    assert world.cached(ALPHA) == {}
    put_back(world, held)
    assert settle(world, told).called == [(ALPHA, wanted) for wanted in W]


def keys_are_added_during_a_pass() -> None:
    """The new keys are told, the interrupted ones go on where they were, and none is told twice."""
    world, told = follow()
    write(world, 1)
    first = interrupt(world, told)
    world.subscribe(ALPHA, [*W, *MORE])
    blocks = [first]
    while not blocks[-1].result.is_complete:
        told.note(world)
        blocks.append(world.block(2_500))
        all_hold(world, blocks[-1], told)
    called = [wanted for block in blocks for _, wanted in block.called]
    assert sorted(called) == sorted([*W, *MORE])


def everything_is_told_on_a_change() -> None:
    """Under ``AllKeysOnChange`` the old trie is not walked: the cache is swept by what the new one has."""
    world = World(policies=Policies(callback=AllKeysOnChange()))
    world.subscribe(ALPHA, W)
    write(world, 0)
    world.block()
    for number in range(1, 4):
        world.publish(ALPHA, W[:number], bytes([number]) * 40)
        assert world.block().called == [(ALPHA, wanted) for wanted in W]
        cache_is_exact(world)


def a_trie_is_migrated_in_an_interrupted_pass() -> None:
    """The values that changed before the migration are told once, by whichever block deals with them."""
    world, told = World(policies=NUMERIC), ChangesTold()
    world.relay = State({b"top": b""}, state_version=StateVersion.V0, window=8)
    world.subscribe(ALPHA, W)
    write(world, 0)
    settle(world, told)
    write(world, 1)
    first = interrupt(world, told, pubsub_bytes=3_500)
    world.relay.migrate(StateVersion.V1)
    put_back(world, entries_of(world))
    block = settle(world, told)
    assert sorted([*first.called, *block.called]) == [(ALPHA, wanted) for wanted in W]


# The scenes that yield vectors.


@yields("subscriber/traps")
def test_a_change_that_was_told_and_is_taken_back_is_told_again_and_no_other() -> Iterator[BlockVector]:
    about = trap("taken-back", "a change that an interrupted pass told is taken back: it is told again")
    network = following(wanted=3, value=bytes(30))
    before = {each: network.entry(ALPHA, each) for each in K[:3]}
    for number, each in enumerate(K[:3]):
        network.publish(ALPHA, [each], bytes([number]) * 30)
    first = cut_short(network, about, seal=True)
    yield first
    write_back(network, before)
    back = network.block(about.at("back", "the old root is back: keys that were told are told again, others are not"))
    assert told(back) == told(first) == [A, B]
    yield back


@yields("subscriber/traps")
def test_a_child_trie_that_is_gone_while_its_first_pass_is_interrupted_takes_the_bases_with_it() -> Iterator[
    BlockVector
]:
    about = trap("absence-between", "the child trie is gone while a pass is interrupted: root and bases go")
    network = values(wanted=3)
    yield cut_short(network, about)
    held = {each: network.entry(ALPHA, each) for each in K[:4]}
    network.delete(ALPHA, K)
    yield network.block(about.at("gone"))
    write_back(network, held)
    back = network.block(about.at("back", "the same trie is back: everything is told"))
    assert told(back) == [A, B, C]
    yield back


def write_back(network: SmallNetwork, entries: dict[SubscribedKey, bytes | None]) -> None:
    """Give keys the very entries that they had."""
    for written, entry in entries.items():
        assert entry is not None
        network.write(ALPHA, written, entry)


@yields("subscriber/traps")
def test_keys_that_are_added_inside_a_range_count_as_not_dealt_with() -> Iterator[BlockVector]:
    about = trap("added-between", "keys are added inside a range of an interrupted pass: they were dealt with never")
    network = SmallNetwork()
    network.subscribe(ALPHA, [A, C, E])
    for each in K:
        network.publish(ALPHA, [each], each)
    yield cut_short(network, about, seal=True)
    network.subscribe(ALPHA, K[:5])
    yield network.block(about.at("none", "no byte is left: the added keys are noted"), budget=of_bytes(0))
    rest = network.block(about.at("all", "the added keys and the rest are told"))
    assert told(rest) == [B, D, E]
    yield rest
    network.subscribe(ALPHA, K)
    yield network.block(about.at("no-budget", "a key is added to a finished publisher"), budget=of_bytes(0))
    added = network.block(about.at("told"))
    assert told(added) == [F]
    yield added


@yields("subscriber/traps")
def test_a_value_that_moves_out_of_its_node_with_the_state_version_is_not_told() -> Iterator[BlockVector]:
    about = trap("migrated", "a value moves out of its node with the state version: nothing is told")
    network = SmallNetwork(relay=version_0())
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A, B], bytes(40))
    network.block(about)
    entry = network.entry(ALPHA, A)
    assert entry is not None
    network.relay.migrate(StateVersion.V1)
    network.delete(ALPHA, [A])
    network.relay.commit()
    network.write(ALPHA, A, entry)
    block = network.block(about)
    assert told(block) == []
    yield block


@yields("subscriber/turns")
def test_a_publisher_that_is_disabled_behind_the_wrap_is_not_told_what_it_had_before() -> Iterator[BlockVector]:
    yield around_a_cursor("behind", path_key("f"), staircase(9, subscribed=path_key("0")))


@yields("subscriber/turns")
def test_a_publisher_that_is_disabled_before_the_wrap_is_not_read_behind_it() -> Iterator[BlockVector]:
    yield around_a_cursor("before", path_key("0"), staircase(9, subscribed=path_key("f")))


def around_a_cursor(name: str, short: SubscribedKey, deep: list[SubscribedKey]) -> BlockVector:
    """Return a pass that begins between a short and a too deep path of one publisher."""
    network = SmallNetwork()
    network.subscribe(BETA, [short, deep[0]])
    network.publish(BETA, [short, *deep], bytes(30))
    network.subscribe(ALPHA, [A])
    network.publish(ALPHA, [A], b"alpha")
    network.seal()
    network.put_turn((BETA, path_key("f")))
    why = f"the pass begins inside of a publisher whose path is too deep {name} the wrap"
    block = network.block(About(f"turns/disabled/{name}", why, VectorSource(invariant=3)), seal=False)
    assert told(block) == [A]
    return block


# The mutants. Each says what it gets wrong.


def forget_what_was_dealt_with(patch: PATCH) -> None:
    """An interrupted pass leaves no bases: all keys seem to be as the publisher's old root has them."""
    patch.setattr(PublisherPass, "_processed_roots", lambda _: {})


def deal_with_all_at_once(patch: PATCH) -> None:
    """An interrupted pass leaves the new root as the base of every key."""
    roots = PublisherPass._processed_roots
    patch.setattr(PublisherPass, "_processed_roots", lambda self: dict.fromkeys(roots(self), self.found.root))


def keep_bases_of_what_is_gone(patch: PATCH) -> None:
    """An absent child trie takes root and cache with it, and leaves the bases of the interrupted pass."""
    apply, remove = Subscriber._store_change, StorageMap.remove

    def kept(self: Subscriber, change: Any, *given: Any) -> None:
        def spared(item: Any, it: Any) -> None:
            if item is not self.storage.unfinished_publishers or change.root is not None:
                remove(item, it)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(StorageMap, "remove", spared)
            apply(self, change, *given)

    patch.setattr(Subscriber, "_store_change", kept)


def added_keys_make_all_new(patch: PATCH) -> None:
    """Keys that are added make the publisher forget what an interrupted pass had dealt with."""
    change_bases(patch, lambda _, view: {it: None for it, base in (view.processed_roots or {}).items() if base is None})


def added_keys_count_as_the_others(patch: PATCH) -> None:
    """Keys that are added count as dealt with against the publisher's root."""
    change_bases(patch, lambda _, view: {it: base for it, base in (view.processed_roots or {}).items() if base} or None)


def added_keys_fall_into_ranges(patch: PATCH) -> None:
    """Keys that are added between keys that were dealt with count as dealt with too."""
    change_bases(patch, lambda storage, view: storage.processed_roots(view.para_id, view.subscribed.keys))


def change_bases(patch: PATCH, bases_of: Callable[[SubscriberStorage, PublisherView], Any]) -> None:
    def changed(self: NodeCache, view: PublisherView) -> PublisherView:
        if view.change is not SubscriptionChange.ADDED:
            return view
        return replace(view, processed_roots=bases_of(self.storage, view))

    patch.setattr(NodeCache, "view", changed)


def note_keys_alone(patch: PATCH) -> None:
    """A changed subscription is noted without what it says of the keys that were added."""
    note = Subscriber._note_subscription

    def alone(self: Subscriber, view: PublisherView) -> None:
        note(self, replace(view, processed_roots=None))

    patch.setattr(Subscriber, "_note_subscription", alone)


def trust_what_was_not_walked(patch: PATCH) -> None:
    """The cache is swept by what was lost although the old trie was not walked."""
    patch.setattr(
        node_cache, "is_settled", lambda _change, view: view.root is not None and view.processed_roots is None
    )


def compare_values_as_they_are_stored(patch: PATCH) -> None:
    """An entry inside its node and the same entry outside of it are different."""
    patch.setattr(walk, "is_same", lambda new, old: new == old)


def go_on_when_disabled(patch: PATCH) -> None:
    """A publisher that was disabled in its first range is walked in its second."""
    process = PublisherPass.process

    def goes_on(self: PublisherPass, low: int, high: int) -> None:
        before, self.found.disabled_by = self.found.disabled_by, None
        process(self, low, high)
        if before is not None:
            self.found.disabled_by = before

    patch.setattr(PublisherPass, "process", goes_on)


SCENES: dict[Callable[[], None], tuple[Callable[[PATCH], None], ...]] = {
    the_child_trie_is_gone_between_two_blocks: (forget_what_was_dealt_with, deal_with_all_at_once),
    the_child_trie_is_gone_for_a_block: (keep_bases_of_what_is_gone,),
    keys_are_added_during_a_pass: (
        added_keys_make_all_new,
        added_keys_count_as_the_others,
        added_keys_fall_into_ranges,
    ),
    everything_is_told_on_a_change: (trust_what_was_not_walked,),
    a_trie_is_migrated_in_an_interrupted_pass: (compare_values_as_they_are_stored,),
}

VECTORS: dict[Callable[[], None], tuple[Callable[[PATCH], None], ...]] = {
    test_a_change_that_was_told_and_is_taken_back_is_told_again_and_no_other: (
        forget_what_was_dealt_with,
        deal_with_all_at_once,
    ),
    test_a_child_trie_that_is_gone_while_its_first_pass_is_interrupted_takes_the_bases_with_it: (
        keep_bases_of_what_is_gone,
    ),
    test_keys_that_are_added_inside_a_range_count_as_not_dealt_with: (
        added_keys_make_all_new,
        added_keys_fall_into_ranges,
        note_keys_alone,
        added_keys_count_as_the_others,
    ),
    test_a_value_that_moves_out_of_its_node_with_the_state_version_is_not_told: (compare_values_as_they_are_stored,),
    test_a_publisher_that_is_disabled_behind_the_wrap_is_not_told_what_it_had_before: (tell_keys_of_the_disabled,),
    test_a_publisher_that_is_disabled_before_the_wrap_is_not_read_behind_it: (go_on_when_disabled,),
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_nothing_is_lost_and_nothing_is_told_twice_when(scene: Callable[[], None]) -> None:
    scene()


CASES = [(scene, mutate) for scene, mutants in (SCENES | VECTORS).items() for mutate in mutants]


@pytest.mark.parametrize(
    ("scene", "mutate"), CASES, ids=[f"{mutate.__name__}, {scene.__name__}" for scene, mutate in CASES]
)
def test_a_mutant_is_caught_when(
    scene: Callable[[], None], mutate: Callable[[PATCH], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, Panic)):
        scene()
