"""The site is built without a warning, holds what it should, and asks nothing of any network.

Most of a build is the reference and the index for searching. The slow suite builds all of it; a plain check builds the
site without the two, where the chapters are run (`test_walkthrough.py`).
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.browser_tab import PHONE, BrowserTab, opened
from rooms import PACKAGES, ROOT

pytestmark = pytest.mark.slow


class Linked(HTMLParser):
    """What a page loads by itself: scripts, styles, pictures, frames."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(given["id"] or "")
        if tag in {"script", "img", "iframe", "source"} and given.get("src"):
            self.loaded.append(given["src"] or "")
        if tag == "link" and given.get("rel") in {"stylesheet", "icon", "preconnect", "preload"}:
            self.loaded.append(given.get("href") or "")


COPIED = {"wampy.min.js"}
"""Libraries that the guide has a reader copy beside an example."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""}
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = Linked(page.read_text()).loaded
        assert loaded
        for target in loaded:
            assert not re.match(r"(https?:)?//", target), f"{page.name} loads {target}"
            if page.name != "404.html" and target not in COPIED and not target.startswith("data:"):
                assert (page.parent / target.partition("?")[0]).exists(), f"{page.name} loads {target}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text()), style.name


@pytest.mark.parametrize(("room", "package"), PACKAGES.items())
def test_the_reference_has_every_public_name_and_no_other(site: Path, room: str, package: str) -> None:
    module: Any = import_module(package)
    ids = {
        known for known in Linked((site / "reference" / f"{room}.html").read_text()).ids if known.startswith(package)
    }
    top = {
        name for known in ids if (name := re.sub(r"^(\w+)\.\1$", r"\1", known.partition(".")[2])) and "." not in name
    }
    public = {name for name in getattr(module, "__all__", ()) if not name.startswith("_")}
    assert public - top == set()
    assert not [name for name in top if name.startswith("_")]


def test_doctests_are_shown_as_code(site: Path) -> None:
    pages = [page.read_text() for page in (site / "reference").glob("*.html")]
    assert any("&gt;&gt;&gt;" in page for page in pages)
    assert not [page for page in pages if "<blockquote>" in page]


PAGES = ("gallery", "experiments", "guides/publisher", "reference/commands", "walkthrough/chapter_1_hex_tries")

PAPER = (703, 1000)
"""A4 without margins, in pixels."""

TOO_WIDE = """(() => {
  const edge = document.querySelector("article").getBoundingClientRect().right + 1;
  return [...document.querySelectorAll("article :is(table, img, svg, pre)")]
    .filter(it => it.getBoundingClientRect().right > edge || it.scrollWidth > it.clientWidth + 1)
    .map(it => it.outerHTML.slice(0, 90));
})()"""
"""What sticks out of the text, or out of itself."""

WITHOUT_A_HINT = """[...document.querySelectorAll("article *")].filter(it => {
  const style = getComputedStyle(it);
  const words = [it, it.parentElement].some(at => getComputedStyle(at, "::after").content.includes("scroll"));
  return style.overflowX === "auto" && it.scrollWidth > it.clientWidth + 1
    && !words && !style.backgroundImage.includes("gradient");
}).map(it => it.outerHTML.slice(0, 90))"""
"""What scrolls sideways, and neither shade nor words say so."""

CUT = """(() => {
  const edge = document.documentElement.getBoundingClientRect();
  return [...document.querySelectorAll("text")].filter(it => {
    const place = it.getBoundingClientRect();
    return place.right > edge.right + 0.5 || place.left < edge.left - 0.5 || place.bottom > edge.bottom + 0.5;
  }).map(it => it.textContent);
})()"""
"""Words that leave their picture."""

FAINT = (Path(__file__).parent / "contrast.js").read_text()
"""A function that finds words which stand out too little from what is behind them."""

IN_THE_DARK = "getComputedStyle(document.querySelector('article img[src$=\".svg\"]')).filter"
"""How a dark page shows a picture."""


def watched(look: Callable[[BrowserTab], Coroutine[Any, Any, None]], folder: Path, **options: Any) -> None:
    """Have ``look`` use a browser."""

    async def used() -> None:
        async with opened("about:blank#", folder, **options) as tab:
            await look(tab)

    asyncio.run(used())


async def go(tab: BrowserTab, file: Path) -> None:
    await tab.ask("Page.navigate", url=file.as_uri())
    await tab.until(f"document.readyState === 'complete' && location.href === '{file.as_uri()}'")


def test_a_page_follows_the_system_into_the_dark_and_back(site: Path, tmp_path: Path) -> None:
    async def look(tab: BrowserTab) -> None:
        await go(tab, site / "index.html")
        for wanted, scheme in (("light", "default"), ("dark", "slate"), ("light", "default")):
            feature = {"name": "prefers-color-scheme", "value": wanted}
            await tab.ask("Emulation.setEmulatedMedia", features=[feature])
            await tab.until(f"document.body.dataset.mdColorScheme === '{scheme}'")
        assert tab.console == []

    watched(look, tmp_path)


@pytest.mark.parametrize(("wanted", "scheme"), [("light", "default"), ("dark", "slate")])
def test_every_word_of_pages_and_pictures_stands_out(site: Path, tmp_path: Path, wanted: str, scheme: str) -> None:
    pages = [it for it in sorted(site.rglob("*.html")) if it.name != "404.html" and "examples" not in it.parts]
    pictures = sorted([*(site / "experiments").glob("*.svg"), *(site / "pictures").glob("*.svg")])
    assert pages
    assert pictures

    async def look(tab: BrowserTab) -> None:
        for page in pages:
            await go(tab, page)
            await tab.until(f"document.body.dataset.mdColorScheme === '{scheme}'")
            assert await tab.evaluate(f"{FAINT}()") == [], page
        await go(tab, site / "experiments.html")
        await tab.until(f"document.body.dataset.mdColorScheme === '{scheme}'")
        shown = await tab.evaluate(IN_THE_DARK)
        assert (shown == "none") == (wanted == "light")
        for picture in pictures:
            await go(tab, picture)
            assert await tab.evaluate(f"{FAINT}({shown!r})") == [], picture.name

    watched(look, tmp_path, is_dark=wanted == "dark")


def test_on_paper_everything_fits_and_pictures_are_not_dark(site: Path, tmp_path: Path) -> None:
    async def look(tab: BrowserTab) -> None:
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        await tab.ask("Emulation.setEmulatedMedia", media="print", features=[dark])
        for page in PAGES:
            await go(tab, site / f"{page}.html")
            await tab.until("document.body.dataset.mdColorScheme === 'slate'")
            assert await tab.evaluate(TOO_WIDE) == [], page
            turned = await tab.evaluate(
                "[...document.querySelectorAll('article :is(img, .result)')].map(it => getComputedStyle(it).filter)"
            )
            assert set(turned) <= {"none"}, page

    watched(look, tmp_path, size=PAPER, is_dark=True)


def test_on_a_phone_what_scrolls_sideways_says_so(site: Path, tmp_path: Path) -> None:
    async def look(tab: BrowserTab) -> None:
        for page in PAGES:
            await go(tab, site / f"{page}.html")
            assert await tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page
            assert await tab.evaluate(WITHOUT_A_HINT) == [], page

    watched(look, tmp_path, size=PHONE)


def test_no_word_of_a_chart_is_cut(site: Path, tmp_path: Path) -> None:
    async def look(tab: BrowserTab) -> None:
        for chart in sorted((site / "experiments").glob("*.svg")):
            await go(tab, chart)
            assert await tab.evaluate(CUT) == [], chart.name

    watched(look, tmp_path)
