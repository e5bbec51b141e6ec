"""``max_cached_bytes``: which nodes a subscriber keeps under a limit, and that no update is lost by those left out.

Where a limit binds, a value may be told again; every other invariant holds. The machine of ``test_subscriber_machine``
runs under random limits that come, change and go.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from msgspec import structs

from pallets.subscriber_invariants import (
    disabled_publishers_are_silent,
    hashed_paths,
    nothing_is_lost,
    omission_is_within_the_slack,
    one_pass_in_both_modes,
    proof_is_what_was_read,
    times_to_live_count_relay_blocks,
    within_the_limit,
)
from pallets.subscriber_world import ALPHA, BETA, MOCK, Block, World, keys
from pallets.test_subscriber_machine import CONFIG, ROOT, STOCK, Network, budgets, floods, networks, publishers, seeds
from relaycast_pallets import Panic, Policies, ProofProcessingResult, SubscribedKey
from relaycast_pallets.subscriber import cache_limit
from relaycast_pallets.subscriber.cache_limit import CachedSize, CacheLimit, nearest
from relaycast_pallets.subscriber.plan import NO_CACHED_NODES, PublisherView
from relaycast_pallets.subscriber.policies import EverythingCarried, NoCache
from relaycast_pallets.subscriber.proof_pass import Pass
from relaycast_pallets.subscriber.publisher_pass import PassReads, PublisherReads
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk, Side
from relaycast_xcm.primitives import ParaId
from searches import examples

limits = st.none() | st.integers(0, 6_000)
LIMITED = replace(MOCK, max_cached_bytes=1_200)


def cached_bytes(world: World, publisher: ParaId) -> int:
    return sum(map(len, world.cached(publisher).values()))


def sizes_are_those_of_the_nodes(world: World) -> None:
    """The counted bytes of a publisher are its stored bytes; without a limit nothing is counted."""
    counted = world.storage.cached_sizes.get()
    if world.subscriber.config.max_cached_bytes is None or counted is None:
        assert counted is None
        return
    stored: dict[ParaId, int] = {}
    for publisher, _, node in world.storage.cached_trie_nodes.items():
        stored[publisher] = stored.get(publisher, 0) + len(node)
    assert {publisher: it.size for publisher, it in counted.items() if it.size} == stored


def kept_nodes_hang_together(world: World, publisher: ParaId) -> None:
    """Every kept node stands on a subscribed path, below kept nodes alone, at one place at least."""
    reached: set[bytes] = set()
    cached = world.cached(publisher)
    for path in hashed_paths(world, publisher):
        for _, node_hash in path:
            if node_hash not in cached:
                break
            reached.add(node_hash)
    assert reached == cached.keys()


@dataclass
class Bound:
    """The most bytes that may be kept: the limit, or what was kept when it was lowered or set."""

    most: int | None = None

    def check(self, world: World) -> None:
        limit = world.subscriber.config.max_cached_bytes
        if limit is None:
            self.most = None
            return
        kept = sum(len(node) for _, _, node in world.storage.cached_trie_nodes.items())
        assert self.most is None or kept <= max(limit, self.most)
        self.most = kept


class LimitedNetwork(Network):
    """The machine with a limit that changes; crafted keys share nodes, so that counts of places matter."""

    def __init__(self) -> None:
        super().__init__()
        self.bound = Bound()
        self.limit(900)

    def limit(self, most: int | None) -> None:
        self.world.subscriber.config = replace(CONFIG, max_cached_bytes=most)

    @rule(most=limits)
    def change_the_limit(self, most: int | None) -> None:
        self.limit(most)

    @rule()
    def restart(self) -> None:
        config = self.world.subscriber.config
        super().restart()
        self.world.subscriber.config = config

    @rule(publisher=publishers)
    def clear_cache(self, publisher: ParaId) -> None:
        super().clear_cache(publisher)
        known = self.world.storage.cached_sizes.get() or {}
        assert known.get(publisher, CachedSize()).size == sum(map(len, self.world.cached(publisher).values()))

    @rule(pubsub_bytes=budgets, seed=seeds, flood=floods)
    def block(self, pubsub_bytes: int, seed: bytes, flood: int = 0) -> None:
        world = self.world
        world.seal()
        world.system.initialize(world.number)
        block = world.block(pubsub_bytes, seed=seed, flood=flood, seal=False)
        holds(world, block)
        self.bound.check(world)

    def teardown(self) -> None:
        super().teardown()
        for publisher, wanted in self.world.handler.wanted.items():
            if wanted and publisher not in self.world.storage.disabled_publishers:
                on_paths = {node_hash for path in hashed_paths(self.world, publisher) for _, node_hash in path}
                assert self.world.cached(publisher).keys() <= on_paths


def holds(world: World, block: Block) -> None:
    """Check every invariant but those that need a whole cache."""
    one_pass_in_both_modes(block)
    within_the_limit(block)
    proof_is_what_was_read(world, block)
    times_to_live_count_relay_blocks(world, block)
    disabled_publishers_are_silent(world, block)
    omission_is_within_the_slack(world, block)
    sizes_are_those_of_the_nodes(world)
    if block.result.is_complete:
        nothing_is_lost(world)


def test_all_other_invariants_hold_under_any_limit() -> None:
    run_state_machine_as_test(LimitedNetwork, settings=networks(examples(40)))


@pytest.mark.slow
def test_all_other_invariants_hold_under_any_limit_for_long() -> None:
    run_state_machine_as_test(LimitedNetwork, settings=networks(300))


def limited(most: int | None, *publishers: ParaId, count: int = 10, others: int = 0) -> World:
    """Return a world that keeps ``most`` bytes after its first block: keys of each publisher, and ``others`` unread."""
    world = World(config=replace(MOCK, max_cached_bytes=most))
    for publisher in publishers or (ALPHA,):
        world.subscribe(publisher, keys(count))
        world.publish(publisher, keys(count + others), bytes(40))
    world.block()
    return world


def structure(world: World, publisher: ParaId = ALPHA) -> list[tuple[bytes, bytes]]:
    """Return prefix and hash of the nodes on the subscribed paths, nearest to the root first."""
    placed = {place for path in hashed_paths(world, publisher) for place in path}
    return sorted(placed, key=lambda place: (len(place[0]), place[0]))


@pytest.mark.parametrize("most", [0, 100, 600, 800, 1_000])
def test_nodes_nearest_to_the_root_are_kept_first(most: int) -> None:
    world = limited(most)
    nodes, expected, size = world.relay_nodes(), set[bytes](), 0
    for _, node_hash in structure(world):
        size += len(nodes[node_hash])
        if size > most - most // 8:
            break
        expected.add(node_hash)
    whole = sum(len(nodes[node_hash]) for _, node_hash in structure(world))
    assert most < whole  # else nothing would be left out
    assert world.cached(ALPHA).keys() == expected
    kept_nodes_hang_together(world, ALPHA)
    sizes_are_those_of_the_nodes(world)


@given(
    written=st.lists(st.lists(st.sampled_from(STOCK), min_size=1, max_size=8), max_size=6),
    values=st.lists(st.binary(max_size=60), min_size=7, max_size=7),
    budget=st.sampled_from([900, 2_500, 1 << 20]),
)
def test_a_limit_above_what_is_kept_changes_nothing(
    written: list[list[SubscribedKey]], values: list[bytes], budget: int
) -> None:
    worlds = [World(config=replace(CONFIG, max_cached_bytes=most)) for most in (None, 1 << 20)]
    seen: list[list[object]] = [[], []]
    for world, log in zip(worlds, seen, strict=True):
        world.subscribe(ALPHA, STOCK[::2])
        world.publish(ALPHA, STOCK, values[0])
        for some, value in zip([[], *written], values, strict=False):
            world.publish(ALPHA, some, value)
            block = world.block(budget)
            log.append((block.result.reads, block.result.turn, block.calls, world.cached(ALPHA)))
            log.append(world.storage.shared_nodes(ALPHA))
    assert seen[0] == seen[1]


def test_without_room_a_subscriber_does_as_one_without_a_cache() -> None:
    none, cacheless = limited(0), World(policies=Policies(cache=NoCache()))
    cacheless.subscribe(ALPHA, keys(10))
    cacheless.publish(ALPHA, keys(10), bytes(40))
    cacheless.block()
    for world in (none, cacheless):
        world.publish(ALPHA, keys(1), b"new")
    one, other = none.block(), cacheless.block()
    assert (one.calls, one.result.reads) == (other.calls, other.result.reads)
    assert len(one.calls) == 10  # one changed; nine are told again
    assert not none.cached(ALPHA)


def test_what_is_told_again_stands_below_the_cut() -> None:
    world = limited(1_400, count=40)
    cut = world.storage.cached_sizes_or_counted()[ALPHA].cut
    assert cut is not None
    changed = keys(40)[7]
    world.publish(ALPHA, [changed], b"new")
    called = {key for _, key in world.block().called}
    unknown = {
        path[-1][0]: wanted
        for wanted, path in zip(world.subscribed(ALPHA).keys, hashed_paths(world, ALPHA), strict=True)
        if any((len(prefix), prefix) >= (len(cut), cut) for prefix, _ in path)
    }
    assert called <= {changed, *unknown.values()}
    assert changed in called


def test_every_publisher_has_its_share() -> None:
    """A trie of 60 keys leaves as much room to its neighbour as one of 3 does."""
    kept = []
    for first in (3, 60):
        world = World(config=replace(MOCK, max_cached_bytes=3_000))
        for publisher, some in ((ALPHA, keys(first)), (BETA, keys(60))):
            world.subscribe(publisher, some)
            world.publish(publisher, some, bytes(40))
        world.block()
        kept.append(world.cached(BETA))
        assert cached_bytes(world, ALPHA) <= 1_500
    assert kept[0] == kept[1]
    assert 1_000 < sum(map(len, kept[0].values())) <= 1_500


def test_nodes_of_a_publisher_that_was_left_count_until_they_are_cleared() -> None:
    world = limited(2_000, ALPHA, count=60)
    world.subscribe(ALPHA, [])
    world.subscribe(BETA, keys(60))
    world.publish(BETA, keys(60), bytes(40))
    world.block()
    left = cached_bytes(world, ALPHA)
    assert left > 1_000
    assert cached_bytes(world, BETA) <= 2_000 - left
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    sizes_are_those_of_the_nodes(world)
    world.subscriber.clear_stored_roots(ROOT, BETA)
    world.block()
    assert cached_bytes(world, BETA) > 1_000


def test_another_publisher_shrinks_the_shares_when_the_first_one_changes() -> None:
    world = limited(2_000, ALPHA, count=60)
    world.subscribe(BETA, keys(60))
    world.publish(BETA, keys(60), bytes(40))
    for number in range(3):
        world.publish(ALPHA, keys(60), bytes([number]) * 40)
        world.publish(BETA, keys(60), bytes([number]) * 40)
        world.block()
        sizes_are_those_of_the_nodes(world)
        assert cached_bytes(world, ALPHA) + cached_bytes(world, BETA) <= 2_000
    assert cached_bytes(world, ALPHA) <= 1_000
    assert cached_bytes(world, BETA) > 500


@pytest.mark.parametrize("before", [None, 1_000])
def test_a_limit_that_comes_or_rises_in_mid_run_counts_what_is_there(before: int | None) -> None:
    world = limited(before, count=40)
    world.subscriber.config = replace(MOCK, max_cached_bytes=1_600)
    for number in range(3):
        world.publish(ALPHA, keys(40), bytes([number]) * 40)
        world.block()
        sizes_are_those_of_the_nodes(world)
    assert 1_000 < cached_bytes(world, ALPHA) <= 1_600


def test_a_limit_that_goes_leaves_nothing_counted_and_the_cache_fills_again() -> None:
    world = limited(1_000, count=40)
    world.subscriber.config = MOCK
    world.block()
    assert world.storage.cached_sizes.get() is None
    world.publish(ALPHA, keys(40), b"new")
    world.block()
    assert world.cached(ALPHA).keys() == {node_hash for _, node_hash in structure(world)}


def test_without_a_limit_nothing_is_counted() -> None:
    world = limited(None)
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    assert not world.storage.cached_sizes.exists()


def test_a_change_below_the_cut_reads_no_other_nodes_of_the_cache() -> None:
    """Else a limit would cost more than the cache itself: all of it would be in the block's own proof."""
    world = limited(16_000, count=200)
    changed = keys(200)[100]
    world.publish(ALPHA, [changed], b"new")
    world.seal()
    reads: set[bytes] = set()
    world.state.top.reads = reads
    world.block(seal=False)
    world.state.top.reads = None
    under = world.storage.cached_trie_nodes.prefix_of(ALPHA)
    stored = {world.storage.cached_trie_nodes.storage_key(ALPHA, node_hash) for node_hash in world.cached(ALPHA)}
    read = {raw for raw in reads if raw.startswith(under)} & stored
    assert len(stored) > 20
    assert len(read) < 10


def test_the_cut_goes_when_there_is_room_and_the_cache_fills_with_what_is_read() -> None:
    world = limited(2_000, count=60)
    assert world.storage.cached_sizes_or_counted()[ALPHA].cut is not None
    world.delete(ALPHA, keys(60)[3:])
    world.block()
    assert world.storage.cached_sizes_or_counted()[ALPHA].cut is None
    world.publish(ALPHA, keys(3), b"new")
    world.block()
    assert world.cached(ALPHA).keys() == {node_hash for _, node_hash in structure(world)}


def test_pruning_counts_and_keeps_nothing() -> None:
    world = limited(1_000, count=40)
    world.publish(ALPHA, keys(40), b"new")
    world.seal()
    before = world.everything()
    world.prune()
    assert world.everything() == before


def test_metering_that_counts_uses_takes_no_limit() -> None:
    with pytest.raises(ValueError, match=r"max_cached_bytes = 1200 needs a metering .* got EverythingCarried"):
        World(config=LIMITED, policies=Policies(metering=EverythingCarried()))


def test_sizes_have_the_bytes_of_the_chain() -> None:
    storage = World().storage
    storage.put_cached_sizes({BETA: CachedSize(5, b"\x01\x0f"), ALPHA: CachedSize(2**32 - 1)})
    assert storage.state.get(storage.cached_sizes.prefix) == bytes.fromhex(
        "08e8030000ffffffff00e9030000050000000108010f"
    )
    assert storage.cached_sizes.get() == {ALPHA: CachedSize(2**32 - 1), BETA: CachedSize(5, b"\x01\x0f")}


@given(
    placed=st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 9)), max_size=12),
    lengths=st.lists(st.integers(1, 40), min_size=10, max_size=10),
    room=st.integers(0, 120),
)
def test_the_nearest_nodes_agree_with_their_definition(
    placed: list[tuple[bytes, int]], lengths: list[int], room: int
) -> None:
    nodes = {bytes([index]): bytes(length) for index, length in enumerate(lengths)}
    placements = {(prefix, bytes([index])) for prefix, index in placed}
    kept, cut = nearest(placements, nodes, room)
    assert sum(map(len, kept.values())) <= room
    order = sorted(placements, key=lambda place: (len(place[0]), place[0]))
    if cut is None:
        assert kept.keys() == {node_hash for _, node_hash in placements}
    else:
        assert kept.keys() == {node_hash for prefix, node_hash in order if (len(prefix), prefix) < (len(cut), cut)} | (
            kept.keys() & {node_hash for prefix, node_hash in order if prefix == cut}
        )


def unseen_is_unchanged(patch: pytest.MonkeyPatch) -> None:
    """Where the old trie cannot be seen, nothing has changed."""
    visit = PublisherWalk._visit

    def visiting(self: PublisherWalk, low: int, high: int, new: Side, old: Side) -> None:
        if isinstance(old, tuple) and len(old[1]) == 32 and self._reads.old_node(old[1]) is None:
            self.at = high
            return
        visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", visiting)


def kept_from_the_leaves(patch: pytest.MonkeyPatch) -> None:
    """The nodes farthest from the root are kept first."""
    patch.setattr(cache_limit, "_place", lambda prefix: (-len(prefix), prefix))


def no_shares(patch: pytest.MonkeyPatch) -> None:
    """The first publisher may take all the room."""
    patch.setattr(
        CacheLimit,
        "room",
        lambda self, publisher: self.max_bytes - sum(it.size for it in self.sizes.values()) + self.of(publisher).size,
    )


def others_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A publisher that was left takes no room."""
    patch.setattr(CacheLimit, "room", lambda self, _: self.share)


def never_less(patch: pytest.MonkeyPatch) -> None:
    """Removed nodes stay counted."""
    begin = CacheLimit.begin
    patch.setattr(CacheLimit, "begin", lambda self, views, _: begin(self, views, ()))


def leaves_no_nodes_out(patch: pytest.MonkeyPatch) -> None:
    """The limit is set but not enforced."""
    patch.setattr(CacheLimit, "room", lambda self, _: 1 << 30)


def settled_when_pruned(patch: pytest.MonkeyPatch) -> None:
    """The collator writes its counts."""
    run = Pass.run

    def counting(self: Pass) -> ProofProcessingResult:
        result = run(self)
        if self.cache_limit is not None:
            self.cache_limit.sizes[ALPHA] = CachedSize(1)
            self.cache_limit.store([ALPHA])
        return result

    patch.setattr(Pass, "run", counting)


def left_out_by_the_chain_alone(patch: pytest.MonkeyPatch) -> None:
    """Every second pass, which is the one that verifies, does not find the cache."""
    make, passes = PublisherReads.__init__, count()

    def blind(self: PublisherReads, run: PassReads, view: PublisherView) -> None:
        make(self, run, view)
        if next(passes) % 2:
            self._view = structs.replace(view, cache=NO_CACHED_NODES)

    patch.setattr(PublisherReads, "__init__", blind)


def all_laws() -> None:
    """One history under a limit, with every invariant checked."""
    world = limited(1_500, ALPHA, count=40)
    for number in range(6):
        if number == 2:
            world.subscribe(BETA, keys(20))
        if number == 4:
            world.delete(ALPHA, keys(40))
        some = keys(40)[number::3] if number != 4 else []
        world.publish(ALPHA, some, bytes([number]) * 40)
        world.publish(BETA, keys(20)[number::2], bytes([number]) * 40)
        holds(world, world.block())
        assert sum(cached_bytes(world, publisher) for publisher in (ALPHA, BETA)) <= 1_500


def test_one_life_under_a_limit_keeps_every_law() -> None:
    all_laws()


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (unseen_is_unchanged, all_laws),
        (leaves_no_nodes_out, all_laws),
        (never_less, all_laws),
        (left_out_by_the_chain_alone, all_laws),
        (settled_when_pruned, test_pruning_counts_and_keeps_nothing),
        (kept_from_the_leaves, partial(test_nodes_nearest_to_the_root_are_kept_first, 800)),
        (no_shares, test_every_publisher_has_its_share),
        (others_do_not_count, test_nodes_of_a_publisher_that_was_left_count_until_they_are_cleared),
    ],
)
def test_a_wrong_limit_is_found_out(
    mutant: Callable[[pytest.MonkeyPatch], None], law: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, Panic)):
        law()


def test_a_cache_that_is_cleared_behind_a_removed_limit_is_not_counted_when_a_limit_comes_back() -> None:
    world = limited(900)
    assert world.storage.cached_sizes.get()
    world.subscriber.config = replace(MOCK, max_cached_bytes=None)
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)
    world.subscriber.config = replace(MOCK, max_cached_bytes=900)
    assert world.storage.cached_sizes_or_counted() == {}
