"""Sessions begin and end as the protocol says, and nothing a client sends does more than end its own."""

import asyncio

import pytest

from gateway.wamp.memory_link import MemoryClient
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.messages import GoodbyeMessage
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.session import SessionState


@pytest.mark.matrix("WAMP-62")
@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_a_session_is_opened_and_closed_by_the_client(serializer: str) -> None:
    async def scene() -> None:
        router = Router(RouterConfig.default(), EventLog.open(), VirtualClock())
        client = MemoryClient(router, serializer)
        welcome = client.join()
        assert welcome.session == client.session.id
        assert welcome.details["authrole"] == "anonymous"
        client.say(GoodbyeMessage({}, "wamp.close.close_realm"))
        assert client.next(GoodbyeMessage).reason == "wamp.close.goodbye_and_out"
        assert client.link.is_closed
        assert client.session.state is SessionState.ENDED

    asyncio.run(scene())
