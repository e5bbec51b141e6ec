"""From the event log to a consumer that knows nothing but its own protocol, for each but AMQP (see RabbitMQ)."""

import pytest

from brokers.broker_processes import Mosquitto
from brokers.sdk_receivers import python_receiver
from brokers.subscriptions import COUNT, EXPECTED, consumer, deliver, taken
from peers import missing

pytestmark = pytest.mark.brokers


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
def test_http() -> None:
    with python_receiver() as receiver:
        deliver("HTTP", f"http://127.0.0.1:{receiver.port}/")
        events = [receiver.take() for _ in range(COUNT)]
    assert [f"{it.attributes['type']} {it.attributes['subject']} {it.data}" for it in events] == EXPECTED
