"""From the event log to a consumer that knows nothing but its own protocol, one for each."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brokers.broker_processes import Mosquitto
from brokers.sdk_receivers import python_receiver
from peers import missing
from relaycast_gateway.cloudevents.caller import EVERYBODY_HERE
from relaycast_gateway.delivery.order import DeliveryState
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.record import EventDraft

pytestmark = pytest.mark.brokers

SCRIPTS = Path(__file__).parent / "scripts"
TYPE = "io.relaycast.data.published"
COUNT = 5
EXPECTED = [f"{TYPE} key/{number} {number}" for number in range(COUNT)]


@contextmanager
def consumer(name: str, *arguments: str) -> Iterator[Iterator[str]]:
    """Run a consumer; yields its lines from the moment at which it is ready."""
    command = [sys.executable, str(SCRIPTS / f"consume_{name}.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            lines = (line.removesuffix("\n") for line in process.stdout)
            assert next(lines) == "ready"
            yield lines
        finally:
            process.kill()


def deliver(protocol: str, sink: str, **settings: Any) -> None:
    """Subscribe, append events, and wait until all are acknowledged."""

    async def delivered() -> DeliveryState:
        gateway = Gateway.open(allow_sink=["127.0.0.1"])
        await gateway.start()
        try:
            asked = {"protocol": protocol, "sink": sink, "protocolsettings": settings, "types": [TYPE]}
            made = await gateway.book.create(EVERYBODY_HERE, asked)
            drafts = [EventDraft(TYPE, nat(number), b"", 0, subject=f"key/{number}") for number in range(COUNT)]
            await asyncio.wrap_future(gateway.log.append_soon(drafts))
            while (state := gateway.deliveries.state(made.id)).delivered < COUNT and not state.dead:
                await asyncio.sleep(0.02)
            return state
        finally:
            await gateway.stop()

    state = asyncio.run(asyncio.wait_for(delivered(), 60))
    assert (state.delivered, state.dead, state.last_error) == (COUNT, 0, None)


def taken(lines: Iterator[str]) -> list[str]:
    return [next(lines) for _ in range(COUNT)]


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_mqtt_5(mosquitto: Mosquitto) -> None:
    with consumer("mqtt", "127.0.0.1", str(mosquitto.port), "chain/events") as lines:
        deliver("MQTT5", f"mqtt://127.0.0.1:{mosquitto.port}", topicname="chain/events")
        assert taken(lines) == EXPECTED


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_mqtt_3(mosquitto: Mosquitto) -> None:
    with consumer("mqtt3", "127.0.0.1", str(mosquitto.port), "chain/three") as lines:
        deliver("MQTT3", f"mqtt://127.0.0.1:{mosquitto.port}", topicname="chain/three")
        assert taken(lines) == EXPECTED


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_nats(nats: int) -> None:
    with consumer("nats", "127.0.0.1", str(nats), "chain.events") as lines:
        deliver("NATS", f"nats://127.0.0.1:{nats}", subject="chain.events")
        assert taken(lines) == EXPECTED


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_kafka() -> None:
    try:
        from confluent_kafka import Producer  # noqa: PLC0415
    except ImportError as error:
        missing(str(error))
    cluster = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = cluster.list_topics(timeout=20).brokers.values()
    with consumer("kafka", "127.0.0.1", str(broker.port), "events") as lines:
        deliver("KAFKA", f"kafka://127.0.0.1:{broker.port}/events", partitionkeyextractor="type")
        assert taken(lines) == EXPECTED


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_amqp(rabbitmq: int) -> None:
    with consumer("amqp", "127.0.0.1", str(rabbitmq), "/queue/chain") as lines:
        deliver("AMQP", f"amqp://guest:guest@127.0.0.1:{rabbitmq}", address="/queue/chain")
        assert taken(lines) == EXPECTED


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_http() -> None:
    with python_receiver() as receiver:
        deliver("HTTP", f"http://127.0.0.1:{receiver.port}/")
        events = [receiver.take() for _ in range(COUNT)]
    assert [f"{it.attributes['type']} {it.attributes['subject']} {it.data}" for it in events] == EXPECTED
