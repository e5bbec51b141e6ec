"""Lies that a collator can tell about messages: it withholds some, or hands over what the relay chain does not have.

What it hands over is complete but for the lie: where other messages leave pub-sub another room, the proof is pruned
again to it. ``hold_back`` passes for downward messages: a block must advance one of them, not all that fit.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random

from relaycast.attacks.proving_ground import SENDERS, Moment
from relaycast_pallets import ParachainInherentData
from relaycast_pallets.messaging.inbound_message import AbridgedMessages, HashedMessage, InboundMessage
from relaycast_xcm import ParaId

NO_CHANNEL = ParaId(7_777)
"""A parachain that has no channel to anybody."""

SOME = 4
"""Ways to tell a lie that could be told in any number of ways."""

Told = Callable[[], ParachainInherentData]
Change = Callable[[AbridgedMessages], Iterator[AbridgedMessages]]
Entry = InboundMessage | HashedMessage


def withhold_all(moment: Moment, _draw: Random) -> Iterator[Told]:
    """Hand over no message of a kind."""
    yield from _told(moment, lambda messages: iter([AbridgedMessages()] if len(messages) else []))


def withhold_one(moment: Moment, _draw: Random) -> Iterator[Told]:
    """Leave out one message, in full or hashed."""

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        entries = _entries(messages)
        yield from (_abridged(entries[:index] + entries[index + 1 :]) for index in range(len(entries)))

    yield from _told(moment, change)


def hash_all(moment: Moment, _draw: Random) -> Iterator[Told]:
    """Hand over hashes alone, so that the queue does not move on."""
    yield from _told(moment, lambda messages: iter([_hashed_from(messages, 0)] if messages.full else []))


def hold_back(moment: Moment, draw: Random) -> Iterator[Told]:
    """Hand over hashes of messages that would fit, but for the first ones."""

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        if len(messages.full) > 1:
            yield _hashed_from(messages, 1)
            yield _hashed_from(messages, draw.randrange(1, len(messages.full)))

    yield from _told(moment, change)


def invent_message(moment: Moment, draw: Random) -> Iterator[Told]:
    """Add a message that nobody sent, in full or as a hash."""
    newest = moment.relay_parent_number

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        entries, sender = _entries(messages), _sender_of(moment, messages, draw)
        for _ in range(SOME):
            made = InboundMessage(newest, draw.randbytes(draw.randint(0, 200)), sender)
            at = draw.randint(0, len(entries))
            yield _abridged([*entries[:at], made, *entries[at:]])
            yield _abridged([*entries, made.hashed()])

    yield from _told(moment, change)


def alter_message(moment: Moment, draw: Random) -> Iterator[Told]:
    """Turn one bit of a message over, or cut its end off."""

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        entries = _entries(messages)
        for index, entry in enumerate(entries):
            content = entry.data if isinstance(entry, InboundMessage) else entry.message_hash
            altered = bytearray(content)
            altered[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            yield _abridged([*entries[:index], _with_content(entry, bytes(altered)), *entries[index + 1 :]])
            if isinstance(entry, InboundMessage):
                yield _abridged([*entries[:index], _with_content(entry, content[:-1]), *entries[index + 1 :]])

    yield from _told(moment, change)


def redate_message(moment: Moment, draw: Random) -> Iterator[Told]:
    """Say of a message that it stands in another relay block."""

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        entries = _entries(messages)
        for index, entry in enumerate(entries):
            moved = replace(entry, sent_at=max(0, entry.sent_at + draw.choice((-1, 1))))
            yield _abridged([*entries[:index], moved, *entries[index + 1 :]])

    yield from _told(moment, change)


def reorder_messages(moment: Moment, _draw: Random) -> Iterator[Told]:
    """Hand two messages over in each other's place."""

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        entries = _entries(messages)
        for index in range(len(entries) - 1):
            yield _abridged([*entries[:index], entries[index + 1], entries[index], *entries[index + 2 :]])

    yield from _told(moment, change)


def rename_sender(moment: Moment, draw: Random) -> Iterator[Told]:
    """Say of a horizontal message that somebody else sent it."""
    messages = moment.collation.inherent.horizontal_messages
    entries = _entries(messages)
    for index, entry in enumerate(entries):
        for sender in (draw.choice([it for it in SENDERS if it != entry.sender]), NO_CHANNEL):
            changed = _abridged([*entries[:index], replace(entry, sender=sender), *entries[index + 1 :]])
            yield partial(moment.with_messages, horizontal=changed)


def repeat_message(moment: Moment, draw: Random) -> Iterator[Told]:
    """Hand a message over twice, or one that was processed before."""
    inherent, before = moment.collation.inherent, moment.earlier_messages

    def change(messages: AbridgedMessages) -> Iterator[AbridgedMessages]:
        entries = _entries(messages)
        for index, entry in enumerate(entries):
            yield _abridged([*entries[: index + 1], entry, *entries[index + 1 :]])
        past = before.downward if messages is inherent.downward_messages else before.horizontal
        if past.full:
            yield _abridged([draw.choice(past.full), *entries])

    yield from _told(moment, change)


WITHHELD = (withhold_all, withhold_one, hash_all, hold_back)
INVENTED = (invent_message, alter_message, redate_message, reorder_messages, rename_sender, repeat_message)


def _told(moment: Moment, change: Change) -> Iterator[Told]:
    """Yield inherents in which the messages of one kind are changed in each of the ways that there are."""
    inherent = moment.collation.inherent
    for changed in change(inherent.downward_messages):
        yield partial(moment.with_messages, downward=changed)
    for changed in change(inherent.horizontal_messages):
        yield partial(moment.with_messages, horizontal=changed)


def _entries(messages: AbridgedMessages) -> list[Entry]:
    return [*messages.full, *messages.hashed]


def _abridged(entries: list[Entry]) -> AbridgedMessages:
    """Return messages in their order, in full up to the first that is hashed."""
    count = next((at for at, entry in enumerate(entries) if isinstance(entry, HashedMessage)), len(entries))
    full = tuple(entry for entry in entries[:count] if isinstance(entry, InboundMessage))
    return AbridgedMessages(full, tuple(_hashed(entry) for entry in entries[count:]))


def _hashed_from(messages: AbridgedMessages, count: int) -> AbridgedMessages:
    later = tuple(message.hashed() for message in messages.full[count:])
    return AbridgedMessages(messages.full[:count], (*later, *messages.hashed))


def _hashed(entry: Entry) -> HashedMessage:
    return entry.hashed() if isinstance(entry, InboundMessage) else entry


def _with_content(entry: Entry, content: bytes) -> Entry:
    if isinstance(entry, InboundMessage):
        return replace(entry, data=content)
    return replace(entry, message_hash=content)


def _sender_of(moment: Moment, messages: AbridgedMessages, draw: Random) -> ParaId | None:
    is_horizontal = messages is moment.collation.inherent.horizontal_messages
    return draw.choice(SENDERS) if is_horizontal else None
