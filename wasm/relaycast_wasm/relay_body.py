"""The relay chain run by a real runtime, with the modelled pallets beside it, in one state.

The runtime builds the block: inherents, transactions, what it does by itself. Modelled are parachains (their heads,
queues and messages), the broadcaster and the accounts that pay it: they write into the same state before the runtime
finalizes. So relay proofs are made of the very state that the header names. No runtime alone would lead to it: its
``Core_execute_block`` does not accept such blocks.
"""

from collections.abc import Iterable, Sequence

from relaycast_collator.header import (
    BABE,
    PRE_RUNTIME,
    SECONDARY_PLAIN,
    ClosedBody,
    DigestItem,
    Header,
    babe_pre_digest,
)
from relaycast_collator.relay_chain import RelayChain
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_trie.hasher import twox_128
from relaycast_trie.scale import ScaleReader
from relaycast_wasm.blocks.applied import EXHAUSTS_RESOURCES, RefusedExtrinsic
from relaycast_wasm.blocks.block_builder import BlockBuilder, BodyItem
from relaycast_wasm.blocks.inherents import TIMESTAMP, relay_inherents
from relaycast_wasm.blocks.runtime_calls import RuntimeCalls
from relaycast_wasm.chain import CODE, Load
from relaycast_wasm.engine.limits import DEFAULT_LIMITS, Limits
from relaycast_wasm.runtime import WasmRuntime

AUTHORITIES = twox_128(b"Babe") + twox_128(b"Authorities")


class RuntimeRelayBody(RuntimeCalls):
    """The body of the blocks of ``relay``, which a ``runtime`` builds (``BlockBody``).

    Slots go on from the one that the state holds, one a block. A runtime without BABE leaves them to be modelled.
    """

    def __init__(
        self,
        runtime: WasmRuntime,
        relay: RelayChain,
        *,
        limits: Limits = DEFAULT_LIMITS,
        load: Load = WasmRuntime.load,
    ) -> None:
        super().__init__(runtime, relay.state, limits=limits)
        self.waiting: list[bytes] = []
        self.body: tuple[BodyItem, ...] = ()
        """The extrinsics of the last block, with their results."""

        self.refused: tuple[RefusedExtrinsic, ...] = ()
        self.log: tuple[str, ...] = ()
        self.writes_consensus = relay.state.exists(AUTHORITIES)
        self._relay, self._load = relay, load
        self._builder: BlockBuilder | None = None

    @property
    def head(self) -> Header:  # type: ignore[override]
        return self._relay.head.header

    def submit(self, extrinsic: bytes) -> None:
        """Let the next block hold ``extrinsic``, which starts with its length, after those that wait already."""
        self.waiting.append(extrinsic)

    def open(self, number: int, parent_hash: bytes, logs: Sequence[DigestItem]) -> None:  # noqa: ARG002
        """Begin a block and fill it; raises ``BlockRefused``."""
        self._take_up_code()
        slot = self._slot(number)
        inherents = relay_inherents(slot, self.head)
        self.environment.timestamp_ms = int.from_bytes(inherents[TIMESTAMP], "little")
        builder = self._builder = self.begin(self.head, [self._digest(logs, slot)])
        builder.apply_inherents(inherents)
        builder.apply_waiting(self.waiting)
        self._write(builder)

    def apply(self, inherent: ParachainInherentData | None = None) -> None:
        """Do nothing: extrinsics stand before what is modelled."""

    def close(self) -> ClosedBody:
        """Let the runtime finalize what it and the modelled pallets wrote.

        Raises ``BlockRefused`` where it does not: then the relay chain cannot go on.
        """
        builder, self._builder = self._builder, None
        assert builder is not None, "a block is open"
        header = builder.finalize()
        self._write(builder)
        self.body, self.refused, self.log = tuple(builder.body), tuple(builder.refused), tuple(builder.log)
        self.waiting = [it.extrinsic for it in builder.refused if it.result == EXHAUSTS_RESOURCES]
        return ClosedBody(header.extrinsics_root, header.digest)

    def _write(self, builder: BlockBuilder) -> None:
        """Write what the block changed so far, for the modelled pallets to see."""
        self.state.write(builder.overlay.changes())
        builder.overlay = self.overlay()

    def _slot(self, number: int) -> int:
        held = self.state.get(CURRENT_SLOT)
        return number if held is None else int.from_bytes(held, "little") + 1

    def _digest(self, logs: Iterable[DigestItem], slot: int) -> DigestItem:
        """Return the claim of a slot by the modelled author, as one of the authorities that the runtime knows."""
        claim = next((it.data for it in logs if it.variant == PRE_RUNTIME and it.engine == BABE), SECONDARY_PLAIN)
        held = self.state.get(AUTHORITIES)
        count = 0 if held is None else ScaleReader(held).compact()
        index = int.from_bytes(claim[1:5], "little") % count if count else 0
        return babe_pre_digest(authority_index=index, slot=slot)

    def _take_up_code(self) -> None:
        code = self.state.get(CODE)
        if code is not None and code != self.runtime.code:
            self.runtime = self._load(code)
