"""Notifications of events of the log, as ``icrc72_handle_notification`` takes them.

Law: the data are those of the log. Headers come in this order: those of the log, the publisher's first; the time of the
event; those of a relay; the place of the subscriber; the time of sending. Source: ICRC-72, "EventNotification", "Event
Headers".
"""

from collections import OrderedDict
from typing import Any

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.broadcaster.audiences import Audience
from relaycast_gateway.icrc.names import (
    BROADCASTER_PRIORITY,
    BROADCASTER_RECEIVED,
    BROADCASTER_SENT,
    EVENT_TIMESTAMP,
    RELAY_RECEIVED,
    RELAY_SENT,
)
from relaycast_gateway.icrc.variants import pairs_of, variant_of
from relaycast_gateway.icrc16 import Icrc16, Tag, nat
from relaycast_gateway.log import EventLog
from relaycast_gateway.log.record_codec import encode_headers
from relaycast_gateway.log.unusable import DamagedEvent
from relaycast_gateway.record import EventRecord, Headers

Notification = dict[str, Any]


def notification_of(record: EventRecord, headers: Headers, *, generated_ns: int) -> Notification:
    """Return what all notifications of an event share; id, filter and last headers are to come."""
    return {
        "id": 0,
        "eventId": record.event_id,
        "prevEventId": record.prev_id,
        "timestamp": generated_ns,
        "namespace": record.namespace,
        "data": variant_of(record.data),
        "headers": pairs_of(headers),
        "source": Principal(record.source),
        "filter": None,
    }


def addressed(
    shared: Notification, notification_id: int, text: str | None, *, place: tuple[int, int], sent_ns: int
) -> Notification:
    """Return the notification of one subscriber: with its id, its filter and its headers.

    ``place`` is its position among all, counted from 1, and their number.
    """
    position, total = place
    own = (
        {0: BROADCASTER_PRIORITY, 1: Variant("Array", [Variant("Nat", position), Variant("Nat", total)])},
        {0: BROADCASTER_SENT, 1: Variant("Nat", sent_ns)},
    )
    return {**shared, "id": notification_id, "filter": text, "headers": [*shared["headers"], *own]}


def timed_headers(record: EventRecord) -> Headers:
    """Return the headers of an event of the log with its time, and the time of receipt where no broadcaster gave it."""
    headers = record.headers
    if record.header(BROADCASTER_RECEIVED) is None:
        headers = (*headers, (BROADCASTER_RECEIVED, nat(max(0, record.received_ns))))
    return (*headers, (EVENT_TIMESTAMP, _time(record.occurred_ns)))


def _time(moment_ns: int) -> Icrc16:
    return nat(moment_ns) if moment_ns >= 0 else Icrc16(Tag.INT, moment_ns)


class Contents:
    """What notifications of open audiences hold; the newest ones stay in memory."""

    def __init__(self, log: EventLog, *, most_bytes: int) -> None:
        self._log = log
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[int, tuple[Notification, int]] = OrderedDict()

    @property
    def held_bytes(self) -> int:
        """Stored bytes of the events in memory."""
        return self._bytes

    def keep(self, audience: Audience, record: EventRecord) -> Notification:
        """Hold the content of an audience's notifications."""
        headers = timed_headers(record)
        if audience.relayed is not None:
            sent_ns, received_ns = audience.relayed
            headers = (*headers, (RELAY_SENT, nat(sent_ns)), (RELAY_RECEIVED, nat(received_ns)))
        content = notification_of(record, headers, generated_ns=audience.generated_ns)
        size = len(encode_headers((("data", record.data), *headers)))
        self._kept[audience.first] = content, size
        self._bytes += size
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self._forget(next(iter(self._kept)))
        return content

    def of(self, audience: Audience) -> Notification | None:
        """Return the content; ``None`` where retention has dropped the event, or the log cannot read it."""
        found = self._kept.get(audience.first)
        if found is not None:
            return found[0]
        try:
            record = self._log.get(audience.seq)
        except DamagedEvent:
            return None
        return None if record is None else self.keep(audience, record)

    def forget(self, audience: Audience) -> None:
        """Let go of an audience that is finished."""
        if audience.first in self._kept:
            self._forget(audience.first)

    def _forget(self, first: int) -> None:
        self._bytes -= self._kept.pop(first)[1]
