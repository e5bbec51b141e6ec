"""When published keys expire, and how the scan for them uses the idle time of blocks."""

from itertools import pairwise

import pytest

from pallets.relay import PARA, SYSTEM_PARA, A, B, Relay, hash_key
from relaycast_pallets import DRAFT_MOCK, BroadcasterConfig, KeyExpired, PublishedEntry
from relaycast_pallets.frame.typed_storage import BLAKE2_128_CONCAT
from relaycast_xcm.primitives import ROCKS_DB, U32_MAX, ZERO_DB, ParaId, Weight

ROCKS = BroadcasterConfig(publisher_deposit=100, db_weight=ROCKS_DB)
FREE = BroadcasterConfig(publisher_deposit=100, db_weight=ZERO_DB)
BASE = Weight(25_000_000)
EACH = Weight(450_000_000)


def with_keys(count: int, config: BroadcasterConfig = ROCKS, *, ttl: int = 50, at: int = 100) -> Relay:
    """Publish ``count`` keys of ``SYSTEM_PARA`` at block ``at``, then begin the block at which they expire."""
    relay = Relay(config)
    relay.at(at)
    for index in range(count):
        relay.publish(hash_key(str(index)), b"v", ttl=ttl, publisher=SYSTEM_PARA)
    relay.at(at + ttl)
    return relay


def scan_order(relay: Relay) -> list[bytes]:
    return [key for _, key, _ in relay.storage.ttl_data.items()]


@pytest.mark.scenario("TTL Expiration / Key expires")
@pytest.mark.upstream("on_idle_expires_keys")
def test_a_key_expires_at_its_block_and_not_before(relay: Relay) -> None:
    relay.at(1_000)
    relay.register()
    relay.publish(A, b"value", ttl=100)
    relay.at(1_099)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.value(A) == b"value"
    relay.at(1_100)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.value(A) is None
    assert relay.storage.ttl_data.get(PARA, A) is None
    assert (relay.keys(), relay.storage.size_of(PARA)) == (set(), 0)
    assert relay.of_broadcaster() == [KeyExpired(PARA, A)]


@pytest.mark.scenario("TTL Expiration / Infinite TTL")
@pytest.mark.upstream("publish_infinite_ttl")
@pytest.mark.upstream("publish_infinite_ttl_no_ttl_data_entry")
@pytest.mark.parametrize("now", [2, 10_000, U32_MAX])
def test_what_lives_for_ever_has_no_ttl_data(relay: Relay, now: int) -> None:
    relay.register()
    relay.publish(A, b"value", ttl=0)
    assert relay.storage.ttl_data.count() == 0
    relay.at(now)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.value(A) == b"value"


@pytest.mark.upstream("publish_finite_ttl")
@pytest.mark.upstream("publish_finite_ttl_creates_ttl_data_entry")
@pytest.mark.upstream("ttl_data_stored_separately")
def test_a_finite_ttl_is_recorded_beside_the_child_trie(relay: Relay) -> None:
    relay.register()
    relay.at(100)
    relay.publish(A, b"value", ttl=500)
    assert relay.storage.ttl_data.get(PARA, A) == (500, 100)
    assert relay.state.exists(relay.storage.ttl_data.storage_key(PARA, A))
    assert relay.storage.entry(PARA, A) == PublishedEntry(b"value", 500, 100)


@pytest.mark.scenario("TTL Expiration / TTL reset on update")
@pytest.mark.upstream("ttl_reset_on_update")
def test_publishing_again_starts_the_time_anew(relay: Relay) -> None:
    relay.register()
    relay.at(1_000)
    relay.publish(A, ttl=100)
    relay.at(1_050)
    relay.publish(A, ttl=200)
    assert relay.storage.ttl_data.get(PARA, A) == (200, 1_050)
    for block, alive in ((1_100, True), (1_249, True), (1_250, False)):
        relay.at(block)
        relay.broadcaster.on_idle(Weight.MAX)
        assert (relay.value(A) is not None) is alive


@pytest.mark.scenario("TTL Expiration / TTL change from finite to infinite")
@pytest.mark.upstream("ttl_finite_to_infinite")
def test_an_infinite_ttl_takes_the_record_away(relay: Relay) -> None:
    relay.register()
    relay.publish(A, ttl=100)
    relay.publish(A, ttl=0)
    assert relay.storage.ttl_data.count() == 0
    relay.at(10_000)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.value(A) is not None


@pytest.mark.upstream("ttl_infinite_to_finite")
def test_a_finite_ttl_may_come_later(relay: Relay) -> None:
    relay.register()
    relay.publish(A, ttl=0)
    relay.at(100)
    relay.publish(A, ttl=500)
    assert relay.storage.ttl_data.get(PARA, A) == (500, 100)


@pytest.mark.upstream("publish_large_ttl")
@pytest.mark.upstream("publish_large_ttl_accepted_as_is")
@pytest.mark.parametrize("inserted", [1, 1_000, U32_MAX - 1])
def test_the_largest_ttl_is_kept_and_does_not_wrap(relay: Relay, inserted: int) -> None:
    """The draft adds without saturation: such a key expires in the next block there."""
    relay.register()
    relay.at(inserted)
    relay.publish(A, ttl=U32_MAX)
    assert relay.storage.ttl_data.get(PARA, A) == (U32_MAX, inserted)
    for now, alive in ((inserted, True), (U32_MAX - 1, True), (U32_MAX, False)):
        relay.at(now)
        relay.broadcaster.on_idle(Weight.MAX)
        assert (relay.value(A) is not None) is alive


@pytest.mark.parametrize(("ttl", "now", "alive"), [(1, 100, True), (1, 101, False), (50, 149, True), (50, 150, False)])
def test_equality_with_the_end_is_expired(relay: Relay, ttl: int, now: int, alive: bool) -> None:
    relay.register()
    relay.at(100)
    relay.publish(A, ttl=ttl)
    relay.at(now)
    relay.broadcaster.on_idle(Weight.MAX)
    assert (relay.value(A) is not None) is alive


@pytest.mark.parametrize("late", [1, 49, 10_000])
def test_a_key_that_no_scan_met_at_its_end_goes_with_a_later_one(relay: Relay, late: int) -> None:
    relay.register()
    relay.at(100)
    relay.publish(A, ttl=50)
    relay.at(150 + late)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.value(A) is None


@pytest.mark.scenario("TTL Expiration / Partial cleanup under weight limit")
@pytest.mark.upstream("on_idle_partial_cleanup")
@pytest.mark.upstream("on_idle_partial_cleanup_sets_cursor")
def test_weight_for_half_of_the_keys_deletes_half_and_the_next_block_the_rest() -> None:
    relay = with_keys(1_000)
    order = scan_order(relay)
    used = relay.broadcaster.on_idle(BASE + EACH * 500)
    assert used == BASE + EACH * 500
    assert relay.keys(SYSTEM_PARA) == set(order[500:])
    assert relay.storage.ttl_scan_cursor.get() == (SYSTEM_PARA, order[499])
    assert relay.broadcaster.on_idle(BASE + EACH * 500) == BASE + EACH * 500
    assert relay.keys(SYSTEM_PARA) == set()
    assert relay.storage.ttl_scan_cursor.get() is None


@pytest.mark.upstream("on_idle_cursor_resumption")
def test_key_after_key_goes_in_the_order_of_storage() -> None:
    relay = with_keys(5)
    order = scan_order(relay)
    for left in (4, 3, 2, 1, 0):
        relay.broadcaster.on_idle(BASE + EACH)
        assert scan_order(relay) == order[5 - left :]
    assert relay.storage.ttl_scan_cursor.get() is None
    assert [event.key for event in relay.system.events.of(KeyExpired)] == order


@pytest.mark.upstream("on_idle_cursor_wrap_around")
def test_at_the_end_the_scan_begins_anew_in_the_next_block() -> None:
    relay = with_keys(4, ttl=50)
    relay.at(120)
    for _ in range(2):
        relay.broadcaster.on_idle(BASE + EACH * 3)
        assert relay.storage.ttl_scan_cursor.get() is not None
        relay.broadcaster.on_idle(BASE + EACH * 3)
        assert relay.storage.ttl_scan_cursor.get() is None
    assert len(relay.keys(SYSTEM_PARA)) == 4


@pytest.mark.parametrize("config", [FREE, DRAFT_MOCK])
def test_no_more_than_the_cap_is_scanned_however_light(config: BroadcasterConfig) -> None:
    relay = Relay(config)
    relay.at(100)
    for index in range(510):
        para = ParaId(1_000 + index % 20)
        relay.publish(hash_key(str(index)), b"v", ttl=1, publisher=para)
    relay.at(101)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.storage.ttl_data.count() == 10
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.storage.ttl_data.count() == 0


def test_entries_that_stay_are_charged_like_those_that_go() -> None:
    relay = with_keys(10)
    relay.at(120)
    assert relay.broadcaster.on_idle(Weight.MAX) == BASE + EACH * 10
    assert len(relay.keys(SYSTEM_PARA)) == 10


@pytest.mark.parametrize(
    ("remaining", "used", "deleted"),
    [
        (Weight(24_999_999), Weight.ZERO, 0),  # not even the cursor can be read
        (BASE, BASE, 0),
        (BASE + EACH - Weight(1), BASE, 0),  # one short of an entry
        (BASE + EACH, BASE + EACH, 1),
        (BASE + EACH * 2 - Weight(1), BASE + EACH, 1),
    ],
)
def test_the_scan_never_exceeds_what_remains(remaining: Weight, used: Weight, deleted: int) -> None:
    relay = with_keys(3)
    before = relay.storage.ttl_scan_cursor.get()
    assert relay.broadcaster.on_idle(remaining) == used
    assert len(relay.keys(SYSTEM_PARA)) == 3 - deleted
    if not deleted:
        assert relay.storage.ttl_scan_cursor.get() == before


@pytest.mark.parametrize("remaining", [Weight.ZERO, BASE - Weight(1), BASE])
def test_too_little_weight_leaves_a_cursor_where_it_is(remaining: Weight) -> None:
    relay = with_keys(3)
    relay.broadcaster.on_idle(BASE + EACH)
    cursor = relay.storage.ttl_scan_cursor.get()
    relay.broadcaster.on_idle(remaining)
    assert relay.storage.ttl_scan_cursor.get() == cursor is not None


@pytest.mark.parametrize("gone", ["the entry under the cursor", "the next entry", "all that follow", "everything"])
def test_entries_that_vanish_do_not_derail_the_scan(gone: str) -> None:
    relay = with_keys(6)
    relay.at(120)
    order = scan_order(relay)
    relay.broadcaster.on_idle(BASE + EACH * 3)
    vanished = {
        "the entry under the cursor": order[2:3],
        "the next entry": order[3:4],
        "all that follow": order[3:],
        "everything": order,
    }[gone]
    relay.storage.remove(SYSTEM_PARA, vanished)
    relay.at(150)
    relay.broadcaster.on_idle(Weight.MAX)
    assert set(scan_order(relay)) == set(order[:3]) - set(vanished)
    relay.broadcaster.on_idle(Weight.MAX)
    assert scan_order(relay) == []


def test_the_scan_follows_the_hashes_of_publishers_and_keys() -> None:
    relay = Relay(FREE)
    paras = [ParaId(para) for para in range(1_000, 1_020)]
    for para in paras:
        relay.publish(A, ttl=1, publisher=para)
        relay.publish(B, ttl=1, publisher=para)
    relay.at(2)
    relay.broadcaster.on_idle(Weight.MAX)
    expired = [(event.publisher, event.key) for event in relay.system.events.of(KeyExpired)]
    raw_keys = [relay.storage.ttl_data.storage_key(*entry) for entry in expired]
    assert len(expired) == 40
    assert all(left < right for left, right in pairwise(raw_keys))
    assert [publisher for publisher, _ in expired] != sorted(publisher for publisher, _ in expired)


def test_either_hasher_of_the_draft_finds_its_way_through() -> None:
    relay = with_keys(7, BroadcasterConfig(publisher_deposit=100, ttl_key_hasher=BLAKE2_128_CONCAT))
    for _ in range(3):
        relay.broadcaster.on_idle(BASE + EACH * 3)
    assert relay.storage.ttl_data.count() == 0
    assert relay.storage.ttl_scan_cursor.get() is None


def test_the_last_key_to_expire_leaves_nothing_behind() -> None:
    pristine = Relay(ROCKS)
    pristine.at(150)
    relay = with_keys(3)
    relay.state.commit()
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.state.commit() == pristine.state.commit()
    assert relay.state.snapshot() == pristine.state.snapshot()
