"""The gateway as one thing: the event log, the chains that feed it, the subscriptions and their deliveries.

Law: everything but the log's writer happens in the event loop that called ``start``. After ``stop`` nothing runs, and
what was in flight was acknowledged or is tried again after the next start.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from relaycast_collator import ChainSimulator
from relaycast_gateway.access import NO_LISTS, ROUTER_PREFIX, EventAccess
from relaycast_gateway.chain_feed import PREFIX, ChainFeed, KeyNames
from relaycast_gateway.clock import Clock, SystemClock
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.cloudevents.event import attributes_of, canonical_text
from relaycast_gateway.cloudevents.subscription_book import MOST_SUBSCRIPTIONS, SubscriptionBook
from relaycast_gateway.cloudevents.subscription_store import SubscriptionStore
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.order import DeliveryState
from relaycast_gateway.delivery.sender import Sender, Target
from relaycast_gateway.delivery.senders import sender_class, sender_of
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.store import DeliveryStore
from relaycast_gateway.figures import Figures
from relaycast_gateway.log import EventLog, Retention, UnusableLog
from relaycast_gateway.principal import principal_of_name
from relaycast_gateway.rfc3339 import format_time

if TYPE_CHECKING:
    from relaycast_gateway.icrc_face import GatewayCanisters, IcrcSettings
    from relaycast_gateway.wamp.connections import Connections
    from relaycast_gateway.wamp.router import Router
    from relaycast_gateway.wamp.router_config import RouterConfig

FOLDER_MODE, FILE_MODE = 0o700, 0o600
_LOGGER = logging.getLogger(__name__)

LOG_FILE = "events.sqlite"
DELIVERIES_FILE = "deliveries.sqlite"
SUBSCRIPTIONS_FILE = "subscriptions.sqlite"
CANISTERS_FILE = "icrc.sqlite"

SQLITE_MAGIC = b"SQLite format 3\x00"
SQLITE_HEAD_BYTES = 100
SQLITE_WRITE_VERSION, SQLITE_ROLLBACK_JOURNAL = 18, 1
USER_VERSION = slice(60, 64)
"""Place of the schema version in the head. A database in rollback mode without one belongs to another program."""


class Gateway:
    """Made by ``Gateway.open``; then ``await start()``, and ``await stop()`` at the end."""

    def __init__(
        self,
        log: EventLog,
        kept: DeliveryStore,
        store: SubscriptionStore,
        *,
        clock: Clock,
        allowed_sinks: Sequence[str],
        most_subscriptions: int,
        guard: SinkGuard,
        access: EventAccess,
        principals: Mapping[str, bytes],
        senders: Callable[[Target], Sender] | None,
        wamp: "RouterConfig | None",
        icrc: "GatewayCanisters | None",
        version: str,
    ) -> None:
        self.log = log
        self.deliveries = EventDeliveries(
            log,
            kept,
            clock=clock,
            sender_of=senders or sender_of(guard, clock),
            on_change=lambda _: self._tell_change(),
        )
        self.book = SubscriptionBook(
            store,
            self.deliveries,
            log,
            clock=clock,
            guard=guard,
            access=access,
            principal_of=lambda name: principals.get(name) or principal_of_name(name),
            most=most_subscriptions,
            find_sender=sender_class if senders is None else lambda _: senders,
            on_change=self._subscriptions_changed,
        )
        self.router: Router | None = None
        """The WAMP router, where that face is offered."""

        self.connections: Connections | None = None
        """The connections of its clients."""

        if wamp is not None:
            self.router, self.connections = _router(wamp, log, clock, access)
        self.icrc = icrc
        """The canisters, where that face is offered."""

        self.chain_prefix = _chain_prefix(wamp).removesuffix(".")
        self.feeds: list[ChainFeed] = []
        """What the chains tell, on its way into the log."""

        self.allowed_sinks = allowed_sinks
        self.is_ready = False
        self.on_change: Callable[[], None] = lambda: None
        """Called in the event loop when a subscription or its delivery has changed."""

        self._held = ExitStack()
        self._version = version

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        allow_sink: Iterable[str] = (),
        retention: Retention | None = None,
        most_subscriptions: int = MOST_SUBSCRIPTIONS,
        senders: Callable[[Target], Sender] | None = None,
        wamp: "RouterConfig | None" = None,
        icrc: "IcrcSettings | None" = None,
        version: str = "0",
        first_seq: int = 1,
        principals: Mapping[str, bytes] = MappingProxyType({}),
    ) -> "Gateway":
        """Open what stands in ``folder``, which is made where it is missing; without one all is in memory.

        ``principals`` maps names of tokens to their principals. Registrations of canisters that are kept in the folder
        restrict every face, even if ``icrc`` is not offered. ``first_seq`` is the number of the first
        event of a log that never had one.

        Raises ``UnusableLog`` for a folder that cannot be used, and ``WorkFolderInUse`` for one that another process
        has open. ``SinkGuard`` says which entries of ``allow_sink`` are valid.
        """
        if folder is not None:
            _ensure_usable(Path(folder))
        with ExitStack() as held:
            log = EventLog.open(_file(folder, LOG_FILE), clock=clock, retention=retention, first_seq=first_seq)
            held.callback(log.close)
            try:
                kept = DeliveryStore.open(_file(folder, DELIVERIES_FILE))
                held.callback(kept.close)
                store = SubscriptionStore(_file(folder, SUBSCRIPTIONS_FILE))
                held.callback(store.close)
                allowed_sinks = tuple(allow_sink)
                guard = SinkGuard(allowed_sinks)
                held.callback(guard.close)
                canisters, lists = None, NO_LISTS
                if icrc is not None or (folder is not None and (Path(folder) / CANISTERS_FILE).exists()):
                    from relaycast_gateway.icrc_face import (  # noqa: PLC0415 - only where there are canisters
                        GatewayCanisters,
                        IcrcSettings,
                    )

                    file = _file(folder, CANISTERS_FILE)
                    reserved = (ROUTER_PREFIX, _chain_prefix(wamp))
                    canisters = GatewayCanisters.open(
                        file, log, guard, log.clock, icrc or IcrcSettings(), reserved=reserved
                    )
                    held.callback(canisters.close)
                    lists = canisters.orchestrator.namespace_lists
                made = cls(
                    log,
                    kept,
                    store,
                    clock=clock or SystemClock(),
                    allowed_sinks=allowed_sinks,
                    most_subscriptions=most_subscriptions,
                    guard=guard,
                    access=EventAccess(lists),
                    principals=principals,
                    senders=senders,
                    wamp=wamp,
                    icrc=None if icrc is None else canisters,
                    version=version,
                )
                made.book.begin()
            except UnusableLog:
                raise
            except (sqlite3.Error, OSError, ValueError) as error:
                raise UnusableLog(str(folder), str(error), "the folder of a gateway") from None
            made._held = held.pop_all()
            return made

    def follow(
        self, chains: ChainSimulator, network_name: str, *, key_names: KeyNames = dict, by_tick: bool = False
    ) -> ChainFeed:
        """Append the events of ``chains`` to the log, with proofs while a subscription asks for them.

        With ``by_tick`` the caller notifies the feed at the end of each tick.
        """
        feed = ChainFeed(
            self.log,
            chains=chains,
            network_name=network_name,
            prefix=self.chain_prefix,
            key_names=key_names,
            proofs=self.book.needs_proofs,
            by_tick=by_tick,
        )
        self.feeds.append(feed)
        if self.icrc is not None:
            self.icrc.follow(feed)
        return feed

    async def start(self) -> None:
        """Begin to deliver, where the last run ended."""
        await self.deliveries.start()
        if self.router is not None:
            await self.router.start()
        if self.icrc is not None:
            self.icrc.start()
        self.is_ready = True

    async def stop(self) -> None:
        """End deliveries and close all files; also where ``start`` was never called."""
        for feed in self.feeds:
            feed.close()
        if self.is_ready:
            self.is_ready = False
            if self.router is not None:
                await self.router.stop()
            if self.icrc is not None:
                await self.icrc.stop()
            await self.deliveries.stop()
            with suppress(sqlite3.Error):  # counted again from the log
                self.book.end()
        self.close()

    def close(self) -> None:
        """Close all files of a gateway that was never started, or has stopped; a second call does nothing."""
        for feed in self.feeds:
            feed.close()
        self._held.close()

    def _subscriptions_changed(self) -> None:
        for feed in self.feeds:
            feed.proofs = self.book.needs_proofs
        self._tell_change()

    def _tell_change(self) -> None:
        """Call ``on_change``; if it fails, the change stays."""
        try:
            self.on_change()
        except Exception:
            _LOGGER.exception("a callback of the gateway failed")

    @property
    def lost(self) -> int:
        """The number of events that the log could not take."""
        return sum(feed.lost for feed in self.feeds)

    @property
    def trouble(self) -> str | None:
        """Why the gateway does not do its work, ``None`` where it does."""
        if not self.is_ready:
            return "the gateway has not started"
        lossy = next((feed.error for feed in self.feeds if feed.error is not None), None)
        if lossy is not None:
            return f"events are being lost, {self.lost:,} so far: {lossy}"
        kept = self.deliveries.gauges.store_error
        return None if kept is None else f"deliveries are not noted: {kept}"

    def service(self) -> dict[str, Any]:
        """Return the description of the service."""
        from relaycast_gateway.cloudevents.services import services  # noqa: PLC0415 - a server starts without it

        return services(self.chain_prefix) | {"subscriptionlimit": self.book.most}

    def interface(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        from relaycast_gateway.cloudevents.openapi import openapi  # noqa: PLC0415 - a server starts without it

        return openapi(self._version)

    def fares(self, subscription_id: str) -> dict[str, Any]:
        """Return how a subscription fares, for clients."""
        return shown_state(self.deliveries.state(subscription_id), self.log.last_seq)

    def figures(self, caller: Caller, *, refused: int = 0, listener_failures: int = 0) -> Figures:
        """Return what the caller may see of the log and its subscriptions.

        ``refused`` is the number of requests beyond the rate limit, ``listener_failures`` that of failed listeners.
        """
        mine = self.book.query(caller)[0]
        states = [(self.deliveries.state(it.id), it.protocol) for it in mine]
        wamp = self.router.figures() if self.router is not None and caller.is_admin else None
        icrc = self.icrc.figures() if self.icrc is not None and caller.is_admin else None
        return Figures(
            self.log.last_seq,
            self.log.history_start,
            states,
            self.lost,
            refused,
            listener_failures,
            is_ready=self.trouble is None,
            wamp=wamp,
            icrc=icrc,
        )

    def dead_letters(self, subscription_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        """Return events that were given up, each with its attributes where the log still has them."""
        found = []
        for letter in self.deliveries.dead_letters(subscription_id, after=after, limit=limit):
            shown: dict[str, Any] = {
                "subscription": letter.subscription_id,
                "sequence": letter.seq,
                "reason": letter.reason,
                "attempts": letter.attempts,
                "givenup": format_time(letter.given_up_ns),
            }
            record = self.log.get(letter.seq)
            with suppress(ValueError):  # an event that CloudEvents cannot carry has none
                attributes = {} if record is None else attributes_of(record)
                names = ("id", "source", "type", "subject", "time")
                shown |= {name: canonical_text(attributes[name]) for name in names if name in attributes}
            found.append(shown)
        return found


def _chain_prefix(wamp: "RouterConfig | None") -> str:
    """Return the prefix of the chains' namespaces."""
    return f"{PREFIX}." if wamp is None else wamp.realms[0].chain_prefix


def _router(config: "RouterConfig", log: EventLog, clock: Clock, access: EventAccess) -> "tuple[Router, Connections]":
    from relaycast_gateway.wamp.connections import Connections  # noqa: PLC0415 - where it is offered
    from relaycast_gateway.wamp.router import Router  # noqa: PLC0415

    router = Router(config, log, clock, access)
    return router, Connections(router, config.limits, clock)


def shown_state(state: DeliveryState, last_seq: int) -> dict[str, Any]:
    """Return a delivery's state as JSON; ``last_seq`` is the newest event of the log."""
    shown: dict[str, Any] = {
        "subscription": state.subscription_id,
        "status": state.status,
        "sequence": state.cursor,
        "behind": max(0, last_seq - state.cursor),
        "pending": state.pending,
        "delivered": state.delivered,
        "retries": state.retries,
        "dead": state.dead,
    }
    if state.last_error is not None:
        shown["lasterror"] = state.last_error
    if state.next_attempt_ns is not None:
        shown["nextattempt"] = format_time(state.next_attempt_ns)
    return shown


def _file(folder: str | PathLike[str] | None, name: str) -> Path | None:
    """Return the place of a file that nobody but its owner can read; makes what is missing."""
    if folder is None:
        return None
    place = Path(folder)
    try:
        place.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableLog(str(folder), (error.strerror or "an error").lower(), "a folder") from None
    file = place / name
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, FILE_MODE))
        file.chmod(FILE_MODE)  # SQLite gives the files beside it the same mode
    except OSError as error:
        raise UnusableLog(str(file), (error.strerror or "an error").lower(), "a file of this user") from None
    return file


def _ensure_usable(folder: Path) -> None:
    """Raise ``UnusableLog`` where a file of the folder is no database, before anything is written beside it."""
    if folder.exists() and not folder.is_dir():
        raise UnusableLog(str(folder), "a file", "a folder")
    for name in (LOG_FILE, DELIVERIES_FILE, SUBSCRIPTIONS_FILE, CANISTERS_FILE):
        file = folder / name
        try:
            with file.open("rb") as opened:
                head = opened.read(SQLITE_HEAD_BYTES)
        except FileNotFoundError:
            continue
        except IsADirectoryError:
            raise UnusableLog(str(file), "a folder", "a file of this gateway, or none") from None
        except OSError as error:
            raise UnusableLog(str(file), (error.strerror or "an error").lower(), "a file that can be read") from None
        if head and not (head.startswith(SQLITE_MAGIC) and len(head) == SQLITE_HEAD_BYTES):
            raise UnusableLog(str(file), "a file that is no database", "a file of this gateway, or none")
        if head and head[SQLITE_WRITE_VERSION] == SQLITE_ROLLBACK_JOURNAL and not int.from_bytes(head[USER_VERSION]):
            raise UnusableLog(str(file), "another program's database", "a file of this gateway, or none")
