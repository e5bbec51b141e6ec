"""Passes at the boundaries of their budget: each is stopped before each of its reads, and one byte short of each."""

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    AMPLE,
    BETA,
    OTHER_PUBLIC,
    PUBLIC,
    SMALL,
    A,
    About,
    B,
    BlockVector,
    C,
    SmallNetwork,
    costs,
    cut_short,
    following,
    of_bytes,
    path_key,
    prune,
    staircase,
    values,
    version_0,
)
from relaycast_xcm.primitives import Weight
from vector_fields import VectorSource
from yielded_vectors import yields

LIMIT = VectorSource(invariant=2)
"""No more is consumed than allowed."""

FIRST = About("budgets/before", "what comes first", LIMIT)


def changed() -> SmallNetwork:
    network = following(wanted=3, value=bytes(30))
    network.publish(ALPHA, [A, C], bytes(31))
    network.seal()
    return network


def resumed() -> SmallNetwork:
    network = values(wanted=3, size=0)
    cut_short(network, FIRST)
    network.publish(ALPHA, [A], b"moved on")
    network.seal()
    return network


def split() -> SmallNetwork:
    network = SmallNetwork()
    wanted = [path_key("00"), path_key("01"), path_key("1")]
    network.subscribe(ALPHA, wanted)
    network.publish(ALPHA, wanted, bytes(30))
    network.block(FIRST)
    network.delete(ALPHA, [path_key("01")])
    network.publish(ALPHA, [path_key("1")], b"new")
    network.publish(ALPHA, [path_key("000001")], b"split")
    network.seal()
    return network


def deep() -> SmallNetwork:
    network = SmallNetwork(config=replace(SMALL, max_trie_depth=3))
    steps = staircase(4, subscribed=path_key("f"))
    network.subscribe(ALPHA, [path_key("0"), steps[0]])
    network.publish(ALPHA, [path_key("0"), *steps], bytes(30))
    network.subscribe(BETA, [A])
    network.publish(BETA, [A], b"beta")
    network.seal()
    return network


def of_two_keys(network: SmallNetwork, first: int, second: int) -> SmallNetwork:
    """Return the network with two keys that have values of so many bytes and were not seen yet."""
    network.subscribe(ALPHA, [A, B])
    network.publish(ALPHA, [A], bytes(first))
    network.publish(ALPHA, [B], bytes(second))
    network.seal()
    return network


def crowded() -> SmallNetwork:
    network = values(ALPHA, BETA, wanted=1, size=0)
    first = network.block(FIRST, budget=of_bytes(0), crowded=True, seal=False)
    assert first.expect.cursor
    return network


SWEPT: list[tuple[str, str, Callable[[], SmallNetwork]]] = [
    ("first-sight", "three keys that were not seen yet", lambda: values(wanted=3)),
    ("changed", "two of three keys changed, the old paths are in the cache", changed),
    (
        "publishers",
        "a system parachain and two public ones, a key each",
        lambda: values(ALPHA, OTHER_PUBLIC, PUBLIC, wanted=1, size=0),
    ),
    ("resumed", "a pass that was cut short goes on while the trie moved on", resumed),
    ("split", "one key is gone, another trie shape: old nodes are paid for too", split),
    ("deep", "a publisher that is disabled, unless the budget ends before", deep),
    (
        "no-static-keys",
        "without static keys the top trie is paid for from its root on",
        lambda: of_two_keys(SmallNetwork(static_keys=()), 10, 10),
    ),
    (
        "long-value",
        "a value above max_value_length is charged 750 bytes",
        lambda: of_two_keys(SmallNetwork(config=replace(SMALL, max_value_length=100)), 800, 20),
    ),
    (
        "version-0",
        "values inside the nodes of a version 0 trie",
        lambda: of_two_keys(SmallNetwork(relay=version_0()), 100, 100),
    ),
    ("crowded", "a crowded block begins at its cursor", crowded),
]


@pytest.mark.parametrize(("name", "what", "sealed"), SWEPT, ids=[name for name, *_ in SWEPT])
@yields("subscriber/budgets")
def test_a_pass_makes_the_reads_that_fit_its_bytes_and_stops_before_the_next(
    name: str, what: str, sealed: Callable[[], SmallNetwork]
) -> Iterator[BlockVector]:
    """Try every budget that makes a difference, and one byte below."""
    network, about = sealed(), About(f"budgets/{name}", what, LIMIT)
    paid = [0, *costs(network.honest(about, seal=False))]
    for proof_size in sorted({max(0, after + near) for after in paid for near in (-1, 0)}):
        reads = sum(after <= proof_size for after in paid[1:])
        part = about.at(proof_size, f"{what}: {proof_size} bytes are enough for {reads} of {len(paid) - 1} reads")
        block = network.honest(part, budget=of_bytes(proof_size), crowded=name == "crowded", seal=False)
        assert len(costs(block)) == reads
        yield block


@yields("subscriber/budgets")
def test_a_pass_makes_the_reads_that_fit_its_time_and_stops_before_the_next() -> Iterator[BlockVector]:
    network = following(wanted=2, value=bytes(30))
    network.publish(ALPHA, [A], bytes(31))
    network.seal()
    about = About("budgets/time", "", LIMIT)
    reads = len(prune(network.honest(about, seal=False))[1].reads)
    read = network.config.read_ref_time
    for ref_time in sorted({max(0, count * read + near) for count in range(reads + 1) for near in (-1, 0)}):
        fit = ref_time // read
        part = about.at(ref_time, f"{ref_time} picoseconds are enough for {fit} of {reads} reads")
        block = network.honest(part, budget=Weight(ref_time, AMPLE.proof_size), seal=False)
        assert len(costs(block)) == fit
        yield block
