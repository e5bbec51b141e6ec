"""The eight invariants of the subscriber, each a function that raises ``AssertionError`` where it does not hold.

They look from outside: at blocks, at the parachain's storage and at the relay chain's own tries. So they can be run
against the code as it is and against a mutant of it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pallets.subscriber_world import Block, Tamper, World
from relaycast_pallets import (
    MAX_NODE_BYTES,
    Panic,
    ProofProcessingResult,
    SubscribedKey,
    WeighsCallbacks,
    compute_ttl_state,
)
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_trie import blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty
from relaycast_trie.node_codec import decode_node
from relaycast_xcm.primitives import ParaId, Weight

Wanted = tuple[ParaId, SubscribedKey]


def one_pass_in_both_modes(block: Block) -> None:
    """Invariant 1: PRUNE and VERIFY read the same nodes, consume and find the same, set the same cursor."""
    assert block.pruning.reads == block.result.reads
    assert block.pruning.consumed == block.result.consumed
    assert block.pruning.turn == block.result.turn
    assert [change.deleted for change in block.pruning.changes] == [change.deleted for change in block.result.changes]


def within_the_limit(block: Block) -> None:
    """Invariant 2: no more is consumed than allowed, and what was read is what was consumed.

    What a read is not charged for is counted beside it.
    """
    meter, result = block.outcome.meter, block.result
    assert meter.consumed.all_lte(meter.limit)
    assert result.chargeable_bytes <= meter.limit.proof_size
    assert sum(read.size for read in result.reads) == result.chargeable_bytes + result.oversize_bytes
    assert result.overshoot_bytes <= result.oversize_bytes


def proof_is_what_was_read(world: World, block: Block) -> None:
    """Invariant 5: the nodes handed over are those read for the static keys and by pub-sub, and no others."""
    read = {read.node_hash for read in block.result.reads if read.source.is_relay}
    assert block.nodes == read | world.static_nodes()


def hashed_paths(world: World, publisher: ParaId) -> list[list[tuple[bytes, bytes]]]:
    """Return, for every subscribed key, prefix and hash of each node on its path that has a hash."""
    nodes, root = world.relay_nodes(), world.root_of(publisher)
    wanted = world.subscribed(publisher).keys
    return [] if root is None else [hashed_path(nodes, root, to_nibbles(key)) for key in wanted]


def hashed_path(nodes: Mapping[bytes, bytes], reference: bytes, path: bytes) -> list[tuple[bytes, bytes]]:
    """Return prefix and hash of each node with a hash on a path, from the root on."""
    placed: list[tuple[bytes, bytes]] = []
    depth = 0
    while True:
        if len(reference) == 32:
            placed.append((path[:depth], reference))
        node = decode_node(nodes[reference] if len(reference) == 32 else reference)
        if isinstance(node, Empty) or path[depth : depth + len(node.partial)] != node.partial:
            return placed
        depth += len(node.partial)
        child = node.children[path[depth]] if isinstance(node, Branch) and depth < len(path) else None
        if child is None:
            return placed
        depth, reference = depth + 1, child


def cache_is_exact(world: World) -> None:
    """Invariant 6: after a complete pass the cache is the structure of the subscribed paths, and within its bound."""
    for publisher in world.handler.wanted:
        if publisher in world.storage.disabled_publishers or not world.handler.wanted[publisher]:
            continue
        paths = hashed_paths(world, publisher)
        kept = {node_hash for node_hash, node in world.relay_nodes().items() if len(node) <= MAX_NODE_BYTES}
        placed = {(prefix, node_hash) for path in paths for prefix, node_hash in path if node_hash in kept}
        cached = world.cached(publisher)
        assert cached.keys() == {node_hash for _, node_hash in placed}
        assert all(blake2_256(node) == node_hash for node_hash, node in cached.items())
        assert all(len(node) <= MAX_NODE_BYTES for node in cached.values())
        counts = Counter(node_hash for _, node_hash in placed)
        shared = {node_hash: count for node_hash, count in counts.items() if count > 1}
        if not world.subscriber.policies.metering.charges_own_state:
            assert world.storage.cache_of(publisher).shared() == shared
        assert all(len(path) <= world.deepest_limit for path in paths)
        assert len(cached) <= len(paths) * world.deepest_limit


def nothing_is_lost(world: World) -> None:
    """Invariant 3, where the relay chain stands still: the handler has every value that is there."""
    for publisher, wanted in world.handler.wanted.items():
        if publisher in world.storage.disabled_publishers:
            continue
        for key in wanted:
            entry = world.entry(publisher, key)
            if entry is not None:
                assert world.handler.values.get((publisher, key)) == PublishedEntry.decode(entry).value


@dataclass(frozen=True)
class Settled:
    """Invariant 3, the number of passes: where the relay chain stands still, ``ceil(cost / usable) + 1`` will do.

    Every pass pays again for the ways to all child roots, for the way to the key that it begins with and for what it
    read of the key that it ends in. What is left of its budget moves it on: that is ``usable``.
    """

    pubsub_bytes: int
    passes: int

    @classmethod
    def of(cls, world: World, *, share: int) -> "Settled":
        """Return a budget of which a ``share``-th of the cost of everything is usable, and the passes it takes."""
        _, whole = world.prune(1 << 40)
        cost = whole.consumed.proof_size
        to_roots = sum(read.size for read in whole.reads if read.source.value == "relay_top")
        usable = cost // share + 1
        return cls(to_roots + 2 * cls._longest(world) + usable, -(-cost // usable) + 1)

    @staticmethod
    def _longest(world: World) -> int:
        """Return a bound on the bytes that one key can make a pass read: the new path, the old one, and the entry."""
        nodes, longest = world.relay_nodes(), 0
        for publisher in world.handler.wanted:
            new = [sum(len(nodes[node_hash]) for _, node_hash in path) for path in hashed_paths(world, publisher)]
            old = sum(map(len, world.cached(publisher).values()))
            longest = max(longest, max(new, default=0) + old)
        return longest + world.subscriber.config.max_entry_bytes


@dataclass
class ChangesTold:
    """Invariant 4: no callback without a change, but for first sight and after the cache was cleared.

    ``note`` what stands on the relay chain before each block, ``forget`` what was cleared, ``check`` each block.
    """

    told: dict[Wanted, bytes] = field(default_factory=dict)

    def note(self, world: World) -> None:
        for publisher, key in list(self.told):
            if world.entry(publisher, key) is None:
                del self.told[publisher, key]

    def forget(self, publisher: ParaId) -> None:
        for wanted in [wanted for wanted in self.told if wanted[0] == publisher]:
            del self.told[wanted]

    def check(self, world: World, block: Block) -> None:
        updates = world.subscriber.delivered.updates
        assert [update[:2] for update in updates] == block.called
        assert len(set(block.called)) == len(block.called)
        for publisher, key, entry in updates:
            assert self.told.get((publisher, key)) != entry.encode(), f"{publisher} {key!r} told again"
            assert world.entry(publisher, key) == entry.encode()
            self.told[publisher, key] = entry.encode()


def times_to_live_count_relay_blocks(world: World, block: Block) -> None:
    """Each callback's time to live is counted from the relay parent."""
    entries = {(publisher, key): entry for publisher, key, entry in world.subscriber.delivered.updates}
    for publisher, key, _, ttl_state in block.calls:
        entry = entries[publisher, key]
        assert ttl_state == compute_ttl_state(entry.ttl, entry.when_inserted, world.number)


def disabled_publishers_are_silent(world: World, block: Block) -> None:
    """Invariant 8, first half: a block that disables a publisher tells nothing of it."""
    disabled = {change.para_id for change in block.result.changes if change.disabled_by is not None}
    assert not disabled & {publisher for publisher, _ in block.called}
    assert all(publisher in world.storage.disabled_publishers for publisher in disabled)


def refused(world: World, tamper: Tamper, *, pubsub_bytes: int = 1 << 20, seed: bytes = b"") -> Panic:
    """Invariants 5 and 7: a block so tampered with panics, leaves everything equal, and calls nobody."""
    before = world.everything()
    with pytest.raises(Panic) as panic:
        world.block(pubsub_bytes, seed=seed, tamper=tamper, seal=False)
    assert world.everything() == before
    return panic.value


def slack_of(world: World, result: ProofProcessingResult) -> Weight:
    """Return the weight that must no longer fit when a pass is incomplete."""
    charges_own_state = world.subscriber.policies.metering.charges_own_state
    return result.least if charges_own_state else world.subscriber.config.min_weight


def omission_is_within_the_slack(world: World, block: Block) -> None:
    """An incomplete pass leaves less than one read of the largest node or entry, or no room for one more callback."""
    if block.result.is_stopped_by_callbacks:
        return
    assert block.result.is_complete or not block.outcome.meter.can_consume(slack_of(world, block.result))


def declared_weight(world: World, publisher: ParaId, key: SubscribedKey) -> Weight:
    """Return what the handler declares for a callback, nothing where it declares nothing."""
    handler = world.subscriber.handler
    return handler.callback_weight(publisher, key) if isinstance(handler, WeighsCallbacks) else Weight.ZERO


def callbacks_within_the_limit(world: World, block: Block) -> None:
    """Invariant 2 for callbacks: those of a block weigh at most the limit, and a pass waits only for want of room."""
    result, limit = block.result, world.subscriber.config.callback_limit
    told = [*block.called, *block.deleted]
    declared = sum((declared_weight(world, *it) for it in told), Weight.ZERO)
    assert result.callback_limit == limit
    assert result.callback_weight == declared
    assert declared.all_lte(limit)
    assert block.pruning.callback_weight == result.callback_weight
    assert block.pruning.is_stopped_by_callbacks == result.is_stopped_by_callbacks
    assert (result.stopped_by is None) == result.is_complete
    if result.is_stopped_by_callbacks:
        assert result.stopped_at is not None
        assert (declared + declared_weight(world, *result.stopped_at)).any_gt(limit)


def all_hold(world: World, block: Block, told: ChangesTold) -> None:
    """Check every invariant that a single block shows."""
    one_pass_in_both_modes(block)
    within_the_limit(block)
    callbacks_within_the_limit(world, block)
    proof_is_what_was_read(world, block)
    told.check(world, block)
    times_to_live_count_relay_blocks(world, block)
    disabled_publishers_are_silent(world, block)
    omission_is_within_the_slack(world, block)
    if block.result.is_complete:
        nothing_is_lost(world)
        cache_is_exact(world)
