"""Events of pallets as events of the log: their namespaces, and their fields as ICRC-16 values.

The broadcaster's and the subscriber's well-known events have short names; every other one is named by its pallet and
its own name, as ``pallet.message_queue.message_processed``. Fields keep their names, in camel case.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, blob, boolean, map_of, nat, text
from relaycast_pallets.broadcaster.events import (
    DataCleanedUp,
    DataPublished,
    KeyExpired,
    KeysDeleted,
    KeysForcedDeleted,
    PublisherDeregistered,
    PublisherRegistered,
)
from relaycast_pallets.frame.system import Event
from relaycast_pallets.subscriber.events import PublisherDisabled, PublisherEnabled
from relaycast_xcm import Location, ParaId

SHORT_NAMES: Mapping[type[Event], str] = MappingProxyType(
    {
        DataPublished: "data.published",
        KeyExpired: "key.expired",
        KeysDeleted: "keys.deleted",
        KeysForcedDeleted: "keys.force_deleted",
        PublisherRegistered: "publisher.registered",
        PublisherDeregistered: "publisher.deregistered",
        PublisherDisabled: "publisher.disabled",
        PublisherEnabled: "publisher.enabled",
    }
)
"""Events that have a namespace without their pallet's name."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def event_name(kind: type[Event]) -> str:
    """Return the namespace of a kind of event, without the prefix.

    >>> from relaycast_pallets.balances import BurnedHeld
    >>> event_name(KeyExpired), event_name(BurnedHeld)
    ('key.expired', 'pallet.balances.burned_held')
    """
    return SHORT_NAMES.get(kind) or f"pallet.{_snake(kind.pallet)}.{_snake(kind.__name__)}"


def event_fields(event: Event) -> dict[str, Icrc16]:
    """Return the fields of an event."""
    return {_camel(name): plain(getattr(event, name)) for name in event.__struct_fields__}


def publisher_of(event: Event) -> ParaId | None:
    """Return the publisher that an event is about, where it is about one."""
    found = getattr(event, "publisher", None)
    if found is None and isinstance(event, PublisherRegistered | PublisherDeregistered | DataCleanedUp):
        found = event.para_id
    return found


def key_of(event: Event) -> bytes | None:
    """Return the published key that an event is about, where it is about one."""
    found = getattr(event, "key", None)
    return found if isinstance(found, bytes) else None


def plain(value: Any) -> Icrc16:  # noqa: PLR0911 - one for each form
    """Return a field as an ICRC-16 value; an error or a location becomes its text."""
    match value:
        case None:
            return NOTHING
        case Enum():
            return text(value.name)
        case bool():
            return boolean(value)
        case int():
            return nat(int(value)) if value >= 0 else Icrc16(Tag.INT, int(value))
        case bytes():
            return blob(bytes(value))
        case str():
            return text(str(value))
        case tuple() | list():
            return array(*map(plain, value))
        case BaseException():
            return text(f"{type(value).__name__}: {value}")
    if isinstance(value, Struct) and not isinstance(value, Location):
        return map_of({_camel(name): plain(getattr(value, name)) for name in value.__struct_fields__})
    return text(str(value))


@cache
def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower()


@cache
def _camel(name: str) -> str:
    head, *tail = name.rstrip("_").split("_")
    return head + "".join(part.capitalize() for part in tail)
