"""One trace under two designs: what each costs, and what each breaks.

Figures are of the scenario's blocks. Afterwards publishing stops, and the network runs on until every subscriber has
caught up. A value that is still missing then is known to be lost. Every complete pass is held against what the relay
chain had: a value that was there and is not handed on with it is a lost update.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from relaycast.scenario.policy_choice import described
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Progress, Simulation
from relaycast.simulation.sources import Sources
from relaycast_collator import Fact, TickBegan
from relaycast_ledger import BlockRecord, Violation
from relaycast_ledger.outcome import FullBlock, Latency, Outcome, Percentiles, Starvation
from relaycast_ledger.run_statistics import RunStatistics, SubscriberStatistics
from relaycast_pallets.broadcaster.events import DataPublished, KeyExpired, PublisherDeregistered
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId

MAX_SETTLING_BLOCKS = 200
"""Blocks after the scenario's; a subscriber that has not caught up by then never will."""

WAY_BLOCKS = 2
"""Relay blocks that a value is on its way, beside what the paces of parachains add."""

Address = tuple[ParaId, bytes]
"""A publisher and a key."""


class DesignFigures(Struct, frozen=True, kw_only=True):
    """What one subscriber's blocks came to under one design."""

    blocks: int
    proof_bytes: Percentiles
    own_bytes: Percentiles
    """Nodes of the parachain's own state in its blocks: what reading and writing the cache costs."""

    pov_bytes: Percentiles
    """Everything that a block carries, before compression."""

    compressed_bytes: Percentiles
    """The same as the relay chain gets it."""

    charged_bytes_max: int
    """The most that a pass was charged of its budget."""

    oversize_blocks: int
    """Blocks that the relay chain would refuse."""

    fullest_block: FullBlock | None
    warm_up_blocks: int
    """Blocks at the beginning that percentiles leave out."""

    callbacks: int
    redeliveries: int
    """Callbacks that tell again what was told before."""

    conflated: int
    """Values that a later one replaced, or that expired, before the subscriber could see them."""

    latency_blocks: Latency
    """How long deliveries took; values that were told again are not counted."""

    incomplete_blocks: int
    lost_updates: int
    """Values that the relay chain held when a pass was complete and that had not been handed on."""

    undelivered: int
    """Values that have not arrived when the network has come to rest."""

    disabled_publishers: list[int]
    panics: int
    deletions: int | UnsetType = UNSET
    """Told deletions; absent if there are none."""

    starvation: Starvation | UnsetType = UNSET
    """Absent where the subscriber was given what it subscribes to."""


class BrokenInvariant(Struct, frozen=True, kw_only=True):
    """An invariant that did not hold, in which blocks of which subscribers."""

    invariant: str
    times: int
    first_block: int
    subscribers: list[int]


class Design(Struct, frozen=True, kw_only=True):
    """A scenario with its policies, and what came of it, by subscriber."""

    name: str
    policies: str
    subscribers: dict[int, DesignFigures]
    broken: list[BrokenInvariant]


class Comparison(Struct, frozen=True, kw_only=True):
    """Two designs; ``same_trace`` tells whether both had the same publications in the same blocks."""

    first: Design
    second: Design
    names: dict[int, str]
    same_trace: bool

    def __repr__(self) -> str:
        first, second = self.first, self.second
        return f"<Comparison of {first.name} ({first.policies}) with {second.name} ({second.policies})>"


@dataclass(frozen=True, slots=True)
class Compared:
    """Two designs with all that a page shows of them; the runs end where the last of their blocks does."""

    comparison: Comparison
    scenarios: tuple[Scenario, Scenario]
    runs: tuple[Outcome, Outcome]


def compare_runs(
    first: Scenario, second: Scenario, *, progress: Progress | None = None, trie_engine: Engine = "auto"
) -> Compared:
    """Simulate both, with what came of every block; raises ``BadInput`` as ``Simulation.prepare`` does."""
    names = {chain.id: chain.name for scenario in (second, first) for chain in scenario.subscribers()}
    sources = None
    if replace(second, policies=first.policies) == first:
        sources = Sources.of(first.with_copies()).for_many_runs(first)
    designs, runs, traces = [], [], []
    for scenario in (first, second):
        simulation = Simulation.prepare(scenario, trie_engine=trie_engine, sources=sources)
        traces.append(_trace(simulation))
        design, run = _measured(simulation, progress)
        designs.append(design)
        runs.append(run)
    comparison = Comparison(first=designs[0], second=designs[1], names=names, same_trace=traces[0] == traces[1])
    return Compared(comparison, (first, second), (runs[0], runs[1]))


def measure(
    scenario: Scenario,
    *,
    trie_engine: Engine = "auto",
    sources: Sources | None = None,
    accounts: bool = True,
    settling_blocks: int = MAX_SETTLING_BLOCKS,
) -> Design:
    """Simulate ``scenario`` and return what it came to; nothing is read where ``sources`` were read before.

    Without ``accounts`` no byte has a cause, and blocks that fit in any case are not compressed, which is quicker.
    """
    simulation = Simulation.prepare(scenario, trie_engine=trie_engine, sources=sources)
    return _measured(simulation, None, accounts=accounts, settling_blocks=settling_blocks)[0]


def _measured(
    simulation: Simulation,
    progress: Progress | None,
    *,
    accounts: bool = True,
    settling_blocks: int = MAX_SETTLING_BLOCKS,
) -> tuple[Design, Outcome]:
    simulation.network.ledger.compresses = accounts
    if accounts:
        simulation.keep_accounts(per_key=False)
    watch = _Watch(simulation)
    for passed in simulation.blocks():
        watch.take(passed.records, counted=True)
        if progress is not None:
            progress(passed.block)
    outcome = simulation.outcome()
    for _ in range(settling_blocks):
        if watch.at_rest:
            break
        watch.take(simulation.network.ledger.step(), counted=False)
    design = Design(
        name=simulation.scenario.name,
        policies=described(simulation.scenario.policies),
        subscribers=watch.figures(simulation.tally),
        broken=_broken(simulation.network.ledger.invariants.violations),
    )
    return design, outcome


def _broken(violations: Iterable[Violation]) -> list[BrokenInvariant]:
    found: dict[str, list[Violation]] = {}
    for violation in violations:
        found.setdefault(violation.invariant, []).append(violation)
    return [
        BrokenInvariant(
            invariant=invariant,
            times=len(same),
            first_block=min(violation.tick for violation in same),
            subscribers=sorted({int(violation.para_id) for violation in same}),
        )
        for invariant, same in found.items()
    ]


def _trace(simulation: Simulation) -> tuple[object, ...]:
    scenario, recorded = simulation.scenario, simulation.sources.recording
    return scenario.seed, scenario.blocks, scenario.publishers(), None if recorded is None else recorded.digest


@dataclass(slots=True)
class _Reader:
    """A subscriber, and which of its values it has not been told."""

    para_id: ParaId
    wanted: frozenset[Address] = frozenset()
    told: dict[Address, PublishedEntry] = field(default_factory=dict)
    untold: dict[Address, PublishedEntry] = field(default_factory=dict)
    lost: set[tuple[Address, PublishedEntry]] = field(default_factory=set)
    overtaken: int = 0
    """Values that went before they were told."""

    disabled: set[ParaId] = field(default_factory=set)
    restless_at: int = 0
    """The relay block of the last news, or of the last block that was cut short."""

    def add(self, record: BlockRecord) -> None:
        """Take a block in; ``untold`` is of its relay parent."""
        self.disabled.update(record.disabled)
        news = 0
        for delivery in record.deliveries:
            address = (delivery.publisher, bytes(delivery.key))
            news += not delivery.told_again
            self.told[address] = delivery.entry
            if self.untold.get(address) == delivery.entry:
                del self.untold[address]
        passed = record.complete and record.panic is None
        if news or not passed:
            self.restless_at = record.tick
        if passed:
            self.lost.update(
                (it, entry)
                for it, entry in self.untold.items()
                if it[0] not in self.disabled and entry.when_inserted <= record.relay_parent
            )

    def changed(self, address: Address, entry: PublishedEntry | None) -> None:
        """Note what the relay chain holds from now on."""
        if address not in self.wanted:
            return
        self.overtaken += self.untold.get(address, entry) != entry
        if entry is None or self.told.get(address) == entry:
            self.untold.pop(address, None)
        else:
            self.untold[address] = entry

    def figures(self, it: SubscriberStatistics) -> DesignFigures:
        """Return what the blocks of ``it`` came to, and what this reader misses."""
        return DesignFigures(
            blocks=len(it.points),
            proof_bytes=it.proof_bytes,
            own_bytes=it.own_bytes,
            pov_bytes=it.pov_bytes,
            compressed_bytes=it.compressed_bytes,
            charged_bytes_max=max(it.points.column("metered_bytes"), default=0),
            oversize_blocks=it.oversize_blocks,
            fullest_block=it.fullest_block,
            warm_up_blocks=it.warm_up_blocks,
            callbacks=it.callbacks,
            redeliveries=it.told_again,
            conflated=self.overtaken,
            latency_blocks=it.latency_blocks,
            incomplete_blocks=it.incomplete_blocks,
            lost_updates=len(self.lost),
            undelivered=sum(address[0] not in self.disabled for address in self.untold),
            disabled_publishers=sorted(map(int, self.disabled)),
            panics=len(it.panics),
            deletions=it.deletions or UNSET,
            starvation=it.starvation or UNSET,
        )


class _Watch:
    """A simulation under way, and what every subscriber should know by now."""

    def __init__(self, simulation: Simulation) -> None:
        self._chains = simulation.network.chains
        self._storage = self._chains.relay_chain.broadcaster.storage
        self._acted_at = 0
        self.readers = {ParaId(chain.id): _Reader(ParaId(chain.id)) for chain in simulation.scenario.subscribers()}
        self._chains.listeners.append(self.on_fact)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is under way and every subscriber has caught up."""
        sending = self._chains.relay_chain.upward.waiting or any(it.outbox for it in self._chains.parachains.values())
        paces = self._chains.paces.values()
        way_blocks = WAY_BLOCKS + max(it.relay_parent_offset + it.relay_blocks for it in paces)
        restless_at = max(self._acted_at, *(reader.restless_at for reader in self.readers.values()))
        return not sending and self._chains.tick - restless_at >= way_blocks

    def figures(self, tally: RunStatistics) -> dict[int, DesignFigures]:
        """Return the figures of every subscriber, by its id."""
        return {int(para_id): reader.figures(tally.of(int(para_id))) for para_id, reader in self.readers.items()}

    def on_fact(self, fact: Fact) -> None:
        """Learn what readers want when a tick begins: before anything happens in it."""
        if isinstance(fact, TickBegan):
            for reader in self.readers.values():
                self._ask(reader)

    def take(self, records: list[BlockRecord], *, counted: bool) -> None:
        """Take the blocks of one tick in.

        What its relay block holds is known when subscribers come to build on it.
        """
        for record in records:
            self.readers[record.para_id].add(record)
        if counted:
            self._acted_at = self._chains.tick
        for publisher, key in self._touched():
            entry = self._storage.entry(publisher, key)
            for reader in self.readers.values():
                reader.changed((publisher, key), entry)

    def _ask(self, reader: _Reader) -> None:
        """Let a reader know what it wants; of keys that are new to it, what the relay chain holds already."""
        kept = self._chains.parachains[reader.para_id].kept.wanted
        wanted = frozenset((publisher, bytes(key)) for publisher, keys in kept.items() for key in keys)
        if wanted == reader.wanted:
            return
        added, reader.wanted = wanted - reader.wanted, wanted
        reader.untold = {address: entry for address, entry in reader.untold.items() if address in wanted}
        for address in added:
            reader.changed(address, self._storage.entry(ParaId(address[0]), address[1]))

    def _touched(self) -> Iterable[Address]:
        """Return what the last relay block published or removed."""
        for event in self._chains.relay_chain.head.events:
            if isinstance(event, DataPublished | KeyExpired):
                yield event.publisher, event.key
            elif isinstance(event, PublisherDeregistered):
                wanted = {address for reader in self.readers.values() for address in reader.wanted}
                yield from sorted(address for address in wanted if address[0] == event.para_id)
