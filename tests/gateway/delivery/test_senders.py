"""Which sender serves which protocol, and what all senders with a lasting connection share."""

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable

import pytest

from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.cloudevents.protocol_settings import SETTINGS
from relaycast_gateway.delivery.connected_sender import CannotSend, ConnectedSender, SinkPlace, first_of, told
from relaycast_gateway.delivery.sender import Accepted, Refused, Retryable, SendOutcome, Target
from relaycast_gateway.delivery.senders import SENDERS, sender_class, sender_of
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.wire_message import WireMessage

HELLO = WireMessage(b"hello")
PUBLIC = "nats://user:hunter2@8.8.8.8"


class Peer:
    """A connection that is open until it is closed."""

    def __init__(self) -> None:
        self.is_open = True
        self.taken: list[bytes] = []

    async def send(self, message: WireMessage) -> SendOutcome:
        self.taken.append(message.body)
        return Refused("hunter2 and Bearer-xyz are unwelcome") if message.body == b"bad" else Accepted()

    async def close(self) -> None:
        self.is_open = False


class Trying(ConnectedSender):
    """Opens what it is told to open, and counts."""

    def __init__(self, target: Target, guard: SinkGuard, connect: Callable[[list[SinkPlace]], Awaitable[Peer]]) -> None:
        super().__init__(target, guard)
        self._connect = connect
        self.attempts = 0

    async def open(self, places: list[SinkPlace]) -> Peer:
        self.attempts += 1
        return await self._connect(places)


def trying(connect: Callable[[list[SinkPlace]], Awaitable[Peer]], sink: str = PUBLIC) -> Trying:
    secrets = {"headers": {"authorization": "Bearer-xyz"}}
    return Trying(Target("NATS", sink, {"headers": {"a": "b"}}, secrets), SinkGuard(), connect)


async def open_peer(_places: list[SinkPlace]) -> Peer:
    return Peer()


@pytest.mark.matrix("CE-01")
def test_every_protocol_has_a_sender() -> None:
    assert set(SENDERS) == set(SETTINGS)


@pytest.mark.parametrize(
    ("protocol", "library", "extra"),
    [("MQTT3", "paho", "mqtt"), ("MQTT5", "paho", "mqtt"), ("NATS", "nats", "nats"), ("KAFKA", "aiokafka", "kafka"),
     ("AMQP", "proton", "amqp")],
)  # fmt: skip
def test_a_missing_library_is_named_with_its_extra(
    protocol: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [it for it in sys.modules if it == library or it.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    for name in ("amqp_reactor", SENDERS[protocol].module.rpartition(".")[2]):
        monkeypatch.delitem(sys.modules, f"relaycast_gateway.delivery.{name}", raising=False)
    importlib.invalidate_caches()
    make = sender_of(SinkGuard(), VirtualClock())
    said = rf"{protocol} sinks need the library {library}.*: pip install -e '\.\[{extra}\]' in the clone of relaycast"
    with pytest.raises(ValueError, match=said):
        make(Target(protocol, "x", {}))


def test_an_unknown_protocol_has_no_sender() -> None:
    with pytest.raises(ValueError, match="got 'WAMP', expected one of HTTP, MQTT3"):
        sender_class("WAMP")


def test_one_connection_serves_until_it_is_lost() -> None:
    async def sent() -> tuple[int, int]:
        peers: list[Peer] = []

        async def connect(_places: list[SinkPlace]) -> Peer:
            peers.append(Peer())
            return peers[-1]

        sender = trying(connect)
        assert await asyncio.gather(*(sender.send(HELLO) for _ in range(5))) == [Accepted()] * 5
        peers[0].is_open = False
        assert await sender.send(HELLO) == Accepted()
        await sender.close()
        assert [peer.is_open for peer in peers] == [False, False]
        return sender.attempts, len(peers[0].taken)

    assert asyncio.run(sent()) == (2, 5)


def test_senders_that_wait_share_one_failure() -> None:
    async def sent() -> int:
        async def connect(_places: list[SinkPlace]) -> Peer:
            await asyncio.sleep(0)
            raise ConnectionRefusedError(111, "Connect call failed ('8.8.8.8', 4222)")

        sender = trying(connect)
        outcomes = await asyncio.gather(*(sender.send(HELLO) for _ in range(5)))
        assert outcomes == [Retryable("no connection: Connection refused")] * 5
        return sender.attempts

    assert asyncio.run(sent()) == 1


@pytest.mark.matrix("CE-104")
@pytest.mark.parametrize(
    "sink", ["nats://127.0.0.1", "nats://10.0.0.1:1", "nats://[::ffff:10.0.0.1]", "nats://2130706433"]
)
def test_a_refused_address_is_never_opened(sink: str) -> None:
    async def sent() -> int:
        sender = trying(open_peer, sink)
        outcome = await sender.send(HELLO)
        assert isinstance(outcome, Retryable)
        assert outcome.reason.startswith("the sink is refused: it is ")
        return sender.attempts

    assert asyncio.run(sent()) == 0


@pytest.mark.matrix("CE-115")
def test_no_reason_repeats_a_secret() -> None:
    async def reasons() -> list[SendOutcome]:
        async def connect(_places: list[SinkPlace]) -> Peer:
            raise CannotSend(Retryable("hunter2 is no password"))

        failing, open_ = trying(connect), trying(open_peer)
        assert "hunter2" not in repr(failing.target.settings) + repr(failing.address)
        return [await failing.send(HELLO), await open_.send(WireMessage(b"bad"))]

    assert asyncio.run(reasons()) == [Retryable("*** is no password"), Refused("*** and *** are unwelcome")]


def test_a_closed_sender_opens_nothing() -> None:
    async def sent() -> tuple[SendOutcome, int]:
        sender = trying(open_peer)
        await sender.close()
        return await sender.send(HELLO), sender.attempts

    assert asyncio.run(sent()) == (Retryable("the sender is closed"), 0)


def test_the_first_address_that_answers_is_taken() -> None:
    async def connect(place: SinkPlace) -> str:
        if place.ip != "3":
            raise OSError(f"not {place.ip}")
        return place.ip

    places = [SinkPlace("h", number, 1) for number in "1234"]
    assert asyncio.run(first_of(places, connect)) == "3"
    with pytest.raises(OSError, match="not 2"):
        asyncio.run(first_of(places[:2], connect))


def test_what_an_error_says_is_one_short_line() -> None:
    assert told(OSError("a\n b")) == "a b"
    assert told(TimeoutError()) == "TimeoutError"
    assert len(told(OSError("x" * 1_000))) == 300
