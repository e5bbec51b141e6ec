"""The cheaper alternative: whether the other cache policy would make a run's blocks smaller.

Law: it is measured, never predicted: the first blocks of the scenario run again under the other policy, and the same
blocks of both are compared. Of many readers only those with most keys build blocks again, so that it takes less than a
second, or a small part of a run. How many follows from the scenario alone, so that equal scenarios tell the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import Alternative, Outcome, Point, ReaderAlternative
from relaycast_xcm import ParaId

OTHER_CACHE = {"structure": "none", "none": "structure"}

PROBED_BLOCKS = 24
"""Relay blocks that run again."""

FEWEST_BLOCKS = 8
"""With fewer after the first delivery nothing is said."""

MOST_KEY_BLOCKS = 20_000
"""Subscribed keys times blocks that run again: a large scenario runs fewer blocks, so that it takes no second."""


MOST_READER_BLOCKS = 200
"""Readers times blocks that run again: they take about half a second."""


class Probing(NamedTuple):
    """Whose blocks run again, up to relay block ``last``."""

    readers: list[int]
    last: int


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
    again = probing(scenario, {it.para_id: it.keys for it in run.subscribers})
    last = again.last
    first = _first_delivery(run)
    if first is None or last - first + 1 < FEWEST_BLOCKS or any(it.at <= last for it in run.upgrades or ()):
        return run
    theirs = probed(simulation, again) if probe is None else probe()
    readers = [
        ReaderAlternative(
            para_id=it.para_id,
            pov_bytes=_carried(run.series[it.para_id], first, last),
            its_pov_bytes=_carried(theirs.points[it.para_id], first, last),
        )
        for it in run.subscribers
        if it.para_id in theirs.points
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


def probing(scenario: Scenario, keys: Mapping[int, int]) -> Probing:
    """Return what runs again of a scenario whose readers subscribe to so many ``keys``."""
    blocks = min(PROBED_BLOCKS, scenario.blocks)
    readers = sorted(keys, key=lambda para_id: -keys[para_id])[: max(1, MOST_READER_BLOCKS // blocks)]
    return Probing(readers, min(blocks, MOST_KEY_BLOCKS // max(1, sum(keys[para_id] for para_id in readers))))


def probed(simulation: Simulation, probing: Probing) -> Probe:
    """Run blocks of another simulation under the other policy; of other readers that can be left out, none."""
    scenario = simulation.scenario
    policies = replace(scenario.policies, cache=OTHER_CACHE[scenario.policies.cache])
    scenario = replace(scenario, policies=policies, blocks=probing.last)
    again = Simulation.prepare(scenario, trie_engine=simulation.chains.trie_engine, sources=simulation.sources)
    again.chains.elsewhere = {ParaId(it.id) for it in again.pure_readers} - {*map(ParaId, probing.readers)}
    again.network.ledger.compresses = False
    for _ in again.blocks():
        pass
    tally = again.tally
    return Probe(
        {para_id: tally.of(para_id).points for para_id in probing.readers},
        sum(tally.of(para_id).told_again for para_id in probing.readers),
        len(again.network.ledger.invariants.violations),
    )


def _first_delivery(run: Outcome) -> int | None:
    """Return the first relay block with a callback that charts show."""
    firsts = (next((it.block for it in points if it.callbacks), None) for points in run.series.values())
    return min((block for block in firsts if block is not None), default=None)


def _carried(points: Sequence[Point], first: int, last: int) -> int:
    """Return the bytes of the blocks in these relay blocks, before compression."""
    return sum(it.pov_bytes for it in points if first <= it.block <= last)
