"""A sender of any protocol that is cancelled while its peer takes connections and says nothing."""

import asyncio

import pytest

from brokers.broker_processes import free_port
from brokers.deliveries import message, target, with_sender
from peers import missing
from relaycast_gateway.delivery.sender import Sender

pytestmark = pytest.mark.brokers


@pytest.mark.parametrize(
    ("protocol", "sink", "settings"),
    [
        ("AMQP", "amqp://127.0.0.1:{}/events", {}),
        ("KAFKA", "kafka://127.0.0.1:{}/t", {}),
        ("MQTT5", "mqtt://127.0.0.1:{}", {"topicname": "t"}),
        ("MQTT5", "mqtts://127.0.0.1:{}", {"topicname": "t"}),
        ("MQTT5", "ws://127.0.0.1:{}", {"topicname": "t"}),
        ("NATS", "nats://127.0.0.1:{}", {"subject": "a"}),
    ],
)
def test_a_sender_that_is_cancelled_leaves_nothing(protocol: str, sink: str, settings: dict[str, str]) -> None:
    if protocol == "AMQP":
        try:
            import proton  # noqa: F401, PLC0415
        except ImportError as error:
            missing(f"no AMQP library: {error}")

    async def cancelled(sender: Sender) -> bool:
        async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(writer)

        async with await asyncio.start_server(hold, "127.0.0.1", port):
            sending = asyncio.ensure_future(sender.send(message(protocol)))
            await asyncio.sleep(0.2)
            sending.cancel()
            await asyncio.wait({sending})
            for writer in held:
                writer.close()
            return sending.cancelled()

    held: list[asyncio.StreamWriter] = []
    port = free_port()
    assert with_sender(target(protocol, sink.format(port), **settings), cancelled)
    assert held
