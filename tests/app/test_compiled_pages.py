"""Templates are compiled once for all processes, and whatever is wrong with what was kept costs a compilation alone."""

import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from jinja2 import DictLoader, Environment

from relaycast.report import compiled_pages
from relaycast.report.compiled_pages import CompiledPages

NAME = "page.html.j2"

Rendered = Callable[[str], tuple[str, int]]
"""Renders a template in an environment of its own; returns the page, and how often a template was compiled."""


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rendered:
    monkeypatch.setattr(compiled_pages, "__file__", str(tmp_path / "compiled_pages.py"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)

    def render(source: str) -> tuple[str, int]:
        made = Environment(autoescape=True, loader=DictLoader({NAME: source}), bytecode_cache=CompiledPages())
        with patch.object(made, "compile", wraps=made.compile) as compiling:
            return made.get_template(NAME).render(), compiling.call_count

    return render


def kept(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def test_a_template_is_compiled_once(rendered: Rendered) -> None:
    assert [rendered("one") for _ in range(3)] == [("one", 1), ("one", 0), ("one", 0)]


def test_a_changed_template_is_compiled_anew_and_replaces_the_old_one(rendered: Rendered, tmp_path: Path) -> None:
    assert [rendered(source) for source in ("one", "two", "two")] == [("one", 1), ("two", 1), ("two", 0)]
    assert len(kept(tmp_path)) == 1


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9], ids="{:.0%}".format)
def test_a_torn_file_is_compiled_anew(rendered: Rendered, tmp_path: Path, part: float) -> None:
    rendered("one")
    (file,) = kept(tmp_path)
    file.write_bytes(file.read_bytes()[: int(part * file.stat().st_size)])
    assert [rendered("one") for _ in range(2)] == [("one", 1), ("one", 0)]


def test_nothing_is_written_where_python_writes_no_bytecode(
    rendered: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered("one") == ("one", 1)
    assert kept(tmp_path) == []


def test_a_folder_that_cannot_be_written_costs_a_compilation(rendered: Rendered, tmp_path: Path) -> None:
    (tmp_path / "pages").write_text("a file in the way of the folder")
    assert [rendered("one") for _ in range(2)] == [("one", 1), ("one", 1)]
