"""Messages for parachains: those that arrive by relay block, and what a network keeps of them apart from the queues."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from relaycast_collator.collator import Pace
from relaycast_collator.relay_chain import RelayBlock
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import U32, Count, DumpRow

Messages = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Downward and horizontal messages of one relay block."""

Traffic = Callable[[int], Messages]
"""Messages that arrive for one parachain, by the number of their relay block."""

MODELLED_SENDER = ParaId(9_999)
"""Who sends horizontal messages unless a load names its senders."""


def by_sender(
    messages: Sequence[bytes], senders: Sequence[ParaId], *, relay_block: int
) -> dict[ParaId, tuple[bytes, ...]]:
    """Share the horizontal messages of a relay block out among their ``senders``, who take turns, also over blocks."""
    count = len(senders)
    shares = {sender: tuple(messages[(index - relay_block) % count :: count]) for index, sender in enumerate(senders)}
    return {sender: share for sender, share in sorted(shares.items()) if share}


class InboundState(DumpRow, frozen=True):
    """A parachain's messages, apart from the queues.

    The relay block in which it ``joined``, the bytes refused to senders, and the messages taken by its blocks that are
    not included yet.
    """

    joined: U32
    refused_bytes: Count
    processed_downward_messages: U32
    hrmp_watermark: U32 | None
    """``None`` for a parachain that built no block in the last tick."""

    @property
    def taken(self) -> MessagesTaken | None:
        """Messages taken by blocks that are not included yet, ``None`` without such a block."""
        if self.hrmp_watermark is None:
            return None
        return MessagesTaken(self.processed_downward_messages, self.hrmp_watermark)

    def with_taken(self, processed: int, watermark: int | None) -> "InboundState":
        return InboundState(self.joined, self.refused_bytes, processed, watermark)


class InboundTracker(dict[ParaId, InboundState]):
    """The messages of each parachain, apart from the queues."""

    def join(self, para_id: ParaId, relay_block: int) -> None:
        """Begin with a parachain that joins in ``relay_block``."""
        self[para_id] = InboundState(relay_block, 0, 0, None)

    def relay_parent(self, para_id: ParaId, pace: Pace, parents: Sequence[RelayBlock]) -> RelayBlock:
        """Return the one of ``parents`` that a parachain builds on by its pace, none from before it joined."""
        newest = parents[-1].number
        return parents[-1 - min(pace.relay_parent_offset, newest - self[para_id].joined, len(parents) - 1)]

    def take(self, para_id: ParaId, taken: MessagesTaken) -> None:
        """Add the messages that a block took, for the relay block that includes it."""
        before = self[para_id].taken
        now = taken if before is None else before.and_then(taken)
        self[para_id] = self[para_id].with_taken(now.processed_downward_messages, now.hrmp_watermark)

    def included(self, para_id: ParaId) -> MessagesTaken | None:
        """Return the messages taken by blocks that are included now, and forget them; ``None`` without such a block."""
        taken = self[para_id].taken
        if taken is not None:
            self[para_id] = self[para_id].with_taken(0, None)
        return taken

    def refuse(self, para_id: ParaId, refused_bytes: int) -> None:
        """Count bytes that were refused to their senders."""
        if para_id in self:
            self[para_id] = replace(self[para_id], refused_bytes=self[para_id].refused_bytes + refused_bytes)
