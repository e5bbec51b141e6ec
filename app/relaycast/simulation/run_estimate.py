"""Estimates the time of a run from its first blocks, and chooses how it is spread: over processes here, or on Spark.

More processes of this machine pay only where much is left to build: they share out readers, and each repeats the rest.

Spark needs seconds before it does anything. By segments, every block passes through the spine of the driver: a run is
at most twice as fast as in one process, and one that is stopped resumes. Readers side by side have no spine: the
largest share bounds them, and a run that is stopped starts over.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import probing
from relaycast.simulation.simulation import Progress, Simulation
from relaycast_collator import BlockBuilt, BlockPanicked, Fact, RelaySealed
from relaycast_trie import Engine
from relaycast_xcm import ParaId

START_SECONDS = 7.0
"""A session and its first job, on an idle machine with two cores."""

SPINE_SHARE = 0.5
"""Least share of a run's time that the driver takes, however many cores replay its blocks."""

LOOK_SECONDS = 0.4
LOOK_BLOCKS = 50
"""How long the look takes, and how many blocks it sees at most."""

FEWEST_BLOCKS = 5
MOST_SECONDS = 2.0
"""Blocks that it sees in any case, for subscriptions begin in the first ones; a look never takes longer than this."""

BLOCK_BYTES = 4_096
"""Bytes of a proof that take as long as a block without one."""

PROBE_SHARE = 0.8
"""Time of a block that is run again under the other cache policy, over that of a block."""

TEAM_SECONDS = 0.1
"""Cost of more processes before they build a block: loading, forking, and copying memory that is written to."""

TEAM_SHARE = 0.1
"""Part of a run's time that exchanging heads and joining rows takes."""

LEAST_SAVED_SECONDS, LEAST_GAIN = 2.0, 1.25
"""More processes pay if they save so much, and are so many times as fast."""

NEARLY = 1.1
"""The fewest processes are taken that need at most this many times as long as the best number of them."""

FREE_CORE = 0.8
"""Processor time a second from which this process has a core to itself: else others work here, and no core is free."""

READER_COST = 20
"""Cost of a reader's block without its keys, counted in keys."""

FILES_COST = 0.03
"""Cost of joining and writing the figures of all readers, without their blocks."""

ALL_KEYS = 50
"""Keys that a reader of all keys of a publisher is taken to have: shares need not be exact."""

Shares = list[list[ParaId]]
"""The readers that each process builds."""


def shares_of(simulation: Simulation, workers: int) -> Shares:
    """Return the readers that each of ``workers`` processes builds: the largest first, to the process that has least.

    Shared are readers that do nothing but read, and stay as they began; runs with real runtimes share nothing.
    """
    keys = {ParaId(it.id): sum(_key_count(wanted.keys) for wanted in it.subscribe) for it in simulation.pure_readers}
    shares: Shares = [[] for _ in range(min(workers, len(keys)))]
    loads = [0.0] * len(shares)
    if loads:
        loads[0] = FILES_COST * sum(READER_COST + count for count in keys.values())
    for para_id in sorted(keys, key=lambda para_id: (-keys[para_id], para_id)):
        least = min(range(len(loads)), key=lambda number: (loads[number], -number))
        shares[least].append(para_id)
        loads[least] += READER_COST + keys[para_id]
    return shares


def _key_count(keys: list[Any] | int | str) -> int:
    return keys if isinstance(keys, int) else len(keys) if isinstance(keys, list) else ALL_KEYS


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds for all blocks: ``local`` in this process, and on Spark at least ``spark``.

    ``readers`` are the parts of a block's time that readers take.
    """

    local: float
    spark: float
    readers: Mapping[ParaId, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"--engine local would take about {_told(self.local)}, --engine spark takes {_told(self.spark)} or more"

    def gain_side_by_side(self, shares: Sequence[Sequence[ParaId]]) -> float:
        """Return how many times as fast the blocks pass if their readers are shared like this."""
        loads = [sum(self.readers.get(para_id, 0.0) for para_id in share) for share in shares] or [0.0]
        return 1 / max(1 - sum(loads) + max(loads), 1e-9)


@dataclass(frozen=True, slots=True)
class Way:
    """How Spark spreads a run: by ``workers`` side by side or, with one, by segments; ``why`` says the reason."""

    workers: int
    why: str

    @property
    def resumes(self) -> bool:
        """Whether a run that was stopped continues."""
        return self.workers == 1

    def __str__(self) -> str:
        if self.resumes:
            return f"spread by segments, a run that is stopped resumes: {self.why}"
        how = f"spread by readers side by side in {self.workers:,} processes"
        return f"{how}, a run that is stopped starts over: {self.why}"


def gain_by_segments(cores: int) -> float:
    """Return how many times as fast a run by segments is at most: the driver's spine shares the cores."""
    return 1 / max(SPINE_SHARE, (1 + SPINE_SHARE) / cores)


def faster_way(estimate: Estimate, shares: Sequence[Sequence[ParaId]], cores: int) -> Way:
    """Return the faster way; segments, which are resumed, unless sharing out the readers is faster."""
    by_segments, side_by_side = gain_by_segments(cores), estimate.gain_side_by_side(shares)
    if side_by_side > by_segments and len(shares) > 1:
        return Way(
            len(shares), f"{side_by_side:.1f} times as fast as one process, segments at most {by_segments:.1f} times"
        )
    return Way(
        1, f"at most {by_segments:.1f} times as fast as one process, readers side by side {side_by_side:.1f} times"
    )


def chosen_shares(simulation: Simulation, left: Estimate, cores: int) -> Shares:
    """Return the readers of each process that builds the rest of a run on ``cores``: one share if more do not pay.

    The rest takes one process ``left.local`` seconds.
    """
    alone: Shares = [[]]
    if left.local * (1 - 1 / cores) < LEAST_SAVED_SECONDS:
        return alone
    tried = [shares_of(simulation, workers) for workers in range(2, cores + 1)]
    begun = TEAM_SECONDS + TEAM_SHARE * left.local
    seconds = [begun + left.local / left.gain_side_by_side(shares) for shares in tried]
    best = min(seconds)
    if best > min(left.local - LEAST_SAVED_SECONDS, left.local / LEAST_GAIN):
        return alone
    return next(shares for shares, needed in zip(tried, seconds, strict=True) if needed <= NEARLY * best)


def passed_alone(simulation: Simulation, cores: int, progress: Progress | None) -> Shares:
    """Run blocks until more processes pay or none is left; return the shares of the blocks that are left.

    Their time is looked at again each time that as many blocks have passed as before. The first block loads what is
    needed and does not count.
    """
    readers, chains, blocks = _ReaderClock(), simulation.chains, simulation.scenario.blocks
    simulation.let_pass(progress, last=1)
    chains.listeners.append(readers.on_fact)
    look = FEWEST_BLOCKS
    while (block := chains.tick) < blocks:
        began, seen = time.process_time(), time.perf_counter()
        simulation.let_pass(progress, last=min(look, blocks))
        readers.settle()
        took, lasted = time.process_time() - began, time.perf_counter() - seen
        if took > FREE_CORE * lasted:
            left = took / (chains.tick - block) * (blocks - chains.tick)
            parts = {para_id: seconds / took for para_id, seconds in readers.seconds.items()}
            shares = chosen_shares(simulation, Estimate(left, 0.0, parts), cores)
            if len(shares) > 1:
                break
        readers.seconds.clear()
        look *= 2
    else:
        shares = [[]]
    chains.listeners.remove(readers.on_fact)
    return shares


class _ReaderClock:
    """Shares out the processor time that a tick's parachains take among them: they are executed and sealed together.

    A block counts by the bytes of its proof, and by ``BLOCK_BYTES`` for what every block takes.
    """

    def __init__(self) -> None:
        self.seconds: dict[ParaId, float] = {}
        self._began = self._ended = 0.0
        self._weights: dict[ParaId, int] = {}

    def on_fact(self, fact: Fact) -> None:
        if isinstance(fact, RelaySealed):
            self.settle()
            self._began = time.process_time()
        elif isinstance(fact, BlockBuilt | BlockPanicked):
            proof_bytes = fact.block.inherent.proof_bytes if isinstance(fact, BlockBuilt) else 0
            self._weights[fact.para_id] = self._weights.get(fact.para_id, 0) + BLOCK_BYTES + proof_bytes
            self._ended = time.process_time()

    def settle(self) -> None:
        """Share out the time of the tick that ended."""
        whole = sum(self._weights.values())
        for para_id, weight in self._weights.items():
            part = weight / whole * (self._ended - self._began)
            self.seconds[para_id] = self.seconds.get(para_id, 0.0) + part
        self._weights.clear()


def estimated(
    scenario: Scenario, *, trie_engine: Engine = "auto", clock: Callable[[], float] = time.process_time
) -> Estimate:
    """Run the first blocks and return the time that all would take; raises ``BadInput`` as a run does.

    Processor time is measured, so that others on the machine do not count. The first block loads what it needs.
    """
    began = clock()
    simulation = Simulation.prepare(scenario, trie_engine=trie_engine)
    simulation.keep_accounts()
    passing = simulation.blocks(last=min(scenario.blocks, LOOK_BLOCKS))
    next(passing)
    begin = before = clock()
    readers, started = _ReaderClock(), time.process_time()
    simulation.chains.listeners.append(readers.on_fact)
    seconds: list[float] = []
    for _ in passing:
        now = clock()
        seconds.append(now - before)
        before = now
        if now - begin > (LOOK_SECONDS if len(seconds) >= FEWEST_BLOCKS else MOST_SECONDS):
            break
    whole = max(time.process_time() - started, 1e-9)
    readers.settle()
    parts = {ParaId(it.id): readers.seconds.get(ParaId(it.id), 0.0) / whole for it in scenario.subscribers()}
    again = probing(scenario, simulation.key_counts)
    probed = PROBE_SHARE * again.last * len(again.readers) / max(1, len(parts))
    return of_rate(scenario.blocks - 1, median(seconds or [0.0]), begin - began, probed=probed, readers=parts)


def of_rate(
    blocks: int,
    seconds_a_block: float,
    before: float,
    *,
    probed: float = 0.0,
    readers: Mapping[ParaId, float] | None = None,
) -> Estimate:
    """Return what ``blocks`` blocks and as many ``probed`` ones take, with the seconds ``before`` the first.

    On Spark the probed blocks pass beside the run, which is taken to have all the cores that either way can use.
    """
    run, again = blocks * seconds_a_block, probed * seconds_a_block
    alone = Estimate(0.0, 0.0, readers or {})
    gain = max(1 / SPINE_SHARE, alone.gain_side_by_side([[para_id] for para_id in alone.readers]))
    return Estimate(before + run + again, before + START_SECONDS + max(run / gain, again), alone.readers)


def _told(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
