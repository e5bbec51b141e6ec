"""One client: what it subscribed to, and what is on its way to it.

INVARIANT: what waits for a client is bounded. A client that reads its answers too slowly gets no more of them until it
reads. Notifications cannot wait: a client that falls behind with them is cut off with a reason.

Clients take turns: code that works for one calls ``RpcSession.rest`` after each small piece of work.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from secrets import token_hex
from time import perf_counter
from typing import TypeVar

from relaycast_node.rpc.rpc_error import (
    INTERNAL_ERROR,
    TOO_MANY_SUBSCRIPTIONS,
    RpcError,
    over_limit,
)

T = TypeVar("T")

MOST_SUBSCRIPTIONS = 1_024
"""Open subscriptions that one client may have: the default of a Substrate node."""

TURN_SECONDS = 0.002
"""Length of one client's turn."""

MOST_HINTS = 16
"""Number of 'did you mean' hints per client: finding one takes longer than most methods."""

MOST_WAITING_MESSAGES = 1_024
MOST_WAITING_BYTES = 16 * 1024 * 1024
MESSAGES_OF_A_TURN = 64
"""Number of messages written to a client in one turn, however fast it reads."""


class ClientLeft(Exception):
    """The client that waited for an answer has left."""


class ClientOutbox:
    """Messages that wait for one client, the oldest first."""

    def __init__(self, *, messages: int = MOST_WAITING_MESSAGES, size: int = MOST_WAITING_BYTES) -> None:
        self.most_messages = messages
        self.most_bytes = size
        self.waiting_bytes = 0
        self.broken = ""
        """Why the client is cut off, once it is."""

        self.on_cut_off: Callable[[str], None] | None = None
        self._waiting: deque[bytes] = deque()
        self._feeds: deque[Callable[[], bool]] = deque()
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._closed = False
        self._taken = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self.most_messages or self.waiting_bytes >= self.most_bytes

    def put(self, message: bytes) -> None:
        """Add an answer; who asks waits for ``room`` first."""
        if not self._closed:
            self._waiting.append(message)
            self.waiting_bytes += len(message)
            self._filled.set()
            if self.is_full:
                self._drained.clear()

    def notify(self, message: bytes) -> None:
        """Add a notification; a client that has left no room for it is cut off."""
        if self.is_full and not self._closed:
            self.cut_off(
                f"too slow: {len(self._waiting)} messages of {self.waiting_bytes} bytes wait, "
                f"the limits are {self.most_messages} and {self.most_bytes}"
            )
        self.put(message)

    def feed(self, put_next: Callable[[], bool]) -> None:
        """Queue a long answer message by message, no faster than the client reads.

        ``put_next`` queues one message, or works for one step without one, and returns whether there may be more.
        """
        self._feeds.append(put_next)
        self._refill()

    def _refill(self) -> None:
        """Queue messages of long answers for one turn, while at least half of the queue is free."""
        while self._feeds and not self._closed and 2 * len(self._waiting) < self.most_messages:
            if 2 * self.waiting_bytes >= self.most_bytes:
                return
            before = len(self._waiting)
            if not self._feeds[0]():
                self._feeds.popleft()
            elif len(self._waiting) == before:
                return

    async def get(self) -> bytes | None:
        """Return the next message, ``None`` once nothing more comes; lets other clients run from time to time."""
        self._refill()
        self._taken += 1
        if self._taken % MESSAGES_OF_A_TURN == 0:
            await asyncio.sleep(0)
        while not self._waiting:
            if self._closed:
                return None
            if self._feeds:
                await asyncio.sleep(0)
                self._refill()
                continue
            self._filled.clear()
            await self._filled.wait()
        message = self._waiting.popleft()
        self.waiting_bytes -= len(message)
        if not self.is_full:
            self._drained.set()
        return message

    async def room(self) -> None:
        """Wait until there is room for an answer, or nothing more is taken."""
        await self._drained.wait()

    def close(self) -> None:
        """Take no more messages; those that wait can still be read."""
        self._closed = True
        self._filled.set()
        self._drained.set()

    def cut_off(self, reason: str) -> None:
        """Drop what waits and take nothing more."""
        self.broken = self.broken or reason
        self._waiting.clear()
        self._feeds.clear()
        self.waiting_bytes = 0
        self.close()
        if self.on_cut_off is not None:
            self.on_cut_off(self.broken)


class Subscription:
    """Something that a client subscribed to; nothing is sent before the client knows the ``id``."""

    def __init__(self, notification: str, outbox: ClientOutbox, forget: Callable[["Subscription"], None]) -> None:
        self.id = token_hex(8)
        self.notification = notification
        self._outbox = outbox
        self._forget = forget
        self._head = f'{{"jsonrpc":"2.0","method":"{notification}","params":{{"subscription":"{self.id}","result":'
        self._opening = self._head.encode()
        self._early: list[bytes] | None = []
        self._results: Iterator[bytes | None] | None = None
        self._is_finished = self._is_closed = False
        self._disconnects: list[Callable[[], None]] = []

    def send(self, result: bytes) -> None:
        """Send a notification with a ``result`` in JSON; nothing after the last one, or after the end."""
        if self._is_finished or self._is_closed:
            return
        message = self._opening + result + b"}}"
        if self._early is None:
            self._outbox.notify(message)
        else:
            self._early.append(message)

    def stream(self, results: Iterator[bytes | None]) -> None:
        """Send ``results`` in JSON one by one, no faster than the client reads, until it wants no more.

        ``None`` ends a step.
        """
        self._results = results

    def finish(self) -> None:
        """Send nothing more: the client need not end what has come to its end."""
        self._is_finished = True
        if self._early is None:
            self._forget(self)

    def start(self) -> None:
        """Send what came before the client knew the id, and everything after it at once."""
        early, self._early = self._early or [], None
        for message in early:
            self._outbox.notify(message)
        if self._is_finished:
            self._forget(self)
        elif self._results is not None:
            self._outbox.feed(self._send_next)

    def _send_next(self) -> bool:
        if self._results is None:
            return False
        for result in self._results:
            if result is not None:
                self.send(result)
            return True
        self.finish()
        return False

    def on_close(self, disconnect: Callable[[], None]) -> None:
        """Call ``disconnect`` when the client is gone or wants no more."""
        self._disconnects.append(disconnect)

    def close(self) -> None:
        self._is_closed = True
        self._results = None
        disconnects, self._disconnects = self._disconnects, []
        for disconnect in disconnects:
            disconnect()


class RpcSession:
    """One client of one chain; without ``subscribes`` it makes single requests, as over HTTP.

    ``has_left`` returns whether its connection is closed. ``admit`` takes a number of further requests, and returns an
    error if they exceed the rate limit, else ``None``. ``clock`` returns seconds. ``denied`` is the name of a client
    that may not call the ``dev_*`` methods.
    """

    def __init__(
        self,
        *,
        subscribes: bool = True,
        outbox: ClientOutbox | None = None,
        has_left: Callable[[], bool] = lambda: False,
        admit: Callable[[int], object | None] = lambda _: None,
        clock: Callable[[], float] = perf_counter,
        denied: str | None = None,
    ) -> None:
        self.has_left = has_left
        self.admit = admit
        self.denied = denied
        self._clock = clock
        self._turn_ends = clock()
        self._hints = MOST_HINTS
        self.outbox = ClientOutbox() if outbox is None else outbox
        self.subscriptions: dict[str, Subscription] = {}
        self.kept: dict[str, object] = {}
        """State that methods keep for later calls of the same client, by id."""

        self._subscribes = subscribes
        self._new: list[Subscription] = []
        self._later: list[Callable[[], None]] = []
        self._endings: dict[str, Callable[[], None]] = {}

    async def pause(self) -> bool:
        """Let other clients run if this client's turn is over, and return whether it was."""
        is_over = self._clock() >= self._turn_ends
        if is_over:
            await asyncio.sleep(0)
            self._turn_ends = self._clock() + TURN_SECONDS
        return is_over

    async def rest(self) -> None:
        """Pause in the middle of work for this client; raises ``ClientLeft``."""
        if await self.pause() and self.has_left():
            raise ClientLeft

    def takes_hint(self) -> bool:
        """Return whether this client gets one more of its ``MOST_HINTS``."""
        self._hints -= 1
        return self._hints >= 0

    async def in_turns(self, steps: Iterator[T | None]) -> AsyncIterator[T]:
        """Yield the items of ``steps``; other clients may run at each ``None``. Raises ``ClientLeft``."""
        for found in steps:
            if found is None:
                await self.rest()
            else:
                yield found

    def open(self, notification: str) -> Subscription:
        """Return a new subscription; raises ``RpcError`` where there can be none."""
        if not self._subscribes:
            raise RpcError(INTERNAL_ERROR, "Internal error", "subscriptions need a WebSocket connection")
        if len(self.subscriptions) >= MOST_SUBSCRIPTIONS:
            message = "Too many subscriptions on the connection"
            raise over_limit(TOO_MANY_SUBSCRIPTIONS, message, MOST_SUBSCRIPTIONS)
        subscription = Subscription(notification, self.outbox, self._forget)
        self.subscriptions[subscription.id] = subscription
        self._new.append(subscription)
        return subscription

    def end(self, subscription_id: object, notification: str) -> bool:
        """End a subscription; return whether there was one of this kind."""
        if not isinstance(subscription_id, str):
            return False
        known = self.subscriptions.get(subscription_id)
        if known is None or known.notification != notification:
            return False
        del self.subscriptions[known.id]
        known.close()
        return True

    def _forget(self, subscription: Subscription) -> None:
        self.end(subscription.id, subscription.notification)

    def keep(self, thing: object, end: Callable[[], None]) -> str:
        """Keep something for later requests of this client and return its id; ``end`` it when the client is gone.

        A client that is asked once has no later requests: what it began ends at once.
        """
        name = token_hex(8)
        if not self._subscribes:
            end()
            return name
        self.kept[name], self._endings[name] = thing, end
        return name

    def drop(self, name: str) -> None:
        """Forget something kept."""
        self.kept.pop(name, None)
        self._endings.pop(name, None)

    def later(self, callback: Callable[[], None]) -> None:
        """Call back once the answer to the current request is sent."""
        self._later.append(callback)

    def start(self) -> None:
        """Let new subscriptions send, and run the postponed callbacks: the answers are sent."""
        started, self._new = self._new, []
        for subscription in started:
            if subscription.id in self.subscriptions:
                subscription.start()
        due, self._later = self._later, []
        for callback in due:
            callback()

    def close(self) -> None:
        """End everything: the client is gone."""
        self.outbox.close()
        closing, self.subscriptions = self.subscriptions, {}
        for subscription in closing.values():
            subscription.close()
        endings, self._endings = self._endings, {}
        for end in endings.values():
            end()
        self.kept.clear()
