"""The subscription object: every member validated, defaults filled in, secrets kept apart from what is shown.

Law: an object that was refused has left no trace, and says which member is wrong. An object that was realized is
accepted again as it stands, and realizes to itself.
Source: CloudEvents Subscriptions API 0.1-wip, section 3.2.1; ``delivery`` and ``sinkcredential`` are extensions.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.config import an_object, known_name, read_config, read_delivery, shown
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.masks import masked, unmasked
from relaycast_gateway.cloudevents.protocol_settings import SETTINGS, realize
from relaycast_gateway.cloudevents.uri import is_uri_reference

MEMBERS: Mapping[str, str] = {
    "id": "Given by the manager; ignored when a subscription is created.",
    "source": "Only events with exactly this source, a URI reference.",
    "types": "Only events of one of these types.",
    "config": "What is generated; see the keys of subscriptionconfig.",
    "filter": "One filter expression: an object with one dialect.",
    "filters": "Filter expressions that must all be true; in place of filter.",
    "sink": "The URI that events are delivered to.",
    "protocol": "The protocol of the delivery; case counts.",
    "protocolsettings": "Settings of the protocol.",
    "sinkcredential": "What the gateway identifies itself with at the sink; secrets are never shown.",
    "delivery": "Attempts, ages and order of the delivery, an extension of this gateway.",
}
"""Each member and what it is for, in the order in which they are shown."""

REQUIRED = ("sink", "protocol")
MOST_TYPES = 256
MOST_CHARACTERS = 2_048
"""Longest source, type or sink."""

CREDENTIALS: Mapping[str, tuple[str, ...]] = {"PLAIN": ("identifier", "secret"), "ACCESSTOKEN": ("accesstoken",)}
"""The members of ``sinkcredential`` by ``credentialtype``."""


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """A realized subscription; ``members`` has every member but ``id``, secrets included."""

    id: str
    owner: str
    revision: int
    """Grows with each update, from 1."""

    created_ns: int
    start_seq: int
    """Events after this one are the subscription's."""

    counted_from: int
    """Events after this one count for ``config.interval``."""

    members: Mapping[str, Any] = field(repr=False)

    @property
    def protocol(self) -> str:
        return str(self.members["protocol"])

    @property
    def etag(self) -> str:
        """The entity tag of what is shown, as HTTP writes it."""
        return f'"{self.revision}"'

    def shown(self) -> dict[str, Any]:
        """Return the object as a client sees it: defaults filled in, a mask for every secret."""
        safe = masked(self.members)
        return {"id": self.id} | {name: safe[name] for name in MEMBERS if name in safe}


def realized(given: object, *, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the members of a proposed object with all defaults; raises ``InvalidMember``.

    ``old`` are the members that an update replaces: a mask stands for the secret that they hold.
    """
    if not isinstance(given, dict):
        raise InvalidMember("the document", shown(given), "an object, the subscription")
    for name in given:
        known_name("", name, list(MEMBERS))
    proposed = {name: value for name, value in given.items() if name != "id"}
    for name in REQUIRED:
        if name not in proposed:
            raise InvalidMember(name, "nothing", MEMBERS[name][:1].lower() + MEMBERS[name][1:].rstrip("."))
    proposed = unmasked(proposed, old)
    protocol = _protocol(proposed["protocol"])
    sink = _text("sink", proposed["sink"], "a URI, such as https://example.com/events")
    found: dict[str, Any] = {}
    if "source" in proposed:
        found["source"] = _source(proposed["source"])
    if "types" in proposed:
        found["types"] = _types(proposed["types"])
    found["config"] = read_config(proposed.get("config", {}))
    found |= _filter(proposed)
    settings = deepcopy(an_object("protocolsettings", proposed.get("protocolsettings", {})))
    found |= {"sink": sink, "protocol": protocol, "protocolsettings": realize(protocol, sink, settings)}
    if "sinkcredential" in proposed:
        found["sinkcredential"] = _credential(proposed["sinkcredential"])
    found["delivery"] = read_delivery(proposed.get("delivery", {}), protocol=protocol)
    return found


def _protocol(value: object) -> str:
    if not isinstance(value, str) or value not in SETTINGS:
        expected = f"one of {', '.join(SETTINGS)}"
        if isinstance(value, str) and value.upper() in SETTINGS:
            expected += f" (did you mean {value.upper()}?)"
        raise InvalidMember("protocol", shown(value), expected)
    return value


def _text(place: str, value: object, expected: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidMember(place, shown(value), expected)
    if len(value) > MOST_CHARACTERS:
        raise InvalidMember(place, f"{len(value):,} characters", f"at most {MOST_CHARACTERS:,}")
    return value


def _source(value: object) -> str:
    expected = "a URI reference that is not empty, such as /relay"
    text = _text("source", value, expected)
    if not is_uri_reference(text):
        raise InvalidMember("source", shown(text), f"{expected}, other characters percent-encoded")
    return text


def _types(value: object) -> list[str]:
    if not isinstance(value, list) or not value:
        raise InvalidMember("types", shown(value), "an array with at least one type; left out, every type is delivered")
    if len(value) > MOST_TYPES:
        raise InvalidMember("types", f"{len(value)} types", f"at most {MOST_TYPES}")
    return [_text(f"types[{at}]", each, "a text that is not empty") for at, each in enumerate(value)]


def _filter(proposed: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``filter`` or ``filters`` as they were spelled; an empty one is the same as none."""
    if "filter" in proposed and "filters" in proposed:
        raise InvalidMember("filters", "filter and filters", "one of them")
    if "filter" in proposed and not an_object("filter", proposed["filter"]):
        return {}
    if "filters" in proposed and not isinstance(proposed["filters"], list):
        raise InvalidMember("filters", shown(proposed["filters"]), "an array of filter expressions")
    for name in ("filter", "filters"):
        if proposed.get(name):
            compile_filter(proposed[name])
            return {name: deepcopy(proposed[name])}
    return {}


def _credential(value: object) -> dict[str, str]:
    given = an_object("sinkcredential", value)
    kind = given.get("credentialtype")
    if not isinstance(kind, str) or kind not in CREDENTIALS:
        expected = f"one of {', '.join(CREDENTIALS)}"
        got = shown(kind) if "credentialtype" in given else "nothing"
        raise InvalidMember("sinkcredential.credentialtype", got, expected)
    names = CREDENTIALS[kind]
    for name in given:
        known_name("sinkcredential", name, ["credentialtype", *names])
    found = {"credentialtype": kind}
    for name in names:
        held: object = given.get(name)
        place = f"sinkcredential.{name}"
        if not isinstance(held, str) or not held:
            raise InvalidMember(place, kind_of(given, name), "a text that is not empty")
        if any(not sign.isprintable() for sign in held) or len(held) > MOST_CHARACTERS:
            raise InvalidMember(place, "a text that no header can hold", "printable characters, at most 2,048")
        found[name] = held
    return found


def kind_of(given: Mapping[str, object], name: str) -> str:
    """Return what a member holds in words that do not repeat it."""
    if name not in given:
        return "nothing"
    kinds = {str: "an empty text", bool: "a boolean", int: "a number", float: "a number", list: "an array"}
    value = given[name]
    return kinds.get(type(value), "null" if value is None else "an object")
