"""Registrations of a realm, for clients; those of the router itself among them, without a callee.

The dealer tells of registrations that come and go. Source: WAMP specification, "Registration Meta API".
"""

from relaycast_gateway.matching.topics import Match
from relaycast_gateway.wamp.dealer import Dealer
from relaycast_gateway.wamp.errors import NO_SUCH_REGISTRATION, WampError
from relaycast_gateway.wamp.procedures import CallContext, CallOutcome
from relaycast_gateway.wamp.registrations import RegistrationBook, WampRegistration


class RegistrationMeta:
    """The procedures on the registrations of a dealer."""

    def __init__(self, registrations: RegistrationBook) -> None:
        self._registrations = registrations

    def offer(self, dealer: Dealer) -> None:
        """Offer the procedures."""
        dealer.offer("wamp.registration.list", self._list)
        dealer.offer("wamp.registration.lookup", self._lookup)
        dealer.offer("wamp.registration.match", self._match)
        dealer.offer("wamp.registration.get", lambda context: CallOutcome([self._found(context).details()]))
        dealer.offer("wamp.registration.list_callees", self._list_callees)
        dealer.offer(
            "wamp.registration.count_callees", lambda context: CallOutcome([len(self._found(context).callees)])
        )

    def _list(self, _: CallContext) -> CallOutcome:
        found: dict[str, list[int]] = {str(match): [] for match in Match}
        for registration in self._registrations:
            found[registration.pattern.match].append(registration.id)
        return CallOutcome([found])

    def _lookup(self, context: CallContext) -> CallOutcome:
        found = self._registrations.lookup(context.pattern_argument(0, "procedure"))
        return CallOutcome([None if found is None else found.id])

    def _match(self, context: CallContext) -> CallOutcome:
        found = self._registrations.find(context.uri_argument(0, "procedure"))
        return CallOutcome([None if found is None else found.id])

    def _list_callees(self, context: CallContext) -> CallOutcome:
        return CallOutcome([[callee.id for callee in self._found(context).callees]])

    def _found(self, context: CallContext) -> WampRegistration:
        number = context.id_argument(0, "registration")
        found = self._registrations.get(number)
        if found is None:
            raise WampError(NO_SUCH_REGISTRATION, f"there is no registration {number}")
        return found
