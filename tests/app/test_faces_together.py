"""One event log behind all faces of a served network: WAMP and CloudEvents see the same events, each once."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic, sleep
from typing import Any
from urllib.request import Request, urlopen

import pytest

import relaycast as rc
from relaycast.serve.access import Access
from relaycast.serve.gateway_face import router_config
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc16 import to_json
from relaycast_gateway.log import Retention
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

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            more = [self.headers[f"ce-{name}"] for name in attributes]
            came.append((self.headers["ce-type"], json.loads(body), *more))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", came
        finally:
            server.shutdown()
            thread.join()


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


@pytest.mark.matrix("X-02")
def test_a_publication_is_a_cloud_event_and_an_event_of_the_chains_a_publication_once_each() -> None:
    with (
        webhook() as (sink, came),
        rc.serve("oracle", history=["com.example."], allow_sink=["127.0.0.1"]) as chains,
    ):
        subscribed(chains, protocol="HTTP", sink=sink, types=[TOPIC, "io.relaycast.data.published"])

        async def work() -> list[tuple[Any, Any]]:
            live: list[tuple[Any, Any]] = []
            async with await WampClient.connect(chains.wamp_url) as client:

                def note(event: ReceivedEvent) -> None:
                    live.append((event.details["topic"], event.publication))

                await client.subscribe("", note, match="prefix")
                for price in range(5):
                    await client.publish(TOPIC, [], {"price": price}, exclude_me=False)
                await asyncio.to_thread(chains.new_block, 3)
                await until(lambda: sum(topic == CHAIN_TOPIC for topic, _ in live) >= 50)
                await until(lambda: len(came) >= len([it for it in live if it[0] in {TOPIC, CHAIN_TOPIC}]))
            return live

        live = asyncio.run(work())
        wait_for(lambda: len(came) >= 5)
        assert [data for kind, data, *_ in came if kind == TOPIC] == [{"price": price} for price in range(5)]
        assert [topic for topic, _ in live].count(TOPIC) == 5
        published = [data for kind, data, *_ in came if kind == "io.relaycast.data.published"]
        assert len(published) == [topic for topic, _ in live].count(CHAIN_TOPIC)
        publications = [publication for topic, publication in live if not topic.startswith("wamp.")]
        assert len(publications) == len(set(publications)), "an event came twice"
        gateway = chains._server.gateway
        assert gateway is not None
        records = gateway.log.read(limit=10_000)
        assert [record.pub_id for record in records] == publications, "the log and its events differ"


@pytest.mark.matrix("X-01")
def test_what_a_chain_publishes_is_one_event_in_each_face_with_the_records_id_data_and_times() -> None:
    kind = "io.relaycast.data.published"
    with (
        webhook("id", "time", "subject") as (sink, came),
        rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains,
    ):
        subscribed(chains, protocol="HTTP", sink=sink, types=[kind])

        async def work() -> tuple[list[ReceivedEvent], list[Any]]:
            live: list[ReceivedEvent] = []
            async with await WampClient.connect(chains.wamp_url) as client:
                subscription = await client.subscribe(CHAIN_TOPIC, live.append)
                await asyncio.to_thread(chains.new_block, 3)
                await until(lambda: len(live) >= 100)
                reply = await client.call(GET_EVENTS, subscription)
            return live, list(reply.args)

        live, kept = asyncio.run(work())
        gateway = chains._server.gateway
        assert gateway is not None
        records = [it for it in gateway.log.read(limit=10_000) if it.namespace == kind]
        assert len(records) == len(live) >= 100
        wait_for(lambda: len(came) >= len(records))
        assert came == [(kind, to_json(it.data), it.text_id, format_time(it.occurred_ns), it.subject) for it in records]
        assert [(it.publication, it.kwargs) for it in live] == [(it.pub_id, value_of(it.data)) for it in records]
        assert [(it["publication"], it["kwargs"], it["timestamp"]) for it in kept] == [
            (it.pub_id, value_of(it.data), format_time(it.received_ns, digits=9)) for it in records
        ]


@pytest.mark.matrix("X-05")
def test_what_retention_drops_is_gone_from_every_face_at_once() -> None:
    network = living("oracle", "manual")
    gateway = Gateway.open(
        allow_sink=["127.0.0.1"],
        retention=Retention(count=30),
        wamp=router_config(None, ["com.example."], Access()),
    )
    with webhook() as (sink, came), serving(network, gateway=gateway) as chains:

        async def work() -> tuple[list[Any], Any, Any]:
            async with await WampClient.connect(chains.wamp_url) as client:
                sent = [await client.publish(TOPIC, [at]) for at in range(100)]
                subscription = await client.subscribe(TOPIC, lambda _: None)
                reply = await client.call(GET_EVENTS, subscription)
                with pytest.raises(WampError, match="publication"):
                    await client.call(GET_EVENTS, subscription, after_publication=sent[10])
                kept = await client.call(GET_EVENTS, subscription, from_publication=sent[70])
            return sent, reply, kept

        sent, reply, kept = asyncio.run(work())
        assert [event["publication"] for event in reply.args] == sent[70:]
        assert len(kept.args) == 30
        assert reply.kwargs["history_start"] == reply.args[0]["timestamp"]
        subscribed(chains, protocol="HTTP", sink=sink, config={"since": 1})
        wait_for(lambda: len(came) >= 30)
        assert [data for _, data, *_ in came] == [[at] for at in range(70, 100)]
        assert "relaycast_log_history_start 71.0" in text_at(f"{chains.http_url}/metrics")
