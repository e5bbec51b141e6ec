"""An event as a notification brings it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from relaycast_gateway import crockford
from relaycast_gateway.icrc.names import EPOCH_CLOSED, HASH, OWN_HEADER, REPLAY_END, REPLAY_END_ID, REPLAY_ID
from relaycast_gateway.icrc.publisher.close_out import last_ids_of
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import headers_of, icrc16_of
from relaycast_gateway.icrc16 import Icrc16, Tag
from relaycast_gateway.record import Headers

ChainKey = tuple[bytes, bytes]
"""Source and accepting broadcaster, both empty for an event that came into the log by another face."""


class NotifiedEvent(NamedTuple):
    """What a handler is given."""

    notification_id: int
    event_id: int
    prev_id: int | None
    namespace: str
    data: Icrc16
    headers: Headers
    source: bytes
    """The principal of the publisher."""

    timestamp_ns: int
    """When the notification was made."""

    filter: str | None
    broadcaster: bytes
    """The principal that sent the notification."""

    @property
    def text_id(self) -> str:
        """``event_id`` as Crockford Base32."""
        return crockford.encode(self.event_id)

    def header(self, name: str) -> Icrc16 | None:
        """Return the first header of that name: the publisher's."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def replay_id(self) -> int | None:
        """The replay that it belongs to, ``None`` for a live event."""
        return self._last_nat(REPLAY_ID)

    @property
    def replay_end_id(self) -> int | None:
        """The last event of an open replay."""
        found = self._last_nat(REPLAY_END_ID)
        return self._last_nat(REPLAY_END) if found is None else found

    @property
    def chain(self) -> ChainKey:
        """The chain that it belongs to: a publisher's events that one broadcaster accepted."""
        accepted = self.header(OWN_HEADER)
        return (b"", b"") if accepted is None or accepted.tag is not Tag.BLOB else (self.source, accepted.content)

    @property
    def predecessors(self) -> tuple[int, ...]:
        """The events that come before it: the one that it names, and all that end an epoch with it."""
        named = () if self.prev_id is None else (self.prev_id,)
        return (*named, *(each for each in last_ids_of(self.headers, self.data) if each != self.prev_id))

    @property
    def ends_an_epoch(self) -> bool:
        """Whether it is a close-out."""
        return self.header(EPOCH_CLOSED) is not None

    @property
    def is_intact(self) -> bool:
        """Whether the data has the hash that the event names, if it names one."""
        named = self.header(HASH)
        return named is None or (named.tag is Tag.BLOB and named.content == eventdata_hash(self.data))

    def _last_nat(self, name: str) -> int | None:
        """Return the last header of that name: who replays an event adds headers behind its own."""
        found = [value for key, value in self.headers if key == name]
        return found[-1].content if found and found[-1].tag is Tag.NAT else None


def notified_event(value: object, broadcaster: bytes) -> NotifiedEvent:
    """Return the event of an ``EventNotification``; ``ValueError`` where its data nests deeper than 64."""
    given = cast("Mapping[str, Any]", value)
    return NotifiedEvent(
        given["id"],
        given["eventId"],
        given["prevEventId"],
        given["namespace"],
        icrc16_of(given["data"]),
        headers_of(given["headers"]),
        given["source"].raw,
        given["timestamp"],
        given["filter"],
        broadcaster,
    )
