"""A run by several processes: readers of one relay block side by side, publishers in every process.

A run that begins in one process continues in several from any block: they are forked with its chains.

Law: publishers and the relay chain depend on readers for nothing but their heads and what they took of messages. So
every process builds the relay chain and the publishers' blocks, and of the readers each builds its own share; after
each tick heads are exchanged. This process has a share, too. Each puts together rows and figures of its readers, and
this one joins them in the order in which one process would have told them: no byte depends on the number of processes.
The others are processes of this machine, or Spark's tasks (``spark_engine``).
"""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

import msgspec

from relaycast.simulation.run_folder import OpenFiles
from relaycast.simulation.simulation import Progress, Simulation
from relaycast.simulation.worker_processes import begin_worker
from relaycast_collator import BlockBuilt, BlockPanicked, Fact
from relaycast_collator.chains import RemoteHead
from relaycast_ledger import Invariants
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.outcome import Outcome
from relaycast_ledger.records import VIOLATIONS_KEPT, Violation
from relaycast_ledger.run_part import PartInTheMaking, RunPart, add_parts
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import decoded, encoded

RELAY = 0
"""Whose lines those of the relay chain are: no parachain has this id."""


class WorkerEnded(RelaycastError):
    """A process that built blocks of this run ended in relay block ``block``, for a ``reason`` where it gave one."""

    block: int
    reason: str = ""

    def __str__(self) -> str:
        reason = self.reason or "it was ended from outside; memory may be short, and --workers 1 needs least"
        return f"a worker process ended in relay block {self.block:,}: {reason}"


class TickReport(msgspec.Struct, frozen=True):
    """What one process says of one tick: heads for the other processes, and what was told of its readers' blocks."""

    heads: list[RemoteHead]
    lines: dict[int, bytes]
    checked: int
    violated: int
    violations: list[tuple[str, int, int, str]]
    part: bytes = b""
    """The part of the run that its readers' blocks are since the last one, where this tick ends a part."""

    error: str = ""
    """Why there will be no more from this process."""


class LinesByChain:
    """Writes the lines of the event log, those of each chain apart."""

    def __init__(self) -> None:
        self._parts: dict[int, io.BytesIO] = {}

    def on_fact(self, fact: Fact) -> None:
        """Write what happened in a block."""
        chain = int(fact.para_id) if isinstance(fact, BlockBuilt | BlockPanicked) else RELAY
        EventLines(self._parts.setdefault(chain, io.BytesIO())).on_fact(fact)

    def take(self) -> dict[int, bytes]:
        """Return the lines since they were last taken, by parachain; those of the relay chain are under 0."""
        parts, self._parts = self._parts, {}
        return {chain: stream.getvalue() for chain, stream in parts.items()}


MOST_TICKS_A_PART, MOST_ROWS_A_PART = 16, 1 << 18
"""Relay blocks of which tables and figures are put together at once, and about how many rows that may be."""


@dataclass(slots=True)
class ReaderShare:
    """The readers that one process builds, beside what all build; ``tells`` is of whom it tells."""

    simulation: Simulation
    readers: frozenset[ParaId]
    elsewhere: frozenset[ParaId]
    tells_of_all: bool
    lines: LinesByChain = field(default_factory=LinesByChain)
    part: PartInTheMaking = field(init=False)
    ticks_a_part: int = field(init=False)

    def begin(self) -> None:
        """Build from now on no blocks of readers that others build, and hear of one's own alone."""
        self.part, self.ticks_a_part = PartInTheMaking(self.simulation.rows()), ticks_a_part(self.simulation)
        chains, ledger = self.simulation.chains, self.simulation.network.ledger
        chains.elsewhere = self.elsewhere
        place = chains.listeners.index(ledger.on_fact)
        chains.listeners[place] = self._on_fact
        chains.listeners.append(self._write)

    def tick(self, block: int) -> TickReport:
        """Let a tick pass and return what is to be said of it."""
        simulation, ledger = self.simulation, self.simulation.network.ledger
        ledger.invariants = checks = Invariants()
        simulation.begin(block)
        with simulation.sources.telling_refusals(simulation.scenario, block):
            records = ledger.step()
        for record in records:
            self.part.add(record)
        return TickReport(
            heads=[simulation.chains.built(para_id) for para_id in self.readers],
            lines=self.lines.take(),
            checked=checks.checked,
            violated=checks.violated,
            violations=[(it.invariant, it.tick, int(it.para_id), it.seen) for it in checks.violations],
            part=b"" if self.tells_of_all or not self.ends_part(block) else encoded(self.part.take()),
        )

    def ends_part(self, block: int) -> bool:
        """Return whether a part of the run is told with this relay block: the same ones in every process."""
        return block % self.ticks_a_part == 0 or block == self.simulation.scenario.blocks

    def adopt(self, heads: Sequence[RemoteHead]) -> None:
        """Take note of where the readers stand that others build."""
        for head in heads:
            self.simulation.chains.adopt(head)

    def _on_fact(self, fact: Fact) -> None:
        """Let the ledger hear what is to be told, and of the relay chain in any case."""
        if not isinstance(fact, BlockBuilt | BlockPanicked) or self.tells_of_all or fact.para_id in self.readers:
            self.simulation.network.ledger.on_fact(fact)

    def _write(self, fact: Fact) -> None:
        if self.tells_of_all or (isinstance(fact, BlockBuilt | BlockPanicked) and fact.para_id in self.readers):
            self.lines.on_fact(fact)


@dataclass(slots=True)
class Team:
    """This process with its ``share``, and the other processes at the ends of pipes."""

    share: ReaderShare
    pipes: list[Connection]
    files: OpenFiles

    def run(self, progress: Progress | None) -> Outcome:
        """Run the blocks that are left and return the totals of all shares; raises ``WorkerEnded``."""
        simulation = self.share.simulation
        total = simulation.network.ledger.invariants
        order = {int(para_id): place for place, para_id in enumerate(simulation.chains.parachains)}
        for block in range(simulation.chains.tick + 1, simulation.scenario.blocks + 1):
            told = [self.share.tick(block), *(self._received(pipe, block) for pipe in self.pipes)]
            heads = [head for it in told for head in it.heads]
            for pipe in self.pipes:
                self._send(pipe, heads, block)
            self.share.adopt([head for it in told[1:] for head in it.heads])
            self._tell(told, order, total)
            if self.share.ends_part(block):
                parts = [self.share.part.take(), *(decoded(it.part, RunPart) for it in told[1:])]
                add_parts(parts, order, simulation.tally, self.files.tables)
            if progress is not None:
                progress(block)
        simulation.network.ledger.invariants = total
        return simulation.outcome()

    def _tell(self, told: list[TickReport], order: dict[int, int], total: Invariants) -> None:
        """Tell of a tick in the order of one process."""
        lines = {chain: text for it in told for chain, text in it.lines.items()}
        self.files.events.writelines(lines[chain] for chain in (RELAY, *order) if chain in lines)
        found = [
            Violation(name, tick, ParaId(para_id), seen) for it in told for name, tick, para_id, seen in it.violations
        ]
        found.sort(key=lambda violation: order[int(violation.para_id)])
        total.checked += sum(it.checked for it in told)
        total.violated += sum(it.violated for it in told)
        total.violations.extend(found[: VIOLATIONS_KEPT - len(total.violations)])

    def _received(self, pipe: Connection, block: int) -> TickReport:
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerEnded(block) from None
        told = _DECODER.decode(data)
        if told.error:
            raise WorkerEnded(block, told.error)
        return told

    def _send(self, pipe: Connection, heads: list[RemoteHead], block: int) -> None:
        try:
            pipe.send_bytes(_ENCODER.encode(heads))
        except OSError:
            raise WorkerEnded(block) from None


def ticks_a_part(simulation: Simulation) -> int:
    """Return how many relay blocks make a part: fewer where readers have many keys, each of which may be a row."""
    rows = sum(simulation.feeds.count(chain) for chain in simulation.scenario.subscribers())
    return max(1, min(MOST_TICKS_A_PART, MOST_ROWS_A_PART // max(1, rows)))


def reader_shares(simulation: Simulation, shares: list[list[ParaId]]) -> list[ReaderShare]:
    """Return what the processes build of these shares; the first process tells of all that is not shared."""
    shared = frozenset(para_id for share in shares for para_id in share)
    return [
        ReaderShare(simulation, frozenset(share), shared.difference(share), tells_of_all=number == 0)
        for number, share in enumerate(shares)
    ]


@contextmanager
def team_of(simulation: Simulation, shares: list[list[ParaId]], files: OpenFiles) -> Iterator[Team]:
    """Give this process and one more for each further share; they end with this, whatever they are doing.

    They are forked: each begins with these chains as they are.
    """
    mine, *others = reader_shares(simulation, shares)
    fork, pipes, processes = get_context("fork"), [], []
    try:
        for share in others:
            near, far = fork.Pipe()
            process = fork.Process(target=_work, args=(share, far, os.getpid()), daemon=True)
            process.start()
            far.close()
            pipes.append(near)
            processes.append(process)
        mine.begin()
        yield Team(mine, pipes, files)
    finally:
        for process in processes:
            process.kill()
            process.join()
        for pipe in pipes:
            pipe.close()


def _work(share: ReaderShare, pipe: Connection, parent: int) -> None:
    begin_worker(parent)
    build(share, pipe)


def build(share: ReaderShare, pipe: Connection) -> None:
    """Build a share of a run's blocks until all are built; an error is told in place of a tick."""
    share.begin()
    for block in range(share.simulation.chains.tick + 1, share.simulation.scenario.blocks + 1):
        try:
            told = share.tick(block)
        except Exception as error:
            told = TickReport([], {}, 0, 0, [], error=f"{type(error).__name__}: {error}")
        pipe.send_bytes(_ENCODER.encode(told))
        share.adopt([it for it in _HEADS.decode(pipe.recv_bytes()) if it.para_id in share.elsewhere])


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(TickReport)
_HEADS = msgspec.msgpack.Decoder(list[RemoteHead])
