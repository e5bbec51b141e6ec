"""The machine of the subscriber under limits of the cache that come, change and go; and what holds under any limit."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

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
from pallets.subscriber_world import Block, World
from pallets.test_subscriber_machine import CONFIG, Network, budgets, floods, publishers, seeds
from relaycast_pallets.subscriber.storage import CachedSize
from relaycast_xcm.primitives import ParaId

limits = st.none() | st.integers(0, 6_000)


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
