"""Who serves a replay, and whether it may be: rights, sizes, prices.

Law: a publisher serves a replay only where it advertises ``icrc77:capable``, within the limits that it declares.
Source: ICRC-77, "Authorization and Policy", "Payment", "Publisher Capabilities Metadata".
"""

from typing import Protocol

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import CAPABLE, MOST_REPLAYED, PRICING, REPLAY_RATE
from relaycast_gateway.icrc.orchestrator.batch import ErrorCode, ItemRefused, generic
from relaycast_gateway.icrc.orchestrator.filter_languages import FilterLanguage
from relaycast_gateway.icrc.orchestrator.statistics import Statistics
from relaycast_gateway.icrc.registry import RegisteredPublication, Registry
from relaycast_gateway.icrc.replay.replays import EventReplay
from relaycast_gateway.icrc.replay.request import ReplayRequest
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc.system_messages import system_namespace
from relaycast_gateway.icrc16 import Icrc16, Tag
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.namespaces import is_reserved
from relaycast_gateway.record import Headers


class ReplayRights(Protocol):
    """Tells who may receive events and how their filters are written, and counts requests."""

    statistics: Statistics

    def may_receive(self, namespace: str, subscriber: bytes) -> bool:
        """Return whether no access list of the publication shuts a subscriber out."""
        ...

    def is_listed(self, namespace: str, subscriber: bytes) -> bool:
        """Return whether the publication's own list allows a subscriber by name."""
        ...

    def filter_language(self, namespace: str) -> FilterLanguage:
        """Return the language of filters of a namespace; ``ValueError`` where it is not known."""
        ...

    def count_request(self, subscriber: bytes, namespace: str) -> None:
        """Count a request for a replay that was taken."""
        ...


def assigned(
    request: ReplayRequest,
    subscriber: bytes,
    registry: Registry,
    log: EventLog,
    rights: ReplayRights,
    *,
    archivist: bytes | None,
    settings: ReplaySettings,
) -> EventReplay:
    """Return the replay with those who serve it, its id still 0; raises ``ItemRefused``."""
    namespace = request.namespace
    _ensure_own(namespace, subscriber)
    publication = registry.publications.get(namespace)
    if publication is None:
        raise ItemRefused(Variant("PublicationNotFound"))
    _ensure_subscribed(request, subscriber, registry, rights)
    publisher, declared = _capable_publisher(publication, archivist)
    events = _events_at_most(request, log)
    most = min(settings.most_events, _natural(declared, MOST_REPLAYED, settings.most_events))
    if events > most:
        raise ItemRefused(Variant("RangeTooLarge", f"the range has up to {events} events, expected at most {most}"))
    price = _price(publication.config) * events
    unpaid = settings.pays(subscriber, request, price) if price else None
    if unpaid is not None:
        raise ItemRefused(Variant("PaymentRequired", unpaid))
    if not registry.broadcasters:
        raise generic(ErrorCode.NO_BROADCASTER, "expected a broadcaster, got none that serves subscribers")
    broadcaster, home = registry.home_of(subscriber), registry.home_of(publisher)
    return EventReplay(
        0,
        subscriber,
        namespace,
        request.start,
        request.end,
        publisher,
        broadcaster,
        None if home == broadcaster or publisher == archivist else home,
        0,
        request.config,
        request.memo,
        request.filter,
        request.selects,
        request.skip,
        log.last_seq,
    )


def rate_of(registry: Registry, namespace: str, publisher: bytes) -> int | None:
    """Return how many events a second a publisher declares for a namespace; ``None`` is no limit."""
    publication = registry.publications.get(namespace)
    if publication is None:
        return None
    entry = publication.publishers.get(publisher)
    rate = _natural(publication.config if entry is None else entry.config, REPLAY_RATE, 0)
    return rate or None


def _ensure_own(namespace: str, caller: bytes) -> None:
    if is_reserved(namespace) and namespace not in {system_namespace(role, caller) for role in CanisterRole}:
        raise ItemRefused(Variant("Unauthorized"))


def _ensure_subscribed(request: ReplayRequest, subscriber: bytes, registry: Registry, rights: ReplayRights) -> None:
    namespace = request.namespace
    own = [it for it in registry.subscriptions.values() if it.subscriber == subscriber]
    if request.subscription is not None and request.subscription not in {it.id for it in own}:
        raise ItemRefused(Variant("SubscriptionNotFound"))
    is_subscribed = any(it.pattern.matches(namespace) for it in own) or rights.is_listed(namespace, subscriber)
    if not is_subscribed or not rights.may_receive(namespace, subscriber):
        raise ItemRefused(Variant("UnauthorizedSubscriber", {"namespace": namespace}))


def _capable_publisher(publication: RegisteredPublication, archivist: bytes | None) -> tuple[bytes, Headers]:
    """Return who replays a namespace, and the configuration that it declares."""
    for publisher, entry in publication.publishers.items():
        if any(key == CAPABLE and value == Icrc16(Tag.BOOL, True) for key, value in entry.config):
            return publisher, entry.config
    if archivist is None:
        message = f"no publisher of {publication.namespace} advertises {CAPABLE}"
        raise generic(ErrorCode.NO_CAPABLE_PUBLISHER, message)
    return archivist, publication.config


def _events_at_most(request: ReplayRequest, log: EventLog) -> int:
    """Return a bound of the events in a range: by ids, and by what the log ever had of the namespace."""
    last = log.last_id(request.namespace)
    if last is None:
        return 0
    end = last + 1 if request.end is None else min(request.end, last + 1)
    return min(max(0, end - request.start), log.count(request.namespace))


def _price(config: Headers) -> int:
    """Return what an event costs by the publication's ``icrc77:pricing``."""
    for key, value in config:
        if key == PRICING and value.tag is Tag.CLASS:
            prices = [it.value.content for it in value.content if it.name == "perEvent" and it.value.tag is Tag.NAT]
            return prices[0] if prices else 0
    return 0


def _natural(config: Headers, key: str, default: int) -> int:
    return next((value.content for name, value in config if name == key and value.tag is Tag.NAT), default)
