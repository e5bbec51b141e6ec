"""The site is built without a warning, holds what it should, and asks nothing of any network.

Most of a build is the reference and the index for searching. A plain check builds the site without the two: pages,
links between them, chapters and the page of commands. The slow suite builds it whole.
"""

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from relaycast.cli.command import VERBS
from rooms import PACKAGES, ROOT


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


SHORT = """
INHERIT: {root}/mkdocs.yml
docs_dir: {root}/docs
hooks: ["{root}/docs/walkthrough/site_pages.py", "{root}/docs/reference/help_pages.py"]
plugins: []
validation: {{links: {{anchors: ignore}}}}
"""
"""The settings of a build without the reference, whose names are anchors."""


def built(folder: Path, settings: Path) -> Path:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(settings), "-d", str(folder)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""}
    )
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("site"), ROOT / "mkdocs.yml")


@pytest.fixture(scope="module")
def short_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = tmp_path_factory.mktemp("settings") / "mkdocs.yml"
    settings.write_text(SHORT.format(root=ROOT))
    return built(tmp_path_factory.mktemp("site"), settings)


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = Linked(page.read_text()).loaded
        assert loaded
        for target in loaded:
            assert not re.match(r"(https?:)?//", target), f"{page.name} loads {target}"
            if page.name != "404.html":
                assert (page.parent / target.partition("?")[0]).exists(), f"{page.name} loads {target}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text()), style.name


@pytest.mark.slow
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


@pytest.mark.slow
def test_doctests_are_shown_as_code(site: Path) -> None:
    pages = [page.read_text() for page in (site / "reference").glob("*.html")]
    assert any("&gt;&gt;&gt;" in page for page in pages)
    assert not [page for page in pages if "<blockquote>" in page]


def test_the_page_of_commands_has_every_verb(short_site: Path) -> None:
    ids = Linked((short_site / "reference" / "commands.html").read_text()).ids
    assert set(VERBS) <= ids
    assert "proof-make" in ids


def test_a_chapter_is_shown_with_its_pictures_and_verdict(short_site: Path) -> None:
    for chapter in sorted((ROOT / "docs" / "walkthrough").glob("chapter_[0-9]*.py")):
        page = (short_site / "walkthrough" / f"{chapter.stem}.html").read_text()
        assert page.count("<svg") > 1
        assert "Not yet." in page


def test_the_pictures_are_those_that_are_drawn_now(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "docs" / "pictures"
    monkeypatch.syspath_prepend(str(folder.parent / "walkthrough"))
    monkeypatch.syspath_prepend(str(folder))
    drawn = dict(import_module("draw").pictures())
    kept = {file.stem: file.read_text() for file in folder.glob("*.svg")}
    assert {name: f"{svg}\n" for name, svg in drawn.items()} == kept
