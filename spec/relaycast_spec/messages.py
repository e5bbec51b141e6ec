"""Chapter 8. Messages: how much of a block they leave for publish-subscribe.

A parachain's block carries messages from the relay chain (downward) and from other parachains (horizontal). They go
before publish-subscribe: as many as fit are carried in full, in their order, the others as hashes. Publish-subscribe
has what is left of the block.

Source: cumulus, ``into_abridged``; RFC-0160, "PoV budget".
"""

from typing import NamedTuple

HASHED_DOWNWARD = 36
"""Bytes of a downward message as a hash, with the number of its relay block."""

HASHED_HORIZONTAL = 40
"""Bytes of a horizontal message as a hash, with its relay block and its sender."""


class Share(NamedTuple):
    """Number of messages that a block carries in full, bytes left, and whether messages took a part."""

    downward_full: int
    horizontal_full: int
    pubsub_bytes: int
    has_messages: bool


def share(max_pov_size: int, percent: int, downward: list[int], horizontal: list[int]) -> Share:
    """Return what messages of these lengths leave of ``percent`` of the largest block, which is 85 in RFC-0160.

    Room is kept for the first horizontal message and for the hashes of all others. DECISION (budget): publish-subscribe
    has what messages leave (``remaining``); ``cumulus`` and ``floor`` share out otherwise.

    Scenario: PoV Budget Constraint / Budget calculation
    Scenario: PoV Budget Constraint / Full block with no pub-sub budget
    Scenario: PoV Budget Constraint / Light block with large pub-sub budget
    Scenario: PoV Budget Constraint / Heavy block with small pub-sub budget
    """
    limit = max_pov_size * percent // 100
    kept_back = HASHED_HORIZONTAL * len(horizontal)
    if horizontal:
        kept_back += max(0, horizontal[0] - HASHED_HORIZONTAL)
    downward_full, left = filled(downward, limit - kept_back, HASHED_DOWNWARD)
    horizontal_full, left = filled(horizontal, left + kept_back, HASHED_HORIZONTAL)
    return Share(downward_full, horizontal_full, max(0, left), left < limit)


def filled(lengths: list[int], left: int, hashed: int) -> tuple[int, int]:
    """Return how many messages are carried in full, and what is left of ``left`` bytes.

    The first message that does not fit ends the full ones, so that their order is kept. DECISION: the very first is
    always carried in full; otherwise one oversized message would block the parachain forever.
    """
    left -= hashed * len(lengths)
    full = 0
    while full < len(lengths) and lengths[full] - hashed <= left:
        left -= lengths[full] - hashed
        full += 1
    if lengths and not full:
        return 1, left - (lengths[0] - hashed)
    return full, left
