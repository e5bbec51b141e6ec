"""``config`` and ``delivery``: what a subscription may ask of this gateway, with types, defaults and limits.

One table each: validation, ``GET /services`` and the OpenAPI document read the same lines.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from relaycast_gateway import crockford
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.rfc3339 import parse_time

MOST_SHOWN = 60
"""Characters of a wrong value that an error repeats."""

SEQUENCE_DIGITS = 20
"""Number of digits of the attribute ``sequence`` of an event, by which it is told from an id."""

LAST_SEQ = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Choice:
    """One key: its type by CloudEvents' names, its default (``None``: left out), what it does, what it allows."""

    type: str
    default: Any
    description: str
    least: int | None = None
    most: int | None = None
    texts: tuple[str, ...] = ()

    def expected(self) -> str:
        if self.texts:
            return f"one of {', '.join(self.texts)}"
        if self.least is not None:
            return f"a whole number from {self.least} to {self.most}"
        return {"Boolean": "true or false", "String": "a text that is not empty"}[self.type]

    def allows(self, value: object) -> bool:
        if self.type == "Boolean":
            return isinstance(value, bool)
        if self.type == "Integer":
            return is_whole(value) and (self.least or 0) <= value <= (self.most or LAST_SEQ)  # type: ignore[operator]
        return isinstance(value, str) and value != "" and (not self.texts or value in self.texts)


CONFIG: Mapping[str, Choice] = {
    "data": Choice(
        "String",
        "full",
        "What events carry: full (their data), none (no data), or any other text, which is sent as text/plain "
        "in place of the data.",
    ),
    "interval": Choice(
        "Integer",
        1,
        "Only every n-th event is generated. Events of the subscription's source and types count, from its first "
        "one on, before the filter.",
        1,
        1_000_000,
    ),
    "proof": Choice(
        "Boolean", False, "Publications carry the storage proof of their value against the relay chain's root."
    ),
    "since": Choice(
        "String or Integer",
        None,
        "The first event to deliver, when it lies in the past: its sequence, its id, or a time in RFC 3339. It "
        "counts when the subscription is created; an update keeps the place that was reached.",
    ),
}
"""The keys of ``config``, which are the service's ``subscriptionconfig``."""

DELIVERY: Mapping[str, Choice] = {
    "attempts": Choice("Integer", 10, "Attempts at one event, the first included.", 1, 1_000),
    "maxage": Choice("Integer", 86_400, "Seconds from the first attempt until an event is given up.", 1, 2_592_000),
    "timeout": Choice("Integer", 30, "Seconds for one attempt.", 1, 300),
    "window": Choice(
        "Integer", 1, "Events in flight at one time. 1 keeps their order; more is faster and may change it.", 1, 256
    ),
    "contentmode": Choice(
        "String", "binary", "How an event is encoded. MQTT3 has structured alone.", texts=("binary", "structured")
    ),
}
"""The keys of ``delivery``, our own member."""

EXPECTED_SINCE = "a sequence number from 0 on, an event's id in Crockford Base32, or a time in RFC 3339"

_DIGITS = re.compile(rf"[0-9]{{{SEQUENCE_DIGITS}}}")


def read_config(given: object) -> dict[str, Any]:
    """Return ``config`` with its defaults; raises ``InvalidMember``."""
    config = _read("config", given, {name: choice for name, choice in CONFIG.items() if name != "since"}, {"since"})
    if "since" in config:
        start_of(config["since"])
    return config


def read_delivery(given: object, *, protocol: str) -> dict[str, Any]:
    """Return ``delivery`` with its defaults; raises ``InvalidMember``."""
    delivery = _read("delivery", given, DELIVERY)
    if protocol == "MQTT3":
        if isinstance(given, dict) and given.get("contentmode") == "binary":
            raise InvalidMember("delivery.contentmode", "'binary'", "structured: MQTT3 has no place for attributes")
        delivery["contentmode"] = "structured"
    return delivery


def start_of(since: object) -> tuple[str, int]:
    """Return ``("seq", number)`` or ``("time", nanoseconds)``; raises ``InvalidMember``."""
    if is_whole(since) and 0 <= since <= LAST_SEQ:  # type: ignore[operator]
        return "seq", since  # type: ignore[return-value]
    if isinstance(since, str):
        try:
            if ":" in since:
                return "time", parse_time(since)
            seq = int(since) if _DIGITS.fullmatch(since) else crockford.decode(since)
            is_id = _DIGITS.fullmatch(since) or crockford.encode(seq) == since.upper()  # and no word such as "now"
            if seq <= LAST_SEQ and is_id:
                return "seq", seq
        except ValueError:
            pass
    raise InvalidMember("config.since", shown(since), EXPECTED_SINCE)


def known_name(place: str, name: str, names: list[str]) -> None:
    """Raise ``InvalidMember`` where ``name`` is none of ``names``; it says which is most like it."""
    if name == "":
        raise InvalidMember(place or "a member", "an empty name", f"one of {', '.join(names)}")
    if name not in names:
        close = get_close_matches(name.lower(), names, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        path = f"{place}.{short(name)}" if place else short(name)
        raise InvalidMember(path, "an unknown member", f"one of {', '.join(names)}{hint}")


def an_object(place: str, value: object) -> dict[str, Any]:
    """Return ``value`` where it is a JSON object; raises ``InvalidMember``."""
    if not isinstance(value, dict):
        raise InvalidMember(place, shown(value), "an object")
    return value


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return a value as an error repeats it: on one line, in ASCII, and short."""
    if isinstance(value, dict | list):
        kind, thing = ("an object", "member") if isinstance(value, dict) else ("an array", "item")
        return f"{kind} of {len(value)} {thing}{'' if len(value) == 1 else 's'}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = ascii(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def short(name: str) -> str:
    """Return a name of the client's as a path shows it."""
    text = ascii(name)[1:-1]
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _read(
    place: str, given: object, choices: Mapping[str, Choice], others: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    found = an_object(place, given)
    for name, value in found.items():
        known_name(place, name, [*choices, *others])
        choice = choices.get(name)
        if choice is not None and not choice.allows(value):
            raise InvalidMember(f"{place}.{name}", shown(value), choice.expected())
    defaults = {name: choice.default for name, choice in choices.items()}
    return defaults | found
