"""What a protocol setting may hold: each check takes a member's path and its value, and returns the realized value.

A check raises ``InvalidMember``. Entries of maps are not shown in it: they hold credentials.
"""

import re
from collections.abc import Callable, Mapping

from relaycast_gateway.cloudevents.invalid_member import InvalidMember

MOST_ENTRIES = 64
"""Entries of a map: headers, user properties, link properties."""

LONGEST_TEXT = 4_096
"""Characters of a setting or of a value in a map."""

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that belong to a connection, not to a request. Source: RFC 9110, 7.6.1."""

OWN_HEADERS = frozenset({"host", "content-length", "content-type", "content-encoding", "expect"})
"""Headers that the gateway sets, or that would give the body another meaning."""

OWN_PROPERTIES = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "dataschema", "datacontenttype", "sequence", "previd"}
)
"""User properties that the gateway sets."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_SUBJECT = re.compile(r"[^\s.*>$\x00-\x1f\x7f-\x9f\ud800-\udfff][^\s.*>\x00-\x1f\x7f-\x9f\ud800-\udfff]*")

Check = Callable[[str, object], object]
"""Takes a member's path and its value, returns the realized value or raises ``InvalidMember``."""


def text_that(expected: str, matches: Callable[[str], bool] = bool) -> Check:
    def check(member: str, value: object) -> str:
        if not isinstance(value, str) or _CONTROL.search(value) or len(value) > LONGEST_TEXT or not matches(value):
            raise InvalidMember(member, shown(value), expected)
        return value

    return check


def one_of(*choices: object) -> Check:
    def check(member: str, value: object) -> object:
        for choice in choices:
            if type(value) is type(choice) and value == choice:
                return choice
        raise InvalidMember(member, shown(value), either(choices))

    return check


def acks(member: str, value: object) -> object:
    """Take the numbers 0 and 1 as their texts: the text names the type String, people write numbers."""
    return one_of("0", "1", "all")(member, str(value) if type(value) is int else value)


def whole_number(least: int, greatest: int) -> Check:
    def check(member: str, value: object) -> int:
        if type(value) is not int or not least <= value <= greatest:
            raise InvalidMember(member, shown(value), f"a whole number from {least} to {greatest}")
        return value

    return check


def map_of(expected: str, check_name: Callable[[str], str | None], check_value: Check) -> Check:
    """Check a map; ``check_name`` returns what is expected instead of a name, ``None`` for a good one."""

    def check(member: str, value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise InvalidMember(member, type(value).__name__, expected)
        if len(value) > MOST_ENTRIES:
            raise InvalidMember(member, f"{len(value)} entries", f"at most {MOST_ENTRIES}")
        seen: set[str] = set()
        for name in value:
            wrong = check_name(name) if isinstance(name, str) else "a text as name"
            if wrong is not None:
                raise InvalidMember(f"{member}.{plain(name)}", "this name", wrong)
            if name.lower() in seen:
                raise InvalidMember(f"{member}.{plain(name)}", "this name twice", "each name once, whatever its case")
            seen.add(name.lower())
        return {name: _entry(f"{member}.{name}", it, check_value) for name, it in value.items()}

    return check


def _entry(member: str, value: object, check_value: Check) -> object:
    """Check an entry of a map without showing it: headers and properties hold credentials."""
    try:
        return check_value(member, value)
    except InvalidMember as invalid:
        raise InvalidMember(member, f"a {type(value).__name__}, which is not shown", invalid.expected) from None


def header_name(name: str) -> str | None:
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        return "letters, digits and !#$%&'*+-.^_`|~"
    if lower in HOP_BY_HOP:
        return "no header of the connection"
    if lower in OWN_HEADERS or lower.startswith("ce-"):
        return "no header that the gateway sets itself"
    return None


def header_value(member: str, value: object) -> object:
    expected = f"printable ASCII without line ends, at most {LONGEST_TEXT} characters"
    return text_that(expected, lambda text: _HEADER_VALUE.fullmatch(text) is not None)(member, value)


def property_name(name: str) -> str | None:
    if not name or _CONTROL.search(name) or len(name) > 256:
        return "1 to 256 characters, no control characters"
    return "no attribute of the event" if name in OWN_PROPERTIES else None


def symbol(name: str) -> str | None:
    return None if re.fullmatch(r"[\x21-\x7e]{1,256}", name) else "1 to 256 characters of printable ASCII, no spaces"


def link_value(member: str, value: object) -> object:
    if isinstance(value, bool) or (type(value) is int and -(1 << 63) <= value < 1 << 63):
        return value
    return text_that("a text, a boolean or a whole number of 64 bits", lambda _: True)(member, value)


def is_topic_of_mqtt(topic: str) -> bool:
    return bool(topic) and not set(topic) & {"+", "#"} and len(topic.encode()) <= LONGEST_TEXT


def is_topic_of_kafka(topic: str) -> bool:
    return _TOPIC.fullmatch(topic) is not None and topic not in {".", ".."}


def is_dns_name(name: str) -> bool:
    return len(name) <= 253 and all(_LABEL.fullmatch(label) for label in name.removesuffix(".").split("."))


def is_subject(subject: str) -> bool:
    first, *others = subject.split(".")
    return bool(_SUBJECT.fullmatch(first)) and all(re.fullmatch(r"[^\s*>]+", other) for other in others)


def plain(name: object) -> str:
    return _CONTROL.sub("\ufffd", str(name))[:64]


def shown(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def either(choices: tuple[object, ...], suffix: str = "") -> str:
    *others, last = (f"{choice}{suffix}" if isinstance(choice, str) else str(choice) for choice in choices)
    return f"{', '.join(others)} or {last}" if others else last
