"""Peers that break the protocol lose their own session, with the URI that says why; others go on as if nothing was."""

import socket
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec
import pytest

from wamp_clients.router_process import PREFIX, REALM, RouterProcess, router
from wamp_load import ENCODE, Wire

VIOLATION = "wamp.error.protocol_violation"
CARRIERS = ["rawsocket", "websocket"]
SERIALIZERS = ["json", "msgpack", "cbor"]
_numbers = count()
_open: list[Wire] = []


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    with router(tmp_path_factory.mktemp("router")) as it:
        yield it


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close whatever connection a test has opened."""
    yield
    while _open:
        _open.pop().close()


def wire(running: RouterProcess, carrier: str = "rawsocket", serializer: str = "msgpack") -> Wire:
    _open.append(Wire(running.ports[carrier], serializer, path="/wamp" if carrier == "websocket" else None))
    return _open[-1]


def joined(running: RouterProcess, carrier: str = "rawsocket", serializer: str = "msgpack") -> Wire:
    return wire(running, carrier, serializer).join(REALM)


@pytest.fixture
def bystander(running: RouterProcess) -> Iterator[Wire]:
    """Another client, for which nothing may change: it publishes, gets its own event and reads the history."""
    with_events = joined(running)
    topic = f"{PREFIX}bystander{next(_numbers)}"
    subscription = with_events.subscribe(topic)
    yield with_events
    published = with_events.publish(topic, "still here", options={"exclude_me": False})
    while not any(message[0] == 36 for message in with_events.parts):
        with_events.parts.append(with_events.receive())
    assert [message[2] for message in with_events.parts if message[0] == 36] == [published]
    events, _ = with_events.call("wamp.subscription.get_events", subscription)
    assert [event["publication"] for event in events] == [published]
    with_events.close()


def ending(broken: Wire) -> tuple[str | None, str]:
    """Return the URI of ABORT, if one came before the end of the connection, and what it says."""
    found: tuple[str | None, str] = (None, "")
    with suppress(ConnectionError):
        while True:
            message = broken.receive()
            if message[0] == 3:
                found = message[2], message[1].get("message", "")
    broken.close()
    return found


def nested(levels: int, serializer: str) -> bytes:
    value: Any = 1
    if serializer == "json":
        return b"[" * levels + b"]" * levels
    for _ in range(min(levels, 200)):
        value = [value]
    whole = ENCODE[serializer](value)
    return {"msgpack": b"\x91", "cbor": b"\x81"}[serializer] * (levels - 200) + whole if levels > 200 else whole


HELLO_ROLES: dict[str, Any] = {"roles": {"caller": {}, "publisher": {}, "subscriber": {}}}

BROKEN: dict[str, list[Any]] = {
    "no message": [],
    "an unknown type": [99, 1, {}],
    "a type of text": ["16", 1, {}, "com.example.x"],
    "too few elements": [16, 1],
    "too many elements": [32, 1, {}, "com.example.x", 5, 6, 7],
    "options that are a list": [16, 1, [], "com.example.x"],
    "a topic that is a number": [16, 1, {"acknowledge": True}, 5],
    "request 0": [16, 0, {}, "com.example.x"],
    "request -1": [48, -1, {}, "com.example.x"],
    "request 2^53 + 1": [48, (1 << 53) + 1, {}, "com.example.x"],
    "request 1.5": [48, 1.5, {}, "com.example.x"],
    "request true": [48, True, {}, "com.example.x"],
    "arguments that are text": [48, 1, {}, "com.example.x", "abc"],
    "HELLO twice": [1, REALM, HELLO_ROLES],
    "AUTHENTICATE unasked": [5, "x", {}],
    "WELCOME of a client": [2, 1, {}],
    "EVENT of a client": [36, 1, 1, {}],
    "RESULT of a client": [50, 1, {}],
    "INVOCATION of a client": [68, 1, 1, {}],
    "PUBLISHED of a client": [17, 1, 1],
}


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("name", BROKEN)
def test_a_message_that_the_protocol_does_not_allow_ends_the_session(
    running: RouterProcess, bystander: Wire, name: str, serializer: str
) -> None:
    broken = joined(running, "rawsocket", serializer)
    broken.send(BROKEN[name])
    uri, said = ending(broken)
    assert uri == VIOLATION
    assert said


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe\x00", id="no text and no message"),
        pytest.param(b"[16,1,{", id="cut short"),
        pytest.param(b"\xc1", id="a byte that MessagePack never uses"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="four billion elements in MessagePack"),
        pytest.param(b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", id="2^64 elements in CBOR"),
        pytest.param(b"\x83\x10\xd8\x1c\x81\xd8\x1d\x00\x01", id="a list that holds itself in CBOR"),
        pytest.param(b'[16,1,{"a":NaN},"x"]', id="NaN in JSON"),
    ],
)
def test_bytes_that_are_no_message_end_the_session(
    running: RouterProcess, bystander: Wire, carrier: str, serializer: str, data: bytes
) -> None:
    broken = joined(running, carrier, serializer)
    broken.socket.sendall(broken.framed(data))
    uri, said = ending(broken)
    if uri is None:  # WebSocket: text that is no UTF-8 is refused below WAMP
        assert (carrier, serializer) == ("websocket", "json")
    else:
        assert uri == VIOLATION
        assert said


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_values_nested_too_deep_end_the_session(running: RouterProcess, bystander: Wire, serializer: str) -> None:
    broken = joined(running, "rawsocket", serializer)
    broken.socket.sendall(broken.framed(nested(100_000, serializer)))
    assert ending(broken)[0] == VIOLATION


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize(
    "message", [[16, 1, {}, "com.example.x"], [32, 1, {}, "com.example.x"], [6, {}, "x"], [8, 48, 1, {}, "x"]]
)
def test_nothing_but_hello_opens_a_session(running: RouterProcess, bystander: Wire, message: list[Any]) -> None:
    broken = wire(running)
    broken.send(message)
    assert ending(broken)[0] == VIOLATION


@pytest.mark.matrix("WAMP-62")
def test_requests_before_the_proof_end_the_session(running: RouterProcess, bystander: Wire) -> None:
    broken = wire(running)
    broken.send([1, REALM, {**HELLO_ROLES, "authmethods": ["ticket"], "authid": "tina"}])
    assert broken.receive()[0] == 4
    broken.send([16, 1, {"acknowledge": True}, "com.example.x"])
    assert ending(broken)[0] == VIOLATION


@pytest.mark.matrix("WAMP-62")
def test_a_wrong_proof_and_an_unknown_name_are_told_apart_by_nothing(running: RouterProcess) -> None:
    endings = []
    for authid in ("tina", "clara", "sam", "nobody", "nobody else"):
        broken = wire(running)
        broken.send([1, REALM, {**HELLO_ROLES, "authmethods": ["ticket", "wampcra"], "authid": authid}])
        assert broken.receive()[0] == 4
        broken.send([5, "wrong", {}])
        endings.append(ending(broken))
    assert len(set(endings)) == 1
    assert endings[0][0] == "wamp.error.authentication_failed"


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (b"\x7f\xf0\0\0", 1),  # no serializer
        (b"\x7f\xff\0\0", 1),  # one that nobody knows
        (b"\x7f\xf1\0\1", 3),  # reserved bits
        (b"\x7f\xf1\1\0", 3),
    ],
)
def test_a_handshake_that_cannot_be_is_refused_with_its_number(
    running: RouterProcess, bystander: Wire, sent: bytes, refusal: int
) -> None:
    with socket.create_connection(("127.0.0.1", running.ports["rawsocket"]), 10) as peer:
        peer.sendall(sent)
        assert peer.recv(100) == bytes([0x7F, refusal << 4, 0, 0])
        assert peer.recv(100) == b""


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00", b"\0\0\0\0"])
def test_a_peer_that_speaks_something_else_gets_nothing(running: RouterProcess, bystander: Wire, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", running.ports["rawsocket"]), 10) as peer:
        peer.sendall(sent)
        with suppress(ConnectionResetError):
            assert peer.recv(100) == b""


@pytest.mark.matrix("WAMP-67")
def test_a_frame_longer_than_allowed_ends_the_session_before_it_is_read(
    running: RouterProcess, bystander: Wire
) -> None:
    broken = joined(running, "websocket")
    broken.socket.sendall(b"\x82\xff" + struct.pack(">Q", 1 << 40) + bytes(4) + bytes(1_000))
    assert ending(broken)[0] in {None, "wamp.error.payload_size_exceeded"}  # closed with 1009 below WAMP


def test_a_peer_that_was_not_welcomed_may_send_little(running: RouterProcess, bystander: Wire) -> None:
    with socket.create_connection(("127.0.0.1", running.ports["rawsocket"]), 10) as peer:
        peer.sendall(b"\x7f\xf2\0\0" + bytes([0]) + (65_537).to_bytes(3, "big"))
        answer = b""
        while part := peer.recv(1_000):
            answer += part
        assert b"wamp.error.payload_size_exceeded" in answer


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_a_websocket_that_was_not_welcomed_may_send_as_little(
    running: RouterProcess, bystander: Wire, serializer: str
) -> None:
    broken = wire(running, "websocket", serializer)
    broken.send([1, REALM, {**HELLO_ROLES, "agent": "x" * 65_536}])
    uri, says = ending(broken)
    assert uri == "wamp.error.payload_size_exceeded"
    assert "at most 65536 bytes" in says
    welcomed = joined(running, "websocket", serializer)
    welcomed.publish(f"{PREFIX}large", "x" * 65_536)


@pytest.mark.parametrize("kind", [3, 7, 0x80, 0xFF])
def test_frames_of_unknown_kinds_end_the_session(running: RouterProcess, bystander: Wire, kind: int) -> None:
    broken = joined(running)
    broken.socket.sendall(bytes([kind, 0, 0, 1, 0]))
    assert ending(broken)[0] == VIOLATION


def test_pings_are_answered_with_what_they_hold(running: RouterProcess) -> None:
    peer = joined(running)
    for held in (b"", b"x", bytes(70_000)):
        peer.socket.sendall(bytes([1]) + len(held).to_bytes(3, "big") + held)
        assert peer.next_frame() == (2, held)
    peer.close()


def test_compressed_frames_are_not_taken(running: RouterProcess, bystander: Wire) -> None:
    bomb = zlib.compress(bytes(32 << 20), 9)  # more than any frame may hold
    broken = joined(running, "websocket")
    broken.socket.sendall(bytes([0xC2, 0xFF]) + struct.pack(">Q", len(bomb)) + bytes(4) + bomb)
    assert ending(broken)[0] is None


def test_compression_is_not_offered_to_those_who_ask(running: RouterProcess) -> None:
    with socket.create_connection(("127.0.0.1", running.ports["websocket"]), 10) as peer:
        lines = [
            "GET /wamp HTTP/1.1",
            "Host: 127.0.0.1",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Extensions: permessage-deflate",
            "Sec-WebSocket-Protocol: wamp.2.msgpack",
        ]
        peer.sendall("\r\n".join([*lines, "", ""]).encode())
        said = peer.recv(10_000)
    assert said.startswith(b"HTTP/1.1 101 ")
    assert b"sec-websocket-extensions" not in said.lower()


@pytest.mark.matrix("WAMP-67")
@pytest.mark.parametrize("offered", [None, "", "wamp.2.ubjson", "chat, wamp"])
def test_a_websocket_without_a_subprotocol_in_common_is_refused(running: RouterProcess, offered: str | None) -> None:
    with socket.create_connection(("127.0.0.1", running.ports["websocket"]), 10) as peer:
        lines = [
            "GET /wamp HTTP/1.1",
            "Host: 127.0.0.1",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ]
        if offered is not None:
            lines.append(f"Sec-WebSocket-Protocol: {offered}")
        peer.sendall("\r\n".join([*lines, "", ""]).encode())
        said = peer.recv(10_000)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"wamp.2.json" in said


@pytest.mark.matrix("WAMP-66")
@pytest.mark.parametrize("topic", ["", ".", "a..b", "a b", "a#b", "com.example.", "wamp.session.on_join"])
def test_a_topic_that_is_none_or_the_routers_own_is_refused_and_the_session_goes_on(
    running: RouterProcess, topic: str
) -> None:
    peer = joined(running)
    for request, message in enumerate(([16, 1, {"acknowledge": True}, topic], [64, 2, {}, topic]), 1):
        peer.send(message)
        answer = peer.receive()
        assert answer[:3] == [8, message[0], request]
        assert answer[4] in {"wamp.error.invalid_uri", "wamp.error.not_authorized"}
    assert peer.publish(f"{PREFIX}good") > 0
    peer.close()


def test_clients_that_are_gone_when_the_answer_comes_leave_nothing_behind(
    running: RouterProcess, bystander: Wire
) -> None:
    reset = struct.pack("ii", 1, 0)
    endings: list[bytes] = [msgspec.msgpack.encode(it) for it in ([6, {}, "wamp.close.normal"], [3, {}, "x"], [99])]
    for carrier in CARRIERS:
        for number in range(60):
            broken = joined(running, carrier)
            if number % 2:
                broken.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            broken.socket.sendall(broken.framed(endings[number % 3]))
            broken.close()
    sessions = bystander.call("wamp.session.count")[0][0]
    deadline = time.monotonic() + 20
    while sessions > 1 and time.monotonic() < deadline:
        sessions = bystander.call("wamp.session.count")[0][0]
    assert sessions == 1


def test_a_client_that_leaves_in_the_middle_of_a_frame_harms_nobody(running: RouterProcess, bystander: Wire) -> None:
    for carrier in CARRIERS:
        broken = joined(running, carrier)
        frame = broken.framed(msgspec.msgpack.encode([16, 1, {}, f"{PREFIX}half", ["x" * 10_000]]))
        broken.socket.sendall(frame[:5_000])
        broken.close()
