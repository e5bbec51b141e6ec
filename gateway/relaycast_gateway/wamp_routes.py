"""The path of the WAMP router: WebSockets with one of its subprotocols."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

    from relaycast_gateway.wamp.connections import Connections

WAMP_PATH = "/wamp"


class WampRoutes:
    """The route for an application. Who a client is, its session finds out: the request needs no token."""

    def __init__(self, connections: "Connections") -> None:
        self._connections = connections

    def add_to(self, dispatcher: "web.UrlDispatcher") -> None:
        """Add the path."""
        dispatcher.add_get(WAMP_PATH, self._socket, allow_head=False)

    async def _socket(self, request: "web.Request") -> "web.StreamResponse":
        from relaycast_gateway.wamp.websocket import serve_websocket  # noqa: PLC0415 - a server starts without it

        return await serve_websocket(request, self._connections)
