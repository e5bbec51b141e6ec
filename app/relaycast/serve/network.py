"""A scenario as served chains: its workload runs block by block for as long as the server does."""

from dataclasses import dataclass

from relaycast.genesis.chain_spec import ChainSpec
from relaycast.refusal import BadInput, shown
from relaycast.scenario.files import load_named
from relaycast.scenario.workload_dump import WorkloadDump
from relaycast.serve.live_feed import KeyNames
from relaycast.simulation.simulation import Simulation
from relaycast_node.block_time import EXPECTED, BlockTime, block_time_of
from relaycast_node.chain.served_chain import KEPT_BLOCKS, ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_trie.exceptions import MissingNode

LEAST_KEPT = 512
"""As many blocks as a client of ``chainHead_v1`` may have pinned."""


@dataclass(frozen=True, slots=True)
class LivingNetwork:
    """The chains and their clock; ``key_names`` gives the names that the scenario has for keys.

    ``source_digest`` says what they are made from. A user may have asked for a ``finality``, and for a block time.
    """

    clock: ChainClock
    title: str
    key_names: KeyNames
    source_digest: bytes
    finality: int | None = None
    is_paced: bool = False


@dataclass(frozen=True, slots=True)
class ScenarioWorkload:
    """What a scenario's parachains want and send, block by block (``Workload``)."""

    simulation: Simulation

    def step(self) -> None:
        """Run one tick; raises ``BadInput`` if the witness of the relay chain lacks an entry that a block reads."""
        chains = self.simulation.chains
        self.simulation.begin(chains.tick + 1)
        try:
            chains.step()
        except MissingNode as error:
            expected = "a witness with this entry: relaycast import rpc takes further keys with --key"
            raise BadInput("the witness", str(error), expected) from error

    def dump(self) -> WorkloadDump:
        return self.simulation.dump()

    def load(self, dump: WorkloadDump) -> None:
        self.simulation.load(dump)


def pace_of(block_time: str, *, default: float) -> BlockTime:
    """Return the block time that a user gave, ``default`` seconds for none; raises ``BadInput``."""
    if not block_time:
        return default
    try:
        return block_time_of(block_time)
    except ValueError:
        raise BadInput("--block-time", shown(block_time), EXPECTED) from None


def kept_of(keep: str) -> int | None:
    """Return how many blocks a user wants to keep, ``None`` for all; raises ``BadInput``."""
    if not keep:
        return KEPT_BLOCKS
    if keep == "all":
        return None
    if not keep.isdecimal() or len(keep) > 9 or int(keep) < LEAST_KEPT:
        raise BadInput("--keep", shown(keep), f"a number of blocks from {LEAST_KEPT} on, or all")
    return int(keep)


def living(name: str, block_time: str = "", *, finality: int | None = None, keep: str = "") -> LivingNetwork:
    """Return the network of a preset or a scenario file at block 0; raises ``BadInput``.

    A block is final when ``finality`` blocks stand on it, by default two. Each chain keeps ``keep`` blocks with their
    states: a number, or ``all``.
    """
    kept = kept_of(keep)
    scenario = load_named(name, "serve")
    pace = pace_of(block_time, default=scenario.relaychain.block_seconds)
    simulation = Simulation.prepare(scenario)
    digest = simulation.source_digest
    chains, network = simulation.chains, simulation.network
    for listener in (network.ledger.on_fact, simulation.on_fact):  # nobody asks this server for the tables of a run
        chains.listeners.remove(listener)

    relay, wasm_parachains = _of_real_runtimes(simulation)
    clock = ChainClock(
        chains,
        ScenarioWorkload(simulation),
        name=scenario.name,
        block_time=pace,
        relay=relay,
        wasm_parachains=wasm_parachains,
    )
    for served in clock.served():
        served.kept_blocks = kept
        if finality is not None:
            served.finality_lag = finality
    return LivingNetwork(clock, scenario.name, network.key_names, digest, finality, is_paced=bool(block_time))


def _of_real_runtimes(simulation: Simulation) -> tuple[ServedChain | None, dict[int, ServedChain]]:
    """Serve the chains that real runtimes run: the relay chain, where it is one, and parachains by id."""
    chains, sources = simulation.chains, simulation.sources
    if not chains.wasm_parachains and sources.relay_code is None:
        return None, {}
    from relaycast.serve.runtime_chains import ChainLabel, RuntimeChains  # noqa: PLC0415 - needs the extra wasm

    def label(spec: ChainSpec, otherwise: str) -> ChainLabel:
        return ChainLabel(spec.name or otherwise, spec.properties)

    runtimes, name, relay = RuntimeChains(chains), simulation.scenario.name, None
    if sources.spec is not None:
        relay = runtimes.serve_relay_chain(label(sources.spec, f"{name} relay"))
    return relay, {
        int(para_id): runtimes.serve_parachain(
            parachain, label(sources.wasm_sources[int(para_id)].state, f"{name} parachain {para_id}")
        )
        for para_id, parachain in chains.wasm_parachains.items()
    }
