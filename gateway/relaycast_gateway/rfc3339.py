"""Moments as RFC 3339 text, exact to the nanosecond.

A moment is nanoseconds since 1970 in UTC, as ``int``. Reading takes any offset, lower-case ``t`` and ``z``, and any
digits of a second's fraction, of which nine count. A leap second (``:60``, with any fraction) is the start of the next
second: nanoseconds since 1970 cannot express it.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from relaycast_gateway.clock import SECOND

SECONDS_KEPT = 1_024
"""Texts of seconds that are kept: events that are told together were often received together."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORM = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)

EXPECTED = "an RFC 3339 time with an offset, such as 2026-01-31T12:00:00.5Z"


def format_time(ns: int, *, digits: int | None = None) -> str:
    """Return the text of a moment in UTC with ``Z``.

    ``digits`` fixes the fraction's length (0 to 9, the rest is cut off); by default it is as long as it has to be.
    ``ValueError`` for a moment outside the years 1 to 9999.
    """
    seconds, fraction = divmod(ns, SECOND)
    try:
        whole = _whole_seconds(seconds)
    except OverflowError:
        raise ValueError(f"expected a moment in the years 1 to 9999, got {ns} nanoseconds") from None
    text = f"{fraction:09d}"
    shown = text.rstrip("0") if digits is None else text[:digits]
    return f"{whole}.{shown}Z" if shown else f"{whole}Z"


@lru_cache(SECONDS_KEPT)
def _whole_seconds(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def parse_time(text: str) -> int:
    """Return the moment that ``text`` names; ``ValueError`` where it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"expected {EXPECTED}, got {text!r}")
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = found.groups()
    if sign is not None and (int(offset_hour) > 23 or int(offset_minute) > 59):
        raise ValueError(f"expected an offset of at most 23:59, got {text!r}")
    is_leap = second == "60"
    if is_leap:
        second, fraction = "59", ""
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"expected {EXPECTED}, got {text!r}: {error}") from None
    since = moment - _EPOCH
    seconds = since.days * 86_400 + since.seconds + is_leap
    if sign is not None:
        offset = int(offset_hour) * 3_600 + int(offset_minute) * 60
        seconds += offset if sign == "-" else -offset
    return seconds * SECOND + int((fraction or "")[:9].ljust(9, "0"))
