"""A page in a headless Chromium that a test talks to while it runs, by the DevTools protocol."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from app.browser import OPTIONS, chromium
from peers import missing

SECONDS = 60
PHONE = (390, 844)
DESK = (1100, 900)


class BrowserTab:
    """One page; ``console`` has the errors and warnings that it logged."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.console: list[str] = []
        self._socket = socket
        self._asked = 0

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._asked += 1
        await self._socket.send_json({"id": self._asked, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=SECONDS)
            self._note(message)
            if message.get("id") == self._asked:
                assert "error" not in message, message["error"]
                found: dict[str, Any] = message["result"]
                return found

    async def evaluate(self, expression: str) -> Any:
        """Return what a JavaScript expression is in the page."""
        found = await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true in the page."""
        try:
            async with asyncio.timeout(SECONDS):
                while not await self.evaluate(f"Boolean({expression})"):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            text = await self.evaluate("document.body.innerText")
            raise AssertionError(f"never true: {expression}\n{text}\n{self.console}") from None

    async def picture(self, file: Path) -> None:
        """Write what the page looks like, all of it, as PNG."""
        found = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        await asyncio.to_thread(file.write_bytes, base64.b64decode(found["data"]))

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Runtime.exceptionThrown":
            self.console.append(str(message["params"]["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded":
            self.console.append(str(message["params"]["entry"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and message["params"]["type"] in {"error", "warning"}:
            self.console.append(str(message["params"]["args"]))


@asynccontextmanager
async def opened(
    url: str, folder: Path, *, size: tuple[int, int] = DESK, is_dark: bool = False
) -> AsyncIterator[BrowserTab]:
    """Open ``url`` in a browser of its own, until the block ends; skips without a browser."""
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        chromium(), *OPTIONS, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = await _port_of(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://127.0.0.1:{port}/json/list") as response:
                pages = [it for it in await response.json() if it["type"] == "page"]
            async with client.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = BrowserTab(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await tab.ask(f"{domain}.enable")
                width, height = size
                is_phone = size == PHONE
                await tab.ask(
                    "Emulation.setDeviceMetricsOverride",
                    width=width, height=height, deviceScaleFactor=1, mobile=is_phone,
                )  # fmt: skip
                scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
                await tab.ask("Emulation.setEmulatedMedia", features=[scheme])
                await tab.ask("Page.navigate", url=url)
                await tab.until("document.readyState === 'complete' && location.href !== 'about:blank'")
                yield tab
    finally:
        process.kill()
        await process.wait()


async def _port_of(file: Path) -> int:
    try:
        async with asyncio.timeout(SECONDS):
            while not (file.exists() and file.read_text().count("\n")):
                await asyncio.sleep(0.05)
    except TimeoutError:
        missing("Chromium does not start here")
    return int(file.read_text().splitlines()[0])
