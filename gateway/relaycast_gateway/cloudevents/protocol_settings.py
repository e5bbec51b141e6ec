"""The six delivery protocols: which sinks each takes, which settings it has, what is valid, what is filled in.

Law: a subscription is realized before anything is stored or sent. What is wrong is named with its path, what came and
what was expected; no secret of a sink is shown. Realized settings are valid settings and realize to themselves.
Source: CloudEvents Subscriptions, section 3.2.2.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from relaycast_gateway.cloudevents.encoding import AMQP_PREFIXES
from relaycast_gateway.cloudevents.event import ATTRIBUTE_NAME
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.setting_checks import (
    Check,
    acks,
    either,
    header_name,
    header_value,
    is_dns_name,
    is_subject,
    is_topic_of_kafka,
    is_topic_of_mqtt,
    link_value,
    map_of,
    one_of,
    plain,
    property_name,
    shown,
    symbol,
    text_that,
    whole_number,
)
from relaycast_gateway.delivery.sink_address import SinkAddress, parse_sink

PLACE = "protocolsettings"


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
        raise InvalidMember("protocol", shown(protocol), f"one of {', '.join(SETTINGS)}, in this spelling")
    address = valid_sink(protocol, sink)
    given = {} if settings is None else settings
    if not isinstance(given, Mapping):
        raise InvalidMember(PLACE, shown(given), "an object")
    known = SETTINGS[protocol]
    for name in given:
        if name not in known:
            raise InvalidMember(f"{PLACE}.{plain(name)}", "this setting", _instead_of(name, protocol))
    realized = {
        name: setting.check(f"{PLACE}.{name}", given[name]) if name in given else setting.default
        for name, setting in known.items()
    }
    if realized.get("requestrate") is not None and realized["requestorigin"] is None:
        raise InvalidMember(f"{PLACE}.requestorigin", "nothing", "the name that requestrate is asked for")
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
        raise InvalidMember("sink", shown(sink), f"a URI such as {example}")
    try:
        address = parse_sink(sink)
    except ValueError as error:
        raise InvalidMember("sink", "another text", str(error)) from None
    form = SINKS[protocol]
    if address.scheme not in form.schemes:
        raise InvalidMember("sink", address.masked, f"{protocol} sinks begin with {either(form.schemes, '://')}")
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
        raise InvalidMember(f"{PLACE}.{name}", shown(given), f"{of_path!r} as in the sink's path, or nothing")
    return of_path


def _instead_of(name: str, protocol: str) -> str:
    known = SETTINGS[protocol]
    elsewhere = [other for other, settings in SETTINGS.items() if name in settings]
    if protocol == "MQTT3" and "MQTT5" in elsewhere:
        return "no such setting: MQTT 3.1.1 has none, MQTT5 does"
    nearest = difflib.get_close_matches(str(name).lower().replace("-", "").replace("_", ""), known, 1, 0.4)
    all_names = f"the settings of {protocol} are {', '.join(known)}"
    return f"{nearest[0]}? {all_names}" if nearest else all_names


_TOPIC_NAME = "the name of a topic, without + and #"
_MQTT: dict[str, ProtocolSetting] = {
    "topicname": ProtocolSetting("String", _TOPIC_NAME, text_that(_TOPIC_NAME, is_topic_of_mqtt), required=True),
    "qos": ProtocolSetting(
        "Integer",
        "quality of service: 0 at most once, 1 at least once, 2 exactly once",
        one_of(0, 1, 2),
        1,
        choices=(0, 1, 2),
    ),
    "retain": ProtocolSetting(
        "Boolean",
        "whether the broker keeps the last message for later subscribers",
        one_of(False, True),
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
            map_of("an object of headers, names to texts", header_name, header_value),
        ),
        "method": ProtocolSetting(
            "String",
            "the method of each request",
            one_of("POST", "PUT", "PATCH"),
            "POST",
            choices=("POST", "PUT", "PATCH"),
        ),
        "requestorigin": ProtocolSetting(
            "String",
            "DNS name to deliver as: the receiver is asked to allow it first (WebHook-Request-Origin)",
            text_that("a DNS name such as events.example.com", is_dns_name),
        ),
        "requestrate": ProtocolSetting(
            "Integer",
            "requests a minute to ask for, with requestorigin (WebHook-Request-Rate)",
            whole_number(1, 999_999_999),
        ),
    },
    "MQTT3": _MQTT,
    "MQTT5": {
        **_MQTT,
        "expiry": ProtocolSetting(
            "Integer", "seconds after which the broker drops the message", whole_number(0, (1 << 32) - 1)
        ),
        "userproperties": ProtocolSetting(
            "Map",
            "user properties added to each message",
            map_of("an object of names and texts", property_name, text_that("a text", lambda _: True)),
        ),
    },
    "AMQP": {
        "address": ProtocolSetting("String", f"{_ADDRESS}; by default the sink's path", text_that(_ADDRESS)),
        "linkname": ProtocolSetting(
            "String", "name of the link; by default a random one", text_that("a non-empty text")
        ),
        "sendersettlementmode": ProtocolSetting(
            "String",
            "whether the peer's acknowledgement is awaited (unsettled) or not (settled)",
            one_of("unsettled", "settled"),
            "unsettled",
            choices=("unsettled", "settled"),
        ),
        "linkproperties": ProtocolSetting(
            "Map",
            "properties of the link",
            map_of("an object of names and texts, booleans or whole numbers", symbol, link_value),
        ),
        "attributeprefix": ProtocolSetting(
            "String",
            "what precedes an attribute's name in application properties",
            one_of(*AMQP_PREFIXES),
            AMQP_PREFIXES[0],
            choices=AMQP_PREFIXES,
        ),
    },
    "KAFKA": {
        "topicname": ProtocolSetting(
            "String", f"{_KAFKA_TOPIC}; by default the sink's path", text_that(_KAFKA_TOPIC, is_topic_of_kafka)
        ),
        "partitionkeyextractor": ProtocolSetting(
            "String",
            "name of the context attribute whose text is the key; events with equal keys share a partition",
            text_that(
                "the name of a context attribute: 1 to 20 lower-case letters and digits",
                lambda name: ATTRIBUTE_NAME.fullmatch(name) is not None,
            ),
        ),
        "clientid": ProtocolSetting(
            "String",
            "the name under which the broker knows the gateway",
            text_that("1 to 249 characters", lambda name: 0 < len(name) <= 249),
            "relaycast",
        ),
        "acks": ProtocolSetting(
            "String",
            "which acknowledgement counts: 0 none, 1 the leader's, all that of all replicas in sync",
            acks,
            "all",
            choices=("0", "1", "all"),
        ),
    },
    "NATS": {
        "subject": ProtocolSetting(
            "String",
            "a subject without wildcards, such as chain.events",
            text_that("a subject of tokens and dots, without wildcards, not beginning with $", is_subject),
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
