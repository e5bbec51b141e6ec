"""System messages: what orchestrator, broadcasters, publishers and subscribers tell each other about replays.

Law: a system message is a notification that the one principal in its namespace gets; it is never an event of the log.
Its data is a Map of one key. Messages are written in the long form; the short forms of the text are read too.

| key | to | an item |
|---|---|---|
| ``icrc77:broadcaster:replay:add`` | broadcaster of the subscriber | replay, namespace, relay, subscriber, filter, skip, publisher |
| ``icrc77:broadcaster:replay_relay:add`` | broadcaster of the publisher | replay, namespace, target broadcaster, publisher, filter, skip |
| ``icrc77:broadcaster:replay_relayer:add`` | broadcaster of the subscriber | replay, namespace, relay |
| ``icrc77:broadcaster:replay:remove`` | as ``add`` | replay, namespace, subscriber, publisher |
| ``icrc77:broadcaster:replay_relay:remove`` | as ``add`` | replay, namespace, relay, publisher |
| ``icrc77:broadcaster:replay_relayer:remove`` | as ``add`` | replay, namespace, relay, publisher |
| ``icrc77:publisher:replay:add`` | publisher | replay, namespace, start, end, broadcaster |
| ``icrc77:publisher:replay:remove`` | publisher | replay |
| ``icrc77:subscriber:replay:add`` | subscriber | replay, broadcaster |
| ``icrc77:subscriber:replay:remove`` | subscriber | replay |

Numbers are Nat, namespaces and filters Text, principals Blob; a filter, skip or end that is missing is
``Option(null)``, a skip is ``Array[Nat mod, Nat offset]``, an end ``Option(Nat)``. The relay is an empty Blob where
the publisher publishes to the subscriber's broadcaster itself. Source: ICRC-77, "Control Plane".
"""  # noqa: E501 - rows of a table

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relaycast_gateway.candid import Principal
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import SYSTEM_NAMESPACE
from relaycast_gateway.icrc.skip import Skip, skip_of
from relaycast_gateway.icrc.variants import variant_of
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag, array, blob, map_of, nat, option, text
from relaycast_gateway.principal import principal_text

BROADCASTER_ADD = "icrc77:broadcaster:replay:add"
RELAY_ADD = "icrc77:broadcaster:replay_relay:add"
RELAYER_ADD = "icrc77:broadcaster:replay_relayer:add"
BROADCASTER_REMOVE = "icrc77:broadcaster:replay:remove"
RELAY_REMOVE = "icrc77:broadcaster:replay_relay:remove"
RELAYER_REMOVE = "icrc77:broadcaster:replay_relayer:remove"
PUBLISHER_ADD = "icrc77:publisher:replay:add"
PUBLISHER_REMOVE = "icrc77:publisher:replay:remove"
SUBSCRIBER_ADD = "icrc77:subscriber:replay:add"
SUBSCRIBER_REMOVE = "icrc77:subscriber:replay:remove"


@dataclass(frozen=True, slots=True)
class SystemItem:
    """One item of a system message; what its key does not have is ``None``."""

    key: str
    replay_id: int
    namespace: str | None = None
    relay: bytes | None = None
    subscriber: bytes | None = None
    publisher: bytes | None = None
    broadcaster: bytes | None = None
    """The target of a relay, or who takes or sends the events of the replay."""

    filter: str | None = None
    skip: Skip | None = None
    start: int | None = None
    end: int | None = None


_FIELDS: dict[str, tuple[str, ...]] = {
    BROADCASTER_ADD: ("namespace", "relay", "subscriber", "filter", "skip", "publisher"),
    RELAY_ADD: ("namespace", "broadcaster", "publisher", "filter", "skip"),
    RELAYER_ADD: ("namespace", "relay"),
    BROADCASTER_REMOVE: ("namespace", "subscriber", "publisher"),
    RELAY_REMOVE: ("namespace", "relay", "publisher"),
    RELAYER_REMOVE: ("namespace", "relay", "publisher"),
    PUBLISHER_ADD: ("namespace", "start", "end", "broadcaster"),
    PUBLISHER_REMOVE: (),
    SUBSCRIBER_ADD: ("broadcaster",),
    SUBSCRIBER_REMOVE: (),
}
"""The members of an item behind the number of the replay, in order."""


def system_namespace(role: CanisterRole, principal: bytes) -> str:
    """Return the namespace that a canister alone hears."""
    return SYSTEM_NAMESPACE.format(role=role, principal=principal_text(principal))


def message_data(item: SystemItem) -> Icrc16:
    """Return the data of the message for one item."""
    members = [_written(name, getattr(item, name)) for name in _FIELDS[item.key]]
    body = nat(item.replay_id) if item.key == PUBLISHER_REMOVE else array(nat(item.replay_id), *members)
    return map_of({item.key: array(body)})


def system_notification(
    item: SystemItem, role: CanisterRole, receiver: bytes, source: bytes, now_ns: int, number: int
) -> dict[str, object]:
    """Return the notification as ``icrc72_handle_notification`` takes it; ``number`` is its id at the sender."""
    return {
        "id": number,
        "eventId": number,
        "prevEventId": None,
        "timestamp": now_ns,
        "namespace": system_namespace(role, receiver),
        "data": variant_of(message_data(item)),
        "headers": None,
        "source": Principal(source),
        "filter": None,
    }


def items_of(data: Icrc16) -> Iterator[SystemItem]:
    """Return the items of a message, in its short or long form; keys of others are passed over.

    ``ValueError`` names the key and the item that has no such form.
    """
    for key, items in data.content if data.tag is Tag.MAP else ():
        if key in _FIELDS:
            if items.tag is not Tag.ARRAY:
                raise ValueError(f"{key}: expected an Array, got {items.tag}")
            yield from (_item(key, each) for each in _listed(items.content))


def _listed(items: tuple[Icrc16, ...]) -> list[tuple[Icrc16, ...]]:
    """Return each item's members: of ``[[1, "a"]]`` and of ``[1, "a"]`` and of ``[1, 2]``."""
    if all(each.tag is Tag.NAT for each in items):
        return [(each,) for each in items]
    if items[0].tag is Tag.NAT:
        return [items]
    return [each.content if each.tag is Tag.ARRAY else (each,) for each in items]


def _item(key: str, members: tuple[Icrc16, ...]) -> SystemItem:
    if not members or members[0].tag is not Tag.NAT:
        raise ValueError(f"{key}: expected the Nat of a replay first")
    found: dict[str, Any] = {
        name: _read(key, name, value) for name, value in zip(_FIELDS[key], members[1:], strict=False)
    }
    return SystemItem(key, members[0].content, **found)


def _written(name: str, value: object) -> Icrc16:
    match value:
        case None:
            return blob(b"") if name == "relay" else NOTHING
        case str():
            return text(value)
        case bytes():
            return blob(value)
        case Skip():
            return array(nat(value.mod), nat(value.offset))
    assert isinstance(value, int), value
    return option(nat(value)) if name == "end" else nat(value)


_EXPECTED = {"namespace": Tag.TEXT, "filter": Tag.TEXT, "start": Tag.NAT, "end": Tag.NAT}


def _read(key: str, name: str, value: Icrc16) -> object:
    if value.tag is Tag.OPTION:
        if value.content is None:
            return None
        value = value.content
    if name == "skip":
        return skip_of(value)
    expected = _EXPECTED.get(name, Tag.BLOB)
    if value.tag is not expected:
        raise ValueError(f"{key}: {name}: expected {expected}, got {value.tag}")
    return None if name == "relay" and not value.content else value.content
