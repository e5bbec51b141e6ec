"""What a client's script says, item by item.

A script prints one line of JSON for each item of its list: ``{"item": NAME, ...}`` with what it saw, or with ``error``.
``{"ask": "cut"}`` asks for its connections through the line to be cut, ``{"ask": "restart"}`` for the server to be
killed and started again, and an empty line says that it was.
"""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clients.served import Line
from peers import missing
from rooms import ROOT

SCRIPTS = Path(__file__).parent / "scripts"
PEERS = ROOT / ".peers"
ERRORS = "stderr.txt"
SECONDS = 300.0
"""The longest that one script may take."""

Facts = dict[str, Any]


class Said:
    """The items that a script printed, by their names."""

    def __init__(self, items: Mapping[str, Facts], last_words: str) -> None:
        self._items = items
        self._last_words = last_words

    def __call__(self, item: str) -> Facts:
        """Return what the script saw; fail where it did not get there, or saw an error."""
        if item not in self._items:
            pytest.fail(f"the script says nothing of “{item}”; its last words:\n{self._last_words}")
        facts = self._items[item]
        if "error" in facts:
            pytest.fail(f"{item}: {facts['error']}")
        return facts


def node_packages(name: str) -> Path:
    """Return the folder that has the npm packages; skips without them, or without node."""
    if shutil.which("node") is None:
        missing("node is not installed")
    if not (PEERS / "clients" / "node_modules" / name / "package.json").is_file():
        missing(f"{name} is not in .peers/clients: .ci/peers installs it")
    return PEERS / "clients" / "node_modules"


def python_of(name: str) -> Path:
    """Return the interpreter of a Python client's own environment; skips without it."""
    python = PEERS / name / "bin" / "python"
    if not (PEERS / name / ".made").is_file():
        missing(f"{name} is not in .peers/{name}: .ci/peers installs it")
    return python


def npm_project(folder: Path, packages: Path, sources: Iterable[Path]) -> None:
    """Make ``folder`` a project of these sources; its packages are links, so that others can stand beside them."""
    modules = folder / "node_modules"
    modules.mkdir()
    for package in packages.iterdir():
        if package.name.startswith("@"):
            (modules / package.name).mkdir()
            for scoped in package.iterdir():
                (modules / package.name / scoped.name).symlink_to(scoped)
        else:
            (modules / package.name).symlink_to(package)
    (folder / "package.json").write_text('{"name": "client", "private": true, "type": "module"}')
    for source in sources:
        shutil.copy(source, folder)


@contextmanager
def script(command: Sequence[str | Path], folder: Path) -> "Iterator[subprocess.Popen[str]]":
    """Run a script in ``folder``, with pipes; what it says beside goes to ``stderr.txt`` there."""
    known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with (
        (folder / ERRORS).open("w") as stderr,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=folder,
            env={**known, "PYTHONPATH": str(ROOT / "tests")},
        ) as process,
    ):
        yield process


def listen_to(command: Sequence[str | Path], line: Line, folder: Path) -> Said:
    """Run a script to its end in ``folder`` and return what it said."""
    items: dict[str, Facts] = {}
    with script(command, folder) as process:
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        assert process.stdin is not None
        assert process.stdout is not None
        stray: list[str] = []
        for text in process.stdout:
            said = json.loads(text) if text.startswith("{") else {}
            if said.get("ask") == "cut":
                line.cut()
            elif "ask" in said:
                line.served.restart()
                print(file=process.stdin, flush=True)
            elif "item" in said:
                items[said["item"]] = said
            else:
                stray.append(text)
        code = process.wait()
        late.cancel()
    return Said(items, f"{''.join(stray[-20:])}{(folder / ERRORS).read_text()[-4_000:]}\nexit code {code}")
