"""Sends to real peers with the gateway's own senders, and checks that nothing of them stays behind."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from relaycast_gateway.clock import SystemClock
from relaycast_gateway.cloudevents.encoding import encode
from relaycast_gateway.cloudevents.event import AttributeValue, Timestamp
from relaycast_gateway.cloudevents.protocol_settings import realize
from relaycast_gateway.delivery.sender import Sender, SendOutcome, Target
from relaycast_gateway.delivery.senders import sender_of
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.wire_message import ContentMode, WireMessage

LOOPBACK = ("127.0.0.1", "localhost")
"""Which hosts the guard lets through in tests."""

SECRET = "s3cret"

EVENT: dict[str, AttributeValue] = {
    "specversion": "1.0",
    "id": "7Q",
    "source": "/principal/aaaaa-aa",
    "type": "io.relaycast.data.published",
    "subject": 'Zoë "50 %"',
    "time": Timestamp(1_767_225_600_123_000_000),
    "datacontenttype": "application/json",
    "blocknumber": 7,
    "zone": True,
}

Result = TypeVar("Result")


def message(
    protocol: str,
    mode: ContentMode = "binary",
    data: bytes = b'{"key":1}',
    *,
    key_attribute: str | None = None,
    **attributes: AttributeValue,
) -> WireMessage:
    return encode({**EVENT, **attributes}, data, protocol, mode, key_attribute=key_attribute)


def target(protocol: str, sink: str, **settings: Any) -> Target:
    secrets = settings.pop("secrets", {})
    return Target(protocol, sink, realize(protocol, sink, settings), secrets)


def send(to: Target, *messages: WireMessage, allow: Iterable[str] = LOOPBACK) -> list[SendOutcome]:
    """Send one message after the other."""

    async def all_of(sender: Sender) -> list[SendOutcome]:
        return [await sender.send(it) for it in messages]

    return with_sender(to, all_of, allow=allow)


def with_sender(to: Target, use: Callable[[Sender], Awaitable[Result]], *, allow: Iterable[str] = LOOPBACK) -> Result:
    """Use a sender in an event loop of its own, and close it: afterwards no task and no thread of it is left."""

    async def used() -> Result:
        guard = SinkGuard(allow)
        sender = sender_of(guard, SystemClock())(to)
        try:
            result = await asyncio.wait_for(use(sender), 60)
        finally:
            await sender.close()
            guard.close()
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    before = set(threading.enumerate())
    result = asyncio.run(used())
    for thread in set(threading.enumerate()) - before:
        thread.join(10 if thread.name.startswith("sink-names") else 0)  # ends by itself
    assert set(threading.enumerate()) <= before
    assert SECRET not in repr(result)
    return result
