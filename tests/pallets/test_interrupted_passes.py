"""What may happen while a pass is interrupted: each scene by itself, and the mutant that it catches.

A publisher that a pass left unfinished has keys that were dealt with against its new root, and keys that were not. The
scenes check every invariant on their way; a mutant loses an update, tells one twice, or leaves nodes behind.
"""

from collections.abc import Callable
from typing import Any

import pytest

from pallets.subscriber_invariants import ChangesTold, all_hold, cache_is_exact
from pallets.subscriber_mutants import tell_keys_of_the_disabled
from pallets.subscriber_world import ALPHA, BETA, Block, World, key, keys, path_key, staircase
from relaycast_pallets import Policies, PublishedEntry, State, SubscribedKey, derive_child_info
from relaycast_pallets.frame.typed_storage import StorageMap
from relaycast_pallets.parachain_system.pallet import Panic
from relaycast_pallets.subscriber import publisher_walk
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.policies import AllKeysOnChange, SystemFirstNumeric
from relaycast_pallets.subscriber.publisher_pass import PublisherPass
from relaycast_trie import StateVersion

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


def a_change_is_taken_back() -> None:
    """What was told is told back; the keys whose turn had not come see no change."""
    world, told = follow()
    before = entries_of(world)
    write(world, 1)
    first = interrupt(world, told)
    put_back(world, before)
    assert sorted(settle(world, told).called) == sorted(first.called)


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


def a_first_pass_is_interrupted_and_the_child_trie_goes() -> None:
    """The same before any root was remembered."""
    world, told = World(policies=NUMERIC), ChangesTold()
    world.subscribe(ALPHA, W)
    write(world, 0)
    interrupt(world, told)
    held = entries_of(world)
    world.delete(ALPHA, W)
    settle(world, told)
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


def keys_are_added_during_the_first_pass() -> None:
    """The same before any root was remembered."""
    world, told = World(policies=NUMERIC), ChangesTold()
    world.subscribe(ALPHA, W)
    write(world, 0)
    world.publish(ALPHA, MORE, bytes(40))
    first = interrupt(world, told)
    world.subscribe(ALPHA, [*W, *MORE])
    block = settle(world, told)
    assert sorted(wanted for _, wanted in [*first.called, *block.called]) == sorted([*W, *MORE])


def a_key_is_added_whose_turn_does_not_come() -> None:
    """The pass ends before its publisher, whose root does not move: the key is remembered as not dealt with."""
    world, told = World(policies=NUMERIC), ChangesTold()
    new = key("new")
    world.subscribe(ALPHA, W)
    world.subscribe(BETA, W[:2])
    write(world, 0)
    world.publish(BETA, [*W[:2], new], b"beta")
    settle(world, told)
    write(world, 1)
    world.subscribe(BETA, [*W[:2], new])
    block = interrupt(world, told)
    assert block.result.cursor is not None
    assert block.result.cursor[0] == ALPHA
    assert world.subscriber.plan().views[BETA].change is SubscriptionChange.NONE
    assert (BETA, new) in settle(world, told).called
    assert settle(world, told).calls == ()


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


def a_trie_is_migrated() -> None:
    """Entries move out of their nodes and nothing else happens: the root changes, and nothing is told."""
    entries = {
        bytes(wanted): PublishedEntry(bytes([place]) * (place * 20), 0, 0).encode() for place, wanted in enumerate(W)
    }
    world, told = World(), ChangesTold()
    world.relay = State({b"top": b""}, {derive_child_info(ALPHA): entries}, state_version=StateVersion.V0, window=8)
    world.subscribe(ALPHA, W)
    assert len(settle(world, told).calls) == len(W)
    world.relay.migrate(StateVersion.V1)
    roots = {world.root_of(ALPHA)}
    for written in (W[3:5], W[5:6], W):
        put_back(world, {wanted: entries[bytes(wanted)] for wanted in written})
        assert settle(world, told).calls == ()
        roots.add(world.root_of(ALPHA))
    assert len(roots) == 4
    external = [entry for entry in entries.values() if len(entry) > 32]
    proof = world.relay.prove_child_read(world.relay.root, derive_child_info(ALPHA), W)
    assert set(external) <= proof.nodes


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


def around_a_cursor(early: SubscribedKey, deep: list[SubscribedKey]) -> tuple[World, Block]:
    """Return a world whose pass began between a short and a too deep path of one publisher, and the block."""
    world, told = World(policies=NUMERIC), ChangesTold()
    world.subscribe(ALPHA, [early, deep[0]])
    world.publish(ALPHA, [early, *deep], bytes(40))
    world.subscribe(BETA, W[:2])
    world.publish(BETA, W[:2], b"beta")
    world.storage.relay_proof_processing_cursor.put((ALPHA, max(early, deep[0])))
    block = world.block()
    all_hold(world, block, told)
    assert ALPHA in world.storage.disabled_publishers
    assert block.called == [(BETA, wanted) for wanted in W[:2]]
    assert world.cached(ALPHA) == {}
    assert list(world.storage.previous_roots()) == [BETA]
    return world, block


def a_publisher_is_disabled_behind_the_wrap() -> None:
    """Its first range was fine and read; the second is too deep: what the first one had is not told."""
    _, block = around_a_cursor(path_key("f"), staircase(10, subscribed=path_key("0")))
    of_beta = [place for place, read in enumerate(block.result.reads) if read.publisher == BETA]
    behind = [read.publisher for read in block.result.reads[of_beta[-1] :]]
    assert ALPHA in behind


def a_disabled_publisher_comes_again_behind_the_wrap() -> None:
    """Its first range was too deep: the second is not read at all."""
    _, block = around_a_cursor(path_key("0"), staircase(10, subscribed=path_key("f")))
    of_beta = [place for place, read in enumerate(block.result.reads) if read.publisher == BETA]
    assert {read.publisher for read in block.result.reads[of_beta[0] :]} == {BETA}


# The mutants. Each says what it gets wrong.


def forget_what_was_dealt_with(patch: PATCH) -> None:
    """An interrupted pass leaves no bases: all keys seem to be as the publisher's old root has them."""
    patch.setattr(PublisherPass, "_new_bases", lambda _: {})


def deal_with_all_at_once(patch: PATCH) -> None:
    """An interrupted pass leaves the new root as the base of every key."""
    bases = PublisherPass._new_bases
    patch.setattr(PublisherPass, "_new_bases", lambda self: dict.fromkeys(bases(self), self._root))


def keep_bases_of_what_is_gone(patch: PATCH) -> None:
    """An absent child trie takes root and cache with it, and leaves the bases of the interrupted pass."""
    apply, remove = Subscriber._apply_change, StorageMap.remove

    def kept(self: Subscriber, change: Any, *given: Any) -> None:
        def spared(item: Any, it: Any) -> None:
            if item is not self.storage.unfinished_publishers or change.root is not None:
                remove(item, it)

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(StorageMap, "remove", spared)
            apply(self, change, *given)

    patch.setattr(Subscriber, "_apply_change", kept)


def added_keys_make_all_new(patch: PATCH) -> None:
    """Keys that are added make the publisher forget what an interrupted pass had dealt with."""
    change_bases(patch, lambda _, view: {it: None for it, base in (view.bases or {}).items() if base is None})


def added_keys_count_as_the_others(patch: PATCH) -> None:
    """Keys that are added count as dealt with against the publisher's root."""
    change_bases(patch, lambda _, view: {it: base for it, base in (view.bases or {}).items() if base} or None)


def added_keys_fall_into_ranges(patch: PATCH) -> None:
    """Keys that are added between keys that were dealt with count as dealt with too."""
    change_bases(patch, lambda self, view: self.storage.bases(view.para_id, view.subscribed.keys))


def change_bases(patch: PATCH, bases_of: Callable[[Subscriber, PublisherView], Any]) -> None:
    view = Subscriber._view

    def changed(self: Subscriber, *given: Any) -> PublisherView:
        seen = view(self, *given)
        if seen.change is not SubscriptionChange.ADDED:
            return seen
        return PublisherView(seen.para_id, seen.subscribed, seen.root, bases_of(self, seen), seen.change, seen.cache)

    patch.setattr(Subscriber, "_view", changed)


def note_keys_alone(patch: PATCH) -> None:
    """A changed subscription is noted without what it says of the keys that were added."""
    note = Subscriber._note_subscription

    def alone(self: Subscriber, view: PublisherView) -> None:
        note(self, PublisherView(view.para_id, view.subscribed, view.root, None, view.change, view.cache))

    patch.setattr(Subscriber, "_note_subscription", alone)


def trust_what_was_not_walked(patch: PATCH) -> None:
    """The cache is swept by what was lost although the old trie was not walked."""
    patch.setattr(PublisherPass, "_saw_all_of_old", property(lambda _: True, lambda _, __: None), raising=False)


def compare_values_as_they_are_stored(patch: PATCH) -> None:
    """An entry inside its node and the same entry outside of it are different."""
    patch.setattr(publisher_walk, "_is_same", lambda new, old: new == old)


def go_on_when_disabled(patch: PATCH) -> None:
    """A publisher that was disabled in its first range is walked in its second."""
    process = PublisherPass.process

    def goes_on(self: PublisherPass, low: int, high: int) -> None:
        before = self._disabled
        self._disabled = None
        process(self, low, high)
        if before is not None:
            self._disabled = before

    patch.setattr(PublisherPass, "process", goes_on)


SCENES: dict[Callable[[], None], tuple[Callable[[PATCH], None], ...]] = {
    a_change_is_taken_back: (forget_what_was_dealt_with, deal_with_all_at_once),
    the_child_trie_is_gone_between_two_blocks: (forget_what_was_dealt_with, deal_with_all_at_once),
    the_child_trie_is_gone_for_a_block: (keep_bases_of_what_is_gone,),
    a_first_pass_is_interrupted_and_the_child_trie_goes: (keep_bases_of_what_is_gone,),
    keys_are_added_during_a_pass: (
        added_keys_make_all_new,
        added_keys_count_as_the_others,
        added_keys_fall_into_ranges,
    ),
    keys_are_added_during_the_first_pass: (added_keys_make_all_new, added_keys_fall_into_ranges),
    a_key_is_added_whose_turn_does_not_come: (note_keys_alone, added_keys_count_as_the_others),
    everything_is_told_on_a_change: (trust_what_was_not_walked,),
    a_trie_is_migrated: (compare_values_as_they_are_stored,),
    a_trie_is_migrated_in_an_interrupted_pass: (compare_values_as_they_are_stored,),
    a_publisher_is_disabled_behind_the_wrap: (tell_keys_of_the_disabled,),
    a_disabled_publisher_comes_again_behind_the_wrap: (go_on_when_disabled,),
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_nothing_is_lost_and_nothing_is_told_twice_when(scene: Callable[[], None]) -> None:
    scene()


CASES = [(scene, mutate) for scene, mutants in SCENES.items() for mutate in mutants]


@pytest.mark.parametrize(
    ("scene", "mutate"), CASES, ids=[f"{mutate.__name__}, {scene.__name__}" for scene, mutate in CASES]
)
def test_a_mutant_is_caught_when(
    scene: Callable[[], None], mutate: Callable[[PATCH], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, Panic)):
        scene()
