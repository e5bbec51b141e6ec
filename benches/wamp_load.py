"""A client of WAMP that costs little beside the router: frames are made beforehand, answers only counted.

Blocking sockets, RawSocket or WebSocket; json, msgpack or cbor. A client's frames of WebSocket are masked with zeros,
which is a mask like any other and leaves the bytes as they are.
"""

import base64
import os
import selectors
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import cbor2
import msgspec
import numpy as np

ENCODE: Mapping[str, Callable[[Any], bytes]] = {
    "json": msgspec.json.encode,
    "msgpack": msgspec.msgpack.encode,
    "cbor": cbor2.dumps,
}
DECODE: Mapping[str, Callable[[bytes], Any]] = {
    "json": msgspec.json.decode,
    "msgpack": msgspec.msgpack.decode,
    "cbor": cbor2.loads,
}
RAWSOCKET_NUMBER = {"json": 1, "msgpack": 2, "cbor": 3}
FIRST_REQUEST = 1_000_000_000
"""The first request id of a load: ids from here to 2^32 take the same number of bytes in each serializer."""

PUBLISHED = {"json": b"[17,", "msgpack": b"\x93\x11", "cbor": b"\x83\x11"}
FEATURES = {
    "roles": {
        "publisher": {"features": {"publisher_identification": True, "subscriber_blackwhite_listing": True}},
        "subscriber": {"features": {"pattern_based_subscription": True}},
        "caller": {"features": {"progressive_call_results": True}},
        "callee": {"features": {}},
    }
}


class RefusedCall(Exception):
    """A request was answered with ERROR; the first argument is its URI."""


class Wire:
    """A session; ``send`` and ``receive`` take and give whole messages as lists."""

    def __init__(self, port: int, serializer: str, *, path: str | None = None) -> None:
        self.serializer = serializer
        self.is_websocket = path is not None
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = bytearray()
        self.requests = count(1)
        self.parts: list[Any] = []
        self.welcome: dict[str, Any] = {}
        try:
            if path is None:
                self._shake_hands()
            else:
                self._upgrade(path, port)
        except BaseException:
            self.socket.close()
            raise

    def _shake_hands(self) -> None:
        number = RAWSOCKET_NUMBER[self.serializer]
        self.socket.sendall(bytes([0x7F, 0xF0 | number, 0, 0]))
        answer = self._exactly(4)
        assert answer[0] == 0x7F, answer
        assert answer[1] & 0x0F == number, answer

    def _upgrade(self, path: str, port: int) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Sec-WebSocket-Protocol: wamp.2.{self.serializer}",
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self.held:
            self._more()
        end = self.held.index(b"\r\n\r\n") + 4
        assert b" 101 " in self.held[:end].split(b"\r\n")[0], bytes(self.held)
        del self.held[:end]

    def join(self, realm: str, *, user: tuple[str, str] | None = None) -> "Wire":
        """Say HELLO, with the authid and ticket of ``user`` if one is given."""
        who = {"authmethods": ["ticket"], "authid": user[0]} if user else {"authmethods": ["anonymous"]}
        self.send([1, realm, {**FEATURES, **who}])
        answer = self.receive()
        if answer[0] == 4 and user:
            self.send([5, user[1], {}])
            answer = self.receive()
        if answer[0] != 2:
            raise RefusedCall(answer[2], answer)
        self.session, self.welcome = answer[1], answer[2]
        return self

    def _more(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionResetError("the router closed the connection")
        self.held += data

    def _exactly(self, length: int) -> bytes:
        while len(self.held) < length:
            self._more()
        taken = bytes(self.held[:length])
        del self.held[:length]
        return taken

    def framed(self, payload: bytes) -> bytes:
        """Return one message as it goes over this connection."""
        if not self.is_websocket:
            return len(payload).to_bytes(4, "big") + payload
        head = bytes([0x81 if self.serializer == "json" else 0x82])
        if len(payload) < 126:
            return head + bytes([0x80 | len(payload)]) + bytes(4) + payload
        if len(payload) < 1 << 16:
            return head + struct.pack(">BH", 0xFE, len(payload)) + bytes(4) + payload
        return head + struct.pack(">BQ", 0xFF, len(payload)) + bytes(4) + payload

    def next_frame(self) -> tuple[int, bytes]:
        """Return the opcode of a frame (0 for a message) and its payload."""
        if not self.is_websocket:
            head = self._exactly(4)
            return head[0], self._exactly(int.from_bytes(head[1:], "big"))
        first, length = self._exactly(2)
        if length == 126:
            length = int.from_bytes(self._exactly(2), "big")
        elif length == 127:
            length = int.from_bytes(self._exactly(8), "big")
        assert first & 0x80, "a router that cuts messages in pieces"
        return (0 if first & 0x0F in {1, 2} else first & 0x0F), self._exactly(length)

    def send(self, message: Sequence[Any]) -> None:
        self.socket.sendall(self.framed(ENCODE[self.serializer](message)))

    def receive(self) -> list[Any]:
        """Return the next message; answers pings on the way."""
        while True:
            kind, payload = self.next_frame()
            if kind == 0:
                message: list[Any] = DECODE[self.serializer](payload)
                return message
            if self.is_websocket and kind == 8:
                raise ConnectionResetError(f"the router closed the connection: {payload!r}")

    def answer(self, code: int, request: int) -> list[Any]:
        """Return the answer to a request; EVENTs that come before it are kept in ``parts``."""
        while True:
            message = self.receive()
            if message[0] == 8 and message[2] == request:
                raise RefusedCall(message[4], *message[5:6])
            if message[0] == 3:
                raise RefusedCall(message[2], message)
            if message[0] == code and message[1] == request:
                return message
            self.parts.append(message)

    def call(self, procedure: str, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        request = next(self.requests)
        self.send([48, request, {}, procedure, list(args), kwargs])
        message = [*self.answer(50, request), [], {}]
        return message[3], message[4] if len(message) > 5 and isinstance(message[4], dict) else {}

    def subscribe(self, topic: str, match: str = "exact") -> int:
        request = next(self.requests)
        self.send([32, request, {} if match == "exact" else {"match": match}, topic])
        return int(self.answer(33, request)[2])

    def publish(self, topic: str, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> int:
        request = next(self.requests)
        self.send([16, request, {"acknowledge": True, **(options or {})}, topic, list(args), kwargs])
        return int(self.answer(17, request)[2])

    def close(self) -> None:
        self.socket.close()


def frames(wire: Wire, topic: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int) -> memoryview:
    """Return that many frames of PUBLISH in a row, alike but for their request ids."""
    payload = ENCODE[wire.serializer]([16, FIRST_REQUEST, {"acknowledge": True}, topic, list(args), dict(kwargs)])
    frame = np.frombuffer(wire.framed(payload), np.uint8)
    ids = np.arange(FIRST_REQUEST, FIRST_REQUEST + number, dtype=np.uint32)
    if wire.serializer == "json":
        mark = str(FIRST_REQUEST).encode()
        digits = [(ids // 10**power % 10 + ord("0")).astype(np.uint8) for power in range(9, -1, -1)]
        column = np.stack(digits, axis=1)
    else:
        mark = FIRST_REQUEST.to_bytes(4, "big")
        column = ids.astype(">u4").view(np.uint8).reshape(-1, 4)
    at = frame.tobytes().index(mark)
    all_frames = np.tile(frame, (number, 1))
    all_frames[:, at : at + len(mark)] = column
    return memoryview(all_frames.tobytes())


def pipelined(wire: Wire, all_frames: memoryview, number: int, window: int, beside: Sequence[Wire] = ()) -> float:
    """Send all frames, at most ``window`` of them unanswered, and return the seconds until the last PUBLISHED.

    What comes on the connections ``beside`` is read and dropped. Another answer than PUBLISHED is a ``RefusedCall``.
    """
    size, sent, done = len(all_frames) // number, 0, 0
    expected, held = PUBLISHED[wire.serializer], bytearray()
    waiting = selectors.DefaultSelector()
    for each in (wire, *beside):
        waiting.register(each.socket, selectors.EVENT_READ, each)
    began = time.perf_counter()
    while done < number:
        if sent < number and sent - done <= window // 2:
            upto = min(number, done + window)
            wire.socket.sendall(all_frames[sent * size : upto * size])
            sent = upto
        for key, _ in waiting.select(30):
            data = key.data.socket.recv(1 << 18)
            if not data:
                raise ConnectionResetError("the router closed the connection")
            if key.data is wire:
                held += data
                done += _count(held, expected, wire)
    return time.perf_counter() - began


def _count(held: bytearray, expected: bytes, wire: Wire) -> int:
    """Take whole frames of PUBLISHED off the beginning of ``held`` and return how many there were."""
    at, found, end, head = 0, 0, len(held), 2 if wire.is_websocket else 4
    last, length_of_mark = head - 1, len(expected)
    while at + head <= end:
        following = at + head + held[at + last]
        if following > end:
            break
        if held[at + head : at + head + length_of_mark] != expected:
            if wire.is_websocket and held[at] & 0x0F == 9:
                at = following
                continue
            raise RefusedCall(DECODE[wire.serializer](bytes(held[at + head : following])))
        at = following
        found += 1
    del held[:at]
    return found
