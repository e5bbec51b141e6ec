"""The canisters of a gateway: an orchestrator, a broadcaster, an archivist, and the wire to subscribers elsewhere.

Law: their principals are the same in every gateway and after every start. What chains tell is a publication from the
start on, with the chain as publisher; nobody else speaks with a chain's principal.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.figures import IcrcFigures, IcrcNamespace
from relaycast_gateway.icrc.broadcaster.broadcaster import Broadcaster
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.canister import Canister
from relaycast_gateway.icrc.http.http_wire import HttpWire
from relaycast_gateway.icrc.http.remote_calls import CanisterPlace
from relaycast_gateway.icrc.names import SUBSCRIBER_URL
from relaycast_gateway.icrc.orchestrator import Orchestrator, OrchestratorSettings
from relaycast_gateway.icrc.replay.archivist import Archivist
from relaycast_gateway.icrc.replay.book import ReplayBook
from relaycast_gateway.icrc.replay.serving import ReplayServing
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc16 import Tag
from relaycast_gateway.log import EventLog
from relaycast_gateway.principal import client_principal
from relaycast_gateway.record import Headers

if TYPE_CHECKING:
    from relaycast_gateway.chain_feed import ChainFeed

_LOGGER = logging.getLogger(__name__)

CANISTERS = "icrc canisters"
"""What the principals of canisters are derived from, beside their names; no token stands for one."""

ORCHESTRATOR = client_principal(CANISTERS, "orchestrator")
BROADCASTER = client_principal(CANISTERS, "broadcaster")
ARCHIVIST = client_principal(CANISTERS, "archivist")

NAMESPACES_SHOWN = 50
"""On the live page: those with the newest publications."""


@dataclass(frozen=True, slots=True)
class IcrcSettings:
    """How the face is set up."""

    limits: OrchestratorSettings = field(default_factory=OrchestratorSettings)


class GatewayCanisters:
    """Made by ``GatewayCanisters.open``; then ``start`` in the event loop, and ``await stop()`` at the end."""

    def __init__(
        self,
        store: IcrcStore,
        log: EventLog,
        guard: SinkGuard,
        clock: Clock,
        settings: IcrcSettings,
        *,
        reserved: tuple[str, ...] = (),
    ) -> None:
        """``reserved`` are the prefixes of namespaces of chains and other faces: canisters cannot publish there."""
        self.store = store
        self.wire = HttpWire(guard, clock, place_of=self._place_of)
        self.orchestrator = Orchestrator(
            ORCHESTRATOR,
            self.wire,
            broadcasters=[BROADCASTER],
            store=store,
            last_seq=lambda: log.last_seq,
            settings=replace(settings.limits, check_url=partial(_check_url, guard), closed_prefixes=reserved),
        )
        self.context = BroadcasterContext(log, self.orchestrator)
        self.broadcaster = Broadcaster(BROADCASTER, self.wire, self.context)
        registry = self.orchestrator.registry
        self.replays = ReplayBook(
            ORCHESTRATOR,
            self.wire,
            registry,
            store,
            log,
            rights=self.orchestrator,
            archivist=ARCHIVIST,
            settings=ReplaySettings(has_place=self._has_place, check_url=partial(_check_url, guard)),
        )
        self.orchestrator.replays = self.replays
        self.archivist = Archivist(ARCHIVIST, self.wire, registry, store, log, orchestrator=ORCHESTRATOR)
        ReplayServing(self.broadcaster)
        self.broadcaster.load()
        for canister in (self.orchestrator, self.broadcaster, self.archivist):
            self.wire.add(canister)
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._disconnect: Callable[[], None] = lambda: None
        self._is_due = False
        self._chains: set[bytes] = set()
        self._places: dict[bytes, CanisterPlace] = {}
        self._places_version = -1

    @classmethod
    def open(
        cls,
        file: Path | None,
        log: EventLog,
        guard: SinkGuard,
        clock: Clock,
        settings: IcrcSettings,
        *,
        reserved: tuple[str, ...] = (),
    ) -> "GatewayCanisters":
        """Take up what ``file`` holds; without one the registrations are in memory. Raises ``UnusableLog``."""
        store = IcrcStore.open(file)
        try:
            return cls(store, log, guard, clock, settings, reserved=reserved)
        except BaseException:
            store.close()
            raise

    def follow(self, feed: "ChainFeed") -> None:
        """Make publications of what a network's chains tell; their principals are nobody else's."""
        for namespace, publisher in feed.publications():
            self._chains.add(publisher)
            self.orchestrator.adopt(namespace, publisher)

    def start(self) -> None:
        """Carry calls and send notifications, where the last run ended."""
        self._loop = asyncio.get_running_loop()
        self.wire.begin()
        self.broadcaster.start()
        self.replays.resume()
        self._disconnect = self._log.connect(self._committed)
        self.broadcaster.catch_up()

    async def stop(self) -> None:
        """End what is under way; notifications that were not confirmed come again after the next start."""
        if self._loop is not None:
            self._disconnect()
            self.replays.close()
            self.archivist.close()
            self.broadcaster.close()
            await self.wire.close()
            self._loop = None

    def close(self) -> None:
        """Give back the file."""
        self.store.close()

    def listing(self) -> Mapping[str, Canister | list[Canister] | None]:
        """Return the canisters by what they are to this gateway."""
        return {"orchestrator": self.orchestrator, "broadcasters": [self.broadcaster], "archivist": self.archivist}

    def is_reserved(self, principal: bytes) -> bool:
        """Return whether a principal is that of a chain, which no caller has."""
        return principal in self._chains

    def figures(self) -> IcrcFigures:
        """Return what the canisters do."""
        registry, statistics = self.orchestrator.registry, self.orchestrator.statistics
        running = [it for it in registry.subscriptions.values() if not it.is_stopped]
        counts = _numbers(statistics.of_broadcaster(BROADCASTER, subscriptions=0, subscribers=0))
        return IcrcFigures(
            publications=len(registry.publications),
            subscriptions=len(registry.subscriptions),
            running=len(running),
            subscribers=len({it.subscriber for it in running}),
            events=counts["events"],
            notifications=counts["notifications"],
            confirmations=counts["confirmations"],
            calls=self.wire.calls,
            waiting=self.wire.waiting,
            failed=self.wire.failed,
        )

    def namespaces(self) -> list[IcrcNamespace]:
        """Return the newest publications, with how many subscriptions they have now."""
        registry, statistics = self.orchestrator.registry, self.orchestrator.statistics
        newest = list(registry.publications.values())[-NAMESPACES_SHOWN:]
        found = []
        for name, running in registry.running_in(it.namespace for it in reversed(newest)).items():
            counts = _numbers(statistics.of_publication(name, publishers=len(registry.publications[name].publishers)))
            found.append(
                IcrcNamespace(name, counts["events"], running, counts["notifications"], counts["confirmations"])
            )
        return found

    def _committed(self, _last_seq: int) -> None:
        """Have the broadcaster read what is new; in the log's writing thread."""
        loop = self._loop
        if loop is not None and not self._is_due:
            self._is_due = True
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._catch_up)

    def _catch_up(self) -> None:
        self._is_due = False
        try:
            self.broadcaster.catch_up()
        except Exception:
            _LOGGER.exception("the broadcaster failed")

    def _place_of(self, principal: bytes) -> CanisterPlace | None:
        """Return where a subscriber or a publisher said that it is reached."""
        registry = self.orchestrator.registry
        if self._places_version != registry.version:
            self._places_version, self._places = registry.version, {}
            replays = registry.replays.values()
            for replay in replays:
                self._keep_place(replay.subscriber, replay.config)
            for publication in registry.publications.values():
                for entry in publication.publishers.values():
                    self._keep_place(entry.publisher, entry.config)
            for subscription in registry.subscriptions.values():
                self._keep_place(subscription.subscriber, subscription.config)
            for replay in replays:
                if replay.is_active:
                    self._keep_place(replay.subscriber, replay.config)
        return self._places.get(principal)

    def _has_place(self, principal: bytes) -> bool:
        return self.wire.canister(principal) is not None or self._place_of(principal) is not None

    def _keep_place(self, principal: bytes, config: Headers) -> None:
        for name, value in config:
            if name == SUBSCRIBER_URL and value.tag is Tag.TEXT:
                self._places[principal] = CanisterPlace(value.content.rstrip("/"))


def _check_url(guard: SinkGuard, url: str) -> None:
    """Raise ``ValueError`` for an address that calls may not go to. A name is judged when it is connected to."""
    parts = urlsplit(url)
    guard.judge_literal(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


def _numbers(statistics: Headers) -> dict[str, int]:
    """Return counters by the last words of their names."""
    return {name.partition(":stats:")[2]: value.content for name, value in statistics}
