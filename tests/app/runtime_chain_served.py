"""A chain of a real runtime behind the methods of a node, and a client that asks them, without a server."""

import asyncio
import json
from typing import Any

from relaycast.serve.runtime_chains import ChainLabel, RuntimeChains
from relaycast_collator import ChainSimulator
from relaycast_collator.relay_chain import Genesis
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_node.rpc.json_rpc import JsonRpc
from relaycast_node.rpc.node_face import NodeFace
from relaycast_node.rpc.session import RpcSession
from relaycast_pallets.frame.state import State
from relaycast_wasm import WasmRuntime
from relaycast_wasm.parachain import RuntimeParachain
from relaycast_wasm.relay_body import RuntimeRelayBody
from relaycast_xcm import ParaId


class Asking:
    """A client of one served chain."""

    def __init__(self, face: JsonRpc) -> None:
        self._face = face
        self._session = RpcSession()

    def ask(self, method: str, *params: Any) -> Any:
        """Call a method and return its result; an error comes back as ``(code, message, data)``."""
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = asyncio.run(self._face.answer(request, self._session))
        self._session.start()
        assert answer is not None
        found = json.loads(answer)
        if "error" in found:
            error = found["error"]
            return error["code"], error["message"], error.get("data")
        return found["result"]

    def told(self) -> list[tuple[str, Any]]:
        """Return the notifications since the last call: method and result."""
        found = []
        while len(self._session.outbox):
            message = asyncio.run(self._session.outbox.get())
            assert message is not None
            told = json.loads(message)
            found.append((told["method"], told["params"]["result"]))
        return found


class ServedRuntime(Asking):
    """Parachain 3000 of a runtime beside a modelled relay chain; blocks come on demand."""

    def __init__(self, runtime: WasmRuntime, genesis: dict[bytes, bytes], label: ChainLabel) -> None:
        chains = ChainSimulator()
        self.parachain = RuntimeParachain(
            ParaId(3000), runtime, State(genesis, state_version=runtime.version.trie_version)
        )
        chains.add_wasm_parachain(self.parachain)
        self.chain: ServedChain = RuntimeChains(chains).serve_parachain(self.parachain, label)
        self.clock = ChainClock(chains, chains.step, wasm_parachains={3000: self.chain})
        face = NodeFace(self.clock, version="1.2.3").parachain(3000)
        assert face is not None
        super().__init__(face)


class ServedRelayChain(Asking):
    """A relay chain of a runtime with a modelled parachain beside it; blocks come on demand."""

    def __init__(self, runtime: WasmRuntime, genesis: dict[bytes, bytes], label: ChainLabel) -> None:
        self.chains = ChainSimulator(genesis=Genesis(genesis, state_version=runtime.version.trie_version))
        self.chains.add_parachain(2000)
        relay = self.chains.relay_chain
        relay.body = RuntimeRelayBody(runtime, relay)
        served = RuntimeChains(self.chains).serve_relay_chain(label)
        assert served is not None
        self.chain: ServedChain = served
        self.clock = ChainClock(self.chains, self.chains.step, relay=served)
        super().__init__(NodeFace(self.clock, version="1.2.3").relay)
