"""One event log behind all faces of a served network: each event is once on each face, now and later."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

import pytest

import relaycast as rc
from app.icrc_wire import Served, WireSubscriber, aside, attended, header
from app.served_canisters import ALICE, ask, event
from app.webhook import Request as Posted
from app.webhook import webhook as answering
from gateway.cloudevents.filter_twin import in_sql
from gateway.icrc.test_dialects_alike import in_candypath, in_dialects
from relaycast.serve.access import Access
from relaycast.serve.gateway_face import icrc_settings, router_config
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway import crockford
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.http.canister_host import CanisterHost
from relaycast_gateway.icrc.names import EVENT_TIMESTAMP, REPLAY_ID
from relaycast_gateway.icrc.variants import icrc16_of, pairs_of, variant_of
from relaycast_gateway.icrc16 import array, blob, map_of, nat, text, to_json
from relaycast_gateway.log import Retention
from relaycast_gateway.principal import client_principal
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.client.values import ReceivedEvent
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.payload import value_of

TOPIC = "com.example.price"
GET_EVENTS = "wamp.subscription.get_events"
CHAIN_TOPIC = "io.relaycast.data.published.p2000"


@contextmanager
def webhook(*attributes: str) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Receive webhooks; yield the address, and of what came the type, the data and ``attributes``."""
    came: list[tuple[Any, ...]] = []

    def note(request: Posted) -> tuple[int, dict[str, str]]:
        more = [request.headers.get(f"ce-{name}") for name in attributes]
        came.append((request.headers["ce-type"], json.loads(request.body), *more))
        return 204, {}

    with answering(note) as (sink, _):
        yield sink, came


def subscribed(chains: ServedNetwork, **members: Any) -> None:
    """Create a CloudEvents subscription."""
    body = json.dumps(members).encode()
    request = Request(f"{chains.http_url}/subscriptions", body, {"content-type": "application/json"})
    with urlopen(request, timeout=60) as response:
        assert response.status == 201


def wait_for(condition: Callable[[], object]) -> None:
    end = monotonic() + 30
    while not condition():
        assert monotonic() < end, "nothing came"
        sleep(0.01)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def text_at(url: str, **headers: str) -> str:
    with urlopen(Request(url, headers=headers), timeout=60) as response:
        return str(response.read().decode())


class Listeners:
    """A client of WAMP and a canister that note the events of one topic."""

    def __init__(self, client: WampClient, subscriber: WireSubscriber, subscription: int) -> None:
        self.client, self.subscriber, self.subscription = client, subscriber, subscription
        self.live: list[ReceivedEvent] = []

    @property
    def notified(self) -> list[Any]:
        """The notifications of events."""
        return [it for it in self.subscriber.messages if not it["namespace"].startswith("icrc72:")]

    async def history(self, **options: Any) -> list[Any]:
        return list((await self.client.call(GET_EVENTS, self.subscription, **options)).args)


def listening(
    chains: ServedNetwork, topic: str, namespace: str, work: Callable[[Listeners], Awaitable[None]]
) -> Listeners:
    """Listen to a topic with WAMP and to a namespace with a canister, while ``work`` runs.

    In ``TOPIC`` Alice and the client of WAMP publish.
    """
    found: list[Listeners] = []

    async def attend(served: Served, host: CanisterHost, subscriber: WireSubscriber) -> None:
        async with await WampClient.connect(chains.wamp_url) as client:
            if topic == TOPIC:
                publishers = array(blob(ALICE), blob(client_principal("relaycast", client.details["authid"])))
                config = {"icrc72:publication:publishers:allowed:list": publishers}
                assert (await aside(served.register, TOPIC, config=config)).tag == "Ok"
            listeners = Listeners(client, subscriber, 0)
            listeners.subscription = await client.subscribe(topic, listeners.live.append)
            assert (await aside(served.subscribe, namespace, host.url)).tag == "Ok"
            found.append(listeners)
            await work(listeners)

    attended(chains, attend)
    return found[0]


@pytest.mark.matrix("X-01")
def test_what_a_chain_publishes_is_one_event_in_each_face_with_the_records_id_data_and_times() -> None:
    kind = "io.relaycast.data.published"
    with (
        webhook("id", "time", "subject") as (sink, came),
        rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains,
    ):
        subscribed(chains, protocol="HTTP", sink=sink, types=[kind])
        kept: list[Any] = []

        async def work(it: Listeners) -> None:
            await asyncio.to_thread(chains.new_block, 3)
            await until(lambda: len(it.live) >= 100 and len(it.notified) >= len(it.live) and len(came) >= len(it.live))
            kept.extend(await it.history())

        it = listening(chains, CHAIN_TOPIC, kind, work)
        records = [each for each in Served(chains).gateway.log.read(limit=10_000) if each.namespace == kind]
    assert len(records) >= 100
    assert came == [
        (kind, to_json(each.data), each.text_id, format_time(each.occurred_ns), each.subject) for each in records
    ]
    assert [(each.publication, each.kwargs, each.details["_event_id"], each.details["_time"]) for each in it.live] == [
        (each.pub_id, value_of(each.data), each.text_id, format_time(each.occurred_ns)) for each in records
    ]
    assert [(each["publication"], each["kwargs"], each["timestamp"]) for each in kept] == [
        (each.pub_id, value_of(each.data), format_time(each.received_ns, digits=9)) for each in records
    ]
    assert [
        (crockford.encode(each["eventId"]), each["prevEventId"], header(each, EVENT_TIMESTAMP), icrc16_of(each["data"]))
        for each in it.notified
    ] == [(each.text_id, each.prev_id, each.occurred_ns, each.data) for each in records]


@pytest.mark.matrix("X-02")
def test_what_a_client_or_a_canister_publishes_is_once_on_each_face_and_never_comes_back() -> None:
    with (
        webhook("id") as (sink, came),
        rc.serve("oracle", history=["com.example."], allow_sink=["127.0.0.1"]) as chains,
    ):
        served = Served(chains)
        subscribed(chains, protocol="HTTP", sink=sink, types=[TOPIC])

        async def work(it: Listeners) -> None:
            for price in range(5):
                await it.client.publish(TOPIC, [], {"price": price}, exclude_me=False)
            data = variant_of(map_of({"price": nat(5)}))
            (result,) = await aside(served.publish, event(100, TOPIC, data))
            assert result.tag == "Ok"
            await it.client.publish(TOPIC, [], {"price": 6}, exclude_me=False)
            await until(lambda: len(it.live) >= 7 and len(it.notified) >= 7 and len(came) >= 7)
            await asyncio.sleep(0.05)  # for what would come back

        it = listening(chains, TOPIC, TOPIC, work)
        records = served.gateway.log.read(limit=10_000)
    assert [each.data for each in records] == [map_of({"price": nat(price)}) for price in range(7)]
    assert records[5].event_id == 100
    assert came == [(TOPIC, to_json(each.data), each.text_id) for each in records]
    assert [(each.publication, each.kwargs) for each in it.live] == [
        (each.pub_id, value_of(each.data)) for each in records
    ]
    assert [(each["eventId"], icrc16_of(each["data"])) for each in it.notified] == [
        (each.event_id, each.data) for each in records
    ]


@pytest.mark.matrix("X-03")
def test_a_replay_a_history_and_a_redelivered_dead_letter_have_the_data_of_the_live_event() -> None:
    values: list[dict[str, Any]] = [{"eur": 5}, {"raw": b"\x00\xff", "deep": [[1, -2, {"a": None}], 0.5]}, {"": ""}]
    statuses = [404]
    with (
        answering(lambda _: (statuses[0], {})) as (sink, came),
        rc.serve("oracle", history=["com.example."], allow_sink=["127.0.0.1"]) as chains,
    ):
        served = Served(chains)
        subscribed(chains, protocol="HTTP", sink=sink, types=[TOPIC])

        async def work(it: Listeners) -> None:
            for value in values:
                await it.client.publish(TOPIC, [], value, exclude_me=False)
            await until(lambda: len(it.live) >= 3 and len(it.notified) >= 3 and len(came) >= 3)
            ((letters),) = json.loads(await aside(text_at, f"{chains.http_url}/deadletters"))
            assert letters["dead"] == 3
            statuses[0] = 204
            again = f"{chains.http_url}/deadletters/{letters['subscription']}/redeliver"
            assert (await aside(ask, again, "POST", b"{}", Content_Type="application/json"))[0] == 200
            assert (await aside(served.replay, TOPIC)).tag == "Ok"
            await until(lambda: len(came) >= 6 and len(it.notified) >= 6)
            assert [each["kwargs"] for each in await it.history()] == [each.kwargs for each in it.live] == values

        it = listening(chains, TOPIC, TOPIC, work)
    assert [each.body for each in came[3:]] == [each.body for each in came[:3]]
    live, replayed = it.notified[:3], it.notified[3:]
    assert [header(each, REPLAY_ID) is None for each in it.notified] == [True] * 3 + [False] * 3
    assert [(each["eventId"], each["data"]) for each in replayed] == [(each["eventId"], each["data"]) for each in live]
    assert [to_json(icrc16_of(each["data"])) for each in live] == [json.loads(each.body) for each in came[:3]]


PREDICATES: list[list[list[tuple[str, bool, str]]]] = [
    [[("team", True, "Blue")]],
    [[("team", False, "Blue")]],
    [[("team", True, "Blue"), ("size", True, "2")], [("team", True, "Red")]],
    [[("team", True, "blue")]],
]
"""Alternatives, each of terms that hold together: a name, whether it is equal, a value."""


@pytest.mark.matrix("X-04")
def test_one_predicate_in_three_languages_selects_the_same_events_on_their_faces() -> None:
    teams = [{"team": "Blue", "size": "1"}, {"team": "Blue", "size": "2"}, {"team": "Red", "size": "1"}, {"size": "2"}]
    with answering() as (sink, came), rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains:

        async def work(served: Served, host: CanisterHost, _: WireSubscriber) -> None:
            await aside(served.register, TOPIC)
            subscribers = []
            for number, predicate in enumerate(PREDICATES):
                dialects = in_dialects(predicate)
                for language, written in (("dialect", dialects), ("sql", {"sql": in_sql(dialects)})):
                    place = f"{sink}{language}/{number}"
                    await aside(subscribed, chains, protocol="HTTP", sink=place, types=[TOPIC], filter=written)
                subscriber = WireSubscriber(client_principal("test", f"reader {number}"), host.wire)
                host.add(subscriber)
                subscribers.append(subscriber)
                asked = {"caller": subscriber.principal, "filter": in_candypath(predicate)}
                assert (await aside(served.subscribe, TOPIC, host.url, **asked)).tag == "Ok"
            for number, team in enumerate(teams):
                told = {name: text(it) for name, it in team.items()}
                headers = pairs_of([(f"ce:{name}", it) for name, it in told.items()])
                sent = event(number, TOPIC, variant_of(map_of(told))) | {"headers": headers}
                assert (await aside(served.publish, sent))[0].tag == "Ok"
            for number, expected in enumerate(([0, 1], [2, 3], [1, 2], [])):
                await until(lambda: subscribers[number].events == expected)  # noqa: B023 - called at once
                for language in ("dialect", "sql"):
                    place = f"/{language}/{number}"
                    wanted = [teams[it] for it in expected]
                    await until(lambda: [json.loads(it.body) for it in came if it.path == place] == wanted)  # noqa: B023
            await asyncio.sleep(0.05)  # for what would come though it must not
            assert [len(it.events) for it in subscribers] == [2, 2, 2, 0]
            assert len(came) == 12

        attended(chains, work)


@pytest.mark.matrix("X-05")
def test_what_retention_drops_is_gone_from_every_face_at_once() -> None:
    network = living("oracle", "manual")
    gateway = Gateway.open(
        allow_sink=["127.0.0.1"],
        retention=Retention(count=30),
        wamp=router_config(None, ["com.example."], Access()),
        icrc=icrc_settings(),
    )
    with webhook() as (sink, came), serving(network, gateway=gateway) as chains:
        served = Served(chains)

        async def work(it: Listeners) -> None:
            sent = [await it.client.publish(TOPIC, [at]) for at in range(100)]
            reply = await it.client.call(GET_EVENTS, it.subscription)
            with pytest.raises(WampError, match="publication"):
                await it.history(after_publication=sent[10])
            kept = list[Any](reply.args)
            assert [each["publication"] for each in kept] == sent[70:]
            assert len(await it.history(from_publication=sent[70])) == 30
            assert reply.kwargs["history_start"] == kept[0]["timestamp"]
            assert (await aside(served.replay, TOPIC)).tag == "Ok"

            def again() -> list[Any]:
                return [each for each in it.notified if header(each, REPLAY_ID) is not None]

            await until(lambda: len(again()) >= 30)
            assert [each["data"].value[0].value for each in again()] == list(range(70, 100))

        listening(chains, TOPIC, TOPIC, work)
        subscribed(chains, protocol="HTTP", sink=sink, config={"since": 1})
        wait_for(lambda: len(came) >= 30)
        assert [data for _, data, *_ in came] == [[at] for at in range(70, 100)]
        assert "relaycast_log_history_start 71.0" in text_at(f"{chains.http_url}/metrics")
