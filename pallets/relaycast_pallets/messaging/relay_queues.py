"""Messages on the relay chain: what waits for each parachain, and the heads in the state that cover what was ever sent.

Law: the head under ``Dmp.DownwardMessageQueueHeads`` covers every message that was ever queued for a parachain (dmp).
The head in ``Hrmp.HrmpChannels`` covers every message that was ever sent through the channel; its count and size are
those of the messages that wait (hrmp). Both channel indexes list the open channels of a parachain, ids ascending.
Processed messages leave a queue, never its head. The queues stand beside the state: nobody proves the messages.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import BYTES32, PARA_ID, TWOX_64_CONCAT, StorageMap, storage_prefix
from relaycast_pallets.messaging.hrmp_channel import HRMP_CHANNEL, HRMP_CHANNEL_ID, HrmpChannel, HrmpChannelId
from relaycast_pallets.messaging.inbound_message import (
    EMPTY_CHAIN,
    PARA_IDS,
    InboundMessage,
    extend,
)
from relaycast_xcm.checkpoint import U32, CheckpointRefused, Count, Dump, refusing
from relaycast_xcm.primitives import BlockNumber, ParaId

MAX_WAITING_BYTES = 1 << 25
"""Bytes that may wait in one queue; a message beyond that is refused (polkadot ``dmp``: 32 MiB)."""

MAX_WAITING_MESSAGES = 1 << 15
"""Messages that may wait in one queue: 32 MiB of 1 KiB each. A block hands over a hash for each that it cannot hold."""


DOWNWARD = HrmpChannel(MAX_WAITING_MESSAGES, MAX_WAITING_BYTES, MAX_WAITING_BYTES)
"""The limits of a downward queue."""


class QueueDump(Dump, frozen=True):
    """Messages that wait: of each its relay block and its place among the different ``messages``."""

    messages: list[bytes]
    relay_blocks: list[U32]
    places: list[Count]


class WaitingMessages:
    """One queue. Each message is asked about alone: one that is refused holds up none that fits."""

    __slots__ = ("_messages", "waiting_bytes")

    def __init__(self) -> None:
        self._messages: deque[InboundMessage] = deque()
        self.waiting_bytes = 0

    def queue(
        self,
        messages: Iterable[bytes],
        head: bytes,
        *,
        limits: HrmpChannel,
        sent_at: BlockNumber,
        sender: ParaId | None = None,
    ) -> tuple[bytes, int]:
        """Queue messages behind the others, those that find room.

        Return the head of the chain, which was ``head`` before, and the bytes of the messages that found no room.
        """
        refused_bytes = 0
        for data in messages:
            full = len(self._messages) >= limits.max_capacity
            if full or len(data) > min(limits.max_message_size, limits.max_total_size - self.waiting_bytes):
                refused_bytes += len(data)
                continue
            message = InboundMessage(sent_at, data, sender)
            self._push(message)
            head = extend(head, message.hashed())
        return head, refused_bytes

    def _push(self, message: InboundMessage) -> None:
        self._messages.append(message)
        self.waiting_bytes += len(message.data)

    def drop_while(self, is_done: Callable[[InboundMessage], bool]) -> int:
        """Remove messages from the front as long as they are done, and count them."""
        before = len(self._messages)
        while self._messages and is_done(self._messages[0]):
            self._drop_first()
        return before - len(self._messages)

    def drop(self, count: int) -> None:
        """Remove the first ``count`` messages, or all where fewer wait."""
        for _ in range(min(count, len(self._messages))):
            self._drop_first()

    def dump(self) -> QueueDump:
        """Return all messages as data."""
        different = {data: place for place, data in enumerate(dict.fromkeys(it.data for it in self._messages))}
        relay_blocks = [message.sent_at for message in self._messages]
        return QueueDump(list(different), relay_blocks, [different[message.data] for message in self._messages])

    @classmethod
    def of_dump(cls, dump: QueueDump, sender: ParaId | None = None) -> "WaitingMessages":
        """Return the queue that was put away; ``ValueError`` or ``IndexError`` for what is none."""
        found = cls()
        for place, relay_block in zip(dump.places, dump.relay_blocks, strict=True):
            found._push(InboundMessage(relay_block, dump.messages[place], sender))
        if found.waiting_bytes > MAX_WAITING_BYTES or len(found) > MAX_WAITING_MESSAGES:
            raise ValueError(f"{len(found):,} messages of {found.waiting_bytes:,} bytes wait, more than a queue takes")
        if dump.relay_blocks != sorted(dump.relay_blocks):
            raise ValueError("messages wait in another order than they came")
        return found

    def _drop_first(self) -> None:
        self.waiting_bytes -= len(self._messages.popleft().data)

    def __iter__(self) -> Iterator[InboundMessage]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<WaitingMessages {len(self)}, {self.waiting_bytes:,} bytes>"


class DownwardDump(Dump, frozen=True):
    """The downward queue of one parachain."""

    para_id: U32
    waiting: QueueDump


class Dmp:
    """The downward queues of all parachains over the relay chain's ``state``."""

    PALLET = "Dmp"

    def __init__(self, state: State) -> None:
        self.state = state
        self.heads = StorageMap(state, self.PALLET, "DownwardMessageQueueHeads", (TWOX_64_CONCAT, PARA_ID), BYTES32)
        self._queues: dict[ParaId, WaitingMessages] = {}

    def head(self, para_id: ParaId) -> bytes:
        """Return the head of a parachain's queue."""
        return self.heads.get(para_id) or EMPTY_CHAIN

    def queue(self, para_id: ParaId, messages: Iterable[bytes], *, sent_at: BlockNumber) -> int:
        """Queue messages in relay block ``sent_at`` and return the bytes of those that found no room."""
        waiting = self._queues.setdefault(para_id, WaitingMessages())
        before = self.head(para_id)
        head, refused_bytes = waiting.queue(messages, before, limits=DOWNWARD, sent_at=sent_at)
        if head != before:
            self.heads.insert(para_id, head)
        return refused_bytes

    def messages(self, para_id: ParaId, *, up_to: BlockNumber) -> Sequence[InboundMessage]:
        """Return what waits for a parachain and stands in relay blocks up to number ``up_to``."""
        return [message for message in self._queues.get(para_id, ()) if message.sent_at <= up_to]

    def prune(self, para_id: ParaId, processed: int) -> None:
        """Let the first ``processed`` messages go, or all where fewer wait: a block that processed them is included."""
        waiting = self._queues.get(para_id)
        if waiting is not None:
            waiting.drop(processed)

    def forget_forked(self, para_id: ParaId) -> None:
        """Remove what a state that was taken over from elsewhere holds for a parachain that joins with its head."""
        self.state.kill(self._contents_key(para_id))

    def remove(self, para_id: ParaId) -> None:
        """Remove a parachain's queue and its head (``clean_dmp_after_outgoing``)."""
        self._queues.pop(para_id, None)
        self.heads.remove(para_id)
        self.state.kill(self._contents_key(para_id))

    def dump(self) -> list[DownwardDump]:
        """Return what waits as data."""
        return [DownwardDump(int(para_id), waiting.dump()) for para_id, waiting in self._queues.items() if waiting]

    def load(self, dumps: list[DownwardDump]) -> None:
        """Hold the messages that another put away; raises ``CheckpointRefused``."""
        self._queues = {}
        for it in dumps:
            with refusing(f"downward messages for parachain {it.para_id}"):
                self._queues[ParaId(it.para_id)] = WaitingMessages.of_dump(it.waiting)

    def _contents_key(self, para_id: ParaId) -> bytes:
        return storage_prefix(self.PALLET, "DownwardMessageQueues") + TWOX_64_CONCAT.digest(para_id.encode())

    def __repr__(self) -> str:
        return f"<Dmp: {sum(map(len, self._queues.values()))} messages wait>"


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
        waiting = self._contents.setdefault(channel_id, WaitingMessages())
        head, refused_bytes = waiting.queue(messages, channel.head, limits=channel, sent_at=sent_at, sender=sender)
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
