"""Takes the pictures of the report and of the live page with Chromium: ``python docs/pictures/screens.py``.

Both pages are those of ``relaycast demo`` and ``relaycast serve oracle``, at 1,000 pixels of width.
"""

import asyncio
import base64
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

import relaycast as rc
from app.browser_tab import BrowserTab, opened
from relaycast.cli.command import execute

WIDTH = 1000
REPORT_HEIGHT, LIVE_HEIGHT = 960, 620
QUALITY = 80
"""Quality of WebP pictures, from 0 to 100."""

BLOCKS = 40


async def take(tab: BrowserTab, name: str, height: int) -> None:
    """Write the upper part of a page, ``height`` pixels of it."""
    await tab.ask("Emulation.setScrollbarsHidden", hidden=True)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    found = await tab.ask("Page.captureScreenshot", format="webp", quality=QUALITY, clip=clip)
    data = base64.b64decode(found["data"])
    (HERE / f"{name}.webp").write_bytes(data)
    print(f"{name}.webp: {len(data):,} bytes")


async def take_report(folder: Path) -> None:
    assert execute(["demo", "--quiet", "--out", str(folder)]) == 0
    (report,) = folder.glob("*/report.html")
    async with opened(report.as_uri(), folder, size=(WIDTH, REPORT_HEIGHT)) as tab:
        await take(tab, "report", REPORT_HEIGHT)


async def take_live_page(folder: Path) -> None:
    with rc.serve("oracle", block_time="manual") as chains:
        await asyncio.to_thread(chains.new_block, 2)
        async with opened(chains.http_url, folder, size=(WIDTH, LIVE_HEIGHT)) as tab:
            for _ in range(BLOCKS):  # one by one: a page that is behind is sent the newest blocks alone
                await asyncio.to_thread(chains.new_block)
                await asyncio.sleep(0.02)
            await tab.until(f"document.body.innerText.includes('{BLOCKS + 2}')")
            await take(tab, "live-page", LIVE_HEIGHT)


def main() -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(take_report(Path(folder, "report")))
        asyncio.run(take_live_page(Path(folder, "live")))


if __name__ == "__main__":
    main()
