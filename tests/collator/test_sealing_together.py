"""Parachains whose states are sealed together build the blocks that each would build alone, in the same order."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collator.networks import PUBLISHER, key, keys, value
from relaycast_collator import BlockBuilt, BlockPanicked, ChainSimulator, Fact, Pace
from relaycast_collator.parachain import ParachainBlock
from relaycast_pallets.frame.tries import ArrayTries
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import encoded
from searches import examples

READERS = tuple(ParaId(3_000 + number) for number in range(4))

readers = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 2), st.integers(1, 3), st.sets(st.integers(2, 7), max_size=3)),
    min_size=1,
    max_size=len(READERS),
)
"""Number of keys that a reader wants, relay blocks between its blocks, its cores, and the ticks of its lies."""

ticks = st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 90)), max_size=6), max_size=7)
"""What is published before each tick: keys, versions and sizes."""


def blocks(
    world: list[Any], published: list[Any], engine: Engine, *, loads: bool
) -> Iterator[tuple[list[Fact], bytes]]:
    """Yield the facts of each tick, and where the chains stand after it."""
    chains = ChainSimulator(seed=3, trie_engine=engine)
    chains.add_parachain(PUBLISHER)
    chains.register_publisher(PUBLISHER)
    for para_id, (wanted, relay_blocks, cores, lies) in zip(READERS, world, strict=False):

        def tamper(inherent: ParachainInherentData, lies: set[int] = lies) -> ParachainInherentData:
            return replace(inherent, relay_chain_state=()) if chains.tick in lies else inherent

        chains.add_parachain(para_id, pace=Pace(relay_blocks, cores), tamper=tamper)
        chains.subscribe(para_id, PUBLISHER, keys(wanted))
    for number, sent in enumerate(published):
        for at, version, size in sent:
            chains.parachains[PUBLISHER].publish(key(at), value(version, size), ttl=3 * (version == 0))
        yield chains.step(), encoded(chains.dump(calls_apart=True))
        if loads and number == 3:
            chains.load(chains.dump())
    if engine == "array":
        assert all(isinstance(it.state._tries, ArrayTries) for it in chains.parachains.values())


def told(block: ParachainBlock) -> tuple[object, ...]:
    return block.header, block.inherent, block.own_proof, block.updates, block.events, block.deletions


@given(readers, ticks, st.booleans())
@settings(max_examples=examples(25))
def test_sealed_together_or_alone_blocks_and_facts_are_the_same(
    world: list[Any], published: list[Any], loads: bool
) -> None:
    together, alone = (list(blocks(world, published, it, loads=loads)) for it in ("array", "plain"))
    for (facts, dump), (others, other_dump) in zip(together, alone, strict=True):
        assert list(map(type, facts)) == list(map(type, others))
        for fact, other in zip(facts, others, strict=True):
            if isinstance(fact, BlockBuilt):
                assert isinstance(other, BlockBuilt)
                assert told(fact.block) == told(other.block)
                assert (fact.para_id, fact.parent, fact.inbound) == (other.para_id, other.parent, other.inbound)
            elif isinstance(fact, BlockPanicked):
                assert isinstance(other, BlockPanicked)
                assert (fact.para_id, fact.head, fact.reason) == (other.para_id, other.head, other.reason)
        assert dump == other_dump


@pytest.mark.parametrize("engine", ["plain", "array"])
def test_a_block_that_panics_drops_out_and_the_others_are_sealed(engine: Engine) -> None:
    world = [(3, 1, 1, set()), (3, 1, 1, {4}), (3, 1, 2, set())]
    for facts, _ in blocks(world, [[(0, n, 40)] for n in range(6)], engine, loads=False):
        built = [(type(it), it.para_id) for it in facts if isinstance(it, BlockBuilt | BlockPanicked)]
        tick = facts[0].tick
        liar = BlockPanicked if tick == 4 else BlockBuilt
        third = [(BlockBuilt, READERS[2])] * 2
        assert built == [(BlockBuilt, PUBLISHER), (BlockBuilt, READERS[0]), (liar, READERS[1]), *third]
