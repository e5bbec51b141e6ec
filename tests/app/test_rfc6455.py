"""RFC 6455 case by case, over raw sockets: the node's WebSocket and WAMP's by one table.

What a client sends after the handshake is a function of a message that the endpoint answers: a request to the node,
HELLO to WAMP. ``LET_PASS`` has what the reader of aiohttp lets pass against the RFC, as the guide says: a case that
fails there is an occasion to move it to ``REFUSED``.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.raw_socket import KEY, RawSocket, frame, request
from gateway.cloudevents.served_gateway import Api, served
from relaycast_gateway.wamp.router_config import RouterConfig

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
ACCEPT = base64.b64encode(hashlib.sha1(f"{KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()

Headers = Mapping[str, str | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path, what its handshake needs, and a message that it answers; each has a letter of two bytes."""

    name: str
    path: str
    message: bytes
    headers: Headers = field(default_factory=dict)


NODE = Endpoint("node", "/", '{"jsonrpc":"2.0","id":"\u00e9","method":"system_chain"}'.encode())
WAMP = Endpoint(
    "wamp",
    "/wamp",
    '[1,"relaycast",{"agent":"\u00e9","roles":{"caller":{}}}]'.encode(),
    {"Sec-WebSocket-Protocol": "wamp.2.json"},
)
ENDPOINTS = [NODE, WAMP]

Sent = Callable[[bytes], bytes]
Expected = list[Any]
"""``"answer"`` for a message, bytes for the content of a pong, and last the code of a close frame if there is one."""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as it:
        yield it


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner) -> Iterator[Api]:
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(served(wamp=RouterConfig.default())))
    runner.run(stack.aclose())


async def heard(api: Api, endpoint: Endpoint, sent: bytes, count: int) -> Expected:
    """Return what comes back, and whether the connection is served on or ends behind a close frame as it must."""
    raw, status = await RawSocket.opened(api.server.port, request(endpoint.path, endpoint.headers))
    assert status == 101
    try:
        raw.writer.write(sent)
        found: Expected = []
        while len(found) < count:
            opcode, content = await raw.next()
            if opcode == CLOSE:
                found.append(int.from_bytes(content[:2]))
                content[2:].decode()
                assert await raw.reader.read() == b"", "the server ends the connection behind its close frame"
                return found
            found.append(content if opcode == PONG else "answer")
        raw.writer.write(frame(PING, b"still there") + frame(CLOSE, (1000).to_bytes(2)))
        assert await raw.next() == (PONG, b"still there"), f"behind {found}"
        assert await raw.next() == (CLOSE, (1000).to_bytes(2))
        return found
    finally:
        raw.writer.close()


def cut(opcode: int, *parts: bytes) -> bytes:
    """Return a message in fragments."""
    last = len(parts) - 1
    return b"".join(frame(0 if index else opcode, part, fin=index == last) for index, part in enumerate(parts))


def closing(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, code.to_bytes(2) + reason)


def whole(opcode: int, *, reserved: int = 0, behind: bytes = b"") -> Sent:
    return lambda message: frame(opcode, message[:99] + behind, reserved=reserved)


def exactly(sent: bytes) -> Sent:
    return lambda _: sent


def padded(length: int) -> Sent:
    return lambda message: frame(TEXT, message.ljust(length))


LETTER = "\u00e9".encode()

SERVED: dict[str, tuple[Sent, Expected]] = {
    "text": (lambda m: frame(TEXT, m), ["answer"]),
    "text, mask of zeros": (lambda m: frame(TEXT, m, key=bytes(4)), ["answer"]),
    "text in two fragments": (lambda m: cut(TEXT, m[:9], m[9:]), ["answer"]),
    "text in fragments of a byte": (lambda m: cut(TEXT, *(bytes([byte]) for byte in m)), ["answer"]),
    "text cut inside a letter": (lambda m: cut(TEXT, *_inside(m)), ["answer"]),
    "first fragment empty": (lambda m: cut(TEXT, b"", m), ["answer"]),
    "last fragment empty": (lambda m: cut(TEXT, m, b""), ["answer"]),
    "fragment in the middle empty": (lambda m: cut(TEXT, m[:5], b"", m[5:]), ["answer"]),
    "ping between fragments": (lambda m: _between(m, frame(PING, b"in between")), [b"in between", "answer"]),
    "two pings between fragments": (lambda m: _between(m, frame(PING, b"1") * 2), [b"1", b"1", "answer"]),
    "pong between fragments": (lambda m: _between(m, frame(PONG, b"unasked")), ["answer"]),
    "ping behind a message": (lambda m: frame(TEXT, m) + frame(PING, b"next"), [b"next", "answer"]),
    "ping before a message": (lambda m: frame(PING, b"first") + frame(TEXT, m), [b"first", "answer"]),
    "ping, empty": (exactly(frame(PING)), [b""]),
    "ping of bytes that are no text": (exactly(frame(PING, b"\xff\x00\xfe")), [b"\xff\x00\xfe"]),
    "ping of 125 bytes": (exactly(frame(PING, bytes(125))), [bytes(125)]),
    "ten pings": (exactly(b"".join(frame(PING, bytes([n])) for n in range(10))), [bytes([n]) for n in range(10)]),
    "pong unasked": (exactly(frame(PONG, b"unasked")), []),
    "pong unasked, empty": (exactly(frame(PONG)), []),
    **{f"text of {length} bytes": (padded(length), ["answer"]) for length in (125, 126, 127, 65_535, 65_536)},
}  # fmt: skip


def _inside(message: bytes) -> tuple[bytes, bytes]:
    place = message.index(LETTER) + 1
    return message[:place], message[place:]


def _between(message: bytes, control: bytes) -> bytes:
    return frame(TEXT, message[:7], fin=False) + control + frame(0, message[7:])


PROTOCOL_ERROR, INVALID_TEXT, TOO_BIG = 1002, 1007, 1009

NO_UTF8 = {
    "a byte of the middle": b"\x80",
    "a letter too long": b"\xc0\x80",
    "a letter cut short": b"\xe2\x82",
    "a surrogate": b"\xed\xa0\x80",
    "a letter beyond U+10FFFF": b"\xf4\x90\x80\x80",
    "a byte of six": b"\xfc\x83\xbf\xbf\xbf\xbf",
    "byte FE": b"\xfe",
    "byte FF": b"\xff",
}
"""RFC 3629."""

REFUSED: dict[str, tuple[Sent, int]] = {
    **{f"text with {name}": (whole(TEXT, behind=bad), INVALID_TEXT) for name, bad in NO_UTF8.items()},
    "text that is no UTF-8, in fragments": (lambda m: cut(TEXT, m, b"\xe2", b"\x28\xa1"), INVALID_TEXT),
    **{
        f"reserved bits {bits:03b} of a {name}": (whole(opcode, reserved=bits), PROTOCOL_ERROR)
        for bits in (4, 2, 1, 7)
        for opcode, name in ((TEXT, "text"), (PING, "ping"))
    },
    "reserved bits of a close frame": (exactly(frame(CLOSE, b"\x03\xe8", reserved=4)), PROTOCOL_ERROR),
    "reserved bits of a fragment": (lambda m: frame(TEXT, m, fin=False) + frame(0, reserved=4), PROTOCOL_ERROR),
    **{
        f"reserved opcode {opcode:X}": (whole(opcode), PROTOCOL_ERROR)
        for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)
    },
    **{
        f"{name} in fragments": (exactly(cut(opcode, b"a", b"b")), PROTOCOL_ERROR)
        for opcode, name in ((PING, "ping"), (PONG, "pong"), (CLOSE, "close frame"))
    },
    **{
        f"{name} of 126 bytes": (exactly(frame(opcode, b"\x03\xe8" + b"r" * 124)), PROTOCOL_ERROR)
        for opcode, name in ((PING, "ping"), (PONG, "pong"), (CLOSE, "close frame"))
    },
    "ping with its length in two bytes": (exactly(frame(PING, b"a", size=2)), PROTOCOL_ERROR),
    "ping with its length in eight bytes": (exactly(frame(PING, b"a", size=8)), PROTOCOL_ERROR),
    "continuation of nothing": (lambda m: frame(0, m), PROTOCOL_ERROR),
    "continuation of nothing, more to follow": (lambda m: frame(0, m, fin=False), PROTOCOL_ERROR),
    "continuation behind a whole message": (lambda m: frame(TEXT, m) + frame(0, m), PROTOCOL_ERROR),
    "text inside a fragmented text": (lambda m: frame(TEXT, m, fin=False) + frame(TEXT, m), PROTOCOL_ERROR),
    "binary inside a fragmented text": (lambda m: frame(TEXT, m, fin=False) + frame(BINARY, m), PROTOCOL_ERROR),
    "another text that begins inside": (lambda m: frame(TEXT, m, fin=False) * 2, PROTOCOL_ERROR),
    "a length of 2^30": (exactly(frame(TEXT, claimed=1 << 30)), TOO_BIG),
    "a length of 2^63 - 1": (exactly(frame(TEXT, claimed=(1 << 63) - 1)), TOO_BIG),
    "a length of 2^64 - 1": (exactly(frame(TEXT, claimed=(1 << 64) - 1)), TOO_BIG),
    "fragments too long together": (exactly(frame(TEXT, b"a", fin=False) + frame(0, claimed=1 << 30)), TOO_BIG),
    "close frame of one byte": (exactly(frame(CLOSE, b"\x03")), PROTOCOL_ERROR),
    "close reason that is no UTF-8": (exactly(closing(1000, b"\xff\xfe")), INVALID_TEXT),
    "close reason cut inside a letter": (exactly(closing(1000, LETTER[:1])), INVALID_TEXT),
    **{
        f"close code {code}": (exactly(closing(code)), PROTOCOL_ERROR)
        for code in (0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535)
    },
}  # fmt: skip

CLOSED: dict[str, tuple[Sent, int]] = {
    "close frame without a code": (exactly(frame(CLOSE)), 1000),
    "close frame between fragments": (lambda m: _between(m, closing(1001)), 1001),
    "close frame and then a ping": (exactly(closing(1000) + frame(PING, b"too late")), 1000),
    "close frame and then nonsense": (exactly(closing(1001) + b"\xff" * 50), 1001),
    "close reason of 123 bytes": (exactly(closing(1001, LETTER * 61 + b".")), 1001),
    **{
        f"close code {code}": (exactly(closing(code, b"why")), code)
        for code in (1000, 1001, 1002, 1003, *range(1007, 1015), 3000, 3999, 4000, 4999)
    },
}

LET_PASS: dict[str, tuple[Sent, Expected]] = {
    "text without a mask": (lambda m: frame(TEXT, m, key=None), ["answer"]),
    "ping without a mask": (exactly(frame(PING, b"bare", key=None)), [b"bare"]),
    "length in two bytes that fits into one": (lambda m: frame(TEXT, m, size=2), ["answer"]),
    "length in eight bytes that fits into one": (lambda m: frame(TEXT, m, size=8), ["answer"]),
    "text behind an empty fragment of another": (lambda m: frame(TEXT, fin=False) + frame(TEXT, m), ["answer"]),
}


def each(cases: Mapping[str, Any]) -> pytest.MarkDecorator:
    rows = [
        pytest.param(endpoint, *case, id=f"{endpoint.name}: {name}")
        for endpoint in ENDPOINTS
        for name, case in cases.items()
    ]
    return pytest.mark.parametrize(("endpoint", "sent", "expected"), rows)


@each(SERVED | LET_PASS)
def test_frames_are_answered(
    runner: asyncio.Runner, api: Api, endpoint: Endpoint, sent: Sent, expected: Expected
) -> None:
    found = runner.run(asyncio.wait_for(heard(api, endpoint, sent(endpoint.message), len(expected)), 30))
    assert sorted(found, key=repr) == sorted(expected, key=repr)  # a pong may overtake an answer


@each(REFUSED | CLOSED)
def test_a_connection_ends_with_its_close_code(
    runner: asyncio.Runner, api: Api, endpoint: Endpoint, sent: Sent, expected: int
) -> None:
    found = runner.run(asyncio.wait_for(heard(api, endpoint, sent(endpoint.message), 9), 30))
    assert [it for it in found if it != "answer"] == [expected]


HANDSHAKES: dict[str, tuple[Headers, int]] = {
    "as it should be": ({}, 101),
    "upgrade in another case": ({"Upgrade": "WebSocket"}, 101),
    "connection in another case": ({"Connection": "upgrade"}, 101),
    "connection with more options": ({"Connection": "keep-alive, Upgrade"}, 101),
    "names in another case": ({"Sec-WebSocket-Key": None, "sec-websocket-key": KEY}, 101),
    "an extension": ({"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"}, 101),
    "no connection": ({"Connection": None}, 400),
    "connection without upgrade": ({"Connection": "keep-alive"}, 400),
    "no version": ({"Sec-WebSocket-Version": None}, 426),
    **{f"version {it}": ({"Sec-WebSocket-Version": it}, 426) for it in ("0", "7", "8", "14", "255", "x", "13, 8")},
    "version twice": ({"Sec-WebSocket-Version": ["8", "13"]}, 426),
    "no key": ({"Sec-WebSocket-Key": None}, 400),
    "an empty key": ({"Sec-WebSocket-Key": ""}, 400),
    "a key of 15 bytes": ({"Sec-WebSocket-Key": base64.b64encode(bytes(15)).decode()}, 400),
    "a key of 17 bytes": ({"Sec-WebSocket-Key": base64.b64encode(bytes(17)).decode()}, 400),
    "a key that is no base64": ({"Sec-WebSocket-Key": "!" * 24}, 400),
    "a key with nonsense inside": ({"Sec-WebSocket-Key": KEY[:4] + "!!" + KEY[4:]}, 400),
    "two keys": ({"Sec-WebSocket-Key": [KEY, KEY]}, 400),
}  # fmt: skip


async def shaken(api: Api, sent: bytes) -> tuple[int, Mapping[str, str]]:
    raw, status = await RawSocket.opened(api.server.port, sent)
    raw.writer.close()
    return status, raw.headers


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda it: it.name)
@pytest.mark.parametrize("name", HANDSHAKES)
def test_handshakes_are_answered_or_refused(runner: asyncio.Runner, api: Api, endpoint: Endpoint, name: str) -> None:
    given, expected = HANDSHAKES[name]
    status, headers = runner.run(shaken(api, request(endpoint.path, {**endpoint.headers, **given})))
    assert status == expected
    assert headers.get("Sec-WebSocket-Accept") == (ACCEPT if status == 101 else None)
    assert headers.get("Sec-WebSocket-Version") == ("13" if status == 426 else None)
    assert "Sec-WebSocket-Extensions" not in headers


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda it: it.name)
def test_no_websocket_begins_over_http_1_0_or_by_post(runner: asyncio.Runner, api: Api, endpoint: Endpoint) -> None:
    old = request(endpoint.path, {**endpoint.headers, "Connection": "Upgrade"}, version="1.0")
    assert runner.run(shaken(api, old))[0] == 400
    assert runner.run(shaken(api, request(endpoint.path, endpoint.headers, method="POST")))[0] in {405, 415}
    not_asked = request(endpoint.path, {**endpoint.headers, "Upgrade": None, "Connection": None})
    assert runner.run(shaken(api, not_asked))[0] == (406 if endpoint is NODE else 426)
    assert runner.run(shaken(api, request(endpoint.path, {**endpoint.headers, "Upgrade": "h2c"})))[0] == (
        406 if endpoint is NODE else 426
    )


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("wamp.2.cbor", "wamp.2.cbor"),
        ("mqtt, wamp.2.cbor , wamp.2.json", "wamp.2.cbor"),
        ("mqtt,wamp.2.json", "wamp.2.json"),
        (["mqtt", "wamp.2.msgpack, wamp.2.json"], "wamp.2.msgpack"),
        (["wamp.2.json", "wamp.2.cbor"], "wamp.2.json"),
        ("WAMP.2.JSON", None),
        ("wamp.2.jso", None),
        ("", None),
        (None, None),
    ],
)
def test_subprotocols_are_chosen_by_the_clients_order_and_the_node_has_none(
    runner: asyncio.Runner,
    api: Api,
    caplog: pytest.LogCaptureFixture,
    offered: str | Sequence[str] | None,
    chosen: str | None,
) -> None:
    status, headers = runner.run(shaken(api, request("/wamp", {"Sec-WebSocket-Protocol": offered})))
    assert (status, headers.get("Sec-WebSocket-Protocol")) == (400 if chosen is None else 101, chosen)
    status, headers = runner.run(shaken(api, request("/", {"Sec-WebSocket-Protocol": offered})))
    assert (status, headers.get("Sec-WebSocket-Protocol")) == (101, None)
    assert caplog.records == [], "what a client offers stays out of the log"


BINARY_MESSAGES: dict[str, bytes] = {"empty": b"", "no text": b"\xff\xfe", "JSON": NODE.message}


@pytest.mark.parametrize("name", BINARY_MESSAGES)
def test_binary_frames_carry_json_rpc_and_no_json_of_wamp(runner: asyncio.Runner, api: Api, name: str) -> None:
    sent = frame(BINARY, BINARY_MESSAGES[name])
    assert runner.run(heard(api, NODE, sent, 1)) == ["answer"]
    assert runner.run(heard(api, WAMP, sent, 2)) == ["answer", 1003]


def test_a_message_may_come_byte_by_byte_and_together_with_its_handshake(runner: asyncio.Runner, api: Api) -> None:
    async def work(endpoint: Endpoint) -> None:
        whole = request(endpoint.path, endpoint.headers) + frame(TEXT, endpoint.message)
        for step in (1, len(whole)):
            reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
            for start in range(0, len(whole), step):
                writer.write(whole[start : start + step])
                await asyncio.sleep(0)
            raw = RawSocket(reader, writer, {})
            await reader.readuntil(b"\r\n\r\n")
            assert (await raw.next())[0] == TEXT
            writer.close()

    for endpoint in ENDPOINTS:
        runner.run(asyncio.wait_for(work(endpoint), 30))


def test_answers_name_the_chain(runner: asyncio.Runner, api: Api) -> None:
    """The message of the tables is one that is understood."""

    async def answer(endpoint: Endpoint) -> Any:
        raw, _ = await RawSocket.opened(api.server.port, request(endpoint.path, endpoint.headers))
        raw.writer.write(frame(TEXT, endpoint.message))
        content = (await raw.next())[1]
        raw.writer.close()
        return json.loads(content)

    assert runner.run(answer(NODE)) == {"jsonrpc": "2.0", "id": "\u00e9", "result": "Small"}
    assert runner.run(answer(WAMP))[0] == 2
