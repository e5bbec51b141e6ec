"""Horizontal messages on the relay chain: channels between parachains, with their metadata in the state (hrmp).

Law: the head in ``Hrmp.HrmpChannels`` covers every message that was ever sent through the channel; its count and size
are those of the messages that wait. Both indexes list the open channels of a parachain, ids ascending.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import PARA_ID, TWOX_64_CONCAT, StorageMap, storage_prefix
from relaycast_pallets.messaging.hrmp_channel import HRMP_CHANNEL, HRMP_CHANNEL_ID, HrmpChannel, HrmpChannelId
from relaycast_pallets.messaging.inbound_message import PARA_IDS, InboundMessage, extend
from relaycast_pallets.messaging.waiting import MAX_WAITING_BYTES, MAX_WAITING_MESSAGES, QueueDump, WaitingMessages
from relaycast_xcm.checkpoint import U32, CheckpointRefused, Dump, refusing
from relaycast_xcm.primitives import BlockNumber, ParaId

MAX_MESSAGE_BYTES = 102_400
"""Polkadot's ``hrmp_channel_max_message_size``."""

MODELLED_CHANNEL = HrmpChannel(MAX_WAITING_MESSAGES, MAX_WAITING_BYTES, MAX_MESSAGE_BYTES)
"""The limits of a channel that a message load opens: as wide as a downward queue, without deposits.

In Polkadot's own channels 1,000 messages and 102,400 bytes may wait, far less than studies of message traffic ask for.
"""


class ChannelDump(Dump, frozen=True):
    """What waits in one channel."""

    sender: U32
    recipient: U32
    waiting: QueueDump


class Hrmp:
    """All channels over the relay chain's ``state``."""

    PALLET = "Hrmp"

    def __init__(self, state: State) -> None:
        self.state = state
        by_para = (TWOX_64_CONCAT, PARA_ID)
        self.channels = StorageMap(state, self.PALLET, "HrmpChannels", (TWOX_64_CONCAT, HRMP_CHANNEL_ID), HRMP_CHANNEL)
        self.ingress_index = StorageMap(state, self.PALLET, "HrmpIngressChannelsIndex", by_para, PARA_IDS)
        self.egress_index = StorageMap(state, self.PALLET, "HrmpEgressChannelsIndex", by_para, PARA_IDS)
        self._contents: dict[HrmpChannelId, WaitingMessages] = {}

    def open_channel(self, sender: ParaId, recipient: ParaId, limits: HrmpChannel = MODELLED_CHANNEL) -> None:
        """Open a channel; ``ValueError`` when it is open already, or leads back to its sender."""
        channel = HrmpChannelId(sender, recipient)
        if sender == recipient or channel in self.channels:
            raise ValueError(f"parachain {sender} cannot open a channel to {recipient}: it is open, or its own")

        self.channels.insert(channel, limits)
        _insert(self.ingress_index, recipient, sender)
        _insert(self.egress_index, sender, recipient)

    def send(self, sender: ParaId, recipient: ParaId, messages: Iterable[bytes], *, sent_at: BlockNumber) -> int:
        """Put messages into a channel in relay block ``sent_at``; return the bytes of those that found no room.

        A channel that is not open yet is opened.
        """
        channel_id = HrmpChannelId(sender, recipient)
        if channel_id not in self.channels:
            self.open_channel(sender, recipient)
        channel = self.channels.get(channel_id)
        assert channel is not None
        waiting, refused_bytes, head = self._contents.setdefault(channel_id, WaitingMessages()), 0, channel.head
        for data in messages:
            if len(data) > channel.max_message_size or not waiting.accepts(
                len(data), max_count=channel.max_capacity, max_bytes=channel.max_total_size
            ):
                refused_bytes += len(data)
                continue
            message = InboundMessage(sent_at, data, sender)
            waiting.push(message)
            head = extend(head, message.hashed())
        if head != channel.head:
            self._put(channel_id, replace(channel, mqc_head=head))
        return refused_bytes

    def messages(self, recipient: ParaId, *, up_to: BlockNumber) -> Sequence[InboundMessage]:
        """Return what waits for a parachain in relay blocks up to number ``up_to``, by block, then by sender."""
        found = [
            message
            for sender in self.senders(recipient)
            for message in self._contents.get(HrmpChannelId(sender, recipient), ())
            if message.sent_at <= up_to
        ]
        found.sort(key=lambda message: message.sent_at)
        return found

    def senders(self, recipient: ParaId) -> tuple[ParaId, ...]:
        """Return who has a channel to a parachain, ids ascending."""
        return self.ingress_index.get(recipient) or ()

    def prune(self, recipient: ParaId, watermark: BlockNumber) -> None:
        """Let messages up to relay block ``watermark`` go: a block that processed them is included."""
        for sender in self.senders(recipient):
            channel_id = HrmpChannelId(sender, recipient)
            waiting = self._contents.get(channel_id)
            if waiting and waiting.drop_while(lambda message: message.sent_at <= watermark):
                channel = self.channels.get(channel_id)
                assert channel is not None
                self._put(channel_id, channel)

    def forget_forked(self, recipient: ParaId) -> None:
        """Remove what waits in the channels of a state that was taken over from elsewhere.

        The parachain that joins adopts the heads: to it, all that they cover is processed.
        """
        for sender in self.senders(recipient):
            channel_id = HrmpChannelId(sender, recipient)
            channel = self.channels.get(channel_id)
            if channel is not None and channel.msg_count:
                self._put(channel_id, channel)
            self.state.kill(self._contents_key(channel_id))

    def close_channels(self, para_id: ParaId) -> None:
        """Close every channel from and to a parachain (``clean_hrmp_after_outgoing``)."""
        for sender in self.senders(para_id):
            self._close(HrmpChannelId(sender, para_id))
        for recipient in self.egress_index.get(para_id) or ():
            self._close(HrmpChannelId(para_id, recipient))

    def dump(self) -> list[ChannelDump]:
        """Return what waits as data."""
        return [
            ChannelDump(int(channel.sender), int(channel.recipient), waiting.dump())
            for channel, waiting in self._contents.items()
            if waiting
        ]

    def load(self, dumps: list[ChannelDump]) -> None:
        """Hold the messages that another put away, as the state counts them; raises ``CheckpointRefused``."""
        self._contents = {}
        for it in dumps:
            with refusing(f"messages from parachain {it.sender} to {it.recipient}"):
                channel_id = HrmpChannelId(ParaId(it.sender), ParaId(it.recipient))
                waiting = self._contents[channel_id] = WaitingMessages.of_dump(it.waiting, channel_id.sender)
                channel = self.channels.get(channel_id)
                if channel is None or (channel.msg_count, channel.total_size) != (len(waiting), waiting.waiting_bytes):
                    raise CheckpointRefused(f"{waiting!r}, which is not what the state says of them")

    def _put(self, channel_id: HrmpChannelId, channel: HrmpChannel) -> None:
        waiting = self._contents.get(channel_id) or WaitingMessages()
        counted = replace(channel, msg_count=len(waiting), total_size=waiting.waiting_bytes)
        self.channels.insert(channel_id, counted)

    def _close(self, channel_id: HrmpChannelId) -> None:
        self._contents.pop(channel_id, None)
        self.channels.remove(channel_id)
        self.state.kill(self._contents_key(channel_id))
        _remove(self.ingress_index, channel_id.recipient, channel_id.sender)
        _remove(self.egress_index, channel_id.sender, channel_id.recipient)

    def _contents_key(self, channel_id: HrmpChannelId) -> bytes:
        return storage_prefix(self.PALLET, "HrmpChannelContents") + TWOX_64_CONCAT.digest(channel_id.encode())

    def __repr__(self) -> str:
        return f"<Hrmp: {sum(map(len, self._contents.values()))} messages wait>"


Index = StorageMap[ParaId, tuple[ParaId, ...]]


def _insert(index: Index, place: ParaId, para_id: ParaId) -> None:
    index.insert(place, tuple(sorted({*(index.get(place) or ()), para_id})))


def _remove(index: Index, place: ParaId, para_id: ParaId) -> None:
    left = tuple(known for known in index.get(place) or () if known != para_id)
    if left:
        index.insert(place, left)
    else:
        index.remove(place)
