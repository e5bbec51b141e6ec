"""How a parachain takes messages over: it extends its own chains by what it is given, up to the relay chain's heads.

Law: a block is valid when full and hashed messages together reach every head that the relay chain's state has, in order
and through open channels. If any message of a kind is hashed, at least one of that kind is in full; the policy
``advancement`` may ask for more horizontal ones. The chain advances by the messages in full alone; the hashed ones are
handed over again with a later block.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import BYTES32, U32, StorageValue
from relaycast_pallets.frame.well_known_keys import (
    dmq_mqc_head,
    hrmp_channel,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
)
from relaycast_pallets.messaging.hrmp_channel import HrmpChannel, HrmpChannelId
from relaycast_pallets.messaging.inbound_message import (
    EMPTY_CHAIN,
    HEADS_BY_SENDER,
    INBOUND_MESSAGE_ID,
    PARA_IDS,
    AbridgedMessages,
    HashedMessage,
    InboundMessage,
    InboundMessageId,
    InboundMessagesData,
    drop_processed,
    extend,
)
from relaycast_pallets.parachain_system.relay_budget import check_enough_messages_included
from relaycast_pallets.subscriber.policies import AdvancementPolicy
from relaycast_trie.exceptions import CodecError, RelaycastError
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_option, encode_vec
from relaycast_xcm.primitives import BlockNumber, ParaId

Read = Callable[[Iterable[bytes]], Mapping[bytes, bytes | None]]
"""Reads keys of the relay chain's top trie."""

Channels = dict[ParaId, HrmpChannel]
"""Channels of one direction by the parachain at their other end."""


class ChannelMissing(
    RelaycastError, message="the relay chain lists a channel from {sender} to {recipient} that its state does not hold"
):
    """The relay chain's index lists a channel from ``sender`` to ``recipient`` that its state does not hold."""

    sender: ParaId
    recipient: ParaId


class MessagingState(Struct, frozen=True):
    """The head of a parachain's downward queue, and its open channels in both directions."""

    dmq_mqc_head: bytes
    ingress: Channels
    egress: Channels

    @classmethod
    def read(cls, read: Read, para_id: ParaId) -> "MessagingState":
        """Read a parachain's messaging state.

        Raises ``ChannelMissing``, ``CodecError`` for values that are none, and what ``read`` raises.
        """
        ingress_ids, egress_ids = _channel_ids(read, para_id)
        keys = {channel: hrmp_channel(*channel) for channel in (*ingress_ids, *egress_ids)}
        head_key = dmq_mqc_head(para_id)
        values = read([head_key, *keys.values()])
        head = values.get(head_key)
        return cls(
            EMPTY_CHAIN if head is None else BYTES32.decode(head),
            {channel.sender: _channel(channel, values.get(keys[channel])) for channel in ingress_ids},
            {channel.recipient: _channel(channel, values.get(keys[channel])) for channel in egress_ids},
        )

    @property
    def is_empty(self) -> bool:
        """Whether no message was ever queued for the parachain, as far as open channels tell."""
        return self.dmq_mqc_head == EMPTY_CHAIN and all(it.mqc_head is None for it in self.ingress.values())


def channel_keys(read: Read, para_id: ParaId) -> list[bytes]:
    """Return the keys of a parachain's open channels: what a proof covers beside the fixed static keys."""
    return [hrmp_channel(*channel) for ids in _channel_ids(read, para_id) for channel in ids]


def _channel_ids(read: Read, para_id: ParaId) -> tuple[list[HrmpChannelId], list[HrmpChannelId]]:
    ingress_key, egress_key = hrmp_ingress_channel_index(para_id), hrmp_egress_channel_index(para_id)
    values = read([ingress_key, egress_key])
    ingress, egress = values.get(ingress_key), values.get(egress_key)
    senders = () if ingress is None else PARA_IDS.decode(ingress)
    recipients = () if egress is None else PARA_IDS.decode(egress)
    return [HrmpChannelId(it, para_id) for it in senders], [HrmpChannelId(para_id, it) for it in recipients]


def _channel(channel: HrmpChannelId, value: bytes | None) -> HrmpChannel:
    if value is None:
        raise ChannelMissing(*channel)
    return HrmpChannel.decode_abridged(value)


class InvalidMessages(RelaycastError):
    """The messages that a block was given are not those that the relay chain has for the parachain."""


class NoMessageInFull(
    InvalidMessages, message="{hashed} {kind} messages are given as hashes, expected at least one in full"
):
    """Messages of a ``kind`` wait, and all of them are handed over as hashes: the queue would never move on."""

    kind: str
    hashed: int


class MessagesHeldBack(
    InvalidMessages,
    message="horizontal messages of {full_bytes} bytes are given in full and the next as a hash, "
    "expected no room for {largest_next} more of {room} bytes",
):
    """Horizontal messages are hashed although the next one, of up to ``largest_next`` bytes, would fit."""

    full_bytes: int
    largest_next: int
    room: int


class QueueHeadMismatch(InvalidMessages):
    """The messages of a queue lead to ``reached`` in place of ``expected``; ``sender`` is ``None`` downward."""

    sender: ParaId | None
    reached: bytes
    expected: bytes

    def __str__(self) -> str:
        queue = "the relay chain" if self.sender is None else f"parachain {self.sender}"
        reached, expected = self.reached.hex(), self.expected.hex()
        return f"messages from {queue} lead to the head 0x{reached}, the relay chain's state has 0x{expected}"


class MessageOutOfOrder(
    InvalidMessages, message="a message of relay block {sent_at} from parachain {sender} stands behind a later one"
):
    """A horizontal message stands behind a later one, or behind one of the same block with a higher sender."""

    sent_at: BlockNumber
    sender: ParaId


class NoSuchChannel(InvalidMessages):
    """A horizontal message comes from a ``sender`` without an open channel to this parachain."""

    sender: ParaId | None

    def __str__(self) -> str:
        who = "the relay chain" if self.sender is None else f"parachain {self.sender}"
        return f"a horizontal message comes from {who}, which has no channel to this parachain"


class MessagesTaken(Struct, frozen=True):
    """What a block tells the relay chain about messages, so that it lets them go when the block is included."""

    processed_downward_messages: int = 0
    hrmp_watermark: BlockNumber = 0
    """The relay block up to which all horizontal messages are processed."""

    def and_then(self, later: "MessagesTaken") -> "MessagesTaken":
        """Return what two blocks in a row tell."""
        processed = self.processed_downward_messages + later.processed_downward_messages
        return MessagesTaken(processed, later.hrmp_watermark)


NOTHING_TAKEN = MessagesTaken()


class InboundMessages:
    """The storage items that messages advance, under cumulus' own names."""

    PALLET = "ParachainSystem"

    def __init__(self, state: State) -> None:
        def value_of(item: str) -> tuple[State, str, str]:
            return state, self.PALLET, item

        self._state = state
        self.last_dmq_mqc_head = StorageValue(*value_of("LastDmqMqcHead"), BYTES32)
        self.last_hrmp_mqc_heads = StorageValue(*value_of("LastHrmpMqcHeads"), HEADS_BY_SENDER)
        self.processed_downward_messages = StorageValue(*value_of("ProcessedDownwardMessages"), U32)
        self.hrmp_watermark = StorageValue(*value_of("HrmpWatermark"), U32)
        self.last_downward = StorageValue(*value_of("LastProcessedDownwardMessage"), INBOUND_MESSAGE_ID)
        self.last_horizontal = StorageValue(*value_of("LastProcessedHrmpMessage"), INBOUND_MESSAGE_ID)

    def adopt(self, relay: MessagingState, *, relay_block: BlockNumber) -> None:
        """Join a relay chain that has queued messages for this id before: they count as processed.

        A relay chain without heads for the id leaves the state as it is.
        """
        if relay.is_empty:
            return
        self.last_dmq_mqc_head.put(relay.dmq_mqc_head)
        self.last_hrmp_mqc_heads.put({sender: channel.head for sender, channel in relay.ingress.items()})
        self.last_downward.put(InboundMessageId(relay_block))
        self.last_horizontal.put(InboundMessageId(relay_block))
        self.hrmp_watermark.put(relay_block)

    def encode(self) -> bytes:
        """Return all items as they stand in storage: ``Vec<Option<Vec<u8>>>``."""
        values = [self._state.get(item.storage_key()) for item in self._items]
        return encode_vec(encode_option(None if value is None else encode_bytes(value)) for value in values)

    def restore(self, data: bytes) -> None:
        """Put back what ``encode`` gave, as it stood elsewhere; raises ``CodecError``."""
        reader = ScaleReader(data)
        if reader.length() != len(self._items):
            raise CodecError(f"messages have {len(self._items)} items of storage")
        values = [reader.bytes_() if reader.option() else None for _ in self._items]
        reader.done()
        for item, value in zip(self._items, values, strict=True):
            if value is None:
                item.kill()
            else:
                self._state.put(item.storage_key(), value)

    @property
    def _items(self) -> tuple[StorageValue[Any], ...]:
        return (
            self.last_dmq_mqc_head,
            self.last_hrmp_mqc_heads,
            self.processed_downward_messages,
            self.hrmp_watermark,
            self.last_downward,
            self.last_horizontal,
        )

    def unprocessed(
        self, downward: Sequence[InboundMessage], horizontal: Sequence[InboundMessage]
    ) -> tuple[Sequence[InboundMessage], Sequence[InboundMessage]]:
        """Return what of the relay chain's queues no block has processed: it lets go of messages a block later."""
        return (
            drop_processed(downward, self.last_downward.get()),
            drop_processed(horizontal, self.last_horizontal.get()),
        )

    def take_over(
        self, messages: InboundMessagesData, relay: MessagingState, *, relay_parent_number: BlockNumber
    ) -> MessagesTaken:
        """Advance by the messages in full; raises ``InvalidMessages``, and then the caller's transaction fails."""
        self._take_downward(messages.downward, relay.dmq_mqc_head)
        watermark = self._take_horizontal(messages.horizontal, relay.ingress, relay_parent_number)
        self.hrmp_watermark.put(watermark)
        return MessagesTaken(len(messages.downward.full), watermark)

    def _take_downward(self, messages: AbridgedMessages, expected: bytes) -> None:
        _require_one_in_full("downward", messages)
        head = self.last_dmq_mqc_head.get() or EMPTY_CHAIN
        if messages.full:
            head = _extended(head, (message.hashed() for message in messages.full))
            self.last_dmq_mqc_head.put(head)
            last = messages.full[-1].sent_at
            self.last_downward.put(InboundMessageId(last, sum(it.sent_at == last for it in messages.hashed)))
            head = _extended(head, messages.hashed)
        if head != expected:
            raise QueueHeadMismatch(None, head, expected)
        self.processed_downward_messages.put(len(messages.full))

    def _take_horizontal(
        self, messages: AbridgedMessages, channels: Mapping[ParaId, HrmpChannel], relay_parent_number: BlockNumber
    ) -> BlockNumber:
        _require_one_in_full("horizontal", messages)
        full = [message.hashed() for message in messages.full]
        _require_order((*full, *messages.hashed), channels)
        before = self.last_hrmp_mqc_heads.get() or {}
        heads = {sender: head for sender, head in before.items() if sender in channels}
        _extend_each(heads, full)
        if heads != before:
            self.last_hrmp_mqc_heads.put(heads)
        reached = dict(heads)
        _extend_each(reached, messages.hashed)
        for sender, channel in channels.items():
            if reached.get(sender, EMPTY_CHAIN) != channel.head:
                raise QueueHeadMismatch(sender, reached.get(sender, EMPTY_CHAIN), channel.head)
        if not full:
            self.last_horizontal.put(InboundMessageId(relay_parent_number))
            return relay_parent_number
        last = full[-1].sent_at
        still_to_come = sum(it.sent_at == last for it in messages.hashed)
        self.last_horizontal.put(InboundMessageId(last, still_to_come))
        if not still_to_come:
            return last
        earlier = (message.sent_at for message in reversed(full) if message.sent_at < last)
        return next(earlier, self.hrmp_watermark.get() or 0)


def ensure_advanced(
    messages: AbridgedMessages, channels: Mapping[ParaId, HrmpChannel], room: int, advancement: AdvancementPolicy
) -> None:
    """Raise ``MessagesHeldBack`` if horizontal ``messages``, taken over before, do not advance far enough.

    ``room`` is ``Abridged.horizontal_room``.
    """
    if not messages.hashed:
        return
    sender = messages.hashed[0].sender
    assert sender is not None, "enqueued messages have a sender"
    full_bytes, largest_next = messages.full_bytes, channels[sender].max_message_size
    if not advancement.allows(full_bytes=full_bytes, largest_next=largest_next, room=room):
        raise MessagesHeldBack(full_bytes, largest_next, room)


def _require_one_in_full(kind: str, messages: AbridgedMessages) -> None:
    if not check_enough_messages_included(messages.hashed, len(messages.full)):
        raise NoMessageInFull(kind, len(messages.hashed))


def _require_order(messages: Iterable[HashedMessage], channels: Mapping[ParaId, HrmpChannel]) -> None:
    """Refuse messages that are not ordered by relay block, then by sender, or come through no open channel."""
    latest = (0, 0)
    for message in messages:
        if message.sender is None or message.sender not in channels:
            raise NoSuchChannel(message.sender)
        place = (message.sent_at, message.sender)
        if place < latest:
            raise MessageOutOfOrder(message.sent_at, message.sender)
        latest = place


def _extended(head: bytes, messages: Iterable[HashedMessage]) -> bytes:
    for message in messages:
        head = extend(head, message)
    return head


def _extend_each(heads: dict[ParaId, bytes], messages: Iterable[HashedMessage]) -> None:
    for message in messages:
        assert message.sender is not None
        heads[message.sender] = extend(heads.get(message.sender, EMPTY_CHAIN), message)
