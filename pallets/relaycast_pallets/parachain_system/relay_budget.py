"""How much of a block's proof of validity pub-sub may use: messages first, then what is left.

All sizes in bytes. The collator and the chain compute the same budget from the same inherent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

MIB = 1 << 20


def into_abridged(messages: Sequence[bytes], size_limit: int) -> tuple[int, int]:
    """Return how many messages stay in full, in order, and what they leave of ``size_limit``.

    The first message that does not fit ends it: it and all after it are hashed, however small (cumulus
    ``into_abridged``).
    """
    for count, message in enumerate(messages):
        if len(message) > size_limit:
            return count, size_limit
        size_limit -= len(message)
    return len(messages), size_limit


@dataclass(frozen=True, slots=True)
class PovUsage:
    """What a block is given and has used before pub-sub: its largest proof, its messages, everything else."""

    max_pov_bytes: int
    downward_messages: tuple[bytes, ...] = ()
    horizontal_messages: tuple[bytes, ...] = ()
    other_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Abridged:
    """How many messages are given in full, and the bytes that pub-sub may use."""

    downward_count: int
    horizontal_count: int
    pubsub_bytes: int
    crowded: bool = field(default=False, compare=False)
    """Whether pub-sub may use less than in a block without messages; it follows from the rest and the budget."""


class BudgetPolicy(Protocol):
    """How a block's proof is shared out."""

    def share_out(self, usage: PovUsage) -> Abridged: ...


@dataclass(frozen=True, slots=True)
class Remaining:
    """What messages leave of ``percent`` of the largest proof; there is no minimum (the specification's numbers).

    With ``limit_bytes`` messages and pub-sub share so many bytes instead, at most those of the largest proof.
    """

    percent: int = 85
    limit_bytes: int | None = None

    def allowed_bytes(self, usage: PovUsage) -> int:
        """Return what messages and pub-sub share."""
        if self.limit_bytes is None:
            return max(0, usage.max_pov_bytes * self.percent // 100 - usage.other_bytes)
        return max(0, min(self.limit_bytes, usage.max_pov_bytes - usage.other_bytes))

    def share_out(self, usage: PovUsage) -> Abridged:
        allowed = self.allowed_bytes(usage)
        downward, left = into_abridged(usage.downward_messages, allowed)
        horizontal, left = into_abridged(usage.horizontal_messages, left)
        return Abridged(downward, horizontal, left, crowded=left < allowed)


@dataclass(frozen=True, slots=True)
class CumulusSixths:
    """A sixth of the block for downward messages, what they leave and a sixth for horizontal ones, then pub-sub.

    Pub-sub never gets more than a third of the block (cumulus ``messages_collection_size_limit``).
    """

    def share_out(self, usage: PovUsage) -> Abridged:
        sixth = usage.max_pov_bytes // 6
        downward, left = into_abridged(usage.downward_messages, sixth)
        horizontal, left = into_abridged(usage.horizontal_messages, left + sixth)
        return Abridged(downward, horizontal, left, crowded=left < 2 * sixth)


@dataclass(frozen=True, slots=True)
class Floor:
    """At least ``minimum_bytes`` for pub-sub, taken from what messages would get by ``inner``."""

    minimum_bytes: int
    inner: Remaining = Remaining()

    def share_out(self, usage: PovUsage) -> Abridged:
        allowed = self.inner.allowed_bytes(usage)
        reserved = min(self.minimum_bytes, allowed)
        downward, left = into_abridged(usage.downward_messages, allowed - reserved)
        horizontal, left = into_abridged(usage.horizontal_messages, left)
        return Abridged(downward, horizontal, left + reserved, crowded=left + reserved < allowed)


def message_free_bytes(budget: BudgetPolicy, max_pov_bytes: int) -> int:
    """Return what ``budget`` gives to pub-sub in a block without messages: the most that it ever gives."""
    return budget.share_out(PovUsage(max_pov_bytes)).pubsub_bytes


def check_enough_messages_included(messages: Sequence[bytes], full_count: int) -> bool:
    """Return whether messages move on: when any is hashed, one at least is given in full."""
    return full_count > 0 or not messages
