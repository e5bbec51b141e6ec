"""Vectors at the boundaries of the budget: each pass stopped before each of its reads, and one byte short of each."""

from collections.abc import Iterator

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_run import prune
from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes, values
from relaycast.vectors.subscriber.scenarios import K, following
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    AMPLE,
    BETA,
    OTHER_PUBLIC,
    PUBLIC,
    About,
    SmallNetwork,
    path_key,
    staircase,
    version_0,
)
from relaycast.vectors.vector import VectorSource
from relaycast_xcm.primitives import Weight

A, B, C, D, E, F = K
LIMIT = VectorSource(invariant=2)
"""No more is consumed than allowed."""


def sweep(network: SmallNetwork, name: str, what: str, *, crowded: bool = False) -> Iterator[BlockVector]:
    """Yield the block on the sealed relay state at every budget that makes a difference, and one byte below."""
    about = About(f"budgets/{name}", what, LIMIT)
    paid = [0, *costs(network.honest(about, seal=False))]
    for proof_size in sorted({max(0, after + near) for after in paid for near in (-1, 0)}):
        reads = sum(after <= proof_size for after in paid[1:])
        part = about.at(proof_size, f"{what}: {proof_size} bytes are enough for {reads} of {len(paid) - 1} reads")
        yield network.honest(part, budget=of_bytes(proof_size), crowded=crowded, seal=False)


def _first_sight() -> Iterator[BlockVector]:
    yield from sweep(values(wanted=3), "first-sight", "three keys that were not seen yet")


def _changed() -> Iterator[BlockVector]:
    network = following(wanted=3, value=bytes(30))
    network.publish(ALPHA, [A, C], bytes(31))
    network.seal()
    yield from sweep(network, "changed", "two of three keys changed, the old paths are in the cache")


def _publishers() -> Iterator[BlockVector]:
    network = values(ALPHA, OTHER_PUBLIC, PUBLIC, wanted=1, size=0)
    yield from sweep(network, "publishers", "a system parachain and two public ones, a key each")


def _resumed() -> Iterator[BlockVector]:
    network = values(wanted=3, size=0)
    about = About("budgets/resumed", "what comes first", LIMIT)
    paid = costs(network.honest(about, seal=False))
    network.block(about, budget=of_bytes(paid[-1] - 1), seal=False)
    network.publish(ALPHA, [A], b"moved on")
    network.seal()
    yield from sweep(network, "resumed", "a pass that was cut short goes on while the trie moved on")


def _split() -> Iterator[BlockVector]:
    network = SmallNetwork()
    wanted = [path_key("00"), path_key("01"), path_key("1")]
    network.subscribe(ALPHA, wanted)
    network.publish(ALPHA, wanted, bytes(30))
    network.block(About("budgets/split", "what comes first", LIMIT))
    network.delete(ALPHA, [path_key("01")])
    network.publish(ALPHA, [path_key("1")], b"new")
    network.publish(ALPHA, [path_key("000001")], b"split")
    network.seal()
    yield from sweep(network, "split", "one key is gone, another trie shape: old nodes are paid for too")


def _deep() -> Iterator[BlockVector]:
    network = SmallNetwork(config=replace(SmallNetwork().config, max_trie_depth=3))
    steps = staircase(4, subscribed=path_key("f"))
    network.subscribe(ALPHA, [path_key("0"), steps[0]])
    network.publish(ALPHA, [path_key("0"), *steps], bytes(30))
    network.subscribe(BETA, [A])
    network.publish(BETA, [A], b"beta")
    network.seal()
    yield from sweep(network, "deep", "a publisher that is disabled, unless the budget ends before")


def _no_static_keys() -> Iterator[BlockVector]:
    network = SmallNetwork(static_keys=())
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A, B], bytes(10))
    network.seal()
    yield from sweep(network, "no-static-keys", "without static keys the top trie is paid for from its root on")


def _long_value() -> Iterator[BlockVector]:
    network = SmallNetwork(config=replace(SmallNetwork().config, max_value_length=100))
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A], bytes(800))
    network.publish(ALPHA, [B], bytes(20))
    network.seal()
    yield from sweep(network, "long-value", "a value above max_value_length is charged 750 bytes")


def _version_0() -> Iterator[BlockVector]:
    network = SmallNetwork(relay=version_0())
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A, B], bytes(100))
    network.seal()
    yield from sweep(network, "version-0", "values inside the nodes of a version 0 trie")


def _crowded() -> Iterator[BlockVector]:
    network = values(ALPHA, BETA, wanted=1, size=0)
    about = About("budgets/crowded", "what comes first", LIMIT)
    first = network.block(about, budget=of_bytes(0), crowded=True, seal=False)
    assert first.expect.cursor
    yield from sweep(network, "crowded", "a crowded block begins at its cursor", crowded=True)


def _time() -> Iterator[BlockVector]:
    network = following(wanted=2, value=bytes(30))
    network.publish(ALPHA, [A], bytes(31))
    network.seal()
    about = About("budgets/time", "", LIMIT)
    reads = len(prune(network.honest(about, seal=False))[1].reads)
    read = network.config.read_ref_time
    for count in range(reads + 1):
        for ref_time in (count * read, count * read - 1):
            if ref_time >= 0:
                part = about.at(ref_time, f"{ref_time} picoseconds are enough for {ref_time // read} of {reads} reads")
                yield network.honest(part, budget=Weight(ref_time, AMPLE.proof_size), seal=False)


def budget_vectors() -> Iterator[BlockVector]:
    """Yield passes that are stopped at each of their reads."""
    for scene in (
        _first_sight,
        _changed,
        _publishers,
        _resumed,
        _split,
        _deep,
        _no_static_keys,
        _long_value,
        _version_0,
        _crowded,
        _time,
    ):
        yield from scene()
