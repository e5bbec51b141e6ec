"""Vectors of the specification's scenarios about budgets, proofs and collation."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_run import prune, shared_out
from relaycast.vectors.subscriber.block_vector import BlockVector, PovShare
from relaycast.vectors.subscriber.scenarios import K, Scene, following
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    AMPLE,
    BETA,
    GAMMA,
    PUBLIC,
    SmallNetwork,
    executes,
    path_key,
    staircase,
)
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_xcm.primitives import ParaId, Weight

A, B, C, D, E, F = K
MIB = 1 << 20
FIVE_MIB = 5 * MIB


def of_bytes(proof_size: int) -> Weight:
    """Return a budget of ``proof_size`` bytes and ample time."""
    return Weight(AMPLE.ref_time, proof_size)


def costs(vector: BlockVector) -> list[int]:
    """Return the bytes charged after each read of a pass over the collected nodes."""
    _, result = prune(vector)
    return list(accumulate(read.weight.proof_size for read in result.reads))


def values(*publishers: ParaId, wanted: int = 2, size: int = 60) -> SmallNetwork:
    """Return a network in which the first keys of each publisher are subscribed to and not seen yet."""
    network = SmallNetwork()
    for publisher in publishers or (ALPHA,):
        network.subscribe(publisher, K[:wanted])
        for each in K[:4]:
            network.publish(publisher, [each], (str(publisher).encode() + each) * 2 + bytes(size))
    network.seal()
    return network


def _shared(
    title: str, name: str, why: str, *, downward: Sequence[int] = (), horizontal: Sequence[int] = ()
) -> Iterator[BlockVector]:
    """Yield a block whose budget is what messages leave of 85 % of 5 MiB."""
    share = shared_out(
        PovShare(
            max_pov_size=FIVE_MIB,
            percent=85,
            downward=tuple(downward),
            horizontal=tuple(horizontal),
            downward_full=0,
            horizontal_full=0,
            pubsub_bytes=0,
        )
    )
    network = values()
    crowded = bool(downward or horizontal)
    vector = network.block(executes(title, name, why), budget=of_bytes(share.pubsub_bytes), crowded=crowded, seal=False)
    yield replace(vector, share=share)


def _budget_calculation() -> Iterator[BlockVector]:
    title = "PoV Budget Constraint / Budget calculation"
    yield from _shared(title, "budget-calculation", "85 % of the largest proof where no message waits")
    yield from _shared(
        title,
        "budget-calculation/abridged",
        "the first message that does not fit is hashed, and all after it: each hash takes bytes",
        downward=[100_000] * 30,
        horizontal=[60_000] * 30,
    )
    yield from _shared(
        title,
        "budget-calculation/first-in-full",
        "the first message of each kind stays in full, whatever it leaves",
        downward=[4_456_448, 10],
        horizontal=[5_000],
    )
    yield from _shared(
        title,
        "budget-calculation/boundary",
        "messages that leave one byte",
        downward=[4_456_448 - 1],
    )
    yield from _reserved_messages(title)


def _reserved_messages(title: str) -> Iterator[BlockVector]:
    """Yield shares in which a second downward message meets what is kept for horizontal ones."""
    left = FIVE_MIB * 85 // 100 - 1_000_000
    for name, horizontal, reserved in (
        ("first", [5_000], 5_000),
        ("short-first", [30], 40),
        ("equal-first", [40], 40),
        ("others", [5_000, 90_000, 70], 5_080),
    ):
        for more in (0, 1):
            size = left - reserved + more
            why = f"{reserved} bytes are kept for horizontal messages: a second downward one of {size} bytes"
            yield from _shared(
                title,
                f"budget-calculation/reserved-{name}-{more}",
                f"{why} {'does not fit' if more else 'just fits'}",
                downward=[1_000_000, size],
                horizontal=horizontal,
            )


def _light_block() -> Iterator[BlockVector]:
    yield from _shared(
        "PoV Budget Constraint / Light block with large pub-sub budget",
        "light-block",
        "500 kB of messages leave 3.9 MB for pub-sub",
        horizontal=[50_000] * 10,
    )


def _heavy_block() -> Iterator[BlockVector]:
    yield from _shared(
        "PoV Budget Constraint / Heavy block with small pub-sub budget",
        "heavy-block",
        "4 MiB of messages leave 262,144 bytes for pub-sub",
        horizontal=[MIB // 16] * 64,
    )


def _full_block() -> Iterator[BlockVector]:
    title, name = "PoV Budget Constraint / Full block with no pub-sub budget", "full-block"
    messages = [4_456_448 // 4] * 4
    yield from _shared(title, name, "no byte is left: static keys alone are proven, the pass stops", downward=messages)
    about = executes(title, f"{name}/retried", "the block after a full one delivers")
    network = values()
    network.block(about, budget=of_bytes(0), crowded=True, seal=False)
    yield network.block(about, seal=False)


def _meter() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / WeightMeter tracks ref_time and proof_size",
        "meter",
        "every node, value and cached node takes one database read and its bytes",
    )
    network = following(ALPHA, BETA)
    network.publish(ALPHA, [A], bytes(30))
    yield network.block(about)
    network = SmallNetwork(static_keys=())
    network.subscribe(ALPHA, K[:2])
    network.publish(ALPHA, K[:3], bytes(30))
    yield network.block(about.at("no-static-keys", "without static keys the root of the top trie is paid for too"))
    network = SmallNetwork(config=replace(network.config, read_ref_time=0, write_ref_time=0))
    network.subscribe(ALPHA, K[:2])
    network.publish(ALPHA, K[:3], bytes(30))
    yield network.block(about.at("free-database", "a database that takes no time: bytes alone are charged"))
    network = values(ALPHA, BETA)
    reads = len(prune(network.honest(about, seal=False))[1].reads)
    for count in (0, 1, reads - 1, reads):
        time = about.at(f"time-{count}", f"ref_time for {count} reads")
        budget = Weight(count * network.config.read_ref_time, AMPLE.proof_size)
        yield network.honest(time, budget=budget, seal=False)
    unlimited = about.at("unlimited", "the largest weight of all")
    yield network.honest(unlimited, budget=Weight.MAX, seal=False)


def _exhausted() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Weight exhausted mid-processing",
        "exhausted",
        "the first read that does not fit stops the pass at its key, which becomes the cursor",
    )
    network = values(wanted=3)
    paid = costs(network.honest(about, seal=False))
    yield network.block(about, budget=of_bytes(paid[-1] - 1), seal=False)
    yield network.block(about.at("goes-on", "the next block begins with the key that was not dealt with"), seal=False)


def _wrap_around() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Cursor resumption with wrap-around",
        "wrap-around",
        "from (B, K2): B K3, C K1, A K1, A K2, B K1, then the cursor is cleared",
    )
    network = SmallNetwork()
    for publisher, count in ((ALPHA, 2), (BETA, 3), (GAMMA, 1)):
        network.subscribe(publisher, K[:count])
        for each in K[:count]:
            network.publish(publisher, [each], (str(publisher).encode() + each) * 2)
    network.seal()
    whole = network.honest(about, seal=False)
    stop = next(
        proof_size
        for proof_size in costs(whole)
        if network.honest(about, budget=of_bytes(proof_size), seal=False).expect.cursor == (int(BETA), f"0x{B.hex()}")
    )
    yield network.block(about.at("stops", "a pass that stops at (B, K2)"), budget=of_bytes(stop), seal=False)
    for publisher, count in ((ALPHA, 2), (BETA, 3), (GAMMA, 1)):
        network.publish(publisher, K[:count], str(publisher).encode() * 10)
    yield network.block(about)


def _all_accessed() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Proof validation - all nodes accessed",
        "all-accessed",
        "one node too many: the block panics",
    )
    network = values()
    network.also = {ALPHA: K}
    honest = network.honest(about, seal=False)
    assert honest.collected is not None
    nodes = honest.nodes_at(honest.given)
    unneeded = [node for node in honest.nodes_at(honest.collected) if node not in nodes]
    yield network.lie(honest, about, [*nodes, unneeded[0]])
    yield network.lie(honest, about.at("foreign", "a node of no trie"), [*nodes, b"foreign"])
    yield network.lie(honest, about.at("order", "nodes are a set: their order is free"), nodes[::-1])


def _slack(network: SmallNetwork) -> int:
    """Return the bytes that an omission may hide behind."""
    config = network.config
    prefix = 1 if config.max_value_length < 64 else 2 if config.max_value_length < 1 << 14 else 4
    return max(prefix + config.max_value_length + 8, 750)


def _incomplete_at_limit() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Proof validation - incomplete at weight limit",
        "incomplete-at-limit",
        "less than min_weight is left: an incomplete pass is valid, even where more would have fitted",
    )
    network = values()
    honest = network.honest(about, budget=of_bytes(_slack(network) - 1), seal=False)
    static = network.honest(about, budget=of_bytes(0), seal=False)
    yield network.lie(honest, about, static.nodes_at(static.given))
    time = about.at("time", "bytes are ample, and the time of one read is not left")
    yield network.honest(time, budget=Weight(network.config.read_ref_time - 1, MIB), seal=False)


def _incomplete_below_limit() -> Iterator[BlockVector]:
    about = executes(
        "PoV Budget Constraint / Proof validation - incomplete below weight limit",
        "incomplete-below-limit",
        "exactly min_weight is left and the proof ends: the block panics",
    )
    network = values()
    honest = network.honest(about, budget=of_bytes(_slack(network)), seal=False)
    static = network.honest(about, budget=of_bytes(0), seal=False)
    yield network.lie(honest, about, static.nodes_at(static.given))
    ample = network.honest(about, seal=False)
    value = max(ample.nodes_at(ample.given), key=len)
    rest = [node for node in ample.nodes_at(ample.given) if node != value]
    yield network.lie(ample, about.at("value", "one value is left out of a block with ample budget"), rest)


def _proof_collection() -> Iterator[BlockVector]:
    about = executes(
        "Relay Proof Collection / Proof collection for subscriptions",
        "proof-collection",
        "the collected proof holds the paths to A, B and C in the child trie of 1000",
    )
    network = values(wanted=3)
    yield network.block(about, seal=False)


def _child_key() -> Iterator[BlockVector]:
    about = executes(
        "Relay Proof Collection / Child trie key derivation",
        "child-trie-key",
        "the child root stands at :child_storage:default:pubsub and the id as u32 (e8030000 for 1000)",
    )
    network = SmallNetwork()
    for publisher in (ALPHA, ParaId(0x0102_0304)):
        assert derive_child_info(publisher).storage_key == b"pubsub" + int(publisher).to_bytes(4, "little")
        network.subscribe(publisher, [A])
        network.publish(publisher, [A], str(publisher).encode())
    yield network.block(about)


def _unchanged_skipped() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Unchanged child tries skipped",
        "unchanged-skipped",
        "the child trie of an unchanged publisher is pruned from the proof",
    )
    network = following(ALPHA, BETA)
    network.publish(BETA, [A], b"moved")
    yield network.block(about)


def _cached_read() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Cached nodes read from storage",
        "cached-read",
        "nodes of the old path are read from CachedTrieNodes and pruned from the proof",
    )
    network = SmallNetwork()
    network.subscribe(ALPHA, [path_key("00"), path_key("01"), path_key("1")])
    network.publish(ALPHA, [path_key("00"), path_key("01"), path_key("1"), path_key("2")], bytes(30))
    network.block(about)
    network.publish(ALPHA, [path_key("1")], b"new")
    yield network.block(about)
    network.publish(ALPHA, [path_key("000001")], b"split")
    yield network.block(about.at("split", "a new key puts a branch above an unchanged node: the old path is compared"))


def _unsubscribed_paths() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Unsubscribed key paths not accessed",
        "unsubscribed-paths",
        "of five keys two are subscribed to: nodes that lead to the others alone are pruned",
    )
    network = SmallNetwork(also={ALPHA: K[:5]})
    network.subscribe(ALPHA, K[:2])
    for each in K[:5]:
        network.publish(ALPHA, [each], each)
    yield network.block(about)


def _depth_enforced() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Depth limit enforced during processing",
        "depth-enforced",
        "a path of 10 nodes is read down to node 8, then the publisher is disabled",
    )
    network, steps = SmallNetwork(), staircase(10)
    network.subscribe(PUBLIC, steps[:1])
    network.publish(PUBLIC, steps, b"deep")
    yield network.block(about)


def _combined() -> Iterator[BlockVector]:
    about = executes(
        "Proof Processing / Budget limit enforced with combined tracking",
        "combined-budget",
        "proof and cache together exceed the budget, neither does alone",
    )
    network = following(wanted=4, value=bytes(30))
    network.publish(ALPHA, K[:2], bytes(31))
    network.seal()
    paid = costs(network.honest(about, seal=False))
    yield network.block(about, budget=of_bytes(paid[-1] - 1), seal=False)
    yield network.block(about.at("resumed", "what is left of the pass"), seal=False)


SCENES: tuple[Scene, ...] = (
    _budget_calculation,
    _light_block,
    _heavy_block,
    _full_block,
    _meter,
    _exhausted,
    _wrap_around,
    _all_accessed,
    _incomplete_at_limit,
    _incomplete_below_limit,
    _proof_collection,
    _child_key,
    _unchanged_skipped,
    _cached_read,
    _unsubscribed_paths,
    _depth_enforced,
    _combined,
)


def proof_scenarios() -> Iterator[BlockVector]:
    """Yield the vectors of every scenario about budgets, validation, collation and processing."""
    for scene in SCENES:
        yield from scene()
