"""CloudEvents, WAMP, ICRC-72 and ICRC-77 on one event log: each event once on each face, now and later."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from collator.networks import PUBLISHER, key, network, publish
from gateway.cloudevents.served_gateway import SINK, Api, visit
from gateway.icrc.replay_stage import ReplayingStage, event_ids, events, replayed
from gateway.icrc.stage import header
from gateway.wamp.broker_peers import Recorder, Town, kept
from relaycast_gateway import crockford
from relaycast_gateway.cloudevents.event import data_of
from relaycast_gateway.delivery.sender import Accepted, Refused
from relaycast_gateway.icrc.names import EVENT_TIMESTAMP
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import icrc16_of
from relaycast_gateway.icrc16 import from_json, map_of, nat, to_json
from relaycast_gateway.log import Retention
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EventRecord
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRules
from relaycast_gateway.wamp.payload import data_of as data_of_payload
from relaycast_gateway.wamp.payload import payload_of, value_of

PRICE = "com.shop.price"
PUBLISHED = "io.relaycast.data.published"
RULES = HistoryRules([kept("com.shop."), kept("io.relaycast.")])
ALICE = b"alice"


class Faces:
    """All faces of the log of ``api``: a realm of WAMP, and canisters on a subnet."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.log = api.gateway.log
        self.town = Town(self.log, rules=RULES)
        self.stage = ReplayingStage(log=self.log)

    async def settle(self) -> None:
        """Return when every face has handed on what is in the log."""
        await self.town.settle()
        for _ in range(3):
            self.stage.broadcaster.catch_up()
            self.stage.run(1)
            await self.town.settle()
        await self.api.settled()

    def listen(self, pattern: str) -> Recorder:
        """Subscribe with WAMP by prefix."""
        session = self.town.session()
        session.subscribe(pattern, match="prefix")
        return session

    def cloud_events(self) -> list[tuple[dict[str, str], bytes]]:
        """Return what the sink got: attributes and the body."""
        messages = self.api.sinks.of(SINK)
        return [
            ({name.removeprefix("ce-"): str(it) for name, it in message.properties}, message.body)
            for message in messages
        ]

    def notifications(self) -> list[dict[str, Any]]:
        """Return what the canister got."""
        return events(self.stage.subscribers[ALICE])

    def history(self, pattern: str) -> list[EventRecord]:
        """Return the newest page of a history of WAMP."""
        history = EventHistory(self.log, RULES)
        query = HistoryQuery.of([1], {})
        found = history.page(
            TopicPattern(pattern, Match.PREFIX), query, authid="ann", authrole="user", most_events=10_000
        )
        return found.records


def on_all_faces(work: Callable[[Faces], Awaitable[None]], **options: Any) -> None:
    """Run ``work`` with a gateway and its faces."""

    async def run(api: Api) -> None:
        faces = Faces(api)
        faces.town.broker.start()
        try:
            await work(faces)
        finally:
            await faces.town.broker.stop()
            faces.stage.close()

    visit(run, **options)


@pytest.mark.matrix("X-01")
def test_a_publication_of_a_chain_is_once_on_each_face_with_the_same_id_data_and_times() -> None:
    async def work(faces: Faces) -> None:
        net = network()
        faces.api.gateway.follow(net, "net")
        await faces.api.create(types=[PUBLISHED])
        listener = faces.listen(PUBLISHED)
        faces.stage.orchestrator.adopt(PUBLISHED, b"the relay chain")
        faces.stage.subscribe(ALICE, PUBLISHED)
        for number in range(6):
            publish(net, PUBLISHER, {key(0): bytes([number]), key(1): b"\x00" * number})
            net.step()
            await faces.settle()
        records = faces.log.read(namespaces=[PUBLISHED])
        assert len(records) >= 8
        assert [(it["id"], it["time"], it["subject"], body) for it, body in faces.cloud_events()] == [
            (it.text_id, format_time(it.occurred_ns), it.subject, data_of(it)) for it in records
        ]
        assert [
            (it.details["_event_id"], it.details["_time"], it.publication, it.kwargs) for it in listener.events
        ] == [(it.text_id, format_time(it.occurred_ns), it.pub_id, value_of(it.data)) for it in records]
        told = faces.notifications()
        assert [
            (crockford.encode(it["eventId"]), header(it, EVENT_TIMESTAMP), icrc16_of(it["data"])) for it in told
        ] == [(it.text_id, it.occurred_ns, it.data) for it in records]
        assert [it["prevEventId"] for it in told] == [it.prev_id for it in records]

    on_all_faces(work)


@pytest.mark.matrix("X-02")
def test_what_a_client_or_a_canister_publishes_is_once_on_each_face_and_never_comes_back() -> None:
    async def work(faces: Faces) -> None:
        await faces.api.create(types=[PRICE])
        listener = faces.listen("com.shop.")
        faces.stage.register(PRICE)
        faces.stage.subscribe(ALICE, PRICE)
        faces.town.session().publish(PRICE, None, {"eur": 5}, acknowledge=True)
        await faces.settle()
        (result,) = faces.stage.publish(faces.stage.event(100, map_of({"eur": nat(6)}), namespace=PRICE), settles=False)
        assert result.tag == "Ok"
        await faces.settle()
        records = faces.log.read()
        assert [it.data for it in records] == [map_of({"eur": nat(5)}), map_of({"eur": nat(6)})]
        assert [(it["type"], it["id"], json.loads(body)) for it, body in faces.cloud_events()] == [
            (PRICE, it.text_id, to_json(it.data)) for it in records
        ]
        assert [(it.publication, it.kwargs) for it in listener.events] == [
            (it.pub_id, value_of(it.data)) for it in records
        ]
        assert [(it["eventId"], icrc16_of(it["data"])) for it in faces.notifications()] == [
            (it.event_id, it.data) for it in records
        ]
        assert records[1].event_id == 100

    on_all_faces(work)


@pytest.mark.matrix("X-03")
def test_a_replay_a_history_and_a_redelivered_dead_letter_have_the_bytes_of_the_live_event() -> None:
    async def work(faces: Faces) -> None:
        faces.api.sinks.answer = lambda _target, _message: Refused("HTTP 404")
        subscription = await faces.api.create(types=[PRICE])
        listener = faces.listen("com.shop.")
        faces.stage.register(PRICE)
        faces.stage.subscribe(ALICE, PRICE)
        values: list[dict[str, Any]] = [{"eur": 5}, {"raw": b"\x00\xff", "deep": [[1, -2, {"a": None}], 0.5]}, {"": ""}]
        for value in values:
            faces.town.session().publish(PRICE, None, value, acknowledge=True)
        await faces.settle()
        live = faces.cloud_events()
        deliveries = faces.api.gateway.deliveries
        assert deliveries.state(subscription["id"]).dead == 3
        faces.api.sinks.answer = lambda _target, _message: Accepted()
        deliveries.redeliver(subscription["id"])
        await faces.settle()
        faces.stage.request(ALICE, namespace=PRICE, runs=5)
        await faces.settle()

        again = faces.cloud_events()[3:]
        assert again == live
        told = replayed(faces.stage.subscribers[ALICE])
        assert len(told) == len(listener.events) == 3
        first = [it for it in faces.notifications() if it not in told]
        assert [it["data"] for it in told] == [it["data"] for it in first]
        history = faces.history("com.shop.")
        data = [data_of_payload(*payload_of(it))[0] for it in history]
        assert [payload_of(it)[1] for it in history] == [it.kwargs for it in listener.events] == values
        hashes = [eventdata_hash(it) for it in data]
        assert hashes == [eventdata_hash(icrc16_of(it["data"])) for it in told]
        assert hashes == [eventdata_hash(from_json(json.loads(body))) for _, body in again]

    on_all_faces(work)


@pytest.mark.matrix("X-05")
def test_what_retention_drops_is_gone_from_histories_replays_and_new_subscriptions_alike() -> None:
    async def work(faces: Faces) -> None:
        faces.stage.register(PRICE)
        faces.stage.subscribe(ALICE, PRICE)
        writer = faces.town.session()
        for price in range(30):
            writer.publish(PRICE, None, {"eur": price}, acknowledge=True)
        await faces.settle()
        kept_ids = [it.event_id for it in faces.log.read()]
        assert (len(kept_ids), faces.log.history_start) == (10, 21)
        await faces.api.create(types=[PRICE], config={"since": 1})
        faces.stage.request(ALICE, namespace=PRICE, runs=5)
        await faces.settle()
        assert [crockford.decode(it["id"]) for it, _ in faces.cloud_events()] == kept_ids
        assert [it.event_id for it in faces.history("com.shop.")] == kept_ids
        assert event_ids(replayed(faces.stage.subscribers[ALICE])) == kept_ids

    on_all_faces(work, retention=Retention(count=10))
