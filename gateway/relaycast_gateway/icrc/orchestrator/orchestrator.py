"""The orchestrator, which the text of ICRC-72 also calls the admin canister: it registers, and answers about it.

Law: an update is answered when it is durable; a refused one leaves registry and store as they were. Queries change
nothing.
Source: ICRC-72, "Admin Canister".
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from relaycast_gateway.access import NamespaceLists
from relaycast_gateway.icrc.canister import CallRefused, Canister, Handler, Wire
from relaycast_gateway.icrc.durability import Durability
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.orchestrator.access_lists import Icrc75Lists
from relaycast_gateway.icrc.orchestrator.batch import positional
from relaycast_gateway.icrc.orchestrator.filter_languages import NO_LANGUAGES, FilterLanguage, FilterLanguages
from relaycast_gateway.icrc.orchestrator.no_replays import NoReplays, ReplayHandlers
from relaycast_gateway.icrc.orchestrator.pages import Directory
from relaycast_gateway.icrc.orchestrator.publications import Publications
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.orchestrator.statistics import Statistics
from relaycast_gateway.icrc.orchestrator.subscriptions import Placement, Subscriptions, fewest_subscriptions
from relaycast_gateway.icrc.registry import Registry
from relaycast_gateway.icrc.store import IcrcStore

Item = Mapping[str, Any]

DEFAULT_SETTINGS = OrchestratorSettings()


class Orchestrator(Canister):
    """Registers publications and subscriptions; broadcasters read its ``registry`` and count in its ``statistics``."""

    role = CanisterRole.ORCHESTRATOR

    def __init__(
        self,
        principal: bytes,
        wire: Wire,
        *,
        broadcasters: Sequence[bytes] = (),
        store: IcrcStore | None = None,
        last_seq: Callable[[], int] = lambda: 0,
        settings: OrchestratorSettings = DEFAULT_SETTINGS,
        filter_languages: Mapping[str, FilterLanguage] = NO_LANGUAGES,
        place: Placement = fewest_subscriptions,
    ) -> None:
        """Take up what ``store`` holds; ``last_seq`` tells the newest event of the log.

        ``UnusableLog`` for a store whose values are of another form.
        """
        self.settings = settings
        self.store = IcrcStore.open() if store is None else store
        self.registry = Registry(broadcasters=list(broadcasters))
        self.lists = Icrc75Lists(self.store)
        self.statistics = Statistics(self.store)
        languages = FilterLanguages(filter_languages)
        self._publications = Publications(self.registry, self.store, self.lists, languages, settings, principal)
        self._subscriptions = Subscriptions(
            self.registry, self.store, self._publications, settings, last_seq=last_seq, place=place
        )
        self._directory = Directory(self.registry, self.statistics, self._publications, self._subscriptions, settings)
        self.replays: ReplayHandlers = NoReplays()
        """What serves ICRC-77; whoever offers replays sets it."""

        self._durability = Durability(self.store, wire)
        if broadcasters:
            self._subscriptions.take_over(broadcasters)
            self.store.flush()
        super().__init__(principal, wire)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "icrc72_register_publication": self._updating(self._publications.register),
            "icrc72_register_subscription": self._updating(self._subscriptions.register),
            "icrc72_update_publication": self._updating(self._publications.update),
            "icrc72_update_subscription": self._updating(self._subscriptions.update),
            **self._directory.handlers(),
            **{name: self._replaying(name) for name in NoReplays().handlers()},
        }

    def add_broadcaster(self, principal: bytes) -> None:
        """Let a broadcaster serve subscribers from now on; one that does so already stays as it is."""
        if principal not in self.registry.broadcasters:
            self.registry.broadcasters.append(principal)
            self.registry.version += 1

    def adopt(self, namespace: str, publisher: bytes) -> bool:
        """Make a namespace of the log a publication, with who published there as its publisher, where it can be one.

        Returns whether it is a publication; what is none may not be sent. It is stored soon.
        """
        version = self.registry.version
        is_publication = self._publications.adopt(namespace, publisher)
        if self.registry.version != version:
            self._durability.soon()
        return is_publication

    def is_authorized_publisher(self, namespace: str, principal: bytes) -> bool:
        """Return whether a principal may publish now: it has registered, and the access lists let it pass."""
        return self._publications.is_authorized(namespace, principal)

    @property
    def namespace_lists(self) -> NamespaceLists:
        """The access lists in the configurations of publications."""
        return self._publications.namespace_lists

    def may_receive(self, namespace: str, subscriber: bytes) -> bool:
        """Return whether the access lists of a publication let a subscriber receive now."""
        return self._publications.may_receive(namespace, subscriber)

    def is_listed(self, namespace: str, subscriber: bytes) -> bool:
        """Return whether a publication's own lists let a principal receive, subscribed or not."""
        return self._publications.is_listed(namespace, subscriber)

    def filter_language(self, namespace: str) -> FilterLanguage:
        """Return the language that filters of a namespace are written in; ``ValueError`` where it is not known."""
        return self._publications.filter_language(namespace)

    def count_request(self, subscriber: bytes, namespace: str) -> None:
        """Count a request for a replay in the statistics of a subscriber and of its subscription."""
        self.statistics.requested(subscriber, self.registry.subscription_of(subscriber, namespace))

    def _updating(self, handle: Callable[[bytes, Item], object]) -> Handler:
        """Return the handler of a batch of updates: it answers when they are durable."""

        def update(caller: bytes, argument: object) -> object:
            results = positional(
                cast("Sequence[Item]", argument), self.settings.most_items, lambda item: handle(caller, item)
            )
            try:
                self.store.flush()
            except sqlite3.Error as error:
                self._publications.load()
                self._subscriptions.load()
                raise CallRefused(f"nothing was stored: {error}") from None
            return results

        return update

    def _replaying(self, name: str) -> Handler:
        def replay(caller: bytes, argument: object) -> object:
            return self.replays.handlers()[name](caller, argument)

        return replay
