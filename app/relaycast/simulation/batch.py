"""A scenario as a batch run takes it: a simulation that goes on block by block, here or in a worker.

What is told of a block is what the local engine tells, by the same code.
"""

import io
from collections.abc import Iterable
from dataclasses import dataclass

from relaycast.scenario.scenario import Scenario
from relaycast.scenario.workload_dump import WorkloadDump
from relaycast.simulation.simulation import Simulation
from relaycast.simulation.sources import Sources
from relaycast_collator import ChainSimulator
from relaycast_ledger import Ledger
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.record_fields import merge_in
from relaycast_ledger.records import VIOLATIONS_KEPT
from relaycast_ledger.run_part import PartInTheMaking, RunPart, add_part
from relaycast_ledger.run_tables import RunTables
from relaycast_ledger.segments.simulated import Advanced, PublisherCount
from relaycast_spark.replay import Row, violation_of
from relaycast_trie.engine import Engine, warm_up_for
from relaycast_xcm.checkpoint import CheckpointRefused, decoded, encoded


@dataclass(slots=True)
class BatchSimulation:
    """A simulation that forgets what it has told; ``part`` is what it has not told yet."""

    simulation: Simulation
    part: PartInTheMaking

    @classmethod
    def prepare(
        cls,
        scenario: Scenario,
        *,
        per_key: bool | None = None,
        trie_engine: Engine = "auto",
        sources: Sources | None = None,
    ) -> "BatchSimulation":
        """Build the chains, with accounts as ``simulate`` has them; ``BadInput`` when the genesis cannot be read."""
        simulation = Simulation.prepare(scenario, trie_engine=trie_engine, sources=sources)
        simulation.keep_accounts(per_key=per_key)
        return cls(simulation, PartInTheMaking(simulation.rows()))

    @property
    def chains(self) -> ChainSimulator:
        """The chains themselves."""
        return self.simulation.network.chains

    @property
    def ledger(self) -> Ledger:
        """Who keeps score of them."""
        return self.simulation.network.ledger

    def advance(self, block: int, /) -> Advanced:
        """Let relay block number ``block`` pass and say what it brought."""
        stream = io.BytesIO()
        log = EventLines(stream).on_fact
        self.chains.listeners.append(log)
        try:
            self.simulation.begin(block)
            records = self.ledger.step()
        finally:
            self.chains.listeners.remove(log)
        for record in records:
            self.part.add(record)
        return Advanced(records, self._take_counts(), stream.getvalue())

    def take_told(self) -> bytes:
        """Return a part of the run, of the blocks that were advanced since it was last asked."""
        return encoded(self.part.take())

    def pass_over(self, block: int, /) -> None:
        """Let relay block number ``block`` pass without keeping score."""
        self.simulation.begin(block)
        self.chains.step()
        self._take_counts()

    def look_ahead(self, last: int, /) -> None:
        """Have recorded publications up to block ``last`` at hand."""
        if self.simulation.playback is not None:
            self.simulation.playback.look_ahead(last)

    def dump(self) -> bytes:
        """Return how far the workload is."""
        return encoded(self.simulation.dump())

    def load(self, data: bytes, /) -> None:
        """Go on with another one's workload; raises ``CheckpointRefused``."""
        self.simulation.load(decoded(data, WorkloadDump))

    def preparation(self) -> "Elsewhere":
        """Return what prepares the same simulation in a worker, where the scenario's files need not lie."""
        scenario = self.simulation.scenario
        read = {para_id for chain in scenario.subscribers() for para_id in chain.publishers_read}
        sources = self.simulation.sources.without_files(read)
        return Elsewhere(scenario, sources, self.simulation.by_key, self.chains.trie_engine)

    def add_rows(self, rows: Iterable[Row], tables: RunTables) -> None:
        """Count in blocks that were replayed elsewhere; raises ``CheckpointRefused`` where rows do not fit."""
        untold = set[int]()
        for row in rows:
            untold.add(row["block"])
            if row["told"] is not None:
                part = decoded(row["told"], RunPart)
                if strange := {it.tick for it in part.places} - untold:
                    raise CheckpointRefused(f"a part of the run: got block {min(strange)}, expected {sorted(untold)}")
                add_part(part, self.simulation.tally, tables)
                untold.clear()
            for count in row["publishers"]:
                merge_in(self.simulation.published[count["para_id"]], PublisherCount(**count))
            checks = self.ledger.invariants
            checks.checked += row["checked"]
            checks.violated += row["violated"]
            room = VIOLATIONS_KEPT - len(checks.violations)
            checks.violations.extend(map(violation_of, row["violations"][:room]))
        if untold:
            raise CheckpointRefused(f"a part of the run: nothing is told of block {min(untold)}")

    def _take_counts(self) -> list[PublisherCount]:
        published = self.simulation.published
        counts = list(published.values())
        published.update({para_id: PublisherCount.zero(para_id) for para_id in published})
        return counts


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """How a simulation is prepared in another process, to load a checkpoint into; it travels there by itself."""

    scenario: Scenario
    sources: Sources
    per_key: bool
    trie_engine: Engine

    def __call__(self) -> BatchSimulation:
        warm_up_for(self.trie_engine)
        return BatchSimulation.prepare(
            self.scenario, per_key=self.per_key, trie_engine=self.trie_engine, sources=self.sources
        )
