"""Starved readers: who is not given what it subscribes to, from the records of its blocks."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from relaycast.scenario.policy_choice import with_overrides
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import BLOCKS_BEHIND, Starvation, starvation

FED, CUT, NOTHING = (1, 1, 0, 0), (1, 0, 1, 0), (0, 0, 1, 0)
"""A block with a value that was complete, one with a value that was cut short, one cut short without a value."""

QUIET = (0, 0, 0, 0)
"""A block that was cut short and had nothing to give."""


def judged(*blocks: tuple[tuple[int, int, int, int], int]) -> Starvation | None:
    return starvation(block for block, count in blocks for _ in range(count))


@pytest.mark.parametrize(
    ("blocks", "starved"),
    [
        (((FED, 20),), None),
        (((QUIET, 40),), None),
        (((CUT, 10), (FED, 10)), None),
        (((CUT, 11), (FED, 10)), True),
        (((CUT, 9),), False),
        (((CUT, 10),), True),
        (((FED, 30), (NOTHING, 9), (FED, 1), (NOTHING, 9)), None),
        (((FED, 30), (NOTHING, 5), (QUIET, 5), (NOTHING, 5)), True),
        (((FED, 30), (NOTHING, 9), (QUIET, 9)), None),
        (((FED, 30), ((1, 0, 1, 1), 1)), True),
        (((FED, 30), ((1, 0, 1, 1), 1), (FED, 1)), None),
    ],
)
def test_a_reader_starves_by_blocks_in_which_it_had_something_to_receive(
    blocks: tuple[tuple[tuple[int, int, int, int], int], ...], starved: bool | None
) -> None:
    found = judged(*blocks)
    assert (None if found is None else found.is_starved) is starved


def scenario(*, changed: int | None = None, every: int = 1, blocks: int = 40) -> Scenario:
    publish = PublishTable(keys=60, changed=changed, every=every)
    return Scenario(
        parachains=[
            ParachainTable(id=2_000, publish=publish),
            ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)]),
            ParachainTable(id=3_001, subscribe=[SubscriptionTable(publisher=2_000, keys=1)]),
        ],
        blocks=blocks,
    )


def judgements(given: Scenario, budget: str) -> Iterator[Starvation | None]:
    simulation = Simulation.prepare(replace(given, policies=with_overrides(given.policies, [f"budget={budget}"])))
    simulation.run()
    for para_id in (3_000, 3_001):
        yield simulation.tally.of(para_id).starvation


def test_a_budget_that_holds_a_few_of_many_new_keys_starves_the_reader_of_all_and_not_that_of_one() -> None:
    all_keys, one_key = judgements(scenario(), "remaining:5KiB")
    assert all_keys is not None
    assert all_keys.is_starved
    assert all_keys.blocks == all_keys.cut_short > BLOCKS_BEHIND
    assert one_key is None


def test_a_budget_below_any_key_leaves_readers_without_a_value_and_behind() -> None:
    found, _ = judgements(scenario(), "remaining:1KiB")
    assert found is not None
    assert found.is_starved
    assert found.is_behind
    assert found.blocks_without >= 10


def test_a_publisher_that_is_silent_starves_no_one() -> None:
    assert list(judgements(scenario(every=39), "remaining:64KiB")) == [None, None]


def test_a_run_too_short_to_tell_is_said_to_be_that() -> None:
    found, _ = judgements(scenario(blocks=8), "remaining:5KiB")
    assert found is not None
    assert not found.is_starved
    assert found.cut_short == found.blocks < 8
