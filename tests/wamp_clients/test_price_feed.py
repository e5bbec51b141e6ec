"""The example in a browser draws what the history holds, and goes on with what is published."""

import asyncio
import shutil
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from app.browser_tab import DESK, PHONE, BrowserTab, opened
from clients.conversation import PEERS
from docs.code_blocks import ROOT
from peers import missing
from relaycast.serve.in_process import ServedNetwork

pytestmark = pytest.mark.brokers

EXAMPLE = ROOT / "docs" / "examples" / "price-feed" / "index.html"
WAMPY = PEERS / "wamp" / "node_modules" / "wampy" / "dist" / "browser" / "wampy.min.js"
TOPIC = "io.relaycast.data.published.p2000"
SHOWN = 60

DRAWN = """[...document.querySelectorAll("#chart circle")].map(dot => ({
  publication: Number(dot.dataset.publication), price: Number(dot.dataset.price),
  x: Number(dot.getAttribute("cx")), y: Number(dot.getAttribute("cy")),
}))"""


@contextmanager
def example(folder: Path) -> Iterator[str]:
    """Serve the page with the library beside it, and nothing else."""
    if not WAMPY.is_file():
        missing("wampy is not in .peers/wamp: .ci/peers installs it")
    site = folder / "site"
    site.mkdir()
    shutil.copy(EXAMPLE, site)
    shutil.copy(WAMPY, site)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def kept(chains: ServedNetwork, key: str) -> list[tuple[int, float]]:
    """Return publication and price of each value of a key, as the log has them."""
    gateway = chains._server.gateway
    assert gateway is not None
    found = []
    for record in gateway.log.read(limit=100_000):
        if record.topic == TOPIC:
            data = dict(record.data.content)
            if data["key"].content.hex() == key[2:] and data["value"].content:
                (number,) = struct.unpack("<I", data["value"].content[:4])
                found.append((record.pub_id, number / 2**32 * 100))
    return found[-SHOWN:]


async def drawn_as_kept(tab: BrowserTab, chains: ServedNetwork, blocks: int) -> list[dict[str, Any]]:
    """Wait until that many prices are drawn, and return them; they are those of the history."""
    await tab.until(f'document.querySelectorAll("#chart circle").length === {min(blocks, SHOWN)}')
    key = await tab.evaluate('document.getElementById("feed").value')
    expected = await asyncio.to_thread(kept, chains, key)
    await tab.until(f'document.querySelector("#chart circle:last-of-type").dataset.publication == {expected[-1][0]}')
    dots: list[dict[str, Any]] = await tab.evaluate(DRAWN)
    assert [(dot["publication"], dot["price"]) for dot in dots] == expected
    assert [dot["x"] for dot in dots] == sorted({dot["x"] for dot in dots})
    low, high = 260 - 24, 12
    assert all(abs(dot["y"] - (low - (low - high) * dot["price"] / 100)) < 0.1 for dot in dots)
    shown = await tab.evaluate('document.getElementById("price").textContent')
    assert shown == f"{expected[-1][1]:.2f}"
    return dots


@pytest.mark.parametrize(("size", "is_dark"), [(DESK, False), (PHONE, True)], ids=["desk", "phone in the dark"])
def test_the_history_is_drawn_and_then_each_new_price(tmp_path: Path, size: tuple[int, int], is_dark: bool) -> None:
    async def look(url: str, chains: ServedNetwork) -> None:
        async with opened(f"{url}?url={chains.wamp_url}", tmp_path, size=size, is_dark=is_dark) as tab:
            await tab.until('document.getElementById("feed").length === 50')
            sent = len(kept(chains, await tab.evaluate('document.getElementById("feed").value')))
            await drawn_as_kept(tab, chains, sent)
            for _ in range(3):
                await asyncio.to_thread(chains.new_block)
                sent += 1
                await drawn_as_kept(tab, chains, sent)
            await tab.evaluate('(at("feed").selectedIndex = 7, at("feed").onchange())')
            await drawn_as_kept(tab, chains, sent)
            wide = await tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, "the page is wider than the screen"
            ink = await tab.evaluate("getComputedStyle(document.body).color")
            assert ink == ("rgb(236, 236, 244)" if is_dark else "rgb(27, 28, 38)")
            assert tab.console == []
            await tab.picture(tmp_path / "price-feed.png")

    with rc.serve("oracle") as chains, example(tmp_path) as url:
        chains.new_block(4)
        asyncio.run(look(url, chains))


def test_more_history_than_is_drawn_and_bursts_keep_every_price(tmp_path: Path) -> None:
    async def look(url: str, chains: ServedNetwork) -> None:
        async with opened(f"{url}?url={chains.wamp_url}", tmp_path) as tab:
            await drawn_as_kept(tab, chains, SHOWN)
            await asyncio.to_thread(chains.new_block, 25)
            await drawn_as_kept(tab, chains, SHOWN)
            assert tab.console == []

    with rc.serve("oracle") as chains, example(tmp_path) as url:
        chains.new_block(70)
        asyncio.run(look(url, chains))


def test_the_page_goes_on_with_another_router_at_the_same_address(tmp_path: Path) -> None:
    async def look(url: str) -> None:
        serving = rc.serve("oracle")
        chains = await asyncio.to_thread(serving.__enter__)
        port = int(chains.url.rpartition(":")[2])
        try:
            await asyncio.to_thread(chains.new_block, 8)
            async with opened(f"{url}?url={chains.wamp_url}", tmp_path) as tab:
                await tab.until('document.getElementById("feed").length === 50')
                await asyncio.to_thread(serving.__exit__, None, None, None)
                await tab.until('document.getElementById("state").classList.contains("bad")')
                serving = rc.serve("oracle", port=port)
                chains = await asyncio.to_thread(serving.__enter__)
                await asyncio.to_thread(chains.new_block, 5)
                await tab.until('!document.getElementById("state").classList.contains("bad")')
                key = await tab.evaluate('document.getElementById("feed").value')
                await drawn_as_kept(tab, chains, len(kept(chains, key)))
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)

    with example(tmp_path) as url:
        asyncio.run(look(url))


def test_a_missing_library_and_a_missing_router_are_said(tmp_path: Path) -> None:
    async def look(url: str) -> None:
        async with opened(f"{url}?url=ws://127.0.0.1:1/wamp", tmp_path) as tab:
            await tab.until('document.getElementById("state").classList.contains("bad")')

    with example(tmp_path) as url:
        asyncio.run(look(url))
        (tmp_path / "site" / "wampy.min.js").unlink()

        async def look_again() -> None:
            async with opened(url, tmp_path / "again") as tab:
                text = await tab.evaluate('document.getElementById("state").textContent')
                assert text.startswith("wampy.min.js is missing")

        asyncio.run(look_again())
