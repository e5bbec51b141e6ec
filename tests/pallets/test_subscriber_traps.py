"""The traps that drafts of the subscriber fell into: each is a wrong policy or a mutant, and an invariant catches it.

``drive`` runs a small network through what a trap needs and checks every invariant on the way. The code as it is
passes; a mutant must not, and must fail at the invariant that the trap breaks.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pallets.subscriber_invariants import cache_is_exact
from pallets.subscriber_mutants import tell_keys_of_the_disabled
from pallets.subscriber_scenes import (
    drive,
    grow_deep,
    grow_slowly,
    grow_wide,
    hide_a_publisher,
    pad,
    share_a_leaf,
    split_a_path,
)
from pallets.subscriber_world import ALPHA, MOCK, World, keys
from relaycast_pallets import MAX_NODE_BYTES, Policies, TrackedProof
from relaycast_pallets.frame.state_transaction import Transaction
from relaycast_pallets.parachain_system import pallet as parachain_module
from relaycast_pallets.subscriber.node_cache import PublisherCache, marked_placements
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.policies import (
    AfterFirstKey,
    AllKeysOnChange,
    ForgetUnchanged,
    NoCache,
    StructureNodes,
    SystemFirstNumeric,
    ValuesOnly,
)
from relaycast_pallets.subscriber.processing_result import NodeRead
from relaycast_pallets.subscriber.proof_pass import Pass
from relaycast_pallets.subscriber.proof_processing import ProcessingMode, process_proof
from relaycast_pallets.subscriber.publisher_pass import PublisherPass
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk, SubscribedPaths
from relaycast_pallets.subscriber.stop import Stop
from relaycast_trie import UnusedNodes
from relaycast_xcm.primitives import ParaId

Mutation = Callable[[pytest.MonkeyPatch], None]
PATCH = pytest.MonkeyPatch


# The mutants. Each says what it gets wrong.


def sweep_per_key(patch: PATCH) -> None:
    """Each key's path sweeps the others out of the cache."""
    swept = PublisherPass._swept_cache

    def last_key_only(self: PublisherPass) -> PublisherCache:
        swept(self)
        assert self._root is not None
        stored = self._view.cached_nodes()
        known = stored | self._new
        last = SubscribedPaths.of(self._view.subscribed.keys[-1:])
        return PublisherCache.exactly(marked_placements(last, self._root, known), self._kept(known), stored)

    patch.setattr(PublisherPass, "_swept_cache", last_key_only)


def compare_by_depth(patch: PATCH) -> None:
    """Both paths are walked in steps; where they stand at different prefixes, all below counts as new."""
    visit = PublisherWalk._visit

    def lock_step(self: PublisherWalk, low: int, high: int, new: Any, old: Any) -> None:
        if isinstance(new, tuple) and isinstance(old, tuple) and new[0] != old[0]:
            old = None
        visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", lock_step)


def cached_means_unchanged(patch: PATCH) -> None:
    """A node that is anywhere in the cache counts as unchanged."""
    visit = PublisherWalk._visit

    def present(self: PublisherWalk, low: int, high: int, new: Any, old: Any) -> None:
        if isinstance(new, tuple) and self._reads._view.cached_node(new[1]) is not None:  # type: ignore[attr-defined]
            return
        visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", present)


def forget_nodes_above(patch: PATCH) -> None:
    """An unchanged node is settled although there are more nodes above it than there were."""
    visit = PublisherWalk._visit

    def settled(self: PublisherWalk, low: int, high: int, new: Any, old: Any) -> None:
        if not (isinstance(new, tuple) and isinstance(old, tuple) and new[:2] == old[:2]):
            visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", settled)


def count_nodes(patch: PATCH) -> None:
    """One recorder for cached nodes and the proof's, and a comparison of counts."""

    def count(self: TrackedProof) -> None:
        if len(self.nodes) != len(self.accessed):
            raise UnusedNodes((b"",))

    read = Pass.read_cached

    def record_too(self: Pass, view: PublisherView, node_hash: bytes) -> bytes | None:
        data = read(self, view, node_hash)
        if data is not None:
            self._proof.accessed.add(node_hash)
        return data

    patch.setattr(TrackedProof, "ensure_no_unused_nodes", count)
    patch.setattr(Pass, "read_cached", record_too)


def count_parachain_blocks(patch: PATCH) -> None:
    """Times to live are counted from the parachain's own block number."""
    deliver = Subscriber._deliver

    def own_number(self: Subscriber, change: Any, now: int) -> None:
        deliver(self, change, self.system.block_number + 1_000)

    patch.setattr(Subscriber, "_deliver", own_number)


def missing_means_absent(patch: PATCH) -> None:
    """A node missing on the way to a child root counts as a child trie that is not there."""
    child_root = Pass.child_root

    def absent(self: Pass, para_id: ParaId) -> bytes | None:
        try:
            return child_root(self, para_id)
        except Stop:
            return None

    patch.setattr(Pass, "child_root", absent)


def shuffle_apart(patch: PATCH) -> None:
    """The collator and the chain shuffle by different seeds."""

    def apart(mode: ProcessingMode, *given: Any, seed: bytes = b"", **more: Any) -> Any:
        return process_proof(mode, *given, seed=seed + mode.value.encode(), **more)

    patch.setattr(parachain_module, "process_proof", apart)


def never_roll_back(patch: PATCH) -> None:
    """A panic leaves what was written; here the demand comes after the writing, as in the drafts."""

    def demand_last(*given: Any, demand: Any = None, **more: Any) -> Any:
        result = process_proof(*given, **more)
        if demand is not None:
            demand(result)
        return result

    def leave(self: Transaction, *_error: object) -> None:
        self._journal.frame = self._outer

    patch.setattr(parachain_module, "process_proof", demand_last)
    patch.setattr(Transaction, "__exit__", leave)


def demand_after_the_callbacks(patch: PATCH) -> None:
    """The handler has been called when the block panics."""

    def demand_last(*given: Any, demand: Any = None, **more: Any) -> Any:
        result = process_proof(*given, **more)
        if demand is not None:
            demand(result)
        return result

    patch.setattr(parachain_module, "process_proof", demand_last)


def one_deep_publisher_ends_the_pass(patch: PATCH) -> None:
    """A path too deep ends the whole pass instead of its publisher's part."""
    process = PublisherPass.process

    def ends(self: PublisherPass, low: int, high: int) -> None:
        process(self, low, high)
        if self._disabled is not None:
            raise Stop

    patch.setattr(PublisherPass, "process", ends)


def sweep_never(patch: PATCH) -> None:
    """What leaves the trie stays in the cache."""

    def kept(self: PublisherPass) -> PublisherCache:
        return PublisherCache(insert=self._kept(self._new))

    patch.setattr(PublisherPass, "_swept_cache", kept)


def spend_what_is_not_there(patch: PATCH) -> None:
    """A read that does not fit is made all the same."""

    def overspend(self: Pass, read: NodeRead) -> None:
        self._meter.consume(read.weight)
        self.reads.append(read)

    patch.setattr(Pass, "_pay", overspend)


SCENES = [drive, grow_wide, grow_deep, grow_slowly, share_a_leaf, split_a_path, pad, hide_a_publisher]

MUTANTS: list[tuple[Mutation, Callable[[World], None], str]] = [
    (sweep_per_key, drive, "cache_is_exact"),
    (sweep_never, drive, "cache_is_exact"),
    (compare_by_depth, split_a_path, "check"),
    (cached_means_unchanged, share_a_leaf, "nothing_is_lost"),
    (forget_nodes_above, grow_slowly, "cache_is_exact"),
    (count_nodes, pad, "refused"),
    (tell_keys_of_the_disabled, grow_deep, "disabled_publishers_are_silent"),
    (count_parachain_blocks, drive, "times_to_live_count_relay_blocks"),
    (missing_means_absent, hide_a_publisher, "refused"),
    (shuffle_apart, drive, "one_pass_in_both_modes"),
    (never_roll_back, pad, "refused"),
    (demand_after_the_callbacks, pad, "refused"),
    (one_deep_publisher_ends_the_pass, grow_deep, "omission_is_within_the_slack"),
    (spend_what_is_not_there, drive, "within_the_limit"),
]

WRONG_POLICIES: list[tuple[Policies, Callable[[World], None], str]] = [
    (Policies(root_commit=AfterFirstKey()), drive, "nothing_is_lost"),
    (Policies(root_commit=ForgetUnchanged()), drive, "check"),
    (Policies(callback=AllKeysOnChange()), drive, "check"),
    (Policies(metering=ValuesOnly()), drive, "within_the_limit"),
    (Policies(cache=StructureNodes(512)), grow_wide, "cache_is_exact"),
    (Policies(cache=NoCache()), drive, "cache_is_exact"),
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("policies", [Policies(), Policies(order=SystemFirstNumeric())], ids=["default", "numeric"])
def test_the_code_as_it_is_holds_every_invariant(scene: Callable[[World], None], policies: Policies) -> None:
    scene(World(config=replace(MOCK, max_value_length=128), policies=policies))


@pytest.mark.parametrize(("mutate", "scene", "invariant"), MUTANTS, ids=[mutate.__name__ for mutate, _, _ in MUTANTS])
def test_a_mutant_is_caught(
    mutate: Mutation, scene: Callable[[World], None], invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(config=replace(MOCK, max_value_length=128))
    mutate(monkeypatch)
    assert caught_at(scene, world) == invariant


@pytest.mark.parametrize(
    ("policies", "scene", "invariant"), WRONG_POLICIES, ids=[invariant for _, _, invariant in WRONG_POLICIES]
)
def test_a_wrong_policy_is_caught(policies: Policies, scene: Callable[[World], None], invariant: str) -> None:
    assert caught_at(scene, World(config=replace(MOCK, max_value_length=128), policies=policies)) == invariant


def caught_at(scene: Callable[[World], None], world: World) -> str:
    """Return the name of the invariant at which ``scene`` fails."""
    with pytest.raises((AssertionError, pytest.fail.Exception, parachain_module.Panic)) as caught:
        scene(world)
    names = [entry.name for entry in caught.traceback if "subscriber_invariants" in str(entry.path)]
    if isinstance(caught.value, parachain_module.Panic):
        return "omission_is_within_the_slack"
    return next(name for name in reversed(names) if name != "<genexpr>")


def test_wrong_policies_cost_what_they_are_said_to_cost() -> None:
    """On one trace, in proof bytes: no cache and all keys on change pay for what did not change."""
    cost: dict[str, int] = {}
    for name, policies in {
        "default": Policies(),
        "all keys": Policies(callback=AllKeysOnChange()),
        "no cache": Policies(cache=NoCache()),
        "512 bytes": Policies(cache=StructureNodes(512)),
    }.items():
        world = World(policies=policies)
        every = keys(300)
        world.subscribe(ALPHA, every[:60])
        world.publish(ALPHA, every, bytes(40))
        world.block()
        world.publish(ALPHA, every[:1], bytes(41))
        cost[name] = world.block().inherent.proof_bytes
    assert cost["default"] < cost["512 bytes"] < cost["no cache"]
    assert cost["default"] < cost["all keys"]


def test_a_bound_of_750_bytes_keeps_every_node_that_32_byte_keys_can_make() -> None:
    world = World()
    grow_wide(world)
    assert max(map(len, world.cached(ALPHA).values())) == 531
    assert 2 + 32 + 2 + 16 * 33 == 564 <= MAX_NODE_BYTES
    cache_is_exact(world)
