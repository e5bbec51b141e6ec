"""A ``WasmParachain`` of a few lines, without WebAssembly: its own state, real proofs, three kinds of extrinsics."""

from collections import Counter

from relaycast_collator import (
    BlockNotBuilt,
    Header,
    RelayBlock,
    RelayProver,
    StorageItemShare,
    WasmBlock,
    WasmParachainDump,
)
from relaycast_collator.collator import collect_relay_storage_proof
from relaycast_collator.header import ordered_root
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT, RelayProofRequest, static_relay_keys
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken
from relaycast_trie import Recorder, StorageProof, blake2_256
from relaycast_trie.hasher import twox_128
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import VERSION, CheckpointRefused

PANIC, SEND, PASS = b"panic:", b"send:", b"pass:"
"""What begins an extrinsic that traps, one whose rest is sent upward, and one whose rest is the id of a parachain in
four bytes, and a message for it. Others are noted."""

SUCCESS = b"\x00\x00"


def item(pallet: str, name: str) -> bytes:
    return twox_128(pallet.encode()) + twox_128(name.encode())


NUMBER, SLOT, SEEN, NOTES = (
    item("System", "Number"),
    item("Clock", "Slot"),
    item("Mail", "Seen"),
    item("Notes", "Notes"),
)
ITEMS = {NUMBER: ("System", "Number"), SLOT: ("Clock", "Slot"), SEEN: ("Mail", "Seen"), NOTES: ("Notes", "Notes")}


class HandMadeParachain:
    """Notes its number, the relay chain's slot, the messages that came, and every extrinsic by its hash."""

    spec_name, spec_version = "hand-made", 1

    def __init__(self, para_id: int, *, max_pov_size: int = 5 * 1024 * 1024, notes: int = 300) -> None:
        self.para_id = ParaId(para_id)
        self.max_pov_size = max_pov_size
        self.waiting: list[bytes] = []
        self.mail: list[bytes] = []
        genesis = {NOTES + blake2_256(b"%d" % number): bytes(40) for number in range(notes)}
        self.state = State({NUMBER: bytes(4), **genesis}, window=2, engine="plain")
        self.head = Header(bytes(32), 0, self.state.root)

    def submit(self, extrinsic: bytes) -> None:
        self.waiting.append(extrinsic)

    def build_block(self, relay_parent: RelayBlock, relay_chain: RelayProver) -> WasmBlock:
        keys = static_relay_keys(self.para_id)
        proof = collect_relay_storage_proof(
            relay_chain, relay_parent, keys, RelayProofRequest(), channels_of=self.para_id
        )
        slot = proof.verify(relay_parent.state_root, [CURRENT_SLOT])[CURRENT_SLOT]
        assert slot is not None
        seen = int.from_bytes(self.state.get(SEEN) or b"", "little")
        downward, horizontal = relay_chain.inbound_messages(relay_parent, self.para_id)
        came = [message for message in (*downward, *horizontal) if message.sent_at > seen]
        taken = MessagesTaken(sum(message in downward for message in came), relay_parent.number)
        extrinsics, self.waiting = tuple(self.waiting), []
        number = self.head.number + 1
        try:
            with self.state.transaction():
                self.state.put(NUMBER, number.to_bytes(4, "little"))
                self.state.put(SLOT, slot)
                self.state.put(SEEN, relay_parent.number.to_bytes(4, "little"))
                for extrinsic in extrinsics:
                    self._apply(extrinsic)
        except BlockNotBuilt:
            self.waiting = []
            raise
        self.mail += [message.data for message in came]
        written = [NUMBER, SLOT, SEEN, *(NOTES + blake2_256(extrinsic) for extrinsic in extrinsics)]
        touched = Recorder()
        root = self.state.commit(reads={None: {SEEN}}, recorder=touched)
        own_proof = StorageProof(touched.nodes.values())
        self.head = Header(self.head.hash, number, root, ordered_root(list(extrinsics)))
        sent = tuple(it.removeprefix(SEND) for it in extrinsics if it.startswith(SEND))
        passed_on = [it.removeprefix(PASS) for it in extrinsics if it.startswith(PASS)]
        return WasmBlock(
            self.head,
            extrinsics,
            (SUCCESS,) * len(extrinsics),
            proof,
            own_proof,
            _shares(written, own_proof),
            sent,
            taken,
            horizontal_messages=tuple((ParaId(int.from_bytes(it[:4], "little")), it[4:]) for it in passed_on),
        )

    def _apply(self, extrinsic: bytes) -> None:
        if extrinsic.startswith(PANIC):
            raise BlockNotBuilt(extrinsic.removeprefix(PANIC).decode(), ("runtime: about to panic",))
        self.state.put(NOTES + blake2_256(extrinsic), extrinsic)

    def dump(self) -> WasmParachainDump:
        return WasmParachainDump(VERSION, int(self.para_id), self.head.encode(), self.state.dump(), list(self.waiting))

    def load(self, dump: WasmParachainDump) -> None:
        if dump.para_id != self.para_id:
            raise CheckpointRefused(f"got parachain {dump.para_id}")
        self.state.load(dump.state)
        self.head, self.waiting = Header.decode(dump.head), list(dump.waiting)


def _shares(written: list[bytes], proof: StorageProof) -> tuple[StorageItemShare, ...]:
    """Return the proof in equal parts for the items written, the rest of a division for the first."""
    writes = Counter(ITEMS[key[:32]] for key in written)
    each, rest = divmod(proof.proof_bytes, len(writes))
    return tuple(
        StorageItemShare(pallet, name, 1, count, each + (rest if at == 0 else 0))
        for at, ((pallet, name), count) in enumerate(writes.items())
    )
