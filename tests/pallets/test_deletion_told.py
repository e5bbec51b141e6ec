"""Deletions told (policy ``Told``): a callback without a value for each delivered key that is proven absent, once."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.subscriber_mutants import (
    forget_what_was_delivered_with_the_cache,
    keep_bits_where_keys_move,
    remember_deletions_as_delivered,
    tell_every_absent_key,
    tell_no_deletion_without_the_trie,
    tell_where_the_old_trie_had_it,
)
from pallets.subscriber_world import ALPHA, BETA, FREE_READS, PUBLIC, K, Recorder, World, staircase
from pallets.told_world import TOLD, bits, clear_both_twice, clear_cache, clear_root, told_world
from relaycast_pallets import (
    CombinedHandlers,
    DataDeleted,
    Origin,
    Panic,
    Policies,
    State,
    SubscribedKey,
    Subscriber,
    System,
    derive_child_info,
)
from relaycast_pallets.subscriber.delivered_keys import bitmap_of, keys_in
from relaycast_pallets.subscriber.policies import Silent
from relaycast_pallets.subscriber.subscription import Subscriptions
from relaycast_trie.scale import encode_bytes
from relaycast_xcm.primitives import ParaId, Weight

ROOT = Origin.root()


class Deaf:
    """A handler that has no ``on_data_deleted``."""

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return [(ALPHA, K[:1])], Weight.ZERO

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: object) -> Weight:
        raise AssertionError("never called")


def test_a_key_that_never_existed_is_not_reported_as_deleted() -> None:
    """Nor where the publisher had no child trie in the first block, and got one without the key."""
    world = World(policies=TOLD)
    world.subscribe(ALPHA, K[:3])
    assert world.block().deleted == ()
    assert bits(world) is None
    for change in (b"1", b"2"):
        world.publish(ALPHA, K[3:4], change)
        assert world.block().deleted == ()
        assert bits(world) == "00000000"
    world.publish(ALPHA, K[:1])
    assert world.block().called == [(ALPHA, K[0])]
    world.delete(ALPHA, K[:4])
    assert world.block().deleted == ((ALPHA, K[0]),)


def test_a_deleted_key_is_told_once() -> None:
    world = told_world()
    world.delete(ALPHA, K[1:2])
    assert world.block().deleted == ((ALPHA, K[1]),)
    assert world.system.events.of(DataDeleted) == [DataDeleted(ALPHA, K[1])]
    assert world.subscriber.delivered.deletions == [(ALPHA, K[1])]
    world.publish(ALPHA, K[:1], b"another change")
    assert world.block().deleted == ()
    assert bits(world) == "10100000"


def test_values_come_before_deletions_and_both_in_the_order_of_the_keys() -> None:
    world = told_world(wanted=6)
    world.delete(ALPHA, [K[4], K[0]])
    world.publish(ALPHA, [K[3], K[1]], b"new")
    block = world.block()
    assert block.called == [(ALPHA, K[1]), (ALPHA, K[3])]
    assert block.deleted == ((ALPHA, K[0]), (ALPHA, K[4]))
    names = [type(event).__name__ for event in world.system.events]
    assert names == ["DataProcessed", "DataProcessed", "DataDeleted", "DataDeleted"]


def test_what_the_handler_returns_is_weighed() -> None:
    world = told_world()
    world.handler.weight = Weight(5, 7)
    world.delete(ALPHA, K[:2])
    world.block()
    assert world.subscriber.delivered.weight == Weight(10, 14)


def test_silent_tells_nothing_and_writes_nothing() -> None:
    world = told_world(policies=Policies(deletion=Silent()))
    world.delete(ALPHA, K[1:2])
    assert world.block().deleted == ()
    world.delete(ALPHA, K)
    assert world.block().deleted == ()
    assert not list(world.storage.delivered_keys.items())


def test_the_last_key_takes_the_trie_along_and_all_are_told() -> None:
    world = told_world(ALPHA, BETA)
    world.delete(ALPHA, K)
    assert world.block().deleted == tuple((ALPHA, key) for key in K[:3])
    assert bits(world) is None, "nothing is known of the publisher, nothing is delivered"
    assert world.block().deleted == ()


def test_a_publisher_that_comes_back_is_told_anew() -> None:
    world = told_world()
    world.delete(ALPHA, K)
    world.block()
    world.publish(ALPHA, K[1:2], b"again")
    assert world.block().called == [(ALPHA, K[1])]
    assert bits(world) == "01000000"
    world.delete(ALPHA, K)
    assert world.block().deleted == ((ALPHA, K[1]),)


def test_a_key_that_was_never_delivered_is_not_told() -> None:
    world = World(policies=TOLD)
    world.subscribe(ALPHA, K[:3])
    world.publish(ALPHA, K[3:], b"others")
    assert world.block().deleted == ()
    assert bits(world) == "00000000", "dealt with, and none of them delivered"
    world.publish(ALPHA, K[:2], b"brief")
    world.seal()
    world.delete(ALPHA, K[:2])
    world.publish(ALPHA, K[4:5], b"changes the root")
    assert world.block().deleted == ()


def test_an_entry_that_is_no_entry_is_not_delivered_and_its_deletion_is_not_told() -> None:
    world = told_world()
    child = world.relay.child(derive_child_info(ALPHA))
    child.put(K[0], b"\xff")
    child.put(K[5], b"\xff")
    world.subscribe(ALPHA, [*K[:3], K[5]])
    assert not world.block().deleted
    world.delete(ALPHA, [K[0], K[5]])
    assert world.block().deleted == ((ALPHA, K[0]),), "the handler still had the first key's value"


@pytest.mark.parametrize("room", [900, 1_000, 1_200])
def test_over_many_small_blocks_each_deletion_is_told_once(room: int) -> None:
    world = told_world(ALPHA, BETA, wanted=8)
    for publisher in (ALPHA, BETA):
        world.delete(publisher, K[:8:2])
        world.publish(publisher, K[1:8:2], bytes(60))
    world.seal()
    blocks = [world.block(room, seal=False) for _ in range(30)]
    told = [it for block in blocks for it in block.deleted]
    assert sorted(told) == sorted((publisher, key) for publisher in (ALPHA, BETA) for key in K[:8:2])
    assert sum(not block.result.is_complete for block in blocks) > 2
    assert blocks[-1].result.is_complete


@pytest.mark.parametrize("clear", [clear_cache, clear_root, clear_both_twice])
def test_what_is_deleted_while_roots_and_caches_are_cleared_is_told(clear: Callable[[World], None]) -> None:
    world = told_world()
    clear(world)
    world.delete(ALPHA, K[1:2])
    block = world.block()
    assert block.called == [(ALPHA, K[0]), (ALPHA, K[2])]
    assert block.deleted == ((ALPHA, K[1]),)
    assert bits(world) == "10100000"


def test_a_cleared_publisher_that_leaves_is_forgotten_altogether() -> None:
    world = told_world()
    clear_cache(world)
    world.subscribe(ALPHA, [])
    world.block()
    assert world.kept() == {}


def test_keys_that_are_subscribed_besides_leave_the_others_delivered() -> None:
    world = told_world()
    world.subscribe(ALPHA, K[4:7])
    world.block()
    world.subscribe(ALPHA, [*K[4:7], K[1], K[2], K[8]])
    world.delete(ALPHA, [K[2], K[5]])
    block = world.block()
    assert block.called == [(ALPHA, K[1]), (ALPHA, K[8])]
    assert block.deleted == ((ALPHA, K[5]),)
    assert bits(world) == "10101100"


def test_a_key_that_is_not_wanted_for_a_block_is_subscribed_anew() -> None:
    world = told_world(wanted=3)
    world.subscribe(ALPHA, K[1:3])
    world.block()
    assert bits(world) == "11000000"
    world.delete(ALPHA, [K[0], K[2]])
    world.subscribe(ALPHA, K[:3])
    assert world.block().deleted == ((ALPHA, K[2]),)


def test_a_publisher_that_leaves_takes_its_item_along() -> None:
    world = told_world(ALPHA, BETA)
    world.subscribe(ALPHA, [])
    world.block()
    assert (bits(world), bits(world, BETA)) == (None, "11100000")
    world.delete(ALPHA, K)
    world.subscribe(ALPHA, K[:3])
    assert world.block().deleted == ()


def test_what_a_disabled_publisher_deletes_is_told_when_it_is_enabled() -> None:
    deep = staircase(10)
    world = World(policies=TOLD)
    world.subscribe(ALPHA, [deep[0], *K[:2]])
    world.publish(ALPHA, [deep[0], *K])
    world.block()
    world.publish(ALPHA, deep, bytes(40))
    world.delete(ALPHA, K[:1])
    assert world.block().deleted == ()
    assert ALPHA in world.storage.disabled_publishers
    world.delete(ALPHA, deep[1:])
    assert world.block().deleted == ()
    world.subscriber.enable_publisher(ROOT, ALPHA)
    assert world.block().deleted == ((ALPHA, K[0]),)


def test_a_collator_cannot_hide_a_deletion() -> None:
    world = told_world()
    world.delete(ALPHA, K[1:2])
    world.seal()
    honest, _ = world.prune()
    static = world.static_nodes()
    assert len(honest.relay_chain_state) > len(static)
    for at in range(len(honest.relay_chain_state)):
        nodes = honest.relay_chain_state[:at] + honest.relay_chain_state[at + 1 :]
        before = world.everything()
        with pytest.raises(Panic):
            world.parachain.set_validation_data(replace(honest, relay_chain_state=nodes), b"")
        assert world.everything() == before
    assert world.block(seal=False).deleted == ((ALPHA, K[1]),)


def test_a_handler_that_cannot_be_told_is_refused_at_set_up() -> None:
    state = State()
    with pytest.raises(ValueError, match=r"^deletions are told to handlers with on_data_deleted, got Deaf$"):
        Subscriber(System(state), Deaf(), policies=TOLD)
    with pytest.raises(ValueError, match="got Deaf"):
        Subscriber(System(state), CombinedHandlers([Recorder(), Deaf()]), policies=TOLD)
    assert Subscriber(System(state), CombinedHandlers([Recorder(), Deaf()])).policies == Policies()


def test_of_combined_handlers_those_are_told_that_subscribe_to_the_key() -> None:
    first, second = Recorder({ALPHA: K[:2]}, weight=Weight(1, 1)), Recorder({ALPHA: K[1:3]}, weight=Weight(2, 4))
    combined = CombinedHandlers([first, second])
    assert combined.on_data_deleted(ALPHA, K[1]) == Weight(3, 5)
    assert combined.on_data_deleted(ALPHA, K[2]) == Weight(2, 4)
    assert combined.on_data_deleted(PUBLIC, K[1]) == Weight.ZERO
    assert (first.deleted, second.deleted) == ([(ALPHA, K[1])], [(ALPHA, K[1]), (ALPHA, K[2])])


def test_the_item_is_a_bounded_vec_of_bits() -> None:
    world = World(policies=TOLD)
    world.subscribe(ALPHA, K[:9])
    world.publish(ALPHA, [K[0], K[3], K[8]])
    world.block()
    item = world.storage.delivered_keys.storage_key(ALPHA)
    assert world.state.get(item) == encode_bytes(b"\x09\x01")


@given(st.sets(st.binary(min_size=32, max_size=32), max_size=40), st.data())
def test_bits_stand_for_the_keys_that_they_were_made_of(drawn: set[bytes], data: st.DataObject) -> None:
    every = sorted(map(SubscribedKey, drawn))
    chosen = frozenset(data.draw(st.sets(st.sampled_from(every)))) if every else frozenset()
    bitmap = bitmap_of(every, chosen)
    assert len(bitmap) == (len(every) + 7) // 8
    assert keys_in(bitmap, every) == chosen


@given(st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(K), min_size=1)), max_size=6), st.integers(0, 3_000))
def test_telling_reads_nothing_more_of_the_relay_chain(
    changes: list[tuple[bool, set[SubscribedKey]]], room: int
) -> None:
    """The proof that shows a deletion to a reader who is told is the one that moves a silent reader on."""
    worlds = [World(config=FREE_READS, policies=policies) for policies in (Policies(), TOLD)]
    for world in worlds:
        world.subscribe(ALPHA, K)
        world.publish(ALPHA, K, bytes(60))
    for number, (deletes, some) in enumerate(changes):
        silent, told = worlds
        for world in worlds:
            if deletes:
                world.delete(ALPHA, some)
            else:
                world.publish(ALPHA, some, b"%d" % number)
        assert silent.block(room).result.reads == told.block(room).result.reads
        assert silent.handler.calls == told.handler.calls
        assert silent.storage.previous_roots() == told.storage.previous_roots()


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = [
    (tell_every_absent_key, test_a_key_that_was_never_delivered_is_not_told),
    (
        tell_where_the_old_trie_had_it,
        lambda: test_what_is_deleted_while_roots_and_caches_are_cleared_is_told(clear_root),
    ),
    (tell_no_deletion_without_the_trie, test_the_last_key_takes_the_trie_along_and_all_are_told),
    (remember_deletions_as_delivered, test_a_deleted_key_is_told_once),
    (
        forget_what_was_delivered_with_the_cache,
        lambda: test_what_is_deleted_while_roots_and_caches_are_cleared_is_told(clear_cache),
    ),
    (keep_bits_where_keys_move, test_keys_that_are_subscribed_besides_leave_the_others_delivered),
]


@pytest.mark.parametrize(("mutant", "notices"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_a_pallet_that_tells_wrongly_is_noticed(
    mutant: Callable[[pytest.MonkeyPatch], None], notices: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    notices()
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        notices()
