"""A sender and those who use it: it is closed when it was retired and the last attempt through it ended."""

import asyncio
from collections.abc import Callable

from relaycast_gateway.clock import Clock
from relaycast_gateway.delivery.sender import PacedSender, Retryable, Sender, SendOutcome, Target
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


class SendersInUse:
    """The senders by subscription, made when they are first needed."""

    def __init__(self, sender_of: Callable[[Target], Sender]) -> None:
        self._sender_of = sender_of
        self._uses: dict[str, SenderUse] = {}
        self._closing = Tasks()

    def use(self, subscription_id: str, target: Target) -> SenderUse:
        """Return the sender of a subscription; ``ValueError`` where a protocol's library is missing."""
        found = self._uses.get(subscription_id)
        if found is None:
            found = self._uses[subscription_id] = SenderUse(self._sender_of(target), self._close)
        return found

    def turn(self, subscription_id: str, target: Target) -> float:
        """Take the sender's turn for a message, or return the seconds until there is one."""
        try:
            paced = self.use(subscription_id, target).paced
        except ValueError:
            return 0.0  # the attempt says why
        return 0.0 if paced is None else paced.take_turn()

    def turn_ended(self, subscription_id: str) -> None:
        """Report to the sender that an attempt ended, sent or not."""
        use = self._uses.get(subscription_id)
        if use is not None and use.paced is not None:
            use.paced.turn_ended()

    def retire(self, subscription_id: str) -> None:
        """Have the next message of a subscription use another sender."""
        use = self._uses.pop(subscription_id, None)
        if use is not None:
            use.retire()

    async def closed(self) -> None:
        """Wait until those that are retired and unused are closed."""
        await self._closing.ended()

    def _close(self, sender: Sender) -> None:
        self._closing.add(asyncio.ensure_future(sender.close()))
