"""A router that runs on a virtual clock, for as long as a test needs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.session import GOODBYE_SECONDS


@asynccontextmanager
async def running(config: RouterConfig | None = None) -> AsyncIterator[tuple[Router, VirtualClock]]:
    """Yield a router with a log in memory, and its clock."""
    clock = VirtualClock()
    with EventLog.open(clock=clock) as log:
        router = Router(config or RouterConfig.default(), log, clock)
        await router.start()
        yield router, clock
        stopping = asyncio.ensure_future(router.stop())
        while not stopping.done():
            await clock.advance(GOODBYE_SECONDS)  # clients here do not answer GOODBYE
            await asyncio.sleep(0.001)  # the log's writer is a thread
        await stopping
