"""When published keys expire, and how the scan for them uses the idle time of blocks."""

from collections.abc import Iterator

import pytest

from pallets.broadcaster_vectors import BroadcasterVector, DbPrices, StepSequence, with_limits
from pallets.relay import Relay, hash_key
from relaycast_xcm.primitives import ParaId, Weight
from vector_fields import Vector, VectorSource, scenario
from yielded_vectors import yields

READ, WRITE = 25_000_000, 100_000_000
BASE, EACH = READ, 2 * READ + 4 * WRITE
TWO_SCANS = Weight(BASE + 2 * EACH)
LAST_BLOCK = (1 << 32) - 1

RESUMES = VectorSource(upstream="on_idle_cursor_resumption")
VANISHES = VectorSource(trap="an entry that goes under the cursor does not derail the scan")


def published(names: str, *, ttl: int, block: int = 100, hasher: str = "Twox64Concat", **limits: int) -> StepSequence:
    there = with_limits(max_stored_keys=20, ttl_key_hasher=hasher, **limits).register(2_000).at(block)
    for name in names:
        there.publish(2_000, name, name.encode(), ttl=ttl)
    return there.begin()


# The end of a key


@pytest.mark.upstream("on_idle_expires_keys")
@pytest.mark.parametrize(
    ("block", "when", "left"),
    [(1_000, "at once", "k"), (1_099, "one block before", "k"), (1_100, "exactly then", ""), (1_101, "after", "")],
)
@yields("broadcaster/expiry")
def test_a_key_expires_at_its_block_and_not_before(block: int, when: str, left: str) -> Iterator[Vector]:
    source = scenario("TTL Expiration / Key expires")
    vector = (
        published("k", ttl=100, block=1_000)
        .at(block)
        .on_idle()
        .vector(f"expiry/at-{block}", f"published at 1000 for 100 blocks, looked at {when}", source, keeps=left)
    )
    if not left:
        assert vector.after == with_limits(max_stored_keys=20).register(2_000).begin().before
    yield vector


@pytest.mark.parametrize("ttl", [1, 2, LAST_BLOCK - 100])
@pytest.mark.parametrize(("late", "left"), [(-1, "k"), (0, "")])
@yields("broadcaster/expiry")
def test_equality_with_the_end_is_expired(ttl: int, late: int, left: str) -> Iterator[Vector]:
    source = scenario("TTL Expiration / Key expires")
    block, why = 100 + ttl + late, f"a time to live of {ttl}, {-late} blocks before its end"
    there = published("k", ttl=ttl).at(block).on_idle()
    yield there.vector(f"expiry/ttl-{ttl}-at-{block}", why, source, keeps=left)


@yields("broadcaster/expiry")
def test_a_block_before_the_insertion_expires_nothing() -> Iterator[Vector]:
    source = scenario("TTL Expiration / Key expires")
    there, why = published("k", ttl=100).at(50).on_idle(), "a block below that of the insertion expires nothing"
    yield there.vector("expiry/block-before-insertion", why, source, keeps="k")


@pytest.mark.upstream("publish_infinite_ttl")
@pytest.mark.upstream("publish_infinite_ttl_no_ttl_data_entry")
@yields("broadcaster/expiry")
def test_a_time_to_live_of_zero_never_ends() -> Iterator[Vector]:
    source = scenario("TTL Expiration / Infinite TTL")
    there = published("k", ttl=0).at(LAST_BLOCK).on_idle()
    why = "a time to live of 0 never ends, and TtlData has no entry"
    yield there.vector("expiry/infinite", why, source, keeps="k")
    mixed = with_limits().register(2_000).publish(2_000, "a", b"\x01", ttl=5).publish(2_000, "b", b"\x02").begin()
    mixed.at(6).on_idle()
    yield mixed.vector("expiry/one-of-two", "the key without an end stays", source, keeps="b")


@pytest.mark.upstream("publish_large_ttl")  # the draft adds without saturation: such a key expires in the next block
@pytest.mark.upstream("publish_large_ttl_accepted_as_is")
@pytest.mark.parametrize(
    ("block", "ttl", "now", "left"),
    [
        (100, LAST_BLOCK, LAST_BLOCK - 1, "k"),
        (100, LAST_BLOCK, LAST_BLOCK, ""),
        (LAST_BLOCK - 1, 5, LAST_BLOCK - 1, "k"),
        (LAST_BLOCK - 1, 5, LAST_BLOCK, ""),
    ],
)
@yields("broadcaster/expiry")
def test_a_time_to_live_beyond_the_last_block_ends_in_it(block: int, ttl: int, now: int, left: str) -> Iterator[Vector]:
    there = published("k", ttl=ttl, block=block).at(now).on_idle()
    yield there.vector(
        f"expiry/saturates-{block}-{ttl}-{now}",
        f"published at {block} for {ttl} blocks, looked at in block {now}: it ends in the last block",
        VectorSource(trap="the sum of block and time to live saturates"),
        keeps=left,
    )


@pytest.mark.upstream("ttl_reset_on_update")
@yields("broadcaster/expiry")
def test_publishing_again_starts_the_time_anew() -> Iterator[Vector]:
    source = scenario("TTL Expiration / TTL reset on update")
    there = published("k", ttl=100, block=1_000).at(1_050).publish(2_000, "k", b"\x02", ttl=200)
    there.at(1_100).on_idle().at(1_249).on_idle().at(1_250).on_idle()
    yield there.vector("expiry/reset", "published again at 1050 for 200: it ends at 1250", source, keeps="")
    shorter = published("k", ttl=1_000).at(110).publish(2_000, "k", b"\x02", ttl=5)
    shorter.at(114).on_idle().at(115).on_idle()
    yield shorter.vector("expiry/shorter", "a shorter time ends earlier", source, keeps="")
    ended = published("k", ttl=10).at(110).on_idle().publish(2_000, "k", b"\x02", ttl=10).at(119).on_idle()
    ended.at(120).on_idle()
    yield ended.vector("expiry/again", "an expired key is published again", source, keeps="")
    same = published("k", ttl=10).at(110).publish(2_000, "k", b"\x02", ttl=10).on_idle()
    why = "published again in the block in which it would end"
    yield same.vector("expiry/published-in-time", why, source, keeps="k")


@pytest.mark.upstream("ttl_finite_to_infinite")
@yields("broadcaster/expiry")
def test_an_infinite_ttl_takes_the_record_away() -> Iterator[Vector]:
    source = scenario("TTL Expiration / TTL change from finite to infinite")
    endless = published("k", ttl=10).at(105).publish(2_000, "k", b"\x02", ttl=0).at(110).on_idle().at(9_999).on_idle()
    yield endless.vector("expiry/finite-to-infinite", "the entry of TtlData goes, the key stays", source, keeps="k")


@yields("broadcaster/expiry")
def test_after_the_last_key_nothing_is_left() -> Iterator[Vector]:
    source = scenario("TTL Expiration / Key expires")
    there = StepSequence().register(2_000)
    registered = there.begin().before
    there.publish(2_000, "a", b"\x01", ttl=5).publish(2_000, "b", b"\x02").begin().at(6).on_idle().delete(2_000, "b")
    vector = there.vector("on-idle/then-last-key", "after expiry the last key is deleted: nothing is left", source)
    assert vector.after == registered
    yield vector


# Weight and cap of a scan


@pytest.mark.upstream("on_idle_partial_cleanup")
@pytest.mark.parametrize(
    ("ref_time", "scans", "why"),
    [
        (0, 0, "no weight: nothing is looked at"),
        (BASE - 1, 0, "one picosecond less than a read"),
        (BASE, 0, "a read alone: no entry is scanned"),
        (BASE + EACH - 1, 0, "one picosecond less than one entry"),
        (BASE + EACH, 1, "one entry exactly"),
        (BASE + 2 * EACH, 2, "two entries"),
        (BASE + 3 * EACH - 1, 2, "one picosecond less than all three entries"),
        (BASE + 3 * EACH, 3, "all three entries: the scan comes to the end"),
        (BASE + 9 * EACH, 3, "more than enough"),
    ],
)
@yields("broadcaster/expiry")
def test_a_scan_never_exceeds_the_weight_that_remains(ref_time: int, scans: int, why: str) -> Iterator[Vector]:
    source = scenario("TTL Expiration / Partial cleanup under weight limit")
    there = published("abc", ttl=10).at(110).on_idle(Weight(ref_time))
    why = f"{ref_time} ps for three expired keys: {why}"
    vector = there.vector(f"on-idle/weight-{ref_time}", why, source)
    assert used(vector) == (BASE + scans * EACH if ref_time >= BASE else 0)
    yield vector


def used(vector: BroadcasterVector) -> int:
    """Return the picoseconds of the last step."""
    assert vector.steps[-1].expect
    assert vector.steps[-1].expect.consumed
    return int(vector.steps[-1].expect.consumed.ref_time)


@yields("broadcaster/expiry")
def test_a_scan_has_no_proof_size() -> Iterator[Vector]:
    source = scenario("TTL Expiration / Partial cleanup under weight limit")
    for left in (0, 1):
        there = published("abc", ttl=10).at(110).on_idle(Weight(BASE + EACH, left))
        yield there.vector(f"on-idle/proof-{left}", "scans have no proof size, whatever is left of it", source)


@yields("broadcaster/expiry")
def test_an_empty_map_costs_a_read() -> Iterator[Vector]:
    source = scenario("TTL Expiration / Partial cleanup under weight limit")
    for ref_time in (BASE, BASE + EACH):
        there = published("", ttl=0).on_idle(Weight(ref_time))
        yield there.vector(f"on-idle/empty-{ref_time}", "an empty map costs a read", source)


@yields("broadcaster/expiry")
def test_where_the_database_is_free_no_weight_is_enough() -> Iterator[Vector]:
    free = with_limits(db_weight=DbPrices(0, 0)).register(2_000).publish(2_000, "a", b"\x01", ttl=1).begin()
    why, source = "where the database is free, no weight is enough", VectorSource(trap="mocks without weights")
    yield free.at(2).on_idle(Weight.ZERO).vector("on-idle/free", why, source, keeps="")


@pytest.mark.parametrize("cap", range(5))
@yields("broadcaster/expiry")
def test_a_scan_ends_at_the_cap_and_keys_that_live_cost_the_same(cap: int) -> Iterator[Vector]:
    source = scenario("TTL Expiration / Partial cleanup under weight limit")
    expired = published("abc", ttl=10, max_ttl_scans_per_idle=cap).at(110).on_idle()
    why = f"at most {cap} scans for three expired keys"
    gone = expired.vector(f"on-idle/cap-{cap}", why, source)
    yield gone
    alive = published("abc", ttl=90, max_ttl_scans_per_idle=cap).at(110).on_idle()
    why = f"at most {cap} scans for three keys that live: they cost the same"
    stay = alive.vector(f"on-idle/cap-{cap}-alive", why, source, keeps="abc")
    assert used(gone) == used(stay) == BASE + min(cap, 3) * EACH
    yield stay


def test_a_scan_ends_at_the_cap_of_500_where_the_database_is_free(relay: Relay) -> None:
    for index in range(510):
        relay.publish(hash_key(str(index)), ttl=1, publisher=ParaId(1_000 + index % 20))
    relay.at(2)
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.storage.ttl_data.count() == 10
    relay.broadcaster.on_idle(Weight.MAX)
    assert relay.storage.ttl_data.count() == 0


# The cursor


@pytest.mark.upstream("on_idle_partial_cleanup_sets_cursor")
@pytest.mark.upstream("on_idle_cursor_wrap_around")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@yields("broadcaster/expiry")
def test_a_scan_resumes_at_the_cursor_and_begins_anew_at_the_end(count: int) -> Iterator[Vector]:
    for name, ttl, why in (
        ("resumes", 10, f"two scans a block through {count} expired keys"),
        ("wraps", 90, f"two scans a block round and round {count} keys that live"),
    ):
        there = published("abcde"[:count], ttl=ttl).at(110)
        for _ in range(4):
            there.on_idle(TWO_SCANS)
        left = "abcde"[:count] if ttl == 90 else ""
        yield there.vector(f"on-idle/{name}-{count}", why, RESUMES, keeps=left)


@yields("broadcaster/expiry")
def test_a_scan_without_weight_leaves_the_cursor() -> Iterator[Vector]:
    there = published("abcd", ttl=90).at(110).on_idle(TWO_SCANS).on_idle(Weight(BASE)).on_idle(Weight.ZERO)
    yield there.vector("on-idle/cursor-stays", "a scan without weight leaves the cursor", RESUMES)


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
@yields("broadcaster/expiry")
def test_keys_that_come_and_go_between_scans_do_not_derail_them(name: str) -> Iterator[Vector]:
    there = published("abcd", ttl=90).at(110).on_idle(TWO_SCANS).delete(2_000, name)
    there.on_idle(TWO_SCANS).on_idle(TWO_SCANS)
    yield there.vector(f"on-idle/cursor-deleted-{name}", f"{name} is deleted between two scans", VANISHES)
    there = published("abd" if name == "c" else "abcd", ttl=90).at(110).on_idle(TWO_SCANS)
    there.publish(2_000, "new" + name, b"\x01", ttl=1).at(111).on_idle(TWO_SCANS).on_idle(TWO_SCANS)
    why = "a key comes between two scans, before or after it"
    yield there.vector(f"on-idle/cursor-added-{name}", why, VANISHES)


@yields("broadcaster/expiry")
def test_where_all_keys_are_gone_the_cursor_is_cleared() -> Iterator[Vector]:
    there = published("abcd", ttl=90).at(110).on_idle(TWO_SCANS).delete(2_000, *"abcd").on_idle(TWO_SCANS)
    vector = there.vector("on-idle/cursor-over-nothing", "all keys are deleted: the cursor is cleared", VANISHES)
    assert vector.after == published("", ttl=0).before
    yield vector


@yields("broadcaster/expiry")
def test_the_cursor_goes_on_where_its_publisher_is_gone() -> Iterator[Vector]:
    left = StepSequence().register(2_000).register(2_001)
    for para_id in (2_000, 2_001):
        left.publish(para_id, "a", b"\x01", ttl=50).publish(para_id, "b", b"\x02", ttl=50)
    left.begin().at(6).on_idle(Weight(BASE + EACH)).deregister(2_000).on_idle(TWO_SCANS).on_idle(TWO_SCANS)
    yield left.vector("on-idle/publisher-leaves", "the publisher under the cursor deregisters", RESUMES)


# The order of a scan


@yields("broadcaster/expiry")
def test_another_hasher_of_the_second_key_gives_another_order() -> Iterator[Vector]:
    hashed = published("abcde", ttl=10, hasher="Blake2_128Concat").at(110)
    hashed.on_idle(TWO_SCANS).on_idle(TWO_SCANS).on_idle(TWO_SCANS)
    why = "another hasher of the second key: another order of the scan"
    yield hashed.vector("on-idle/blake2", why, RESUMES, keeps="")


@pytest.mark.parametrize(("name", "ttl"), [("expired", 5), ("mixed", 50)])
@yields("broadcaster/expiry")
def test_a_scan_follows_the_hashes_of_publishers_and_keys(name: str, ttl: int) -> Iterator[Vector]:
    source = scenario("TTL Expiration / Partial cleanup under weight limit")
    there = StepSequence().register(2_000).register(2_001)
    for para_id in (1_000, 2_000, 2_001):
        there.publish(para_id, "a", b"\x01", ttl=5).publish(para_id, "b", b"\x02", ttl=ttl)
    there.begin().at(6)
    for _ in range(4):
        there.on_idle(TWO_SCANS)
    why = "the scan follows the raw keys through three publishers"
    yield there.vector(f"on-idle/publishers-{name}", why, source, keeps="b" if ttl == 50 else "")
