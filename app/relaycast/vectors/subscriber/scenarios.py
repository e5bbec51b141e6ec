"""Vectors of the specification's scenarios about subscribing: callbacks, changes, the depth limit and the cache.

Those about budgets, proofs and collation stand in ``budget_scenarios``.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    BETA,
    PUBLIC,
    SmallNetwork,
    executes,
    keys,
    path_key,
    staircase,
)
from relaycast.vectors.vector import hexed
from relaycast_pallets.subscriber.subscription import SubscribedKey, subscribed_key
from relaycast_xcm.primitives import ParaId, Weight

K = keys(6)
A, B, C, D, E, F = K

Scene = Callable[[], Iterator[BlockVector]]


def following(*publishers: ParaId, wanted: int = 2, value: bytes = bytes(24)) -> SmallNetwork:
    """Return a network whose subscriber has seen the first keys of each publisher."""
    network = SmallNetwork()
    for publisher in publishers or (ALPHA,):
        network.subscribe(publisher, K[:wanted])
        network.publish(publisher, K[:4], value)
    network.block(executes(" / ", "before", "what comes first"))
    return network


def _subscription_declaration() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Subscription declaration",
        "subscription-declaration",
        "subscriptions() returns publishers with keys and a weight; the weight is the block's, not the pass's",
    )
    network = SmallNetwork(declared_weight=Weight(7_000, 900))
    network.wanted = [(PUBLIC, [A]), (ALPHA, [B, A])]
    for publisher in (ALPHA, PUBLIC):
        network.publish(publisher, K[:3])
    yield network.block(about)
    network = SmallNetwork()
    network.wanted = [(PUBLIC, [B]), (ALPHA, [B, A, B]), (BETA, []), (PUBLIC, [A, B])]
    for publisher in (ALPHA, PUBLIC):
        network.publish(publisher, K[:3])
    yield network.block(about.at("repeats", "repeats count once; a publisher without keys is none"))


def _adding_subscriptions() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Adding subscriptions",
        "adding-subscriptions",
        "a key that is added is fetched although nothing changed; the key that was there is not told again",
    )
    network = following(wanted=1)
    network.subscribe(ALPHA, K[:3])
    yield network.block(about)
    yield network.block(about.at("next", "after the added key was dealt with nothing is read"))
    network.subscribe(BETA, [A])
    network.publish(BETA, K[:2], b"beta")
    yield network.block(about.at("publisher", "a publisher that is added is fetched beside one that is unchanged"))


def _removing_subscriptions() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Removing subscriptions requires cache clear",
        "removing-subscriptions",
        "a publisher that left keeps its cached nodes and nothing else",
    )
    network = following(ALPHA, BETA)
    network.subscribe(ALPHA, ())
    network.publish(ALPHA, [A], b"unheard")
    yield network.block(about)
    clear = ("clear_publisher_cache", int(ALPHA))
    cleared = about.at("cleared", "clear_publisher_cache frees the nodes; a second call finds nothing to clear")
    yield network.block(cleared, calls=(clear, clear))
    network.subscribe(ALPHA, [B])
    yield network.block(about.at("again", "subscribed again is subscribed anew: the cache holds the path of B alone"))


def _data_update() -> Iterator[BlockVector]:
    about = executes(
        "Subscription Handler / Data update callback",
        "data-update",
        "an updated key is told with its raw value and an infinite time to live",
    )
    network = following()
    network.publish(ALPHA, [A], b"new")
    yield network.block(about)
    network.publish(ALPHA, [A], b"newer", ttl=30)
    yield network.block(about.at("valid-for", "a finite time to live counts from the relay parent: 30 blocks are left"))
    network.publish(ALPHA, [B], b"brief", ttl=2)
    network.seal()
    network.publish(ALPHA, [C])
    network.seal()
    timed_out = about.at("timed-out", "the entry expires at the relay parent's number: it is told as timed out")
    yield network.block(timed_out, seal=True)
    network.publish(ALPHA, [A], b"endless", ttl=0xFFFF_FFFF)
    yield network.block(about.at("far-away", "the latest expiry is computed without overflow"))


def _hashed(title: str, name: str, why: str, data: bytes, made: SubscribedKey) -> Iterator[BlockVector]:
    about = executes(title, name, why)
    network = SmallNetwork()
    network.subscribe(ALPHA, [made])
    network.publish(ALPHA, [made], data)
    yield replace(network.block(about), hashed_keys=((hexed(data), hexed(made)),) if data else ())


def _compile_time_hashing() -> Iterator[BlockVector]:
    yield from _hashed(
        "Subscription Handler / Compile-time key hashing",
        "compile-time-hashing",
        "subscribed_key!(my_key) is the Blake2b-256 hash of the name",
        b"my_key",
        subscribed_key("my_key"),
    )


def _runtime_hashing() -> Iterator[BlockVector]:
    data = bytes(range(100))
    yield from _hashed(
        "Subscription Handler / Runtime key hashing",
        "runtime-hashing",
        "SubscribedKey::from_data hashes any bytes with Blake2b-256",
        data,
        SubscribedKey.from_data(data),
    )


def _pre_computed_hash() -> Iterator[BlockVector]:
    yield from _hashed(
        "Subscription Handler / Pre-computed hash",
        "pre-computed-hash",
        "SubscribedKey::from_hash takes 32 bytes as they are",
        b"",
        path_key("c0ffee"),
    )


def _root_unchanged() -> Iterator[BlockVector]:
    about = executes(
        "Change Detection / Root unchanged",
        "root-unchanged",
        "an unchanged child root is found through the top trie, and nothing more is read",
    )
    network = following(ALPHA, PUBLIC)
    yield network.block(about)
    yield network.block(about.at("again", "roots of unchanged publishers stay: callbacks do not alternate"))
    network.publish(PUBLIC, [A], b"other")
    yield network.block(about.at("beside", "one publisher changed: the other is not read"))


def _root_changed() -> Iterator[BlockVector]:
    about = executes(
        "Change Detection / Root changed",
        "root-changed",
        "a changed root has its changed keys told, and is remembered",
    )
    network = following()
    network.publish(ALPHA, K[:2], b"changed")
    yield network.block(about)
    network.publish(ALPHA, [D], b"unsubscribed")
    yield network.block(about.at("elsewhere", "another key changed: the root moves on and nothing is told"))
    network.publish(ALPHA, [A], b"changed")
    yield network.block(about.at("same-value", "the same value published again is a change: when_inserted moved"))


def _within_depth() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Proof within depth limit",
        "within-depth-limit",
        "a path of 6 nodes with a limit of 8",
    )
    for depth in (6, 7, 8):
        network = SmallNetwork()
        steps = staircase(depth)
        network.subscribe(ALPHA, steps[:1])
        network.publish(ALPHA, steps, b"deep")
        part = about if depth == 6 else about.at(depth, f"a path of {depth} nodes with a limit of 8, the leaf included")
        yield network.block(part)


def _too_deep(depth: int = 9) -> SmallNetwork:
    network, steps = SmallNetwork(), staircase(depth)
    network.subscribe(ALPHA, [steps[0], path_key("f")])
    network.publish(ALPHA, [*steps, path_key("f")], b"deep")
    network.subscribe(BETA, [A])
    network.publish(BETA, [A, B], b"beta")
    return network


def _exceeds_depth() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Proof exceeds depth limit",
        "exceeds-depth-limit",
        "a path of 10 nodes disables its publisher, with all of its keys; the other publisher is served",
    )
    yield _too_deep(10).block(about)
    yield _too_deep(9).block(about.at("nine", "the first node beyond the limit is neither read nor paid for"))
    network, deep = SmallNetwork(), staircase(9, subscribed=path_key("f"))
    network.subscribe(ALPHA, [path_key("0"), deep[0]])
    network.publish(ALPHA, [path_key("0"), *deep], bytes(30))
    yield network.block(about.at("dropped", "a key that was read before the deep one is not told"))


def _disabled_is_skipped() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Disabled publisher is skipped",
        "disabled-is-skipped",
        "a disabled publisher is not asked for: not even its child root is looked up",
    )
    network = _too_deep()
    network.block(about)
    network.publish(ALPHA, [path_key("f")], b"unheard")
    yield network.block(about)
    network.subscribe(BETA, ())
    yield network.block(about.at("alone", "where every publisher is disabled the pass is complete and reads nothing"))


def _re_enable() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Re-enable disabled publisher",
        "re-enable",
        "enable_publisher takes effect in the next block; enabling twice is refused",
    )
    enable = ("enable_publisher", int(ALPHA))
    network = _too_deep()
    network.block(about)
    yield network.block(about, calls=(enable, enable))
    yield network.block(about.at("still-deep", "an enabled publisher that is still too deep is disabled again"))
    network.block(about, calls=(enable,))
    network.delete(ALPHA, staircase(9)[5:])
    yield network.block(about.at("shallow", "an enabled publisher within the limit is served"))


def _depth_bounds_cache() -> Iterator[BlockVector]:
    about = executes(
        "Trie Depth Limit / Depth limit bounds cache size",
        "depth-bounds-cache",
        "two keys with paths of the full depth: at most max_trie_depth nodes a key are cached",
    )
    network = SmallNetwork(config=replace(SmallNetwork().config, max_trie_depth=4))
    first, second = staircase(4, subscribed=path_key("0")), staircase(4, subscribed=path_key("2"))
    network.subscribe(ALPHA, [first[0], second[0]])
    network.publish(ALPHA, [*first, *second], bytes(30))
    yield network.block(about)


def _initial_processing() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Initial proof processing",
        "initial-processing",
        "the first proof holds all nodes on the subscribed paths, and all of them are cached without their values",
    )
    network = SmallNetwork()
    network.subscribe(ALPHA, K[:5])
    network.publish(ALPHA, K, bytes(40))
    yield network.block(about)
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    yield network.block(about.at("absent", "without a child trie only the subscribed keys are noted"))
    network.publish(ALPHA, [B])
    yield network.block(about.at("no-entry", "without the key: the path to where it would stand is read"))
    network.publish(ALPHA, [A])
    yield network.block(about.at("first-value", "the first value of a key that was subscribed to before"))


def _subsequent_proof() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Subsequent proof with cached nodes",
        "subsequent-proof",
        "cached nodes are pruned from the proof, and so are nodes that lead to other keys alone",
    )
    network = following(wanted=3)
    network.also = {ALPHA: K}
    network.publish(ALPHA, [B, D], bytes(30))
    yield network.block(about)


def _synchronization() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Cache synchronization via dual-trie traversal",
        "synchronization",
        "new nodes come into the cache, replaced ones go, unchanged ones are not read",
    )
    network = following(wanted=3)
    network.publish(ALPHA, [A], bytes(30))
    yield network.block(about)
    network.delete(ALPHA, [A])
    yield network.block(about.at("deleted", "a deleted key is not told; its nodes go"))
    network.publish(ALPHA, [A], b"back")
    yield network.block(about.at("back", "a key that comes back is told"))
    network.delete(ALPHA, K)
    yield network.block(about.at("emptied", "a child trie that goes takes root, cache and counts with it"))


def _change_clears() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Subscription change clears cache",
        "change-clears",
        "keys [A, B] become [C, D]: the cache is cleared and all is proven anew",
    )
    network = following()
    network.subscribe(ALPHA, [C, D])
    yield network.block(about)
    network.subscribe(ALPHA, [C])
    yield network.block(about.at("fewer", "one of two keys is removed: the other is told again"))


def _partial_caching() -> Iterator[BlockVector]:
    about = executes(
        "Trie Node Caching / Partial subscription caching",
        "partial-caching",
        "of five keys two are subscribed to: only their paths are cached",
    )
    network = SmallNetwork(also={ALPHA: K[:5]})
    network.subscribe(ALPHA, K[:2])
    network.publish(ALPHA, K[:5], bytes(30))
    yield network.block(about)


def _system_first() -> Iterator[BlockVector]:
    about = executes(
        "Publisher Prioritization / System parachain first",
        "system-first",
        "1000 is processed before 3000, in whatever order they are declared",
    )
    network, public = SmallNetwork(), ParaId(3_000)
    network.wanted = [(public, [A]), (ALPHA, [A])]
    for publisher in (public, ALPHA):
        network.publish(publisher, [A, B])
    yield network.block(about)
    for number in range(3):
        network = SmallNetwork()
        network.wanted = [(ParaId(publisher), [A]) for publisher in (2_002, 1_999, 2_000, 2_001, 7)]
        for publisher, _ in network.wanted:
            network.publish(publisher, [A], str(publisher).encode())
        shuffled = about.at(f"shuffled-{number}", "system parachains by number, the others shuffled by the seed")
        yield network.block(shuffled, seed=bytes([number]))


SCENES: tuple[Scene, ...] = (
    _subscription_declaration,
    _adding_subscriptions,
    _removing_subscriptions,
    _data_update,
    _compile_time_hashing,
    _runtime_hashing,
    _pre_computed_hash,
    _root_unchanged,
    _root_changed,
    _within_depth,
    _exceeds_depth,
    _disabled_is_skipped,
    _re_enable,
    _depth_bounds_cache,
    _initial_processing,
    _subsequent_proof,
    _synchronization,
    _change_clears,
    _partial_caching,
    _system_first,
)


def subscription_scenarios() -> Iterator[BlockVector]:
    """Yield the vectors of every scenario about subscriptions, changes, depth, caching and order."""
    for scene in SCENES:
        yield from scene()
