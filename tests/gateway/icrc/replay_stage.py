"""The whole system with replays: the archivist serves them from the log, broadcasters hand them to who asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.icrc.stage import NAMESPACE, ORCHESTRATOR, PUBLISHER, RecordingSubscriber, Stage
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.replay.archive import EventArchive
from relaycast_gateway.icrc.replay.archivist import Archivist
from relaycast_gateway.icrc.replay.book import ReplayBook
from relaycast_gateway.icrc.replay.serving import ReplayServing
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc.system_messages import SystemItem, items_of
from relaycast_gateway.icrc.variants import headers_of, icrc16_of, pairs_of
from relaycast_gateway.icrc16 import Icrc16

ARCHIVIST = b"archivist"
READER, OTHER = b"reader", b"other"


class ReplayingStage(Stage):
    """A stage whose orchestrator serves replays; ``archive`` keeps what the log drops."""

    def __init__(
        self,
        *,
        archive: EventArchive | None = None,
        replays: ReplaySettings | None = None,
        homes: Mapping[bytes, bytes] | None = None,
        **given: Any,
    ) -> None:
        self.archive, self.replay_settings, self.homes = archive, replays, dict(homes or {})
        super().__init__(**given)

    def _build(self) -> None:
        super()._build()
        orchestrator, registry = self.orchestrator, self.orchestrator.registry
        registry.homes = self.homes
        self.book = ReplayBook(
            ORCHESTRATOR,
            self.subnet,
            registry,
            self.store,
            self.log,
            rights=orchestrator,
            archivist=ARCHIVIST,
            settings=self.replay_settings,
        )
        orchestrator.replays = self.book
        self.archivist = Archivist(
            ARCHIVIST, self.subnet, registry, self.store, self.log, orchestrator=ORCHESTRATOR, archive=self.archive
        )
        self.subnet.add(self.archivist)
        self.servings = [ReplayServing(it) for it in self.broadcasters]
        self.book.resume()

    def restart(self) -> None:
        self.book.close()
        self.archivist.close()
        super().restart()

    def request(
        self,
        subscriber: bytes = READER,
        start: int = 0,
        end: int | None = None,
        *,
        namespace: str = NAMESPACE,
        config: Mapping[str, Icrc16] | None = None,
        runs: float = 1.0,
    ) -> int:
        """Register a replay, let some seconds pass, and return its id."""
        entries = pairs_of((config or {}).items())
        item = {"namespace": namespace, "range": {0: start, 1: end}, "config": entries, "memo": None}
        (result,) = self.ask(subscriber, "icrc77_register_replay", [item])
        assert result.tag == "Ok", result
        self.run(runs)
        return int(result.value)

    def ask(self, caller: bytes, method: str, argument: object) -> Any:
        return self.subnet.ask(caller, ORCHESTRATOR, method, argument)

    def state(self, replay_id: int) -> Variant:
        sent = self.orchestrator.statistics.sent_of_replay(replay_id)
        return self.orchestrator.registry.replays[replay_id].state(sent)

    def replay_stats(self, replay_id: int) -> dict[str, int]:
        """Return what was sent and what was left out, as ``icrc77_get_replays`` gives it."""
        page = {"prev": None, "prevId": None, "take": None, "filter": Variant("ByReplayId", replay_id)}
        (found,) = self.ask(READER, "icrc77_get_replays", page)
        stats = {name.removeprefix("icrc77:replay:stats:"): value.content for name, value in headers_of(found["stats"])}
        return {name: stats[name] for name in ("sent", "skipped")}

    def publish_many(self, count: int, *, publisher: bytes = PUBLISHER) -> None:
        """Publish events, each with its id as data; more than 100 in hundreds."""
        for _ in range(0, count, 100):
            self.publish(*(self.event() for _ in range(min(100, count))), publisher=publisher, settles=False)
        self.run()


def system_items(subscriber: RecordingSubscriber) -> list[SystemItem]:
    """Return what a subscriber heard of replays."""
    found = [it for it in subscriber.messages if it["namespace"].startswith("icrc72:subscriber:sys:")]
    return [item for it in found for item in items_of(icrc16_of(it["data"]))]


def events(subscriber: RecordingSubscriber) -> list[dict[str, Any]]:
    """Return the notifications of events, without system messages."""
    return [it for it in subscriber.messages if not it["namespace"].startswith("icrc72:")]


def replayed(subscriber: RecordingSubscriber, replay_id: int | None = None) -> list[dict[str, Any]]:
    """Return the notifications of replays, of one where its id is given."""
    return [it for it in events(subscriber) if replay_of(it) is not None and replay_id in {None, replay_of(it)}]


def replay_of(message: Mapping[str, Any]) -> int | None:
    value = dict(headers_of(message["headers"])).get("icrc77:replay:id")
    return None if value is None else int(value.content)


def event_ids(messages: list[dict[str, Any]]) -> list[int]:
    return [it["eventId"] for it in messages]


def log_file(folder: Path) -> Path:
    return folder / "log"
