"""Clients and the router together: publish, subscribe, call and register over both transports and every serializer."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.wamp.served_router import TRANSPORTS, ServedRouter, play
from gateway.wamp.test_client import each_transport, everywhere
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.client.values import CallReply, ReceivedEvent, SessionEnded
from relaycast_gateway.wamp.errors import (
    CANCELED,
    NO_SUCH_PROCEDURE,
    NO_SUCH_SUBSCRIPTION,
    PROCEDURE_ALREADY_EXISTS,
    PROTOCOL_VIOLATION,
    WampError,
)
from relaycast_gateway.wamp.serializers import SERIALIZER_NAMES

VALUES: list[Any] = [None, True, -1, 2**53, 2.5, "text \N{SNOWMAN}", b"\0\xff", [1, [b"deep"]], {"k": {"b": b""}}]


class Inbox:
    """What a subscriber has got."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[ReceivedEvent] = asyncio.Queue()

    def __call__(self, event: ReceivedEvent) -> None:
        self._queue.put_nowait(event)

    async def next(self) -> ReceivedEvent:
        return await self._queue.get()


@pytest.mark.matrix("WAMP-63")
@everywhere
def test_events_reach_subscribers_as_they_were_published(transport: str, serializer: str) -> None:
    async def scene(it: ServedRouter) -> None:
        inbox, prefix_inbox = Inbox(), Inbox()
        subscriber = await it.client(transport, serializer)
        publisher = await it.client(transport, serializer)
        subscription = await subscriber.subscribe("com.app.topic", inbox)
        await subscriber.subscribe("com.app.", prefix_inbox, match="prefix")
        publication = await publisher.publish("com.app.topic", VALUES, {"all": VALUES})
        event = await inbox.next()
        assert (event.subscription, event.publication) == (subscription, publication)
        assert (list(event.args), event.kwargs) == (VALUES, {"all": VALUES})
        assert (await prefix_inbox.next()).details["topic"] == "com.app.topic"
        assert await publisher.publish("com.app.topic", acknowledge=False) is None
        assert (await inbox.next()).args == ()
        await subscriber.unsubscribe(subscription)
        await publisher.publish("com.app.topic", ["for the pattern only"])
        await prefix_inbox.next()
        assert (await prefix_inbox.next()).args == ["for the pattern only"]
        with pytest.raises(WampError) as refused:
            await subscriber.unsubscribe(subscription)
        assert refused.value.uri == NO_SUCH_SUBSCRIPTION

    play(scene)


@pytest.mark.matrix("WAMP-64")
@everywhere
def test_a_call_reaches_its_procedure_and_the_result_its_caller(transport: str, serializer: str) -> None:
    def echo(*args: Any, **kwargs: Any) -> CallReply:
        return CallReply(args, kwargs)

    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    def fail(*args: Any, **kwargs: Any) -> None:
        raise WampError("com.app.failed", *args, kwargs=kwargs)

    def break_down() -> None:
        raise ZeroDivisionError("by zero")

    async def scene(it: ServedRouter) -> None:
        callee, caller = await it.client(transport, serializer), await it.client(transport, serializer)
        ids = [await callee.register(f"com.app.{each.__name__}", each) for each in (echo, later, fail, break_down)]
        assert len(set(ids)) == 4
        reply = await caller.call("com.app.echo", *VALUES, all=VALUES)
        assert (list(reply.args), reply.kwargs) == (VALUES, {"all": VALUES})
        assert (await caller.call("com.app.later", 41)).value == 42
        assert (await caller.call("com.app.echo")).value is None
        with pytest.raises(WampError) as refused:
            await caller.call("com.app.fail", 1, b"2", three=[3])
        assert (refused.value.uri, list(refused.value.arguments)) == ("com.app.failed", [1, b"2"])
        assert refused.value.kwargs == {"three": [3]}
        with pytest.raises(WampError, match="ZeroDivisionError: by zero"):
            await caller.call("com.app.break_down")
        with pytest.raises(WampError) as refused:
            await caller.register("com.app.echo", echo)
        assert refused.value.uri == PROCEDURE_ALREADY_EXISTS
        await callee.unregister(ids[0])
        with pytest.raises(WampError) as refused:
            await caller.call("com.app.echo")
        assert refused.value.uri == NO_SUCH_PROCEDURE

    play(scene)


@each_transport
def test_a_result_can_come_in_parts(transport: str) -> None:
    async def count(end: int) -> AsyncIterator[CallReply]:
        for number in range(end):
            yield CallReply([number], {"of": end})

    async def scene(it: ServedRouter) -> None:
        callee, caller = await it.client(transport), await it.client(transport)
        await callee.register("com.app.count", count)
        parts: list[CallReply] = []
        reply = await caller.call("com.app.count", 5, on_progress=parts.append)
        assert [(part.value, part.kwargs) for part in parts] == [(number, {"of": 5}) for number in range(5)]
        assert reply.args == ()

    play(scene)


@each_transport
def test_a_caller_that_is_cancelled_cancels_its_call(transport: str) -> None:
    async def scene(it: ServedRouter) -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        callee, caller = await it.client(transport), await it.client(transport)
        await callee.register("com.app.wait", wait)
        calling = asyncio.create_task(caller.call("com.app.wait"))
        await begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await ended.wait()
        with pytest.raises(WampError):  # the session goes on
            await caller.call("com.app.none")

    play(scene)


@each_transport
def test_a_callee_that_leaves_fails_the_calls_it_has_not_answered(transport: str) -> None:
    async def scene(it: ServedRouter) -> None:
        begun = asyncio.Event()

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        callee, caller = await it.client(transport), await it.client(transport)
        await callee.register("com.app.wait", wait)
        calling = asyncio.create_task(caller.call("com.app.wait"))
        await begun.wait()
        await callee.leave()
        with pytest.raises(WampError) as refused:
            await calling
        assert refused.value.uri == CANCELED

    play(scene)


@pytest.mark.matrix("WAMP-60")
@pytest.mark.parametrize("to", SERIALIZER_NAMES)
@pytest.mark.parametrize("of", SERIALIZER_NAMES)
def test_values_reach_clients_of_other_serializers(of: str, to: str) -> None:
    """What a format lacks arrives as the nearest that it has, and harms nobody."""
    sent: list[Any] = [b"bytes", "\0text", math.inf, 2**64 - 1]
    read = {"json": [b"bytes", b"\0text", None, 2**64 - 1], "msgpack": sent, "cbor": sent}
    expected = read[to] if of != "json" else [b"bytes", b"\0text", None, 2**64 - 1]

    async def scene(it: ServedRouter) -> None:
        inbox = Inbox()
        subscriber, publisher = await it.client("rawsocket", to), await it.client("websocket", of)
        await subscriber.subscribe("com.app.topic", inbox)
        await publisher.publish("com.app.topic", sent)
        assert (await inbox.next()).args == expected
        if of != "msgpack":
            await publisher.publish("com.app.topic", [2**70])
            assert (await inbox.next()).args == ([str(2**70)] if to == "msgpack" else [2**70])
        await publisher.publish("com.app.topic", ["still there"])
        assert (await inbox.next()).args == ["still there"]

    play(scene)


@pytest.mark.matrix("WAMP-66")
@everywhere
@pytest.mark.parametrize("data", [b"\xff\xff", b"", b"[", b"\x80", b'[16,0,{},"a"]', b"\x85\x10\x01\xa0\x61a"])
def test_bytes_that_are_no_message_end_their_session_and_no_other(transport: str, serializer: str, data: bytes) -> None:
    async def scene(it: ServedRouter) -> None:
        inbox = Inbox()
        good, bad = await it.client(transport, serializer), await it.client(transport, serializer)
        await good.subscribe("com.app.topic", inbox)
        await bad._wire.send(data if serializer != "json" else data.decode("latin-1").encode())
        ended = await bad.until_ended()
        assert ended.reason == PROTOCOL_VIOLATION
        assert "expected" in ended.message
        with pytest.raises(SessionEnded):
            await bad.publish("com.app.topic")
        await good.publish("com.app.topic", exclude_me=False)
        await inbox.next()

    play(scene)


@pytest.mark.matrix("WAMP-61")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_publisher_gets_its_own_event_if_it_asks_for_it(transport: str) -> None:
    async def scene(it: ServedRouter) -> None:
        inbox = Inbox()
        client: WampClient = await it.client(transport, "json")
        await client.subscribe("com.myapp.topic1", inbox)
        await client.publish("com.myapp.topic1", ["not for me"])
        await client.publish("com.myapp.topic1", ["Hello, world!"], exclude_me=False)
        assert (await inbox.next()).args == ["Hello, world!"]

    play(scene)
