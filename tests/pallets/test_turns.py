"""Keys that do not fit: they cost the others a block a round and stay owed, whatever messages take of the blocks."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.block_vectors import (
    ALPHA,
    AMPLE,
    BETA,
    GAMMA,
    OTHER_PUBLIC,
    PUBLIC,
    A,
    About,
    B,
    BlockVector,
    C,
    K,
    SmallNetwork,
    costs,
    key,
    key_of,
    keys,
    of_bytes,
    path_key,
    staircase,
    told,
    values,
)
from pallets.subscriber_invariants import ChangesTold, all_hold, hashed_paths
from pallets.subscriber_world import MOCK, Block, World
from relaycast_pallets import KeyBeyondBudget, Policies, PublishedEntry
from relaycast_pallets.subscriber.plan import FairCursor, Turn
from relaycast_pallets.subscriber.storage import Cursor
from relaycast_pallets.subscriber.variants.drafts import SystemFirstNumeric
from relaycast_xcm.primitives import ParaId
from vector_fields import VectorSource
from yielded_vectors import yields

NUMERIC = Policies(order=SystemFirstNumeric())
DEEP = staircase(8, subscribed=path_key("8"))
LONG = (BETA, DEEP[0])
"""A key whose path is as deep as may be, and whose value is as long."""


def crowd(*, count: int = 6) -> World:
    """Return a world in which one publisher's key costs more than all that the two beside it have."""
    world = World(policies=NUMERIC)
    for publisher in (ALPHA, GAMMA):
        wanted = keys(count, prefix=str(publisher))
        world.subscribe(publisher, wanted)
        write(world, publisher, 0)
    world.subscribe(BETA, DEEP[:1])
    world.publish(BETA, DEEP, bytes(40))
    write(world, BETA, 0)
    return world


def write(world: World, publisher: ParaId, number: int) -> None:
    """Give every key of a publisher a value of its own."""
    for wanted in world.handler.wanted[publisher]:
        value = wanted[:20] + number.to_bytes(4, "little")
        world.publish(publisher, [wanted], value.ljust(1_000 if publisher == BETA else 0, b"."))


def cost_of(world: World, cursor: Cursor) -> int:
    """Return a bound on the bytes that a pass reads for a key that it begins with."""
    nodes, publisher = world.relay_nodes(), cursor[0]
    paths = dict(zip(world.subscribed(publisher).keys, hashed_paths(world, publisher), strict=True))
    new = sum(len(nodes[node_hash]) for _, node_hash in paths[cursor[1]])
    old = sum(sorted(map(len, world.cached(publisher).values()))[-world.subscriber.config.max_trie_depth :])
    top = sum(read.size for read in world.prune(1 << 40)[1].reads if read.source.value == "relay_top")
    entry = world.entry(*cursor)
    return top + new + old + (0 if entry is None else len(entry))


def passed_over(world: World) -> list[KeyBeyondBudget]:
    found = world.system.events.of(KeyBeyondBudget)
    world.system.events.take()
    return found


BUDGET = 1_300
"""Room for several short keys, and not for the long one."""


@yields("subscriber/turns")
def test_a_key_that_never_fits_lets_the_others_have_their_turns_and_is_told_once_it_fits() -> Iterator[BlockVector]:
    network = SmallNetwork()
    for publisher in (ALPHA, BETA):
        network.subscribe(publisher, [A, B])
        network.publish(publisher, [A, B], str(publisher).encode())
    network.publish(ALPHA, [B], bytes(1_000))
    network.seal()
    for number in range(6):
        why = f"block {number} of a round with a key of 1,000 bytes and a budget of 900"
        block = network.block(about(f"long-key/{number}", why), budget=of_bytes(900), seal=False)
        assert block.expect.cursor == key_of((BETA, A) if number % 2 else (ALPHA, B))
        yield block
        network.publish(BETA, [A], bytes([number]) * 20)
        network.seal()
    fits = network.block(about("long-key/fits", "the long key is told once it fits"), seal=False)
    assert told(fits) == [A, B]
    yield fits


@yields("subscriber/turns")
def test_a_single_key_that_does_not_fit_stays_first() -> Iterator[BlockVector]:
    network = SmallNetwork()
    network.subscribe(ALPHA, [A])
    network.publish(ALPHA, [A], bytes(600))
    network.seal()
    for number, crowded in enumerate((False, False, True)):
        part = about(f"alone/{number}", "a single key that does not fit: the cursor stays with it")
        yield network.block(part, budget=of_bytes(500), crowded=crowded, seal=False)


def about(name: str, why: str) -> About:
    return About(f"turns/{name}", why, VectorSource(invariant=3))


def test_one_long_key_costs_the_others_a_block_a_round() -> None:
    """Everybody rewrites everything in every block; between two blocks that the long key cost, all others are told."""
    world, told = crowd(), ChangesTold()
    others = {(publisher, wanted) for publisher in (ALPHA, GAMMA) for wanted in world.handler.wanted[publisher]}
    lost = 0
    seen: set[Cursor] = set()
    for number in range(60):
        for publisher in (ALPHA, BETA, GAMMA):
            write(world, publisher, number)
        told.note(world)
        block = world.block(BUDGET)
        all_hold(world, block, told)
        assert LONG not in block.called
        assert block.calls or block.result.beyond_budget == LONG
        seen.update(block.called)
        if passed_over(world):
            assert not lost or seen == others
            lost += 1
            seen.clear()
    assert lost > 5


def test_a_change_that_is_taken_back_while_a_key_is_passed_over_is_not_told() -> None:
    world, told = crowd(), ChangesTold()
    all_hold(world, world.block(), told)
    before = world.entry(*LONG)
    assert before is not None
    world.publish(BETA, DEEP[:1], bytes(999))
    for publisher in (ALPHA, GAMMA):
        write(world, publisher, 7)
    for _ in range(12):
        all_hold(world, world.block(BUDGET), told)
    assert passed_over(world)
    child = next(info for info in world.relay.children() if BETA.encode() in info.storage_key)
    world.relay.child(child).put(DEEP[0], before)
    block = world.block()
    all_hold(world, block, told)
    assert (block.called, block.result.is_complete) == ([], True)


def test_without_a_cursor_a_pass_that_gets_nowhere_is_tried_again() -> None:
    """A full block leaves the cursor at the first key; only when that key has had its turn the next one comes."""
    world = crowd()
    first, second = [(ALPHA, wanted) for wanted in world.handler.wanted[ALPHA][:2]]
    assert world.block(0).result.turn == Turn(first, first)
    assert passed_over(world) == []
    assert world.block(0).result.turn == Turn(first, second, is_passed_over=True)
    assert passed_over(world) == [KeyBeyondBudget(*first, bytes_read=0)]


# Messages.

WHOLE = 3_000
"""A budget that holds any key, and not all of them."""


def test_a_key_that_messages_left_no_room_for_comes_first_once_there_is_room() -> None:
    world = crowd()
    world.storage.relay_proof_processing_cursor.put(LONG)
    flooded = world.block(WHOLE, flood=WHOLE - BUDGET)
    following = (GAMMA, world.handler.wanted[GAMMA][0])
    assert flooded.result.turn == Turn(LONG, following, LONG, is_passed_over=True)
    assert world.storage.deferred_key.get() == LONG
    again = world.block(WHOLE, flood=WHOLE - 600, seal=False)
    assert LONG not in again.called
    assert again.result.plan.cursor == following
    assert again.result.turn.deferred_key == LONG
    free = world.block(WHOLE, seal=False)
    assert free.called[0] == LONG
    assert not world.storage.deferred_key.exists()


@yields("subscriber/turns")
def test_crowded_blocks_and_free_ones_go_round_apart_until_one_round_has_covered_the_other() -> Iterator[BlockVector]:
    network = values(ALPHA, BETA, GAMMA, wanted=2, size=0)
    whole = costs(network.honest(about("", ""), seal=False))
    for number, (share, crowded) in enumerate(
        ((0, True), (0, True), (0, True), (3, True), (9, False), (0, True), (12, False), (5, True), (40, False))
    ):
        part = about(f"crowded-rounds/{number}", f"block {number}: {'crowded' if crowded else 'with the whole budget'}")
        budget = of_bytes(whole[min(share, len(whole)) - 1] if share else 0)
        yield network.block(part, budget=budget, crowded=crowded, seal=False)


def starving(world: World, target: Cursor, *, rest: int) -> Iterator[Block]:
    """Flood every block in which ``target`` would be delivered, but let each ``rest``-th block be without messages.

    Meanwhile the other publishers rewrite everything in every block, so that no pass is ever complete.
    """
    floods = 0
    for number in range(80):
        for publisher in world.handler.wanted:
            if publisher != target[0]:
                write(world, publisher, number)
        world.seal()
        would = world.prune(WHOLE)[1]
        delivered = {key for change in would.changes for key, _ in change.changed if change.para_id == target[0]}
        flood = WHOLE - BUDGET if target[1] in delivered and floods < rest else 0
        floods = floods + 1 if flood else 0
        yield world.block(WHOLE, flood=flood, seal=False)


def blocks_until_told(world: World, target: Cursor, *, rest: int) -> int:
    for number, block in enumerate(starving(world, target, rest=rest)):
        if target in block.called:
            return number
    return 1_000


@pytest.mark.parametrize("rest", [1, 2, 5])
def test_nobody_can_flood_a_key_out_of_its_turn(rest: int) -> None:
    """Whoever sends messages or picks relay parents knows when it is the key's turn: it is owed until there is room."""
    world = crowd(count=24)
    assert blocks_until_told(world, LONG, rest=rest) <= 30


@pytest.mark.parametrize("rest", [2, 5])
def test_a_cursor_that_only_moves_on_could_be_flooded_away(rest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a pass that is crowded owes nothing. One flooded block a round keeps the key from its turn."""
    after = FairCursor.after

    def forgetful(self: FairCursor, stopped_at: Cursor | None) -> Turn:
        return after(self, stopped_at)._replace(deferred_key=None)

    monkeypatch.setattr(FairCursor, "after", forgetful)
    assert blocks_until_told(crowd(count=24), LONG, rest=rest) == 1_000


# Any keys, any messages.

SHORT = keys(5)
STAIRS = [staircase(depth, subscribed=path_key(f"{depth}")) for depth in (3, 5, 8)]
POOL = [*SHORT, *(steps[0] for steps in STAIRS)]


@st.composite
def networks(draw: st.DrawFn) -> World:
    """Return a world of short, deep and long keys, all of them new, from one to three publishers."""
    world = World(config=replace(MOCK, max_value_length=600), policies=draw(st.sampled_from([NUMERIC, Policies()])))
    for publisher in draw(st.lists(st.sampled_from([ALPHA, BETA, PUBLIC]), min_size=1, max_size=3, unique=True)):
        world.subscribe(publisher, draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=5, unique=True)))
        for steps in draw(st.lists(st.sampled_from(STAIRS), max_size=2, unique_by=len)):
            world.publish(publisher, steps, bytes(30))
        rewrite(world, publisher, draw(st.integers(0, 99)))
    return world


def rewrite(world: World, publisher: ParaId, number: int) -> None:
    """Give the keys of a publisher new values, short and long."""
    chance = Random(f"{publisher} {number}")
    for wanted in world.handler.wanted[publisher]:
        world.publish(publisher, [wanted], chance.randbytes(chance.choice([10, 40, 300, 600])))


@given(
    world=networks(),
    budget=st.integers(600, 3_000),
    floods=st.lists(st.floats(0, 1) | st.just(0.0), min_size=4, max_size=14),
    later=st.lists(st.floats(0, 1) | st.just(0.0), min_size=1, max_size=10),
)
def test_every_key_that_fits_a_block_without_messages_is_told(
    world: World, budget: int, floods: list[float], later: list[float]
) -> None:
    """Nothing is told twice while all is rewritten; once it stands still, as many such blocks as keys will do."""
    told = ChangesTold()
    publishers = list(world.handler.wanted)
    for number, share in enumerate(floods):
        told.note(world)
        all_hold(world, world.block(budget, flood=int(budget * share), seed=b"%d" % number), told)
        rewrite(world, publishers[number % len(publishers)], 100 + number)
    world.seal()
    everything = [(publisher, wanted) for publisher in publishers for wanted in world.handler.wanted[publisher]]
    free = 0
    for number in range(1_000):
        share = later[number % len(later)] if number % 3 else 0.0
        block = world.block(budget, flood=int(budget * share), seed=b"%d" % number, seal=False)
        all_hold(world, block, told)
        free += not block.outcome.abridged.reduced_by_messages
        if free > len(everything):
            break
    for publisher, wanted in everything:
        entry = world.entry(publisher, wanted)
        assert entry is not None
        if cost_of(world, (publisher, wanted)) <= budget:
            assert world.handler.values.get((publisher, wanted)) == PublishedEntry.decode(entry).value


# Two rounds, cursor by cursor.

(A1, A2, A3), (B1, B2) = [(ALPHA, it) for it in SHORT[:3]], [(BETA, it) for it in SHORT[:2]]


def turns(cursor: Cursor | None, deferred: Cursor | None = None, *, reduced: bool = False) -> FairCursor:
    """Return the turns of a pass over three keys of one publisher and two of another."""
    world = World()
    world.subscribe(ALPHA, SHORT[:3])
    world.subscribe(BETA, SHORT[:2])
    views = world.subscriber.plan().views
    return FairCursor(views, cursor, deferred, [ALPHA, BETA], reduced_by_messages=reduced)


@pytest.mark.parametrize(
    ("cursor", "owed", "crowded", "begin"),
    [
        (None, None, False, None),
        (A2, None, True, A2),
        (A2, B1, True, A2),  # a crowded pass begins at the cursor
        (A2, B1, False, B1),  # one with the whole budget where a key is owed
        ((GAMMA, SHORT[0]), B1, True, B1),  # a cursor whose publisher is gone
        (A2, (ALPHA, key("gone")), False, A2),
        ((ALPHA, key("gone")), None, False, None),
    ],
)
def test_where_a_pass_begins(cursor: Cursor | None, owed: Cursor | None, crowded: bool, begin: Cursor | None) -> None:
    made = turns(cursor, owed, reduced=crowded)
    assert made.begin == begin
    dealt = [(view.para_id, wanted) for view, low, high in made.work for wanted in view.subscribed.keys[low:high]]
    every = [A1, A2, A3, B1, B2]
    at = 0 if begin is None else every.index(begin)
    assert dealt == every[at:] + every[:at]


@pytest.mark.parametrize(
    ("cursor", "owed", "crowded", "stopped_at", "turn"),
    [
        (None, None, False, A1, Turn(A1, A1)),
        (A2, None, False, B1, Turn(B1, B1)),
        (A2, None, False, A2, Turn(A2, A3, None, is_passed_over=True)),
        (A3, None, False, A3, Turn(A3, B1, None, is_passed_over=True)),  # on to the next publisher
        (B2, None, False, B2, Turn(B2, A1, None, is_passed_over=True)),  # around the end
        (A2, None, True, A2, Turn(A2, A3, A2, is_passed_over=True)),  # the rounds part
        (A2, A1, True, B2, Turn(B2, B2, A1)),  # the crowded round goes on alone
        (A2, A1, True, A2, Turn(A2, A3, A1, is_passed_over=True)),
        (B2, A1, True, A2, Turn(A2, A2)),  # it has covered what is owed
        (B2, A1, True, A1, Turn(A1, A1)),  # it has come to it
        (B1, A1, False, A3, Turn(A3, B1, A3)),  # the round of the whole budget goes on alone
        (B1, A1, False, A1, Turn(A1, B1, A2, is_passed_over=True)),
        (A2, A1, False, A1, Turn(A1, A2, None, is_passed_over=True)),  # it has come to the cursor
        (A2, A1, False, B1, Turn(B1, B1)),  # it has covered the cursor
        (A2, A1, False, None, Turn(None, None)),
    ],
)
def test_where_the_next_passes_begin(
    cursor: Cursor | None, owed: Cursor | None, crowded: bool, stopped_at: Cursor | None, turn: Turn
) -> None:
    assert turns(cursor, owed, reduced=crowded).after(stopped_at) == turn


STORED: list[tuple[str, Cursor, Cursor | None]] = [
    ("a1", (ALPHA, A), None),
    ("a2", (ALPHA, B), None),
    ("b2", (BETA, B), None),
    ("publisher-gone", (GAMMA, A), None),
    ("key-gone", (ALPHA, key("gone")), None),
    ("publisher-gone-owed", (GAMMA, A), (BETA, A)),
    ("owed-gone", (ALPHA, B), (ALPHA, key("gone"))),
    ("both-gone", (GAMMA, A), (ALPHA, key("gone"))),
    ("a2-owed-a1", (ALPHA, B), (ALPHA, A)),
    ("b2-owed-a1", (BETA, B), (ALPHA, A)),
    ("b1-owed-a1", (BETA, A), (ALPHA, A)),
    ("a1-owed-b2", (ALPHA, A), (BETA, B)),
    ("a3-owed-a3", (ALPHA, C), (ALPHA, C)),
]
"""Cursors and owed keys that a pass may find; some of them lead nowhere."""


@pytest.mark.parametrize(("name", "cursor", "owed"), STORED, ids=[name for name, _, _ in STORED])
@yields("subscriber/turns")
def test_a_pass_goes_on_from_the_cursors_that_it_finds(
    name: str, cursor: Cursor, owed: Cursor | None
) -> Iterator[BlockVector]:
    for crowded in (False, True) if owed else (False,):
        for reads in (None, 0, 6):
            network = SmallNetwork()
            for publisher, count in ((ALPHA, 3), (BETA, 2)):
                network.subscribe(publisher, K[:count])
                for each in K[:count]:
                    network.publish(publisher, [each], (str(publisher).encode() + each) * 2)
            network.seal()
            network.put_turn(cursor, owed)
            ends = "all" if reads is None else str(reads)
            why = f"cursors {name}, {'crowded' if crowded else 'the whole budget'}, {ends} reads fit"
            part = about(f"stored/{name}/{'crowded' if crowded else 'free'}-{ends}", why)
            paid = [0, *costs(network.honest(part, crowded=crowded, seal=False))]
            budget = AMPLE if reads is None else of_bytes(paid[reads])
            yield network.block(part, budget=budget, crowded=crowded, seal=False)


@yields("subscriber/turns")
def test_the_order_of_publishers_is_kept_until_a_pass_is_complete() -> Iterator[BlockVector]:
    network = values(PUBLIC, OTHER_PUBLIC, ParaId(2_005), wanted=1, size=0)
    whole = costs(network.honest(about("", ""), seal=False))
    for number, reads in enumerate((5, 6, len(whole))):
        part = about(f"kept-order/{number}", "a pass that goes on keeps the order of the one that was cut short")
        yield network.block(part, budget=of_bytes(whole[reads - 1]), seed=bytes([number + 1]), seal=False)
    for publisher in (PUBLIC, OTHER_PUBLIC):
        network.publish(publisher, [A], b"drawn anew")
    yield network.block(about("kept-order/anew", "after a complete pass the block's own seed shuffles"), seed=b"\x09")
