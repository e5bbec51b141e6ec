"""Subscriptions of a realm, for clients; those of histories among them, also while nobody is subscribed.

Law: a caller sees the subscriptions to patterns that it may subscribe to itself. Others are not there for it, neither
their topics nor their subscribers. A rule for exactly the procedure that is called opens all of them.

The broker tells of subscriptions that come and go. Source: WAMP specification, "Subscriptions Meta API".
"""

from relaycast_gateway.matching.topics import Match
from relaycast_gateway.wamp.authorization import Roles
from relaycast_gateway.wamp.dealer import Dealer
from relaycast_gateway.wamp.errors import NO_SUCH_SUBSCRIPTION, WampError
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome
from relaycast_gateway.wamp.subscriptions import SubscriptionRegistry, TopicSubscription


def may_read(roles: Roles, context: CallContext, subscription: TopicSubscription) -> bool:
    """Return whether the caller of a procedure may learn of a subscription, and of what it has received."""
    pattern = subscription.pattern
    return (
        roles.permission(context.identity, "subscribe", pattern.uri, pattern.match).is_allowed
        or roles.permission(context.identity, "call", context.procedure).is_explicit
    )


def no_such_subscription(number: int) -> WampError:
    return WampError(NO_SUCH_SUBSCRIPTION, f"there is no subscription {number}")


class SubscriptionMeta:
    """The procedures on the subscriptions of a broker."""

    def __init__(self, subscriptions: SubscriptionRegistry, roles: Roles) -> None:
        self._subscriptions = subscriptions
        self._roles = roles

    def offer(self, dealer: Dealer) -> None:
        """Offer the procedures."""
        dealer.offer("wamp.subscription.list", self._list)
        dealer.offer("wamp.subscription.lookup", self._lookup)
        dealer.offer("wamp.subscription.match", self._match)
        dealer.offer("wamp.subscription.get", lambda context: CallOutcome([self._found(context).details()]))
        dealer.offer("wamp.subscription.list_subscribers", self._list_subscribers)
        dealer.offer(
            "wamp.subscription.count_subscribers", lambda context: CallOutcome([self._found(context).session_count])
        )

    def _list(self, context: CallContext) -> CallOutcome:
        found: dict[str, list[int]] = {str(match): [] for match in Match}
        for subscription in self._subscriptions:
            if may_read(self._roles, context, subscription):
                found[subscription.pattern.match].append(subscription.id)
        return CallOutcome([found])

    def _lookup(self, context: CallContext) -> CallOutcome:
        found = self._subscriptions.lookup(context.pattern_argument(0, "topic"))
        is_seen = found is not None and may_read(self._roles, context, found)
        return CallOutcome([found.id if found is not None and is_seen else None])

    def _match(self, context: CallContext) -> CallOutcome:
        matching = self._subscriptions.matching(context.uri_argument(0, "topic"))
        found = [it.id for it in matching if may_read(self._roles, context, it)]
        return CallOutcome([found or None])

    def _list_subscribers(self, context: CallContext) -> CallOutcome:
        return CallOutcome([[session.identity.session for session in self._found(context).sessions]])

    def _found(self, context: CallContext) -> TopicSubscription:
        number = context.id_argument(0, "subscription")
        found = self._subscriptions.by_id(number)
        if found is None or not may_read(self._roles, context, found):
            raise no_such_subscription(number)
        return found
