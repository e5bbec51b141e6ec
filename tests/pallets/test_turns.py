"""Keys that do not fit: they cost the others a block a round and stay owed, whatever messages take of the blocks."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.subscriber_invariants import ChangesTold, all_hold, hashed_paths, nothing_is_lost
from pallets.subscriber_world import ALPHA, BETA, GAMMA, MOCK, PUBLIC, Block, World, key, keys, path_key, staircase
from relaycast_pallets import KeyBeyondBudget, Policies, PublishedEntry
from relaycast_pallets.subscriber.plan import Cursor, SubscriberPlan
from relaycast_pallets.subscriber.policies import SystemFirstNumeric
from relaycast_pallets.subscriber.turns import Turn, Turns
from relaycast_xcm.primitives import ParaId

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


def test_a_key_that_does_not_fit_lets_the_next_one_go_first() -> None:
    world = crowd()
    while world.block(BUDGET).result.stopped_at != LONG:
        assert passed_over(world) == []
    assert world.storage.relay_proof_processing_cursor.get() == LONG
    block = world.block(BUDGET)
    assert (block.result.stopped_at, block.result.beyond_budget) == (LONG, LONG)
    assert block.result.cursor == world.storage.relay_proof_processing_cursor.get()
    assert block.result.cursor == (GAMMA, world.handler.wanted[GAMMA][0])
    read = sum(read.size for read in block.result.reads)
    assert passed_over(world) == [KeyBeyondBudget(BETA, DEEP[0], read)]
    assert 0 < read <= BUDGET


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


def test_a_key_that_was_passed_over_is_told_once_it_fits() -> None:
    """It keeps what it was last dealt with against: it is told once, and the others are not told again."""
    world, told = crowd(), ChangesTold()
    for _ in range(12):
        all_hold(world, world.block(BUDGET), told)
    assert len(told.told) == 12
    block = world.block(1 << 20)
    all_hold(world, block, told)
    assert block.called == [LONG]
    assert block.result.is_complete
    nothing_is_lost(world)


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
    assert world.storage.owed_key.get() == LONG
    again = world.block(WHOLE, flood=WHOLE - 600, seal=False)
    assert LONG not in again.called
    assert again.result.plan.owed == LONG
    assert again.result.turn.owed == LONG
    free = world.block(WHOLE, seal=False)
    assert free.called[0] == LONG
    assert not world.storage.owed_key.exists()


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
    after = Turns.after

    def forgetful(self: Turns, stopped_at: Cursor | None) -> Turn:
        return after(self, stopped_at)._replace(owed=None)

    monkeypatch.setattr(Turns, "after", forgetful)
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
        free += not block.outcome.abridged.crowded
        if free > len(everything):
            break
    for publisher, wanted in everything:
        entry = world.entry(publisher, wanted)
        assert entry is not None
        if cost_of(world, (publisher, wanted)) <= budget:
            assert world.handler.values.get((publisher, wanted)) == PublishedEntry.decode(entry).value


# Two rounds, cursor by cursor.

(A1, A2, A3), (B1, B2) = [(ALPHA, it) for it in SHORT[:3]], [(BETA, it) for it in SHORT[:2]]


def turns(cursor: Cursor | None, owed: Cursor | None = None, *, crowded: bool = False) -> Turns:
    """Return the turns of a pass over three keys of one publisher and two of another."""
    world = World()
    world.subscribe(ALPHA, SHORT[:3])
    world.subscribe(BETA, SHORT[:2])
    plan = world.subscriber.plan()
    return Turns(SubscriberPlan(plan.views, cursor, None, owed), [ALPHA, BETA], crowded=crowded)


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
    made = turns(cursor, owed, crowded=crowded)
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
    assert turns(cursor, owed, crowded=crowded).after(stopped_at) == turn


def test_a_single_key_that_does_not_fit_stays_first() -> None:
    world = World()
    world.subscribe(ALPHA, SHORT[:1])
    plan = world.subscriber.plan()
    for crowded in (False, True):
        made = Turns(SubscriberPlan(plan.views, A1, None), [ALPHA], crowded=crowded)
        assert made.after(A1) == Turn(A1, A1, None, is_passed_over=True)
