"""A node that is asked by JSON-RPC over HTTP or a WebSocket, with patience: it may be busy, or hang up.

Law: a node that limits its clients is waited for, and a lost connection is made again, both with a bound. What cannot
be had raises ``BadInput`` in one line; what the node itself refuses raises ``NodeRefused``.
"""

import asyncio
import json
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp import WSCloseCode

from relaycast.inputs import NODE_SCHEMES
from relaycast.refusal import BadInput, shown
from relaycast.tls_mistakes import tls_mistake
from relaycast_gateway.delivery.schedule import retry_after_seconds

SECONDS = 60.0
"""Seconds that a node may take for each answer."""

MOST_ANSWER_BYTES = 64 << 20
"""Largest answer of a node that is read."""

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds to wait after the first refusal of a busy node; twice as long after each further one, up to the longest."""

MOST_WAITS = 8
"""Refusals, and lost connections, in a row before it is given up."""

BUSY_STATUSES = frozenset({429, 502, 503, 504})
BUSY_CODES = frozenset({-32_999, -32_029, -32_016, -32_009, -32_005, 429})
"""What nodes and their providers answer to too many requests: -32999 and -32009 are jsonrpsee's own."""

BUSY_WORDS = ("rate limit", "too many requests", "limit exceeded", "too busy")

EXPECTED = "a node that answers JSON-RPC"

METHOD_NOT_FOUND = -32_601
TOO_BIG = frozenset({-32_007, -32_008})

NO_SUCH_NODE = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.WSServerHandshakeError, ValueError)
"""What the first question meets where nobody listens: it is not asked again."""

Tell = Callable[[str], None]
"""Hears one line for each wait."""

Sleep = Callable[[float], Awaitable[object]]
"""Waits some seconds."""


class NodeRefused(Exception):
    """A node refused a ``method`` with this ``code`` and ``message``."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(method, code, message)
        self.method = method
        self.code = code
        self.message = message

    @property
    def is_unknown_method(self) -> bool:
        return self.code == METHOD_NOT_FOUND

    @property
    def is_too_big(self) -> bool:
        """Whether the question or its answer has more bytes than the node takes."""
        return self.code in TOO_BIG or "too big" in self.message.lower() or "too large" in self.message.lower()

    def __str__(self) -> str:
        return f"the error {self.code} {shown(self.message)} for {self.method}"


class TooBig(NodeRefused):
    """The request or its answer is larger than one side accepts, as HTTP or the WebSocket reports."""

    is_too_big = True

    def __init__(self, method: str, message: str) -> None:
        super().__init__(method, 0, message)

    def __str__(self) -> str:
        return f"{self.message} for {self.method}"


class _Busy(Exception):
    """Too many requests; ``seconds`` is how long the node wants to be left alone, where it says so."""

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason, seconds)
        self.reason = reason
        self.seconds = seconds

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str] | None) -> "_Busy":
        """Return the error for an HTTP status of an answer or of a WebSocket handshake."""
        after = (headers or {}).get("Retry-After", "")
        return cls(f"status {status}", retry_after_seconds(after, now_ns=time.time_ns()))


class _Lost(Exception):
    """The connection is gone, for ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NodeClient:
    """One node by its ``url``; used in ``async with``. A busy or lost one is waited for ``waits`` times in a row."""

    def __init__(
        self, url: str, tell: Tell = lambda _: None, *, waits: int = MOST_WAITS, sleep: Sleep = asyncio.sleep
    ) -> None:
        if not url.startswith(NODE_SCHEMES):
            raise BadInput("URL", shown(url), "the address of a node: http://, https://, ws:// or wss://")
        self.url = url
        self._tell = tell
        self._waits = waits
        self._sleep = sleep
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._asked = 0

    async def __aenter__(self) -> "NodeClient":
        self._client = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._hang_up()
        await self._client.close()

    async def ask(self, method: str, *params: object) -> Any:
        """Return the result of a method; raises ``NodeRefused`` and ``BadInput``."""
        wait = FIRST_WAIT
        for turn in range(self._waits + 1):
            try:
                async with asyncio.timeout(SECONDS):
                    return self._result(method, await self._answer(method, params))
            except _Busy as busy:
                reason, seconds = busy.reason, min(busy.seconds or wait, LONGEST_WAIT)
            except (_Lost, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                if self._asked == 1 and turn == 0:
                    await self._refuse_first(error)
                await self._hang_up()
                reason, seconds = _why(error), wait
            if turn < self._waits:
                self._tell(f"{self.url}: {reason}; asking again in {seconds:g} s")
                await self._sleep(seconds)
            wait = min(2 * wait, LONGEST_WAIT)
        times = f", {self._waits + 1} times in a row" if self._waits else ""
        raise BadInput(self.url, f"{reason} for {method}{times}", EXPECTED)

    async def _refuse_first(self, error: Exception) -> None:
        """Raise ``BadInput`` if the first request shows that waiting does not help."""
        mistake = await asyncio.to_thread(tls_mistake, self.url, error, self.url)
        if mistake is not None:
            raise mistake from None
        if isinstance(error, NO_SUCH_NODE):
            raise BadInput(self.url, _why(error), EXPECTED) from None

    async def _answer(self, method: str, params: tuple[object, ...]) -> Any:
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        data = await (self._sent if self.url.startswith("ws") else self._posted)(request)
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or ("result" not in answer and "error" not in answer):
            text = data.decode(errors="replace") if isinstance(data, bytes) else data
            raise BadInput(self.url, f"{shown(text)} for {method}", "an answer of JSON-RPC")
        return answer

    @staticmethod
    def _result(method: str, answer: dict[str, Any]) -> Any:
        error = answer.get("error")
        if error is None:
            return answer.get("result")
        code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
        text = str(message)
        if isinstance(error, dict) and isinstance(error.get("data"), str):
            text = f"{text}: {error['data']}"
        code = code if isinstance(code, int) else 0
        if code in BUSY_CODES or any(words in text.lower() for words in BUSY_WORDS):
            raise _Busy(f"the error {shown(text)}")
        raise NodeRefused(method, code, text)

    async def _posted(self, request: dict[str, Any]) -> bytes:
        async with self._client.post(self.url, json=request) as response:
            if response.status in BUSY_STATUSES:
                raise _Busy.of(response.status, response.headers)
            if response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise TooBig(request["method"], f"status {response.status}")
            if response.status != HTTPStatus.OK:
                got = f"status {response.status} for {request['method']}"
                raise BadInput(self.url, got, "an answer of JSON-RPC")
            data = bytearray()
            async for part in response.content.iter_any():
                data += part
                if len(data) > MOST_ANSWER_BYTES:
                    raise TooBig(request["method"], f"an answer of more than {MOST_ANSWER_BYTES:,} bytes")
        return bytes(data)

    async def _sent(self, request: dict[str, Any]) -> str:
        if self._socket is None or self._socket.closed:
            try:
                self._socket = await self._client.ws_connect(self.url, max_msg_size=MOST_ANSWER_BYTES)
            except aiohttp.WSServerHandshakeError as error:
                if error.status in BUSY_STATUSES:
                    raise _Busy.of(error.status, error.headers) from None
                raise
        await self._socket.send_json(request)
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                raise BadInput(self.url, f"no text (binary) for {request['method']}", "an answer of JSON-RPC")
            if message.type is aiohttp.WSMsgType.ERROR and self._socket.close_code == WSCloseCode.MESSAGE_TOO_BIG:
                raise TooBig(request["method"], f"an answer of more than {MOST_ANSWER_BYTES:,} bytes")
            if message.type is aiohttp.WSMsgType.CLOSE and message.data == WSCloseCode.MESSAGE_TOO_BIG:
                raise TooBig(request["method"], f"a message too big (close code {message.data:d})")
            if not isinstance(message.data, str):
                raise _Lost(f"no text ({message.type.name.lower()})")
            if _is_for(request["id"], message.data):
                return message.data

    async def _hang_up(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()


def _is_for(number: int, text: str) -> bool:
    """Return whether a message is no answer to an earlier request, and no notification."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(message, dict) or ("method" not in message and message.get("id") in (number, None))


def _why(error: Exception) -> str:
    """Return why there was no answer: of a connection that was not made, what the system says."""
    if isinstance(error, _Lost):
        return error.reason
    if isinstance(error, TimeoutError):
        return f"no answer for {SECONDS:g} s"
    cause = getattr(error, "os_error", None)
    number = None if isinstance(cause, ssl.SSLError) else getattr(cause, "errno", None)
    said = os.strerror(number) if isinstance(number, int) and number > 0 else str(error)
    return said or type(error).__name__
