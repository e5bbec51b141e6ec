"""What a parachain's block tells the relay chain: messages, its watermark, new code.

A runtime of today answers ``CollectCollationInfo``; what an older one leaves in its storage says the same.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relaycast_collator.header import Header
from relaycast_pallets.parachain_system.inbound_messages import MessagesTaken
from relaycast_trie.hasher import twox_128
from relaycast_trie.scale import ScaleReader, encode_compact
from relaycast_xcm import ParaId

COLLECT = "CollectCollationInfo_collect_collation_info"
Read = Callable[[bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class CollationInfo:
    """``cumulus-primitives-core``, ``CollationInfo``, without the head's data."""

    upward_messages: tuple[bytes, ...]
    """Messages to the relay chain; behind an empty one stand signals to it."""

    horizontal_messages: tuple[tuple[ParaId, bytes], ...]
    new_validation_code: bytes | None
    taken: MessagesTaken

    @classmethod
    def decode(cls, data: bytes) -> "CollationInfo":
        """Return what the API answered, of whatever version it is; raises ``CodecError``."""
        reader = ScaleReader(data)
        upward = read_messages(reader)
        horizontal = read_outbound(reader)
        code = reader.bytes_() if reader.option() else None
        taken = MessagesTaken(reader.u32(), reader.u32())
        return cls(upward, horizontal, code, taken)

    @classmethod
    def read(cls, read: Read) -> "CollationInfo":
        """Read what the last block left in storage; raises ``CodecError``."""
        nothing = encode_compact(0)
        code = read(_item("NewValidationCode"))
        processed = read(_item("ProcessedDownwardMessages")) or bytes(4)
        watermark = read(_item("HrmpWatermark")) or bytes(4)
        return cls(
            read_messages(ScaleReader(read(_item("UpwardMessages")) or nothing)),
            read_outbound(ScaleReader(read(_item("HrmpOutboundMessages")) or nothing)),
            None if code is None else ScaleReader(code).bytes_(),
            MessagesTaken(ScaleReader(processed).u32(), ScaleReader(watermark).u32()),
        )


def collect_arguments(version: int, header: Header) -> bytes:
    """Return what the API of this version is called with."""
    return header.encode() if version >= 2 else b""


def read_messages(reader: ScaleReader) -> tuple[bytes, ...]:
    """Read upward messages."""
    return tuple(reader.bytes_() for _ in range(reader.length()))


def read_outbound(reader: ScaleReader) -> tuple[tuple[ParaId, bytes], ...]:
    """Read horizontal messages, each behind its recipient."""
    return tuple((ParaId(reader.u32()), reader.bytes_()) for _ in range(reader.length(5)))


def _item(name: str) -> bytes:
    return twox_128(b"ParachainSystem") + twox_128(name.encode())
