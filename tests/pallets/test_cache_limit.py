"""``max_cached_bytes``: which nodes a subscriber keeps under a limit, and that no update is lost by those left out.

Where a limit binds, a value may be told again; every other invariant holds. The machine of ``test_subscriber_machine``
runs under random limits that come, change and go.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

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
from pallets.subscriber_world import MOCK, Block, World
from pallets.test_subscriber_machine import CONFIG, Network, budgets, floods, networks, publishers, seeds
from relaycast_xcm.primitives import ParaId
from searches import examples

limits = st.none() | st.integers(0, 6_000)
LIMITED = replace(MOCK, max_cached_bytes=1_200)


def cached_bytes(world: World, publisher: ParaId) -> int:
    return sum(map(len, world.cached(publisher).values()))


def sizes_are_those_of_the_nodes(world: World) -> None:
    """What is counted of a publisher is what is stored of it, and nothing is counted where no limit is set."""
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
        if self.world.storage.cached_sizes.exists():
            assert publisher not in (self.world.storage.cached_sizes.get() or {})

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
        for publisher in self.world.handler.wanted:
            if publisher not in self.world.storage.disabled_publishers:
                assert set(self.world.cached(publisher)) <= {
                    it for path in hashed_paths(self.world, publisher) for _, it in path
                }


def holds(world: World, block: Block) -> None:
    """Check every invariant but those that take a whole cache."""
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
