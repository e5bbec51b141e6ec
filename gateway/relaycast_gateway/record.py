"""An event of the log.

Law: a record never changes. ``seq`` is the only order: dense from the first one on, in the order of appends, never used
twice. Each component that forwards an event may only append headers.
"""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from relaycast_gateway import crockford
from relaycast_gateway.icrc16 import Icrc16, Tag
from relaycast_gateway.principal import principal_text

MOST_PUBLICATION_ID = 1 << 53
"""WAMP's ids are drawn from 1 to this."""

Headers = tuple[tuple[str, Icrc16], ...]
"""Names and values, in the order in which they were added. A name may come again."""

REALM_HEADER = "wamp:realm"
"""First header of an event that belongs to a WAMP realm of its own: the other faces do not show it."""


SOURCE_HEADER = "ce:source"
"""Header with the path of the chain that emitted the event."""

PRINCIPALS = "/principal/"
"""Prefix of the sources of all events that no chain emitted."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """Who may see an event, by what a client was authenticated as; ``None`` puts no limit. Source: WAMP."""

    eligible_authid: tuple[str, ...] | None = None
    eligible_authrole: tuple[str, ...] | None = None
    exclude_authid: tuple[str, ...] = ()
    exclude_authrole: tuple[str, ...] = ()

    def allows(self, authid: str | None, authrole: str | None) -> bool:
        """Return whether a client with this id and role may see the event."""
        return (
            (self.eligible_authid is None or authid in self.eligible_authid)
            and (self.eligible_authrole is None or authrole in self.eligible_authrole)
            and authid not in self.exclude_authid
            and authrole not in self.exclude_authrole
        )


EVERYBODY = Visibility()


class EventDraft(NamedTuple):
    """An event as a producer hands it in; the log adds its place, its ids and the time of receipt."""

    namespace: str
    data: Icrc16
    source: bytes
    """The principal of the producer."""

    occurred_ns: int
    """When it happened, nanoseconds since 1970: the time of its block."""

    event_id: int | None = None
    """A natural number of any size, unique in the namespace; by default the record's ``seq``."""

    prev_id: int | None = None
    """The event before it; by default that of its namespace where ``is_ordered``."""

    is_ordered: bool = True
    subject: str | None = None
    headers: Headers = ()
    visibility: Visibility = EVERYBODY
    topic: str | None = None
    """Its WAMP topic; by default the namespace."""


class EventRecord(NamedTuple):
    """An event in the log."""

    seq: int
    event_id: int
    prev_id: int | None
    pub_id: int
    """Random and unique in the log, 1 to 2^53."""

    occurred_ns: int
    received_ns: int
    """When the log took it, nanoseconds since 1970. It may step back where a clock was set."""

    namespace: str
    source: bytes
    subject: str | None
    data: Icrc16
    headers: Headers
    visibility: Visibility
    own_topic: str | None = None
    """Its WAMP topic where that is not the namespace."""

    @property
    def topic(self) -> str:
        """Its WAMP topic."""
        return self.namespace if self.own_topic is None else self.own_topic

    @property
    def is_for_all_faces(self) -> bool:
        """Whether it belongs to no WAMP realm of its own."""
        return not self.headers or self.headers[0][0] != REALM_HEADER

    @property
    def is_public(self) -> bool:
        """Whether faces other than WAMP may show it: it has no separate realm and no list of receivers."""
        return self.is_for_all_faces and (self.visibility is EVERYBODY or self.visibility == EVERYBODY)

    @property
    def text_id(self) -> str:
        """``event_id`` as Crockford Base32: its form in every text."""
        return crockford.encode(self.event_id)

    @property
    def source_uri(self) -> str:
        """The CloudEvents source; with ``text_id`` unique in the log.

        For a chain it is the header ``ce:source``; ids of its events are their places in the log. Other producers
        number events per namespace, so their source names it: ``/principal/PRINCIPAL/NAMESPACE``. Their header
        ``ce:source`` is ignored.
        """
        if self.event_id == self.seq:
            for name, (tag, content) in self.headers:
                if name == SOURCE_HEADER and tag is Tag.TEXT and content and not content.startswith(PRINCIPALS):
                    chain: str = content
                    return chain
        return f"{PRINCIPALS}{principal_text(self.source)}/{quote(self.namespace, safe='')}"

    def header(self, name: str) -> Icrc16 | None:
        """Return the first header of that name."""
        return next((value for key, value in self.headers if key == name), None)
