"""Running a scenario: from a ``Scenario`` to the files of ``out/<run-id>/``.

Law: the run id is a digest of the scenario, the state it starts from, and this version; the same id means the same
bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from relaycast.network import Network
from relaycast.predict.run import with_formulas
from relaycast.refusal import BadInput
from relaycast.scenario.echo import echoed
from relaycast.scenario.policy_choice import budget_of, policies_of
from relaycast.scenario.scenario import ParachainTable, Payment, Scenario
from relaycast.scenario.workload import (
    Publication,
    key_names,
    publications,
    wants_change,
)
from relaycast.scenario.workload_dump import WorkloadDump
from relaycast.simulation.configurations import broadcaster_config, subscriber_config
from relaycast.simulation.outcomes import (
    bytes_for_any_key,
    publisher_outcome,
    recorded_outcome,
    relay_outcome,
    subscriber_outcome,
)
from relaycast.simulation.sendings import count_block
from relaycast.simulation.sources import Sources
from relaycast.simulation.upgrade_schedule import schedule_upgrades, upgrade_outcomes
from relaycast.simulation.wanted_feeds import WantedFeeds
from relaycast.version import __version__
from relaycast_collator import ChainSimulator, Fact, RelaySealed
from relaycast_ledger import Accounts, BlockRecord
from relaycast_ledger.outcome import (
    InvariantsOutcome,
    Outcome,
    PublisherOutcome,
    RuntimeOutcome,
    SubscriberOutcome,
)
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_ledger.segments.simulated import PublisherCount
from relaycast_pallets.parachain_system.inbound_messages import ChannelMissing
from relaycast_pallets.parachain_system.relay_budget import message_free_bytes
from relaycast_trie import CodecError
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import VERSION, CheckpointRefused

if TYPE_CHECKING:
    from relaycast.scenario.recording import Playback
    from relaycast.simulation.wasm_parachains import WasmParachainWorkload
    from relaycast_ledger.run_tables import RunTables, TableRows

MOST_PICTURED_KEYS = 20_000
"""Keys beyond which a picture of their paths takes longer to draw than blocks do, and shows a grey band."""

PICTURED_SUBSCRIBERS = 8
PICTURED_BLOCKS = 6
"""Blocks of a subscriber that the report may choose from: the first ones with callbacks."""

ENGINE = "local"

MOST_KEY_ROWS = 200_000
"""Rows of ``keys.parquet``, one for each subscribed key in each block, up to which a run writes it unasked.

They take about 10 us each to make, which a short run does not notice and a long one does.
"""

Progress = Callable[[int], None]
"""Told the number of each block that is done."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A relay block that passed, and the subscriber blocks built in its time."""

    block: int
    records: list[BlockRecord]


@dataclass(slots=True)
class Simulation:
    """A scenario under way."""

    scenario: Scenario
    network: Network
    tally: RunStatistics = field(default_factory=RunStatistics)
    published: dict[int, PublisherCount] = field(default_factory=dict)
    sources: Sources = field(default_factory=Sources)
    playback: "Playback | None" = None
    """Recorded publications, where the scenario has some."""

    wasm_workloads: dict[int, "WasmParachainWorkload"] = field(default_factory=dict)
    """What is submitted to parachains with real runtimes."""

    recorded_keys: dict[int, list[bytes]] = field(default_factory=dict)
    """Their keys, by publisher, as far as somebody reads them."""

    @classmethod
    def prepare(
        cls, scenario: Scenario, *, trie_engine: Engine = "auto", sources: Sources | None = None
    ) -> "Simulation":
        """Build the chains; raises ``BadInput`` when the genesis or a trace cannot be read.

        Nothing is read where ``sources`` were read before.
        """
        scenario, relay = scenario.with_copies(), scenario.relaychain
        sources = Sources.of(scenario) if sources is None else sources
        network = Network(
            seed=scenario.seed,
            genesis=sources.start or sources.spec,
            broadcaster=broadcaster_config(scenario),
            trie_engine=trie_engine,
            state_version=relay.state_version,
        )
        network.ledger.compresses = True
        simulation = cls(scenario, network, sources=sources)
        readers = scenario.subscribers()
        for chain in [*readers, *(chain for chain in scenario.parachains if not chain.reads)]:
            if chain.is_wasm:
                simulation._add_wasm_parachain(chain)
            else:
                simulation._add_parachain(chain)
        recorded = sources.recording
        if recorded is not None:
            from relaycast.scenario.recording import Playback  # noqa: PLC0415 - pyarrow is slow to load

            simulation.playback = Playback(recorded)
            read = {para_id for chain in readers for para_id in chain.publishers_read}
            simulation.recorded_keys = {para_id: keys for para_id, keys in recorded.keys.items() if para_id in read}
        for chain in scenario.parachains:
            if chain.publish is not None or (recorded is not None and chain.id in recorded.keys):
                publisher = simulation.network.publisher(chain.id)
                payment = None if chain.publish is None else chain.publish.payment
                if isinstance(payment, Payment):
                    publisher.account.fund(payment.balance)
                simulation.published[chain.id] = PublisherCount.zero(chain.id)
        if sources.relay_code is not None:
            from relaycast.simulation.wasm_parachains import run_relay_chain  # noqa: PLC0415 - needs the extra wasm

            run_relay_chain(network.chains.relay_chain, sources.relay_code, str(relay.wasm))
        schedule_upgrades(scenario, network, simulation.feeds)
        network.ledger.warm_up = None if scenario.warm_up == "auto" else scenario.warm_up
        network.chains.listeners.append(simulation.on_fact)
        return simulation

    def tables(self, folder: Path) -> "RunTables":
        """Return the tables of this run, to be written into ``folder``."""
        from relaycast_ledger.run_tables import RunTables  # noqa: PLC0415 - pyarrow is slow to load

        return RunTables(folder, self.run_id, self.rows())

    def rows(self) -> "TableRows":
        """Return what makes rows of these tables."""
        from relaycast_ledger.run_tables import TableRows  # noqa: PLC0415 - pyarrow is slow to load

        names = key_names(self.scenario) if self.by_key else {}
        return TableRows(by_key=self.by_key, key_names=names, runtimes=bool(self.wasm_workloads))

    @property
    def feeds(self) -> WantedFeeds:
        """Which feeds readers want."""
        return WantedFeeds(self.scenario, self.network, self.recorded_keys, self.wasm_workloads)

    @property
    def pure_readers(self) -> list[ParachainTable]:
        """Modelled parachains that read, do not publish, and are not upgraded; none beside real runtimes.

        Their blocks may be built elsewhere, or not at all: other chains see their heads alone.
        """
        if self.wasm_workloads or self.sources.relay_code is not None:
            return []
        return [it for it in self.scenario.subscribers() if it.id not in self.published and not it.upgrades]

    @property
    def key_counts(self) -> dict[int, int]:
        """How many different keys each reader subscribes to in the whole run."""
        return {chain.id: self.feeds.count(chain) for chain in self.scenario.subscribers()}

    @property
    def chains(self) -> ChainSimulator:
        """The chains themselves."""
        return self.network.chains

    @property
    def run_id(self) -> str:
        """The digest of everything that the outcome depends on."""
        return self._digest(__version__.encode()).hexdigest()

    @property
    def source_digest(self) -> bytes:
        """The digest of what the chains are made from, whatever version makes them; 8 bytes."""
        return self._digest().digest()

    def _digest(self, *version: bytes) -> "blake2b":
        parts = [msgspec.json.encode(self.echo()), self.network.chains.relay_chain.genesis_root, *version]
        if self.playback is not None:
            parts.append(self.playback.recording.digest)
        parts.extend(digest for load in self.sources.loads.values() for digest in load.digests)
        parts.extend(source.digest for source in self.sources.wasm_sources.values())
        return blake2b(b"\x00".join(parts), digest_size=8)

    @property
    def by_key(self) -> bool:
        """Whether the ledger keeps accounts by key, of which there is a table."""
        return self.network.ledger.accounts is Accounts.BY_KEY

    def keep_accounts(self, *, per_key: bool | None = None) -> None:
        """Let the ledger say what each byte is for, and whether by key, see ``simulate``.

        A few blocks of those that read most come with a picture.
        """
        subscribed = self.key_counts
        if per_key is None:
            per_key = sum(subscribed.values()) * self.scenario.blocks <= MOST_KEY_ROWS
        ledger = self.network.ledger
        ledger.accounts = Accounts.BY_KEY if per_key else Accounts.BY_PUBLISHER
        pictured = [para_id for para_id, keys in subscribed.items() if keys <= MOST_PICTURED_KEYS]
        for para_id in sorted(pictured, key=lambda para_id: -subscribed[para_id])[:PICTURED_SUBSCRIBERS]:
            ledger.pictures[ParaId(para_id)] = PICTURED_BLOCKS

    def echo(self) -> Scenario:
        """Return the scenario without where its files lie on this machine."""
        return echoed(self.scenario)

    def blocks(self, *, last: int | None = None) -> Iterator[Passed]:
        """Run relay blocks up to number ``last``, the scenario's last by default, and yield each.

        The blocks after those that passed before come next. What listens to the chains hears each block as it is built;
        the tally has its records when it is yielded.
        """
        chains = self.network.chains
        for block in range(chains.tick + 1, (self.scenario.blocks if last is None else last) + 1):
            self.begin(block)
            with self.sources.telling_refusals(self.scenario, block):
                records = self.network.ledger.step()
            for record in records:
                self.tally.add(record)
            for wasm_block_record in self.network.ledger.take_wasm_block_records():
                self.tally.add_wasm_block(wasm_block_record)
            yield Passed(block, records)

    def run(self, progress: Progress | None = None) -> Outcome:
        """Let the scenario's blocks pass and return what they came to."""
        self.let_pass(progress)
        return self.outcome()

    def let_pass(self, progress: Progress | None, *, last: int | None = None) -> None:
        """Run relay blocks up to number ``last``, the scenario's last by default."""
        for passed in self.blocks(last=last):
            if progress is not None:
                progress(passed.block)

    def begin(self, block: int) -> None:
        """Let parachains want and send what they do in relay block number ``block``, which is still to pass."""
        for chain in self.scenario.subscribers():
            if wants_change(chain, block):
                self.feeds.change(chain, block)
        for para_id, publish in self.scenario.publishers().items():
            if publish.deregisters_at == block:
                self.network.chains.deregister_publisher(para_id)
        for workload in self.wasm_workloads.values():
            workload.begin(block)
        for para_id, key, value, ttl in self.due(block):
            self._send(para_id, key, value, ttl)
            self.published[para_id].sent += 1
            self.published[para_id].value_bytes += len(value)

    def _send(self, para_id: int, key: str | bytes, value: bytes, ttl: int) -> None:
        publisher, publish = self.network.publisher(para_id), self.scenario.publishers().get(para_id)
        if publish is not None and isinstance(publish.payment, Payment):
            publisher.publish_paid(key, value, fees=publish.payment.fees, ttl=ttl)
        else:
            publisher.publish(key, value, ttl=ttl)

    def due(self, block: int) -> Iterator[Publication]:
        """Yield every publication sent in relay block ``block``."""
        yield from publications(self.scenario, block)
        if self.playback is not None:
            yield from self.playback.take(block)

    def dump(self) -> WorkloadDump:
        """Return how far the workload is, as data; chains and ledger are put away by themselves."""
        return WorkloadDump(
            version=VERSION,
            network=self.network.dump(),
            sendings=list(map(replace, self.published.values())),
            playback=None if self.playback is None else self.playback.dump(),
        )

    def load(self, dump: WorkloadDump) -> None:
        """Go on with the workload of another simulation of this scenario; raises ``CheckpointRefused``."""
        given = [it.para_id for it in dump.sendings]
        if given != list(self.published) or (dump.playback is None) != (self.playback is None):
            raise CheckpointRefused(f"the workload: got the publishers {given}, expected {list(self.published)}")
        self.network.load(dump.network)
        self.published = {it.para_id: replace(it) for it in dump.sendings}
        if self.playback is not None and dump.playback is not None:
            self.playback.load(dump.playback)

    def outcome(self) -> Outcome:
        """Return what the run came to."""
        scenario, chains = self.scenario, self.network.chains
        relay, tallies = scenario.relaychain, {chain.id: self.tally.of(chain.id) for chain in scenario.subscribers()}
        panics = [f"{para_id}: {panic}" for para_id, it in self.tally.subscribers.items() for panic in it.panics]
        publishers = [self._publisher(chain) for chain in scenario.parachains if chain.id in self.published]
        violations = [*map(str, self.network.ledger.invariants.violations), *panics]
        return Outcome(
            run_id=self.run_id,
            name=scenario.name,
            description=scenario.description,
            version=__version__,
            engine=ENGINE,
            seed=scenario.seed,
            blocks=scenario.blocks,
            block_seconds=relay.block_seconds,
            relaychain=relay_outcome(chains.relay_chain, relay, self.sources, entries=self.network.genesis_entries),
            publishers=publishers,
            subscribers=[self._subscriber(chain, publishers) for chain in scenario.subscribers()],
            oversize_blocks=self.tally.oversize_blocks,
            invariants=InvariantsOutcome(not violations, violations),
            recorded=None if self.playback is None else recorded_outcome(self.playback.recording),
            series={para_id: it.charted for para_id, it in tallies.items()},
            latencies={para_id: dict(sorted(it.latencies.items())) for para_id, it in tallies.items()},
            pictures={para_id: it.chosen_pictures for para_id, it in tallies.items()},
            keys={para_id: it.keys.costs for para_id, it in tallies.items()},
            key_names=self.network.key_names(),
            runtimes=[self._runtime(chain) for chain in scenario.wasm_parachains()],
            refusals=self.tally.refusals,
            upgrades=upgrade_outcomes(scenario),
            runtime_series={
                chain.id: self.tally.wasm_parachain(chain.id).points for chain in scenario.wasm_parachains()
            },
        )

    def _add_parachain(self, chain: ParachainTable) -> None:
        """Add a parachain with its policies, its budget and its pace."""
        relay, table, chains = self.scenario.relaychain, self.scenario.policies, self.network.chains
        try:
            chains.add_parachain(
                chain.id,
                config=subscriber_config(chain, self.scenario),
                policies=policies_of(table),
                budget=budget_of(table, pov_percent=relay.pov_percent, pov_bytes=relay.pov_bytes),
                max_pov_size=relay.max_pov_bytes,
                pace=chain.pace,
            )
        except (CodecError, ChannelMissing) as error:
            place = f"{relay.genesis} at the message queues of parachain {chain.id}"
            raise BadInput(place, str(error), "heads and channels as a relay chain writes them") from None
        self._load(chain)

    def _add_wasm_parachain(self, chain: ParachainTable) -> None:
        """Add a parachain with a real runtime; one that has to registers as a publisher with the first relay block."""
        from relaycast.simulation.wasm_parachains import pace_of, workload_of  # noqa: PLC0415 - needs the extra wasm

        most, source = self.scenario.relaychain.max_pov_bytes, self.sources.wasm_sources[chain.id]
        made = self.wasm_workloads[chain.id] = workload_of(chain.id, source, max_pov_size=most)
        self.network.add_guest(made.parachain, pace=pace_of(made.parachain, chain.pace))
        self._load(chain)

    def _load(self, chain: ParachainTable) -> None:
        """Let messages arrive for a parachain beside pub-sub, where its table says so."""
        if chain.messages is not None:
            self.chains.traffic[ParaId(chain.id)] = self.sources.loads[chain.id]
            if chain.messages.senders:
                self.chains.senders[ParaId(chain.id)] = tuple(map(ParaId, chain.messages.senders))

    def on_fact(self, fact: Fact) -> None:
        """Count what a relay block took of every publisher."""
        if not isinstance(fact, RelaySealed):
            return
        runtimes = {para_id: self.tally.wasm_parachain(para_id) for para_id in self.wasm_workloads}
        count_block(fact.block, self.published, runtimes)

    def _publisher(self, chain: ParachainTable) -> PublisherOutcome:
        return publisher_outcome(
            chain, self.published[chain.id], keys=self._key_count(chain), spent_planck=self._spent(chain)
        )

    def _runtime(self, chain: ParachainTable) -> RuntimeOutcome:
        waiting = self.wasm_workloads[chain.id].waiting(self.scenario.blocks)
        return self.tally.wasm_parachain(chain.id).outcome(chain.id, chain.name, waiting=waiting)

    def _spent(self, chain: ParachainTable) -> int | msgspec.UnsetType:
        """Return what a publisher that pays has spent so far."""
        payment = None if chain.publish is None else chain.publish.payment
        if not isinstance(payment, Payment):
            return msgspec.UNSET
        return payment.balance - self.network.publisher(chain.id).account.balance

    def _key_count(self, chain: ParachainTable) -> int:
        if chain.publish is not None:
            return chain.publish.keys
        assert self.playback is not None
        return len(self.playback.recording.keys[chain.id])

    def _subscriber(self, chain: ParachainTable, publishers: list[PublisherOutcome]) -> SubscriberOutcome:
        it, most, chains = self.tally.of(chain.id), self.scenario.relaychain.max_pov_bytes, self.network.chains
        system = chains.parachains[ParaId(chain.id)].parachain_system
        return subscriber_outcome(
            chain,
            it,
            keys=self.feeds.count(chain),
            publishers=it.publishers if chain.upgrades else with_formulas(it.publishers, publishers, self.scenario),
            max_pov_bytes=most,
            message_free_bytes=message_free_bytes(system.budget, most),
            any_key_bytes=bytes_for_any_key(chains.relay_chain, system.subscriber, chain.publishers_read),
        )
