"""What a run takes here and what it would take on Spark, from a look at its first blocks.

Spark needs seconds before it does anything, and every block passes through the spine of the driver: a short run is
faster without it, whatever the number of cores.
"""

import time
from dataclasses import dataclass
from statistics import median

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import probed_blocks
from relaycast.simulation.simulation import Simulation
from relaycast_trie import Engine

START_SECONDS = 7.0
"""A session and its first job, on an idle machine with two cores."""

SPINE_SHARE = 0.5
"""How much of a run's time the driver takes at least, however many cores replay what it has passed."""

LOOK_SECONDS = 0.4
LOOK_BLOCKS = 50
"""How long the look takes, and how many blocks it sees at most."""

FEWEST_BLOCKS = 5
MOST_SECONDS = 2.0
"""Blocks that it sees in any case, for subscriptions begin in the first ones; a look never takes longer than this."""

PROBE_SHARE = 0.8
"""What a block takes that is run again under the other cache policy."""


clock = time.process_time


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds for all blocks: ``local`` in this process, and on Spark at least ``spark``."""

    local: float
    spark: float

    def __str__(self) -> str:
        return f"--engine local would take about {_told(self.local)}, --engine spark takes {_told(self.spark)} or more"


def estimated(scenario: Scenario, *, trie_engine: Engine = "auto", workers: int = 1) -> Estimate:
    """Let some blocks pass and return what all of them would take; raises ``BadInput`` as a run does.

    Processor time is measured, so that others on the machine do not count. The first block loads what it needs.
    """
    began = clock()
    simulation = Simulation.prepare(scenario, trie_engine=trie_engine)
    simulation.keep_accounts()
    passing = simulation.blocks(last=min(scenario.blocks, LOOK_BLOCKS))
    next(passing)
    begin = before = clock()
    seconds: list[float] = []
    for _ in passing:
        now = clock()
        seconds.append(now - before)
        before = now
        if now - begin > (LOOK_SECONDS if len(seconds) >= FEWEST_BLOCKS else MOST_SECONDS):
            break
    keys = sum(simulation.feeds.count(chain) for chain in scenario.subscribers())
    probed = PROBE_SHARE * probed_blocks(scenario, keys)
    return of_rate(scenario.blocks - 1, median(seconds or [0.0]), begin - began, probed=probed, workers=workers)


def of_rate(blocks: int, seconds_a_block: float, before: float, *, probed: float = 0.0, workers: int = 1) -> Estimate:
    """Return what ``blocks`` blocks and as many ``probed`` ones take, with the seconds ``before`` the first.

    By one worker the run has a spine and segments, and the probed blocks come after it. Several ``workers`` share its
    readers at best, and the probed blocks pass beside them.
    """
    run, again = blocks * seconds_a_block, probed * seconds_a_block
    on_spark = SPINE_SHARE * run + again if workers == 1 else max(run / workers, again)
    return Estimate(before + run + again, before + START_SECONDS + on_spark)


def _told(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
