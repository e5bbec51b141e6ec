"""The WAMP router as the live page shows it: sessions by role, and topics with history."""

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaycast_gateway.wamp.router import Router


def shown_router(router: "Router") -> dict[str, Any]:
    """Return what the page says of the router."""
    roles = Counter(it.identity.authrole for realm in router.realms.values() for it in realm.sessions.values())
    figures = router.figures()
    return {
        "sessions": roles.total(),
        "roles": [{"role": role, "sessions": count} for role, count in sorted(roles.items())],
        "subscriptions": figures.subscriptions,
        "registrations": figures.registrations,
        "publications": figures.published,
        "events": figures.delivered,
        "dropped": figures.dropped_sessions,
        "topics": [
            {
                "topic": rule.pattern.uri,
                "match": str(rule.pattern.match),
                "realm": realm.name,
                "events": realm.history.count(rule.pattern),
            }
            for realm in router.realms.values()
            for rule in realm.config.history
            if rule.is_kept
        ],
    }
