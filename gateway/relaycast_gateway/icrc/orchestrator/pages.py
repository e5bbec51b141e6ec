"""The queries of an orchestrator: who and what is registered, page by page, with statistics.

Law: lists are in the order of registration, so that pages that follow one another hold each item once, and those that
were registered meanwhile come last. ``prev`` names the last item of the page before; one that was never registered is
refused, as starting again would go unnoticed. A page has at most ``take`` items; without ``take``, or beyond the
limit, as many as the limit allows.
Source: ICRC-72, "Admin Query Methods".
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from relaycast_gateway.candid import Present, Principal
from relaycast_gateway.icrc.canister import CallRefused, Handler
from relaycast_gateway.icrc.naturals import shown
from relaycast_gateway.icrc.orchestrator.publications import Publications
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.orchestrator.statistics import WARNING, Statistics, selected
from relaycast_gateway.icrc.orchestrator.subscriptions import Subscriptions
from relaycast_gateway.icrc.registry import IcrcSubscription, RegisteredPublication, Registry
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import text
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import Headers

Query = Mapping[str, Any]
Info = dict[str, object]
Key = TypeVar("Key")


class Directory:
    """Answers queries from what is registered."""

    def __init__(
        self,
        registry: Registry,
        statistics: Statistics,
        publications: Publications,
        subscriptions: Subscriptions,
        settings: OrchestratorSettings,
    ) -> None:
        self._registry = registry
        self._statistics = statistics
        self._publications = publications
        self._subscriptions = subscriptions
        self._settings = settings

    def handlers(self) -> Mapping[str, Handler]:
        """Return what handles each query."""
        queries: Mapping[str, Callable[[bytes, Any], object]] = {
            "icrc72_get_publishers": self._publishers,
            "icrc72_get_publications": self._all_publications,
            "icrc72_get_publication_publishers": self._publication_publishers,
            "icrc72_get_subscribers": self._subscribers,
            "icrc72_get_subscriptions": self._all_subscriptions,
            "icrc72_get_subscription": self._some_subscriptions,
            "icrc72_get_subscriber_subscriptions": self._subscriber_subscriptions,
            "icrc72_get_broadcasters": self._broadcasters,
            "icrc72_get_publication_broadcasters": self._publication_broadcasters,
            "icrc72_get_broadcaster_subscriptions": self._broadcaster_subscriptions,
            "icrc72_is_authorized_publisher": self._authorizations,
        }
        return queries

    def _publishers(self, _caller: bytes, query: Query) -> list[Info]:
        namespaces = self._publications.of_publisher
        return [
            {
                "publisher": Principal(it),
                "stats": _stats(query, self._statistics.of_publisher(it, publications=len(namespaces[it]))),
            }
            for it in self._page(query, namespaces, _principal(query), _publisher)
        ]

    def _all_publications(self, _caller: bytes, query: Query) -> list[Info]:
        found = self._page(query, self._registry.publications, query.get("prev"), lambda it: f"publication {it[:80]!r}")
        return [self._publication(query, self._registry.publications[it]) for it in found]

    def _publication_publishers(self, _caller: bytes, query: Query) -> list[Info]:
        publication = self._registry.publications.get(query["namespace"])
        if publication is None:
            return []
        return [
            {
                "publisher": Principal(it),
                "publicationId": publication.id,
                "namespace": publication.namespace,
                "config": pairs_of(publication.publishers[it].config),
                "stats": _stats(query, self._statistics.of_pair(it, publication.namespace)),
            }
            for it in self._page(query, publication.publishers, _principal(query), _publisher)
        ]

    def _subscribers(self, _caller: bytes, query: Query) -> list[Info]:
        ids = self._subscriptions.of_subscriber
        return [
            {
                "subscriber": Principal(it),
                "stats": _stats(query, self._statistics.of_subscriber(it, subscriptions=len(ids[it]))),
            }
            for it in self._page(query, ids, _principal(query), _subscriber)
        ]

    def _all_subscriptions(self, _caller: bytes, query: Query) -> list[Info]:
        return [self._subscription(query, it) for it in self._by_id(query, self._registry.subscriptions.values())]

    def _some_subscriptions(self, _caller: bytes, ids: Sequence[int]) -> list[Info | None]:
        found = [self._registry.subscriptions.get(it) for it in self._batch(ids)]
        return [None if it is None else self._subscription({}, it) for it in found]

    def _subscriber_subscriptions(self, caller: bytes, query: Query) -> list[Info]:
        """Return those of a subscriber, the caller by default."""
        asked = query.get("subscriber")
        subscriber = caller if asked is None else asked.raw
        own = [self._registry.subscriptions[it] for it in self._subscriptions.of_subscriber.get(subscriber, ())]
        active = sum(not it.is_stopped for it in own)
        return [
            self._info(it, _stats(query, self._statistics.of_subscriber_subscription(it, active=active)))
            for it in self._by_id(query, own)
        ]

    def _broadcasters(self, _caller: bytes, query: Query) -> list[Info]:
        return self._broadcaster_page(query, self._registry.broadcasters)

    def _publication_broadcasters(self, _caller: bytes, query: Query) -> list[Info]:
        """Return those that serve a running subscription to a namespace; none for one that is no publication."""
        namespace = query["namespace"]
        if namespace not in self._registry.publications:
            return []
        serving = {
            it.broadcaster
            for it in self._registry.subscriptions.values()
            if not it.is_stopped and it.pattern.matches(namespace)
        }
        return self._broadcaster_page(query, serving)

    def _broadcaster_page(self, query: Query, wanted: Iterable[bytes]) -> list[Info]:
        wanted = frozenset(wanted)
        ordered = dict.fromkeys(self._registry.broadcasters)
        served: dict[bytes, list[bytes]] = {it: [] for it in wanted}
        for it in self._registry.subscriptions.values():
            if it.broadcaster in served:
                served[it.broadcaster].append(it.subscriber)
        page = self._page(query, ordered, _principal(query), _broadcaster, wanted.__contains__)
        return [
            {
                "broadcaster": Principal(it),
                "stats": _stats(
                    query,
                    self._statistics.of_broadcaster(
                        it, subscriptions=len(served[it]), subscribers=len(set(served[it]))
                    ),
                ),
            }
            for it in page
        ]

    def _broadcaster_subscriptions(self, caller: bytes, query: Query) -> list[Info]:
        """Return those that a broadcaster serves, by subscriber; the caller's by default, else all.

        With ``prev`` a page holds all subscriptions of a subscriber or none, so it may be longer than ``take``. With
        ``prevId``, the subscription after which to continue, pages are cut anywhere.
        """
        asked = query.get("broadcaster")
        broadcaster = asked.raw if asked is not None else caller if caller in self._registry.broadcasters else None
        previous, previous_id = _principal(query), query.get("prevId")
        if previous_id is not None:
            known = self._registry.subscriptions.get(previous_id)
            if known is None:
                raise CallRefused(f"prevId: there is no subscription {shown(previous_id)}")
            if previous not in {None, known.subscriber}:
                raise CallRefused(f"prevId: expected a subscription of prev, got {shown(previous_id)}")
            previous = known.subscriber
        take, found = self._taken(query), list[IcrcSubscription]()
        by_subscriber = self._subscriptions.of_subscriber
        for subscriber in _after(by_subscriber, previous, _subscriber, is_included=previous_id is not None):
            if len(found) >= take:
                break
            found += (
                it
                for it in map(self._registry.subscriptions.__getitem__, by_subscriber[subscriber])
                if broadcaster in {None, it.broadcaster}
                and (previous_id is None or subscriber != previous or it.id > previous_id)
            )
        return [self._subscription(query, it) for it in found[: take if previous_id is not None else None]]

    def _authorizations(self, _caller: bytes, asked: Sequence[Query]) -> list[bool]:
        is_authorized = self._publications.is_authorized
        return [is_authorized(it["namespace"], it["principal"].raw) for it in self._batch(asked)]

    def _publication(self, query: Query, publication: RegisteredPublication) -> Info:
        statistics = self._statistics.of_publication(publication.namespace, publishers=len(publication.publishers))
        warning = self._publications.warning(publication.namespace)
        if warning is not None:
            statistics += ((WARNING, text(warning)),)
        return {
            "publicationId": publication.id,
            "namespace": publication.namespace,
            "config": pairs_of(publication.config),
            "stats": _stats(query, statistics),
        }

    def _subscription(self, query: Query, it: IcrcSubscription) -> Info:
        own = len(self._subscriptions.of_subscriber[it.subscriber])
        return self._info(it, _stats(query, self._statistics.of_subscription(it, of_the_subscriber=own)))

    def _info(self, it: IcrcSubscription, stats: object) -> Info:
        return {
            "subscriptionId": it.id,
            "subscriber": Principal(it.subscriber),
            "namespace": it.namespace,
            "config": pairs_of(it.config),
            "filter": it.filter,
            "skip": None if it.asked_skip is None else dict(enumerate(it.asked_skip)),
            "stopped": it.is_stopped,
            "stats": stats,
        }

    def _by_id(self, query: Query, subscriptions: Iterable[IcrcSubscription]) -> list[IcrcSubscription]:
        """Return a page of subscriptions, of one namespace where the query names one."""
        namespace, previous = query.get("namespace"), query.get("prev")
        if previous is not None and previous not in self._registry.subscriptions:
            raise CallRefused(f"prev: there is no subscription {shown(previous)}")
        found = (
            it for it in subscriptions if it.id > (previous or 0) and (namespace is None or it.namespace == namespace)
        )
        return list(islice(found, self._taken(query)))

    def _page(
        self,
        query: Query,
        ordered: Mapping[Key, object],
        previous: Key | None,
        named: Callable[[Key], str],
        is_wanted: Callable[[Key], bool] = lambda _key: True,
    ) -> list[Key]:
        """Return the keys of a page: the wanted ones after ``previous``."""
        return list(islice(filter(is_wanted, _after(ordered, previous, named)), self._taken(query)))

    def _taken(self, query: Query) -> int:
        take: int | None = query.get("take")
        return self._settings.most_taken if take is None else min(take, self._settings.most_taken)

    def _batch(self, items: Sequence[Any]) -> Sequence[Any]:
        most = self._settings.most_items
        if len(items) > most:
            raise CallRefused(f"expected at most {most} items in a batch, got {len(items)}")
        return items


def _after(
    ordered: Mapping[Key, object], previous: Key | None, named: Callable[[Key], str], *, is_included: bool = False
) -> Iterable[Key]:
    """Return the keys after one of them, all for ``None``."""
    if previous is None:
        return ordered
    if previous not in ordered:
        raise CallRefused(f"prev: there is no {named(previous)} here")
    keys = iter(ordered)
    for key in keys:
        if key == previous:
            break
    return (key for part in (((previous,) if is_included else ()), keys) for key in part)


def _principal(query: Query) -> bytes | None:
    previous = cast("Principal | None", query.get("prev"))
    return None if previous is None else previous.raw


def _publisher(principal: bytes) -> str:
    return f"publisher {principal_text(principal)}"


def _subscriber(principal: bytes) -> str:
    return f"subscriber {principal_text(principal)}"


def _broadcaster(principal: bytes) -> str:
    return f"broadcaster {principal_text(principal)}"


def _stats(query: Query, statistics: Headers) -> object:
    """Return the statistics that a query asks for: null and some(null) ask for all."""
    asked = cast("Present | None", query.get("statsFilter"))
    return pairs_of(selected(statistics, None if asked is None else cast("list[str] | None", asked.value)))
