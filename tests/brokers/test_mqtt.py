"""Mosquitto takes what the MQTT sender sends, and paho reads it."""

import asyncio
import contextlib
import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

from brokers.broker_processes import Certificate, Mosquitto, free_port, plain_mosquitto
from brokers.deliveries import EVENT, SECRET, message, send, target, with_sender
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, Sender, SendOutcome

pytestmark = pytest.mark.brokers

PROTOCOLS = ["MQTT3", "MQTT5"]


class Reader:
    """Subscribes with paho, and hands over each message as it came."""

    def __init__(self, port: int, topic: str, **credential: str) -> None:
        self._messages: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        subscribed: queue.Queue[None] = queue.Queue()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        if credential:
            self.client.username_pw_set(credential["user"], credential["password"])
        self.client.on_message = lambda _client, _data, it: self._messages.put(it)
        self.client.on_subscribe = lambda *_: subscribed.put(None)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        self.client.subscribe(topic, options=SubscribeOptions(qos=2))
        subscribed.get(timeout=10)

    def take(self) -> mqtt.MQTTMessage:
        return self._messages.get(timeout=10)

    def is_empty(self) -> bool:
        return self._messages.empty()


@contextlib.contextmanager
def reader(port: int, topic: str, **credential: str) -> Iterator[Reader]:
    it = Reader(port, topic, **credential)
    try:
        yield it
    finally:
        it.client.disconnect()
        it.client.loop_stop()


def sink(port: int, scheme: str = "mqtt", host: str = "127.0.0.1") -> str:
    return f"{scheme}://{host}:{port}"


def properties(received: mqtt.MQTTMessage) -> dict[str, Any]:
    found: dict[str, Any] = received.properties.json()  # type: ignore[union-attr]
    return found


@pytest.mark.matrix("CE-63", "CE-101")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_message_arrives_under_its_topic(mosquitto: Mosquitto, protocol: str) -> None:
    topic = f"a/ë/{protocol}"
    with reader(mosquitto.port, topic) as read:
        assert send(target(protocol, sink(mosquitto.port), topicname=topic), message(protocol)) == [Accepted()]
        assert read.take().topic == topic


@pytest.mark.matrix("CE-64")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_packet_has_the_quality_of_service(mosquitto: Mosquitto, protocol: str, qos: int) -> None:
    topic = f"qos/{protocol}/{qos}"
    with reader(mosquitto.port, topic) as read:
        to = target(protocol, sink(mosquitto.port), topicname=topic, qos=qos)
        assert send(to, message(protocol), message(protocol, data=b"2")) == [Accepted(), Accepted()]
        assert [read.take().qos, read.take().qos] == [qos, qos]
    assert f"(d0, q{qos}, r0" in mosquitto.said.read_text()
    assert {0: "Received PUBLISH", 1: "Sending PUBACK", 2: "Sending PUBCOMP"}[qos] in mosquitto.said.read_text()


@pytest.mark.matrix("CE-65")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("retain", [False, True])
def test_a_late_subscriber_gets_what_is_retained(mosquitto: Mosquitto, protocol: str, retain: bool) -> None:
    topic = f"retain/{protocol}/{retain}"
    send(target(protocol, sink(mosquitto.port), topicname=topic, retain=retain), message(protocol))
    with reader(mosquitto.port, topic) as read:
        if retain:
            assert read.take().retain
        else:
            send(target(protocol, sink(mosquitto.port), topicname=topic), message(protocol, data=b"later"))
            assert b"later" in read.take().payload or protocol == "MQTT3"
            assert read.is_empty()


@pytest.mark.matrix("CE-66", "CE-67", "CE-68")
def test_binary_mode_has_attributes_beside_expiry_and_own_properties(mosquitto: Mosquitto) -> None:
    own = {"zone-of": "Zürich", "a": ""}
    to = target("MQTT5", sink(mosquitto.port), topicname="binary", expiry=600, userproperties=own)
    with reader(mosquitto.port, "binary") as read:
        assert send(to, message("MQTT5", data=b"\x00\xff", datacontenttype="application/octet-stream")) == [Accepted()]
        received = read.take()
    found = properties(received)
    assert received.payload == b"\x00\xff"
    assert found["ContentType"] == "application/octet-stream"
    assert 595 <= found["MessageExpiryInterval"] <= 600
    shown = dict(found["UserProperty"])
    assert shown == {
        "specversion": "1.0",
        "id": "7Q",
        "source": "/principal/aaaaa-aa",
        "type": "io.relaycast.data.published",
        "subject": 'Zoë "50 %"',
        "time": "2026-01-01T00:00:00.123Z",
        "blocknumber": "7",
        "zone": "true",
        **own,
    }


def test_user_properties_that_are_kept_secret_are_sent_with_the_others(mosquitto: Mosquitto) -> None:
    secrets = {"userproperties": {"x-token": SECRET}}
    to = target("MQTT5", sink(mosquitto.port), topicname="hidden", userproperties={"zone": "a"}, secrets=secrets)
    with reader(mosquitto.port, "hidden") as read:
        assert send(to, message("MQTT5")) == [Accepted()]
        shown = dict(properties(read.take())["UserProperty"])
    assert (shown["zone"], shown["x-token"]) == ("a", SECRET)


@pytest.mark.matrix("CE-69")
@pytest.mark.parametrize(("protocol", "mode"), [("MQTT3", "binary"), ("MQTT3", "structured"), ("MQTT5", "structured")])
def test_structured_mode_is_one_json_text(mosquitto: Mosquitto, protocol: str, mode: Any) -> None:
    with reader(mosquitto.port, "structured") as read:
        send(target(protocol, sink(mosquitto.port), topicname="structured"), message(protocol, mode))
        received = read.take()
    event = json.loads(received.payload)
    assert (event["subject"], event["data"]) == (EVENT["subject"], {"key": 1})
    if protocol == "MQTT5":
        assert properties(received)["ContentType"].startswith("application/cloudevents+json")


def test_messages_of_64_kib_and_many_at_once_arrive_in_order(mosquitto: Mosquitto) -> None:
    bodies = [bytes([number]) * 65_536 for number in range(50)]

    async def together(sender: Sender) -> list[SendOutcome]:
        return await asyncio.gather(*(sender.send(message("MQTT5", data=body)) for body in bodies))

    with reader(mosquitto.port, "many") as read:
        outcomes = with_sender(target("MQTT5", sink(mosquitto.port), topicname="many"), together)
        assert outcomes == [Accepted()] * 50
        assert [read.take().payload for _ in bodies] == bodies


@pytest.mark.matrix("CE-25")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_websocket_carries_it_too(mosquitto: Mosquitto, protocol: str) -> None:
    with reader(mosquitto.port, "ws") as read:
        to = target(protocol, f"{sink(mosquitto.websocket_port, 'ws')}/mqtt", topicname="ws")
        assert send(to, message(protocol)) == [Accepted()]
        assert read.take().payload


def test_tls_carries_it_to_a_broker_whose_certificate_is_trusted(
    mosquitto: Mosquitto, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = target("MQTT5", sink(mosquitto.tls_port, "mqtts", "localhost"), topicname="tls")
    (distrusted,) = send(to, message("MQTT5"))
    assert isinstance(distrusted, Retryable)
    assert "certificate" in distrusted.reason.lower()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
    with reader(mosquitto.port, "tls") as read:
        assert send(to, message("MQTT5")) == [Accepted()]
        assert read.take().payload
    (misnamed,) = send(target("MQTT5", sink(mosquitto.tls_port, "mqtts"), topicname="tls"), message("MQTT5"))
    assert isinstance(misnamed, Retryable)


def test_a_websocket_over_tls_carries_it_too(
    mosquitto: Mosquitto, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
    to = target("MQTT5", f"{sink(mosquitto.wss_port, 'wss', 'localhost')}/mqtt", topicname="wss", qos=2)
    with reader(mosquitto.port, "wss") as read:
        assert send(to, *[message("MQTT5", data=bytes(70_000))] * 3) == [Accepted()] * 3
        assert len(read.take().payload) == 70_000


@pytest.mark.matrix("CE-114")
def test_proxies_of_the_environment_are_not_used(mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mqtt_proxy", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for scheme, port in (("mqtt", mosquitto.port), ("ws", mosquitto.websocket_port)):
        assert send(target("MQTT5", sink(port, scheme), topicname="t"), message("MQTT5")) == [Accepted()]


@pytest.mark.matrix("CE-114")
@pytest.mark.parametrize(("code", "kind"), [(0x9C, Retryable), (0x9D, Refused)])
def test_a_reference_to_another_server_is_not_followed(code: int, kind: type[SendOutcome]) -> None:
    met: list[object] = []

    async def referred(sender: Sender) -> SendOutcome:
        async def refer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            named = f"127.0.0.1:{elsewhere}".encode()
            given = bytes([0x1C]) + len(named).to_bytes(2, "big") + named
            writer.write(bytes([0x20, len(given) + 3, 0, code, len(given)]) + given)
            await writer.drain()
            writer.close()

        async def meet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            met.append(writer)
            writer.close()

        servers = [await asyncio.start_server(refer, "127.0.0.1", port)]
        servers.append(await asyncio.start_server(meet, "127.0.0.1", elsewhere))
        async with servers[0], servers[1]:
            outcome = await sender.send(message("MQTT5"))
            await asyncio.sleep(0.2)
            return outcome

    port, elsewhere = free_port(), free_port()
    outcome = with_sender(target("MQTT5", sink(port), topicname="t"), referred)
    assert isinstance(outcome, kind)
    assert isinstance(outcome, Retryable | Refused)
    assert "its reference to another server is not followed" in outcome.reason
    assert met == []


def test_a_lost_connection_is_opened_again(tmp_path: Path) -> None:
    port = free_port()

    async def thrice(sender: Sender) -> list[SendOutcome]:
        with plain_mosquitto(tmp_path, port):
            first = await sender.send(message("MQTT5"))
        away = await sender.send(message("MQTT5"))
        with plain_mosquitto(tmp_path, port):
            return [first, away, await sender.send(message("MQTT5"))]

    first, away, last = with_sender(target("MQTT5", sink(port), topicname="t"), thrice)
    assert (first, last) == (Accepted(), Accepted())
    assert isinstance(away, Retryable)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_credential_opens_the_door_and_a_wrong_one_is_refused(mosquitto: Mosquitto, protocol: str) -> None:
    right = {"identifier": "user", "secret": SECRET}
    to = target(protocol, sink(mosquitto.closed_port), topicname="open/a", secrets=right)
    with reader(mosquitto.closed_port, "open/a", user="user", password=SECRET) as read:
        assert send(to, message(protocol)) == [Accepted()]
        assert read.take().payload
        in_sink = f"mqtt://user:{SECRET}@127.0.0.1:{mosquitto.closed_port}"
        assert send(target(protocol, in_sink, topicname="open/a"), message(protocol)) == [Accepted()]
    (wrong,) = send(target(protocol, in_sink.replace(SECRET, "wrong"), topicname="open/a"), message(protocol))
    assert isinstance(wrong, Refused)


def test_a_topic_that_the_broker_denies_is_refused(mosquitto: Mosquitto) -> None:
    secrets = {"identifier": "user", "secret": SECRET}
    to = target("MQTT5", sink(mosquitto.closed_port), topicname="denied/a", secrets=secrets)
    assert send(to, message("MQTT5")) == [Refused("the broker refused the message: Not authorized")]


def test_a_message_beyond_the_brokers_packet_is_refused_and_the_next_arrives(mosquitto: Mosquitto) -> None:
    secrets = {"identifier": "user", "secret": SECRET}
    to = target("MQTT5", sink(mosquitto.closed_port), topicname="open/big", secrets=secrets)
    large, small = send(to, message("MQTT5", data=b"x" * 100_001), message("MQTT5"))
    assert isinstance(large, Refused)
    assert "the broker takes 100000" in large.reason
    assert small == Accepted()


def test_a_broker_that_is_not_there_may_be_tried_again() -> None:
    (outcome,) = send(target("MQTT5", sink(free_port()), topicname="t"), message("MQTT5"))
    assert isinstance(outcome, Retryable)
    assert "refused" in outcome.reason


@pytest.mark.matrix("CE-104", "CE-114")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
def test_no_spelling_of_the_loopback_is_connected_to(mosquitto: Mosquitto, host: str) -> None:
    (outcome,) = send(target("MQTT5", sink(mosquitto.port, host=host), topicname="t"), message("MQTT5"), allow=())
    assert isinstance(outcome, Retryable)
    assert outcome.reason.startswith("the sink is refused: ")
