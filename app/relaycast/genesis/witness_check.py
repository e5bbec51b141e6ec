"""Whether a witness shows what chains need, which is told before they run."""

from relaycast.genesis.chain_spec import ChainSpec
from relaycast.genesis.witness_keys import ensure_shown, wanted_by, wanted_for
from relaycast.refusal import BadInput
from relaycast.scenario.scenario import Scenario
from relaycast_trie import CodecError, MissingNode
from relaycast_trie.plain.partial_trie import StateWitness


def check_witness(spec: ChainSpec, witness: StateWitness, scenario: Scenario) -> None:
    """Raise ``BadInput`` where a relay chain cannot run this scenario from a witness."""
    relay = scenario.relaychain
    if isinstance(relay.wasm, str):
        got = f"the runtime {relay.wasm} beside a witness"
        raise BadInput("relaychain.wasm", got, "a whole state as genesis: real runtimes read what no witness shows")
    if relay.state_version is not None and relay.state_version != spec.state_version:
        got = f"{relay.state_version} beside a witness of version {int(spec.state_version)}"
        raise BadInput("relaychain.state_version", got, "no other version: values that are missing cannot be migrated")
    try:
        ensure_shown(witness, wanted_for(scenario))
    except (MissingNode, CodecError) as error:
        ids = [str(chain.id) for chain in scenario.with_copies().parachains]
        expected = f"one for parachains {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''}"
        hint = "relaycast import rpc takes the scenario with --scenario"
        raise BadInput(str(relay.genesis), f"a witness without what they need: {error}", expected, hint) from None


def check_parachain(witness: StateWitness, para_id: int) -> None:
    """Raise ``ValueError`` where a witness does not show what a parachain needs."""
    try:
        ensure_shown(witness, wanted_by([para_id]))
    except (MissingNode, CodecError) as error:
        raise ValueError(f"the witness does not show what parachain {para_id} needs: {error}") from None
