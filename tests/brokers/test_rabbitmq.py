"""RabbitMQ with its plug-in for AMQP 1.0 takes what the AMQP sender sends."""

from datetime import UTC, datetime

import pytest

from brokers.deliveries import EVENT, SECRET, message, send, target
from brokers.subscriptions import EXPECTED, consumer, deliver, taken
from peers import missing
from relaycast_gateway.delivery.sender import Accepted, Refused, Target

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module", autouse=True)
def _proton() -> None:
    try:
        import proton  # noqa: F401, PLC0415
    except ImportError as error:
        missing(f"no AMQP library: {error}")


def rabbit(port: int, credential: str = "guest:guest", address: str = "/queue/events") -> Target:
    return target("AMQP", f"amqp://{credential}@127.0.0.1:{port}", address=address)


@pytest.mark.matrix("CE-70", "CE-74", "CE-101")
def test_rabbitmq_takes_it_into_a_queue(rabbitmq: int) -> None:
    from proton.utils import BlockingConnection  # noqa: PLC0415

    sent = [message("AMQP", data=b"%d" % number) for number in range(20)]
    assert send(rabbit(rabbitmq), *sent) == [Accepted()] * 20
    connection = BlockingConnection(f"amqp://guest:guest@127.0.0.1:{rabbitmq}", timeout=10)
    receiver = connection.create_receiver("/queue/events", credit=20)
    received = [receiver.receive(timeout=10) for _ in sent]
    assert [bytes(it.body) for it in received] == [it.body for it in sent]
    connection.close()
    assert received[0].properties["cloudEvents_subject"] == EVENT["subject"]
    assert datetime.fromtimestamp(received[0].properties["cloudEvents_time"] / 1_000, UTC).year == 2026


def test_rabbitmq_refuses_a_wrong_password_and_an_exchange_that_does_not_exist(rabbitmq: int) -> None:
    (wrong,) = send(rabbit(rabbitmq, f"guest:{SECRET}"), message("AMQP"))
    assert isinstance(wrong, Refused)
    (absent,) = send(rabbit(rabbitmq, address="/exchange/absent"), message("AMQP"))
    assert isinstance(absent, Refused)


@pytest.mark.matrix("CE-01", "CE-23", "CE-101")
def test_events_go_from_the_log_to_a_consumer(rabbitmq: int) -> None:
    with consumer("amqp", "127.0.0.1", str(rabbitmq), "/queue/chain") as lines:
        deliver("AMQP", f"amqp://guest:guest@127.0.0.1:{rabbitmq}", address="/queue/chain")
        assert taken(lines) == EXPECTED
