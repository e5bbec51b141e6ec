"""What a subscriber declares and receives: keys, handlers, and how long a value has left."""

from collections.abc import Iterator
from typing import cast

import pytest
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    BETA,
    PUBLIC,
    A,
    B,
    BlockVector,
    C,
    K,
    SmallNetwork,
    executes,
    following,
    key,
    path_key,
)
from pallets.subscriber_world import MOCK, Recorder, World
from relaycast_pallets import (
    CombinedHandlers,
    Infinite,
    SubscribedKey,
    Subscriber,
    TimedOut,
    TtlState,
    ValidFor,
    compute_ttl_state,
    derive_child_info,
    subscribed_key,
)
from relaycast_pallets.subscriber.subscription import Subscriptions, by_publisher
from relaycast_xcm.primitives import U32_MAX, ParaId, Weight
from vector_fields import hexed
from yielded_vectors import yields


@pytest.mark.upstream("subscribed_key_from_hash")
@pytest.mark.upstream("subscribed_key_from_data")
@pytest.mark.upstream("subscribed_key_macro")
@yields("subscriber/scenarios")
def test_a_key_is_the_hash_of_a_name_or_of_data_or_a_hash_as_it_is() -> Iterator[BlockVector]:
    named, data = subscribed_key("my_key"), bytes(range(100))
    assert named is subscribed_key("my_key")
    for about, hashed, wanted in (
        (
            executes(
                "Subscription Handler / Compile-time key hashing",
                "compile-time-hashing",
                "subscribed_key!(my_key) is the Blake2b-256 hash of the name",
            ),
            b"my_key",
            named,
        ),
        (
            executes(
                "Subscription Handler / Runtime key hashing",
                "runtime-hashing",
                "SubscribedKey::from_data hashes any bytes with Blake2b-256",
            ),
            data,
            SubscribedKey.from_data(data),
        ),
        (
            executes(
                "Subscription Handler / Pre-computed hash",
                "pre-computed-hash",
                "SubscribedKey::from_hash takes 32 bytes as they are",
            ),
            b"",
            SubscribedKey.from_hash(path_key("c0ffee")),
        ),
    ):
        network = SmallNetwork()
        network.subscribe(ALPHA, [wanted])
        network.publish(ALPHA, [wanted], hashed)
        yield replace(network.block(about), hashed_keys=((hexed(hashed), hexed(wanted)),) if hashed else ())


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match=f"32 bytes, got {size}"):
        SubscribedKey(bytes(size))


def test_a_key_shows_its_hash() -> None:
    assert repr(SubscribedKey(bytes(31) + b"\x01")) == f"SubscribedKey(0x{'00' * 31}01)"


@pytest.mark.parametrize(
    ("ttl", "when_inserted", "now", "state"),
    [
        pytest.param(0, 100, 200, Infinite(), marks=pytest.mark.upstream("compute_ttl_state_infinite")),
        pytest.param(100, 100, 150, ValidFor(50), marks=pytest.mark.upstream("compute_ttl_state_valid_for")),
        pytest.param(100, 100, 200, TimedOut(), marks=pytest.mark.upstream("compute_ttl_state_exactly_at_expiration")),
        pytest.param(
            100, 100, 199, ValidFor(1), marks=pytest.mark.upstream("compute_ttl_state_one_block_before_expiration")
        ),
        pytest.param(0, 1_000, 5_000, Infinite(), marks=pytest.mark.upstream("ttl_zero_returns_infinite")),
        pytest.param(
            100,
            1_000,
            1_050,
            ValidFor(50),
            marks=pytest.mark.upstream("ttl_with_remaining_blocks_returns_valid_for"),
        ),
        pytest.param(
            100,
            1_000,
            1_200,
            TimedOut(),
            marks=[
                pytest.mark.upstream("compute_ttl_state_timed_out"),
                pytest.mark.upstream("ttl_expired_returns_timed_out"),
            ],
        ),
        pytest.param(
            100, 1_000, 1_100, TimedOut(), marks=pytest.mark.upstream("ttl_exactly_at_expiry_returns_timed_out")
        ),
        pytest.param(
            100,
            1_000,
            1_099,
            ValidFor(1),
            marks=pytest.mark.upstream("ttl_one_block_before_expiry_returns_valid_for_one"),
        ),
        (1, 10, 10, ValidFor(1)),  # one block to live, seen in the block that wrote it
        (U32_MAX, 5, 10, ValidFor(U32_MAX - 5)),  # no overflow: it does not expire early
        (U32_MAX, 10, 5, ValidFor(U32_MAX)),  # what is left saturates at a u32
    ],
)
def test_what_is_left_to_live(ttl: int, when_inserted: int, now: int, state: TtlState) -> None:
    assert compute_ttl_state(ttl, when_inserted, now) == state


def test_ttl_states_encode_as_an_enum() -> None:
    assert [state.encode() for state in (Infinite(), ValidFor(258), TimedOut())] == [
        b"\x00",
        b"\x01\x02\x01\x00\x00",
        b"\x02",
    ]


@yields("subscriber/scenarios")
def test_repeated_declarations_count_once_and_their_weight_is_not_the_passs() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Subscription declaration",
        "subscription-declaration",
        "subscriptions() returns publishers with keys and a weight; the weight is the block's, not the pass's",
    )
    network = SmallNetwork(declared_weight=Weight(7_000, 900))
    network.wanted = [(PUBLIC, [A]), (ALPHA, [B, A])]
    for publisher in (ALPHA, PUBLIC):
        network.publish(publisher, K[:3])
    yield network.block(about)
    network = SmallNetwork()
    network.wanted = [(PUBLIC, [B]), (ALPHA, [B, A, B]), (BETA, []), (PUBLIC, [A, B])]
    for publisher in (ALPHA, PUBLIC):
        network.publish(publisher, K[:3])
    yield network.block(about.at("repeats", "repeats count once; a publisher without keys is none"))


@yields("subscriber/scenarios")
def test_added_keys_are_fetched_although_nothing_changed() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Adding subscriptions",
        "adding-subscriptions",
        "a key that is added is fetched although nothing changed; the key that was there is not told again",
    )
    network = following(wanted=1)
    network.subscribe(ALPHA, K[:3])
    yield network.block(about)
    yield network.block(about.at("next", "after the added key was dealt with nothing is read"))
    network.subscribe(BETA, [A])
    network.publish(BETA, K[:2], b"beta")
    yield network.block(about.at("publisher", "a publisher that is added is fetched beside one that is unchanged"))


@pytest.mark.upstream("subscription_removal_and_cache_clear")
@yields("subscriber/scenarios")
def test_a_dropped_publishers_nodes_stay_until_they_are_cleared() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Removing subscriptions requires cache clear",
        "removing-subscriptions",
        "a publisher that left keeps its cached nodes and nothing else",
    )
    network = following(ALPHA, BETA)
    network.subscribe(ALPHA, ())
    network.publish(ALPHA, [A], b"unheard")
    yield network.block(about)
    clear = ("clear_publisher_cache", int(ALPHA))
    cleared = about.at("cleared", "clear_publisher_cache frees the nodes; a second call finds nothing to clear")
    block = network.block(cleared, calls=(clear, clear))
    assert block.expect.call_results == ("ok", "NoCachedNodes")
    yield block
    network.subscribe(ALPHA, [B])
    yield network.block(about.at("again", "subscribed again is subscribed anew: the cache holds the path of B alone"))


@pytest.mark.upstream("value_change_detected")
@yields("subscriber/scenarios")
def test_an_update_is_told_with_the_raw_value_and_its_time_to_live() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Data update callback",
        "data-update",
        "an updated key is told with its raw value and an infinite time to live",
    )
    network = following()
    network.publish(ALPHA, [A], b"new")
    block = network.block(about)
    assert block.expect.callbacks == ((int(ALPHA), hexed(A), hexed(b"new"), hexed(Infinite().encode())),)
    yield block
    network.publish(ALPHA, [A], b"newer", ttl=30)
    yield network.block(about.at("valid-for", "a finite time to live counts from the relay parent: 30 blocks are left"))
    network.publish(ALPHA, [B], b"brief", ttl=2)
    network.seal()
    network.publish(ALPHA, [C])
    network.seal()
    timed_out = about.at("timed-out", "the entry expires at the relay parent's number: it is told as timed out")
    yield network.block(timed_out)
    network.publish(ALPHA, [A], b"endless", ttl=0xFFFF_FFFF)
    yield network.block(about.at("far-away", "the latest expiry is computed without overflow"))


@pytest.mark.scenario("Subscription Handler / Subscription declaration")
@pytest.mark.upstream("subscriptions_returns_keys")
@pytest.mark.upstream("subscriptions_multiple_publishers")
def test_what_a_declaration_names_is_what_is_asked_for_and_what_it_weighs_is_charged() -> None:
    """Two handlers declare; the pallet asks for each of their keys once, and charges the block with both weights."""
    first = Recorder({ALPHA: [C, A], PUBLIC: [A]}, weight=Weight(7, 9))
    second = Recorder({ALPHA: [A, B]}, weight=Weight(1, 2))
    world = World()
    world.subscriber.handler = CombinedHandlers([first, second])
    names = {para_id: derive_child_info(para_id).storage_key for para_id in (ALPHA, PUBLIC)}
    asked = world.subscriber.relay_keys().by_child_trie()
    assert asked == {names[ALPHA]: [A, B, C], names[PUBLIC]: [A]}
    assert {type(wanted) for wanted_keys in asked.values() for wanted in wanted_keys} == {SubscribedKey}
    world.publish(ALPHA, [A, B, C])
    world.publish(PUBLIC, [A])
    block = world.block()
    assert world.system.meter.consumed == Weight(8, 11)
    assert [update[:2] for update in world.subscriber.delivered.updates] == [
        (ALPHA, A),
        (ALPHA, B),
        (ALPHA, C),
        (PUBLIC, A),
    ]
    assert block.outcome.meter.consumed == block.result.consumed


@pytest.mark.upstream("subscriptions_deduplicated")
@pytest.mark.upstream("subscriptions_combined_by_publisher")
@pytest.mark.upstream("keys_sorted_within_publisher")
def test_keys_of_a_publisher_are_combined_sorted_and_each_there_once() -> None:
    declared = [(PUBLIC, [C, A]), (ALPHA, [B]), (PUBLIC, [B, A, A])]
    assert by_publisher(declared) == {ALPHA: (B,), PUBLIC: (A, B, C)}
    assert list(by_publisher(declared)) == [ALPHA, PUBLIC]


def test_plain_numbers_and_bytes_are_taken_for_publishers_and_keys() -> None:
    """As a ``Network`` takes them: the names are the same however the number was written."""
    declared = cast("Subscriptions", [(1_000, [bytes(B), bytes(A)]), (ALPHA, [A])])
    wanted = by_publisher(declared)
    assert wanted == {ALPHA: (A, B)}
    assert {type(publisher) for publisher in wanted} == {ParaId}
    assert {type(key) for keys in wanted.values() for key in keys} == {SubscribedKey}
    assert derive_child_info(4_294_967_295).storage_key == b"pubsub\xff\xff\xff\xff"
    with pytest.raises(ValueError, match="u32"):
        derive_child_info(1 << 32)


@pytest.mark.upstream("subscriptions_empty_returns_empty")
@pytest.mark.upstream("subscriptions_empty_returns_zero_weight")
def test_nothing_declared_is_nothing_wanted() -> None:
    assert CombinedHandlers([]).subscriptions() == ([], Weight.ZERO)
    assert by_publisher([]) == {}
    assert by_publisher([(ALPHA, [])]) == {}


@pytest.mark.upstream("subscriptions_multiple_handlers_same_key")
def test_every_handler_hears_of_the_keys_that_it_wants_and_of_no_others() -> None:
    first, second = Recorder({ALPHA: [A, B]}, weight=Weight(1, 2)), Recorder({ALPHA: [B], BETA: [C]}, weight=Weight(3))
    both = CombinedHandlers([first, second])
    declared, weight = both.subscriptions()
    assert by_publisher(declared) == {ALPHA: tuple(sorted([A, B])), BETA: (C,)}
    assert weight == Weight(4, 2)
    heard = {wanted: both.on_data_updated(publisher, wanted, b"v", Infinite()) for publisher, wanted in [
        (ALPHA, A), (ALPHA, B), (BETA, C)
    ]}  # fmt: skip
    assert heard == {A: Weight(1, 2), B: Weight(4, 2), C: Weight(3)}
    assert [call[:2] for call in first.calls] == [(ALPHA, A), (ALPHA, B)]
    assert [call[:2] for call in second.calls] == [(ALPHA, B), (BETA, C)]


def test_more_publishers_than_the_pallet_takes_are_the_callers_slip() -> None:
    world = World()
    wanted = {ParaId(number): [key("k")] for number in range(MOCK.max_publishers)}
    assert len(Subscriber(world.system, Recorder(wanted), MOCK).relay_keys().by_child_trie()) == 100
    wanted[ParaId(MOCK.max_publishers)] = [key("k")]
    with pytest.raises(ValueError, match="at most 100 publishers, got 101"):
        Subscriber(world.system, Recorder(wanted), MOCK)
