"""What the files that a scenario names hold: all of it read and checked before anything runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from relaycast.genesis.chain_spec import ChainSpec, refuse_missing_children
from relaycast.genesis.start import start_of
from relaycast.genesis.state_export import read_state
from relaycast.inputs import place_of, read_bytes
from relaycast.refusal import BadInput
from relaycast.scenario.message_load import Arrivals
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.wasm_sources import CODE, WasmParachainSource
from relaycast_collator.relay_chain import Genesis
from relaycast_trie.exceptions import MissingNode, RelaycastError

if TYPE_CHECKING:
    from relaycast.scenario.recording import Recording


@dataclass(frozen=True, slots=True)
class Sources:
    """A scenario's genesis and recorded publications, where it has some; message loads and Wasm parachains by id."""

    spec: ChainSpec | None = None
    recording: "Recording | None" = None
    loads: dict[int, Arrivals] = field(default_factory=dict)
    wasm_sources: dict[int, WasmParachainSource] = field(default_factory=dict)
    """Parachains with real runtimes."""

    relay_code: bytes | None = None
    """The relay chain's own runtime, which its state has as ``:code``."""

    start: Genesis | None = None
    """The state that the relay chain starts from, where several runs share it."""

    @classmethod
    def of(cls, scenario: Scenario) -> "Sources":
        """Read the files of a scenario; raises ``BadInput``."""
        genesis = scenario.relaychain.genesis
        loads = {
            chain.id: Arrivals.of(chain.messages, seed=scenario.seed, para_id=chain.id)
            for chain in scenario.parachains
            if chain.messages is not None
        }
        spec, wasm = None if genesis is None else read_state(genesis), scenario.relaychain.wasm
        if spec is not None and genesis is not None:
            refuse_missing_children(spec, place_of(genesis))
        if spec is not None and spec.witness is not None:
            from relaycast.genesis.witness_check import check_witness  # noqa: PLC0415 - brings the node along

            check_witness(spec, spec.witness, scenario)
        wasm_sources = {chain.id: WasmParachainSource.of(chain) for chain in scenario.wasm_parachains()}
        relay_code = read_bytes(wasm) if isinstance(wasm, str) else None
        if spec is not None and relay_code is not None:
            spec = replace(spec, top={**spec.top, CODE: relay_code})
        return cls(spec, scenario.recording(), loads, wasm_sources, relay_code)

    def for_many_runs(self, scenario: Scenario) -> "Sources":
        """Return the same for several runs of a scenario that differ in policies: its own genesis is sealed once."""
        if self.spec is None:
            return self
        start = start_of(self.spec, seed=scenario.seed, state_version=scenario.relaychain.state_version)
        return replace(self, start=start.for_many())

    @contextmanager
    def telling_refusals(self, scenario: Scenario, block: int) -> Iterator[None]:
        """Raise ``BadInput`` where the relay chain cannot build the block of this number.

        Its own runtime refuses it, or it needs what the witness that it started from does not show.
        """
        try:
            yield
        except MissingNode as error:
            if self.spec is None or self.spec.witness is None:
                raise
            got = f"a witness without what relay block {block} needs: {error}"
            expected = "one that shows it: relaycast import rpc takes further keys with --key"
            raise BadInput(str(scenario.relaychain.genesis), got, expected) from error
        except RelaycastError as error:
            if self.relay_code is None:
                raise
            got = f"a runtime that refuses relay block {block} ({error})"
            raise BadInput(str(scenario.relaychain.wasm), got, "one that builds on this genesis") from error

    def without_files(self, read: set[int]) -> "Sources":
        """Return what it takes to go on from a checkpoint where no file lies.

        The checkpoint brings the state and publications. It takes the keys of recorded publishers that are ``read``,
        and a witness, for a state with gaps goes on in one of its kind.
        """
        spec = self.spec if self.spec is not None and self.spec.witness is not None else None
        if self.recording is None:
            return Sources(spec, loads=self.loads)
        return Sources(spec, recording=self.recording.without_keys_but(read), loads=self.loads)
