"""A real router on loopback, over both transports, and clients of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from relaycast_gateway.clock import Clock
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.connections import ConnectionLimits, Connections
from relaycast_gateway.wamp.rawsocket import RawSocketServer
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.websocket import serve_websocket

TRANSPORTS = ("websocket", "rawsocket")


@dataclass
class ServedRouter:
    """Where the router listens; ``client`` makes clients that leave when the stage is left."""

    router: Router
    connections: Connections
    urls: dict[str, str]
    clients: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def client(self, transport: str = "websocket", serializer: str = "msgpack", **options: Any) -> WampClient:
        connected = await WampClient.connect(self.urls[transport], serializer=serializer, **options)
        return await self.clients.enter_async_context(connected)


@asynccontextmanager
async def served(
    config: RouterConfig | None = None, *, limits: ConnectionLimits | None = None, clock: Clock | None = None
) -> AsyncIterator[ServedRouter]:
    """Serve a router with a log in memory."""
    with EventLog.open() as log:
        router = Router(config or RouterConfig.default(), log, clock)
        await router.start()
        connections = Connections(router, limits or router.config.limits, clock)
        application = web.Application()

        async def serve(request: web.Request) -> web.StreamResponse:
            return await serve_websocket(request, connections)

        application.router.add_get("/wamp", serve)
        runner, raw_server = web.AppRunner(application, shutdown_timeout=1), RawSocketServer(connections)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await raw_server.start("127.0.0.1", 0)
        urls = {
            "websocket": f"ws://127.0.0.1:{runner.addresses[0][1]}/wamp",
            "rawsocket": f"rs://127.0.0.1:{raw_server.port}",
        }
        stage = ServedRouter(router, connections, urls)
        try:
            async with stage.clients:
                yield stage
            await router.stop()
        finally:
            await raw_server.stop()
            connections.abandon_all()
            await runner.cleanup()


def play(scene: Callable[[ServedRouter], Awaitable[None]], config: RouterConfig | None = None) -> None:
    """Play a scene with a served router; 20 seconds at most."""

    async def run() -> None:
        async with served(config) as stage:
            await asyncio.wait_for(scene(stage), 20)

    asyncio.run(run())
