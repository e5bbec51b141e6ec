"""``wamp.subscription.get_events``: the history of a subscription, for those who may know of its events.

Law: a caller gets the history of a pattern that it may subscribe to. A rule for exactly this procedure opens every
history; a wider one, such as "everything", lets a caller call but opens nothing. Events that were not for the caller's
authid and authrole are not there for it, whatever its permissions.

An answer is cut before it has too many events or bytes, and says so with ``more``. To a caller that takes a result in
parts no event is cut off: all RESULTs one after another are the answer, and the last one counts them all. An answer
holds events up to the newest one at the time of the call.
Source: WAMP specification, "Event History".
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from relaycast_gateway.access import EVERYTHING, EventAccess
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventRecord
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.authorization import Roles
from relaycast_gateway.wamp.dealer import Dealer
from relaycast_gateway.wamp.errors import (
    HISTORY_UNAVAILABLE,
    INVALID_ARGUMENT,
    NOT_AUTHORIZED,
    PAYLOAD_SIZE_EXCEEDED,
    WampError,
)
from relaycast_gateway.wamp.event_details import recorded_event
from relaycast_gateway.wamp.history import EventHistory, HistoryPage, HistoryQuery, HistoryRules
from relaycast_gateway.wamp.messages import MOST_ID
from relaycast_gateway.wamp.meta.subscription_meta import may_read, no_such_subscription
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome
from relaycast_gateway.wamp.subscriptions import SubscriptionRegistry, TopicSubscription

GET_EVENTS = "wamp.subscription.get_events"

SLICE = 256
"""Events read at once; behind each slice others have their turn."""

CROSSBAR_LIMIT = 10
"""Events by default in the shape ``crossbar``, as Crossbar.io has it."""

MOST_ADDED_BYTES = 4
"""By which an event lengthens a message more than it did alone: a comma, or a longer count."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How histories of a realm are told."""

    result_shape: str = "standard"
    """``standard``, or ``crossbar``: one argument that is a list, newest first, and a limit as second argument."""

    digits: int = 9
    """Digits of a second's fraction."""

    topic_prefix: str = ""
    """What stands before the realm's topics in the log."""

    most_events: int = 10_000
    """In one answer, unless it comes in parts."""

    most_bytes: int = 4 << 20
    """Bytes of one message; a single event may be larger, if the caller takes it."""

    @property
    def is_crossbar(self) -> bool:
        return self.result_shape == "crossbar"


class GetEvents:
    """The procedure, on the history of one realm."""

    def __init__(
        self,
        history: EventHistory,
        *,
        log: EventLog,
        rules: HistoryRules,
        subscriptions: SubscriptionRegistry,
        roles: Roles,
        access: EventAccess = EVERYTHING,
        form: AnswerForm,
    ) -> None:
        self.history = history
        self.access = access
        self.log = log
        self.form = form
        self._rules = rules
        self._subscriptions = subscriptions
        self._roles = roles

    def offer(self, dealer: Dealer) -> None:
        """Offer the procedure."""
        dealer.offer(GET_EVENTS, self.answer)

    def answer(self, context: CallContext) -> CallOutcome | Awaitable[CallOutcome]:
        """Answer at once where one slice is all, else slice by slice."""
        query = _crossbar_query(context) if self.form.is_crossbar else HistoryQuery.of(context.args, context.kwargs)
        subscription = self._subscriptions.by_id(query.subscription)
        if subscription is None:
            raise no_such_subscription(query.subscription)
        if not may_read(self._roles, context, subscription):
            raise WampError(NOT_AUTHORIZED, f"you may neither subscribe to {subscription.pattern} nor read its history")
        if not self._rules.covers(subscription.pattern):
            raise WampError(HISTORY_UNAVAILABLE, f"no history is kept of {subscription.pattern}")
        return _Reading(self, context, subscription, query).start()


@dataclass(slots=True)
class _Told:
    """What ArgumentsKw says of events that were told."""

    count: int = 0
    first: int = 0
    last: int = 0
    history_start: str | None = None
    more: bool = False

    def add(self, events: Sequence[Mapping[str, Any]]) -> None:
        if events:
            self.first = self.first or events[0]["publication"]
            self.last = events[-1]["publication"]
            self.count += len(events)

    def members(self) -> dict[str, Any]:
        ends = {"first_publication": self.first, "last_publication": self.last} if self.count else {}
        return {"count": self.count, "more": self.more, **ends, "history_start": self.history_start}


_WIDEST = _Told(MOST_ID, MOST_ID, MOST_ID, "9999-12-31T23:59:59.999999999Z")


class _Reading:
    """One call: what is still to be read, and what was told."""

    def __init__(
        self, source: GetEvents, context: CallContext, subscription: TopicSubscription, query: HistoryQuery
    ) -> None:
        self._form = form = source.form
        self._history = source.history
        self._access = source.access
        self._context = context
        self._subscription = subscription
        self._query = query
        self._last_seq = source.log.last_seq
        self._rest = MOST_ID if query.limit is None else query.limit
        if not context.receives_progress:
            self._rest = min(self._rest, form.most_events)
        self._empty_bytes = context.result_bytes(self._outcome([], _WIDEST))
        self._room = form.most_bytes - self._empty_bytes
        """Bytes for the events of one message."""

        self._most_room = context.most_result_bytes - self._empty_bytes
        """Bytes that an event may have which is alone in its message."""

        self._told = _Told()
        self._most_read = SLICE

    def start(self) -> CallOutcome | Awaitable[CallOutcome]:
        """Return the answer where one slice is all, else what brings it."""
        room = min(self._room, self._most_room)
        events, is_done = self._slice(room, is_alone=True)
        if is_done:
            return self._outcome(events, self._told)
        return self._in_parts(events, room) if self._context.receives_progress else self._together(events, room)

    async def _in_parts(self, events: list[dict[str, Any]], room: int) -> CallOutcome:
        """Send all slices but the last one as parts."""
        is_done = False
        while not is_done:
            part = _Told(history_start=self._told.history_start, more=True)
            part.add(events)
            await self._context.send_part(self._outcome(events, part))
            await asyncio.sleep(0)
            events, is_done = self._slice(room, is_alone=True)
        return self._outcome(events, self._told)

    async def _together(self, events: list[dict[str, Any]], room: int) -> CallOutcome:
        """Put slices into one answer, as long as there is room."""
        is_done = False
        found = events
        while not is_done:
            room -= self._bytes(found)
            await asyncio.sleep(0)
            found, is_done = self._slice(room)
            events += found
        return self._outcome(events, self._told)

    def _slice(self, room: int, *, is_alone: bool = False) -> tuple[list[dict[str, Any]], bool]:
        """Read on and return the events that have ``room``, and whether there is nothing more to read.

        Events that are alone in their message are one at least, be it a large one.
        """
        page = self._page()
        if page is None:
            return [], True
        records = [it for it in page.records if it.seq <= self._last_seq]
        events = [self._event(record) for record in records]
        is_cut = False
        if self._bytes(events) > room:
            is_cut = True
            del events[self._fitting(events, room, is_alone=is_alone) :]
            self._most_read = 2 * len(events) + 1  # what was cut off is read again
        self._told.add(events)
        self._told.more = is_cut or (page.more and len(records) == len(page.records))
        self._rest -= len(events)
        is_full = is_cut and not (is_alone and self._context.receives_progress)
        return events, is_full or not self._told.more or self._rest == 0

    def _page(self) -> HistoryPage | None:
        """Return the next events; ``None`` where those that were returned last are no longer kept."""
        told, identity = self._told, self._context.identity
        query = self._query
        if told.count and query.reverse:
            query = replace(query, before_publication=told.last)
        elif told.count:
            query = replace(query, after_publication=told.last)
        try:
            page = self._history.page(
                self._subscription.pattern,
                query,
                authid=identity.authid,
                authrole=identity.authrole,
                most_events=min(self._rest, self._most_read, SLICE),
                hidden_namespaces=self._access.hidden_from(identity.principal),
            )
        except WampError:
            if not told.count:
                raise
            told.more = not self._query.reverse
            return None
        start = page.history_start_ns
        told.history_start = None if start is None else format_time(start, digits=self._form.digits)
        return page

    def _fitting(self, events: Sequence[dict[str, Any]], room: int, *, is_alone: bool) -> int:
        """Return how many events have room; ``WampError`` where the caller cannot take even one."""
        for at, event in enumerate(events):
            taken = self._bytes([event]) + MOST_ADDED_BYTES
            if taken > room:
                if at or not is_alone:
                    return at
                if self._bytes([event]) <= self._most_room:
                    return 1
                raise _too_large(event["publication"], taken, self._most_room)
            room -= taken
        return len(events)

    def _bytes(self, events: Sequence[dict[str, Any]]) -> int:
        return self._context.result_bytes(self._outcome(events, _WIDEST)) - self._empty_bytes

    def _outcome(self, events: Sequence[dict[str, Any]], told: _Told) -> CallOutcome:
        return CallOutcome([list(events)]) if self._form.is_crossbar else CallOutcome(events, told.members())

    def _event(self, record: EventRecord) -> dict[str, Any]:
        """Return an event as the text has it."""
        details, args, kwargs = recorded_event(record)
        topic = record.topic.removeprefix(self._form.topic_prefix)
        event: dict[str, Any] = {
            "timestamp": format_time(record.received_ns, digits=self._form.digits),
            "subscription": self._subscription.id,
            "publication": record.pub_id,
            "details": {"topic": topic, **details},
        }
        if self._form.is_crossbar:
            return {**event, "topic": topic, "args": args or [], "kwargs": kwargs}
        if args is not None:
            event["args"] = args
        if kwargs is not None:
            event["kwargs"] = kwargs
        return event


def _crossbar_query(context: CallContext) -> HistoryQuery:
    """Return the query of an application that was written for Crossbar.io."""
    args, kwargs = context.args, dict(context.kwargs)
    if len(args) > 1:
        if len(args) > 2 or "limit" in kwargs:
            raise WampError(INVALID_ARGUMENT, "expected the subscription's id and one limit at most")
        kwargs["limit"] = args[1]
    return HistoryQuery.of(args[:1], {"limit": CROSSBAR_LIMIT, "reverse": True, **kwargs})


def _too_large(publication: int, taken: int, most: int) -> WampError:
    return WampError(
        PAYLOAD_SIZE_EXCEEDED,
        f"event {publication} has {taken} bytes, and this connection takes {most}; read on behind it",
        kwargs={"publication": publication},
    )
