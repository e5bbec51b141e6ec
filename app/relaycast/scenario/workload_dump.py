"""How far a scenario's workload is, as data: what a checkpoint holds beside chains and ledger."""

from typing import Annotated

from msgspec import Meta

from relaycast_ledger.segments.simulated import PublisherCount
from relaycast_xcm.checkpoint import U32, Count, Dump, DumpRow, Hash, Version
from relaycast_xcm.instructions import MAX_PUBLISH_VALUE_BYTES


class FeedDump(DumpRow, frozen=True):
    """A feed that was subscribed to, under the name by which it was called."""

    publisher: U32
    key: Hash
    name: str


class NetworkDump(DumpRow, frozen=True):
    """What a network knows beside its chains and their ledger: who is registered, and all feeds subscribed to."""

    registered: list[U32]
    feeds: list[FeedDump]


class RecordedDump(DumpRow, frozen=True):
    """A recorded publication that is still to come."""

    block: Count
    para_id: U32
    key: Hash
    value: Annotated[bytes, Meta(max_length=MAX_PUBLISH_VALUE_BYTES)]
    ttl: U32


class PlaybackDump(DumpRow, frozen=True):
    """A recording under way: the publications at hand, which are all up to block ``reached``."""

    reached: Count
    at_hand: list[RecordedDump]


class WorkloadDump(Dump, frozen=True):
    """What a simulation holds beside its chains and their ledger."""

    version: Version
    network: NetworkDump
    sendings: list[PublisherCount]
    playback: PlaybackDump | None
