"""One publisher's part of a pass: what is read of its node cache, and what is swept out of it when."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    BETA,
    SMALL,
    A,
    About,
    B,
    BlockVector,
    C,
    D,
    E,
    K,
    SmallNetwork,
    costs,
    key_of,
    keys,
    of_bytes,
    path_key,
    stopped_at,
)
from pallets.subscriber_invariants import cache_is_exact, hashed_paths
from pallets.subscriber_world import World, disabled
from relaycast_pallets import Origin, Policies, PublishedEntry, ReadSource, SubscribedKey, derive_child_info
from relaycast_pallets.subscriber.policies import StructureNodes
from relaycast_pallets.subscriber.storage import Cursor
from relaycast_pallets.subscriber.walk import NodeReads, PublisherWalk
from relaycast_trie import MemoryDB, StateVersion, StorageProof, TrieDBMut, blake2_256
from relaycast_trie.hasher import twox_128
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node_codec import encode_branch, encode_leaf
from vector_fields import VectorSource, hexed
from yielded_vectors import yields

ROOT = Origin.root()
W = keys(12)


def write(world: World, number: int) -> None:
    """Give each key a long value of its own."""
    for place, wanted in enumerate(W):
        world.publish(ALPHA, [wanted], bytes([number, place]) * 150)


def following(count: int = 300, *, wanted: int = 40, policies: Policies | None = None) -> World:
    """Return a world whose own state is sealed and whose subscriber has seen the first of many keys."""
    world = World(policies=policies)
    world.subscribe(ALPHA, keys(count)[:wanted])
    world.publish(ALPHA, keys(count), bytes(40))
    world.block(1 << 24)
    world.state.commit()
    return world


def test_the_own_state_is_asked_for_no_cached_nodes_but_those_that_are_charged() -> None:
    """What came and what went says how the cache changes: the rest of it is not looked through."""
    world = following()
    before, prefix = world.cached(ALPHA).keys(), world.storage.cached_trie_nodes.prefix
    world.publish(ALPHA, keys(300)[:1], bytes(41))
    world.state.top.reads = set()
    reads = world.block().result.reads
    asked = {read[-32:] for read in world.state.top.reads if read.startswith(prefix)}
    charged = {read.node_hash for read in reads if read.source is ReadSource.CACHED_NODE}
    assert asked & before == charged
    assert 0 < len(charged) < 5
    cache_is_exact(world)


def test_a_cached_node_that_a_walk_meets_again_is_charged_once() -> None:
    """A branch comes above others: the old node there is looked at for each way that leads to it."""
    world = World()
    world.subscribe(ALPHA, [path_key("00a"), path_key("00b"), path_key("02")])
    world.publish(ALPHA, [path_key("00a"), path_key("00b")], bytes(40))
    world.block()
    world.publish(ALPHA, [path_key("01"), path_key("02")], bytes(40))
    block = world.block()
    cached = [read.node_hash for read in block.result.reads if read.source is ReadSource.CACHED_NODE]
    assert 0 < len(cached) == len(set(cached))
    cache_is_exact(world)


def test_a_publisher_of_hundreds_of_keys_is_finished_with() -> None:
    world = following(400, wanted=400)
    assert world.storage.previous_roots() == {ALPHA: world.root_of(ALPHA)}
    assert ALPHA not in world.storage.unfinished_publishers


@pytest.mark.parametrize("begins", [0, 1, 5, 11])
def test_a_publisher_is_finished_with_when_all_its_keys_are_walked_on_both_sides_of_the_cursor(begins: int) -> None:
    world = World()
    world.subscribe(ALPHA, W)
    write(world, 0)
    world.storage.relay_proof_processing_cursor.put((ALPHA, W[begins]))
    (change,) = world.block().result.changes
    assert (change.keys_walked, change.finished) == (len(W), True)


def test_a_publisher_that_is_gone_or_too_deep_is_finished_with() -> None:
    world = following()
    world.delete(ALPHA, keys(300))
    (gone,) = world.block().result.changes
    deep = disabled()
    deep.subscriber.enable_publisher(ROOT, ALPHA)
    (disabling,) = deep.block().result.changes
    assert (gone.root, disabling.disabled_by is not None) == (None, True)
    assert (gone.finished, disabling.finished) == (True, True)


def halfway() -> SmallNetwork:
    """Return a network with a pass interrupted at C, whose keys all change again."""
    network = SmallNetwork()
    for publisher, wanted in ((ALPHA, K[:5]), (BETA, [A])):
        network.subscribe(publisher, wanted)
        network.publish(publisher, K, bytes(20))
    network.block(about("", ""))
    for number in range(2):
        for each in K:
            network.publish(ALPHA, [each], bytes([number]) * 20)
        network.publish(BETA, K, bytes([number]) * 20)
        network.seal()
        if not number:
            stopped_at(network, about("", ""), C)
    return network


def stopping(network: SmallNetwork, part: About, at: Cursor) -> BlockVector:
    """Return the block with the largest budget that stops at this key, and go on from it."""
    for proof_size in reversed(costs(network.honest(part, seal=False))):
        vector = network.honest(part, budget=of_bytes(proof_size - 1), seal=False)
        if vector.expect.stopped_at == key_of(at):
            network.follow(vector)
            return vector
    raise AssertionError(f"no budget stops at 0x{at[1].hex()} of {at[0]}")


ROUNDS: list[tuple[str, str, Cursor | None, Cursor, bool]] = [
    ("inside", "begins at key 2, stops at key 4", None, (ALPHA, E), False),
    ("next-key", "begins at key 2, stops at key 3", None, (ALPHA, D), False),
    ("second-key", "begins at key 1, stops at key 3", (ALPHA, B), (ALPHA, D), False),
    ("first-key", "begins at key 0, stops at key 3", (ALPHA, A), (ALPHA, D), True),
    ("behind-another", "comes with key 0 behind another publisher, stops at key 3", (BETA, A), (ALPHA, D), True),
    ("at-the-cursor", "begins and stops at key 2", None, (ALPHA, C), True),
    ("elsewhere", "begins at key 2, stops in another publisher", None, (BETA, A), True),
    ("wrapped", "begins at key 2, stops at key 1 behind the wrap", None, (ALPHA, B), True),
    ("wrapped-first", "begins at key 2, stops at key 0 behind the wrap", None, (ALPHA, A), True),
]
"""Passes over a publisher that was interrupted: where they begin, where they stop, and if they sweep its cache."""


@pytest.mark.parametrize(("name", "does", "cursor", "stop", "sweeps"), ROUNDS, ids=[name for name, *_ in ROUNDS])
@yields("subscriber/caches")
def test_the_cache_of_an_unfinished_publisher_is_swept_once_in_a_round(
    name: str, does: str, cursor: Cursor | None, stop: Cursor, *, sweeps: bool
) -> Iterator[BlockVector]:
    network = halfway()
    before = network.kept.keys()
    if cursor is not None:
        network.put_turn(cursor)
    why = f"an interrupted pass {does}: {'stored nodes on no path go' if sweeps else 'stored nodes stay'}"
    yield stopping(network, about(f"pruned/{name}", why), stop)
    assert bool(nodes_in(before) - nodes_in(network.kept)) is sweeps
    if name in ("inside", "wrapped"):
        yield network.block(about(f"pruned/{name}-rest", "the pass after it finishes the publisher"), seal=False)


def nodes_in(kept: Iterable[bytes]) -> set[bytes]:
    """Return the storage keys of cached nodes."""
    return {raw for raw in kept if raw.startswith(twox_128(b"Subscriber") + twox_128(b"CachedTrieNodes"))}


def test_neighbours_that_were_dealt_with_against_one_root_are_walked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, walked = PublisherWalk.walk, list[tuple[int, int]]()

    def noted(self: PublisherWalk, reads: NodeReads, low: int, high: int, **roots: Any) -> None:
        walked.append((low, high))
        walk(self, reads, low, high, **roots)

    world = World()
    world.subscribe(ALPHA, W)
    for number, budget in enumerate((1 << 20, 2_500)):
        write(world, number)
        block = world.block(budget)
    assert block.result.cursor is not None
    at = W.index(block.result.cursor[1])
    monkeypatch.setattr(PublisherWalk, "walk", noted)
    world.seal()
    world.prune()
    assert 0 < at < len(W)
    assert walked == [(at, len(W)), (0, at)]


@pytest.mark.parametrize("most", [100, 300, 512])
def test_nodes_that_are_too_long_are_not_kept(most: int) -> None:
    world = following(policies=Policies(cache=StructureNodes(most)))
    for number in range(3):
        placed = {placement for path in hashed_paths(world, ALPHA) for placement in path}
        nodes = world.relay_nodes()
        assert world.cached(ALPHA).keys() == {it for _, it in placed if len(nodes[it]) <= most}
        world.publish(ALPHA, keys(300)[number:60:3], bytes(41 + number))
        world.block()


def test_a_node_that_grows_too_long_to_be_kept_goes_and_is_not_counted() -> None:
    """The root had fifteen children and comes to have sixteen; nothing else of the cache moves."""
    world = World(policies=Policies(cache=StructureNodes(512)))
    few = [each for each in keys(300) if each[0] < 0xF0]
    world.subscribe(ALPHA, few[:20])
    world.publish(ALPHA, few, bytes(40))
    world.block()
    before, root = world.cached(ALPHA).keys(), world.root_of(ALPHA)
    assert root in before
    world.publish(ALPHA, keys(300)[-1:], bytes(40))
    world.block()
    assert world.cached(ALPHA).keys() == before - {root}
    assert world.storage.cache_of(ALPHA).shared() == {}


# Nodes inside their parents, and nodes that two publishers have.

CLOSE = [path_key("0" * 62 + end) for end in ("00", "01", "10")]
"""Keys that part in their last nibbles: with short values the nodes below their branch are inside it."""


def about(name: str, why: str, invariant: int = 6) -> About:
    return About(f"caches/{name}", why, VectorSource(invariant=invariant))


@pytest.mark.parametrize("depth", [1, 2])
@yields("subscriber/caches")
def test_nodes_inside_their_parents_cost_nothing_count_for_nothing_and_are_not_cached(
    depth: int,
) -> Iterator[BlockVector]:
    network = SmallNetwork(config=replace(SMALL, max_trie_depth=depth))
    network.subscribe(ALPHA, [*CLOSE, path_key("0" * 62 + "0f")])
    network.publish(ALPHA, [*CLOSE, path_key("f")][: 2 + depth], b"")
    name = f"inline/{depth}"
    why = f"inline nodes below {depth} hashed ones, where {depth} are allowed"
    yield network.block(about(f"{name}/first", f"{why}: they cost nothing and are not cached"))
    network.publish(ALPHA, CLOSE[1:2], b"\x01")
    yield network.block(about(f"{name}/changed", "an inline leaf changes: the other one is known from its parent"))
    network.delete(ALPHA, CLOSE[:1])
    yield network.block(about(f"{name}/merged", "an inline branch with two leaves becomes an inline leaf"))
    network.publish(ALPHA, CLOSE[:1], b"")
    yield network.block(about(f"{name}/split", "an inline leaf becomes an inline branch with two leaves"))
    network.publish(ALPHA, CLOSE[2:], bytes(23))
    yield network.block(about(f"{name}/outgrown", "an inline leaf becomes one with a hash: it counts", 8))


@pytest.mark.parametrize("depth", [1, 2])
@yields("subscriber/caches")
def test_a_branch_of_more_than_32_bytes_inside_its_parent_does_not_count(depth: int) -> Iterator[BlockVector]:
    """No trie is built so, but every decoder reads it."""
    wanted = [path_key("10"), path_key("11"), path_key("f")]
    leaves = [
        encode_leaf(to_nibbles(each)[at:], PublishedEntry(bytes([at]) * 20, 0, number).encode())
        for number, (each, at) in enumerate(zip(wanted, (2, 2, 1), strict=True))
    ]
    hashes = [blake2_256(leaf) for leaf in leaves]
    inner = encode_branch(b"", [*hashes[:2], *[None] * 14], None)
    root = encode_branch(b"", [None, inner, *[None] * 13, hashes[2]], None)
    network = SmallNetwork(config=replace(SMALL, max_trie_depth=depth))
    network.subscribe(ALPHA, wanted)
    network.seal()
    why = f"hashed leaves below a long inline branch, which does not count: {depth} hashed nodes are allowed"
    part = about(f"inline/long-{depth}", why, 8)
    root_key, db = derive_child_info(ALPHA).prefixed_storage_key(), MemoryDB()
    trie = TrieDBMut(db, state_version=StateVersion.V1)
    trie[root_key] = blake2_256(root)
    trie[network.static_keys[0]] = bytes(8)
    top = trie.commit()
    nodes = [*StorageProof.generate(db, top, [root_key, *network.static_keys]).nodes, root]
    asked = replace(network.asked(part), relay_root=hexed(top))
    yield network.lie(asked, part, sorted([*nodes, *leaves] if depth == 2 else nodes))


@pytest.mark.parametrize(
    ("name", "wanted", "what"),
    [("added", [A, B], "as a node of its new trie"), ("changed", [A], "as a node of its old trie")],
    ids=["added", "changed"],
)
@yields("subscriber/caches")
def test_a_node_in_the_proof_and_in_a_cache_is_read_from_the_cache(
    name: str, wanted: list[SubscribedKey], what: str
) -> Iterator[BlockVector]:
    network = SmallNetwork()
    network.subscribe(BETA, [A])
    for publisher in (ALPHA, BETA):
        network.publish(publisher, K[:3], bytes(20))
    network.block(about("", ""))
    network.subscribe(BETA, wanted)
    network.subscribe(ALPHA, [A])
    if name == "changed":
        network.publish(BETA, [A], bytes(21))
    network.seal()
    part = f"two-publishers/{name}"
    why = f"1000 pays for a node of the proof, 1001 reads it from its cache {what}"
    paid = costs(network.honest(about("", ""), seal=False))
    yield network.honest(about(part, f"{why} and pays again"), seal=False)
    short = about(f"{part}/short", f"{why}: a budget that is a byte short of all reads")
    yield network.honest(short, budget=of_bytes(paid[-1] - 1), seal=False)


@yields("subscriber/caches")
def test_a_publisher_without_a_cached_node_pays_for_the_one_in_the_proof() -> Iterator[BlockVector]:
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    for publisher in (ALPHA, BETA):
        network.publish(publisher, K[:3], bytes(20))
    network.block(about("", ""))
    network.subscribe(ALPHA, [A, B])
    network.subscribe(BETA, [A])
    why = "1000 reads a node from its cache, 1001 has none: it pays for the proof's"
    yield network.block(about("two-publishers/cached-first", why))
