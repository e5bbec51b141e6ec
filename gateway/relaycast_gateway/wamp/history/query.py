"""The arguments of ``wamp.subscription.get_events``: all of them checked, before anything is looked up.

Law: every condition that is given must hold (logical AND). An argument of another name, kind or range is refused.
Source: WAMP specification, "Event History".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaycast_gateway.matching.topics import is_topic
from relaycast_gateway.rfc3339 import EXPECTED, parse_time
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, INVALID_URI, WampError
from relaycast_gateway.wamp.messages import MOST_ID

_LONGEST_SHOWN = 60
"""Characters of a wrong value that an error repeats."""

_TIMES = ("from_time", "after_time", "before_time", "until_time")
_PUBLICATIONS = ("from_publication", "after_publication", "before_publication", "until_publication")
_NAMES = ("reverse", "limit", *_TIMES, "topic", *_PUBLICATIONS)


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which events of a subscription are wanted; ``None`` puts no condition. Times are nanoseconds since 1970."""

    subscription: int
    reverse: bool = False
    limit: int | None = None
    from_time: int | None = None
    after_time: int | None = None
    before_time: int | None = None
    until_time: int | None = None
    topic: str | None = None
    from_publication: int | None = None
    after_publication: int | None = None
    before_publication: int | None = None
    until_publication: int | None = None

    @classmethod
    def of(cls, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> "HistoryQuery":
        """Return the query of a call.

        Raises ``WampError`` with ``invalid_argument``, or ``invalid_uri`` for a topic that is no URI; one sentence
        names the argument.
        """
        args, kwargs = args or (), kwargs or {}
        if len(args) != 1:
            raise _refused(f"expected one positional argument, the subscription's id, got {len(args)}")
        unknown = next((name for name in kwargs if name not in _NAMES), None)
        if unknown is not None:
            raise _refused(f"{_shown(unknown)}: no such argument, expected some of {', '.join(_NAMES)}")
        found: dict[str, Any] = {name: _READERS[name](name, value) for name, value in kwargs.items()}
        return cls(_id("subscription", args[0]), **found)

    def received_within(self, digits: int) -> tuple[int, int]:
        """Return the first moment that is wanted, and the first one behind it that is not.

        Times of events are compared as they are told: cut to ``digits`` of a second's fraction.
        """
        unit = 10 ** (9 - digits)
        first, end = _LEAST_TIME, _MOST_TIME
        if self.from_time is not None:
            first = max(first, _up(self.from_time, unit))
        if self.after_time is not None:
            first = max(first, _beyond(self.after_time, unit))
        if self.before_time is not None:
            end = min(end, _up(self.before_time, unit))
        if self.until_time is not None:
            end = min(end, _beyond(self.until_time, unit))
        return min(first, _MOST_TIME), max(end, _LEAST_TIME)


_LEAST_TIME, _MOST_TIME = -(1 << 63), (1 << 63) - 1
ALL_TIMES = (_LEAST_TIME, _MOST_TIME)
"""What a query without times lets through."""


def _up(moment: int, unit: int) -> int:
    return -(-moment // unit) * unit


def _beyond(moment: int, unit: int) -> int:
    return (moment // unit + 1) * unit


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _refused(f"{name}: expected true or false, got {_shown(value)}")
    return value


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _refused(f"{name}: expected a whole number from 1 on, got {_shown(value)}")
    return value


def _id(name: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():  # as JavaScript's CBOR has numbers beyond 32 bits
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ID:
        raise _refused(f"{name}: expected an id from 1 to 2^53, got {_shown(value)}")
    return value


def _time(name: str, value: Any) -> int:
    try:
        if isinstance(value, str):
            return parse_time(value)
    except ValueError:
        pass
    raise _refused(f"{name}: expected {EXPECTED}, got {_shown(value)}")


def _topic(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refused(f"{name}: expected a URI, got {_shown(value)}")
    if not is_topic(value):
        raise WampError(INVALID_URI, f"{name}: expected a URI without empty components, got {_shown(value)}")
    return value


def _refused(said: str) -> WampError:
    return WampError(INVALID_ARGUMENT, said)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."


_READERS = {
    "reverse": _flag,
    "limit": _count,
    "topic": _topic,
    **dict.fromkeys(_TIMES, _time),
    **dict.fromkeys(_PUBLICATIONS, _id),
}
