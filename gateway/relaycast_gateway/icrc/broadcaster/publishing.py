"""What a broadcaster takes from publishers: checks, and what makes an event the same as another.

Law: an event that is refused leaves nothing behind; the others of its call are not hindered. An event that was
published before, with the same content by the same source, is taken and not sent again. The id of the event before is
kept as it was given, and left out where the publication is unordered.
Source: ICRC-72, "icrc72_publish", "Event Headers"; ICRC-3 for publications of its values alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.event_ids import Claim
from relaycast_gateway.icrc.canister import Promise
from relaycast_gateway.icrc.names import (
    BROADCASTER_RECEIVED,
    HASH,
    ICRC3_ONLY,
    OWN_HEADER,
    REPLAY,
    RESERVED_HEADERS,
    UNORDERED,
)
from relaycast_gateway.icrc.naturals import shown
from relaycast_gateway.icrc.registry import RegisteredPublication
from relaycast_gateway.icrc.value_hash import eventdata_hash, is_icrc3
from relaycast_gateway.icrc.variants import headers_of, icrc16_of
from relaycast_gateway.icrc16 import Icrc16, Tag, blob, nat
from relaycast_gateway.log.record_codec import encode_body
from relaycast_gateway.record import REALM_HEADER, EventDraft, Headers

NOT_FOR_PUBLISHERS = (*RESERVED_HEADERS, REPLAY, OWN_HEADER, REALM_HEADER)
"""Beginnings of headers that only the gateway gives."""

BAD_EVENT = 1
TOO_LARGE = 2
DISK_REFUSES = 3
RELAYED_BEFORE = 4
"""Codes of ``GenericError``."""

LATEST_NS = (1 << 63) - 1
"""The latest time that the log can hold."""

Item = Mapping[str, Any]
Read = TypeVar("Read")


class EventRefused(Exception):
    """An event that is not taken; ``error`` is the ``PublishError``."""

    def __init__(self, error: Variant) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class TakenEvent:
    """An event that is about to be appended."""

    draft: EventDraft
    claim: Claim
    stored_bytes: int


def failed(code: int, message: str) -> Variant:
    """Return a ``GenericError``."""
    return Variant("GenericError", {"error_code": code, "message": message})


def improper_id(message: str) -> EventRefused:
    return EventRefused(Variant("ImproperId", message))


def id_is_taken(namespace: str, event_id: int) -> EventRefused:
    return improper_id(f"{namespace} has another event with the id {shown(event_id)}")


def no_such_event(namespace: str, event_id: int) -> EventRefused:
    return improper_id(f"{namespace} has no event with the id {shown(event_id)}")


class Publishing:
    """Checks events for one broadcaster."""

    def __init__(self, context: BroadcasterContext, broadcaster: bytes) -> None:
        self._context = context
        self._broadcaster = broadcaster

    def take(self, caller: bytes, item: Item, now_ns: int) -> "TakenEvent | Promise[str | None]":
        """Return an event to append, or, of one that came before, when it is durable; raises ``EventRefused``."""
        namespace, event_id = item["namespace"], item["id"]
        publication = self._publication(caller, item)
        with_bounds = draft_of(caller, item)
        data, headers = with_bounds.data, with_bounds.headers
        for name, _ in headers:
            if name.startswith(NOT_FOR_PUBLISHERS):
                raise EventRefused(failed(BAD_EVENT, f"header {name[:80]}: only broadcasters give it"))
        if _is_set(publication.config, ICRC3_ONLY) and not is_icrc3(data):
            raise EventRefused(failed(BAD_EVENT, f"data: {namespace} takes the types of ICRC-3 alone"))
        check_hash(with_bounds)
        added = (BROADCASTER_RECEIVED, nat(now_ns)), (OWN_HEADER, blob(self._broadcaster))
        draft = with_bounds._replace(headers=(*headers, *added))
        if _is_set(publication.config, UNORDERED):
            draft = draft._replace(prev_id=None)
        stored_bytes = self.checked_bytes(draft)
        return self._unless_known(draft, event_id, stored_bytes)

    def checked_bytes(self, draft: EventDraft) -> int:
        """Return the length of an event's stored form; raises ``EventRefused``."""
        try:
            stored_bytes = len(encode_body(draft))
        except ValueError as error:
            raise EventRefused(failed(BAD_EVENT, str(error))) from None
        most = self._context.policy.most_event_bytes
        if stored_bytes > most:
            raise EventRefused(failed(TOO_LARGE, f"event: got {stored_bytes} bytes, expected at most {most}"))
        return stored_bytes

    def _publication(self, caller: bytes, item: Item) -> RegisteredPublication:
        publication = self._context.registry.publications.get(item["namespace"])
        if publication is None:
            raise EventRefused(Variant("PublicationNotFound"))
        source = item.get("source")
        is_own = source is None or source.raw == caller
        if not is_own or not self._context.orchestrator.is_authorized_publisher(item["namespace"], caller):
            raise EventRefused(Variant("Unauthorized"))
        return publication

    def _unless_known(self, draft: EventDraft, event_id: int, stored_bytes: int) -> "TakenEvent | Promise[str | None]":
        ids, place = self._context.ids, (draft.namespace, event_id)
        known = ids.claims.get(place) or ids.find(*place)
        content = eventdata_hash(draft.data)
        if known is None:
            claim = ids.claims[place] = Claim(draft.source, content, Promise())
            return TakenEvent(draft, claim, stored_bytes)
        if (known.source, known.hash) != (draft.source, content):
            raise id_is_taken(*place)
        if isinstance(known, Claim):
            return known.done
        durable: Promise[str | None] = Promise()
        durable.settle(None)
        return durable


def draft_of(source: bytes, item: Item) -> EventDraft:
    """Return an event as it came, without checks of its headers; raises ``EventRefused``."""
    if item["timestamp"] > LATEST_NS:
        said = f"timestamp: got {shown(item['timestamp'])}, expected nanoseconds since 1970, at most {LATEST_NS}"
        raise EventRefused(failed(BAD_EVENT, said))
    try:
        previous = _previous(item)
    except ValueError as error:
        raise EventRefused(failed(BAD_EVENT, str(error))) from None
    return EventDraft(
        item["namespace"],
        _read("data", icrc16_of, item["data"]),
        source,
        item["timestamp"],
        event_id=item["id"],
        prev_id=previous,
        is_ordered=False,
        headers=_read("headers", headers_of, item.get("headers")),
    )


def check_hash(draft: EventDraft) -> None:
    """Raise ``EventRefused`` where a header names another hash than that of the data."""
    for name, value in draft.headers:
        if name == HASH:
            if value.tag is not Tag.BLOB:
                raise EventRefused(failed(BAD_EVENT, f"headers: {HASH}: expected Blob, got {value.tag}"))
            expected = eventdata_hash(draft.data)
            if value.content != expected:
                said = f"expected {expected.hex()}, the hash of data, got {value.content[:32].hex() or 'no bytes'}"
                raise EventRefused(failed(BAD_EVENT, f"headers: {HASH}: {said}"))


def _read(field: str, read: Callable[[object], Read], given: object) -> Read:
    """Return what a field of an event holds; ``EventRefused`` names the field."""
    try:
        return read(given)
    except ValueError as error:
        raise EventRefused(failed(BAD_EVENT, f"{field}: {error}")) from None


def _previous(item: Item) -> int | None:
    """Return the id of the event before, by either spelling."""
    given = {it for it in (item.get("prev_id"), item.get("prevId")) if it is not None}
    if len(given) > 1:
        raise ValueError("prev_id and prevId: expected one id, got two")
    return given.pop() if given else None


def _is_set(config: Headers, name: str) -> bool:
    return any(key == name and value == Icrc16(Tag.BOOL, True) for key, value in config)
