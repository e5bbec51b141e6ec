"""Lies that a collator can tell about the relay chain's state: each makes other nodes out of an honest proof.

Two families: ``OMISSIONS`` leave out what should be there, ``ADDITIONS`` hand over what should not. Lies about messages
are part of both (``message_lies.py``).
"""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from relaycast.attacks.message_lies import INVENTED, WITHHELD
from relaycast.attacks.proving_ground import Moment, Nodes
from relaycast_pallets import ParachainInherentData
from relaycast_pallets.subscriber.result import ReadSource
from relaycast_trie import blake2_256

Way = Nodes | Callable[[], Nodes | ParachainInherentData]
"""The proof of a collator that lies, or how to make it, or a whole inherent, where that takes a pass of its own."""

Lie = Callable[[Moment, Random], Iterator[Way]]
"""Yields as many proofs as there are ways to tell this lie in one block."""

SOME = 8
"""Ways to tell a lie that could be told in any number of ways."""


def drop_one(moment: Moment, _draw: Random) -> Iterator[Nodes]:
    """Leave out one node."""
    for index in range(len(moment.nodes)):
        yield moment.nodes[:index] + moment.nodes[index + 1 :]


def drop_some(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Leave out several nodes."""
    for _ in range(SOME):
        left_out = draw.randint(2, max(2, len(moment.nodes) // 2))
        kept = set(draw.sample(range(len(moment.nodes)), max(0, len(moment.nodes) - left_out)))
        yield tuple(node for index, node in enumerate(moment.nodes) if index in kept)


def drop_publisher(moment: Moment, _draw: Random) -> Iterator[Nodes]:
    """Leave out all that is read of one publisher."""
    reads = [read for read in moment.collation.pruning.reads if read.source.is_relay and read.publisher is not None]
    for para_id in sorted({read.publisher for read in reads if read.publisher is not None}):
        yield _without(moment, {read.node_hash for read in reads if read.publisher == para_id})


def drop_values(moment: Moment, _draw: Random) -> Iterator[Nodes]:
    """Leave out the values that stand outside of their nodes: all of them, and each alone."""
    hashes = [read.node_hash for read in moment.collation.pruning.reads if read.source is ReadSource.RELAY_VALUE]
    yield _without(moment, set(hashes))
    for value_hash in hashes:
        yield _without(moment, {value_hash})


def stop_early(moment: Moment, _draw: Random) -> Iterator[Way]:
    """Prune as if the budget were smaller: the proof is sound as far as it goes."""
    spent = 0
    for read in moment.collation.pruning.reads:
        yield partial(moment.pruned, spent)
        spent += read.size


def stop_at_once(moment: Moment, _draw: Random) -> Iterator[Nodes]:
    """Prove what every block proves, and nothing of what is subscribed to."""
    yield _without(moment, {read.node_hash for read in moment.collation.pruning.reads if read.source.is_relay})


def hand_over_nothing(_moment: Moment, _draw: Random) -> Iterator[Nodes]:
    """Hand over no proof at all."""
    yield ()


def show_the_past(moment: Moment, _draw: Random) -> Iterator[Nodes]:
    """Hand over the proof of the block before, which held under an earlier root."""
    yield moment.earlier


def skip_ahead(moment: Moment, draw: Random) -> Iterator[Way]:
    """Prune as if the cursor stood elsewhere, so that what stands before it seems to be dealt with."""
    views = moment.collation.pruning.plan.views
    keys = [(para_id, key) for para_id, view in views.items() for key in view.subscribed.keys]
    budget = sum(read.size for read in moment.collation.pruning.reads)
    for cursor in draw.sample(keys, min(SOME, len(keys))):
        for share in (2, 3, 5):
            yield partial(moment.pruned, budget * share // 6, cursor=cursor)


def add_foreign(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Add a node that no trie has."""
    for _ in range(SOME):
        yield _inserted(moment, draw.randbytes(draw.randint(1, 700)), draw)


def add_unneeded(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Add an honest node of the relay chain's state that this block does not read."""
    head, known = moment.relay_chain.head, set(moment.nodes)
    others = [blake2_256(draw.randbytes(8)) for _ in range(SOME)]
    near = [node for node in moment.collation.collected if node not in known]
    far = [node for node in moment.relay_chain.prove_read(head, others) if node not in known]
    for node in (*near, *far):
        yield _inserted(moment, node, draw)


def add_past(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Add a node of an earlier block's proof."""
    for node in sorted(set(moment.earlier) - set(moment.nodes)):
        yield _inserted(moment, node, draw)


def duplicate(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Hand one node over twice."""
    for node in moment.nodes:
        yield _inserted(moment, node, draw)


def swap(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Put an honest node from elsewhere in a node's place, so that the count is right."""
    others = sorted((set(moment.collation.collected) | set(moment.earlier)) - set(moment.nodes))
    others = others or [draw.randbytes(64)]
    for index in range(len(moment.nodes)):
        yield _replaced(moment, index, draw.choice(others))


def flip(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Turn one bit of a node over."""
    for index, node in enumerate(moment.nodes):
        bit = draw.randrange(8 * len(node))
        flipped = bytearray(node)
        flipped[bit // 8] ^= 1 << bit % 8
        yield _replaced(moment, index, bytes(flipped))


def truncate(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Cut a node's end off."""
    for index, node in enumerate(moment.nodes):
        yield _replaced(moment, index, node[: draw.randrange(len(node))])


def inflate(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Make a node longer."""
    for index, node in enumerate(moment.nodes):
        yield _replaced(moment, index, node + draw.randbytes(draw.randint(1, 64)))


def reorder(moment: Moment, draw: Random) -> Iterator[Nodes]:
    """Hand the nodes over in another order, which is no lie: a proof is a set."""
    for _ in range(SOME):
        yield tuple(draw.sample(moment.nodes, len(moment.nodes)))


OMISSIONS: tuple[Lie, ...] = (
    drop_one,
    drop_some,
    drop_publisher,
    drop_values,
    stop_early,
    stop_at_once,
    hand_over_nothing,
    show_the_past,
    skip_ahead,
    *WITHHELD,
)
ADDITIONS: tuple[Lie, ...] = (
    add_foreign,
    add_unneeded,
    add_past,
    duplicate,
    swap,
    flip,
    truncate,
    inflate,
    reorder,
    *INVENTED,
)


def _without(moment: Moment, hashes: set[bytes]) -> Nodes:
    return tuple(node for node in moment.nodes if blake2_256(node) not in hashes)


def _inserted(moment: Moment, node: bytes, draw: Random) -> Nodes:
    at = draw.randint(0, len(moment.nodes))
    return (*moment.nodes[:at], node, *moment.nodes[at:])


def _replaced(moment: Moment, index: int, node: bytes) -> Nodes:
    return (*moment.nodes[:index], node, *moment.nodes[index + 1 :])
