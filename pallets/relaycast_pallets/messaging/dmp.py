"""Downward messages on the relay chain: a queue for each parachain, and the head of its chain in the state (dmp).

Law: the head under ``Dmp.DownwardMessageQueueHeads`` covers every message that was ever queued; what a parachain has
processed leaves the queue, never the head.
"""

from collections.abc import Iterable, Sequence

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import BYTES32, PARA_ID, TWOX_64_CONCAT, StorageMap, storage_prefix
from relaycast_pallets.messaging.inbound_message import EMPTY_CHAIN, InboundMessage, extend
from relaycast_pallets.messaging.waiting import QueueDump, WaitingMessages
from relaycast_xcm.checkpoint import U32, Dump, refusing
from relaycast_xcm.primitives import BlockNumber, ParaId


class DownwardDump(Dump, frozen=True):
    """The downward queue of one parachain."""

    para_id: U32
    waiting: QueueDump


class Dmp:
    """The downward queues of all parachains over the relay chain's ``state``."""

    PALLET = "Dmp"

    def __init__(self, state: State) -> None:
        self.state = state
        self.heads = StorageMap(state, self.PALLET, "DownwardMessageQueueHeads", (TWOX_64_CONCAT, PARA_ID), BYTES32)
        self._queues: dict[ParaId, WaitingMessages] = {}

    def head(self, para_id: ParaId) -> bytes:
        """Return the head of a parachain's queue."""
        return self.heads.get(para_id) or EMPTY_CHAIN

    def queue(self, para_id: ParaId, messages: Iterable[bytes], *, sent_at: BlockNumber) -> int:
        """Queue messages in relay block ``sent_at`` and return the bytes of those that found no room."""
        waiting = self._queues.setdefault(para_id, WaitingMessages())
        head = before = self.head(para_id)
        refused_bytes = 0
        for data in messages:
            if not waiting.accepts(len(data)):
                refused_bytes += len(data)
                continue
            message = InboundMessage(sent_at, data)
            waiting.push(message)
            head = extend(head, message.hashed())
        if head != before:
            self.heads.insert(para_id, head)
        return refused_bytes

    def messages(self, para_id: ParaId, *, up_to: BlockNumber) -> Sequence[InboundMessage]:
        """Return what waits for a parachain and stands in relay blocks up to number ``up_to``."""
        return [message for message in self._queues.get(para_id, ()) if message.sent_at <= up_to]

    def prune(self, para_id: ParaId, processed: int) -> None:
        """Let the first ``processed`` messages go, or all where fewer wait: a block that processed them is included."""
        waiting = self._queues.get(para_id)
        if waiting is not None:
            waiting.drop(processed)

    def forget_forked(self, para_id: ParaId) -> None:
        """Remove what a state that was taken over from elsewhere holds for a parachain that joins with its head."""
        self.state.kill(self._contents_key(para_id))

    def remove(self, para_id: ParaId) -> None:
        """Remove a parachain's queue and its head (``clean_dmp_after_outgoing``)."""
        self._queues.pop(para_id, None)
        self.heads.remove(para_id)
        self.state.kill(self._contents_key(para_id))

    def dump(self) -> list[DownwardDump]:
        """Return what waits as data."""
        return [DownwardDump(int(para_id), waiting.dump()) for para_id, waiting in self._queues.items() if waiting]

    def load(self, dumps: list[DownwardDump]) -> None:
        """Hold the messages that another put away; raises ``CheckpointRefused``."""
        self._queues = {}
        for it in dumps:
            with refusing(f"downward messages for parachain {it.para_id}"):
                self._queues[ParaId(it.para_id)] = WaitingMessages.of_dump(it.waiting)

    def _contents_key(self, para_id: ParaId) -> bytes:
        return storage_prefix(self.PALLET, "DownwardMessageQueues") + TWOX_64_CONCAT.digest(para_id.encode())

    def __repr__(self) -> str:
        return f"<Dmp: {sum(map(len, self._queues.values()))} messages wait>"
