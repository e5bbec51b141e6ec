"""The part of a client that answers calls."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from relaycast_gateway.wamp.client.values import CallReply
from relaycast_gateway.wamp.errors import CANCELED, WampError
from relaycast_gateway.wamp.messages import ErrorMessage, InterruptMessage, InvocationMessage, WampMessage, YieldMessage

RUNTIME_ERROR = "wamp.error.runtime_error"

Procedure = Callable[..., Any]
"""Called with the arguments of a call. What it returns or awaits is the result; a ``CallReply`` gives several values,
an asynchronous generator progressive ones. ``WampError`` refuses the call."""


class ClientCallee:
    """Procedures by their registrations, each invocation in a task of its own."""

    def __init__(self, send: Callable[[WampMessage], Awaitable[None]]) -> None:
        self._send = send
        self.procedures: dict[int, Procedure] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    def invoke(self, message: InvocationMessage) -> None:
        """Begin to answer a call."""
        self._running[message.request] = asyncio.create_task(self._invoke(message))

    def interrupt(self, message: InterruptMessage) -> None:
        """Cancel what answers a call."""
        if message.request in self._running:
            self._running[message.request].cancel()

    def end(self) -> None:
        """Cancel everything."""
        for task in self._running.values():
            task.cancel()

    async def _invoke(self, message: InvocationMessage) -> None:
        refusal = ErrorMessage(InvocationMessage.code, message.request, {}, RUNTIME_ERROR)
        try:
            procedure = self.procedures[message.registration]
            found = procedure(*(message.args or ()), **(message.kwargs or {}))
            if inspect.isasyncgen(found):
                async for part in found:
                    await self._yield(message.request, part, {"progress": True})
                found = CallReply()
            elif isinstance(found, Awaitable):
                found = await found
            await self._yield(message.request, found, {})
        except asyncio.CancelledError:
            refusal.error = CANCELED
            await self._refuse(refusal)
            raise
        except ConnectionError:
            pass
        except WampError as error:
            refusal.error, refusal.args, refusal.kwargs = error.uri, list(error.arguments) or None, error.kwargs or None
            await self._refuse(refusal)
        except Exception as error:
            refusal.args = [f"{type(error).__name__}: {error}"]
            await self._refuse(refusal)
        finally:
            self._running.pop(message.request, None)

    async def _yield(self, request: int, value: Any, options: dict[str, Any]) -> None:
        reply = value if isinstance(value, CallReply) else CallReply([] if value is None else [value])
        args = reply.args if isinstance(reply.args, bytes) else list(reply.args) or None
        await self._send(YieldMessage(request, options, args, dict(reply.kwargs) or None))

    async def _refuse(self, refusal: ErrorMessage) -> None:
        with suppress(ConnectionError):
            await self._send(refusal)
