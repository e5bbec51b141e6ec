"""Messages for parachains: what arrives in which relay block, and what a network knows of them beside the queues."""

from collections.abc import Callable, Sequence

from relaycast_collator.collator import Pace
from relaycast_collator.relay_chain import RelayBlock
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import U32, Count, DumpRow

Messages = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Downward and horizontal messages of one relay block."""

Traffic = Callable[[int], Messages]
"""What arrives for one parachain, by the number of the relay block that the messages stand in."""

MODELLED_SENDER = ParaId(9_999)
"""Who sends horizontal messages unless a load names its senders."""


def by_sender(
    messages: Sequence[bytes], senders: Sequence[ParaId], *, relay_block: int
) -> dict[ParaId, tuple[bytes, ...]]:
    """Share the horizontal messages of a relay block out among their ``senders``, who take turns, also over blocks."""
    count = len(senders)
    shares = {sender: tuple(messages[(index - relay_block) % count :: count]) for index, sender in enumerate(senders)}
    return {sender: share for sender, share in sorted(shares.items()) if share}


class InboundDump(DumpRow, frozen=True):
    """What is known of a parachain's messages beside queues: what its blocks took that are not included yet."""

    joined: U32
    refused_bytes: Count
    processed_downward_messages: U32
    hrmp_watermark: U32 | None
    """None of a parachain that built no block in the last tick."""


class InboundBook:
    """For each parachain, the relay block in which it ``joined``, what its new blocks took, and ``refused_bytes``."""

    def __init__(self) -> None:
        self.joined: dict[ParaId, int] = {}
        self.refused_bytes: dict[ParaId, int] = {}
        self._taken: dict[ParaId, MessagesTaken] = {}

    def relay_parent(self, para_id: ParaId, pace: Pace, parents: Sequence[RelayBlock]) -> RelayBlock:
        """Return the one of ``parents`` that a parachain builds on by its pace, none from before it joined."""
        newest = parents[-1].number
        return parents[-1 - min(pace.relay_parent_offset, newest - self.joined[para_id], len(parents) - 1)]

    def take(self, para_id: ParaId, taken: MessagesTaken) -> None:
        """Note messages that a block took, for the relay block that includes it."""
        before = self._taken.get(para_id)
        self._taken[para_id] = taken if before is None else before.and_then(taken)

    def included(self, para_id: ParaId) -> MessagesTaken | None:
        """Return what the blocks took that are included now, and forget it; ``None`` where none was built."""
        return self._taken.pop(para_id, None)

    def refuse(self, para_id: ParaId, refused_bytes: int) -> None:
        """Count bytes that were refused to their senders."""
        self.refused_bytes[para_id] = self.refused_bytes.get(para_id, 0) + refused_bytes

    def forget(self, para_id: ParaId) -> None:
        """Forget a parachain that is off-boarded."""
        del self.joined[para_id]
        self._taken.pop(para_id, None)
        self.refused_bytes.pop(para_id, None)

    def dump(self, para_id: ParaId) -> InboundDump:
        """Return what is known of a parachain as data."""
        taken, refused_bytes = self._taken.get(para_id), self.refused_bytes.get(para_id, 0)
        processed = 0 if taken is None else taken.processed_downward_messages
        watermark = None if taken is None else taken.hrmp_watermark
        return InboundDump(self.joined[para_id], refused_bytes, processed, watermark)

    def load(self, para_id: ParaId, dump: InboundDump) -> None:
        """Know of a parachain what another book put away."""
        self.joined[para_id], self.refused_bytes[para_id] = dump.joined, dump.refused_bytes
        self._taken.pop(para_id, None)
        if dump.hrmp_watermark is not None:
            self._taken[para_id] = MessagesTaken(dump.processed_downward_messages, dump.hrmp_watermark)
