"""A router of ours by itself, as benchmarks and tests start it: no chains, no other faces.

::

    python benches/wamp_router.py CONFIG.toml LOG|- [--websocket PORT] [--rawsocket PORT]

Prints the two ports when it listens. ``-`` keeps the log in memory. SIGTERM stops it.
"""

import argparse
import asyncio
import signal
from pathlib import Path

from aiohttp import web

from relaycast.gc_policy import OBJECTS_OF_A_SERVER, collect_seldom
from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.connections import Connections
from relaycast_gateway.wamp.rawsocket import RawSocketServer
from relaycast_gateway.wamp.router import Router
from relaycast_gateway.wamp.router_file import read_router_config
from relaycast_gateway.wamp.websocket import serve_websocket


async def serve(config: Path, log: EventLog, websocket_port: int, rawsocket_port: int) -> None:
    router = Router(read_router_config(config), log)
    await router.start()
    connections = Connections(router, router.config.limits)
    rawsocket = RawSocketServer(connections)

    async def connected(request: web.Request) -> web.StreamResponse:
        return await serve_websocket(request, connections)

    application = web.Application()
    application.router.add_get("/wamp", connected)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", websocket_port)
    await site.start()
    await rawsocket.start("127.0.0.1", rawsocket_port)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    print(runner.addresses[0][1], rawsocket.port, flush=True)
    await stopped.wait()
    await router.stop()
    await rawsocket.stop()
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("config", type=Path)
    parser.add_argument("log")
    parser.add_argument("--websocket", type=int, default=0, metavar="PORT")
    parser.add_argument("--rawsocket", type=int, default=0, metavar="PORT")
    given = parser.parse_args()
    with EventLog.open(None if given.log == "-" else Path(given.log)) as log:
        collect_seldom(OBJECTS_OF_A_SERVER)  # as `relaycast serve` does
        asyncio.run(serve(given.config, log, given.websocket, given.rawsocket))


if __name__ == "__main__":
    main()
