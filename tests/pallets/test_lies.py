"""Blocks that are given other nodes than an honest collator's: most panic, some are no lies."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from pallets.block_vectors import (
    ALPHA,
    AMPLE,
    BETA,
    PUBLIC,
    A,
    About,
    B,
    BlockVector,
    C,
    D,
    SmallNetwork,
    costs,
    following,
    of_bytes,
    path_key,
    prune,
    staircase,
    values,
)
from relaycast_xcm.primitives import Weight
from vector_fields import VectorSource
from yielded_vectors import yields

Nodes = list[bytes]


class Situation:
    """A block that is about to be built: the network, the honest vector, and nodes that a liar could use."""

    def __init__(self, network: SmallNetwork, name: str, *, budget: Weight = AMPLE) -> None:
        self.network, self.name, self.budget = network, name, budget
        self.honest = network.honest(About(f"lies/{name}", "", VectorSource(invariant=5)), budget=budget, seal=False)
        self.nodes = self.honest.nodes_at(self.honest.given)
        assert self.honest.collected is not None
        kept = set(self.nodes)
        self.pruned_away = [node for node in self.honest.nodes_at(self.honest.collected) if node not in kept]
        self.earlier: Nodes = []

    def stopped_at(self, budget: Weight) -> Nodes:
        """Return what a collator hands over that prunes to another budget."""
        about = About(f"lies/{self.name}", "", VectorSource(invariant=5))
        vector = self.network.honest(about, budget=budget, seal=False)
        return vector.nodes_at(vector.given)


Ways = Iterator[tuple[str, Nodes]]
Lie = Callable[[Situation, Random], Ways]


def drop_one(it: Situation, _draw: Random) -> Ways:
    """Leave out one node."""
    for index in range(len(it.nodes)):
        yield str(index), it.nodes[:index] + it.nodes[index + 1 :]


def stop_early(it: Situation, _draw: Random) -> Ways:
    """Prune to a smaller budget."""
    paid = costs(it.honest)
    for share in (len(paid) // 3, len(paid) - 1):
        yield str(share), it.stopped_at(of_bytes(paid[share - 1] if share else 0))


def stop_at_once(it: Situation, _draw: Random) -> Ways:
    """Prove the static keys alone."""
    yield "all", it.stopped_at(of_bytes(0))


def hand_over_nothing(_it: Situation, _draw: Random) -> Ways:
    """Hand over no node at all."""
    yield "all", []


def show_the_past(it: Situation, _draw: Random) -> Ways:
    """Hand over the proof of the block before."""
    if it.earlier:
        yield "all", it.earlier


def add_foreign(it: Situation, draw: Random) -> Ways:
    """Add a node that no trie has."""
    yield "junk", [*it.nodes, draw.randbytes(40)]
    yield "empty", [*it.nodes, b""]


def add_unneeded(it: Situation, draw: Random) -> Ways:
    """Add an honest node that this block does not read."""
    others = [*it.pruned_away, *(node for node in it.earlier if node not in it.nodes)]
    for number, node in enumerate(draw.sample(others, min(2, len(others)))):
        yield str(number), [node, *it.nodes]


def duplicate(it: Situation, draw: Random) -> Ways:
    """Hand over a node twice."""
    node = draw.choice(it.nodes)
    yield "behind", [*it.nodes, node]
    yield "before-lies", [node, *it.nodes, node, b"junk"]


def swap(it: Situation, draw: Random) -> Ways:
    """Put a foreign node in the place of an honest one, so that the count is right."""
    index = draw.randrange(len(it.nodes))
    yield str(index), [*it.nodes[:index], b"foreign", *it.nodes[index + 1 :]]


def flip(it: Situation, draw: Random) -> Ways:
    """Flip one bit of a node."""
    for index in draw.sample(range(len(it.nodes)), min(3, len(it.nodes))):
        flipped = bytearray(it.nodes[index])
        bit = draw.randrange(8 * len(flipped))
        flipped[bit // 8] ^= 1 << bit % 8
        yield str(index), [*it.nodes[:index], bytes(flipped), *it.nodes[index + 1 :]]


def truncate(it: Situation, draw: Random) -> Ways:
    """Cut off the end of a node."""
    index = draw.randrange(len(it.nodes))
    yield str(index), [*it.nodes[:index], it.nodes[index][:-1], *it.nodes[index + 1 :]]


def inflate(it: Situation, draw: Random) -> Ways:
    """Make a node longer, by bytes that a decoder ignores."""
    index = draw.randrange(len(it.nodes))
    yield str(index), [*it.nodes[:index], it.nodes[index] + b"\x00", *it.nodes[index + 1 :]]


def reorder(it: Situation, draw: Random) -> Ways:
    """Hand over the nodes in another order, which is no lie since a proof is a set."""
    yield "all", draw.sample(it.nodes, len(it.nodes))


LIES: tuple[Lie, ...] = (
    drop_one,
    stop_early,
    stop_at_once,
    hand_over_nothing,
    show_the_past,
    add_foreign,
    add_unneeded,
    duplicate,
    swap,
    flip,
    truncate,
    inflate,
    reorder,
)


def first_sight() -> Situation:
    network = values(size=0)
    network.also = {ALPHA: [A, B, C, D]}
    return Situation(network, "first-sight")


def changed() -> Situation:
    network = following(wanted=2, value=bytes(30))
    before = network.honest(About("lies/changed", "", VectorSource(invariant=5)), seal=False)
    network.publish(ALPHA, [A], b"changed")
    network.seal()
    situation = Situation(network, "changed")
    situation.earlier = before.nodes_at(before.given)
    return situation


def unchanged() -> Situation:
    network = following(ALPHA, BETA, wanted=1)
    network.seal()
    return Situation(network, "unchanged")


def cut_short() -> Situation:
    network = values(size=20)
    paid = costs(network.honest(About("lies/cut-short", "", VectorSource(invariant=5)), seal=False))
    return Situation(network, "cut-short", budget=of_bytes(paid[-1] - 1))


def resumed() -> Situation:
    network = values(ALPHA, PUBLIC, wanted=1, size=20)
    about = About("lies/resumed", "", VectorSource(invariant=5))
    first = network.block(about, budget=of_bytes(costs(network.honest(about, seal=False))[3]), seal=False)
    situation = Situation(network, "resumed")
    situation.earlier = first.nodes_at(first.given)
    return situation


def disables() -> Situation:
    network = SmallNetwork()
    network.subscribe(ALPHA, staircase(9)[:1])
    network.publish(ALPHA, staircase(9), b"deep")
    network.subscribe(BETA, [path_key("1")])
    network.publish(BETA, [path_key("1")], b"beta")
    network.seal()
    return Situation(network, "disables")


def absent() -> Situation:
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    network.subscribe(BETA, [A])
    network.publish(BETA, [A, B], b"beta")
    network.seal()
    return Situation(network, "absent")


@yields("subscriber/lies")
@pytest.mark.parametrize(
    "made", [first_sight, changed, unchanged, cut_short, resumed, disables, absent], ids=lambda made: made.__name__
)
def test_other_nodes_than_the_honest_ones_are_refused_or_end_an_incomplete_pass_earlier(
    made: Callable[[], Situation],
) -> Iterator[BlockVector]:
    situation = made()
    for lie in LIES:
        draw = Random(f"7 {situation.name} {lie.__name__}")
        for way, nodes in lie(situation, draw):
            is_honest = sorted(nodes) == sorted(situation.nodes)
            if is_honest and lie is not reorder:
                continue  # the last reads were of cached nodes: a smaller budget proves as much
            name = lie.__name__.replace("_", "-")
            why = f"{(lie.__doc__ or '').rstrip('.')} ({situation.name})"
            about = About(f"lies/{situation.name}/{name}/{way}", why, VectorSource(attack=lie.__name__))
            block = situation.network.lie(situation.honest, about, nodes)
            is_omission = set(nodes) < set(situation.nodes) and not block.expect.complete
            assert block.expect.panic or is_honest or is_omission
            yield block


@yields("subscriber/lies")
def test_an_omission_is_refused_where_the_largest_value_would_still_fit() -> Iterator[BlockVector]:
    network = values(size=0)
    source = VectorSource(attack="stop_early")
    honest = network.honest(About("lies/slack", "", source), seal=False)
    reads = prune(honest)[1].reads
    last = network.honest(About("lies/slack", "", source), budget=of_bytes(costs(honest)[-2]), seal=False)
    spent, most = sum(read.size for read in reads[:-1]), 2 + network.config.max_value_length + 8
    for left in (most - 1, most, most + 1):
        about = About(f"lies/slack/{left}", f"the last value is left out with {left} bytes left of {most}", source)
        block = network.honest(about, budget=of_bytes(spent + left), seal=False)
        lie = network.lie(block, about, last.nodes_at(last.given))
        assert bool(lie.expect.panic) == (left >= most)
        yield lie
