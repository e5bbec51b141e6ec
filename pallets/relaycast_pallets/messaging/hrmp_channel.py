"""An HRMP channel as the relay chain keeps it: its limits, what waits in it, and the head of its chain of messages.

Parachains read the first six fields out of the relay chain's state (polkadot ``AbridgedHrmpChannel``).
"""

from dataclasses import dataclass
from typing import NamedTuple

from relaycast_pallets.frame.typed_storage import StorageCodec, read_all
from relaycast_pallets.messaging.inbound_message import EMPTY_CHAIN, HASH_BYTES
from relaycast_trie.scale import ScaleReader, encode_option, encode_u32, encode_u128
from relaycast_xcm.primitives import H256, Balance, ParaId, u32


class HrmpChannelId(NamedTuple):
    """A channel goes one way: from ``sender`` to ``recipient``."""

    sender: ParaId
    recipient: ParaId

    def encode(self) -> bytes:
        """Two ids of four bytes each."""
        return self.sender.encode() + self.recipient.encode()

    @classmethod
    def decode(cls, data: bytes) -> "HrmpChannelId":
        """Return the id that all of ``data`` encodes; raises ``CodecError``."""
        return read_all(data, lambda reader: cls(ParaId(reader.u32()), ParaId(reader.u32())))


@dataclass(frozen=True, slots=True)
class HrmpChannel:
    """The metadata of an open channel (polkadot ``hrmp::HrmpChannel``), 85 bytes once it has held a message."""

    max_capacity: u32
    """Messages that may wait in it."""

    max_total_size: u32
    """Bytes of all messages that may wait in it."""

    max_message_size: u32
    msg_count: u32 = 0
    total_size: u32 = 0
    mqc_head: H256 | None = None
    """``None`` until the first message."""

    sender_deposit: Balance = 0
    recipient_deposit: Balance = 0

    @property
    def head(self) -> bytes:
        """The head of its chain of messages."""
        return EMPTY_CHAIN if self.mqc_head is None else self.mqc_head

    def encode(self) -> bytes:
        """SCALE: five u32, an optional hash, two u128."""
        limits = self.max_capacity, self.max_total_size, self.max_message_size, self.msg_count, self.total_size
        deposits = encode_u128(self.sender_deposit) + encode_u128(self.recipient_deposit)
        return b"".join(map(encode_u32, limits)) + encode_option(self.mqc_head) + deposits

    @classmethod
    def decode(cls, data: bytes) -> "HrmpChannel":
        """Return the channel that all of ``data`` encodes; raises ``CodecError``."""
        return read_all(data, lambda reader: cls(*_read_abridged(reader), reader.u128(), reader.u128()))

    @classmethod
    def decode_abridged(cls, data: bytes) -> "HrmpChannel":
        """Return what a parachain may rely on, without deposits; raises ``CodecError``."""
        return cls(*_read_abridged(ScaleReader(data)))


def _read_abridged(reader: ScaleReader) -> tuple[int, int, int, int, int, bytes | None]:
    numbers = reader.u32(), reader.u32(), reader.u32(), reader.u32(), reader.u32()
    return *numbers, reader.take(HASH_BYTES) if reader.option() else None


HRMP_CHANNEL_ID: StorageCodec[HrmpChannelId] = StorageCodec(
    "HrmpChannelId", HrmpChannelId.encode, HrmpChannelId.decode, 8
)
HRMP_CHANNEL: StorageCodec[HrmpChannel] = StorageCodec("HrmpChannel", HrmpChannel.encode, HrmpChannel.decode)
