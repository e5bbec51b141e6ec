"""A proton container takes what the AMQP sender sends."""

import asyncio
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from brokers.broker_processes import Certificate, free_port
from brokers.deliveries import EVENT, SECRET, message, send, target, with_sender
from peers import missing
from relaycast_gateway.cloudevents.encoding import encode
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, Sender, SendOutcome

if TYPE_CHECKING:
    from brokers.amqp_peer import AmqpPeer

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module", autouse=True)
def _proton() -> None:
    try:
        import proton  # noqa: F401, PLC0415
    except ImportError as error:
        missing(f"no AMQP library: {error}")


@pytest.fixture(scope="module")
def peer(_proton: None) -> "Iterator[AmqpPeer]":
    from brokers.amqp_peer import amqp_peer  # noqa: PLC0415

    with amqp_peer() as it:
        yield it


def sink(port: int, address: str = "accept", scheme: str = "amqp", host: str = "127.0.0.1") -> str:
    return f"{scheme}://{host}:{port}/{address}"


@pytest.mark.matrix("CE-70", "CE-74", "CE-101")
@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_"])
def test_binary_mode_has_typed_application_properties(peer: "AmqpPeer", prefix: str) -> None:
    from proton import timestamp  # noqa: PLC0415

    to = target("AMQP", sink(peer.port), attributeprefix=prefix)
    encoded = encode({**EVENT, "digest": b"\x00\xff"}, b"\x00\xff", "AMQP", "binary", amqp_prefix=prefix)
    assert send(to, encoded) == [Accepted()]
    received = peer.take()
    assert received.body == b"\x00\xff"
    assert received.content_type == "application/json"
    found = {name.removeprefix(prefix): value for name, value in received.properties.items()}
    assert found == {
        "specversion": "1.0",
        "id": "7Q",
        "source": "/principal/aaaaa-aa",
        "type": "io.relaycast.data.published",
        "subject": EVENT["subject"],
        "time": 1_767_225_600_123,
        "blocknumber": 7,
        "zone": True,
        "digest": b"\x00\xff",
    }
    assert isinstance(found["time"], timestamp)
    assert type(found["zone"]) is bool
    assert type(found["blocknumber"]) is int  # a long; int32 and others have classes of their own


def test_structured_mode_is_one_json_text(peer: "AmqpPeer") -> None:
    assert send(target("AMQP", sink(peer.port)), message("AMQP", "structured")) == [Accepted()]
    received = peer.take()
    event = json.loads(received.body)
    assert (event["subject"], event["data"]) == (EVENT["subject"], {"key": 1})
    assert received.content_type == "application/cloudevents+json; charset=utf-8"


@pytest.mark.matrix("CE-70")
def test_the_address_of_the_settings_is_the_target_of_the_link(peer: "AmqpPeer") -> None:
    to = target("AMQP", f"amqp://127.0.0.1:{peer.port}", address="a/b c?d")
    assert send(to, message("AMQP")) == [Accepted()]
    assert peer.links[-1][1] == "a/b c?d"
    peer.take()


@pytest.mark.matrix("CE-71")
def test_the_link_has_its_name_or_a_random_one(peer: "AmqpPeer") -> None:
    named = target("AMQP", sink(peer.port), linkname="the link")
    for to in (named, target("AMQP", sink(peer.port)), target("AMQP", sink(peer.port))):
        assert send(to, message("AMQP")) == [Accepted()]
        peer.take()
    names = [link[0] for link in peer.links[-3:]]
    assert names[0] == "the link"
    assert len(set(names)) == 3


@pytest.mark.matrix("CE-73")
def test_the_peer_sees_the_properties_of_the_link(peer: "AmqpPeer") -> None:
    own, hidden = {"zone": "Zürich", "level": 7, "is-test": True}, {"x-token": SECRET}
    to = target("AMQP", sink(peer.port), linkproperties=own, secrets={"linkproperties": hidden})
    assert send(to, message("AMQP")) == [Accepted()]
    assert dict(peer.links[-1][2]) == own | hidden
    peer.take()


@pytest.mark.matrix("CE-72")
def test_settled_transfers_wait_for_no_disposition_and_others_do(peer: "AmqpPeer") -> None:
    settled = target("AMQP", sink(peer.port, "ignore"), sendersettlementmode="settled")
    assert send(settled, message("AMQP")) == [Accepted()]
    peer.take()
    assert peer.were_settled[-1] is True

    async def waits(sender: Sender) -> bool:
        sending = asyncio.ensure_future(sender.send(message("AMQP")))
        await asyncio.to_thread(peer.take)
        await asyncio.wait({sending}, timeout=0.2)
        is_waiting = not sending.done()
        sending.cancel()
        await asyncio.wait({sending})
        return is_waiting

    assert with_sender(target("AMQP", sink(peer.port, "ignore")), waits)
    assert peer.were_settled[-1] is False


@pytest.mark.matrix("CE-74")
@pytest.mark.parametrize(
    ("address", "outcome"),
    [
        ("accept", Accepted()),
        ("reject", Refused("the peer rejected the message: app:unwanted not this one")),
        ("release", Retryable("the peer released the message")),
        ("modify", Retryable("the peer released the message")),
    ],
)
def test_each_disposition_has_its_outcome(peer: "AmqpPeer", address: str, outcome: SendOutcome) -> None:
    assert send(target("AMQP", sink(peer.port, address)), message("AMQP"), message("AMQP")) == [outcome, outcome]
    peer.take()
    peer.take()


def test_many_at_once_arrive_in_order_beyond_the_first_credit(peer: "AmqpPeer") -> None:
    bodies = [bytes([number]) * 65_536 for number in range(50)]

    async def together(sender: Sender) -> list[SendOutcome]:
        return await asyncio.gather(*(sender.send(message("AMQP", data=body)) for body in bodies))

    assert with_sender(target("AMQP", sink(peer.port)), together) == [Accepted()] * 50
    assert [peer.take().body for _ in bodies] == bodies


def test_a_node_that_does_not_exist_is_refused(peer: "AmqpPeer") -> None:
    (outcome,) = send(target("AMQP", sink(peer.port, "absent")), message("AMQP"))
    assert outcome == Refused("the peer closed the link: amqp:not-found no such node")


def test_a_message_beyond_the_largest_of_the_link_is_refused() -> None:
    from brokers.amqp_peer import amqp_peer  # noqa: PLC0415

    with amqp_peer(largest=10_000) as small:
        large, next_one = send(target("AMQP", sink(small.port)), message("AMQP", data=bytes(10_000)), message("AMQP"))
    assert isinstance(large, Refused)
    assert "the peer takes 10000" in large.reason
    assert next_one == Accepted()


def test_tls_carries_it_to_a_peer_whose_certificate_is_trusted(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    from brokers.amqp_peer import amqp_peer  # noqa: PLC0415

    with amqp_peer(tls=certificate) as closed:
        to = target("AMQP", sink(closed.port, scheme="amqps", host="localhost"))
        (distrusted,) = send(to, message("AMQP"))
        assert isinstance(distrusted, Retryable)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certificate))
        assert send(to, message("AMQP")) == [Accepted()]
        (misnamed,) = send(target("AMQP", sink(closed.port, scheme="amqps")), message("AMQP"))
        assert isinstance(misnamed, Retryable)


def test_a_lost_connection_is_opened_again(peer: "AmqpPeer") -> None:
    async def thrice(sender: Sender) -> list[SendOutcome]:
        first = await sender.send(message("AMQP"))
        peer.hang_up()
        await asyncio.sleep(0.3)
        return [first, await sender.send(message("AMQP"))]

    assert with_sender(target("AMQP", sink(peer.port)), thrice) == [Accepted(), Accepted()]
    peer.take()
    peer.take()


def test_a_peer_that_is_not_there_may_be_tried_again() -> None:
    (outcome,) = send(target("AMQP", sink(free_port())), message("AMQP"))
    assert isinstance(outcome, Retryable)
    assert "refused" in outcome.reason


@pytest.mark.matrix("CE-104", "CE-114")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
def test_no_spelling_of_the_loopback_is_connected_to(peer: "AmqpPeer", host: str) -> None:
    (outcome,) = send(target("AMQP", sink(peer.port, host=host)), message("AMQP"), allow=())
    assert isinstance(outcome, Retryable)
    assert outcome.reason.startswith("the sink is refused: ")
