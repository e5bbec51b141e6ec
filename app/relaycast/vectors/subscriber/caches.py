"""Vectors of caches: nodes that stand inline, nodes that an interrupted pass prunes, nodes that two publishers have."""

from collections.abc import Iterator

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_vector import BlockConfig, BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes
from relaycast.vectors.subscriber.deletions import aside, stopped_at
from relaycast.vectors.subscriber.scenarios import K
from relaycast.vectors.subscriber.small_network import ALPHA, BETA, SMALL, About, SmallNetwork, path_key
from relaycast.vectors.subscriber.turns import CURSOR, put
from relaycast.vectors.vector import VectorSource, hexed
from relaycast_pallets.broadcaster.published_entry import PublishedEntry
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_pallets.subscriber.plan import Cursor
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.hasher import blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node_codec import StateVersion, encode_branch, encode_leaf
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.trie_db_mut import TrieDBMut
from relaycast_trie.proofs.storage_proof import StorageProof

A, B, C, D, E, F = K
TWINS = [path_key("0" * 62 + end) for end in ("00", "01", "10")]
"""Keys that part in their last nibbles: with short values the nodes below their branch stand inline."""


def about(name: str, why: str, invariant: int = 6) -> About:
    return About(f"caches/{name}", why, VectorSource(invariant=invariant))


def _limited(depth: int) -> BlockConfig:
    return replace(SMALL, max_trie_depth=depth)


def _inline_nodes() -> Iterator[BlockVector]:
    """Yield leaves and a branch that stand inline, under limits that count the hashed nodes above them."""
    for depth, foreign in ((1, []), (2, [path_key("f")])):
        network = SmallNetwork(config=_limited(depth))
        network.subscribe(ALPHA, [*TWINS, path_key("0" * 62 + "0f")])
        network.publish(ALPHA, [*TWINS, *foreign], b"")
        name = f"inline/{depth}"
        why = f"inline nodes below {depth} hashed ones, where {depth} are allowed"
        yield network.block(about(f"{name}/first", f"{why}: they cost nothing and are not cached"))
        network.publish(ALPHA, TWINS[1:2], b"\x01")
        yield network.block(about(f"{name}/changed", "an inline leaf changes: the other one is known from its parent"))
        network.delete(ALPHA, TWINS[:1])
        yield network.block(about(f"{name}/merged", "an inline branch with two leaves becomes an inline leaf"))
        network.publish(ALPHA, TWINS[:1], b"")
        yield network.block(about(f"{name}/split", "an inline leaf becomes an inline branch with two leaves"))
        network.publish(ALPHA, TWINS[2:], bytes(23))
        yield network.block(about(f"{name}/outgrown", "an inline leaf becomes one with a hash: it counts", 8))


def _long_inline_node() -> Iterator[BlockVector]:
    """Yield a branch of more than 32 bytes that stands inline: no trie is built so, but every decoder reads it."""
    keys = [path_key("10"), path_key("11"), path_key("f")]
    leaves = [
        encode_leaf(to_nibbles(key)[depth:], PublishedEntry(bytes([depth]) * 20, 0, number).encode())
        for number, (key, depth) in enumerate(zip(keys, (2, 2, 1), strict=True))
    ]
    hashes = [blake2_256(leaf) for leaf in leaves]
    inner = encode_branch(b"", [*hashes[:2], *[None] * 14], None)
    root = encode_branch(b"", [None, inner, *[None] * 13, hashes[2]], None)
    for depth in (1, 2):
        network = SmallNetwork(config=_limited(depth))
        network.subscribe(ALPHA, keys)
        network.seal()
        why = f"hashed leaves below a long inline branch, which does not count: {depth} hashed nodes are allowed"
        part = about(f"inline/long-{depth}", why, 8)
        top, nodes = _top_trie(network, blake2_256(root))
        asked = replace(network.asked(part), relay_root=hexed(top))
        given = [*nodes, root] if depth == 1 else [*nodes, root, *leaves]
        yield network.lie(asked, part, sorted(given))


def _top_trie(network: SmallNetwork, child_root: bytes) -> tuple[bytes, list[bytes]]:
    """Return the root of a top trie that names a child root, and the nodes that a block reads of it."""
    db = MemoryDB()
    trie = TrieDBMut(db, state_version=StateVersion.V1)
    root_key = derive_child_info(ALPHA).prefixed_storage_key()
    trie[root_key] = child_root
    trie[network.static_keys[0]] = bytes(8)
    root = trie.commit()
    return root, list(StorageProof.generate(db, root, [root_key, *network.static_keys]).nodes)


def _halfway() -> SmallNetwork:
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


def _stopping(network: SmallNetwork, part: About, at: Cursor) -> BlockVector:
    """Return the block with the largest budget that stops at this key, and go on from it."""
    for proof_size in reversed(costs(network.honest(part, seal=False))):
        vector = network.honest(part, budget=of_bytes(proof_size - 1), seal=False)
        if vector.expect.stopped_at == (int(at[0]), hexed(at[1])):
            network.follow(vector)
            return vector
    raise AssertionError(f"no budget stops at 0x{at[1].hex()} of {at[0]}")


def _pruned() -> Iterator[BlockVector]:
    """Yield interrupted passes over a publisher that had bases, by where they begin in it and where they stop."""
    halfway, kept, goes = _halfway(), "stored nodes stay", "stored nodes on no path go"
    cases: tuple[tuple[str, str, Cursor | None, Cursor], ...] = (
        ("inside", f"begins at key 2, stops at key 4: {kept}", None, (ALPHA, E)),
        ("next-key", f"begins at key 2, stops at key 3: {kept}", None, (ALPHA, D)),
        ("second-key", f"begins at key 1, stops at key 3: {kept}", (ALPHA, B), (ALPHA, D)),
        ("first-key", f"begins at key 0, stops at key 3: {goes}", (ALPHA, A), (ALPHA, D)),
        ("behind-another", f"comes with key 0 behind another publisher, stops at key 3: {goes}", (BETA, A), (ALPHA, D)),
        ("at-the-cursor", f"begins and stops at key 2: {goes}", None, (ALPHA, C)),
        ("elsewhere", f"begins at key 2, stops in another publisher: {goes}", None, (BETA, A)),
        ("wrapped", f"begins at key 2, stops at key 1 behind the wrap: {goes}", None, (ALPHA, B)),
        ("wrapped-first", f"begins at key 2, stops at key 0 behind the wrap: {goes}", None, (ALPHA, A)),
    )
    for name, why, cursor, (publisher, key) in cases:
        network = aside(halfway)
        if cursor is not None:
            put(network, CURSOR, cursor)
        part = about(f"pruned/{name}", f"an interrupted pass {why}")
        yield _stopping(network, part, (publisher, SubscribedKey(key)))
        if name in ("inside", "wrapped"):
            yield network.block(about(f"pruned/{name}-rest", "the pass after it finishes the publisher"), seal=False)


def _in_two_caches() -> Iterator[BlockVector]:
    """Yield a node that the proof holds for one publisher and the cache for the next: the cache is asked first."""
    for name, wanted, why in (
        ("added", [A, B], "as a node of its new trie"),
        ("changed", [A], "as a node of its old trie"),
    ):
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
        what = f"1000 pays for a node of the proof, 1001 reads it from its cache {why}"
        paid = costs(network.honest(about("", ""), seal=False))
        yield network.honest(about(part, f"{what} and pays again"), seal=False)
        short = about(f"{part}/short", f"{what}: a budget that is a byte short of all reads")
        yield network.honest(short, budget=of_bytes(paid[-1] - 1), seal=False)
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    for publisher in (ALPHA, BETA):
        network.publish(publisher, K[:3], bytes(20))
    network.block(about("", ""))
    network.subscribe(ALPHA, [A, B])
    network.subscribe(BETA, [A])
    why = "1000 reads a node from its cache, 1001 has none: it pays for the proof's"
    yield network.block(about("two-publishers/cached-first", why))


def cache_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of caches."""
    for scene in (_inline_nodes, _long_inline_node, _pruned, _in_two_caches):
        yield from scene()
