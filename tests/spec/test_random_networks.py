"""Random networks: whatever the pallets do in a block, the specification computes the same from the same bytes.

A block is compared whole: reads, weight, cursors, callbacks, events, panics, and every entry of the pallet's storage.
Some of the networks ship with the specification, each block a vector.
"""

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pallets.block_vectors import (
    ALPHA,
    AMPLE,
    OTHER_PUBLIC,
    PUBLIC,
    SMALL,
    About,
    BlockVector,
    PalletCall,
    SmallNetwork,
    of_bytes,
    path_key,
)
from relaycast_spec.vectors import mismatches
from relaycast_xcm.primitives import ParaId, Weight
from searches import examples
from vector_fields import Vector, VectorSource, VectorWeight
from yielded_vectors import yields

NETWORKS = 500
"""Random networks of each kind."""

CRAFTED = [path_key(first + second + third) for first in "01" for second in ("00", "01", "10") for third in "01f"]
"""Keys whose paths part late, in every other way: a key that comes or goes moves the others up or down."""

INVARIANTS = {
    1: "both modes read, consume and stop alike",
    3: "a pass that is cut short loses no update: it remembers how far it came",
    4: "no callback without a change",
    6: "after a complete pass the cache is exactly the structure of the subscribed paths",
    8: "a publisher that is too deep harms no other",
}


class History:
    """One network, its publishers, and the draw that moves it; if it ``weighs``, callbacks declare weights."""

    def __init__(
        self, name: str, seed: int, *, policies: Mapping[str, str] = MappingProxyType({}), weighs: bool = False
    ) -> None:
        self.name = name
        self.draw = Random(f"{seed} {name}")
        self.weights = Random(f"{seed} {name} weights") if weighs else None
        depth = self.draw.choice([8, 8, 8, 3])
        self.network = SmallNetwork(
            config=replace(SMALL, max_trie_depth=depth, max_value_length=128), policies=policies
        )
        self.publishers = self.draw.sample([ALPHA, PUBLIC, OTHER_PUBLIC], self.draw.choice([1, 1, 1, 2]))
        self.stock = self.draw.sample(CRAFTED, 7)
        for publisher in self.publishers:
            self.network.subscribe(publisher, self.draw.sample(self.stock, self.draw.randint(1, 3)))
            self.network.publish(publisher, self.draw.sample(self.stock, 5), self._value())

    def blocks(self) -> Iterator[BlockVector]:
        for number in range(self.draw.randint(5, 8)):
            if number:
                self._move()
            if self.weights:
                self._declare(self.weights)
            vector = self.network.block(
                About(f"histories/{self.name}/{number}", "", VectorSource(invariant=1)),
                budget=self._budget(),
                seed=self.draw.randbytes(2),
                crowded=self.draw.random() < 0.25,
                calls=self._calls(),
            )
            invariant = _shown_by(vector)
            why = f"random history {self.name}: {INVARIANTS[invariant]}"
            yield replace(vector, why=why, source=VectorSource(invariant=invariant))

    def _value(self) -> bytes:
        return self.draw.randbytes(1) * self.draw.choice([0, 5, 23, 24, 40])

    def _budget(self) -> Weight:
        return self.draw.choice([of_bytes(self.draw.randint(0, 800)), of_bytes(self.draw.randint(100, 500)), AMPLE])

    def _move(self) -> None:
        """Let a few things happen on either chain."""
        draw, network = self.draw, self.network
        for publisher in self.publishers:
            chance = draw.random()
            if chance < 0.5:
                network.publish(
                    publisher, draw.sample(self.stock, draw.randint(1, 3)), self._value(), ttl=draw.choice([0, 1, 9])
                )
            elif chance < 0.65:
                network.delete(publisher, draw.sample(self.stock, 2))
            elif chance < 0.7:
                network.delete(publisher, self.stock)
        if draw.random() < 0.3:
            self._change_subscription(draw.choice(self.publishers))

    def _declare(self, draw: Random) -> None:
        """Let some callbacks declare and use other weights, and move the limit at times, also below a declared one."""
        network = self.network
        for publisher in self.publishers:
            for each in draw.sample(self.stock, 4):
                network.callback_weights[publisher, each] = Weight(draw.randint(0, 6), draw.randint(0, 6))
            network.used_weights[publisher, draw.choice(self.stock)] = Weight(draw.randint(0, 9), draw.randint(0, 9))
        if network.config.callback_limit is None or draw.random() < 0.4:
            limit = VectorWeight(draw.randint(0, 14), draw.randint(0, 14))
            network.config = replace(network.config, callback_limit=limit)

    def _change_subscription(self, publisher: ParaId) -> None:
        held = dict(self.network.wanted).get(publisher, [])
        some = self.draw.sample(self.stock, self.draw.randint(1, 2))
        self.network.subscribe(publisher, self.draw.choice([[*held, *some], some, [], held[1:]]))

    def _calls(self) -> list[PalletCall]:
        if self.draw.random() < 0.85:
            return []
        name = self.draw.choice(["clear_stored_roots", "clear_publisher_cache", "enable_publisher"])
        return [(name, int(self.draw.choice(self.publishers)))]


def _shown_by(vector: BlockVector) -> int:
    """Return the number of the invariant that a block shows most of."""
    expect = vector.expect
    events = expect.events or ()
    if any(event.startswith("0x04") for event in events):
        return 8
    if not expect.complete:
        return 3
    if not expect.callbacks:
        return 4
    return 6 if expect.after != vector.before else 1


@yields("subscriber/histories")
@pytest.mark.parametrize("number", range(48))
def test_each_block_of_a_random_history_ends_as_its_vector_says(number: int) -> Iterator[BlockVector]:
    yield from History(f"{number:02}", 7).blocks()


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
@given(seed=seeds, chosen=policies, weighs=st.booleans())
def test_blocks_of_random_networks_are_what_the_specification_computes(
    seed: int, chosen: dict[str, str], weighs: bool
) -> None:
    for vector in History("random", seed, policies=chosen, weighs=weighs).blocks():
        assert not differences("subscriber", vector)


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
