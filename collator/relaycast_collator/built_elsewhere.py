"""Where a parachain stands after a tick, as another process needs it that builds the relay chain as well."""

from relaycast_collator.chains_dump import InboundDump
from relaycast_xcm.checkpoint import U32, DumpRow


class BuiltElsewhere(DumpRow, frozen=True):
    """The head of a parachain, a header in SCALE, and what its new blocks took of messages."""

    para_id: U32
    head: bytes
    inbound: InboundDump
