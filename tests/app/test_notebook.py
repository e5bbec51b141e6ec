"""Who gives ``_repr_html_`` to classes of all rooms, and when: with ``import relaycast``, in whatever order."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import relaycast as rc
from relaycast.notebook import CARDS
from relaycast_trie import MemoryDB, TrieDBMut

SEES = "from relaycast_trie import StorageProof as it; print(hasattr(it, '_repr_html_'))"

NOTEBOOK = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import relaycast as rc
    from relaycast_trie import MemoryDB, TrieDBMut
    return MemoryDB, TrieDBMut, rc


@app.cell
def _(MemoryDB, TrieDBMut):
    trie = TrieDBMut(MemoryDB())
    trie[b"key"] = b"value"
    trie
    return


@app.cell
def _(rc):
    net = rc.Network(seed=7)
    net.subscriber(3000, keys=[net.publisher(2000).publish("price/dot", b"5.31")])
    net.run(blocks=3)
    return
"""


def printed(program: str) -> list[str]:
    """Return the lines that a fresh interpreter prints for ``program``, which warns of nothing."""
    return _run("-W", "error", "-c", program).splitlines()


def _run(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        (SEES, "False"),  # a room alone knows no notebook
        (f"import relaycast; {SEES}", "True"),
        (f"import relaycast_trie, relaycast; {SEES}", "True"),  # the class was there first
        (f"import relaycast_trie, relaycast.pytest_plugin; {SEES}", "True"),  # any way into the front door
    ],
)
def test_a_class_has_a_card_where_relaycast_is_imported(program: str, seen: str) -> None:
    assert printed(program) == [seen]


def test_cards_load_no_room_before_it_is_used() -> None:
    loaded = "print(*sorted(name for name in sys.modules if name.startswith('relaycast_')))"
    assert printed(f"import sys, relaycast; {loaded}") == [""]
    drawn = "from relaycast_trie import StorageProof; StorageProof([b'node'])._repr_html_()"
    (rooms,) = printed(f"import sys, relaycast; {drawn}; {loaded}")
    assert {name.partition(".")[0] for name in rooms.split()} == {"relaycast_trie"}
    assert not [name for name in rooms.split() if ".kernels" in name]


def test_a_module_with_cards_is_as_its_own_loader_made_it() -> None:
    asked = "it = sys.modules['relaycast_trie.plain.trie_db']; print(it.__loader__ is it.__spec__.loader)"
    shown = "print(type(it.__loader__).__name__, inspect.getsource(it).startswith(chr(34) * 3))"
    program = f"import inspect, importlib, sys, relaycast, relaycast_trie; {asked}; {shown}"
    again = "print(hasattr(importlib.reload(it).TrieDB, '_repr_html_'))"
    assert printed(f"{program}; {again}") == ["True", "SourceFileLoader True", "True"]


@pytest.mark.parametrize("path", CARDS)
def test_the_table_names_classes_where_they_are_defined(path: str) -> None:
    module, _, name = path.rpartition(".")
    shown = getattr(import_module(module), name)
    assert f"{shown.__module__}.{shown.__qualname__}" == path
    assert "_repr_html_" in vars(shown)
    file, _, drawing = CARDS[path].partition(".")
    assert callable(getattr(import_module(f"relaycast.notebook.{file}"), drawing))


def test_marimo_shows_the_cards(tmp_path: Path) -> None:
    notebook, page = tmp_path / "notebook.py", tmp_path / "page.html"
    notebook.write_text(NOTEBOOK)
    _run("-m", "marimo", "-q", "export", "html", str(notebook), "-o", str(page))
    shown = [json.loads(text) for text in re.findall(r'"text/html": ("(?:[^"\\]|\\.)*")', page.read_text())]
    trie = TrieDBMut(MemoryDB())
    trie[b"key"] = b"value"
    net = rc.Network(seed=7)
    net.subscriber(3000, keys=[net.publisher(2000).publish("price/dot", b"5.31")])
    things = (trie, net.run(blocks=3))
    assert shown == [getattr(thing, "_repr_html_")() for thing in things]  # noqa: B009 - not a method mypy knows
