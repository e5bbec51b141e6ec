"""What a parachain wants to publish, and the upward messages that its blocks send it in.

First in, first out, as much as the relay chain takes. A publication leaves the outbox with a message that has a place
in the relay chain's queue, so the queue refuses none. Publications that pay fees go in messages that pay, the others in
free ones. What a panicking block put in is taken out again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import blake2_256
from relaycast_trie.scale import encode_compact
from relaycast_xcm import Location, Publish
from relaycast_xcm.barriers import MAX_PUBLISH_INSTRUCTIONS
from relaycast_xcm.checkpoint import U32, Count, DumpRow, refusing
from relaycast_xcm.instructions import MAX_PUBLISH_VALUE_BYTES
from relaycast_xcm.message import MAX_PAID_INSTRUCTIONS, PAYMENT_INSTRUCTIONS, encode_versioned_xcm, paid_message
from relaycast_xcm.primitives import U32_MAX
from relaycast_xcm.ump import POLKADOT_LIMITS, UpwardLimits

ENVELOPE_BYTES = 2
"""The version of a message and the number of its instructions, up to 63."""

MAX_FEES = 2**64 - 1
"""What one publication may cost at most, in planck: the sum of a message's fees then fits a u128."""

FIXED_PUBLISH_BYTES = 1 + 32 + 4
"""Bytes of a ``Publish`` without its value: its index, the key and the time to live."""


class Publication(DumpRow, frozen=True):
    """A value on its way out, and the ``tick`` of the first block that could send it.

    ``fees`` are the planck that it may cost; at 0 it asks for free execution.
    """

    key: SubscribedKey
    value: bytes
    ttl: U32
    tick: Count
    fees: Count

    def __post_init__(self) -> None:
        if len(self.value) > MAX_PUBLISH_VALUE_BYTES:
            raise ValueError(f"a published value has at most {MAX_PUBLISH_VALUE_BYTES} bytes, got {len(self.value)}")
        if not 0 <= self.ttl <= U32_MAX:
            raise ValueError(f"a ttl is a u32, got {self.ttl}")
        if not 0 <= self.fees <= MAX_FEES:
            raise ValueError(f"fees are planck from 0 to {MAX_FEES}, got {self.fees}")

    @property
    def encoded_bytes(self) -> int:
        """Bytes of the ``Publish`` instruction."""
        return FIXED_PUBLISH_BYTES + len(encode_compact(len(self.value))) + len(self.value)


class SentMessage(Struct, frozen=True):
    """An upward message with the publications in it; ``first`` is the index of their first instruction."""

    data: bytes
    publications: tuple[Publication, ...]
    first: int = 0
    topic: bytes | None = None
    """What it sets as its topic at the end, where it does."""

    @property
    def id(self) -> bytes:
        """What the relay chain calls it once it runs: its topic, or its hash."""
        return blake2_256(self.data) if self.topic is None else self.topic


class Outbox:
    """The publications of one parachain that no block has sent yet, for a relay chain with these ``limits``.

    ``account`` is where fees come from, and where those that were not needed return to.
    """

    __slots__ = ("_payment_bytes", "_waiting", "account", "limits")

    def __init__(self, *, limits: UpwardLimits = POLKADOT_LIMITS, account: Location | None = None) -> None:
        self.limits = limits
        self.account = Location.here() if account is None else account
        self._payment_bytes = _payment_bytes(self.account)
        self._waiting: deque[Publication] = deque()

    def put(self, publication: Publication) -> None:
        """Add a publication behind the others; ``ValueError`` when no message can hold it."""
        room = min(self.limits.message_bytes, self.limits.queue_bytes)
        size = self._envelope_bytes(publication) + publication.encoded_bytes
        if size > room:
            raise ValueError(f"a message has at most {room} bytes, this publication alone needs {size}")
        self._waiting.append(publication)

    def take_messages(self, *, queued_count: int = 0, queued_bytes: int = 0) -> list[SentMessage]:
        """Take out what one block may send beside what is queued already: messages as full as may be, oldest first."""
        count = min(self.limits.messages_per_candidate, self.limits.queue_count - queued_count)
        room = self.limits.queue_bytes - queued_bytes
        messages: list[SentMessage] = []
        while len(messages) < count and (taken := self._take(min(room, self.limits.message_bytes))):
            messages.append(self.message_of(taken))
            room -= len(messages[-1].data)
        return messages

    def mark(self) -> int:
        return len(self._waiting)

    def roll_back(self, mark: int, /) -> None:
        while len(self._waiting) > mark:
            self._waiting.pop()

    def load(self, waiting: Iterable[Publication]) -> None:
        """Hold what another outbox held; raises ``CheckpointRefused``."""
        self._waiting.clear()
        with refusing("publications that wait"):
            for publication in waiting:
                self.put(publication)

    def _take(self, room: int) -> list[Publication]:
        """Take out the publications of the next message, of which each pays or none does."""
        taken: list[Publication] = []
        if not self._waiting:
            return taken
        pays = self._waiting[0].fees > 0
        room -= self._envelope_bytes(self._waiting[0])
        most = MAX_PAID_INSTRUCTIONS if pays else MAX_PUBLISH_INSTRUCTIONS
        while self._waiting and len(taken) < most and self._waiting[0].encoded_bytes <= room:
            if (self._waiting[0].fees > 0) is not pays:
                break
            taken.append(self._waiting.popleft())
            room -= taken[-1].encoded_bytes
        return taken

    def _envelope_bytes(self, publication: Publication) -> int:
        return self._payment_bytes if publication.fees else ENVELOPE_BYTES

    def message_of(self, publications: Sequence[Publication]) -> SentMessage:
        """Return the message that sends these, of which each pays or none does."""
        publishes = [Publish(entry.key, entry.value, entry.ttl) for entry in publications]
        fees = sum(entry.fees for entry in publications)
        if not fees:
            return SentMessage(encode_versioned_xcm(publishes), tuple(publications))
        data = encode_versioned_xcm(paid_message(publishes, fees=fees, account=self.account))
        return SentMessage(data, tuple(publications), PAYMENT_INSTRUCTIONS)

    def __iter__(self) -> Iterator[Publication]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<Outbox of {len(self)} publications>"


def _payment_bytes(account: Location) -> int:
    """Return the most bytes that a paid message has beside its ``Publish`` instructions."""
    dearest = paid_message((), fees=MAX_PAID_INSTRUCTIONS * MAX_FEES, account=account)
    return len(encode_versioned_xcm(dearest)) + 1
