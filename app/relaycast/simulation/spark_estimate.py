"""What a run takes here and what it would take on Spark, from a look at its first blocks.

Spark needs seconds before it does anything, and every block passes through the spine of the driver: a short run is
faster without it, whatever the number of cores.
"""

import time
from dataclasses import dataclass

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_trie import Engine

START_SECONDS = 7.0
"""A session and its first job, on an idle machine with two cores."""

SPINE_SHARE = 0.5
"""How much of a run's time the driver takes at least, however many cores replay what it has passed."""

LOOK_SECONDS = 0.4
LOOK_BLOCKS = 50
"""How long the look takes at most, and how many blocks it sees at most."""


clock = time.process_time


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds for all blocks: ``local`` in this process, and on Spark at least ``spark``."""

    local: float
    spark: float

    def __str__(self) -> str:
        return f"--engine local would take about {_told(self.local)}, --engine spark takes {_told(self.spark)} or more"


def estimated(scenario: Scenario, *, trie_engine: Engine = "auto") -> Estimate:
    """Let some blocks pass and return what all of them would take; raises ``BadInput`` as a run does.

    Processor time is measured, so that others on the machine do not count. The first block loads what it needs.
    """
    began = clock()
    simulation = Simulation.prepare(scenario, trie_engine=trie_engine)
    passing = simulation.blocks(last=min(scenario.blocks, LOOK_BLOCKS))
    next(passing)
    begin, passed = clock(), 0
    for _ in passing:
        passed += 1
        if clock() - begin > LOOK_SECONDS:
            break
    return of_rate(scenario.blocks - 1, (clock() - begin) / max(passed, 1), begin - began)


def of_rate(blocks: int, seconds_a_block: float, before: float) -> Estimate:
    """Return what ``blocks`` blocks take, with the seconds ``before`` the first."""
    local = before + blocks * seconds_a_block
    return Estimate(local, before + START_SECONDS + SPINE_SHARE * blocks * seconds_a_block)


def _told(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
