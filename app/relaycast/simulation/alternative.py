"""The cheaper alternative: whether the other cache policy would make a run's blocks smaller.

Law: it is measured, never predicted: the first blocks of the scenario run again under the other policy, and the same
blocks of both are compared. How many follows from the scenario alone, so that equal scenarios tell the same.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import Alternative, Outcome, Point, ReaderAlternative

OTHER_CACHE = {"structure": "none", "none": "structure"}

PROBED_BLOCKS = 24
"""Relay blocks that run again."""

FEWEST_BLOCKS = 8
"""With fewer after the first delivery nothing is said."""

MOST_KEY_BLOCKS = 20_000
"""Subscribed keys times blocks that run again: a large scenario runs fewer blocks, so that it takes no second."""


class Probe(NamedTuple):
    """What the first blocks of a scenario come to under the other policy: figures of each block, by reader."""

    points: dict[int, Sequence[Point]]
    told_again: int
    violations: int


def with_alternative(run: Outcome, simulation: Simulation, probe: Callable[[], Probe] | None = None) -> Outcome:
    """Return the simulation's ``run`` with figures of the other cache policy, if it has enough blocks for them.

    An upgrade among them may replace the policy: then ``run`` is unchanged. ``probe`` is where it was run elsewhere.
    """
    scenario = simulation.scenario
    last = probed_blocks(scenario, sum(it.keys for it in run.subscribers))
    first = _first_delivery(run)
    if first is None or last - first + 1 < FEWEST_BLOCKS or any(it.at <= last for it in run.upgrades or ()):
        return run
    theirs = probed(simulation, last) if probe is None else probe()
    readers = [
        ReaderAlternative(
            para_id=it.para_id,
            pov_bytes=_carried(run.series[it.para_id], first, last),
            its_pov_bytes=_carried(theirs.points[it.para_id], first, last),
        )
        for it in run.subscribers
    ]
    return replace(
        run,
        alternative=Alternative(
            policy=f"cache={OTHER_CACHE[scenario.policies.cache]}",
            first_block=first,
            last_block=last,
            pov_bytes=sum(it.pov_bytes for it in readers),
            its_pov_bytes=sum(it.its_pov_bytes for it in readers),
            its_told_again=theirs.told_again,
            violations=theirs.violations,
            readers=readers,
        ),
    )


def probed_blocks(scenario: Scenario, keys: int) -> int:
    """Return how many blocks of a scenario run again, by its number of subscribed ``keys``."""
    return min(PROBED_BLOCKS, scenario.blocks, MOST_KEY_BLOCKS // max(1, keys))


def probed(simulation: Simulation, last: int) -> Probe:
    """Run the blocks of another simulation up to ``last`` under the other policy."""
    scenario = simulation.scenario
    policies = replace(scenario.policies, cache=OTHER_CACHE[scenario.policies.cache])
    scenario = replace(scenario, policies=policies, blocks=last)
    again = Simulation.prepare(scenario, trie_engine=simulation.chains.trie_engine)
    again.network.ledger.compresses = False
    for _ in again.blocks():
        pass
    tally = again.tally
    return Probe(
        {chain.id: tally.of(chain.id).points for chain in scenario.subscribers()},
        sum(it.told_again for it in tally.subscribers.values()),
        len(again.network.ledger.invariants.violations),
    )


def _first_delivery(run: Outcome) -> int | None:
    """Return the first relay block with a callback that charts show."""
    firsts = (next((it.block for it in points if it.callbacks), None) for points in run.series.values())
    return min((block for block in firsts if block is not None), default=None)


def _carried(points: Sequence[Point], first: int, last: int) -> int:
    """Return the bytes of the blocks in these relay blocks, before compression."""
    return sum(it.pov_bytes for it in points if first <= it.block <= last)
