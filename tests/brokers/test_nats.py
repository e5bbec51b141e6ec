"""nats-server takes what the NATS sender sends, and nats-py reads it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest
from nats.aio.client import Client
from nats.aio.subscription import Subscription

from brokers.broker_processes import Certificate, free_port, nats_server
from brokers.deliveries import EVENT, SECRET, message, send, target, with_sender
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, Sender, SendOutcome

pytestmark = pytest.mark.brokers


@asynccontextmanager
async def reader(port: int, subject: str) -> AsyncIterator[Subscription]:
    client = Client()
    await client.connect(f"nats://127.0.0.1:{port}")
    subscription = await client.subscribe(subject)
    await client.flush()
    try:
        yield subscription
    finally:
        await client.close()


def sink(port: int, scheme: str = "nats", host: str = "127.0.0.1") -> str:
    return f"{scheme}://{host}:{port}"


@pytest.mark.matrix("CE-80", "CE-81", "CE-101")
def test_binary_mode_has_percent_encoded_headers(nats: int) -> None:
    async def seen(sender: Sender) -> None:
        async with reader(nats, "binary.ë") as read:
            assert await sender.send(message("NATS", data=b"\x00\xff", datacontenttype="application/x")) == Accepted()
            received = await read.next_msg(10)
        headers = received.headers or {}
        assert received.data == b"\x00\xff"
        assert unquote(headers["ce-subject"]) == EVENT["subject"]
        assert headers["ce-datacontenttype"] == "application/x"
        assert headers["ce-time"] == "2026-01-01T00:00:00.123Z"
        assert "Content-Type" not in headers

    with_sender(target("NATS", sink(nats), subject="binary.ë"), seen)


@pytest.mark.matrix("CE-81")
def test_structured_mode_is_one_json_text(nats: int) -> None:
    async def seen(sender: Sender) -> None:
        async with reader(nats, "structured") as read:
            assert await sender.send(message("NATS", "structured")) == Accepted()
            received = await read.next_msg(10)
        event = json.loads(received.data)
        assert (event["subject"], event["data"]) == (EVENT["subject"], {"key": 1})
        assert (received.headers or {})["Content-Type"] == "application/cloudevents+json; charset=utf-8"

    with_sender(target("NATS", sink(nats), subject="structured"), seen)


@pytest.mark.matrix("CE-81")
def test_a_stream_that_is_bound_to_the_subject_acknowledges(nats: int) -> None:
    async def kept(sender: Sender) -> None:
        client = Client()
        await client.connect(sink(nats))
        streams = client.jetstream()
        await streams.add_stream(name="kept", subjects=["kept.>"], max_msg_size=100_000)
        bodies = [b"%d" % number for number in range(20)]
        outcomes = await asyncio.gather(*(sender.send(message("NATS", data=body)) for body in bodies))
        assert outcomes == [Accepted()] * 20
        large = await sender.send(message("NATS", data=bytes(120_000)))
        assert large == Refused("the stream refused the message: message size exceeds maximum allowed")
        state = (await streams.stream_info("kept")).state
        assert state.messages == 20
        assert [(await streams.get_msg("kept", number + 1)).data for number in range(20)] == bodies
        await streams.delete_stream("kept")
        gone = await sender.send(message("NATS"))
        assert isinstance(gone, Retryable)
        assert await sender.send(message("NATS")) == Accepted()  # as an ordinary message
        await client.close()

    with_sender(target("NATS", sink(nats), subject="kept.a"), kept)


def test_many_at_once_arrive_in_order_and_one_too_large_is_refused(nats: int) -> None:
    bodies = [bytes([number]) * 65_536 for number in range(50)]

    async def seen(sender: Sender) -> None:
        async with reader(nats, "many") as read:
            outcomes = await asyncio.gather(*(sender.send(message("NATS", data=body)) for body in bodies))
            assert outcomes == [Accepted()] * 50
            assert [(await read.next_msg(10)).data for _ in bodies] == bodies
        large = await sender.send(message("NATS", data=bytes(200_001)))
        assert large == Refused("the message has 200001 bytes, the server takes 200000")

    with_sender(target("NATS", sink(nats), subject="many"), seen)


AUTHORIZATION = """
authorization {
  users = [{ user: user, password: s3cret, permissions: { publish: ["open.>"], subscribe: ["open.>", "_INBOX.>"] } }]
}
"""


def test_a_credential_opens_the_door_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    with nats_server(tmp_path, AUTHORIZATION) as port:
        right = {"identifier": "user", "secret": SECRET}
        assert send(target("NATS", sink(port), subject="open.a", secrets=right), message("NATS")) == [Accepted()]
        in_sink = f"nats://user:{SECRET}@127.0.0.1:{port}"
        assert send(target("NATS", in_sink, subject="open.a"), message("NATS")) == [Accepted()]
        for wrong in (in_sink.replace(SECRET, "wrong"), sink(port)):
            (outcome,) = send(target("NATS", wrong, subject="open.a"), message("NATS"))
            assert isinstance(outcome, Refused)
        denied, again = send(target("NATS", in_sink, subject="denied.a"), message("NATS"), message("NATS"))
        assert denied == again
        assert isinstance(denied, Refused)
        assert "Permissions Violation" in denied.reason or "permissions violation" in denied.reason


def test_a_token_opens_the_door(tmp_path: Path) -> None:
    with nats_server(tmp_path, f'authorization {{ token: "{SECRET}" }}') as port:
        token = {"accesstoken": SECRET}
        assert send(target("NATS", sink(port), subject="a", secrets=token), message("NATS")) == [Accepted()]
        assert send(target("NATS", f"nats://{SECRET}@127.0.0.1:{port}", subject="a"), message("NATS")) == [Accepted()]


def test_tls_is_required_where_the_scheme_says_so(
    nats: int, tmp_path: Path, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    (in_the_clear,) = send(target("NATS", sink(nats, "tls"), subject="a"), message("NATS"))
    assert in_the_clear == Refused("the server offers no TLS, and the sink's scheme is tls")
    tls = f'tls {{ cert_file: "{certificate.certificate}", key_file: "{certificate.key}" }}'
    with nats_server(tmp_path, tls) as port:
        to = target("NATS", sink(port, "tls", "localhost"), subject="a")
        (distrusted,) = send(to, message("NATS"))
        assert isinstance(distrusted, Retryable)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
        assert send(to, message("NATS")) == [Accepted()]
        (misnamed,) = send(target("NATS", sink(port, "tls"), subject="a"), message("NATS"))
        assert isinstance(misnamed, Retryable)


@pytest.mark.matrix("CE-114")
def test_servers_that_a_server_announces_are_not_connected_to(tmp_path: Path) -> None:
    met: list[object] = []

    async def lost(sender: Sender) -> list[SendOutcome]:
        async def meet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            met.append(writer.get_extra_info("peername"))
            writer.close()

        async with await asyncio.start_server(meet, "127.0.0.1", inner):
            with nats_server(tmp_path, announced, port=outer, has_streams=False):
                first = await sender.send(message("NATS"))
            await asyncio.sleep(0.2)
            return [first, await sender.send(message("NATS"))]

    inner = free_port()
    announced = f"""
cluster {{ name: c, listen: "127.0.0.1:{free_port()}" }}
client_advertise: "127.0.0.1:{inner}"
"""
    outer = free_port()
    first, second = with_sender(target("NATS", sink(outer), subject="a"), lost)
    assert first == Accepted()
    assert isinstance(second, Retryable)
    assert met == []


@pytest.mark.matrix("CE-104", "CE-114")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
def test_no_spelling_of_the_loopback_is_connected_to(nats: int, host: str) -> None:
    (outcome,) = send(target("NATS", sink(nats, host=host), subject="a"), message("NATS"), allow=())
    assert isinstance(outcome, Retryable)
    assert outcome.reason.startswith("the sink is refused: ")


def test_a_second_host_serves_where_the_first_does_not(nats: int) -> None:
    to = target("NATS", f"nats://127.0.0.1:{free_port()},127.0.0.1:{nats}", subject="a")
    assert send(to, message("NATS")) == [Accepted()]
    (outcome,) = send(target("NATS", sink(free_port()), subject="a"), message("NATS"))
    assert outcome == Retryable("no connection: Connection refused")
