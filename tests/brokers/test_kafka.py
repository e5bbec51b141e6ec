"""A cluster of librdkafka's mock brokers takes what the Kafka sender sends, and librdkafka's consumer reads it."""

import asyncio
import json
import logging
import struct
from typing import Any

import pytest

from brokers.broker_processes import free_port
from brokers.deliveries import EVENT, message, send, target, with_sender
from peers import missing
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, Sender, SendOutcome

try:
    import confluent_kafka
except ImportError as error:  # no wheel for this machine
    confluent_kafka = None  # type: ignore[assignment]
    NO_LIBRARY = str(error)

pytestmark = pytest.mark.brokers


class Cluster:
    """Three brokers in this process, on real sockets; topics appear when they are first named."""

    def __init__(self) -> None:
        self._owner = confluent_kafka.Producer({"test.mock.num.brokers": 3, "log_level": 0})
        found = self._owner.list_topics(timeout=20).brokers.values()
        self.hosts = ",".join(f"{broker.host}:{broker.port}" for broker in found)

    def take(self, topic: str, count: int) -> list[Any]:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.hosts, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
        )
        try:
            partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
            consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
            found: list[Any] = []
            while len(found) < count:
                found += [it for it in consumer.consume(count - len(found), timeout=20) if it.error() is None]
            return found
        finally:
            consumer.close()


@pytest.fixture(scope="module")
def kafka() -> Cluster:
    if confluent_kafka is None:
        missing(NO_LIBRARY)
    return Cluster()


@pytest.mark.matrix("CE-75", "CE-79", "CE-101")
@pytest.mark.parametrize("form", ["kafka://{hosts}/{topic}", "kafka://{hosts}"])
def test_binary_mode_has_headers_with_an_underscore(kafka: Cluster, form: str) -> None:
    topic = f"binary{len(form)}"
    settings = {} if "topic" in form else {"topicname": topic}
    to = target("KAFKA", form.format(hosts=kafka.hosts, topic=topic), **settings)
    outcome = send(to, message("KAFKA", data=b"\x00\xff", datacontenttype="application/x"))
    assert outcome == [Accepted()]
    (received,) = kafka.take(topic, 1)
    headers = {name: value.decode() for name, value in received.headers()}
    assert (received.value(), received.key()) == (b"\x00\xff", None)
    assert headers == {
        "ce_specversion": "1.0",
        "ce_id": "7Q",
        "ce_source": "/principal/aaaaa-aa",
        "ce_type": "io.relaycast.data.published",
        "ce_subject": EVENT["subject"],
        "ce_time": "2026-01-01T00:00:00.123Z",
        "ce_blocknumber": "7",
        "ce_zone": "true",
        "content-type": "application/x",
    }


@pytest.mark.matrix("CE-79")
def test_structured_mode_is_one_json_text(kafka: Cluster) -> None:
    assert send(target("KAFKA", f"kafka://{kafka.hosts}/structured"), message("KAFKA", "structured")) == [Accepted()]
    (received,) = kafka.take("structured", 1)
    event = json.loads(received.value())
    assert (event["subject"], event["data"]) == (EVENT["subject"], {"key": 1})
    assert received.headers() == [("content-type", b"application/cloudevents+json; charset=utf-8")]


@pytest.mark.matrix("CE-76")
def test_equal_keys_share_a_partition(kafka: Cluster) -> None:
    messages = [
        message("KAFKA", key_attribute="subject", subject=f"key {number % 5}", data=b"%d" % number)
        for number in range(40)
    ]
    to = target("KAFKA", f"kafka://{kafka.hosts}/keyed", partitionkeyextractor="subject")
    assert send(to, *messages) == [Accepted()] * 40
    places: dict[bytes, set[int]] = {}
    for received in kafka.take("keyed", 40):
        places.setdefault(received.key(), set()).add(received.partition())
    assert set(places) == {b"key %d" % number for number in range(5)}
    assert [len(of_key) for of_key in places.values()] == [1] * 5
    assert len({partition for of_key in places.values() for partition in of_key}) > 1


@pytest.mark.matrix("CE-78")
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_the_produce_request_asks_for_the_acknowledgement(kafka: Cluster, acks: str) -> None:
    first, second = kafka.hosts.split(",")[:2]
    to = target("KAFKA", f"kafka://{first},{second}/acks{acks}", acks=acks)
    assert send(to, message("KAFKA"), message("KAFKA")) == [Accepted()] * 2
    assert len(kafka.take(f"acks{acks}", 2)) == 2


class Tap:
    """Listens as a broker, keeps what comes, and hands it on to the real one."""

    def __init__(self, to: str) -> None:
        self._host, _, port = to.partition(":")
        self._port = int(port)
        self.came = b""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_connection(self._host, self._port)

        async def copy(source: asyncio.StreamReader, to: asyncio.StreamWriter, *, keep: bool) -> None:
            while data := await source.read(65_536):
                self.came += data if keep else b""
                to.write(data)
            to.close()

        await asyncio.gather(copy(reader, back, keep=True), copy(onward, writer, keep=False), return_exceptions=True)


@pytest.mark.matrix("CE-77")
def test_the_broker_sees_the_client_id(kafka: Cluster) -> None:
    async def seen(sender: Sender) -> bytes:
        tap = Tap(kafka.hosts.split(",", maxsplit=1)[0])
        async with await asyncio.start_server(tap, "127.0.0.1", port):
            assert await sender.send(message("KAFKA")) == Accepted()
            return tap.came

    port = free_port()
    came = with_sender(target("KAFKA", f"kafka://127.0.0.1:{port}/t", clientid="relay-Ω"), seen)
    assert struct.pack(">h", 8) + "relay-Ω".encode() in came


def test_messages_of_64_kib_and_many_at_once_arrive(kafka: Cluster) -> None:
    bodies = [bytes([number]) * 65_536 for number in range(50)]

    async def together(sender: Sender) -> list[SendOutcome]:
        sent = [message("KAFKA", data=body, key_attribute="id") for body in bodies]
        return await asyncio.gather(*(sender.send(it) for it in sent))

    to = target("KAFKA", f"kafka://{kafka.hosts}/many", partitionkeyextractor="id")
    assert with_sender(to, together) == [Accepted()] * 50
    assert sorted(it.value() for it in kafka.take("many", 50)) == bodies


@pytest.mark.matrix("CE-104", "CE-114")
def test_no_broker_of_the_loopback_is_connected_to(kafka: Cluster) -> None:
    (outcome,) = send(target("KAFKA", f"kafka://{kafka.hosts}/t"), message("KAFKA"), allow=())
    assert isinstance(outcome, Retryable)
    assert outcome.reason.startswith("the sink is refused: ")


@pytest.mark.matrix("CE-114")
def test_brokers_that_the_metadata_name_are_judged_too(kafka: Cluster) -> None:
    first = kafka.hosts.split(",", maxsplit=1)[0]
    messages = [message("KAFKA", key_attribute="subject", subject=str(number)) for number in range(8)]
    to = target("KAFKA", f"kafka://{first}/judged", partitionkeyextractor="subject")
    outcomes = send(to, *messages, allow=[first])  # this host with this port, and no other
    refused = [it for it in outcomes if isinstance(it, Retryable)]
    assert refused
    assert all("loopback" in it.reason for it in refused)
    assert send(to, message("KAFKA")) == [Accepted()]


def test_a_cluster_that_is_not_there_may_be_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    (outcome,) = send(target("KAFKA", f"kafka://127.0.0.1:{free_port()}/t"), message("KAFKA"))
    assert isinstance(outcome, Retryable)
    assert "Unable to bootstrap" in outcome.reason


def test_a_message_beyond_the_largest_request_is_refused(kafka: Cluster) -> None:
    to = target("KAFKA", f"kafka://{kafka.hosts}/large")
    large, small = send(to, message("KAFKA", data=bytes(17 * 1024 * 1024)), message("KAFKA"))
    assert isinstance(large, Refused)
    assert small == Accepted()
