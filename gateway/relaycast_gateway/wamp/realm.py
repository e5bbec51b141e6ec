"""A realm: its sessions, and the parts that answer their requests."""

from typing import Any

from relaycast_gateway.access import EventAccess
from relaycast_gateway.clock import Clock
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.authentication import Authenticator
from relaycast_gateway.wamp.authorization import Roles
from relaycast_gateway.wamp.broker import Broker
from relaycast_gateway.wamp.dealer import FEATURES as DEALER_FEATURES
from relaycast_gateway.wamp.dealer import Dealer
from relaycast_gateway.wamp.errors import UNAVAILABLE, WampError
from relaycast_gateway.wamp.history import EventHistory, HistoryRules
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import (
    CallMessage,
    CancelMessage,
    ErrorMessage,
    EventReceivedMessage,
    PublishMessage,
    RegisterMessage,
    SubscribeMessage,
    UnregisterMessage,
    UnsubscribeMessage,
    WampMessage,
    YieldMessage,
)
from relaycast_gateway.wamp.meta.get_events import AnswerForm, GetEvents
from relaycast_gateway.wamp.meta.registration_meta import RegistrationMeta
from relaycast_gateway.wamp.meta.session_meta import SessionMeta
from relaycast_gateway.wamp.meta.subscription_meta import SubscriptionMeta
from relaycast_gateway.wamp.router_config import RealmConfig, RouterLimits
from relaycast_gateway.wamp.session import Handler, Session

BROKER_FEATURES = {
    "pattern_based_subscription": True,
    "payload_passthru_mode": True,
    "publisher_exclusion": True,
    "publisher_identification": True,
    "session_meta_api": True,
    "subscriber_blackwhite_listing": True,
    "subscription_meta_api": True,
}
"""What WELCOME announces for the broker, beside ``event_history``."""


class Realm:
    """Clients that see one another: their broker, their dealer and what they may do."""

    def __init__(
        self, config: RealmConfig, log: EventLog, clock: Clock, limits: RouterLimits, access: EventAccess
    ) -> None:
        self.config = config
        self._access = access
        self.name = config.name
        self.roles = Roles(config.roles, closed=(config.chain_prefix,) if config.has_chains else ())
        self.authenticator = Authenticator(
            config.users, anonymous_role=config.anonymous_role, preference=config.methods, clock=clock
        )
        self.rules = HistoryRules(config.history)
        self.counts_requests = config.sequential_request_ids
        self.sessions: dict[int, Session] = {}
        self.broker = Broker(
            config.name,
            log=log,
            rules=self.rules,
            roles=self.roles,
            access=access,
            clock=clock,
            tell_meta=self._tell,
            realm_prefix=config.topic_prefix,
        )
        self.dealer = Dealer(roles=self.roles, clock=clock, tell_meta=self._tell)
        self.history = EventHistory(
            log,
            self.rules,
            realm_prefix=config.topic_prefix,
            digits=config.timestamp_digits,
            first_seq_of_run=log.last_seq + 1,
        )
        self._session_meta = SessionMeta(self.sessions, self._tell)
        self._offer_meta(log, limits)
        self.handlers = self._handlers()
        self._is_running = False

    def _handlers(self) -> dict[type[WampMessage], Handler]:
        return {
            PublishMessage: self.broker.publish,
            SubscribeMessage: self.broker.subscribe,
            UnsubscribeMessage: self.broker.unsubscribe,
            EventReceivedMessage: _ignore,
            CallMessage: self.dealer.call,
            CancelMessage: self.dealer.cancel,
            RegisterMessage: self.dealer.register,
            UnregisterMessage: self.dealer.unregister,
            YieldMessage: self.dealer.yield_,
            ErrorMessage: self.dealer.error,
        }

    def _offer_meta(self, log: EventLog, limits: RouterLimits) -> None:
        """Offer the procedures that tell of the realm itself."""
        form = AnswerForm(
            result_shape=self.config.result_shape,
            digits=self.config.timestamp_digits,
            topic_prefix=self.config.topic_prefix,
            most_events=limits.most_history_events,
            most_bytes=limits.most_history_bytes,
        )
        self._session_meta.offer(self.dealer)
        RegistrationMeta(self.dealer.registrations).offer(self.dealer)
        SubscriptionMeta(self.broker.subscriptions, self.roles).offer(self.dealer)
        GetEvents(
            self.history,
            log=log,
            rules=self.rules,
            subscriptions=self.broker.subscriptions,
            roles=self.roles,
            access=self._access,
            form=form,
        ).offer(self.dealer)

    @property
    def has_history(self) -> bool:
        """Whether any topic of the realm has a history."""
        return any(rule.is_kept for rule in self.config.history)

    def start(self) -> None:
        """Begin to deliver; in the running event loop."""
        self._is_running = True
        self.broker.start()

    async def stop(self) -> None:
        """Take no more publications, and deliver those that were taken."""
        self.handlers[PublishMessage] = _refuse_publication
        self._is_running = False
        await self.broker.stop()

    def welcome_details(self, identity: Identity) -> dict[str, object]:
        """Return what WELCOME says: who the client is, and what the router can do."""
        roles: dict[str, object] = {
            "broker": {"features": {**BROKER_FEATURES, "event_history": self.has_history}},
            "dealer": {"features": dict(DEALER_FEATURES)},
        }
        if self.config.announce_callee:
            roles["callee"] = {"features": {}}
        return {"realm": self.name, **identity.details(), "roles": roles}

    def join(self, session: Session) -> None:
        """Count in a session that was just opened."""
        self.sessions[session.id] = session
        self._session_meta.joined(session)

    def leave(self, session: Session) -> None:
        """Forget a session and all that it subscribed to and registered."""
        del self.sessions[session.id]
        self.dealer.leave(session)
        self.broker.leave(session)
        self._session_meta.left(session)

    def _tell(self, topic: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        if self._is_running:
            self.broker.publish_internal(topic, args, kwargs)


def _ignore(_: Session, __: EventReceivedMessage) -> None:
    """Take the word of a client that it has got an event; nobody has asked for it."""


def _refuse_publication(_: Session, __: PublishMessage) -> None:
    raise WampError(UNAVAILABLE, "the router is about to stop")
