"""Subscriptions: who asks for which namespaces, with which filter and skip.

Law: a subscriber has one subscription to a namespace or pattern. Filter, skip and being stopped are set by fields or
by keys of the configuration: where both are given and differ, the item is refused, except that either of them stops.
An update that sets one of them by its field takes a key that says otherwise out of the configuration. All
subscriptions of a subscriber are served by one broadcaster. Only the principal named at its end subscribes to a
namespace such as ``icrc72:subscriber:sys:<principal>``.
Source: ICRC-72, "Subscription Data Types".
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import FILTER, FILTER_LANGUAGE, PRIORITY, SKIP, STOPPED, SUBSCRIBER_URL, TRUSTED
from relaycast_gateway.icrc.orchestrator.batch import (
    BatchEnded,
    ErrorCode,
    ItemRefused,
    checked_memo,
    generic,
    improper,
    improper_unless_well_formed,
)
from relaycast_gateway.icrc.orchestrator.config_keys import SUBSCRIPTION_KEYS, check_size, checked_config, merged
from relaycast_gateway.icrc.orchestrator.filter_languages import FilterLanguages
from relaycast_gateway.icrc.orchestrator.publications import Publications
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.registry import IcrcSubscription, Registry
from relaycast_gateway.icrc.skip import Skip, skip_of
from relaycast_gateway.icrc.store import IcrcStore, number_key, stored_rows
from relaycast_gateway.icrc16 import Icrc16, array, nat
from relaycast_gateway.log.record_codec import decode_headers, encode_headers
from relaycast_gateway.matching.namespaces import NamespacePattern, is_reserved
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import Headers

TABLE = "subscription"
"""Subscriptions by id."""

Placement = Callable[[bytes, Sequence[bytes], Mapping[bytes, int]], bytes]
"""Chooses the broadcaster of a new subscriber: from all, with the number of subscriptions of each."""

_ENCODER = msgspec.msgpack.Encoder()
_SYSTEM = re.compile(rf"icrc72:(?:{'|'.join(CanisterRole)}):sys:(.+)")

AskedSkip = tuple[int, int | None]
"""A skip as it is asked for: divisor, and offset where one is given."""

_Stored = tuple[bytes, str, bytes, int, bytes, str | None, bytes, bool, bytes]
"""Subscriber, namespace, broadcaster, since, configuration, filter, skip as one too, whether it is stopped, memo."""

_DECODER = msgspec.msgpack.Decoder(_Stored)


def fewest_subscriptions(_subscriber: bytes, broadcasters: Sequence[bytes], served: Mapping[bytes, int]) -> bytes:
    """Choose the broadcaster that serves the fewest subscriptions, the first of them."""
    return min(broadcasters, key=lambda it: served.get(it, 0))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a subscriber asks for, however it was spelled."""

    config: Headers
    filter: str | None
    skip: AskedSkip | None
    is_stopped: bool


class Subscriptions:
    """Registers subscriptions in the registry and the store; whoever calls it flushes."""

    def __init__(
        self,
        registry: Registry,
        store: IcrcStore,
        publications: Publications,
        languages: FilterLanguages,
        settings: OrchestratorSettings,
        *,
        last_seq: Callable[[], int],
        place: Placement,
    ) -> None:
        self._registry = registry
        self._store = store
        self._publications = publications
        self._languages = languages
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
                subscriber, namespace, broadcaster, since, config, filter_, skip, is_stopped, memo = _DECODER.decode(
                    value
                )
                asked = _Asked(
                    decode_headers(config), filter_, _skip_key(dict(decode_headers(skip)).get(SKIP)), is_stopped
                )
                subscription_id = int.from_bytes(key, "big")
                self._keep(self._made(subscription_id, subscriber, namespace, broadcaster, since, asked, memo))

    def register(self, caller: bytes, item: Mapping[str, Any]) -> int:
        """Register a subscription and return its id; raises ``ItemRefused`` and ``BatchEnded``.

        The same again gives the same id; another one to the same namespace is refused with ``Exists`` and the id.
        """
        namespace = item["namespace"]
        asked = self._asked(item)
        memo = checked_memo(item.get("memo"), self._settings.most_memo_bytes) or b""
        known = self._ids.get((caller, namespace))
        if known is not None:
            if _asked_by(self._registry.subscriptions[known]) != asked:
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
        asked = self._changed(known, item)
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

    def _asked(self, item: Mapping[str, Any]) -> _Asked:
        """Return what a registration asks for."""
        with improper_unless_well_formed():
            config = checked_config(item.get("config"), SUBSCRIPTION_KEYS, self._settings)
            keys = dict(config)
            filter_ = _agreed(FILTER, item.get("filter"), _content(keys.get(FILTER)))
            skip = _agreed_skip(_skip_field(item.get("skip")), _skip_key(keys.get(SKIP)))
            is_stopped = bool(item.get("stopped")) or bool(_content(keys.get(STOPPED)))
        return _Asked(config, filter_ or None, skip, is_stopped)

    def _changed(self, known: IcrcSubscription, item: Mapping[str, Any]) -> _Asked:
        """Return what a subscription asks for after an update."""
        filter_, skip, is_stopped = known.filter, known.asked_skip, known.is_stopped
        with improper_unless_well_formed():
            config, said = self._changed_config(known, item)
            new_filter, new_skip, new_stopped = item.get("newFilter"), item.get("newSkip"), item.get("newStopped")
            if new_filter is not None or FILTER in said:
                key = (_content(said[FILTER]) or "") if FILTER in said else None
                filter_ = _agreed(FILTER, new_filter, key) or None
            if new_skip is not None:
                skip = _agreed_skip(_skip_field(new_skip.value), _skip_key(said.get(SKIP)))
            elif SKIP in said:
                skip = _skip_key(said[SKIP])
            if new_stopped is not None or STOPPED in said:
                key = bool(_content(said[STOPPED])) if STOPPED in said else None
                is_stopped = bool(_agreed(STOPPED, new_stopped, key))
            gone = {
                name
                for name, is_gone in (
                    (FILTER, new_filter is not None and new_filter != _content(dict(config).get(FILTER))),
                    (SKIP, new_skip is not None and skip != _skip_key(dict(config).get(SKIP))),
                    (STOPPED, new_stopped is not None and new_stopped != _content(dict(config).get(STOPPED))),
                )
                if is_gone
            }
        return _Asked(tuple(each for each in config if each[0] not in gone), filter_, skip, is_stopped)

    def _changed_config(self, known: IcrcSubscription, item: Mapping[str, Any]) -> tuple[Headers, Mapping[str, Icrc16]]:
        """Return the configuration after an update, and what the update says of it, by either spelling."""
        spellings = [it for it in (item.get("newConfig"), item.get("config")) if it is not None]
        if len(spellings) > 1 and spellings[0] != spellings[1]:
            raise ValueError("newConfig and config: expected one of them, got two that differ")
        change = checked_config(spellings[0] if spellings else None, SUBSCRIPTION_KEYS, self._settings, is_change=True)
        config = merged(known.config, change)
        check_size(config, self._settings)
        return config, dict(change)

    def _meant(self, caller: bytes, item: Mapping[str, Any]) -> IcrcSubscription:
        """Return the subscription that an update names, by either spelling."""
        given: list[int | None] = [item.get("subscriptionId")]
        named: Variant | None = item.get("subscription")
        if named is not None:
            given.append(self._ids.get((caller, str(named.value)), 0) if named.tag == "namespace" else named.value)  # type: ignore[arg-type]
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

    def _made(
        self,
        subscription_id: int,
        subscriber: bytes,
        namespace: str,
        broadcaster: bytes,
        since: int,
        asked: _Asked,
        memo: bytes,
    ) -> IcrcSubscription:
        """Return a subscription with its filter compiled; ``ValueError`` for a filter or skip that is none."""
        keys = dict(asked.config)
        publication = self._registry.publications.get(namespace)
        language = self._languages.named(None if publication is None else dict(publication.config).get(FILTER_LANGUAGE))
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
            skip=_skip(asked.skip),
            asked_skip=asked.skip,
            is_stopped=asked.is_stopped,
            is_trusted=bool(_content(keys.get(TRUSTED))),
            priority=_content(keys.get(PRIORITY)) or 0,
            url=SUBSCRIPTION_KEYS[SUBSCRIBER_URL].read(keys[SUBSCRIBER_URL]) if SUBSCRIBER_URL in keys else None,  # type: ignore[arg-type]
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
            encode_headers(() if it.asked_skip is None else ((SKIP, _skip_value(it.asked_skip)),)),
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


def _asked_by(it: IcrcSubscription) -> _Asked:
    return _Asked(it.config, it.filter, it.asked_skip, it.is_stopped)


def _content(value: Icrc16 | None) -> Any:
    """Return what a value of a known form holds, ``None`` for none and for ``Option(null)``."""
    return None if value is None else value.content


def _agreed(name: str, field: Any, key: Any) -> Any:
    """Return what a field and a key say; ``ValueError`` where both are given and differ."""
    if field is not None and key is not None and field != key:
        raise ValueError(f"{name}: expected what the field says, {str(field)[:80]!r}, got {str(key)[:80]!r}")
    return key if field is None else field


def _agreed_skip(field: AskedSkip | None, key: AskedSkip | None) -> AskedSkip | None:
    one, other = _skip(field), _skip(key)
    if one is not None and other is not None and not one.agrees_with(other):
        raise ValueError(f"{SKIP}: expected what the field says, another than the key")
    return key if field is None else field


def _skip(asked: AskedSkip | None) -> Skip | None:
    return None if asked is None else Skip(asked[0], asked[1] or 0)


def _skip_field(field: Mapping[int, int | None] | None) -> AskedSkip | None:
    """Return the skip of a field ``record {nat; opt nat}``."""
    return None if field is None else (field[0] or 0, field.get(1))


def _skip_value(asked: AskedSkip) -> Icrc16:
    mod, offset = asked
    return array(nat(mod)) if offset is None else array(nat(mod), nat(offset))


def _skip_key(value: Icrc16 | None) -> AskedSkip | None:
    """Return the skip of a key's ``Nat``, ``Array[Nat]`` or ``Array[Nat, Nat]``."""
    if value is None or value.content is None:
        return None
    skip = skip_of(value)
    return skip.mod, skip.offset if isinstance(value.content, tuple) and len(value.content) == 2 else None
