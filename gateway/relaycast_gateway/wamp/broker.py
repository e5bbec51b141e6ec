"""The broker of a realm: who is subscribed to what, and which events they get.

Law: a session gets one EVENT for each of its subscriptions whose pattern matches the topic. Each EVENT is encoded once
for a subscription and a serializer. A request is checked whole before anything changes: form of the URI, options,
permission. A PUBLISH that is refused is answered only where an acknowledgement was asked for.

An event of a topic with a history goes through the log first, see ``publication_flow``. Meta events of a subscription
that is kept for a history say when sessions come and go; it is neither created nor deleted by them.
Source: WAMP, "Publish and Subscribe", "Publisher Exclusion", "Publisher Identification", "Subscription Meta API".
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from random import getrandbits
from typing import Any

from relaycast_gateway.access import EVERYTHING, EventAccess
from relaycast_gateway.clock import Clock
from relaycast_gateway.icrc16 import text
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import LONGEST_TOPIC, Match, TopicPattern, is_topic
from relaycast_gateway.principal import client_principal
from relaycast_gateway.record import EVERYBODY, REALM_HEADER, EventDraft, EventRecord, Headers, Visibility
from relaycast_gateway.wamp.authorization import Permission, Roles
from relaycast_gateway.wamp.client.session import ClientSession
from relaycast_gateway.wamp.errors import (
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_SUBSCRIPTION,
    NOT_AUTHORIZED,
    UNAVAILABLE,
    WampError,
)
from relaycast_gateway.wamp.event_details import details_for, headers_of, recorded_event
from relaycast_gateway.wamp.history.rules import HistoryRules
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import (
    Arguments,
    Details,
    EventMessage,
    PublishedMessage,
    PublishMessage,
    SubscribedMessage,
    SubscribeMessage,
    UnsubscribedMessage,
    UnsubscribeMessage,
)
from relaycast_gateway.wamp.payload import data_of
from relaycast_gateway.wamp.publication_flow import ClientPublication, PublicationFlow
from relaycast_gateway.wamp.publication_options import EphemeralOptions, expect, options_of
from relaycast_gateway.wamp.subscriptions import SubscriptionRegistry, TopicSubscription

ON_CREATE = "wamp.subscription.on_create"
ON_SUBSCRIBE = "wamp.subscription.on_subscribe"
ON_UNSUBSCRIBE = "wamp.subscription.on_unsubscribe"
ON_DELETE = "wamp.subscription.on_delete"

MOST_SUBSCRIPTIONS_OF_A_SESSION = 10_000
MOST_ROUTES = 8_192
MOST_PRINCIPALS = 8_192
MOST_TOPICS = 100_000
"""Topics that the log has had; they stay in memory."""

MOST_VISIBILITIES = 10_000
"""Different lists of receivers that the log has had; they stay in memory."""

RECENT_IDS = 4_096
"""Ids of publications that are not drawn again soon."""

_NO_DETAILS: Details = {}

_LOGGER = logging.getLogger(__name__)


class _Route:
    """What is known of a topic before anything is published to it."""

    __slots__ = ("granted", "is_stored", "log_topic")

    def __init__(self, log_topic: str, *, is_stored: bool) -> None:
        self.log_topic = log_topic
        self.is_stored = is_stored
        self.granted: dict[str, Permission] = {}


class Broker:
    """The broker of the realm ``realm_name``, between ``start`` and ``stop``.

    ``rules`` say which topics have a history; ``tell_meta`` is given a meta event's topic, args and kwargs. Topics are
    called ``realm_prefix`` + topic in the log; with an empty prefix a stored topic holds no colon, by which other
    realms are known.
    """

    def __init__(
        self,
        realm_name: str,
        *,
        log: EventLog,
        rules: HistoryRules,
        roles: Roles,
        clock: Clock,
        access: EventAccess = EVERYTHING,
        tell_meta: Callable[[str, list[Any], dict[str, Any]], None],
        realm_prefix: str = "",
        ephemeral: EphemeralOptions | None = None,
    ) -> None:
        self.realm_name = realm_name
        self.subscriptions = SubscriptionRegistry((it.pattern for it in rules.rules if it.is_kept), clock=clock)
        self.accepted = 0
        """Publications taken from clients."""

        self.refused = 0
        """Publications refused, acknowledged or not."""

        self.events_sent = 0
        """EVENTs, one for each receiver and subscription."""

        self._rules = rules
        self._roles = roles
        self._access = access
        self._clock = clock
        self._tell_meta = tell_meta
        self._log = log
        self._prefix = realm_prefix
        self._realm_headers: Headers = ((REALM_HEADER, text(realm_name)),) if realm_prefix else ()
        self._ephemeral: Mapping[str, Any] = ephemeral or {}
        self._routes: dict[str, _Route] = {}
        self._principals: dict[str, bytes] = {}
        self._recent_ids: set[int] = set()
        self._recent_order: deque[int] = deque()
        self._flow = PublicationFlow(log, self)

    @property
    def waiting(self) -> int:
        """Publications that wait for the disk, or for one before them that does."""
        return self._flow.waiting

    @property
    def is_heard(self) -> bool:
        """Whether anybody is subscribed to anything."""
        return self.subscriptions.has_sessions

    def is_wanted(self, topic: str) -> bool:
        """Return whether anybody is subscribed to what the log knows as ``topic``."""
        mine = self._topic_of(topic)
        return mine is not None and any(it.session_count for it in self.subscriptions.matching(mine))

    def start(self) -> None:
        """Deliver from now on; in the running event loop."""
        self._flow.start()

    async def stop(self) -> None:
        """Store and deliver what was accepted; events appended later are delivered to nobody."""
        await self._flow.stop()

    def subscribe(self, session: ClientSession, message: SubscribeMessage) -> None:
        """Answer SUBSCRIBE; subscribing again gives the same id, and tells nobody."""
        try:
            pattern = self._pattern(session, message)
        except WampError as error:
            session.refuse(SubscribeMessage.code, message.request, error)
            return

        subscription, is_new, is_again = self.subscriptions.join(session, pattern)
        session.send(SubscribedMessage(message.request, subscription.id))

        number = session.identity.session
        if is_new:
            self._tell_meta(ON_CREATE, [number, subscription.details()], {})
        if not is_again:
            self._tell_meta(ON_SUBSCRIBE, [number, subscription.id], {})

    def unsubscribe(self, session: ClientSession, message: UnsubscribeMessage) -> None:
        """Answer UNSUBSCRIBE."""
        subscription = self.subscriptions.by_id(message.subscription)
        if subscription is None or session not in subscription:
            error = WampError(NO_SUCH_SUBSCRIPTION, f"this session has no subscription {message.subscription}")
            session.refuse(UnsubscribeMessage.code, message.request, error)
            return

        has_ended = self.subscriptions.part(session, subscription)
        session.send(UnsubscribedMessage(message.request))
        self._tell_parted(session, subscription, has_ended=has_ended)

    def leave(self, session: ClientSession) -> None:
        """Unsubscribe a session that has ended from everything; what it published before is still delivered."""
        self._flow.forget(session)
        for subscription in self.subscriptions.of(session):
            has_ended = self.subscriptions.part(session, subscription)
            self._tell_parted(session, subscription, has_ended=has_ended)

    def publish(self, session: ClientSession, message: PublishMessage) -> None:
        """Take a PUBLISH, or refuse it."""
        try:
            self._publish(session, message)
        except WampError as error:
            self.refused += 1
            if message.options.get("acknowledge") is True:
                session.refuse(PublishMessage.code, message.request, error)

    def publish_internal(self, topic: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Send an event of the router itself; it is not stored."""
        self._send(topic, self._new_id(), args, kwargs or None, {}, None, None)

    def deliver(self, publication: ClientPublication, pub_id: int | None) -> None:
        """Send a publication to its receivers, then PUBLISHED to its publisher."""
        options = publication.options
        if pub_id is None:
            pub_id = self._new_id()
        self._send(
            publication.topic,
            pub_id,
            publication.args,
            publication.kwargs,
            publication.details,
            publication.session if options.exclude_me else None,
            self._allowed(self._prefix + publication.topic, None if options.is_for_everybody else options.allows),
        )
        if options.acknowledge:
            publication.session.send(PublishedMessage(publication.request, pub_id))

    def deliver_record(self, record: EventRecord) -> None:
        """Send an event that a chain or another face has appended, where it is one of this realm."""
        topic = self._topic_of(record.topic)
        if topic is None:
            return
        details, args, kwargs = recorded_event(record)
        seen_by = record.visibility
        self._send(
            topic,
            record.pub_id,
            args,
            kwargs,
            details,
            None,
            self._allowed(record.namespace, lambda identity: seen_by.allows(identity.authid, identity.authrole)),
        )

    def _allowed(self, namespace: str, allows: Callable[[Identity], bool] | None) -> Callable[[Identity], bool] | None:
        """Add the lists of a namespace to the other rules for receivers."""
        permits = self._access.receivers(namespace)
        if permits is None:
            return allows
        return lambda identity: permits(identity.principal) and (allows is None or allows(identity))

    def reject(self, publication: ClientPublication, error: WampError) -> None:
        """Tell a publisher that waits for it that an event was not stored."""
        self.refused += 1
        if publication.options.acknowledge:
            publication.session.refuse(PublishMessage.code, publication.request, error)

    def _pattern(self, session: ClientSession, message: SubscribeMessage) -> TopicPattern:
        options = message.options
        expect(options, "get_retained", bool, "true or false")
        given = options.get("match", "exact")
        try:
            pattern = TopicPattern(message.topic, Match(given))
        except ValueError:
            says = f"match: expected exact, prefix or wildcard, got {str(given)[:100]}"
            raise WampError(INVALID_ARGUMENT, says) from None
        if not pattern.is_valid:
            raise WampError(INVALID_URI, f"expected a topic for match={given}, got {message.topic[:200]!r}")
        if not self._roles.permission(session.identity, "subscribe", pattern.uri, pattern.match).is_allowed:
            raise WampError(NOT_AUTHORIZED, f"{session.identity.authrole} may not subscribe to {pattern}")
        if pattern.match is Match.EXACT:
            permits = self._access.receivers(self._prefix + pattern.uri)
            if permits is not None and not permits(session.identity.principal):
                raise WampError(NOT_AUTHORIZED, f"you are not on the list of subscribers of {pattern.uri}")
        if self.subscriptions.count(session) >= MOST_SUBSCRIPTIONS_OF_A_SESSION:
            says = f"a session may have at most {MOST_SUBSCRIPTIONS_OF_A_SESSION} subscriptions"
            raise WampError(UNAVAILABLE, says)
        return pattern

    def _publish(self, session: ClientSession, message: PublishMessage) -> None:
        topic, args, kwargs = message.topic, message.args, message.kwargs
        route = self._routes.get(topic)
        if route is None:
            route = self._new_route(topic)
        options = options_of(message.options, self._ephemeral)
        identity = session.identity
        granted = route.granted.get(identity.authrole)
        if granted is None:
            granted = route.granted[identity.authrole] = self._roles.permission(identity, "publish", topic)
        if not granted.is_allowed:
            raise WampError(NOT_AUTHORIZED, f"{identity.authrole} may not publish to {topic}")
        if not self._access.may_publish(route.log_topic, identity.principal):
            raise WampError(NOT_AUTHORIZED, f"you are not on the list of publishers of {topic}")

        publisher = identity.disclosed("publisher") if options.disclose_me or granted.discloses else None
        details = {**(publisher or {}), **options.passed_on} if publisher or options.passed_on else _NO_DETAILS
        draft = None
        if route.is_stored and not options.is_ephemeral:
            data, headers = data_of(args, kwargs)
            if self._realm_headers:
                headers = self._realm_headers + headers
            if options.visibility is not EVERYBODY:
                self._ensure_room(options.visibility)
            if details:
                headers += headers_of(publisher or {}, options.passed_on)
            draft = EventDraft(
                route.log_topic,
                data,
                self._principals.get(identity.authid) or self._principal(identity.authid),
                self._clock.now_ns(),
                headers=headers,
                visibility=options.visibility,
            )
        self._flow.publish(ClientPublication(session, message.request, topic, args, kwargs, options, details, draft))
        self.accepted += 1

    def _send(
        self,
        topic: str,
        pub_id: int,
        args: Arguments,
        kwargs: Details | None,
        details: Details,
        excluded: ClientSession | None,
        allows: Callable[[Identity], bool] | None,
    ) -> None:
        """Send one EVENT for each subscription and receiver."""
        for subscription in self.subscriptions.matching(topic):
            sessions = subscription.sessions
            if not sessions:
                continue
            encoded: dict[str, bytes | None] = {}
            message = None
            for session in sessions:
                if session is excluded or (allows is not None and not allows(session.identity)):
                    continue
                serializer = session.serializer
                name = serializer.name
                if name in encoded:
                    data = encoded[name]
                else:
                    if message is None:
                        seen = details_for(subscription.pattern, topic, details)
                        message = EventMessage(subscription.id, pub_id, seen, args, kwargs)
                    data = encoded[name] = _encoded(serializer.encode, message, name)
                if data is not None:
                    session.send_bytes(data)
                    self.events_sent += 1

    def _tell_parted(self, session: ClientSession, subscription: TopicSubscription, *, has_ended: bool) -> None:
        self._tell_meta(ON_UNSUBSCRIBE, [session.identity.session, subscription.id], {})
        if has_ended:
            self._tell_meta(ON_DELETE, [session.identity.session, subscription.id], {})

    def _new_route(self, topic: str) -> _Route:
        if not is_topic(topic):
            raise WampError(INVALID_URI, f"expected a topic without empty components, got {topic[:200]!r}")
        rule = self._rules.rule_for(topic)
        is_stored = rule is not None and rule.is_kept
        log_topic = self._prefix + topic
        if is_stored and len(log_topic) > LONGEST_TOPIC:
            raise WampError(INVALID_URI, f"expected at most {LONGEST_TOPIC - len(self._prefix)} characters of a topic")
        if is_stored and len(self._log.topics) >= MOST_TOPICS and self._log.topic_number(log_topic) is None:
            raise WampError(UNAVAILABLE, f"the log has had {MOST_TOPICS} topics and takes no others")
        if is_stored and not self._prefix and ":" in topic:
            raise WampError(INVALID_URI, f"expected no colon in a topic with a history, got {topic[:200]!r}")
        if len(self._routes) >= MOST_ROUTES:
            del self._routes[next(iter(self._routes))]
        route = self._routes[topic] = _Route(log_topic, is_stored=is_stored)
        return route

    def _ensure_room(self, visibility: Visibility) -> None:
        log = self._log
        if len(log.visibilities) >= MOST_VISIBILITIES and log.visibility_number(visibility) is None:
            says = f"the log has had {MOST_VISIBILITIES} different lists of receivers and takes no others"
            raise WampError(UNAVAILABLE, says)

    def _topic_of(self, log_topic: str) -> str | None:
        """Return the topic of this realm that has this name in the log, ``None`` where it is of another realm."""
        if not self._prefix:
            return None if ":" in log_topic else log_topic
        return log_topic[len(self._prefix) :] if log_topic.startswith(self._prefix) else None

    def _principal(self, authid: str) -> bytes:
        if len(self._principals) >= MOST_PRINCIPALS:
            self._principals.clear()
        principal = self._principals[authid] = client_principal(self.realm_name, authid)
        return principal

    def _new_id(self) -> int:
        """Return a random id, other than the recent ones."""
        recent = self._recent_ids
        found = getrandbits(53) + 1
        while found in recent:
            found = getrandbits(53) + 1
        recent.add(found)
        self._recent_order.append(found)
        if len(recent) > RECENT_IDS:
            recent.remove(self._recent_order.popleft())
        return found

    def __repr__(self) -> str:
        return f"<Broker of {self.realm_name}: {len(self.subscriptions)} subscriptions>"


def _encoded(encode: Callable[[EventMessage], bytes], message: EventMessage, name: str) -> bytes | None:
    """Return the bytes of an EVENT, ``None`` where the serializer has no form for its payload."""
    try:
        return encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        _LOGGER.warning("event %d has no form in %s: %s", message.publication, name, error)
        return None
