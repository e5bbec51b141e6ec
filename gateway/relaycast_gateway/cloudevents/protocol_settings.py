"""The six delivery protocols: which sinks each takes, which settings it has, what is valid, what is filled in.

Law: a subscription is realized before anything is stored or sent. What is wrong is named with its path, what came and
what was expected; no secret of a sink is shown. Realized settings are valid settings and realize to themselves.
Source: CloudEvents Subscriptions, section 3.2.2.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from relaycast_gateway.cloudevents.encoding import AMQP_PREFIXES
from relaycast_gateway.cloudevents.event import ATTRIBUTE_NAME
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.delivery.sink_address import SinkAddress, parse_sink

PLACE = "protocolsettings"
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
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SUBJECT = re.compile(r"[^\s.*>$\x00-\x1f\x7f-\x9f\ud800-\udfff][^\s.*>\x00-\x1f\x7f-\x9f\ud800-\udfff]*")

Check = Callable[[str, object], object]
"""Takes a member's path and its value, returns the realized value or raises ``InvalidMember``."""


@dataclass(frozen=True, slots=True)
class ProtocolSetting:
    """One setting: its type in CloudEvents' words, what it is, and what it becomes where it is absent."""

    type: str
    description: str
    check: Check
    default: object = None
    required: bool = False
    choices: tuple[object, ...] = ()


def realize(protocol: str, sink: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings with defaults filled in, in the order of ``SETTINGS``.

    Raises ``InvalidMember`` for an unknown protocol, a sink that the protocol cannot use, and a wrong setting.
    """
    if protocol not in SETTINGS:
        raise InvalidMember("protocol", _shown(protocol), f"one of {', '.join(SETTINGS)}, in this spelling")
    address = valid_sink(protocol, sink)
    given = {} if settings is None else settings
    if not isinstance(given, Mapping):
        raise InvalidMember(PLACE, _shown(given), "an object")
    known = SETTINGS[protocol]
    for name in given:
        if name not in known:
            raise InvalidMember(f"{PLACE}.{name}", _shown(given[name]), _instead_of(name, protocol))
    realized = {
        name: setting.check(f"{PLACE}.{name}", given[name]) if name in given else setting.default
        for name, setting in known.items()
    }
    in_path = {"AMQP": "address", "KAFKA": "topicname"}.get(protocol)
    if in_path is not None:
        realized[in_path] = _of_setting_or_path(in_path, realized[in_path], address, known[in_path])
    for name, setting in known.items():
        if setting.required and realized[name] is None:
            raise InvalidMember(f"{PLACE}.{name}", "nothing", setting.description)
    return {name: value for name, value in realized.items() if value is not None}


def valid_sink(protocol: str, sink: object) -> SinkAddress:
    """Return a sink taken apart; ``InvalidMember`` where the protocol cannot use it."""
    example = SINKS[protocol].example
    if not isinstance(sink, str) or not sink:
        raise InvalidMember("sink", _shown(sink), f"a URI such as {example}")
    try:
        address = parse_sink(sink)
    except ValueError as error:
        raise InvalidMember("sink", "another text", str(error)) from None
    form = SINKS[protocol]
    if address.scheme not in form.schemes:
        raise InvalidMember("sink", address.masked, f"{protocol} sinks begin with {_either(form.schemes, '://')}")
    if len(address.hosts) > 1 and not form.has_hosts:
        raise InvalidMember("sink", address.masked, f"one host, as in {example}")
    has_path = form.has_path or address.scheme in {"ws", "wss"}
    if not has_path and (address.path not in {"", "/"} or address.query is not None):
        raise InvalidMember("sink", address.masked, f"no path and no query, as in {example}")
    if address.query is not None and address.scheme not in {"http", "https", "ws", "wss"}:
        raise InvalidMember("sink", address.masked, f"no query, as in {example}")
    return address


def _of_setting_or_path(name: str, given: object, address: SinkAddress, setting: ProtocolSetting) -> object:
    """Return what the setting or the sink's path says; ``InvalidMember`` for neither, and for two that differ."""
    path = unquote(address.path.removeprefix("/"))
    if not path and given is None:
        raise InvalidMember(f"{PLACE}.{name}", "nothing, and a sink without a path", f"{name}, or a path in the sink")
    if not path:
        return given
    of_path = setting.check("sink", path)
    if given is not None and given != of_path:
        raise InvalidMember(f"{PLACE}.{name}", _shown(given), f"{of_path!r} as in the sink's path, or nothing")
    return of_path


def _instead_of(name: str, protocol: str) -> str:
    known = SETTINGS[protocol]
    elsewhere = [other for other, settings in SETTINGS.items() if name in settings]
    if protocol == "MQTT3" and "MQTT5" in elsewhere:
        return "no such setting: MQTT 3.1.1 has none, MQTT5 does"
    nearest = difflib.get_close_matches(str(name).lower().replace("-", "").replace("_", ""), known, 1, 0.4)
    all_names = f"the settings of {protocol} are {', '.join(known)}"
    return f"{nearest[0]}? {all_names}" if nearest else all_names


def _text(expected: str, matches: Callable[[str], bool] = bool) -> Check:
    def check(member: str, value: object) -> str:
        if not isinstance(value, str) or _CONTROL.search(value) or len(value) > LONGEST_TEXT or not matches(value):
            raise InvalidMember(member, _shown(value), expected)
        return value

    return check


def _one_of(*choices: object) -> Check:
    def check(member: str, value: object) -> object:
        for choice in choices:
            if type(value) is type(choice) and value == choice:
                return choice
        raise InvalidMember(member, _shown(value), _either(choices))

    return check


def _acks(member: str, value: object) -> object:
    """Take the numbers 0 and 1 as their texts: the text names the type String, people write numbers."""
    return _one_of("0", "1", "all")(member, str(value) if type(value) is int else value)


def _whole_number(least: int, greatest: int) -> Check:
    def check(member: str, value: object) -> int:
        if type(value) is not int or not least <= value <= greatest:
            raise InvalidMember(member, _shown(value), f"a whole number from {least} to {greatest}")
        return value

    return check


def _map(expected: str, check_name: Callable[[str], str | None], check_value: Check) -> Check:
    """Check a map; ``check_name`` returns what is expected instead of a name, ``None`` for a good one."""

    def check(member: str, value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise InvalidMember(member, _shown(value), expected)
        if len(value) > MOST_ENTRIES:
            raise InvalidMember(member, f"{len(value)} entries", f"at most {MOST_ENTRIES}")
        seen: set[str] = set()
        for name in value:
            wrong = check_name(name) if isinstance(name, str) else "a text as name"
            if wrong is not None:
                raise InvalidMember(f"{member}.{_plain(name)}", "this name", wrong)
            if name.lower() in seen:
                raise InvalidMember(f"{member}.{_plain(name)}", "this name twice", "each name once, whatever its case")
            seen.add(name.lower())
        return {name: check_value(f"{member}.{name}", it) for name, it in value.items()}

    return check


def _header_name(name: str) -> str | None:
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        return "letters, digits and !#$%&'*+-.^_`|~"
    if lower in HOP_BY_HOP:
        return "no header of the connection"
    if lower in OWN_HEADERS or lower.startswith("ce-"):
        return "no header that the gateway sets itself"
    return None


def _header_value(member: str, value: object) -> str:
    """Check a value without showing it: headers hold credentials."""
    if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value) or len(value) > LONGEST_TEXT:
        got = "text with other characters" if isinstance(value, str) else type(value).__name__
        raise InvalidMember(member, got, f"printable ASCII without line ends, at most {LONGEST_TEXT} characters")
    return value


def _property_name(name: str) -> str | None:
    if not name or _CONTROL.search(name) or len(name) > 256:
        return "1 to 256 characters, no control characters"
    return "no attribute of the event" if name in OWN_PROPERTIES else None


def _symbol(name: str) -> str | None:
    return None if re.fullmatch(r"[\x21-\x7e]{1,256}", name) else "1 to 256 characters of printable ASCII, no spaces"


def _link_value(member: str, value: object) -> object:
    if isinstance(value, bool) or (type(value) is int and -(1 << 63) <= value < 1 << 63):
        return value
    return _text("a text, a boolean or a whole number of 64 bits", lambda _: True)(member, value)


def _is_topic_of_mqtt(topic: str) -> bool:
    return bool(topic) and not set(topic) & {"+", "#"} and len(topic.encode()) <= LONGEST_TEXT


def _is_topic_of_kafka(topic: str) -> bool:
    return _TOPIC.fullmatch(topic) is not None and topic not in {".", ".."}


def _is_subject(subject: str) -> bool:
    first, *others = subject.split(".")
    return bool(_SUBJECT.fullmatch(first)) and all(re.fullmatch(r"[^\s*>]+", other) for other in others)


def _plain(name: object) -> str:
    return _CONTROL.sub("\ufffd", str(name))[:64]


def _shown(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _either(choices: tuple[object, ...], suffix: str = "") -> str:
    *others, last = (f"{choice}{suffix}" if isinstance(choice, str) else str(choice) for choice in choices)
    return f"{', '.join(others)} or {last}" if others else last


_TOPIC_NAME = "the name of a topic, without + and #"
_MQTT: dict[str, ProtocolSetting] = {
    "topicname": ProtocolSetting("String", _TOPIC_NAME, _text(_TOPIC_NAME, _is_topic_of_mqtt), required=True),
    "qos": ProtocolSetting(
        "Integer",
        "quality of service: 0 at most once, 1 at least once, 2 exactly once",
        _one_of(0, 1, 2),
        1,
        choices=(0, 1, 2),
    ),
    "retain": ProtocolSetting(
        "Boolean",
        "whether the broker keeps the last message for later subscribers",
        _one_of(False, True),
        False,
        choices=(False, True),
    ),
}
_KAFKA_TOPIC = "the name of a topic: 1 to 249 letters, digits, dots, dashes and underscores"
_ADDRESS = "the name of the node that the link leads to"

SETTINGS: Mapping[str, Mapping[str, ProtocolSetting]] = {
    "HTTP": {
        "headers": ProtocolSetting(
            "Map",
            "headers added to each request",
            _map("an object of headers, names to texts", _header_name, _header_value),
        ),
        "method": ProtocolSetting(
            "String",
            "the method of each request",
            _one_of("POST", "PUT", "PATCH"),
            "POST",
            choices=("POST", "PUT", "PATCH"),
        ),
    },
    "MQTT3": _MQTT,
    "MQTT5": {
        **_MQTT,
        "expiry": ProtocolSetting(
            "Integer", "seconds after which the broker drops the message", _whole_number(0, (1 << 32) - 1)
        ),
        "userproperties": ProtocolSetting(
            "Map",
            "user properties added to each message",
            _map("an object of names and texts", _property_name, _text("a text", lambda _: True)),
        ),
    },
    "AMQP": {
        "address": ProtocolSetting("String", f"{_ADDRESS}; by default the sink's path", _text(_ADDRESS)),
        "linkname": ProtocolSetting("String", "name of the link; by default a random one", _text("a non-empty text")),
        "sendersettlementmode": ProtocolSetting(
            "String",
            "whether the peer's acknowledgement is awaited (unsettled) or not (settled)",
            _one_of("unsettled", "settled"),
            "unsettled",
            choices=("unsettled", "settled"),
        ),
        "linkproperties": ProtocolSetting(
            "Map",
            "properties of the link",
            _map("an object of names and texts, booleans or whole numbers", _symbol, _link_value),
        ),
        "attributeprefix": ProtocolSetting(
            "String",
            "what precedes an attribute's name in application properties",
            _one_of(*AMQP_PREFIXES),
            AMQP_PREFIXES[0],
            choices=AMQP_PREFIXES,
        ),
    },
    "KAFKA": {
        "topicname": ProtocolSetting(
            "String", f"{_KAFKA_TOPIC}; by default the sink's path", _text(_KAFKA_TOPIC, _is_topic_of_kafka)
        ),
        "partitionkeyextractor": ProtocolSetting(
            "String",
            "name of the context attribute whose text is the key; events with equal keys share a partition",
            _text(
                "the name of a context attribute: 1 to 20 lower-case letters and digits",
                lambda name: ATTRIBUTE_NAME.fullmatch(name) is not None,
            ),
        ),
        "clientid": ProtocolSetting(
            "String",
            "the name under which the broker knows the gateway",
            _text("1 to 249 characters", lambda name: 0 < len(name) <= 249),
            "relaycast",
        ),
        "acks": ProtocolSetting(
            "String",
            "which acknowledgement counts: 0 none, 1 the leader's, all that of all replicas in sync",
            _acks,
            "all",
            choices=("0", "1", "all"),
        ),
    },
    "NATS": {
        "subject": ProtocolSetting(
            "String",
            "a subject without wildcards, such as chain.events",
            _text("a subject of tokens and dots, without wildcards, not beginning with $", _is_subject),
            required=True,
        ),
    },
}
"""Every setting by protocol and name; also what ``/services`` and the OpenAPI document say."""


@dataclass(frozen=True, slots=True)
class SinkForm:
    """What a protocol's sinks look like."""

    schemes: tuple[str, ...]
    example: str
    has_path: bool = False
    has_hosts: bool = False


_MQTT_SINK = SinkForm(("mqtt", "mqtts", "ws", "wss"), "mqtts://broker.example.com")

SINKS: Mapping[str, SinkForm] = {
    "HTTP": SinkForm(("http", "https"), "https://example.com/events", has_path=True),
    "MQTT3": _MQTT_SINK,
    "MQTT5": _MQTT_SINK,
    "AMQP": SinkForm(("amqp", "amqps"), "amqps://broker.example.com/queue", has_path=True),
    "KAFKA": SinkForm(("kafka", "kafkas"), "kafka://one:9092,two:9092/topic", has_path=True, has_hosts=True),
    "NATS": SinkForm(("nats", "tls"), "nats://broker.example.com", has_hosts=True),
}
