"""Publications: keys, values, times to live, and the limits that refuse them."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from pallets.broadcaster_vectors import StepSequence, with_limits
from pallets.relay import PARA, A, B, Relay, hash_key, refused
from relaycast_pallets import (
    DataPublished,
    NotRegistered,
    TooManyKeys,
    TotalStorageSizeExceeded,
    ValueTooLarge,
    derive_child_info,
)
from relaycast_xcm.instructions import Publish
from relaycast_xcm.primitives import ParaId
from vector_fields import Vector, VectorSource, hexed, scenario
from yielded_vectors import yields

UPDATES = VectorSource(upstream="publish_store_retrieve_and_update_data")


def registered(**limits: int) -> StepSequence:
    return with_limits(**limits).register(2_000)


# Keys, values and times to live


@pytest.mark.upstream("registered_publisher_can_publish")
@pytest.mark.upstream("publish_registered_non_system_parachain")
@pytest.mark.upstream("publish_from_non_system_parachain_registered")
@yields("broadcaster/publication")
def test_a_publish_stores_the_value_under_the_very_key() -> Iterator[Vector]:
    source = scenario("XCM Publish Instruction / Successful publish")
    there = registered().begin().message(2_000, Publish(bytes(32), b"\x01\x02\x03", 0))
    vector = there.vector("publish/scenario", "the key is stored as its 32 bytes, not hashed again", source)
    assert vector.after
    (child,) = vector.after.children
    assert child.entries == [(hexed(bytes(32)), "0x0c0102030000000001000000")]
    yield vector


@pytest.mark.upstream("publish_32_byte_key")
@pytest.mark.parametrize(
    ("name", "key"), [("ones", b"\xff" * 32), ("ab", b"\xab" * 32), ("last-bit", bytes(31) + b"\x01")]
)
@yields("broadcaster/publication")
def test_any_32_bytes_are_a_key(name: str, key: bytes) -> Iterator[Vector]:
    there = registered().begin().message(2_000, Publish(key, b"\x01", 0))
    source = VectorSource(upstream="publish_32_byte_key_works")
    yield there.vector(f"publish/key-{name}", "any 32 bytes are a key", source)


@pytest.mark.upstream("publish_max_value_size")
@pytest.mark.upstream("publish_max_value_size_works")
@pytest.mark.parametrize("length", [0, 1, 22, 23, 24, 25, 31, 32, 33, 63, 64, 65, 255, 256, 1_024, 2_047, 2_048])
@yields("broadcaster/publication")
def test_a_value_may_have_any_length(length: int) -> Iterator[Vector]:
    """Around the bounds of compact lengths, and of 23 bytes, the longest value that stays in its node."""
    source = VectorSource(trap="values up to 23 bytes stay in their node, because the entry has 9 bytes more")
    there = registered().begin().publish(2_000, "a", bytes(at % 251 for at in range(length)))
    yield there.vector(f"publish/length-{length}", f"a value of {length} bytes", source)


@pytest.mark.upstream("publish_finite_ttl")
@pytest.mark.upstream("publish_finite_ttl_creates_ttl_data_entry")
@pytest.mark.upstream("ttl_data_stored_separately")
@yields("broadcaster/publication")
def test_a_finite_ttl_is_stored_with_the_block() -> Iterator[Vector]:
    source = scenario("XCM Publish Instruction / Publish with finite TTL")
    for ttl in (1, 1_000, (1 << 32) - 1):
        there = registered().begin().at(1_000).publish(2_000, "a", b"\x01", ttl=ttl)
        yield there.vector(f"publish/ttl-{ttl}", f"a time to live of {ttl} is stored with the block", source)
    late = registered().begin().at((1 << 32) - 1).publish(2_000, "a", b"\x01", ttl=(1 << 32) - 1)
    yield late.vector("publish/ttl-and-block-u32", "the largest block and the largest time to live", source)


# Updates


@pytest.mark.upstream("publish_update_existing_key")
@pytest.mark.upstream("published_keys_storage_matches_child_trie")
@yields("broadcaster/publication")
def test_an_update_changes_no_other_key() -> Iterator[Vector]:
    there = registered().publish(2_000, "key1", b"1").publish(2_000, "key2", b"2").begin()
    there.publish(2_000, "key1", b"3").publish(2_000, "key3", b"4")
    yield there.vector("publish/update-and-add", "an update, a new key, and one that stays", UPDATES)


@yields("broadcaster/publication")
def test_the_same_value_again_changes_the_root_only_in_another_block() -> Iterator[Vector]:
    there = registered().publish(2_000, "a", b"\x01").begin()
    later = (
        there.at(7)
        .publish(2_000, "a", b"\x01")
        .vector("publish/same-value", "an equal value is written with the new block: the root changes", UPDATES)
    )
    there = registered().publish(2_000, "a", b"\x01").begin()
    at_once = there.publish(2_000, "a", b"\x01").vector(
        "publish/same-value-and-block", "an equal value in the same block: nothing but an event", UPDATES
    )
    assert later.after != later.before
    assert at_once.after == at_once.before
    yield later
    yield at_once


@yields("broadcaster/publication")
def test_a_value_leaves_its_node_and_comes_back() -> Iterator[Vector]:
    longer = registered().publish(2_000, "a", b"\x01").begin()
    longer.publish(2_000, "a", bytes(24)).publish(2_000, "a", b"\x02")
    yield longer.vector("publish/out-of-its-node", "a value leaves its node and comes back", UPDATES)


@pytest.mark.parametrize(
    ("name", "before", "after"), [("finite-to-infinite", 100, 0), ("infinite-to-finite", 0, 500), ("longer", 5, 9)]
)
@yields("broadcaster/publication")
def test_an_update_replaces_the_time_to_live(name: str, before: int, after: int) -> Iterator[Vector]:
    there = registered().publish(2_000, "a", b"\x01", ttl=before).begin().at(3).publish(2_000, "a", b"\x01", ttl=after)
    cleared = scenario("TTL Expiration / TTL change from finite to infinite")
    source = VectorSource(upstream="ttl_infinite_to_finite") if after else cleared
    yield there.vector(f"publish/ttl-{name}", f"a time to live of {before} becomes {after}", source)


# The limit of a value


@pytest.mark.upstream("handle_publish_respects_value_length_limit")
@pytest.mark.upstream("publish_value_too_large")
@pytest.mark.parametrize("limit", [0, 1, 64, 2_047])
@yields("broadcaster/publication")
def test_a_value_may_be_as_long_as_the_limit_and_no_longer(limit: int) -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Value size limit")
    at_limit = registered(max_value_length=limit).begin().publish(2_000, "a", bytes(limit))
    why = f"{limit} bytes where {limit} are allowed"
    yield at_limit.vector(f"publish/value-at-limit-{limit}", why, source, keeps="a")
    above = registered(max_value_length=limit).begin().publish(2_000, "a", bytes(limit + 1))
    why = f"{limit + 1} bytes where {limit} are allowed"
    yield above.vector(f"publish/value-above-limit-{limit}", why, source, refused="ValueTooLarge")


@yields("broadcaster/publication")
def test_the_limit_of_a_value_holds_for_updates_and_before_that_of_keys() -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Value size limit")
    update = registered(max_value_length=8).publish(2_000, "a", b"12345678").begin().publish(2_000, "a", b"123456789")
    why = "an update is bound by the limit, too"
    yield update.vector("publish/value-above-limit-update", why, source, refused="ValueTooLarge")
    first = registered(max_value_length=8, max_stored_keys=0).begin().publish(2_000, "a", b"123456789")
    why = "ValueTooLarge comes before TooManyKeys"
    yield first.vector("publish/value-before-keys", why, source, refused="ValueTooLarge")


# The limit of keys


@pytest.mark.upstream("max_stored_keys_limit_enforced")
@pytest.mark.upstream("publish_max_keys_reached")
@pytest.mark.parametrize("limit", [0, 1, 2, 5])
@yields("broadcaster/publication")
def test_a_new_key_beyond_the_limit_is_refused_and_an_update_is_not(limit: int) -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Key count limit")
    there = registered(max_stored_keys=limit)
    for name in "abcde"[:limit]:
        there.publish(2_000, name, name.encode())
    there.begin().publish(2_000, "new", b"\x01")
    why = f"a new key where {limit} are stored and allowed"
    yield there.vector(f"publish/keys-above-limit-{limit}", why, source, refused="TooManyKeys")
    if limit:
        update = there.begin().publish(2_000, "a", b"\x02\x03")
        yield update.vector(f"publish/keys-update-at-limit-{limit}", "an update is no new key", source)


@yields("broadcaster/publication")
def test_each_publisher_has_as_many_keys_as_it_does_not_delete() -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Key count limit")
    freed = registered(max_stored_keys=2).publish(2_000, "a", b"\x01").publish(2_000, "b", b"\x01").begin()
    freed.delete(2_000, "a").publish(2_000, "c", b"\x01")
    yield freed.vector("publish/keys-freed", "a deleted key makes room for another one", source, keeps="bc")
    other = registered(max_stored_keys=1).register(2_001).publish(2_000, "a", b"\x01").begin()
    other.publish(2_001, "a", b"\x01")
    yield other.vector("publish/keys-of-each", "the limit holds for each publisher alone", source)


@yields("broadcaster/publication")
def test_the_limit_of_keys_comes_before_that_of_the_total() -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Key count limit")
    both = registered(max_stored_keys=1, max_total_storage_size=33).publish(2_000, "a", b"\x01").begin()
    why = "TooManyKeys comes before TotalStorageSizeExceeded"
    both.publish(2_000, "b", b"\x01")
    yield both.vector("publish/keys-before-total", why, source, refused="TooManyKeys")


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_above_a_lowered_limit_of_keys_no_new_one_is_stored(limit: int) -> None:
    relay = Relay()
    relay.register()
    for index in range(3):
        relay.publish(hash_key(f"key{index}"), b"v")
    relay.broadcaster.config = replace(relay.broadcaster.config, max_stored_keys=limit)
    with refused(relay, TooManyKeys) as refusal:
        relay.publish(hash_key("key3"), b"v")
    assert refusal.value.args == (PARA, limit)


# The limit of the total


@pytest.mark.parametrize(("limit", "length"), [(32, 0), (33, 1), (100, 68), (2_080, 2_048)])
@yields("broadcaster/publication")
def test_keys_and_values_together_stay_within_the_limit(limit: int, length: int) -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Total storage size limit")
    equal = registered(max_total_storage_size=limit).begin().publish(2_000, "a", bytes(length))
    why = f"32 + {length} bytes where {limit} are allowed"
    yield equal.vector(f"publish/total-equal-{limit}", why, source, keeps="a")
    above = registered(max_total_storage_size=limit - 1).begin().publish(2_000, "a", bytes(length))
    why = f"32 + {length} bytes where {limit - 1} are allowed"
    yield above.vector(f"publish/total-above-{limit - 1}", why, source, refused="TotalStorageSizeExceeded")


@yields("broadcaster/publication")
def test_at_the_limit_nothing_new_fits() -> Iterator[Vector]:
    source = scenario("XCM Publish Instruction / Publish fails when storage limit exceeded")
    used = registered(max_total_storage_size=100).publish(2_000, "a", bytes(68)).begin().publish(2_000, "b", b"")
    why = "32 bytes of key alone are too many"
    yield used.vector("publish/total-used-up", why, source, refused="TotalStorageSizeExceeded")


@pytest.mark.parametrize(
    ("name", "length", "why", "refusal"),
    [
        ("shrinks", 10, "an update that shrinks the total is allowed at the limit", None),
        ("equal", 68, "an update that keeps the total is allowed at the limit", None),
        ("grows", 69, "an update that grows the total beyond the limit is refused", "TotalStorageSizeExceeded"),
    ],
)
@yields("broadcaster/publication")
def test_at_the_limit_an_update_may_stay_or_shrink(
    name: str, length: int, why: str, refusal: str | None
) -> Iterator[Vector]:
    source = scenario("Data Storage Limits / Total storage size limit")
    there = registered(max_total_storage_size=100).publish(2_000, "a", bytes(68)).begin()
    there.publish(2_000, "a", b"\x01" * length)
    yield there.vector(f"publish/total-{name}", why, source, refused=refusal)


@pytest.mark.parametrize(
    ("name", "key", "length", "limit", "why", "refusal"),
    [
        (
            "shrinks",
            "a",
            67,
            100,
            "an update that shrinks a total above the limit is allowed, although it stays above",
            None,
        ),
        ("shrinks-below", "b", 0, 132, "an update brings the total from above the limit to below it", None),
        ("equal", "a", 68, 100, "an update that keeps a total above the limit is allowed", None),
        ("grows", "a", 69, 100, "an update that grows a total above the limit is refused", "TotalStorageSizeExceeded"),
        ("new-key", "c", 0, 100, "a new key grows a total above the limit", "TotalStorageSizeExceeded"),
    ],
)
@yields("broadcaster/publication")
def test_an_update_that_does_not_grow_the_total_is_allowed_above_a_lowered_limit(
    name: str, key: str, length: int, limit: int, why: str, refusal: str | None
) -> Iterator[Vector]:
    """A publisher stores 300 bytes: it can still write its keys anew, and shrink."""
    source = scenario("Data Storage Limits / Total storage size limit")
    there = registered().publish(2_000, "a", bytes(68)).publish(2_000, "b", bytes(168)).begin()
    there.limits = msgspec.structs.replace(there.limits, max_total_storage_size=limit)
    there.publish(2_000, key, b"\x01" * length)
    yield there.vector(f"publish/lowered-limit-{name}", why, source, refused=refusal)


@pytest.mark.upstream("publish_total_storage_exceeded")
@yields("broadcaster/publication")
def test_the_figures_of_the_draft_stay_within_the_total() -> Iterator[Vector]:
    draft = registered(max_value_length=1_024, max_total_storage_size=2_048, max_stored_keys=50).begin()
    draft.publish(2_000, "key1", bytes(1_024)).publish(2_000, "key2", bytes(1_024))
    draft.publish(2_000, "key1", bytes(100)).publish(2_000, "key2", bytes(900))
    source = VectorSource(upstream="total_storage_size_limit_enforced")
    yield draft.vector("publish/total-of-the-draft", "the figures of the draft's test", source)


# The pallet as a part of Python


def test_a_refusal_gives_the_figures(relay: Relay) -> None:
    with refused(relay, NotRegistered) as unregistered:
        relay.publish(A)
    assert unregistered.value.args == (PARA,)
    relay.register()
    with refused(relay, ValueTooLarge) as long:
        relay.publish(A, bytes(1_025))
    assert long.value.args == (1_025, 1_024)
    relay.publish(A, bytes(1_024))
    with refused(relay, TotalStorageSizeExceeded) as large:
        relay.publish(B, bytes(1_024))
    assert large.value.args == (PARA, 2_112, 2_048)


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
def test_one_publish_is_one_item() -> None:
    """The draft's limits on the items of one instruction are gone with the instruction that carried many."""
    assert DataPublished(PARA, A).items_count == 1


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
