"""A parachain of a real runtime: its blocks stand on relay parents of the network, with the network's proofs.

What its collator would do is done here. It collects the relay proof, with what the runtime asks for besides, and hands
over messages and the clock of the relay parent. Then it lets the runtime build. Modelled are the seal and the author.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from relaycast_collator.collator import RelayProver, collect_relay_storage_proof
from relaycast_collator.header import Header, aura_pre_digest, modelled_seal
from relaycast_collator.relay_chain import RelayBlock
from relaycast_collator.wasm_parachain import BlockNotBuilt, ExtrinsicLeftOut, WasmBlock, WasmParachainDump
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT, RelayProofRequest, static_relay_keys
from relaycast_pallets.messaging.inbound_message import InboundMessage
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES, PersistedValidationData
from relaycast_trie import StorageProof
from relaycast_trie.exceptions import CodecError, ProofError
from relaycast_trie.hasher import twox_128
from relaycast_trie.scale import encode_option, encode_vec
from relaycast_wasm.blocks.applied import EXHAUSTS_RESOURCES
from relaycast_wasm.blocks.collation import COLLECT, CollationInfo, collect_arguments
from relaycast_wasm.blocks.inherents import AURA_SLOT, PARACHAIN_SYSTEM, PARACHAIN_SYSTEM_V1, TIMESTAMP, clock_inherents
from relaycast_wasm.blocks.pov_shares import shares_of
from relaycast_wasm.blocks.runtime_calls import api_id
from relaycast_wasm.chain import BuiltBlock, Load, RuntimeChain, Seal
from relaycast_wasm.engine.limits import DEFAULT_LIMITS, Limits
from relaycast_wasm.exceptions import BlockRefused, WasmError
from relaycast_wasm.metadata.of_runtime import metadata_of
from relaycast_wasm.metadata.storage_names import StorageNames
from relaycast_wasm.overlay import OverlayedChanges
from relaycast_wasm.runtime import WasmRuntime
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import VERSION, CheckpointRefused, refusing

KEYS_TO_PROVE = "KeyToIncludeInRelayProof_keys_to_prove"
SLOT_DURATION = "AuraApi_slot_duration"
PARACHAIN_ID = twox_128(b"ParachainInfo") + twox_128(b"ParachainId")
RELAY_SLOT_MILLISECONDS = 6_000


class RuntimeParachain:
    """Parachain ``para_id`` of a ``runtime`` whose ``state`` is that of ``head``, the genesis unless given.

    ``seal`` puts the author's signature on a header, a modelled one unless given: a node would check it, the network
    does not. Extrinsics wait until a block takes or refuses them.
    """

    def __init__(
        self,
        para_id: ParaId,
        runtime: WasmRuntime,
        state: State,
        head: Header | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        max_pov_size: int = MAX_POV_BYTES,
        seal: Seal | None = None,
        load: Load = WasmRuntime.load,
    ) -> None:
        own = state.get(PARACHAIN_ID)
        if own is not None and own != para_id.encode():
            raise ValueError(f"its genesis is that of parachain {int.from_bytes(own, 'little')}, expected {para_id}")
        self.para_id = para_id
        self.chain = RuntimeChain(runtime, state, head, limits=limits, load=load)
        self.max_pov_size = max_pov_size
        self.waiting: list[bytes] = []
        self.built: BuiltBlock | None = None
        """The last block, with what it refused."""

        self._named: tuple[WasmRuntime, StorageNames, tuple[str, ...]] | None = None
        self._seal = seal or (lambda header: modelled_seal(para_id, header))

    @property
    def head(self) -> Header:
        return self.chain.head

    @property
    def state(self) -> State:
        return self.chain.state

    @property
    def spec_name(self) -> str:
        return self.chain.runtime.version.spec_name

    @property
    def spec_version(self) -> int:
        return self.chain.runtime.version.spec_version

    @property
    def slot_milliseconds(self) -> int:
        """How long one of its slots takes: that of the relay chain where it does not say."""
        if SLOT_DURATION not in self.chain.runtime.methods:
            return RELAY_SLOT_MILLISECONDS
        return int.from_bytes(self.chain.call(SLOT_DURATION).output[:8], "little") or RELAY_SLOT_MILLISECONDS

    def submit(self, extrinsic: bytes) -> None:
        """Let the next block hold ``extrinsic``, which starts with its length, after those that wait already."""
        self.waiting.append(extrinsic)

    def build_block(self, relay_parent: RelayBlock, relay_chain: RelayProver) -> WasmBlock:
        """Build the next block on ``relay_parent``; raises ``BlockNotBuilt``, or ``StateDiscarded`` if that is gone."""
        runtime = self.chain.runtime
        try:
            relay_proof = self.collect(relay_parent, relay_chain)
            inherents = self.inherents(relay_parent, relay_chain, relay_proof)
            slot = int.from_bytes(inherents[AURA_SLOT], "little")
            digest = [aura_pre_digest(slot=slot)]
            downward, _ = relay_chain.inbound_messages(relay_parent, self.para_id)
            told: list[CollationInfo] = []
            built = self.chain.build_block(
                inherents,
                self.waiting,
                digest=digest,
                seal=self._seal,
                ask=lambda *left: told.append(_possible(self._told(*left), relay_parent, downward)),
            )
        except (WasmError, CodecError, ProofError) as error:
            raise BlockNotBuilt(str(error), getattr(error, "log", ())) from error
        names, unnamed = self._names_of(runtime)
        self.waiting = [it.extrinsic for it in built.refused if it.result == EXHAUSTS_RESOURCES]
        left_out = [it for it in built.refused if it.result != EXHAUSTS_RESOURCES]
        self.built, info = built, told[0]
        return WasmBlock(
            built.header,
            built.extrinsics,
            built.results,
            relay_proof,
            built.own_proof,
            shares_of(built, names),
            info.upward_messages,
            info.taken,
            (*built.log, *unnamed),
            tuple(ExtrinsicLeftOut(it.extrinsic, it.reason, not it.result) for it in left_out),
            info.horizontal_messages,
        )

    def collect(self, relay_parent: RelayBlock, relay_chain: RelayProver) -> StorageProof:
        """Return the relay proof of a block on ``relay_parent``, with the keys that the runtime asks for."""
        request = RelayProofRequest()
        if KEYS_TO_PROVE in self.chain.runtime.methods:
            answer = self.chain.call(KEYS_TO_PROVE).output
            try:
                request = RelayProofRequest.decode(answer)
            except CodecError as error:
                raise BlockRefused(f"what {KEYS_TO_PROVE} answers is no RelayProofRequest: {error}") from None
        static = static_relay_keys(self.para_id)
        return collect_relay_storage_proof(relay_chain, relay_parent, static, request, channels_of=self.para_id)

    def inherents(
        self, relay_parent: RelayBlock, relay_chain: RelayProver, relay_proof: StorageProof
    ) -> dict[bytes, bytes]:
        """Return the inherent data of a block on ``relay_parent``: the time, its slot, validation data and messages."""
        root = relay_parent.state_root
        relay_slot = relay_proof.verify(root, [CURRENT_SLOT])[CURRENT_SLOT]
        now = int.from_bytes(relay_slot or b"", "little") * RELAY_SLOT_MILLISECONDS
        duration = self.slot_milliseconds
        data = PersistedValidationData(self.head.encode(), relay_parent.number, root, self.max_pov_size)
        downward, horizontal = relay_chain.inbound_messages(relay_parent, self.para_id)
        by_sender: dict[ParaId, list[InboundMessage]] = defaultdict(list)
        for message in horizontal:
            assert message.sender is not None
            by_sender[message.sender].append(message)
        given = data.encode() + relay_proof.encode() + encode_vec(it.encode() for it in downward)
        given += encode_vec(
            sender.encode() + encode_vec(replace(it, sender=None).encode() for it in by_sender[sender])
            for sender in sorted(by_sender)
        )
        return {
            **clock_inherents(now // duration, slot_milliseconds=duration),
            TIMESTAMP: now.to_bytes(8, "little"),
            PARACHAIN_SYSTEM: given,
            PARACHAIN_SYSTEM_V1: given + encode_vec(()) + encode_option(None),
        }

    def _told(self, header: Header, overlay: OverlayedChanges) -> CollationInfo:
        """Return what a block that leaves this storage tells the relay chain; raises ``BlockRefused``."""
        try:
            if COLLECT in self.chain.runtime.methods:
                version = self.chain.runtime.version.apis.get(api_id("CollectCollationInfo"), 1)
                answer = self.chain.call(COLLECT, collect_arguments(version, header), overlay=overlay)
                return CollationInfo.decode(answer.output)
            return CollationInfo.read(overlay.get)
        except CodecError as error:
            raise BlockRefused(f"what it tells the relay chain cannot be read: {error}") from None

    def dump(self) -> WasmParachainDump:
        """Return where it stands between two blocks."""
        head, state = self.head.encode(), self.state.dump()
        return WasmParachainDump(VERSION, int(self.para_id), head, state, list(self.waiting))

    def load(self, dump: WasmParachainDump) -> None:
        """Stand where another parachain stood that was made like this one; raises ``CheckpointRefused``.

        One that refuses can no longer be used.
        """
        with refusing(f"parachain {self.para_id}"):
            if dump.para_id != self.para_id:
                raise CheckpointRefused(f"got parachain {dump.para_id}")
            self.state.load(dump.state)
            self.chain.stand_at(Header.decode(dump.head))
        self.waiting, self.built = list(dump.waiting), None

    def _names_of(self, runtime: WasmRuntime) -> tuple[StorageNames, tuple[str, ...]]:
        """Return the storage items of the runtime that built a block, and a line for the log where it gives none.

        A chain runs without metadata: its keys have no names then.
        """
        if self._named is None or self._named[0] is not runtime:
            try:
                self._named = runtime, StorageNames(metadata_of(runtime)), ()
            except (WasmError, CodecError) as error:
                self._named = runtime, StorageNames.none(), (f"its storage items have no names: {error}",)
        return self._named[1:]

    def __repr__(self) -> str:
        return f"<RuntimeParachain {self.para_id} of {self.chain.runtime!r} at #{self.head.number}>"


def _possible(info: CollationInfo, relay_parent: RelayBlock, downward: Sequence[InboundMessage]) -> CollationInfo:
    """Return what a block tells, unless no relay chain takes it: then raise ``BlockRefused``."""
    processed, watermark = info.taken.processed_downward_messages, info.taken.hrmp_watermark
    if processed > len(downward):
        raise BlockRefused(f"it processed {processed:,} downward messages, {len(downward):,} wait for it")
    if watermark > relay_parent.number:
        raise BlockRefused(f"its watermark is relay block {watermark:,}, its relay parent is {relay_parent.number:,}")
    return info
