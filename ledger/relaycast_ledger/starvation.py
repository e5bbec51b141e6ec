"""Starvation: a reader whose blocks end before it is given what it subscribes to.

Law: a block counts if the reader had something to receive in it: keys whose current value it had not been given. A
publisher that is silent or disabled starves no one.
"""

from collections.abc import Iterable

from msgspec import Struct

ENOUGH_BLOCKS = 10
"""Blocks with something to receive, from which on a share of them says something."""

BLOCKS_WITHOUT = 10
"""Such blocks in a row without a value that starve a reader."""

BLOCKS_BEHIND = 20
"""Relay blocks that a reader may be behind on a key."""


class Starvation(Struct, frozen=True, kw_only=True):
    """Counts of a reader that starved, or of one whose run is too short to tell."""

    is_starved: bool
    """False: cut short in over half of the blocks, but there are fewer than ``ENOUGH_BLOCKS``."""

    blocks: int
    """Blocks in which the reader had something to receive."""

    cut_short: int
    """How many of these blocks ended before every key was read."""

    blocks_without: int
    """The most of these in a row in which nothing was received."""

    is_behind: bool
    """Whether the last block left a key more than ``BLOCKS_BEHIND`` relay blocks behind."""


def starvation(blocks: Iterable[tuple[int, int, int, int]]) -> Starvation | None:
    """Judge the blocks of one reader: each its number of new values, ``complete``, ``owed`` and ``behind``.

    ``None`` where there is nothing to say.
    """
    counted = cut_short = without = longest = behind = 0
    for received, complete, owed, late in blocks:
        behind = late
        if not (received or owed):
            continue
        counted += 1
        cut_short += not complete
        without = 0 if received else without + 1
        longest = max(longest, without)
    mostly_cut = 2 * cut_short > counted
    starved = behind or longest >= BLOCKS_WITHOUT or (mostly_cut and counted >= ENOUGH_BLOCKS)
    if not starved and not mostly_cut:
        return None
    return Starvation(
        is_starved=bool(starved),
        blocks=counted,
        cut_short=cut_short,
        blocks_without=longest,
        is_behind=bool(behind),
    )
