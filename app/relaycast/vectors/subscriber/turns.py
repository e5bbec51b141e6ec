"""Vectors of rounds: keys that do not fit, keys that crowded blocks owe, and cursors whose keys are gone."""

from collections.abc import Iterator

from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes, values
from relaycast.vectors.subscriber.scenarios import K
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    BETA,
    GAMMA,
    OTHER_PUBLIC,
    PUBLIC,
    About,
    SmallNetwork,
    key,
    path_key,
    staircase,
)
from relaycast.vectors.vector import VectorSource
from relaycast_pallets.subscriber.plan import Cursor
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.hasher import twox_128
from relaycast_xcm.primitives import ParaId

A, B, C, D, E, F = K
NO_LOST_UPDATE = VectorSource(invariant=3)
CURSOR, OWED = "RelayProofProcessingCursor", "OwedKey"


def about(name: str, why: str) -> About:
    return About(f"turns/{name}", why, NO_LOST_UPDATE)


def put(network: SmallNetwork, item: str, at: Cursor) -> None:
    """Write a cursor into the pallet's storage."""
    prefix = twox_128(b"Subscriber") + twox_128(item.encode())
    network.kept[prefix] = int(at[0]).to_bytes(4, "little") + at[1]


def _long_key() -> Iterator[BlockVector]:
    """Yield rounds in which one key never fits: the others have their turns."""
    network = SmallNetwork()
    for publisher in (ALPHA, BETA):
        network.subscribe(publisher, [A, B])
        network.publish(publisher, [A, B], str(publisher).encode())
    network.publish(ALPHA, [B], bytes(1_000))
    network.seal()
    for number in range(6):
        why = f"block {number} of a round with a key of 1,000 bytes and a budget of 900"
        yield network.block(about(f"long-key/{number}", why), budget=of_bytes(900), seal=False)
        network.publish(BETA, [A], bytes([number]) * 20)
        network.seal()
    yield network.block(about("long-key/fits", "the long key is told once it fits"), seal=False)


def _alone() -> Iterator[BlockVector]:
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    network.publish(ALPHA, [A], bytes(600))
    network.seal()
    for number, crowded in enumerate((False, False, True)):
        part = about(f"alone/{number}", "a single key that does not fit: the cursor stays with it")
        yield network.block(part, budget=of_bytes(500), crowded=crowded, seal=False)


def _crowded_rounds() -> Iterator[BlockVector]:
    """Yield crowded blocks and free ones: two rounds, until one has covered the other."""
    network = values(ALPHA, BETA, GAMMA, wanted=2, size=0)
    whole = costs(network.honest(about("", ""), seal=False))
    for number, (share, crowded) in enumerate(
        ((0, True), (0, True), (0, True), (3, True), (9, False), (0, True), (12, False), (5, True), (40, False))
    ):
        part = about(f"crowded-rounds/{number}", f"block {number}: {'crowded' if crowded else 'with the whole budget'}")
        budget = of_bytes(whole[min(share, len(whole)) - 1] if share else 0)
        yield network.block(part, budget=budget, crowded=crowded, seal=False)


def _stored(
    name: str,
    why: str,
    cursor: Cursor,
    owed: Cursor | None = None,
    *,
    crowded: bool = False,
    reads: int | None = None,
) -> BlockVector:
    """Return a block over three keys of one publisher and two of another that begins with these cursors."""
    network = SmallNetwork()
    for publisher, count in ((ALPHA, 3), (BETA, 2)):
        network.subscribe(publisher, K[:count])
        for each in K[:count]:
            network.publish(publisher, [each], (str(publisher).encode() + each) * 2)
    network.seal()
    put(network, CURSOR, cursor)
    if owed is not None:
        put(network, OWED, owed)
    part = about(f"stored/{name}", why)
    budget = costs(network.honest(part, crowded=crowded, seal=False))
    size = (1 << 20) if reads is None else (budget[reads - 1] if reads else 0)
    return network.block(part, budget=of_bytes(size), crowded=crowded, seal=False)


def _cursors() -> Iterator[BlockVector]:
    a1, a2, a3, b1, b2 = (ALPHA, A), (ALPHA, B), (ALPHA, C), (BETA, A), (BETA, B)
    gone: Cursor = (GAMMA, SubscribedKey(A))
    no_key: Cursor = (ALPHA, key("gone"))
    cases: list[tuple[str, Cursor, Cursor | None]] = [
        ("a1", a1, None),
        ("a2", a2, None),
        ("b2", b2, None),
        ("publisher-gone", gone, None),
        ("key-gone", no_key, None),
        ("publisher-gone-owed", gone, b1),
        ("owed-gone", a2, no_key),
        ("both-gone", gone, no_key),
        ("a2-owed-a1", a2, a1),
        ("b2-owed-a1", b2, a1),
        ("b1-owed-a1", b1, a1),
        ("a1-owed-b2", a1, b2),
        ("a3-owed-a3", a3, a3),
    ]
    for name, cursor, owed in cases:
        for crowded in (False, True) if owed else (False,):
            for reads in (None, 0, 6):
                ends = "all" if reads is None else str(reads)
                why = f"cursors {name}, {'crowded' if crowded else 'the whole budget'}, {ends} reads fit"
                part = f"{name}/{'crowded' if crowded else 'free'}-{ends}"
                yield _stored(part, why, cursor, owed, crowded=crowded, reads=reads)


def _kept_order() -> Iterator[BlockVector]:
    """Yield passes that keep the order of publishers until one is complete."""
    network = values(PUBLIC, OTHER_PUBLIC, ParaId(2_005), wanted=1, size=0)
    whole = costs(network.honest(about("", ""), seal=False))
    for number, reads in enumerate((5, 6, len(whole))):
        part = about(f"kept-order/{number}", "a pass that goes on keeps the order of the one that was cut short")
        yield network.block(part, budget=of_bytes(whole[reads - 1]), seed=bytes([number + 1]), seal=False)
    for publisher in (PUBLIC, OTHER_PUBLIC):
        network.publish(publisher, [A], b"drawn anew")
    yield network.block(about("kept-order/anew", "after a complete pass the block's own seed shuffles"), seed=b"\x09")


def _disabled_around_a_cursor() -> Iterator[BlockVector]:
    """Yield passes that begin inside a publisher and find it too deep, before the wrap and behind it."""
    for name, first, deep in (
        ("behind", path_key("f"), staircase(9, subscribed=path_key("0"))),
        ("before", path_key("0"), staircase(9, subscribed=path_key("f"))),
    ):
        network = SmallNetwork()
        network.subscribe(BETA, [first, deep[0]])
        network.publish(BETA, [first, *deep], bytes(30))
        network.subscribe(ALPHA, [A])
        network.publish(ALPHA, [A], b"alpha")
        network.seal()
        put(network, CURSOR, (BETA, path_key("f")))
        why = f"the pass begins inside of a publisher whose path is too deep {name} the wrap"
        yield network.block(about(f"disabled/{name}", why), seal=False)


def turn_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of rounds."""
    for scene in (_long_key, _alone, _crowded_rounds, _cursors, _kept_order, _disabled_around_a_cursor):
        yield from scene()
