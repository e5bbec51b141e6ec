"""A sender and those who use it: it is closed when it was retired and the last attempt through it ended."""

import asyncio
from collections.abc import Callable

from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.sender import PacedSender, Retryable, Sender, SendOutcome
from relaycast_gateway.delivery.wire_message import WireMessage


class SenderUse:
    """Counts the attempts that go through a sender."""

    __slots__ = ("_close", "_is_retired", "_sender", "_users", "paced")

    def __init__(self, sender: Sender, close: Callable[[Sender], None]) -> None:
        self._sender = sender
        self.paced = sender if isinstance(sender, PacedSender) else None
        self._close = close
        self._users = 0
        self._is_retired = False

    async def send(self, message: WireMessage, *, timeout_seconds: float, clock: Clock) -> SendOutcome:
        """Send one message; what takes too long is broken off and may be tried again."""
        task, is_late = asyncio.current_task(), False
        assert task is not None

        def late() -> None:
            nonlocal is_late
            is_late = True
            task.cancel()

        self._users += 1
        alarm = clock.call_later(timeout_seconds, late)
        try:
            return await self._sender.send(message)
        except asyncio.CancelledError:
            if not is_late:
                raise
            task.uncancel()
            return Retryable(f"no answer within {timeout_seconds:g} s")
        except Exception as error:  # a broken sender must not stop the others; its message may hold secrets
            return Retryable(f"the sender failed: {type(error).__name__}")
        finally:
            alarm.cancel()
            self._users -= 1
            self._close_if_done()

    def retire(self) -> None:
        """Close the sender as soon as nobody uses it."""
        if not self._is_retired:
            self._is_retired = True
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self._is_retired and self._users == 0:
            self._close(self._sender)


class Tasks:
    """Tasks that run beside, kept until they end."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def add(self, task: asyncio.Task[None]) -> None:
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def ended(self) -> None:
        """Wait until none runs."""
        while self._running:
            await asyncio.wait(self._running)
