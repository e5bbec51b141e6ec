"""Chains between two ticks, as data: what a checkpoint of a network holds of them."""

from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from relaycast_collator.guests import GuestDump
from relaycast_collator.outbox import Outbox, Publication, PublicationDump, SentMessage
from relaycast_collator.parachain import ParachainDump
from relaycast_collator.relay_chain import RelayChainDump
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import U32, Count, Dump, DumpRow, Version


class SentDump(DumpRow, frozen=True):
    """What the blocks of a parachain sent in the last tick: messages, and the publications in each."""

    para_id: U32
    blocks: list[list[list[PublicationDump]]]

    @classmethod
    def of(cls, para_id: ParaId, blocks: Iterable[Iterable[SentMessage]]) -> "SentDump":
        """Put away what a parachain's blocks sent."""
        return cls(int(para_id), [[[it.dump() for it in one.publications] for one in sent] for sent in blocks])

    def messages(self, outbox: Outbox) -> list[list[SentMessage]]:
        """Return the messages of each block as the parachain's ``outbox`` made them."""
        return [[outbox.message_of([Publication.of_dump(it) for it in one]) for one in sent] for sent in self.blocks]


class InboundDump(DumpRow, frozen=True):
    """What is known of a parachain's messages beside queues: what its blocks took that are not included yet."""

    joined: U32
    refused_bytes: Count
    processed_downward_messages: U32
    hrmp_watermark: U32 | None
    """None of a parachain that built no block in the last tick."""


class GuestSentDump(DumpRow, frozen=True):
    """What the blocks of a guest sent in the last tick: for each the messages upward, and those to other parachains."""

    para_id: U32
    blocks: list[list[bytes]]
    horizontal: list[list[tuple[U32, bytes]]]


class GuestsDump(Dump, frozen=True):
    """The guests; ``inbound`` is about messages for them, in the same order."""

    guests: list[GuestDump]
    inbound: list[InboundDump]
    sent: list[GuestSentDump]


class ChainsDump(Dump, frozen=True):
    """Chains between two ticks; ``inbound`` is about messages for the parachains, in the same order."""

    version: Version
    tick: Count
    relay_chain: RelayChainDump
    parachains: list[ParachainDump]
    inbound: list[InboundDump]
    sent: list[SentDump]
    guests: GuestsDump | UnsetType = UNSET
    """Absent where there are none."""
