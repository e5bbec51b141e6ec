"""The subscriber pallet's calls and events, and what a changed subscription does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, replace

import pytest

from pallets.block_vectors import ALPHA, BETA, OTHER_PUBLIC, PUBLIC, path_key, staircase
from pallets.subscriber_invariants import cache_is_exact
from pallets.subscriber_world import MOCK, K, World, disabled, following, meter
from relaycast_pallets import (
    BadOrigin,
    DataProcessed,
    DispatchError,
    KeyBeyondBudget,
    Origin,
    Policies,
    PublisherCacheCleared,
    PublisherNotDisabled,
    PublisherRootCleared,
    PublisherRootNotFound,
    Subscriber,
    TrackedProof,
    derive_child_info,
    ensure_signed,
)
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.events import EntryUndecodable, SubscriberEvent
from relaycast_pallets.subscriber.plan import SubscriptionChange
from relaycast_pallets.subscriber.storage import TRIE_DEPTH_EXCEEDED
from relaycast_pallets.subscriber.variants.drafts import AfterFirstKey, ValuesOnly
from relaycast_xcm.primitives import ROCKS_DB, ZERO_DB, ParaId, Weight

A, B, C, D, E = K[:5]
ROOT, SIGNED = Origin.root(), Origin.signed(bytes(32))


@contextmanager
def refused(world: World, error: type[DispatchError]) -> Iterator[None]:
    before = world.everything()
    with pytest.raises(error):
        yield
    assert world.everything() == before


@pytest.mark.upstream("clear_stored_roots_extrinsic")
@pytest.mark.upstream("clear_stored_roots_only_clears_specified_publisher")
def test_forgetting_a_root_has_its_keys_told_again() -> None:
    world = following(ALPHA, PUBLIC)
    world.subscriber.clear_stored_roots(ROOT, ALPHA)
    assert world.storage.previous_roots() == {PUBLIC: world.root_of(PUBLIC)}
    assert list(world.system.events) == [PublisherRootCleared(ALPHA)]
    assert ALPHA in world.storage.digests()
    assert world.block().called == [(ALPHA, wanted) for wanted in K[:3]]


@pytest.mark.upstream("clear_stored_roots_fails_if_not_found")
def test_a_root_that_is_not_known_cannot_be_forgotten() -> None:
    world = following()
    with refused(world, PublisherRootNotFound):
        world.subscriber.clear_stored_roots(ROOT, BETA)


@pytest.mark.upstream("enable_publisher_requires_root_origin")
@pytest.mark.upstream("clear_cache_origin_check")
@pytest.mark.parametrize("origin", [SIGNED, Origin.parachain(ALPHA), Origin.none()])
@pytest.mark.parametrize(
    "call", [Subscriber.clear_stored_roots, Subscriber.enable_publisher, Subscriber.clear_publisher_cache]
)
def test_calls_are_for_root(call: Callable[[Subscriber, Origin, ParaId], None], origin: Origin) -> None:
    world = disabled()
    with refused(world, BadOrigin):
        call(world.subscriber, origin, ALPHA)


def test_clearing_a_cache_is_for_whom_the_runtime_says() -> None:
    world = following()
    subscriber = Subscriber(world.system, world.handler, MOCK, clear_cache_origin=ensure_signed)  # type: ignore[arg-type]
    with refused(world, BadOrigin):
        subscriber.clear_publisher_cache(ROOT, ALPHA)
    subscriber.clear_publisher_cache(SIGNED, ALPHA)
    assert world.cached(ALPHA) == {}


@pytest.mark.upstream("clear_publisher_cache_removes_all_entries")
@pytest.mark.upstream("clear_publisher_cache_clears_root")
def test_clearing_a_cache_removes_all_that_is_remembered_of_the_publisher() -> None:
    world = World()
    pristine = world.kept()
    world.subscribe(ALPHA, K[:3])
    world.publish(ALPHA, K, bytes(40))
    world.block(700)
    assert world.kept() != pristine
    world.block()
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    assert world.kept() == pristine
    assert list(world.system.events)[-1] == PublisherCacheCleared(ALPHA)
    assert world.block().called == [(ALPHA, wanted) for wanted in K[:3]]
    cache_is_exact(world)


@pytest.mark.upstream("data_processed_event_emitted")
def test_each_value_told_is_an_event() -> None:
    world = following()
    world.publish(ALPHA, [A], b"v")
    world.block()
    assert list(world.system.events) == [DataProcessed(ALPHA, A, value_size=1)]
    assert world.system.events.of(SubscriberEvent)[0].name == "Subscriber.DataProcessed"


def test_what_is_no_entry_is_passed_over() -> None:
    world = following()
    world.relay.child(world.relay.children()[0]).put(A, b"\xff")
    world.publish(ALPHA, [B], b"v")
    block = world.block()
    assert block.called == [(ALPHA, B)]
    assert list(world.system.events) == [EntryUndecodable(ALPHA, A), DataProcessed(ALPHA, B, 1)]


def test_what_callbacks_weigh_is_added_up() -> None:
    world = World()
    world.handler.weight = Weight(5, 7)
    world.subscribe(ALPHA, K[:3])
    world.publish(ALPHA, K)
    world.block()
    assert world.subscriber.delivered.weight == Weight(15, 21)
    assert [update[:2] for update in world.subscriber.delivered.updates] == [(ALPHA, wanted) for wanted in K[:3]]


def test_refusals_name_the_publisher() -> None:
    assert str(PublisherNotDisabled(ALPHA)) == "publisher 1000 is not disabled"


def test_keys_removed_and_added_at_once_count_as_removed() -> None:
    world = following()
    world.subscribe(ALPHA, [A, E])
    assert world.subscriber.plan().views[ALPHA].change is SubscriptionChange.REMOVED
    assert world.block().called == [(ALPHA, A), (ALPHA, E)]
    cache_is_exact(world)


@pytest.mark.parametrize("again", [K[:3], K[:5], K[1:3], K[5:7]], ids=["the same", "more", "fewer", "others"])
def test_a_publisher_that_is_dropped_and_wanted_again_is_followed_exactly(again: list[bytes]) -> None:
    world = following(ALPHA, BETA)
    del world.handler.wanted[ALPHA]
    world.publish(ALPHA, K[2:6], b"meanwhile")
    world.block()
    world.subscribe(ALPHA, [K[K.index(wanted)] for wanted in again])  # type: ignore[arg-type]
    block = world.block()
    changed = [wanted for wanted in again if wanted in K[2:6]]
    kept = [wanted for wanted in again if wanted not in changed]
    assert set(changed) <= {told for _, told in block.called} <= set(changed) | set(kept)
    cache_is_exact(world)


@pytest.mark.parametrize(
    ("config", "min_weight"),
    [
        (SubscriberConfig(), Weight(ROCKS_DB.read, 2_048 + 2 + 8)),  # two bytes of length for 2,048 bytes
        (SubscriberConfig(max_value_length=2_054), Weight(ROCKS_DB.read, 2_054 + 2 + 8)),
        (SubscriberConfig(max_value_length=63), Weight(ROCKS_DB.read, 750)),  # the largest node counts
        (SubscriberConfig(max_value_length=16_384), Weight(ROCKS_DB.read, 16_384 + 4 + 8)),
    ],
)
def test_the_least_that_must_not_fit_is_one_read_of_the_largest_node_or_entry(
    config: SubscriberConfig, min_weight: Weight
) -> None:
    assert config.min_weight == min_weight


def test_storage_items_stand_under_the_keys_of_the_draft() -> None:
    storage = World().storage
    prefixes = [
        storage.previous_published_data_roots.prefix,
        storage.disabled_publishers.prefix,
        storage.cached_trie_nodes.prefix,
        storage.relay_proof_processing_cursor.prefix,
    ]
    assert [prefix[16:].hex() for prefix in prefixes] == [
        "8b0c6e92e0870f5a2d218d1d41118f5e",
        "202fcd5c5a55dda4ddf5c32618d60d02",
        "593f7d5e9cbfc102bbd1cabfd92ace55",
        "654a13ca897758ebbe836bfdba86bed0",
    ]


def test_a_subscriber_shows_what_it_follows() -> None:
    assert repr(following(ALPHA, BETA).subscriber) == "<Subscriber of 6 keys from 2 publishers>"


def test_what_reads_weigh_follows_the_policies_and_constants() -> None:
    subscriber, proof = World().subscriber, TrackedProof([], bytes(32))
    subscriber.policies = Policies(metering=ValuesOnly())
    assert subscriber.paid_reads(proof, meter()).charges.node(100) == Weight.ZERO
    subscriber.config = replace(MOCK, db_weight=ZERO_DB)
    assert subscriber.paid_reads(proof, meter()).charges.value(100) == Weight(0, 100)


def test_what_is_asked_for_is_worked_out_anew_only_where_it_changes() -> None:
    world = following(ALPHA, BETA)
    names = [derive_child_info(publisher).storage_key for publisher in (ALPHA, BETA)]
    known = world.subscriber.relay_keys()
    assert world.subscriber.relay_keys() is known
    world.storage.disabled_publishers.insert(ALPHA, TRIE_DEPTH_EXCEEDED)
    assert list(world.subscriber.relay_keys().by_child_trie()) == names[1:]
    world.subscriber.enable_publisher(ROOT, ALPHA)
    assert list(world.subscriber.relay_keys().by_child_trie()) == names


def test_there_is_something_to_ask_for_while_a_publisher_with_keys_is_not_disabled() -> None:
    world = World()
    asks = [world.subscriber.subscribes]
    world.subscribe(ALPHA, [A])
    asks.append(world.subscriber.subscribes)
    world.storage.disabled_publishers.insert(ALPHA, TRIE_DEPTH_EXCEEDED)
    assert [*asks, world.subscriber.subscribes] == [False, True, False]


@pytest.mark.parametrize(("depth", "follows"), [(16, True), (17, False)])
def test_a_path_has_up_to_sixteen_nodes_unless_the_runtime_says_otherwise(depth: int, *, follows: bool) -> None:
    world = World(config=SubscriberConfig())
    steps = staircase(depth)
    world.subscribe(ALPHA, steps[:1])
    world.publish(ALPHA, steps, bytes(40))
    assert world.block().called == [(ALPHA, steps[0])] * follows
    assert (ALPHA in world.storage.disabled_publishers) is not follows


def test_constants_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        SubscriberConfig().max_publishers = 1  # type: ignore[misc]


def test_added_keys_are_told_under_every_policy_of_roots() -> None:
    """A pass is cut short among them, and the root that it would remember is the one that is remembered already."""
    world = World(policies=Policies(root_commit=AfterFirstKey()))
    world.subscribe(ALPHA, K[:1])
    world.publish(ALPHA, K, bytes(300))
    world.block()
    world.subscribe(ALPHA, K)
    first = world.block(900)
    assert not first.result.is_complete
    assert sorted([*first.called, *world.block().called]) == [(ALPHA, wanted) for wanted in K[1:]]


def test_a_root_that_is_remembered_early_is_remembered_by_the_first_block() -> None:
    world = World(policies=Policies(root_commit=AfterFirstKey()))
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K, bytes(300))
    assert not world.block(900).result.is_complete
    assert world.storage.previous_roots() == {ALPHA: world.root_of(ALPHA)}
    assert ALPHA not in world.storage.unfinished_publishers


def test_a_key_beyond_the_budget_is_an_event_with_what_was_read_for_it() -> None:
    world = World()
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K, bytes(1_000))
    first = world.block(900)
    assert (first.result.stopped_at, world.system.events.of(KeyBeyondBudget)) == ((ALPHA, K[0]), [])
    read = sum(read.size for read in world.block(900).result.reads)
    assert world.system.events.of(KeyBeyondBudget) == [KeyBeyondBudget(ALPHA, K[0], read)]
    assert read


def test_the_order_of_publishers_is_drawn_anew_when_a_pass_is_complete() -> None:
    world = World()
    for publisher in (PUBLIC, OTHER_PUBLIC):
        world.subscribe(publisher, K)
        world.publish(publisher, K, str(publisher).encode() * 75)
    drawn = [world.block(900, seed=seed).result.plan.seed for seed in (b"first", b"second")]
    assert drawn == [b"first"] * 2
    assert world.storage.publisher_order_seed.get() == b"first"
    assert world.block(seed=b"third").result.is_complete
    assert not world.storage.publisher_order_seed.exists()


def test_a_plan_begins_where_the_last_pass_left_off() -> None:
    world = following()
    plan = world.subscriber.plan()
    assert (plan.cursor, plan.turns.begin, plan.seed) == (None, None, b"")
    world.storage.put_turn((ALPHA, B), (ALPHA, A))
    world.storage.publisher_order_seed.put(b"seed")
    plan = world.subscriber.plan(b"drawn")
    assert (plan.cursor, plan.turns.begin, plan.seed) == ((ALPHA, B), (ALPHA, A), b"seed")
    assert world.subscriber.plan(reduced_by_messages=True).turns.begin == (ALPHA, B)


def test_counts_of_shared_nodes_stay_until_they_move() -> None:
    first, second, other = (path_key(digit) for digit in "123")
    world = World()
    world.subscribe(ALPHA, [first, second, other])
    world.publish(ALPHA, [first, second], bytes(40))
    world.publish(ALPHA, [other], bytes(41))
    world.block()
    counts = world.storage.cache_of(ALPHA).shared()
    assert list(counts.values()) == [2]
    world.publish(ALPHA, [other], bytes(42))
    world.block()
    assert world.storage.cache_of(ALPHA).shared() == counts
    world.publish(ALPHA, [first], bytes(43))
    world.block()
    assert ALPHA not in world.storage.shared_trie_nodes
