"""Calls to canisters in other processes: each a POST with a Candid body to ``URL/icrc/PRINCIPAL/METHOD``.

Law: calls from one canister to another go one at a time, in order. Connections, waiting calls and the bytes of both are
bounded; what is beyond, too late or not let through by the guard is answered with its reason. No redirect is followed.
"""

import asyncio
import json
import logging
import os
import ssl
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from aiohttp import ClientConnectorDNSError, ClientConnectorError, ClientError, ClientResponse, ClientSession

from relaycast_gateway.candid import CandidError
from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.http_connector import guarded_session
from relaycast_gateway.delivery.sink_guard import SinkGuard, SinkRefused
from relaycast_gateway.icrc.canister import Answer
from relaycast_gateway.icrc.http.call_limits import ANSWER_SECONDS, MOST_BODY_BYTES, VALUES_OF_AN_ANSWER
from relaycast_gateway.icrc.interface import CandidMethod
from relaycast_gateway.principal import principal_text

_LOGGER = logging.getLogger(__name__)

CANDID = "application/candid"
CALLER_HEADER = "Icrc-Caller"

CONNECTIONS = 256
"""Open at a time, all canisters together."""

MOST_WAITING_CALLS = 256
"""Calls that wait, from one canister to another."""

MOST_WAITING_BYTES = 64 << 20
"""Bytes of arguments, all calls together."""

MOST_PROBLEM_BYTES = 4_096
"""A refusal is read so far."""

LONGEST_REASON = 300
"""Characters of another server's reason that are passed on."""


class CanisterPlace(NamedTuple):
    """Where a canister is reached; ``token`` is what its server asks for."""

    url: str
    token: str | None = None


class RemoteCall(NamedTuple):
    """A call that waits for its turn."""

    caller: bytes
    callee: bytes
    place: CanisterPlace
    method: CandidMethod
    body: bytes
    answered: Callable[[Answer], None]


class RemoteCalls:
    """Sends calls through one guarded session; lives in one event loop."""

    def __init__(self, guard: SinkGuard, clock: Clock, *, seconds: float = ANSWER_SECONDS) -> None:
        self._guard = guard
        self._clock = clock
        self._seconds = seconds
        self._session: ClientSession | None = None
        self._lanes: dict[tuple[bytes, bytes], deque[RemoteCall]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_bytes = 0
        self.failed = 0
        """Calls that ended without a result, so far."""

    @property
    def waiting(self) -> int:
        """Calls that wait or are under way."""
        return sum(map(len, self._lanes.values()))

    def send(self, call: RemoteCall) -> str | None:
        """Let a call wait for its turn; return why not where too many wait."""
        lane = self._lanes.get((call.caller, call.callee))
        if lane is not None and len(lane) >= MOST_WAITING_CALLS:
            return f"{MOST_WAITING_CALLS} calls to {principal_text(call.callee)} wait already"
        if self._waiting_bytes + len(call.body) > MOST_WAITING_BYTES:
            return f"calls of {MOST_WAITING_BYTES:,} bytes wait already"
        self._waiting_bytes += len(call.body)
        if lane is not None:
            lane.append(call)
            return None
        self._lanes[call.caller, call.callee] = lane = deque([call])
        task = asyncio.get_running_loop().create_task(self._work(lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    async def close(self) -> None:
        """Break off what is under way and close all connections; nobody is answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._lanes.clear()
        self._waiting_bytes = 0
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _work(self, lane: deque[RemoteCall]) -> None:
        """Send the calls of a lane, one after another, until none waits."""
        while lane:
            call = lane[0]
            answer = await self._answer(call)
            lane.popleft()
            self._waiting_bytes -= len(call.body)
            if not lane:
                del self._lanes[call.caller, call.callee]
            self.failed += answer.refusal is not None
            call.answered(answer)

    async def _answer(self, call: RemoteCall) -> Answer:
        task, is_late = asyncio.current_task(), False
        assert task is not None

        def late() -> None:
            nonlocal is_late
            is_late = True
            task.cancel()

        alarm = self._clock.call_later(self._seconds, late)
        try:
            return await self._posted(call)
        except asyncio.CancelledError:
            if not is_late:
                raise
            task.uncancel()
            return _refused(call, f"no answer within {self._seconds:g} s")
        except (ClientError, OSError, ValueError) as error:
            return _refused(call, failure_text(error))
        except Exception as error:  # a lane that ends here would keep its calls, and their room, for ever
            _LOGGER.exception("a call of %s failed", call.method.name)
            return _refused(call, failure_text(error))
        finally:
            alarm.cancel()

    async def _posted(self, call: RemoteCall) -> Answer:
        if self._session is None:
            self._session = guarded_session(self._guard, limit=CONNECTIONS)
        headers = {"Content-Type": CANDID, CALLER_HEADER: principal_text(call.caller), "User-Agent": "relaycast"}
        if call.place.token is not None:
            headers["Authorization"] = f"Bearer {call.place.token}"
        url = f"{call.place.url}/icrc/{principal_text(call.callee)}/{call.method.name}"
        async with self._session.post(url, data=call.body, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                return _refused(call, await _reason_in(response))
            body = await _bounded(response, MOST_BODY_BYTES)
            if body is None:
                return _refused(call, f"an answer of more than {MOST_BODY_BYTES:,} bytes")
        try:
            values = call.method.decode_results(body, values=VALUES_OF_AN_ANSWER)
        except CandidError as error:
            return _refused(call, f"an answer that is no {call.method.name}'s: {error}")
        return Answer(values[0] if values else None)


async def _bounded(response: ClientResponse, most: int) -> bytes | None:
    """Return the body of an answer, ``None`` where it is longer; its connection is given up then."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            return None
    return bytes(body)


async def _reason_in(response: ClientResponse) -> str:
    """Return what a server says of a call that it refused, on one line."""
    body = await _bounded(response, MOST_PROBLEM_BYTES)
    try:
        said = str(json.loads(body or b"")["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"HTTP {response.status}"
    return " ".join(said.split())[:LONGEST_REASON]


def _refused(call: RemoteCall, reason: str) -> Answer:
    return Answer(refusal=f"{principal_text(call.callee)}: {reason}")


def failure_text(error: Exception) -> str:
    """Say what failed on the way to a server."""
    match error:
        case SinkRefused():
            return str(error)
        case TimeoutError():
            return "no answer in time"
        case ssl.SSLError():
            return "TLS failed: the certificate or the handshake was not accepted"
        case ClientConnectorDNSError():
            return "cannot connect: the name does not resolve"
        case ClientConnectorError():
            return f"cannot connect: {os.strerror(error.os_error.errno or 0)}"
    return f"no answer: {type(error).__name__}"
