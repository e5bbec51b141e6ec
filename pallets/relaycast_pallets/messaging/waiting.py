"""The messages that wait in one queue of the relay chain, oldest first, and how much may wait.

They stand beside the state, which holds the heads of their chains: nobody proves the messages themselves.
"""

from collections import deque
from collections.abc import Callable, Iterator

from relaycast_pallets.messaging.inbound_message import InboundMessage
from relaycast_xcm.checkpoint import U32, Count, Dump
from relaycast_xcm.primitives import ParaId

MAX_WAITING_BYTES = 1 << 25
"""Bytes that may wait in one queue; a message beyond that is refused (polkadot ``dmp``: 32 MiB)."""

MAX_WAITING_MESSAGES = 1 << 15
"""Messages that may wait in one queue: 32 MiB of 1 KiB each. A block hands over a hash for each that it cannot hold."""


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

    def accepts(self, size: int, *, max_count: int = MAX_WAITING_MESSAGES, max_bytes: int = MAX_WAITING_BYTES) -> bool:
        """Return whether a message of ``size`` bytes finds room."""
        return len(self._messages) < max_count and self.waiting_bytes + size <= max_bytes

    def push(self, message: InboundMessage) -> None:
        """Put a message behind the others."""
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
            found.push(InboundMessage(relay_block, dump.messages[place], sender))
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
