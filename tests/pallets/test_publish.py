"""What ``handle_publish`` stores, what it refuses, and how it counts."""

from dataclasses import replace

import pytest

from pallets.relay import OTHER_PARA, PARA, SYSTEM_PARA, A, B, C, Relay, hash_key, refused
from relaycast_pallets import (
    DRAFT_MOCK,
    POLKADOT,
    SPEC,
    BroadcasterConfig,
    DataPublished,
    NotRegistered,
    PublishedEntry,
    TooManyKeys,
    TotalStorageSizeExceeded,
    ValueTooLarge,
    derive_child_info,
)
from relaycast_trie import TrieDB
from relaycast_xcm.primitives import ParaId

ONE_KEY = BroadcasterConfig(max_total_storage_size=32 + 100, publisher_deposit=100)


@pytest.mark.upstream("publish_requires_registration")
@pytest.mark.upstream("publish_unregistered_non_system_parachain")
@pytest.mark.upstream("publish_unregistered_non_system_parachain_high_id")
@pytest.mark.parametrize("para", [2_000, 3_000, 5_000])
def test_a_public_parachain_publishes_only_when_registered(relay: Relay, para: int) -> None:
    with refused(relay, NotRegistered) as refusal:
        relay.publish(A, publisher=ParaId(para))
    assert refusal.value.args == (para,)
    assert ParaId(para) not in relay.storage.publisher_exists


@pytest.mark.upstream("registered_publisher_can_publish")
@pytest.mark.upstream("publish_registered_non_system_parachain")
def test_a_registered_parachain_publishes(relay: Relay) -> None:
    relay.register()
    relay.publish(hash_key("key"), b"value")
    assert relay.storage.entry(PARA, hash_key("key")) == PublishedEntry(b"value", 0, 1)
    assert relay.of_broadcaster()[1:] == [DataPublished(PARA, hash_key("key"))]


@pytest.mark.upstream("publish_store_retrieve_and_update_data")
@pytest.mark.upstream("publish_update_existing_key")
def test_an_update_changes_the_root_and_no_other_key(relay: Relay) -> None:
    relay.register()
    entry = derive_child_info(PARA).prefixed_storage_key()
    relay.state.commit()
    assert relay.state.get(entry) is None
    relay.publish(A, b"one")
    relay.publish(B, b"two")
    relay.state.commit()
    first = relay.state.get(entry)
    relay.publish(A, b"updated")
    relay.publish(C, b"three")
    relay.state.commit()
    assert relay.state.get(entry) not in {first, None}
    assert [relay.value(key) for key in (A, B, C)] == [b"updated", b"two", b"three"]


def test_publishing_the_same_again_still_moves_the_block_number(relay: Relay) -> None:
    relay.register()
    relay.publish(A, b"same")
    root = relay.state.commit()
    relay.at(2)
    relay.publish(A, b"same")
    assert relay.storage.entry(PARA, A) == PublishedEntry(b"same", 0, 2)
    assert relay.state.commit() != root


@pytest.mark.upstream("publish_32_byte_key")
@pytest.mark.upstream("publish_32_byte_key_works")
def test_a_key_is_used_as_it_is(relay: Relay) -> None:
    relay.register()
    relay.publish(b"\xab" * 32, b"value")
    relay.state.commit()
    root = relay.state.get(derive_child_info(PARA).prefixed_storage_key())
    assert root is not None
    assert TrieDB(relay.state.db, root).get(b"\xab" * 32) == PublishedEntry(b"value", 0, 1).encode()


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_key_of_another_length_is_a_slip_of_the_caller(relay: Relay, key: bytes) -> None:
    relay.register()
    with pytest.raises(ValueError, match="32 bytes"):
        relay.publish(key)


@pytest.mark.parametrize("ttl", [-1, 2**32])
def test_a_ttl_beyond_a_u32_is_a_slip_of_the_caller(relay: Relay, ttl: int) -> None:
    relay.register()
    with pytest.raises(ValueError, match="u32"):
        relay.publish(A, ttl=ttl)


@pytest.mark.upstream("empty_publish_fails")
@pytest.mark.upstream("handle_publish_respects_max_items_limit")
def test_one_publish_is_one_item_be_it_empty(relay: Relay) -> None:
    """The draft's limits on the items of one instruction are gone with the instruction that carried many."""
    relay.register()
    relay.publish(A, b"")
    assert relay.value(A) == b""
    assert [event.items_count for event in relay.system.events.of(DataPublished)] == [1]
    assert relay.storage.size_of(PARA) == 32


@pytest.mark.scenario("Data Storage Limits / Value size limit")
@pytest.mark.upstream("handle_publish_respects_value_length_limit")
@pytest.mark.upstream("publish_value_too_large")
@pytest.mark.upstream("publish_max_value_size")
@pytest.mark.upstream("publish_max_value_size_works")
@pytest.mark.parametrize(("config", "limit"), [(SPEC, 2_048), (POLKADOT, 2_048), (DRAFT_MOCK, 1_024)])
def test_a_value_may_be_as_long_as_the_limit_and_no_longer(config: BroadcasterConfig, limit: int) -> None:
    relay = Relay(config, funds=10**15)
    relay.register()
    relay.publish(A, b"x" * limit)
    assert relay.value(A) == b"x" * limit
    with refused(relay, ValueTooLarge) as refusal:
        relay.publish(B, b"x" * (limit + 1))
    assert refusal.value.args == (limit + 1, limit)
    with refused(relay, ValueTooLarge):
        relay.publish(A, b"x" * (limit + 1))


@pytest.mark.scenario("Data Storage Limits / Key count limit")
@pytest.mark.upstream("max_stored_keys_limit_enforced")
@pytest.mark.upstream("publish_max_keys_reached")
def test_a_new_key_beyond_the_limit_is_refused_and_an_update_is_not(relay: Relay) -> None:
    relay.register()
    for index in range(50):
        relay.publish(hash_key(f"key{index}"), b"v")
    assert relay.storage.size_of(PARA) == 1_650
    with refused(relay, TooManyKeys) as refusal:
        relay.publish(hash_key("key50"), b"v")
    assert refusal.value.args == (PARA, 50)
    relay.publish(hash_key("key0"), b"w")
    assert relay.value(hash_key("key0")) == b"w"


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_above_a_lowered_limit_of_keys_no_new_one_is_stored(relay: Relay, limit: int) -> None:
    relay.register()
    for index in range(3):
        relay.publish(hash_key(f"key{index}"), b"v")
    relay.broadcaster.config = replace(relay.broadcaster.config, max_stored_keys=limit)
    with refused(relay, TooManyKeys) as refusal:
        relay.publish(hash_key("key3"), b"v")
    assert refusal.value.args == (PARA, limit)


@pytest.mark.scenario("Data Storage Limits / Total storage size limit")
@pytest.mark.upstream("total_storage_size_limit_enforced")
@pytest.mark.upstream("publish_total_storage_exceeded")
def test_keys_and_values_together_stay_within_the_limit(relay: Relay) -> None:
    relay.register()
    relay.publish(A, bytes(1_024))
    assert relay.storage.size_of(PARA) == 1_056
    with refused(relay, TotalStorageSizeExceeded) as refusal:
        relay.publish(B, bytes(1_024))
    assert refusal.value.args == (PARA, 2_112, 2_048)
    relay.publish(A, bytes(100))
    assert relay.storage.size_of(PARA) == 132
    relay.publish(B, bytes(900))
    assert relay.storage.size_of(PARA) == 1_064


@pytest.mark.parametrize(
    ("value_bytes", "allowed"),
    [
        (100, True),  # equality with the limit
        (101, False),
        (99, True),  # an update that shrinks
    ],
)
def test_at_the_limit_an_update_may_stay_or_shrink(value_bytes: int, allowed: bool) -> None:
    relay = Relay(ONE_KEY)
    relay.register()
    relay.publish(A, bytes(100))
    assert relay.storage.size_of(PARA) == ONE_KEY.max_total_storage_size
    if allowed:
        relay.publish(A, bytes(value_bytes))
        assert relay.storage.size_of(PARA) == 32 + value_bytes
        return
    with refused(relay, TotalStorageSizeExceeded):
        relay.publish(A, bytes(value_bytes))


@pytest.mark.parametrize(("value_bytes", "allowed"), [(101, False), (100, True), (99, True), (0, True)])
def test_an_update_that_does_not_grow_the_total_is_allowed_above_a_lowered_limit(
    value_bytes: int, allowed: bool
) -> None:
    """A limit may be lowered below what a publisher stores: it can still write its keys anew, and shrink."""
    relay = Relay(ONE_KEY)
    relay.register()
    relay.publish(A, bytes(100))
    relay.broadcaster.config = replace(ONE_KEY, max_total_storage_size=40)
    if allowed:
        relay.publish(A, bytes(value_bytes))
        assert relay.storage.size_of(PARA) == 32 + value_bytes
        return
    with refused(relay, TotalStorageSizeExceeded) as refusal:
        relay.publish(A, bytes(value_bytes))
    assert refusal.value.args == (PARA, 133, 40)


@pytest.mark.parametrize("value", [b"", b"x"])
def test_at_the_limit_nothing_new_fits(value: bytes) -> None:
    relay = Relay(ONE_KEY)
    relay.register()
    relay.publish(A, bytes(100))
    with refused(relay, TotalStorageSizeExceeded):
        relay.publish(B, value)


@pytest.mark.parametrize(
    ("para", "value_bytes", "keys", "error"),
    [
        (PARA, 2_000, 50, NotRegistered),  # before the value's length
        (SYSTEM_PARA, 2_000, 50, ValueTooLarge),  # before the number of keys
        (SYSTEM_PARA, 1_000, 50, TooManyKeys),  # before the total
        (SYSTEM_PARA, 1_000, 40, TotalStorageSizeExceeded),
    ],
)
def test_refusals_come_in_the_order_of_the_draft(
    para: ParaId, value_bytes: int, keys: int, error: type[NotRegistered]
) -> None:
    relay = Relay()
    for index in range(keys):
        relay.publish(hash_key(str(index)), b"v", publisher=SYSTEM_PARA)
    with refused(relay, error):
        relay.publish(A, bytes(value_bytes), publisher=para)


@pytest.mark.upstream("published_keys_storage_matches_child_trie")
def test_the_tracked_keys_are_those_of_the_child_trie(relay: Relay) -> None:
    relay.register()
    for batch in ((A, B), (B, C)):
        for key in batch:
            relay.publish(key)
        assert relay.keys() == {key for key, _ in relay.storage.entries(PARA)}


@pytest.mark.upstream("multiple_publishers_in_same_block")
def test_publishers_of_one_block_do_not_meet(relay: Relay) -> None:
    paras = [ParaId(2_000), OTHER_PARA, ParaId(2_002)]
    for para in paras:
        relay.register(para)
        relay.publish(A, str(para).encode(), publisher=para)
    assert [relay.value(A, para) for para in paras] == [b"2000", b"2001", b"2002"]
    assert [relay.storage.size_of(para) for para in paras] == [36, 36, 36]


@pytest.mark.upstream("child_trie_key_derivation")
@pytest.mark.upstream("child_trie_key_derivation_matches_spec")
@pytest.mark.parametrize(
    ("para", "expected"),
    [
        (1_000, "707562737562e8030000"),
        (1_999, "707562737562cf070000"),
        (2_000, "707562737562d0070000"),
        (3_000, "707562737562b80b0000"),
    ],
)
def test_a_child_trie_is_named_by_its_publisher(para: int, expected: str) -> None:
    info = derive_child_info(ParaId(para))
    assert info.storage_key.hex() == expected
    assert info.prefixed_storage_key() == b":child_storage:default:" + info.storage_key
