"""Parachains with real runtimes in a simulation: made from their sources, and given their extrinsics block by block."""

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from relaycast.refusal import BadInput
from relaycast.simulation.wasm_sources import CODE, PlannedTransfer, WasmParachainSource, loaded
from relaycast_collator import Pace, RelayChain
from relaycast_pallets.frame.state import State
from relaycast_trie import ChildInfo
from relaycast_trie.engine import Engine
from relaycast_trie.exceptions import CodecError
from relaycast_xcm import ParaId

if TYPE_CHECKING:
    from relaycast_wasm.parachain import RuntimeParachain
    from relaycast_wasm.runtime import WasmRuntime
    from relaycast_wasm.transactions.extrinsics import TransactionWriter

RELAY_SLOT_MILLISECONDS = 6_000
WINDOW = 2
"""States of a Wasm parachain that can be proven from: that of its head, and the one before."""


def workload_of(para_id: int, source: WasmParachainSource, *, max_pov_size: int) -> "WasmParachainWorkload":
    """Return the parachain that a source describes, with what is submitted to it; raises ``BadInput``."""
    return WasmParachainWorkload(wasm_parachain_of(para_id, source, max_pov_size=max_pov_size), source)


def wasm_parachain_of(
    para_id: int, source: WasmParachainSource, *, max_pov_size: int, trie_engine: Engine = "auto"
) -> "RuntimeParachain":
    """Return the parachain that a source describes, at its genesis; raises ``BadInput``."""
    runtime = loaded(source.code, source.place)
    from relaycast_wasm.parachain import RuntimeParachain  # noqa: PLC0415 - needs the extra wasm

    state = state_of(source, runtime, trie_engine=trie_engine)
    from relaycast_wasm.exceptions import WasmError  # noqa: PLC0415

    try:
        parachain = RuntimeParachain(ParaId(para_id), runtime, state, max_pov_size=max_pov_size)
        _ = parachain.slot_milliseconds
    except ValueError as error:
        raise BadInput(source.place, str(error), f"the genesis of parachain {para_id}") from None
    except WasmError as error:
        raise BadInput(source.place, str(error), "a runtime that says how long its slots are") from None
    return parachain


def state_of(
    source: WasmParachainSource, runtime: "WasmRuntime", *, trie_engine: Engine, window: int = WINDOW
) -> State:
    """Return the state of the genesis, with the runtime's code in it, in the version that the runtime writes."""
    children = {ChildInfo.new_default(name): pairs for name, pairs in source.state.children.items()}
    top = {**source.state.top, CODE: source.code}
    return State(top, children, state_version=runtime.version.trie_version, window=window, engine=trie_engine)


def run_relay_chain(relay: RelayChain, code: bytes, place: str) -> None:
    """Let a runtime build the relay chain's blocks, with the modelled pallets beside it; raises ``BadInput``."""
    runtime = loaded(code, place)
    from relaycast_wasm.relay_body import RuntimeRelayBody  # noqa: PLC0415 - needs the extra wasm

    relay.body = RuntimeRelayBody(runtime, relay)


def pace_of(parachain: "RuntimeParachain", pace: Pace) -> Pace:
    """Return how often a Wasm parachain builds: by its ``pace``, and no more often than once in a slot that is longer.

    A runtime whose slots are as short as the relay chain's may build several blocks in each.
    """
    return replace(pace, relay_blocks=max(pace.relay_blocks, parachain.slot_milliseconds // RELAY_SLOT_MILLISECONDS))


class WasmParachainWorkload:
    """Extrinsics for one Wasm parachain by relay block; transfers are signed when their block comes."""

    def __init__(self, parachain: "RuntimeParachain", source: WasmParachainSource) -> None:
        self.parachain, self._source = parachain, source
        self._genesis_hash = parachain.head.hash
        self._signed: dict[str, list[bytes]] = defaultdict(list)
        """Transfers by sender that may still wait for a block."""

        self._made: tuple[WasmRuntime, TransactionWriter] | None = None
        transfers = [it for wanted in source.extrinsics.values() for it in wanted if isinstance(it, PlannedTransfer)]
        if transfers:
            from relaycast_wasm.exceptions import WasmError  # noqa: PLC0415 - needs the extra wasm

            try:
                self._transfer(transfers[0])
            except (ValueError, WasmError, CodecError) as error:
                expected = "extrinsics in hex for a runtime like this"
                raise BadInput(source.extrinsics_place, f"transfers, but {error}", expected) from None

    def begin(self, block: int) -> None:
        """Submit what relay block number ``block`` brings."""
        for wanted in self._source.extrinsics.get(block, ()):
            if isinstance(wanted, PlannedTransfer):
                extrinsic = self._transfer(wanted)
                self._signed[wanted.sender].append(extrinsic)
                self.parachain.submit(extrinsic)
            else:
                self.parachain.submit(wanted)

    def waiting(self, last: int) -> int:
        """Return how many extrinsics wait for a block after relay block number ``last``."""
        later = (wanted for block, wanted in self._source.extrinsics.items() if block > last)
        return len(self.parachain.waiting) + sum(map(len, later))

    def _transfer(self, wanted: PlannedTransfer) -> bytes:
        """Return the signed transaction, its nonce behind those of the same sender that wait."""
        from relaycast_wasm.transactions.signing import Signer  # noqa: PLC0415 - needs the extra wasm

        writer, signer = self._writer(), Signer.dev(wanted.sender)
        to = Signer.dev(wanted.to).public if isinstance(wanted.to, str) else wanted.to
        left = [it for it in self._signed[wanted.sender] if it in self.parachain.waiting]
        self._signed[wanted.sender] = left
        nonce = self.parachain.chain.account_nonce(signer.public) + len(left)
        return writer.sign(writer.transfer(to, wanted.amount), signer, nonce=nonce)

    def _writer(self) -> "TransactionWriter":
        """Return what writes transactions for the runtime that the Wasm parachain has now."""
        from relaycast_wasm.metadata.of_runtime import metadata_of  # noqa: PLC0415
        from relaycast_wasm.transactions.extrinsics import TransactionWriter  # noqa: PLC0415 - needs the extra wasm

        runtime = self.parachain.chain.runtime
        if self._made is None or self._made[0] is not runtime:
            self._made = runtime, TransactionWriter(metadata_of(runtime), runtime.version, self._genesis_hash)
        return self._made[1]
