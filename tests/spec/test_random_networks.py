"""Random networks: whatever the pallets do in a block, the specification computes the same from the same bytes.

A block is compared whole: reads, weight, cursors, callbacks, events, panics, and every entry of the pallet's storage.
"""

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from relaycast.vectors.broadcaster.broadcaster_histories import history
from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.histories import History
from relaycast.vectors.subscriber.small_network import About
from relaycast.vectors.vector import Vector, VectorSource
from relaycast_spec.vectors import mismatches
from searches import examples

NETWORKS = 500
"""Random networks of each kind."""

seeds = st.integers(0, 2**64 - 1)
policies = st.fixed_dictionaries(
    {},
    optional={
        "order": st.just("numeric"),
        "metering": st.just("values-only"),
        "root_commit": st.just("forget-unchanged"),
        "callback": st.just("all-keys"),
        "cache": st.just("none"),
        "deletion": st.just("told"),
        "max_cached_node": st.sampled_from(["60", "150", "300", "512"]),
    },
)


def differences(kind: str, vector: Vector) -> list[str]:
    plain: Any = msgspec.json.decode(msgspec.json.encode(vector))
    return list(mismatches(kind, plain))


@settings(max_examples=examples(NETWORKS))
@given(seed=seeds, chosen=policies)
def test_blocks_of_random_networks_are_what_the_specification_computes(seed: int, chosen: dict[str, str]) -> None:
    for vector in History("random", seed, policies=chosen).blocks():
        assert not differences("subscriber", vector)


@settings(max_examples=examples(NETWORKS))
@given(seed=seeds)
def test_steps_of_random_broadcasters_are_what_the_specification_computes(seed: int) -> None:
    assert not differences("broadcaster", history(Random(seed), 0))


@settings(max_examples=examples(200))
@given(seed=seeds)
def test_a_block_with_other_nodes_ends_as_the_specification_says(seed: int) -> None:
    """One node is left out, doubled, changed or added: the block panics alike, or goes alike."""
    draw = Random(seed)
    network, before, honest = _some_block(seed)
    given = [honest.nodes[number] for number in honest.given]
    nodes = [bytes.fromhex(node[2:]) for node in given]
    at = draw.randrange(len(nodes))
    node = nodes.pop(at)
    flipped = bytearray(node)
    flipped[draw.randrange(len(node))] ^= 1 << draw.randrange(8)
    nodes[at:at] = draw.choice([[], [node, node], [bytes(flipped)], [node, bytes(flipped)], [node, b"\x00"]])
    network.kept = before
    lie = network.lie(honest, About("random/lie", "a lie", VectorSource(invariant=5)), nodes)
    assert not differences("subscriber", lie)


def _some_block(seed: int) -> tuple[Any, dict[bytes, bytes], BlockVector]:
    """Return a network at its third block, what it kept before, and the honest vector of that block."""
    moved = History("lies", seed)
    blocks = moved.blocks()
    for _ in range(2):
        next(blocks)
    before = dict(moved.network.kept)
    return moved.network, before, next(blocks)
