"""Chains of real runtimes, served: what a client that connects to one of them talks to is that very runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relaycast.serve.runtime_code import RuntimeCode
from relaycast.serve.runtime_contents import RuntimeContents
from relaycast_collator import ChainSimulator, Fact, TickBegan, WasmParachain
from relaycast_collator.header import Header
from relaycast_node.chain.code import BlockState
from relaycast_node.chain.served_chain import PROVABLE_BLOCKS, ServedChain
from relaycast_trie.exceptions import CodecError
from relaycast_wasm.blocks.applied import RefusedExtrinsic
from relaycast_wasm.metadata.read import read_metadata
from relaycast_wasm.parachain import RuntimeParachain
from relaycast_wasm.relay_body import RuntimeRelayBody
from relaycast_xcm import ParaId

Properties = Mapping[str, object]
"""What ``system_properties`` answers, as a chain spec has it."""


@dataclass(frozen=True, slots=True)
class ChainLabel:
    """How clients see a chain: its name, and its token and addresses."""

    name: str
    properties: Properties = field(default_factory=dict)


class RuntimeChains:
    """The chains of real runtimes among ``chains``, at block 0; their pools are asked when a tick begins."""

    def __init__(self, chains: ChainSimulator) -> None:
        self._chains = chains
        self._contents: list[RuntimeContents] = []
        chains.listeners.append(self._on_fact)

    def serve_relay_chain(self, label: ChainLabel) -> ServedChain | None:
        """Serve the relay chain where its blocks are a runtime's."""
        relay, body = self._chains.relay_chain, self._chains.relay_chain.body
        if not isinstance(body, RuntimeRelayBody):
            return None
        contents = RuntimeContents(body, lambda: ([it.extrinsic for it in body.body], body.refused))
        return self._served(RuntimeCode(body), contents, None, relay.head.header, label)

    def serve_parachain(self, parachain: WasmParachain, label: ChainLabel) -> ServedChain:
        """Serve a Wasm parachain that a runtime builds."""
        assert isinstance(parachain, RuntimeParachain), "only a real runtime serves as a Wasm parachain here"

        def last_block() -> tuple[Sequence[bytes], Sequence[RefusedExtrinsic]]:
            return ((), ()) if parachain.built is None else (parachain.built.extrinsics, parachain.built.refused)

        contents = RuntimeContents(parachain, last_block)
        return self._served(RuntimeCode(parachain.chain), contents, parachain.para_id, parachain.head, label)

    def _served(
        self, code: RuntimeCode, contents: RuntimeContents, para_id: ParaId | None, genesis: Header, label: ChainLabel
    ) -> ServedChain:
        state = code.chain.state
        state.keep(PROVABLE_BLOCKS)
        self._contents.append(contents)
        served = ServedChain(label.name, genesis, state, code, contents, para_id=para_id)
        served.properties.update(label.properties or properties_of(code, served.newest()))
        return served

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, TickBegan):
            for contents in self._contents:
                contents.offer()


def properties_of(code: RuntimeCode, at: BlockState) -> dict[str, object]:
    """Return what a runtime itself says about addresses; nothing where it says nothing."""
    try:
        system = read_metadata(code.metadata(at)).pallet("System")
    except CodecError:
        return {}
    constants = () if system is None else system.constants
    prefix = next((it.value for it in constants if it.name == "SS58Prefix"), None)
    return {} if prefix is None else {"ss58Format": int.from_bytes(prefix, "little")}
