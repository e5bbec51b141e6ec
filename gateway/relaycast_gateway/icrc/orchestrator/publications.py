"""Publications: who registers which namespace, and who may publish and receive in it.

Law: the first registrant of a namespace owns it, and its configuration holds for all. Where the owner gives no list of
allowed publishers, the owner alone may publish; where it gives no list of allowed subscribers, everybody may receive.
The system's namespaces, ``icrcNN:...``, belong to the orchestrator and the broadcasters. A namespace never changes.
Source: ICRC-72, "Publication Data Types".
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import msgspec

from relaycast_gateway.access import NamespaceLists, Permits
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.names import FILTER_LANGUAGE
from relaycast_gateway.icrc.orchestrator.access_lists import NO_RULES, AccessRules, Icrc75Lists, access_rules
from relaycast_gateway.icrc.orchestrator.batch import (
    BatchEnded,
    ItemRefused,
    checked_memo,
    improper,
    improper_unless_well_formed,
)
from relaycast_gateway.icrc.orchestrator.config_keys import (
    OF_THE_OWNER,
    PUBLICATION_KEYS,
    check_size,
    checked_config,
    merged,
)
from relaycast_gateway.icrc.orchestrator.filter_languages import FilterLanguage, FilterLanguages
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.registry import PublisherEntry, RegisteredPublication, Registry
from relaycast_gateway.icrc.store import IcrcStore, number_key, stored_rows
from relaycast_gateway.icrc16 import Icrc16
from relaycast_gateway.log.record_codec import decode_headers, encode_headers
from relaycast_gateway.matching.namespaces import is_namespace, is_reserved
from relaycast_gateway.record import Headers

TABLE = "publication"
"""Namespaces by id."""

PUBLISHERS = "publisher"
"""Publishers of publications, in the order in which they came: the id of the publication, and the entry."""

_PUBLISHERS, _RECEIVERS = 0, 1
"""Indices into the pair of rules of a namespace."""

_LOGGER = logging.getLogger(__name__)
_ENCODER = msgspec.msgpack.Encoder()
_STORED_PUBLISHER = msgspec.msgpack.Decoder(tuple[int, bytes, bytes, bytes])


class Publications:
    """Registers publications in the registry and the store; whoever calls it flushes."""

    def __init__(
        self,
        registry: Registry,
        store: IcrcStore,
        lists: Icrc75Lists,
        languages: FilterLanguages,
        settings: OrchestratorSettings,
        system: bytes,
    ) -> None:
        self._registry = registry
        self._store = store
        self._lists = lists
        self._languages = languages
        self._settings = settings
        self._system = system
        self._rules: dict[str, tuple[AccessRules, AccessRules]] = {}
        self._restricted: dict[str, None] = {}
        """Namespaces with a list of subscribers."""

        self._namespaces: dict[int, str] = {}
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._has_warned_of_room = False
        self.of_publisher: dict[bytes, dict[str, None]] = {}
        """Namespaces of each publisher, in the order in which publishers and namespaces came."""

        self.load()

    def load(self) -> None:
        """Replace what is registered by what is stored."""
        self._store.take_back(TABLE)
        self._store.take_back(PUBLISHERS)
        for known in (self._registry.publications, self._rules, self._namespaces, self._numbers, self.of_publisher):
            known.clear()
        self._restricted.clear()
        with stored_rows(self._store, "publications"):
            for key, value in self._store.items(TABLE):
                self._namespaces[int.from_bytes(key, "big")] = value.decode()
            for key, value in self._store.items(PUBLISHERS):
                publication, publisher, config, memo = _STORED_PUBLISHER.decode(value)
                entry = PublisherEntry(publisher, decode_headers(config), memo)
                self._keep(publication, self._namespaces[publication], entry, int.from_bytes(key, "big"))

    def register(self, caller: bytes, item: Mapping[str, Any]) -> int:
        """Register a publisher of a namespace and return the publication's id; raises ``ItemRefused``, ``BatchEnded``.

        The same again gives the same id; with another configuration it is refused with ``Exists`` and the id.
        """
        namespace = item["namespace"]
        self._check_namespace(caller, namespace)
        with improper_unless_well_formed():
            config = checked_config(item["config"], PUBLICATION_KEYS, self._settings)
            self._languages.named(dict(config).get(FILTER_LANGUAGE))
        memo = checked_memo(item.get("memo"), self._settings.most_memo_bytes) or b""
        entry = PublisherEntry(caller, config, memo)
        publication = self._registry.publications.get(namespace)
        if publication is None:
            self._check_prefix(caller, namespace)
            self._check_room()
            self._check_share(caller)
            publication_id = len(self._namespaces) + 1
            self._warn(namespace)
        elif caller in publication.publishers:
            if dict(publication.publishers[caller].config) != dict(config):
                raise ItemRefused(Variant("Exists", publication.id))
            return publication.id
        else:
            self._check_join(publication, entry)
            publication_id = publication.id
        self._add(publication_id, namespace, entry)
        return publication_id

    def update(self, caller: bytes, item: Mapping[str, Any]) -> bool:
        """Change the configuration or the memo of a publisher's entry; raises ``ItemRefused``."""
        publication = self._meant(item)
        entry = publication.publishers.get(caller)
        if entry is None:
            raise ItemRefused(Variant("Unauthorized"))
        if item.get("namespace") not in {None, publication.namespace}:
            raise improper(f"namespace: expected {publication.namespace}, which never changes")
        with improper_unless_well_formed():
            change = checked_config(item.get("config"), PUBLICATION_KEYS, self._settings, is_change=True)
            config = merged(entry.config, change)
            check_size(config, self._settings)
        if caller != publication.owner and _of_the_owner(config) != _of_the_owner(entry.config):
            raise ItemRefused(Variant("Unauthorized"))
        if dict(config).get(FILTER_LANGUAGE) != dict(entry.config).get(FILTER_LANGUAGE):
            raise improper(f"{FILTER_LANGUAGE}: expected no change, filters of subscriptions are written in it")
        memo = checked_memo(item.get("memo"), self._settings.most_memo_bytes)
        changed = PublisherEntry(caller, config, entry.memo if memo is None else memo)
        if changed != entry:
            self._add(publication.id, publication.namespace, changed)
        return True

    def adopt(self, namespace: str, publisher: bytes) -> bool:
        """Make a namespace of the log a publication, and who published there its publisher; tell whether it is one.

        What is no namespace of ICRC-72, the system's namespaces, and what exceeds the limits is not adopted.
        """
        publication = self._registry.publications.get(namespace)
        if publication is not None and publisher in publication.publishers:
            return True
        if is_reserved(namespace) or not is_namespace(namespace):
            return False
        if publication is None:
            if len(self._namespaces) >= self._settings.most_publications:
                self._warn_of_room()
                return False
            publication_id = len(self._namespaces) + 1
        elif len(publication.publishers) >= self._settings.most_publishers_of_a_publication:
            return True
        else:
            publication_id = publication.id
        self._add(publication_id, namespace, PublisherEntry(publisher))
        return True

    def by_id(self, publication_id: int) -> RegisteredPublication | None:
        namespace = self._namespaces.get(publication_id)
        return None if namespace is None else self._registry.publications[namespace]

    @property
    def namespace_lists(self) -> NamespaceLists:
        """The lists of all publications, for every face."""
        return NamespaceLists(
            partial(self._permits, _RECEIVERS), partial(self._permits, _PUBLISHERS), lambda: self._restricted
        )

    def _permits(self, place: int, namespace: str) -> Permits | None:
        rules = self._rules.get(namespace)
        if rules is None or rules[place] is NO_RULES:
            return None
        return partial(rules[place].permit, lists=self._lists, by_default=True)

    def is_authorized(self, namespace: str, principal: bytes) -> bool:
        """Return whether a principal may publish now: it has registered, and the lists let it pass."""
        publication = self._registry.publications.get(namespace)
        if publication is None or principal not in publication.publishers or self._is_closed(namespace):
            return False
        return self._may_publish(publication, principal)

    def may_receive(self, namespace: str, subscriber: bytes) -> bool:
        """Return whether the lists let a principal receive now; what nobody registered is open to everybody."""
        rules = self._rules.get(namespace)
        return rules is None or rules[1].permit(subscriber, self._lists, by_default=True)

    def is_listed(self, namespace: str, subscriber: bytes) -> bool:
        """Return whether a list names a principal among those that may receive, and none shuts it out."""
        rules = self._rules.get(namespace)
        return rules is not None and rules[1].permit(subscriber, self._lists, by_default=False)

    def filter_language(self, namespace: str) -> FilterLanguage:
        """Return the language that filters of a namespace or pattern are written in; ``ValueError`` if not known."""
        publication = self._registry.publications.get(namespace)
        return self._languages.named(None if publication is None else dict(publication.config).get(FILTER_LANGUAGE))

    def warning(self, namespace: str) -> str | None:
        """Return what is unwise about a namespace."""
        if "." in namespace or is_reserved(namespace):
            return None
        return f"namespace {namespace}: others may use a single word too, expected one such as com.foo.{namespace}"

    def _check_namespace(self, caller: bytes, namespace: str) -> None:
        if not is_namespace(namespace):
            expected = "words between dots, without spaces and *"
            raise improper(f"namespace: got {namespace[:80]!r}, expected {expected}")
        is_system = caller == self._system or caller in self._registry.broadcasters
        if (is_reserved(namespace) and not is_system) or self._is_closed(namespace):
            raise ItemRefused(Variant("UnauthorizedPublisher", {"namespace": namespace}))
        warning = self.warning(namespace)
        if warning is not None and self._settings.strict_namespaces:
            raise improper(warning)

    def _is_closed(self, namespace: str) -> bool:
        """Return whether a namespace is reserved for chains or for the WAMP router."""
        return namespace.startswith(self._settings.closed_prefixes)

    def _check_prefix(self, caller: bytes, namespace: str) -> None:
        if self._settings.prove_ownership and not is_reserved(namespace):
            granted = self._settings.granted_prefixes.get(caller, ())
            if not any(namespace == each or namespace.startswith(f"{each}.") for each in granted):
                raise ItemRefused(Variant("UnauthorizedPublisher", {"namespace": namespace}))

    def _check_room(self) -> None:
        most = self._settings.most_publications
        if len(self._namespaces) >= most:
            raise BatchEnded(f"the limit of {most} publications is reached")

    def _check_share(self, caller: bytes) -> None:
        most = self._settings.most_publications_of_a_publisher
        if len(self.of_publisher.get(caller, ())) >= most:
            raise BatchEnded(f"the limit of {most} publications of a publisher is reached")

    def _check_join(self, publication: RegisteredPublication, entry: PublisherEntry) -> None:
        if not self._may_publish(publication, entry.publisher):
            raise ItemRefused(Variant("Unauthorized"))
        self._check_prefix(entry.publisher, publication.namespace)
        held = dict(publication.config)
        for name, value in _of_the_owner(entry.config).items():
            if held.get(name) != value:
                raise improper(f"{name}: only the owner of a publication sets it")
        most = self._settings.most_publishers_of_a_publication
        if len(publication.publishers) >= most:
            raise BatchEnded(f"the limit of {most} publishers of a publication is reached")
        self._check_share(entry.publisher)

    def _meant(self, item: Mapping[str, Any]) -> RegisteredPublication:
        """Return the publication that an update names, by either spelling."""
        named = item.get("publication")
        meant = {
            it for it in (item.get("publicationId"), None if named is None else self._named(named)) if it is not None
        }
        if not meant and item.get("namespace") is not None:
            meant = {self._named(Variant("namespace", item["namespace"]))}
        if not meant:
            raise improper("publicationId: expected the id of a publication")
        if len(meant) > 1:
            raise improper("publicationId and publication: expected one publication, got two")
        publication = self.by_id(meant.pop())
        if publication is None:
            raise ItemRefused(Variant("NotFound"))
        return publication

    def _named(self, publication: Variant) -> int:
        """Return the id that ``variant {namespace; publicationId}`` means."""
        if publication.tag == "publicationId":
            return cast("int", publication.value)
        found = self._registry.publications.get(cast("str", publication.value))
        if found is None:
            raise ItemRefused(Variant("NotFound"))
        return found.id

    def _may_publish(self, publication: RegisteredPublication, principal: bytes) -> bool:
        rules, _ = self._rules[publication.namespace]
        return rules.permit(principal, self._lists, by_default=principal == publication.owner)

    def _warn(self, namespace: str) -> None:
        warning = self.warning(namespace)
        if warning is not None:
            _LOGGER.warning(warning)

    def _warn_of_room(self) -> None:
        if not self._has_warned_of_room:
            self._has_warned_of_room = True
            most = self._settings.most_publications
            _LOGGER.warning("events in further namespaces are not sent: the limit of %d publications is reached", most)

    def _add(self, publication_id: int, namespace: str, entry: PublisherEntry) -> None:
        """Note and keep an entry, a new one or a changed one."""
        number = self._numbers.get((namespace, entry.publisher), len(self._numbers) + 1)
        stored = (publication_id, entry.publisher, encode_headers(entry.config), entry.memo)
        if publication_id not in self._namespaces:
            self._store.put(TABLE, number_key(publication_id), namespace.encode())
        self._store.put(PUBLISHERS, number_key(number), _ENCODER.encode(stored))
        self._keep(publication_id, namespace, entry, number)

    def _keep(self, publication_id: int, namespace: str, entry: PublisherEntry, number: int) -> None:
        known = self._registry.publications.get(namespace)
        publishers = {} if known is None else dict(known.publishers)
        publishers[entry.publisher] = entry
        publication = RegisteredPublication(publication_id, namespace, publishers)
        self._registry.publications[namespace] = publication
        self._namespaces[publication_id] = namespace
        self._numbers[namespace, entry.publisher] = number
        self.of_publisher.setdefault(entry.publisher, {})[namespace] = None
        if entry.publisher == publication.owner:
            config = dict(entry.config)
            rules = access_rules(config, "publishers"), access_rules(config, "subscribers")
            self._rules[namespace] = rules
            if rules[_RECEIVERS] is NO_RULES:
                self._restricted.pop(namespace, None)
            else:
                self._restricted[namespace] = None
        self._registry.version += 1


def _of_the_owner(config: Headers) -> dict[str, Icrc16]:
    """Return the entries that hold for all publishers."""
    return {name: value for name, value in config if name in OF_THE_OWNER}
