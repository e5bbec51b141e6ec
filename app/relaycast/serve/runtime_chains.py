"""Chains of real runtimes, served: what a client that connects to one of them talks to is that very runtime."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaycast.serve.runtime_code import RuntimeCode
from relaycast.serve.runtime_contents import Builds, RuntimeContents
from relaycast_collator import Chains, Fact, TickBegan
from relaycast_collator.header import Header
from relaycast_node.chain.code import BlockState
from relaycast_node.chain.served_chain import PROVABLE_BLOCKS, ServedChain
from relaycast_trie.exceptions import CodecError
from relaycast_wasm.chain import RuntimeChain
from relaycast_wasm.metadata.read import read_metadata
from relaycast_wasm.parachain import RuntimeParachain
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

    def __init__(self, chains: Chains) -> None:
        self.guests: dict[int, ServedChain] = {}
        self._contents: list[RuntimeContents] = []
        chains.listeners.append(self._hear)

    def serve_parachain(self, guest: RuntimeParachain, label: ChainLabel) -> ServedChain:
        """Serve a guest."""
        self.guests[int(guest.para_id)] = served = self._served(guest, guest.chain, guest.para_id, guest.head, label)
        return served

    def _served(
        self, builds: Builds, chain: RuntimeChain, para_id: ParaId | None, genesis: Header, label: ChainLabel
    ) -> ServedChain:
        chain.state.keep(PROVABLE_BLOCKS)
        code, contents = RuntimeCode(chain), RuntimeContents(builds)
        self._contents.append(contents)
        served = ServedChain(label.name, genesis, chain.state, code, contents, para_id=para_id)
        served.properties.update(label.properties or properties_of(code, served.newest()))
        return served

    def _hear(self, fact: Fact) -> None:
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
