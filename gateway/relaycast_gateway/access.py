"""Access to namespaces and events: one rule for publishing and receiving, used by every face.

Law: a restriction belongs to an event or to its namespace, never to a face.

- An event with a list of receivers (WAMP: eligible and excluded names and roles) is visible to clients that a WAMP
  realm authenticated, as the list says. Other clients have no such name or role, so they do not see it.
- An event of a separate WAMP realm is visible in that realm alone.
- The lists in the configuration of a publication (ICRC-72) apply to the principal of a reader or a publisher, whichever
  face it comes through. They are checked at each use: a change takes effect at once, in histories too.
- Only chains publish in their namespaces, and only the router in those of WAMP (``ROUTER_PREFIX``).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from relaycast_gateway.record import EventRecord

Permits = Callable[[bytes], bool]
"""Return whether the lists allow a principal."""

ROUTER_PREFIX = "wamp."
"""Namespaces of the WAMP protocol itself."""


@dataclass(frozen=True, slots=True)
class NamespaceLists:
    """The lists of publications: by namespace, ``None`` where its configuration has none."""

    receivers: Callable[[str], Permits | None]
    publishers: Callable[[str], Permits | None]
    restricted: Callable[[], Iterable[str]]
    """The namespaces that have a list of receivers."""


NO_LISTS = NamespaceLists(lambda _namespace: None, lambda _namespace: None, tuple)


class EventAccess:
    """The restrictions of the events of one log."""

    def __init__(self, lists: NamespaceLists = NO_LISTS) -> None:
        self._lists = lists

    def receivers(self, namespace: str) -> Permits | None:
        """Return the rule for receivers of a namespace's events, ``None`` if all may receive them."""
        return self._lists.receivers(namespace)

    def may_publish(self, namespace: str, principal: bytes) -> bool:
        """Return whether the lists of a namespace allow a principal to publish."""
        permits = self._lists.publishers(namespace)
        return permits is None or permits(principal)

    def may_see(self, record: EventRecord, principal: bytes) -> bool:
        """Return whether a reader with a principal, and no name in a WAMP realm, may see an event."""
        if not record.is_public:
            return False
        permits = self._lists.receivers(record.namespace)
        return permits is None or permits(principal)

    def hidden_from(self, principal: bytes) -> frozenset[str]:
        """Return the namespaces whose events a principal may not receive."""
        found = ((namespace, self._lists.receivers(namespace)) for namespace in self._lists.restricted())
        return frozenset(namespace for namespace, permits in found if permits is not None and not permits(principal))


EVERYTHING = EventAccess()
"""No publication has lists."""
