"""Subscriptions: who asks for which namespaces, with which filter and skip.

Law: a subscriber has one subscription to a namespace or pattern, and one broadcaster serves all its subscriptions.
Only the principal named at its end subscribes to a namespace such as ``icrc72:subscriber:sys:<principal>``. Access
lists are consulted when a namespace is registered, and again by broadcasters at each delivery.
Source: ICRC-72, "Subscription Data Types".
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import msgspec

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import PRIORITY, SKIP, SUBSCRIBER_URL, TRUSTED
from relaycast_gateway.icrc.orchestrator.batch import (
    BatchEnded,
    ErrorCode,
    ItemRefused,
    checked_memo,
    generic,
    improper,
    improper_unless_well_formed,
)
from relaycast_gateway.icrc.orchestrator.config_keys import subscriber_url
from relaycast_gateway.icrc.orchestrator.filter_languages import FilterLanguage, stored_filter
from relaycast_gateway.icrc.orchestrator.publications import Publications
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.orchestrator.terms import (
    SubscriptionTerms,
    changed_terms,
    content_of,
    key_skip,
    registered_terms,
    skip_asked,
    skip_key,
    terms_of,
)
from relaycast_gateway.icrc.registry import IcrcSubscription, Registry
from relaycast_gateway.icrc.store import IcrcStore, number_key, stored_rows
from relaycast_gateway.log.record_codec import decode_headers, encode_headers
from relaycast_gateway.matching.namespaces import NamespacePattern, is_reserved
from relaycast_gateway.principal import principal_text

TABLE = "subscription"
"""Subscriptions by id."""

Placement = Callable[[bytes, Sequence[bytes], Mapping[bytes, int]], bytes]
"""Chooses the broadcaster of a new subscriber: from all, with the number of subscriptions of each."""

_ENCODER = msgspec.msgpack.Encoder()
_SYSTEM = re.compile(rf"icrc72:(?:{'|'.join(CanisterRole)}):sys:(.+)")

_Stored = tuple[bytes, str, bytes, int, bytes, str | None, bytes, bool, bytes]
"""Subscriber, namespace, broadcaster, since, configuration, filter, skip as one too, whether it is stopped, memo."""

_DECODER = msgspec.msgpack.Decoder(_Stored)


def fewest_subscriptions(_subscriber: bytes, broadcasters: Sequence[bytes], served: Mapping[bytes, int]) -> bytes:
    """Choose the broadcaster that serves the fewest subscriptions, the first of them."""
    return min(broadcasters, key=lambda it: served.get(it, 0))


class Subscriptions:
    """Registers subscriptions in the registry and the store; whoever calls it flushes."""

    def __init__(
        self,
        registry: Registry,
        store: IcrcStore,
        publications: Publications,
        settings: OrchestratorSettings,
        *,
        last_seq: Callable[[], int],
        place: Placement,
    ) -> None:
        self._registry = registry
        self._store = store
        self._publications = publications
        self._settings = settings
        self._last_seq = last_seq
        self._place = place
        self._ids: dict[tuple[bytes, str], int] = {}
        self._served: Counter[bytes] = Counter()
        self.of_subscriber: dict[bytes, list[int]] = {}
        """Ids of each subscriber's subscriptions, in the order in which subscribers and subscriptions came."""

        self.load()

    def load(self) -> None:
        """Replace what is registered by what is stored."""
        self._store.take_back(TABLE)
        for known in (self._registry.subscriptions, self._ids, self._served, self.of_subscriber):
            known.clear()
        with stored_rows(self._store, "subscriptions"):
            for key, value in self._store.items(TABLE):
                self._keep(self._restored(int.from_bytes(key, "big"), _DECODER.decode(value)))

    def register(self, caller: bytes, item: Mapping[str, Any]) -> int:
        """Register a subscription and return its id; raises ``ItemRefused`` and ``BatchEnded``.

        The same again gives the same id; another one to the same namespace is refused with ``Exists`` and the id.
        """
        namespace = item["namespace"]
        with improper_unless_well_formed():
            asked = registered_terms(item, self._settings)
        memo = checked_memo(item.get("memo"), self._settings.most_memo_bytes) or b""
        known = self._ids.get((caller, namespace))
        if known is not None:
            if not asked.agree_with(terms_of(self._registry.subscriptions[known])):
                raise ItemRefused(Variant("Exists", known))
            return known
        self._check_access(caller, namespace)
        subscription_id = len(self._registry.subscriptions) + 1
        with improper_unless_well_formed():
            made = self._made(subscription_id, caller, namespace, b"", self._last_seq(), asked, memo)
        self._check_room(caller)
        self._add(replace(made, broadcaster=self._broadcaster_of(caller)))
        return subscription_id

    def update(self, caller: bytes, item: Mapping[str, Any]) -> bool:
        """Change a subscription of the caller; raises ``ItemRefused``.

        One that starts again gets the events from now on.
        """
        known = self._meant(caller, item)
        if known.subscriber != caller:
            raise ItemRefused(Variant("Unauthorized"))
        with improper_unless_well_formed():
            asked = changed_terms(terms_of(known), item, self._settings)
        memo = checked_memo(item.get("memo"), self._settings.most_memo_bytes)
        since = self._last_seq() if known.is_stopped and not asked.is_stopped else known.since
        with improper_unless_well_formed():
            changed = self._made(
                known.id, caller, known.namespace, known.broadcaster, since, asked, known.memo if memo is None else memo
            )
        if changed != known:
            self._add(changed)
        return True

    def take_over(self, broadcasters: Sequence[bytes]) -> None:
        """Give the subscriptions of broadcasters that are no more to those that are."""
        for it in list(self._registry.subscriptions.values()):
            if it.broadcaster not in broadcasters:
                self._served[it.broadcaster] -= 1
                self._add(replace(it, broadcaster=self._broadcaster_of(it.subscriber)))

    def _meant(self, caller: bytes, item: Mapping[str, Any]) -> IcrcSubscription:
        """Return the subscription that an update names, by either spelling."""
        given: list[int | None] = [item.get("subscriptionId")]
        named: Variant | None = item.get("subscription")
        if named is not None:
            is_own = named.tag == "namespace"
            given.append(self._ids.get((caller, cast("str", named.value)), 0) if is_own else cast("int", named.value))
        meant = {it for it in given if it is not None}
        if not meant:
            raise improper("subscriptionId: expected the id of a subscription")
        if len(meant) > 1:
            raise improper("subscriptionId and subscription: expected one subscription, got two")
        found = self._registry.subscriptions.get(meant.pop())
        if found is None:
            raise ItemRefused(Variant("NotFound"))
        return found

    def _check_access(self, caller: bytes, namespace: str) -> None:
        with improper_unless_well_formed():
            pattern = NamespacePattern(namespace)
        refused = ItemRefused(Variant("UnauthorizedSubscriber", {"namespace": namespace}))
        if is_reserved(namespace) and pattern.has_wildcard:
            raise improper("namespace: a pattern never selects the system's namespaces, expected one of them")
        system = _SYSTEM.fullmatch(namespace)
        if system is not None:
            if system[1] != principal_text(caller):
                raise refused
        elif not pattern.has_wildcard:
            if namespace not in self._registry.publications:
                raise ItemRefused(Variant("PublicationNotFound"))
            if not self._publications.may_receive(namespace, caller):
                raise refused

    def _check_room(self, caller: bytes) -> None:
        most, own = self._settings.most_subscriptions, self._settings.most_subscriptions_of_a_subscriber
        if len(self._registry.subscriptions) >= most:
            raise BatchEnded(f"the limit of {most} subscriptions is reached")
        if len(self.of_subscriber.get(caller, ())) >= own:
            raise BatchEnded(f"the limit of {own} subscriptions of a subscriber is reached")

    def _broadcaster_of(self, subscriber: bytes) -> bytes:
        """Return the broadcaster that serves a subscriber, or is to serve it."""
        broadcasters = self._registry.broadcasters
        if not broadcasters:
            raise generic(ErrorCode.NO_BROADCASTER, "expected a broadcaster, got none that serves subscribers")
        for each in self.of_subscriber.get(subscriber, ()):
            known = self._registry.subscriptions[each].broadcaster
            if known in broadcasters:
                return known
        return self._place(subscriber, broadcasters, self._served)

    def _restored(self, subscription_id: int, stored: _Stored) -> IcrcSubscription:
        subscriber, namespace, broadcaster, since, config, filter_, skip, is_stopped, memo = stored
        asked_skip = key_skip(dict(decode_headers(skip)).get(SKIP))
        asked = SubscriptionTerms(decode_headers(config), filter_, asked_skip, is_stopped)
        language = partial(stored_filter, self._publications.filter_language(namespace))
        return self._made(subscription_id, subscriber, namespace, broadcaster, since, asked, memo, language)

    def _made(
        self,
        subscription_id: int,
        subscriber: bytes,
        namespace: str,
        broadcaster: bytes,
        since: int,
        asked: SubscriptionTerms,
        memo: bytes,
        language: FilterLanguage | None = None,
    ) -> IcrcSubscription:
        """Return a subscription with its filter compiled; ``ValueError`` for a filter or skip that is none."""
        keys = dict(asked.config)
        language = language or self._publications.filter_language(namespace)
        return IcrcSubscription(
            id=subscription_id,
            subscriber=subscriber,
            namespace=namespace,
            pattern=NamespacePattern(namespace),
            broadcaster=broadcaster,
            since=since,
            config=asked.config,
            filter=asked.filter,
            selects=None if asked.filter is None else language(asked.filter),
            skip=skip_asked(asked.skip),
            asked_skip=asked.skip,
            is_stopped=asked.is_stopped,
            is_trusted=bool(content_of(keys.get(TRUSTED))),
            priority=content_of(keys.get(PRIORITY)) or 0,
            url=subscriber_url(keys[SUBSCRIBER_URL]) if SUBSCRIBER_URL in keys else None,
            memo=memo,
        )

    def _add(self, it: IcrcSubscription) -> None:
        """Note and keep a subscription, a new one or a changed one."""
        stored: _Stored = (
            it.subscriber,
            it.namespace,
            it.broadcaster,
            it.since,
            encode_headers(it.config),
            it.filter,
            encode_headers(() if it.asked_skip is None else ((SKIP, skip_key(it.asked_skip)),)),
            it.is_stopped,
            it.memo,
        )
        self._store.put(TABLE, number_key(it.id), _ENCODER.encode(stored))
        self._keep(it)

    def _keep(self, it: IcrcSubscription) -> None:
        known = self._registry.subscriptions.get(it.id)
        if known is None:
            self.of_subscriber.setdefault(it.subscriber, []).append(it.id)
            self._ids[it.subscriber, it.namespace] = it.id
        if known is None or known.broadcaster != it.broadcaster:
            self._served[it.broadcaster] += 1
        self._registry.subscriptions[it.id] = it
        self._registry.version += 1
