"""The site is built without a warning, holds what it should, and asks nothing of any network.

Most of a build is the reference and the index for searching. The slow suite builds all of it; a plain check builds the
site without the two, where the chapters are run (`test_walkthrough.py`).
"""

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

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
    public = {name for name in module.__all__ if not name.startswith("_")}
    assert public - top == set()
    assert not [name for name in top if name.startswith("_")]


def test_doctests_are_shown_as_code(site: Path) -> None:
    pages = [page.read_text() for page in (site / "reference").glob("*.html")]
    assert any("&gt;&gt;&gt;" in page for page in pages)
    assert not [page for page in pages if "<blockquote>" in page]
