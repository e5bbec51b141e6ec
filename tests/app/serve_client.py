"""A WebSocket client for tests of the server."""

import asyncio
import json
from typing import Any

import aiohttp


class Client:
    """One connection; answers and notifications are kept apart."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.told: list[Any] = []
        self._asked = 0

    async def ask(self, method: str, *params: object) -> Any:
        self._asked += 1
        await self.socket.send_json({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        while True:
            message = await self.next()
            if message.get("id") == self._asked:
                return message.get("result", message.get("error"))
            self.told.append(message)

    async def next(self) -> Any:
        return json.loads(await self.socket.receive_str(timeout=30))

    async def notification(self) -> Any:
        return self.told.pop(0) if self.told else await self.next()


async def until(condition: Any) -> None:
    """Wait until something holds; the test's own time-out ends it otherwise."""
    while not condition():
        await asyncio.sleep(0.005)
