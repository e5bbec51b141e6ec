"""Expiry: the boundaries of times to live, and the cursor of ``on_idle`` under weights and caps."""

from collections.abc import Iterator

from relaycast.vectors.broadcaster.broadcaster_vector import BroadcasterVector, DbPrices
from relaycast.vectors.broadcaster.step_sequence import StepSequence, with_limits
from relaycast.vectors.vector import VectorSource, scenario
from relaycast_xcm.primitives import Weight

READ, WRITE = 25_000_000, 100_000_000
BASE, EACH = READ, 2 * READ + 4 * WRITE
LAST_BLOCK = (1 << 32) - 1

_EXPIRES = scenario("TTL Expiration / Key expires")
_INFINITE = scenario("TTL Expiration / Infinite TTL")
_RESET = scenario("TTL Expiration / TTL reset on update")
_CLEARED = scenario("TTL Expiration / TTL change from finite to infinite")
_PARTIAL = scenario("TTL Expiration / Partial cleanup under weight limit")
_CURSOR = VectorSource(upstream="on_idle_cursor_resumption")


def vectors(seed: int) -> Iterator[BroadcasterVector]:
    """Yield the vectors; none is drawn from ``seed``."""
    del seed
    yield from _boundaries()
    yield from _saturation()
    yield from _changed_times()
    yield from _weights()
    yield from _caps()
    yield from _cursors()
    yield from _several_publishers()


def _there(names: str, *, ttl: int, block: int = 100, hasher: str = "Twox64Concat", **limits: int) -> StepSequence:
    there = with_limits(max_stored_keys=20, ttl_key_hasher=hasher, **limits).register(2_000).at(block)
    for name in names:
        there.publish(2_000, name, name.encode(), ttl=ttl)
    return there.begin()


def _boundaries() -> Iterator[BroadcasterVector]:
    for block, what in ((1_000, "at once"), (1_099, "one block before"), (1_100, "exactly then"), (1_101, "after")):
        yield (
            _there("k", ttl=100, block=1_000)
            .at(block)
            .on_idle()
            .vector(f"expiry/at-{block}", f"published at 1000 for 100 blocks, looked at {what}", _EXPIRES)
        )
    for ttl in (1, 2, LAST_BLOCK - 100):
        for late in (-1, 0):
            block = 100 + ttl + late
            yield (
                _there("k", ttl=ttl)
                .at(block)
                .on_idle()
                .vector(
                    f"expiry/ttl-{ttl}-at-{block}", f"a time to live of {ttl}, {-late} blocks before its end", _EXPIRES
                )
            )
    yield (
        _there("k", ttl=0)
        .at(LAST_BLOCK)
        .on_idle()
        .vector("expiry/infinite", "a time to live of 0 never ends, and TtlData has no entry", _INFINITE)
    )
    mixed = with_limits().register(2_000).publish(2_000, "a", b"\x01", ttl=5).publish(2_000, "b", b"\x02").begin()
    yield mixed.at(6).on_idle().vector("expiry/one-of-two", "the key without an end stays", _INFINITE)
    yield (
        _there("k", ttl=100)
        .at(50)
        .on_idle()
        .vector("expiry/block-before-insertion", "a block below that of the insertion expires nothing", _EXPIRES)
    )


def _saturation() -> Iterator[BroadcasterVector]:
    source = VectorSource(trap="the sum of block and time to live saturates")
    for block, ttl, now in (
        (100, LAST_BLOCK, LAST_BLOCK - 1),
        (100, LAST_BLOCK, LAST_BLOCK),
        (LAST_BLOCK - 1, 5, LAST_BLOCK - 1),
        (LAST_BLOCK - 1, 5, LAST_BLOCK),
    ):
        yield (
            _there("k", ttl=ttl, block=block)
            .at(now)
            .on_idle()
            .vector(
                f"expiry/saturates-{block}-{ttl}-{now}",
                f"published at {block} for {ttl} blocks, looked at in block {now}: it ends in the last block",
                source,
            )
        )


def _changed_times() -> Iterator[BroadcasterVector]:
    there = _there("k", ttl=100, block=1_000).at(1_050).publish(2_000, "k", b"\x02", ttl=200)
    there.at(1_100).on_idle().at(1_249).on_idle().at(1_250).on_idle()
    yield there.vector("expiry/reset", "published again at 1050 for 200: it ends at 1250", _RESET)
    shorter = _there("k", ttl=1_000).at(110).publish(2_000, "k", b"\x02", ttl=5)
    yield shorter.at(114).on_idle().at(115).on_idle().vector("expiry/shorter", "a shorter time ends earlier", _RESET)
    endless = _there("k", ttl=10).at(105).publish(2_000, "k", b"\x02", ttl=0).at(110).on_idle().at(9_999).on_idle()
    yield endless.vector("expiry/finite-to-infinite", "the entry of TtlData goes, the key stays", _CLEARED)
    ended = _there("k", ttl=10).at(110).on_idle().publish(2_000, "k", b"\x02", ttl=10).at(119).on_idle()
    yield ended.at(120).on_idle().vector("expiry/again", "an expired key is published again", _RESET)
    same = _there("k", ttl=10).at(110).publish(2_000, "k", b"\x02", ttl=10).on_idle()
    yield same.vector("expiry/published-in-time", "published again in the block in which it would end", _RESET)


def _weights() -> Iterator[BroadcasterVector]:
    for ref_time, why in (
        (0, "no weight: nothing is looked at"),
        (BASE - 1, "one picosecond less than a read"),
        (BASE, "a read alone: no entry is scanned"),
        (BASE + EACH - 1, "one picosecond less than one entry"),
        (BASE + EACH, "one entry exactly"),
        (BASE + 2 * EACH, "two entries"),
        (BASE + 3 * EACH - 1, "one picosecond less than all three entries"),
        (BASE + 3 * EACH, "all three entries: the scan comes to the end"),
        (BASE + 9 * EACH, "more than enough"),
    ):
        yield (
            _there("abc", ttl=10)
            .at(110)
            .on_idle(Weight(ref_time))
            .vector(f"on-idle/weight-{ref_time}", f"{ref_time} ps for three expired keys: {why}", _PARTIAL)
        )
    for left in (0, 1):
        idle = _there("abc", ttl=10).at(110).on_idle(Weight(BASE + EACH, left))
        yield idle.vector(f"on-idle/proof-{left}", "scans have no proof size, whatever is left of it", _PARTIAL)
    for ref_time in (BASE, BASE + EACH):
        yield (
            _there("", ttl=0)
            .on_idle(Weight(ref_time))
            .vector(f"on-idle/empty-{ref_time}", "an empty map costs a read", _PARTIAL)
        )
    free = with_limits(db_weight=DbPrices(0, 0)).register(2_000).publish(2_000, "a", b"\x01", ttl=1).begin()
    yield (
        free.at(2)
        .on_idle(Weight.ZERO)
        .vector(
            "on-idle/free",
            "where the database is free, no weight is enough",
            VectorSource(trap="mocks without weights"),
        )
    )


def _caps() -> Iterator[BroadcasterVector]:
    for cap in range(5):
        yield (
            _there("abc", ttl=10, max_ttl_scans_per_idle=cap)
            .at(110)
            .on_idle()
            .vector(f"on-idle/cap-{cap}", f"at most {cap} scans for three expired keys", _PARTIAL)
        )
        yield (
            _there("abc", ttl=90, max_ttl_scans_per_idle=cap)
            .at(110)
            .on_idle()
            .vector(
                f"on-idle/cap-{cap}-alive",
                f"at most {cap} scans for three keys that live: they cost the same",
                _PARTIAL,
            )
        )


def _cursors() -> Iterator[BroadcasterVector]:
    step = Weight(BASE + 2 * EACH)
    for count in (1, 2, 3, 4, 5):
        there = _there("abcde"[:count], ttl=10).at(110)
        for _ in range(4):
            there.on_idle(step)
        yield there.vector(f"on-idle/resumes-{count}", f"two scans a block through {count} expired keys", _CURSOR)
        there = _there("abcde"[:count], ttl=90).at(110)
        for _ in range(4):
            there.on_idle(step)
        yield there.vector(
            f"on-idle/wraps-{count}", f"two scans a block round and round {count} keys that live", _CURSOR
        )
    deleted = VectorSource(trap="an entry that goes under the cursor does not derail the scan")
    for name in "abcd":
        there = _there("abcd", ttl=90).at(110).on_idle(step).delete(2_000, name)
        there.on_idle(step).on_idle(step)
        yield there.vector(f"on-idle/cursor-deleted-{name}", f"{name} is deleted between two scans", deleted)
        there = _there("abd" if name == "c" else "abcd", ttl=90).at(110).on_idle(step)
        there.publish(2_000, "new" + name, b"\x01", ttl=1).at(111).on_idle(step).on_idle(step)
        yield there.vector(f"on-idle/cursor-added-{name}", "a key comes between two scans, before or after it", deleted)
    there = _there("abcd", ttl=90).at(110).on_idle(step).delete(2_000, *"abcd").on_idle(step)
    yield there.vector("on-idle/cursor-over-nothing", "all keys are deleted: the cursor is cleared", deleted)
    there = _there("abcd", ttl=90).at(110).on_idle(step).on_idle(Weight(BASE)).on_idle(Weight.ZERO)
    yield there.vector("on-idle/cursor-stays", "a scan without weight leaves the cursor", _CURSOR)
    hashed = _there("abcde", ttl=10, hasher="Blake2_128Concat").at(110).on_idle(step).on_idle(step).on_idle(step)
    yield hashed.vector("on-idle/blake2", "another hasher of the second key: another order of the scan", _CURSOR)


def _several_publishers() -> Iterator[BroadcasterVector]:
    step = Weight(BASE + 2 * EACH)
    for live in (False, True):
        there = StepSequence().register(2_000).register(2_001)
        for para_id in (1_000, 2_000, 2_001):
            there.publish(para_id, "a", b"\x01", ttl=5).publish(para_id, "b", b"\x02", ttl=50 if live else 5)
        there.begin().at(6)
        for _ in range(4):
            there.on_idle(step)
        yield there.vector(
            f"on-idle/publishers-{'mixed' if live else 'expired'}",
            "the scan follows the raw keys through three publishers",
            _PARTIAL,
        )
    left = StepSequence().register(2_000).register(2_001)
    for para_id in (2_000, 2_001):
        left.publish(para_id, "a", b"\x01", ttl=50).publish(para_id, "b", b"\x02", ttl=50)
    left.begin().at(6).on_idle(Weight(BASE + EACH)).deregister(2_000).on_idle(step).on_idle(step)
    yield left.vector("on-idle/publisher-leaves", "the publisher under the cursor deregisters", _CURSOR)
    last = StepSequence().register(2_000).publish(2_000, "a", b"\x01", ttl=5).publish(2_000, "b", b"\x02").begin()
    yield (
        last.at(6)
        .on_idle()
        .delete(2_000, "b")
        .vector("on-idle/then-last-key", "after expiry the last key is deleted: nothing is left", _EXPIRES)
    )
