"""Vectors of the traps that public drafts fell into, and of what only trials showed: one scene each."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_run import prune
from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes, values
from relaycast.vectors.subscriber.scenarios import K, following
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    BETA,
    PUBLIC,
    SMALL,
    About,
    SmallNetwork,
    path_key,
    staircase,
    version_0,
)
from relaycast.vectors.vector import VectorSource, hexed
from relaycast_pallets.broadcaster.published_entry import PublishedEntry
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_trie.hasher import blake2_256
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.memory_db import MemoryDB
from relaycast_trie.plain.trie_db_mut import TrieDBMut
from relaycast_trie.proofs.storage_proof import StorageProof

A, B, C, D, E, F = K
BROKEN_NODES = (("kind", b"\x01junk"), ("cut", b"\x7f\x01"), ("bitmap", b"\x80\x00\x00"), ("length", b"\x41\x0a\xfc"))
WHOLE_BRANCH = [path_key(f"{nibble:x}") for nibble in range(16)]


def trap(name: str, why: str) -> About:
    """Return name, reason and source of a trap's vector."""
    return About(f"traps/{name}", why, VectorSource(trap=name))


def cut_short(network: SmallNetwork, about: About, *, reads: int = 1, seal: bool = False) -> BlockVector:
    """Return a block that lacks room for the last ``reads`` reads of its pass, and go on from it."""
    if seal:
        network.seal()
    paid = costs(network.honest(about, seal=False))
    return network.block(about, budget=of_bytes(paid[-reads] - 1), seal=False)


def _root_after_first_key() -> Iterator[BlockVector]:
    about = trap("root-after-first-key", "a pass that is cut short keeps the old root: the other keys are told next")
    network = values(wanted=3)
    yield cut_short(network, about, reads=2)
    yield network.block(about.at("rest", "the rest of the keys are told, and those told before are not told again"))


def _unchanged_roots() -> Iterator[BlockVector]:
    about = trap("unchanged-roots", "the root of a publisher that did not change is kept while another changes")
    network = following(ALPHA, BETA, wanted=1)
    for number in range(3):
        network.publish(BETA, [A], bytes([number]))
        yield network.block(about.at(number))


def _sweep_per_key() -> Iterator[BlockVector]:
    about = trap("sweep-per-key", "the cache is swept once for all keys: every subscribed path stays")
    network = following(wanted=3, value=bytes(30))
    network.publish(ALPHA, K[:3], bytes(31))
    yield network.block(about)


def _compare_by_depth() -> Iterator[BlockVector]:
    about = trap("compare-by-depth", "a foreign key puts a branch above two keys: nothing of theirs changed")
    network, wanted = SmallNetwork(), [path_key("00a"), path_key("00b")]
    network.subscribe(ALPHA, wanted)
    network.publish(ALPHA, wanted, bytes(30))
    network.block(about)
    network.publish(ALPHA, [path_key("01")], bytes(30))
    yield network.block(about)
    network.delete(ALPHA, [path_key("01")])
    yield network.block(about.at("merge", "the branch goes again: the paths move up, nothing is told"))
    network.publish(ALPHA, [path_key("00a1")], b"inside")
    yield network.block(about.at("split-leaf", "a foreign key splits the leaf of a key whose value did not change"))
    network.publish(ALPHA, [path_key("02"), path_key("00a")], b"both")
    yield network.block(about.at("split-and-change", "a split and a change of value at once"))
    network.delete(ALPHA, [path_key("00b"), path_key("00a1")])
    yield network.block(about.at("merge-leaf", "a branch with two leaves becomes one leaf"))


def _counted_nodes() -> Iterator[BlockVector]:
    about = trap("counted-nodes", "as many foreign nodes as cached ones are read: sets are compared, never counts")
    network = following(wanted=3, value=bytes(30))
    network.publish(ALPHA, [A], bytes(31))
    network.seal()
    honest = network.honest(about, seal=False)
    cached = sum(not read.source.is_relay for read in prune(honest)[1].reads)
    nodes = honest.nodes_at(honest.given)
    yield network.lie(honest, about, [*nodes, *(b"foreign" + bytes([it]) for it in range(cached))])


def _full_branch() -> Iterator[BlockVector]:
    about = trap("full-branch", "a branch with sixteen children has 531 bytes and is cached: the bound is 750")
    network = SmallNetwork()
    network.subscribe(ALPHA, WHOLE_BRANCH[:1])
    network.publish(ALPHA, WHOLE_BRANCH, bytes(2))
    yield network.block(about)
    network.publish(ALPHA, WHOLE_BRANCH[:1], b"new")
    yield network.block(about.at("again", "the next block reads the full branch from the cache"))


def _callback_before_depth() -> Iterator[BlockVector]:
    about = trap("callback-before-depth-check", "a key that was read before a deep one of its publisher is not told")
    network, deep = SmallNetwork(), staircase(9, subscribed=path_key("f"))
    network.subscribe(PUBLIC, [path_key("0"), path_key("1"), deep[0]])
    network.publish(PUBLIC, [path_key("0"), path_key("1"), *deep], bytes(30))
    yield network.block(about)


def _ttl_of_the_relay_chain() -> Iterator[BlockVector]:
    about = trap("ttl-of-relay-blocks", "times to live count blocks of the relay chain, from the relay parent")
    for left in (2, 1, 0):
        network = SmallNetwork(number=1_000)
        network.subscribe(ALPHA, [A])
        network.write(ALPHA, A, PublishedEntry(b"brief", 100, 901 + left).encode())
        yield network.block(about.at(left, f"an entry with {left} relay blocks left"))
    network = SmallNetwork(number=0xFFFF_FFF0)
    network.subscribe(ALPHA, [A, B, C])
    for each, ttl, inserted in ((A, 0xFFFF_FFFF, 0xFFFF_FFFF), (B, 1, 0xFFFF_FFFF), (C, 16, 0xFFFF_FFE0)):
        network.write(ALPHA, each, PublishedEntry(b"late", ttl, inserted).encode())
    yield network.block(about.at("overflow", "an expiry beyond 2^32 is not truncated; what is left is"))


def _missing_is_not_absent() -> Iterator[BlockVector]:
    about = trap("missing-is-not-absent", "the last node on the way to a child root is left out: it is no absence")
    network = SmallNetwork()
    for publisher in (ALPHA, BETA):
        network.subscribe(publisher, [A])
        network.publish(publisher, [A], str(publisher).encode())
    network.seal()
    honest = network.honest(about, seal=False)
    result = prune(honest)[1]
    tops = [read.node_hash for read in result.reads if read.source.value == "relay_top"]
    gone = {read.node_hash for read in result.reads if read.publisher == BETA} | {tops[-1]}
    rest = [node for node in honest.nodes_at(honest.given) if blake2_256(node) not in gone]
    yield network.lie(honest, about, rest)


def _shared_leaf() -> Iterator[BlockVector]:
    about = trap("shared-leaf", "two keys with equal leaves: one cached node, two places")
    first, second, third = (path_key(digit) for digit in "123")
    network = SmallNetwork()
    network.subscribe(ALPHA, [first, second, third])
    network.publish(ALPHA, [first, second], bytes(30))
    network.publish(ALPHA, [third], bytes(31))
    yield network.block(about)
    entry = network.entry(ALPHA, first)
    assert entry is not None
    network.write(ALPHA, third, entry)
    yield network.block(about.at("third", "a node that is cached for another place is new here: the key is told"))
    network.publish(ALPHA, [first], bytes(32))
    yield network.block(about.at("one-goes", "one of three places goes: the count is two"))
    network.publish(ALPHA, [second], bytes(33))
    yield network.block(about.at("another-goes", "one place is left: no count is stored, the node stays"))


def _nodes_above() -> Iterator[BlockVector]:
    about = trap("nodes-above", "unchanged nodes are counted anew where more nodes stand above them")
    network, steps = SmallNetwork(config=replace(SMALL, max_trie_depth=5)), staircase(7)
    network.subscribe(ALPHA, steps[:1])
    network.publish(ALPHA, [steps[0], *steps[-4:]], bytes(30))
    network.block(about)
    network.publish(ALPHA, [steps[2]], bytes(30))
    yield network.block(about)


def _equal_publishers() -> Iterator[BlockVector]:
    about = trap("equal-publishers", "two publishers with equal tries: a node is paid for once and cached for both")
    network = SmallNetwork()
    for publisher in (ALPHA, BETA):
        network.subscribe(publisher, [A, B])
        network.publish(publisher, [A, B], bytes(30))
    yield network.block(about)


def _taken_back() -> Iterator[BlockVector]:
    about = trap("taken-back", "a change that an interrupted pass told is taken back: it is told again")
    network = following(wanted=3, value=bytes(30))
    before = {each: network.entry(ALPHA, each) for each in K[:3]}
    for number, each in enumerate(K[:3]):
        network.publish(ALPHA, [each], bytes([number]) * 30)
    first = cut_short(network, about, seal=True)
    assert first.expect.callbacks
    yield first
    for each, entry in before.items():
        assert entry is not None
        network.write(ALPHA, each, entry)
    yield network.block(about.at("back", "the old root is back: keys that were told are told again, others are not"))


def _absence_between() -> Iterator[BlockVector]:
    about = trap("absence-between", "the child trie is gone while a pass is interrupted: root and bases go")
    network = values(wanted=3)
    yield cut_short(network, about)
    held = {each: network.entry(ALPHA, each) for each in K[:4]}
    network.delete(ALPHA, K)
    yield network.block(about.at("gone"))
    for each, entry in held.items():
        assert entry is not None
        network.write(ALPHA, each, entry)
    yield network.block(about.at("back", "the same trie is back: everything is told"))


def _added_between() -> Iterator[BlockVector]:
    about = trap("added-between", "keys are added inside a range of an interrupted pass: they were dealt with never")
    network = SmallNetwork()
    network.subscribe(ALPHA, [A, C, E])
    for each in K:
        network.publish(ALPHA, [each], each)
    yield cut_short(network, about, seal=True)
    network.subscribe(ALPHA, K[:5])
    yield network.block(about.at("none", "no byte is left: the added keys are noted"), budget=of_bytes(0))
    yield network.block(about.at("all", "the added keys and the rest are told"))
    network.subscribe(ALPHA, K)
    yield network.block(about.at("no-budget", "a key is added to a finished publisher"), budget=of_bytes(0))
    yield network.block(about.at("told"))


def _code() -> Iterator[BlockVector]:
    about = trap("code-on-the-way", "a version 0 leaf of :code stands where a child root would: charged min_weight")
    network = SmallNetwork(relay=version_0({b":code": b"wasm" * 400}))
    network.subscribe(ALPHA, [A])
    network.seal()
    yield network.block(about, seal=False)
    for proof_size in (0, 1_033, 1_034, 1_200):
        part = about.at(proof_size, f"the same with a budget of {proof_size} bytes: an honest block never panics")
        yield network.honest(part, budget=of_bytes(proof_size), seal=False)


def _long_leaves() -> Iterator[BlockVector]:
    about = trap("long-leaves", "version 0 leaves longer than 750 bytes are charged at most min_weight and not cached")
    network = SmallNetwork(relay=version_0(), config=replace(SMALL, max_value_length=800))
    network.subscribe(ALPHA, [A, B])
    for number, each in enumerate((A, B, C)):
        network.publish(ALPHA, [each], bytes([number]) * 800)
    yield network.block(about)
    network.publish(ALPHA, [A], b"short")
    yield network.block(about.at("short", "one of them becomes short"))
    network.publish(ALPHA, [C], b"short")
    yield network.block(about.at("beside", "the long leaf is not cached; its hash did not change, so it is not read"))


def _migrated() -> Iterator[BlockVector]:
    about = trap("migrated", "a value moves out of its node with the state version: nothing is told")
    network = SmallNetwork(relay=version_0())
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A, B], bytes(40))
    network.block(about)
    entry = network.entry(ALPHA, A)
    assert entry is not None
    network.relay.migrate(StateVersion.V1)
    network.delete(ALPHA, [A])
    network.relay.commit()
    network.write(ALPHA, A, entry)
    yield network.block(about)


def _undecodable() -> Iterator[BlockVector]:
    about = trap("undecodable", "what is no PublishedEntry is passed over with an event")
    network = following(wanted=3)
    network.write(ALPHA, A, b"\xff")
    network.write(ALPHA, B, PublishedEntry(b"x", 0, 1).encode() + b"\x00")
    network.write(ALPHA, C, b"\x05\x00x" + bytes(8))
    network.publish(ALPHA, [D], b"fine")
    yield network.block(about)


def _subscribed_anew() -> Iterator[BlockVector]:
    about = trap("subscribed-anew", "a publisher that comes back is new: its values are told although nothing changed")
    network = following(ALPHA, BETA)
    network.subscribe(ALPHA, ())
    yield network.block(about.at("left"))
    network.subscribe(ALPHA, [A, B])
    yield network.block(about)


def _broken(name: str, why: str, value: bytes, version: StateVersion) -> BlockVector:
    """Return a block on a relay chain whose top trie has ``value`` for a child root."""
    about, network = trap(f"broken-child-root/{name}", why), SmallNetwork()
    network.subscribe(ALPHA, [A])
    network.seal()
    db = MemoryDB()
    top = TrieDBMut(db, state_version=version)
    root_key = derive_child_info(ALPHA).prefixed_storage_key()
    top[root_key] = value
    for each in network.static_keys[:1]:
        top[each] = bytes(8)
    root = top.commit()
    nodes = StorageProof.generate(db, root, [root_key, *network.static_keys]).nodes
    asked = replace(network.asked(about), relay_root=hexed(root))
    return network.lie(asked, about, sorted(nodes))


def _broken_roots() -> Iterator[BlockVector]:
    for version in StateVersion:
        for size in (0, 31, 33):
            why = f"a child root of {size} bytes, state version {version.value}: a broken root is no absence"
            yield _broken(f"v{version.value}-{size}", why, bytes(size), version)


def _broken_nodes() -> Iterator[BlockVector]:
    about = trap("broken-node", "a node whose hash fits and whose bytes do not decode: the block panics")
    network = SmallNetwork(static_keys=())
    network.subscribe(ALPHA, [A])
    network.seal()
    for name, junk in BROKEN_NODES:
        asked = replace(network.asked(about), relay_root=hexed(blake2_256(junk)))
        yield network.lie(asked, about.at(name), [junk])
        static = replace(asked, static_keys=(hexed(A),))
        yield network.lie(static, about.at(f"{name}-static", "the same where a static key meets it"), [junk])


SCENES: tuple[Callable[[], Iterator[BlockVector]], ...] = (
    _root_after_first_key,
    _unchanged_roots,
    _sweep_per_key,
    _compare_by_depth,
    _counted_nodes,
    _full_branch,
    _callback_before_depth,
    _ttl_of_the_relay_chain,
    _missing_is_not_absent,
    _shared_leaf,
    _nodes_above,
    _equal_publishers,
    _taken_back,
    _absence_between,
    _added_between,
    _code,
    _long_leaves,
    _migrated,
    _undecodable,
    _subscribed_anew,
    _broken_roots,
    _broken_nodes,
)


def trap_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of all traps."""
    for scene in SCENES:
        yield from scene()
