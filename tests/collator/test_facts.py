"""What chains tell, in which order, and that nobody's listening changes anything."""

from itertools import groupby

from collator.networks import OTHER_SUBSCRIBER, PUBLISHER, SUBSCRIBER, keys, values
from relaycast_collator import (
    BlockBuilt,
    BlockPanicked,
    ChainSimulator,
    Fact,
    MessagesQueued,
    MessagesRefused,
    Pace,
    ParachainLeft,
    RelaySealed,
    TickBegan,
)
from relaycast_pallets.messaging.relay_queues import MAX_WAITING_BYTES
from relaycast_xcm import ParaId


def chains(**pace: int) -> ChainSimulator:
    made = ChainSimulator(seed=7)
    made.add_parachain(PUBLISHER)
    made.register_publisher(PUBLISHER)
    made.add_parachain(SUBSCRIBER, pace=Pace(**pace))
    made.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    return made


def passed(made: ChainSimulator, ticks: int) -> list[Fact]:
    facts: list[Fact] = []
    for tick in range(ticks):
        for name, data in values(3, version=tick).items():
            made.parachains[PUBLISHER].publish(name, data)
        facts += made.step()
    return facts


def test_a_tick_tells_its_facts_in_the_order_in_which_they_happen() -> None:
    kinds = [type(fact) for fact in passed(chains(cores=2), 3)]
    built = [BlockBuilt] * 3  # one of the publisher, two of the subscriber
    first = [TickBegan, RelaySealed, *built]
    later = [TickBegan, MessagesQueued, RelaySealed, *built]
    assert kinds == [*first, *later, *later]


def test_each_block_is_told_once_and_follows_on_the_one_before() -> None:
    facts = passed(chains(cores=3, relay_parent_offset=2), 8)
    sealed = [fact for fact in facts if isinstance(fact, RelaySealed)]
    assert [fact.block.header.parent_hash for fact in sealed] == [fact.parent.hash for fact in sealed]
    assert [fact.block.number for fact in sealed] == list(range(1, 9))
    built = sorted((fact for fact in facts if isinstance(fact, BlockBuilt)), key=lambda fact: fact.para_id)
    for _, blocks in groupby(built, key=lambda fact: fact.para_id):
        numbers = [fact.block.header.number for fact in blocks]
        assert numbers == list(range(1, len(numbers) + 1))


def test_listeners_change_no_block() -> None:
    heard: list[Fact] = []
    alone, listened_to = chains(), chains()
    listened_to.listeners.append(heard.append)
    one, other = passed(alone, 6)[-1], passed(listened_to, 6)[-1]
    assert isinstance(one, BlockBuilt)
    assert isinstance(other, BlockBuilt)
    assert one.block.header == other.block.header
    assert alone.relay_chain.head == listened_to.relay_chain.head
    assert len(heard) > 6 * 3


def test_a_listener_sees_the_chains_as_the_fact_leaves_them() -> None:
    made = chains(cores=2)
    seen: list[tuple[int, int]] = []

    def look(fact: Fact) -> None:
        if isinstance(fact, BlockBuilt) and fact.para_id == SUBSCRIBER:
            seen.append((fact.block.header.number, made.parachains[SUBSCRIBER].head.number))

    made.listeners.append(look)
    passed(made, 4)
    assert seen == [(number, number) for number in range(1, 9)]


def test_a_parachain_that_leaves_is_told_and_tells_no_more() -> None:
    made = chains()
    passed(made, 2)
    made.offboard(PUBLISHER)
    told: list[Fact] = made.step()
    assert told[0] == ParachainLeft(2, PUBLISHER)
    assert {fact.para_id for fact in told if isinstance(fact, BlockBuilt)} == {SUBSCRIBER}


def test_messages_beyond_the_queue_are_told_as_refused() -> None:
    made = chains()
    made.add_parachain(OTHER_SUBSCRIBER)
    made.traffic[ParaId(OTHER_SUBSCRIBER)] = lambda _tick: ((bytes(MAX_WAITING_BYTES), bytes(7)), ())
    (refused,) = [fact for fact in made.step() if isinstance(fact, MessagesRefused)]
    assert refused == MessagesRefused(1, OTHER_SUBSCRIBER, 7)


def test_a_refused_block_is_told_with_the_head_that_stays() -> None:
    made = chains()
    made.collators[SUBSCRIBER].tamper = lambda inherent: type(inherent)(inherent.validation_data, ())
    before = made.parachains[SUBSCRIBER].head
    (panicked,) = [fact for fact in made.step() if isinstance(fact, BlockPanicked)]
    assert panicked.head == before == made.parachains[SUBSCRIBER].head
    assert not panicked.honest
    assert panicked.reason
