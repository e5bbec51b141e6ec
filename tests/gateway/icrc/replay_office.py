"""An orchestrator that serves replays, with canisters around it that write down what they hear."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import Canister, Handler
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import CAPABLE
from relaycast_gateway.icrc.orchestrator.filter_languages import NO_LANGUAGES, FilterLanguage
from relaycast_gateway.icrc.orchestrator.orchestrator import Orchestrator
from relaycast_gateway.icrc.replay.book import ReplayBook
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subnet import Subnet
from relaycast_gateway.icrc.system_messages import SystemItem, items_of
from relaycast_gateway.icrc.variants import icrc16_of, pairs_of
from relaycast_gateway.icrc16 import Icrc16, boolean, nat
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventDraft

ADMIN, HUB, FAR_HUB, PUBLISHER, READER, STRANGER, ARCHIVE = (bytes([kind, 1]) for kind in range(10, 17))
NAMESPACE = "com.example.prices"


class Listener(Canister):
    """A publisher that writes down the system messages that it gets; others' methods it does not have."""

    role = CanisterRole.PUBLISHER

    def __init__(self, principal: bytes, wire: Subnet, heard: list[tuple[bytes, SystemItem]]) -> None:
        super().__init__(principal, wire)
        self._heard = heard

    def handlers(self) -> Mapping[str, Handler]:
        return {"icrc72_handle_notification": self._hear}

    def _hear(self, _caller: bytes, argument: object) -> None:
        for notification in cast("list[dict[str, Any]]", argument):
            self._heard += [(self.principal, item) for item in items_of(icrc16_of(notification["data"]))]


@dataclass
class ReplayOffice:
    """The canisters, and what was heard by whom, in order."""

    subnet: Subnet
    log: EventLog
    orchestrator: Orchestrator
    book: ReplayBook
    heard: list[tuple[bytes, SystemItem]] = field(default_factory=list)

    def ask(self, caller: bytes, method: str, argument: object) -> Any:
        result = self.subnet.ask(caller, ADMIN, method, argument)
        self.subnet.run(0.001)
        return result

    def publication(
        self,
        config: Mapping[str, Icrc16] | None = None,
        *,
        publisher: bytes = PUBLISHER,
        namespace: str = NAMESPACE,
        is_capable: bool = True,
    ) -> Any:
        """Register a publication; its publisher advertises replays where ``is_capable``."""
        entries = {CAPABLE: boolean(is_capable)} | dict(config or {})
        item = {"namespace": namespace, "config": pairs_of(entries.items()), "memo": None}
        return self.ask(publisher, "icrc72_register_publication", [item])

    def subscription(self, *, subscriber: bytes = READER, namespace: str = NAMESPACE) -> Any:
        item: dict[str, Any] = {
            "namespace": namespace,
            "config": [],
            "filter": None,
            "skip": None,
            "stopped": None,
            "memo": None,
        }
        return self.ask(subscriber, "icrc72_register_subscription", [item])

    def register(self, *, caller: bytes = READER, **given: Any) -> Any:
        return cast("Any", self.ask(caller, "icrc77_register_replay", [registration(**given)])[0])

    def error(self, **given: Any) -> Any:
        """Return the error that a registration gets."""
        result = self.register(**given)
        assert result.tag == "Err", result
        return result.value

    def report(self, replay_id: int, state: Variant, *, caller: bytes = PUBLISHER) -> Variant:
        update = {"replayId": replay_id, "status": state, "stats": None}
        return cast("Variant", self.ask(caller, "icrc77_replay_status", [update])[0])

    def cancel(self, replay_id: int, *, caller: bytes = READER) -> Variant:
        return cast("Variant", self.ask(caller, "icrc77_cancel_replay", [replay_id])[0])

    def replays(self, caller: bytes = READER, **asked: Any) -> list[dict[str, Any]]:
        page = {"prev": None, "prevId": None, "take": None, "filter": None} | asked
        return cast("list[dict[str, Any]]", self.ask(caller, "icrc77_get_replays", page))

    def state(self, replay_id: int) -> Variant:
        (found,) = self.replays(filter=Variant("ByReplayId", replay_id))
        return cast("Variant", found["status"])


def registration(
    *,
    namespace: str = NAMESPACE,
    start: int = 0,
    end: int | None = None,
    config: Mapping[str, Icrc16] | None = None,
    memo: bytes | None = None,
) -> dict[str, Any]:
    entries = pairs_of((config or {}).items())
    return {"namespace": namespace, "range": {0: start, 1: end}, "config": entries, "memo": memo}


@contextmanager
def replay_office(
    *,
    events: int = 10,
    settings: ReplaySettings | None = None,
    store: IcrcStore | None = None,
    archivist: bytes | None = None,
    down: tuple[bytes, ...] = (),
    filter_languages: Mapping[str, FilterLanguage] = NO_LANGUAGES,
) -> Iterator[ReplayOffice]:
    """Give an office whose log has events with the ids 1, 2 ..., a publication and one subscriber."""
    with EventLog.open() as log:
        subnet = Subnet()
        orchestrator = Orchestrator(
            ADMIN,
            subnet,
            broadcasters=[HUB, FAR_HUB],
            store=store,
            last_seq=lambda: log.last_seq,
            filter_languages=filter_languages,
        )
        book = ReplayBook(
            ADMIN,
            subnet,
            orchestrator.registry,
            orchestrator.store,
            log,
            rights=orchestrator,
            archivist=archivist,
            settings=settings,
        )
        orchestrator.replays = book
        office = ReplayOffice(subnet, log, orchestrator, book)
        subnet.add(orchestrator)
        for principal in (HUB, FAR_HUB, PUBLISHER, STRANGER, ARCHIVE):
            subnet.add(Listener(principal, subnet, office.heard))
        for principal in down:
            subnet.stop(principal)
        if events:
            log.append(*(EventDraft(NAMESPACE, nat(it), PUBLISHER, 0, event_id=it) for it in range(1, events + 1)))
        yield office
