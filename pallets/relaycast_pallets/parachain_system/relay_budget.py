"""How much of a block's proof of validity pub-sub may use: messages first, then what is left.

All sizes in bytes. A collator shares out everything that waits; the block that it hands over then holds some messages
in full and hashes of the others, and gives pub-sub the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from relaycast_pallets.messaging.inbound_message import HASHED_DOWNWARD_BYTES, HASHED_HORIZONTAL_BYTES

MIB = 1 << 20


def into_abridged(messages: Sequence[bytes], size_limit: int, *, hashed_bytes: int = 0) -> tuple[int, int]:
    """Return how many messages stay in full, in order, and what they leave of ``size_limit``.

    The first message that does not fit ends it: it and all after it are hashed, however small (cumulus
    ``into_abridged``). A message that is hashed takes ``hashed_bytes``, nothing in cumulus' own count; what is left is
    negative where the hashes alone take more than there is.
    """
    left = size_limit - hashed_bytes * len(messages)
    for count, message in enumerate(messages):
        more = len(message) - hashed_bytes
        if more > left:
            return count, left
        left -= more
    return len(messages), left


@dataclass(frozen=True, slots=True)
class PovUsage:
    """What a block is given and has used before pub-sub: its largest proof, its messages, everything else."""

    max_pov_bytes: int
    downward_messages: tuple[bytes, ...] = ()
    horizontal_messages: tuple[bytes, ...] = ()
    other_bytes: int = 0
    hashed_bytes: int = 0
    """Bytes of messages that are hashed already, as a chain is given them."""


@dataclass(frozen=True, slots=True)
class Abridged:
    """How many messages are given in full, and the bytes that pub-sub may use."""

    downward_count: int
    horizontal_count: int
    pubsub_bytes: int
    over_bytes: int = 0
    """By which messages and hashes that a block must hold exceed the room that the policy gives them."""
    horizontal_room: int = field(default=0, compare=False)
    """Bytes for horizontal messages in full in a block that gets others as hashes, the first hashed one included."""
    reduced_by_messages: bool = field(default=False, compare=False)
    """Whether pub-sub may use less than in a block without messages; it follows from the rest and the budget."""


def _in_full(usage: PovUsage, size_limit: int) -> Abridged:
    """Return which messages stay in full within ``size_limit``, the hashes of the others included; the rest is left.

    The first message of each kind stays in full in any case, because a block without it would be refused. Downward
    messages leave room for the first horizontal one, and both may exceed the budget.
    """
    to_come = HASHED_HORIZONTAL_BYTES * len(usage.horizontal_messages)
    if usage.horizontal_messages:
        to_come += max(0, len(usage.horizontal_messages[0]) - HASHED_HORIZONTAL_BYTES)
    left = size_limit - usage.hashed_bytes - to_come
    downward, left = _with_the_first(usage.downward_messages, left, HASHED_DOWNWARD_BYTES)
    left += to_come
    room = left + HASHED_HORIZONTAL_BYTES  # a message in full needs no hash
    horizontal, left = _with_the_first(usage.horizontal_messages, left, HASHED_HORIZONTAL_BYTES)
    return Abridged(downward, horizontal, max(0, left), max(0, -left), room, reduced_by_messages=left < size_limit)


def _with_the_first(messages: Sequence[bytes], size_limit: int, hashed_bytes: int = 0) -> tuple[int, int]:
    """Abridge messages; the first is always in full, because a block without it would be refused."""
    count, left = into_abridged(messages, size_limit, hashed_bytes=hashed_bytes)
    return (1, left - len(messages[0]) + hashed_bytes) if messages and not count else (count, left)


class BudgetPolicy(Protocol):
    """How a block's proof is shared out."""

    def share_out(self, usage: PovUsage) -> Abridged: ...


@dataclass(frozen=True, slots=True)
class Remaining:
    """What messages leave of ``percent`` of the largest proof; there is no minimum (the specification's numbers).

    With ``limit_bytes`` messages and pub-sub share that many bytes instead, at most those of the largest proof.
    """

    percent: int = 85
    limit_bytes: int | None = None

    def allowed_bytes(self, usage: PovUsage) -> int:
        """Return what messages and pub-sub share."""
        if self.limit_bytes is None:
            return max(0, usage.max_pov_bytes * self.percent // 100 - usage.other_bytes)
        return max(0, min(self.limit_bytes, usage.max_pov_bytes - usage.other_bytes))

    def share_out(self, usage: PovUsage) -> Abridged:
        return _in_full(usage, self.allowed_bytes(usage))


@dataclass(frozen=True, slots=True)
class CumulusSixths:
    """A sixth of the block for downward messages, what they leave and a sixth for horizontal ones, then pub-sub.

    Pub-sub never gets more than a third of the block (cumulus ``messages_collection_size_limit``). Hashes of messages
    are not counted, as in cumulus: they come on top.
    """

    def share_out(self, usage: PovUsage) -> Abridged:
        sixth = usage.max_pov_bytes // 6
        downward, left = _with_the_first(usage.downward_messages, sixth)
        room = left + sixth
        horizontal, left = _with_the_first(usage.horizontal_messages, room)
        return Abridged(downward, horizontal, max(0, left), max(0, -left), room, reduced_by_messages=left < 2 * sixth)


@dataclass(frozen=True, slots=True)
class Floor:
    """At least ``minimum_bytes`` for pub-sub, taken from what messages would get by ``inner``."""

    minimum_bytes: int
    inner: Remaining = Remaining()

    def share_out(self, usage: PovUsage) -> Abridged:
        allowed = self.inner.allowed_bytes(usage)
        reserved = min(self.minimum_bytes, allowed)
        abridged = _in_full(usage, allowed - reserved)
        return replace(abridged, pubsub_bytes=abridged.pubsub_bytes + reserved)


def message_free_bytes(budget: BudgetPolicy, max_pov_bytes: int) -> int:
    """Return what ``budget`` gives to pub-sub in a block without messages: the most that it ever gives."""
    return budget.share_out(PovUsage(max_pov_bytes)).pubsub_bytes


def check_enough_messages_included(hashed: Sequence[object], full_count: int) -> bool:
    """Return whether messages move on: when any is hashed, one at least is given in full."""
    return full_count > 0 or not hashed
