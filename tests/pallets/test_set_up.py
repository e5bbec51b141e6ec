"""What is looked at before the first block: values that must fit, and the budget that serves every key."""

import re

import pytest

from pallets.block_vectors import ALPHA, path_key, staircase
from pallets.subscriber_world import World
from relaycast_pallets import (
    LARGEST_BRANCH_BYTES,
    POLKADOT,
    BroadcasterConfig,
    CumulusSixths,
    Floor,
    Remaining,
    SubscriberConfig,
    budget_for_any_key,
    derive_child_info,
    ensure_values_fit,
    message_free_bytes,
)
from relaycast_trie.node import Branch
from relaycast_trie.node_codec import encode_node


@pytest.mark.parametrize(
    ("expected", "allowed", "fits"), [(2_048, 2_048, True), (4_096, 2_048, True), (1_024, 2_048, False)]
)
def test_a_subscriber_reckons_with_values_as_long_as_may_be_published(expected: int, allowed: int, fits: bool) -> None:
    subscriber, relay = SubscriberConfig(max_value_length=expected), BroadcasterConfig(max_value_length=allowed)
    if fits:
        ensure_values_fit(subscriber, relay)
        return
    said = "must be at least 2048, the longest value that the relay chain lets be published, got 1024"
    with pytest.raises(ValueError, match=re.escape(said)):
        ensure_values_fit(subscriber, relay)


def test_the_default_configurations_agree() -> None:
    ensure_values_fit(SubscriberConfig(), POLKADOT)


def test_the_largest_branch_has_sixteen_children_and_the_longest_partial_key() -> None:
    """Keys of 64 nibbles that part in their last one."""
    assert len(encode_node(Branch(bytes(63), (bytes(32),) * 16, None))) == LARGEST_BRANCH_BYTES


def test_the_bytes_for_any_key_are_those_of_two_paths_the_way_there_and_an_entry() -> None:
    config = SubscriberConfig(max_trie_depth=4, max_value_length=100)
    assert budget_for_any_key(config, top_path_bytes=1_000) == 1_000 + 2 * 4 * 564 + (2 + 100 + 8)


def test_no_key_is_beyond_that_budget() -> None:
    """A path of full branches as deep as may be and the longest value fit, and so do the next ones in their place."""
    world = World()
    config = world.subscriber.config
    steps = staircase(config.max_trie_depth)
    path = steps[0].hex()
    full = [path_key(path[:at] + f"{nibble:x}") for at in range(config.max_trie_depth - 1) for nibble in range(16)]
    world.subscribe(ALPHA, steps[:1])
    world.publish(ALPHA, [*steps, *full], bytes(40))
    world.publish(ALPHA, steps[:1], bytes(config.max_value_length))
    world.seal()
    top = world.relay.prove_read(world.relay.root, [derive_child_info(ALPHA).prefixed_storage_key()])
    budget = budget_for_any_key(config, top_path_bytes=top.proof_bytes)
    first = world.block(budget, seal=False)
    assert first.result.is_complete
    world.publish(ALPHA, full, bytes(41))
    world.publish(ALPHA, steps[:1], bytes(config.max_value_length - 1))
    second = world.block(budget)
    assert second.result.is_complete
    assert second.result.consumed.proof_size > budget // 2
    assert second.called == [(ALPHA, steps[0])]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(Remaining(), 850_000), (Remaining(50), 500_000), (CumulusSixths(), 333_332), (Floor(1_000), 850_000)],
)
def test_a_block_without_messages_gives_pub_sub_the_most(
    policy: Remaining | CumulusSixths | Floor, expected: int
) -> None:
    assert message_free_bytes(policy, 1_000_000) == expected
