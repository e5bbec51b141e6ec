"""Whole systems under trouble: each subscriber gets what its filter and skip say, once, in the order of its chains."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.simulated_subscriber import SimulatedSubscriber
from gateway.icrc.simulation import NAMESPACES, Simulation, in_order
from gateway.icrc.simulation_plan import SimulationPlan
from long_hauls import soak
from relaycast_gateway.icrc.names import EPOCH_CLOSED
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from searches import examples


def check(simulation: Simulation) -> None:
    """Compare what all handlers saw with the log."""
    chains = simulation.chains()
    for (_, source, _), ids in chains.items():
        assert all(one < other for one, other in pairwise(ids)), source
    for subscriber in simulation.subscribers:
        seen = simulation.counted(subscriber)
        assert not {key: count for key, count in seen.items() if count > 1}, subscriber.principal
        assert seen == simulation.expected(subscriber), subscriber.principal
        for stream in (subscriber.live, subscriber.replayed):
            assert list(in_order(stream, chains)) == [], subscriber.principal
        check_replay(simulation, subscriber)
        if subscriber.filter is None and (subscriber.skip is None or subscriber.skip.mod == 1):
            assert list(between_epochs(subscriber.live)) == [], subscriber.principal
    assert [publisher.waiting for publisher in simulation.publishers] == [0] * len(simulation.publishers)


def check_replay(simulation: Simulation, subscriber: SimulatedSubscriber) -> None:
    """Check that an open replay is known to be complete by its last event: a crash makes a subscriber forget that."""
    if subscriber.asked is None or subscriber.has_crashed:
        return
    last = [record for record in simulation.records() if simulation.is_replayed(subscriber, record)]
    if subscriber.asked[2] is None and last:
        (progress,) = subscriber.ended
        assert progress.replay_id == subscriber.replay
        assert (progress.is_complete, progress.end_id) == (True, last[-1].event_id)
        assert progress.received >= len(last)


def between_epochs(seen: Sequence[NotifiedEvent]) -> Iterator[str]:
    """Yield a line for each event that came after the close-out of its epoch: ids increase with epochs."""
    closed: dict[tuple[str, bytes], int] = {}
    for event in seen:
        key = event.namespace, event.source
        if event.event_id < closed.get(key, -1):
            yield f"event {event.text_id} of {key} came after the close-out {closed[key]}"
        if event.header(EPOCH_CLOSED) is not None:
            closed[key] = event.event_id


def run(plan: SimulationPlan) -> str:
    """Run and check, and return the digest."""
    simulation = Simulation(plan)
    try:
        simulation.run()
        check(simulation)
        return simulation.digest()
    finally:
        simulation.close()


@pytest.mark.matrix("ICRC72-10")
@pytest.mark.matrix("ICRC77-19")
@pytest.mark.matrix("ICRC77-43")
@settings(max_examples=examples(10))
@given(
    st.builds(
        SimulationPlan,
        seed=st.integers(0, 2**32),
        subscribers=st.integers(1, 12),
        events=st.integers(1, 25),
        publishers=st.integers(1, 3),
        broadcasters=st.integers(1, 3),
        seconds=st.sampled_from([1.0, 30.0]),
        slow=st.sampled_from([0.0, 0.3]),
        crashes=st.sampled_from([0.0, 0.5]),
        outages=st.integers(0, 3),
        restarts=st.integers(0, 2),
        replays=st.sampled_from([0.0, 0.5, 1.0]),
    )
)
def test_each_subscriber_gets_exactly_its_events_in_order_whatever_fails(plan: SimulationPlan) -> None:
    run(plan)


@pytest.mark.slow
def test_a_thousand_subscribers_get_exactly_their_events_in_order() -> None:
    run(SimulationPlan(0, subscribers=1_000, events=30))


@soak(rounds=20)
def test_a_thousand_subscribers_get_exactly_their_events_in_order_whatever_fails(soak_round: int) -> None:
    run(SimulationPlan(1 + soak_round, subscribers=1_000, events=30))


def test_the_same_seed_gives_the_same_run() -> None:
    plan = SimulationPlan(7, subscribers=8, events=15)
    assert run(plan) == run(plan) != run(replace(plan, seed=8))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_in_another_process() -> None:
    program = "from gateway.icrc.test_simulation import *; print(run(SimulationPlan(7, subscribers=30, events=40)))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(digests) == 1


def walked(seen: Sequence[NotifiedEvent]) -> list[int]:
    """Follow the links of a chain from its last event to its first, and return the ids in that order."""
    by_id = {event.event_id: event for event in seen}
    at: int | None = seen[-1].event_id
    found: list[int] = []
    while at is not None:
        found.append(at)
        assert len(found) <= len(seen), "the chain runs in a circle"
        at = by_id[at].prev_id
    return found


@pytest.mark.parametrize(
    ("publishers", "broadcasters", "events"),
    [
        pytest.param(1, 1, 10_000, marks=[pytest.mark.matrix("ICRC72-07"), pytest.mark.slow]),
        pytest.param(1, 1, 1_000, marks=pytest.mark.matrix("ICRC72-07")),
        pytest.param(1, 2, 400, marks=pytest.mark.matrix("ICRC72-08")),
        pytest.param(3, 2, 200, marks=pytest.mark.matrix("ICRC72-09")),
    ],
)
def test_each_partition_of_each_publisher_is_one_chain_without_a_gap(
    publishers: int, broadcasters: int, events: int
) -> None:
    """A subscriber that is slow, a broadcaster that is killed in the middle: nothing is missing in any chain."""
    plan = SimulationPlan(
        1,
        subscribers=2,
        events=events,
        publishers=publishers,
        broadcasters=broadcasters,
        epochs=0,
        late=0,
        selective=0,
        slow=1,
        trusted=0,
        crashes=0,
        replays=0,
        notifications_a_call=64,
        restarts=1,
    )
    simulation = Simulation(plan)
    try:
        for subscriber in simulation.subscribers:
            subscriber.namespace = "sim.*"
        simulation.run()
        assert simulation.ended["restarts"] == 1
        chains = simulation.chains()
        assert len(chains) == len(NAMESPACES) * publishers * broadcasters
        assert sum(map(len, chains.values())) == publishers * events
        for subscriber in simulation.subscribers:
            assert len(subscriber.seen) == publishers * events
            for key, ids in chains.items():
                own = [event for event in subscriber.seen if (event.namespace, *event.chain) == key]
                assert walked(own) == ids[::-1]
                assert {each % broadcasters for each in ids} == {ids[0] % broadcasters}
    finally:
        simulation.close()
