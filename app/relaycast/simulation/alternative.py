"""The cheaper alternative: whether the other cache policy would make a run's blocks smaller.

Law: it is measured, never predicted: the first blocks of the scenario run again under the other policy, and the same
blocks of both are compared. How many follows from the scenario alone, so that equal scenarios tell the same.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import Alternative, Outcome, Point
from relaycast_trie.engine import Engine

OTHER_CACHE = {"structure": "none", "none": "structure"}

PROBED_BLOCKS = 24
"""Relay blocks that run again."""

FEWEST_BLOCKS = 8
"""With fewer after the first delivery nothing is said."""

MOST_KEY_BLOCKS = 20_000
"""Subscribed keys times blocks that run again: a large scenario runs fewer blocks, so that it takes no second."""


def with_alternative(run: Outcome, scenario: Scenario, *, trie_engine: Engine = "auto") -> Outcome:
    """Return ``run`` with the figures of the other cache policy for its first blocks, if there are enough blocks.

    An upgrade among them may replace the policy: then ``run`` is unchanged.
    """
    keys = sum(it.keys for it in run.subscribers)
    last = min(PROBED_BLOCKS, scenario.blocks, MOST_KEY_BLOCKS // max(1, keys))
    first = _first_delivery(run)
    if first is None or last - first + 1 < FEWEST_BLOCKS or any(it.at <= last for it in run.upgrades or ()):
        return run
    policies = replace(scenario.policies, cache=OTHER_CACHE[scenario.policies.cache])
    simulation = Simulation.prepare(replace(scenario, policies=policies, blocks=last), trie_engine=trie_engine)
    simulation.network.ledger.compresses = False
    for _ in simulation.blocks():
        pass
    ours = sum(_carried(run.series[it.para_id], first, last) for it in run.subscribers)
    theirs = sum(_carried(simulation.tally.of(it.para_id).points, first, last) for it in run.subscribers)
    broken = len(simulation.network.ledger.invariants.violations)
    policy = f"cache={policies.cache}"
    return replace(
        run,
        alternative=Alternative(
            policy=policy,
            first_block=first,
            last_block=last,
            pov_bytes=ours,
            its_pov_bytes=theirs,
            its_told_again=sum(it.told_again for it in simulation.tally.subscribers.values()),
            violations=broken,
        ),
    )


def _first_delivery(run: Outcome) -> int | None:
    """Return the first relay block with a callback that charts show."""
    firsts = (next((it.block for it in points if it.callbacks), None) for points in run.series.values())
    return min((block for block in firsts if block is not None), default=None)


def _carried(points: Sequence[Point], first: int, last: int) -> int:
    """Return the bytes of the blocks in these relay blocks, before compression."""
    return sum(it.pov_bytes for it in points if first <= it.block <= last)
