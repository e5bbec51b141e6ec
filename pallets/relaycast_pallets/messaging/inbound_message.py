"""Messages for one parachain, in full or as hashes, and the chain of hashes that holds a queue together.

A link is ``blake2_256(previous ++ sent_at ++ hash)``, where ``hash`` is that of the message as SCALE ``Vec<u8>``. The
chain of a queue that never held a message is 32 zeros (cumulus ``MessageQueueChain``). A message in full and its hash
make the same link.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter

from relaycast_pallets.frame.typed_storage import StorageCodec, read_all
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_u32, encode_vec
from relaycast_xcm.primitives import BlockNumber, ParaId, u32

EMPTY_CHAIN = bytes(32)
"""The head of a queue that never held a message."""

HASH_BYTES = 32
HASHED_DOWNWARD_BYTES = 4 + HASH_BYTES
"""``HashedMessage``: the relay block that the message stands in, and its hash."""

HASHED_HORIZONTAL_BYTES = 4 + HASHED_DOWNWARD_BYTES
"""The same behind the id of its sender."""


@lru_cache(maxsize=64)
def message_hash(data: bytes) -> bytes:
    """Return the hash that stands for a message: Blake2b-256 of its SCALE ``Vec<u8>``, the length included."""
    return blake2_256(encode_bytes(data))


@dataclass(frozen=True, slots=True)
class HashedMessage:
    """A message of which the hash alone is handed over (cumulus ``HashedMessage``)."""

    sent_at: BlockNumber
    """The relay block that the message stands in."""

    message_hash: bytes
    sender: ParaId | None = None
    """The parachain that sent it; ``None`` is the relay chain itself."""

    @property
    def encoded_bytes(self) -> int:
        """Bytes of the entry in an inherent."""
        return HASHED_DOWNWARD_BYTES if self.sender is None else HASHED_HORIZONTAL_BYTES

    def encode(self) -> bytes:
        """SCALE ``HashedMessage``, behind its sender where a parachain sent it."""
        return _encode_sender(self.sender) + encode_u32(self.sent_at) + self.message_hash


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message in full (polkadot ``InboundDownwardMessage`` and ``InboundHrmpMessage``)."""

    sent_at: BlockNumber
    data: bytes
    sender: ParaId | None = None
    _hashed: HashedMessage | None = field(default=None, init=False, repr=False, compare=False)

    def hashed(self) -> HashedMessage:
        """Return the entry that stands for it where it is not handed over in full.

        Made once: every block asks it of every message that waits.
        """
        if (hashed := self._hashed) is None:
            hashed = HashedMessage(self.sent_at, message_hash(self.data), self.sender)
            object.__setattr__(self, "_hashed", hashed)
        return hashed

    def encode(self) -> bytes:
        """SCALE ``InboundDownwardMessage``, or ``(ParaId, InboundHrmpMessage)`` where a parachain sent it."""
        if self.sender is None:
            return encode_u32(self.sent_at) + encode_bytes(self.data)
        return _encode_sender(self.sender) + encode_u32(self.sent_at) + encode_bytes(self.data)


def extend(head: bytes, message: HashedMessage) -> bytes:
    """Return the head of a chain after one more message."""
    return blake2_256(head + encode_u32(message.sent_at) + message.message_hash)


@dataclass(frozen=True, slots=True)
class InboundMessageId:
    """The place of a message among messages in order: its number before the last one of its relay block (cumulus).

    Counted from behind, because those at the front go when they are processed.
    """

    sent_at: BlockNumber
    reverse_idx: u32 = 0

    def encode(self) -> bytes:
        """Two u32."""
        return encode_u32(self.sent_at) + encode_u32(self.reverse_idx)

    @classmethod
    def decode(cls, data: bytes) -> "InboundMessageId":
        """Return the id that all of ``data`` encodes; raises ``CodecError``."""
        return read_all(data, lambda reader: cls(reader.u32(), reader.u32()))


INBOUND_MESSAGE_ID: StorageCodec[InboundMessageId] = StorageCodec(
    "InboundMessageId", InboundMessageId.encode, InboundMessageId.decode, 8
)


def drop_processed(messages: Sequence[InboundMessage], last: InboundMessageId | None) -> Sequence[InboundMessage]:
    """Return the messages behind the one that was processed ``last`` (cumulus ``drop_processed_messages``)."""
    if last is None or not messages:
        return messages
    index = bisect_right(messages, last.sent_at, key=attrgetter("sent_at")) - 1
    if index >= 0 and messages[index].sent_at == last.sent_at:
        index -= last.reverse_idx
    return messages[index + 1 :] if index >= 0 else messages


@dataclass(frozen=True, slots=True)
class AbridgedMessages:
    """Messages in order, the first of them in ``full`` (cumulus ``AbridgedInboundMessagesCollection``)."""

    full: tuple[InboundMessage, ...] = ()
    hashed: tuple[HashedMessage, ...] = ()

    @classmethod
    def of(cls, messages: Sequence[InboundMessage], full_count: int) -> "AbridgedMessages":
        """Return ``messages`` with the first ``full_count`` of them in full."""
        return cls(tuple(messages[:full_count]), tuple(message.hashed() for message in messages[full_count:]))

    @property
    def full_bytes(self) -> int:
        """Bytes of the messages in full."""
        return sum(len(message.data) for message in self.full)

    @property
    def hashed_bytes(self) -> int:
        """Bytes that the hashed entries take in an inherent."""
        return sum(message.encoded_bytes for message in self.hashed)

    def encode(self) -> bytes:
        """SCALE: two vectors."""
        return encode_vec(message.encode() for message in self.full) + encode_vec(it.encode() for it in self.hashed)

    def __len__(self) -> int:
        return len(self.full) + len(self.hashed)


NO_MESSAGES = AbridgedMessages()


@dataclass(frozen=True, slots=True)
class InboundMessagesData:
    """All messages that a block is given (cumulus ``InboundMessagesData``)."""

    downward: AbridgedMessages = NO_MESSAGES
    horizontal: AbridgedMessages = NO_MESSAGES

    def encode(self) -> bytes:
        """SCALE: downward messages, then horizontal ones."""
        return self.downward.encode() + self.horizontal.encode()

    @classmethod
    def decode(cls, data: bytes) -> "InboundMessagesData":
        """Return the messages that all of ``data`` encodes; raises ``CodecError``."""
        return read_all(data, cls.read)

    @classmethod
    def read(cls, reader: ScaleReader) -> "InboundMessagesData":
        """Return the messages that begin where ``reader`` stands; raises ``CodecError``."""
        return cls(*(_read_abridged(reader, horizontal=horizontal) for horizontal in (False, True)))


def _encode_sender(sender: ParaId | None) -> bytes:
    return b"" if sender is None else sender.encode()


def _read_abridged(reader: ScaleReader, *, horizontal: bool) -> AbridgedMessages:
    def sender() -> ParaId | None:
        return ParaId(reader.u32()) if horizontal else None

    full = []
    for _ in range(reader.length(5 + 4 * horizontal)):
        who = sender()
        full.append(InboundMessage(reader.u32(), reader.bytes_(), who))
    hashed = []
    for _ in range(reader.length(HASHED_HORIZONTAL_BYTES if horizontal else HASHED_DOWNWARD_BYTES)):
        who = sender()
        hashed.append(HashedMessage(reader.u32(), reader.take(HASH_BYTES), who))
    return AbridgedMessages(tuple(full), tuple(hashed))


def _encode_heads(heads: dict[ParaId, bytes]) -> bytes:
    return encode_vec(sender.encode() + heads[sender] for sender in sorted(heads))


def _read_heads(reader: ScaleReader) -> dict[ParaId, bytes]:
    return {ParaId(reader.u32()): reader.take(HASH_BYTES) for _ in range(reader.length(4 + HASH_BYTES))}


def _encode_para_ids(para_ids: tuple[ParaId, ...]) -> bytes:
    return encode_vec(para_id.encode() for para_id in para_ids)


def _read_para_ids(reader: ScaleReader) -> tuple[ParaId, ...]:
    return tuple(ParaId(reader.u32()) for _ in range(reader.length(4)))


HEADS_BY_SENDER = StorageCodec.reading("BTreeMap<ParaId, H256>", _encode_heads, _read_heads)
PARA_IDS = StorageCodec.reading("Vec<ParaId>", _encode_para_ids, _read_para_ids)
