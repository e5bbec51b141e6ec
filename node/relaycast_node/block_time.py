"""When blocks come: at an interval in seconds, on demand, or as soon as an extrinsic waits."""

import re
from typing import Final, Literal

MANUAL: Final = "manual"
INSTANT: Final = "instant"

SHORTEST_SECONDS, LONGEST_SECONDS = 0.01, 3_600.0

EXPECTED = "seconds or milliseconds from 10ms to 3600s (6s, 500ms), manual or instant"

BlockTime = float | Literal["manual", "instant"]
"""Seconds between relay blocks; ``manual``: when asked for; ``instant``: when something was submitted, too."""

_NAMED: dict[str, BlockTime] = {MANUAL: MANUAL, INSTANT: INSTANT}

_TEXT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s)")


def block_time_of(text: str) -> BlockTime:
    """Return the block time that ``text`` says; ``ValueError`` says what was expected.

    >>> block_time_of("500ms"), block_time_of("6s"), block_time_of("manual")
    (0.5, 6.0, 'manual')
    """
    if text in _NAMED:
        return _NAMED[text]
    found = _TEXT.fullmatch(text)
    seconds = 0.0 if found is None else float(found[1]) / (1_000 if found[2] == "ms" else 1)
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ValueError(EXPECTED)
    return seconds


def block_time_text(block_time: BlockTime) -> str:
    """Return a block time as ``block_time_of`` takes it."""
    if isinstance(block_time, str):
        return block_time
    return f"{block_time:g}s" if block_time >= 1 else f"{block_time * 1_000:g}ms"
