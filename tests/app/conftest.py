"""What the front door's tests share: a command that runs in this process, and files to hand it."""

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from command_line import Command, Ended, Refused, Written
from file_contents import contents
from relaycast import attacks
from relaycast.budget import search
from relaycast.cli.command import execute
from relaycast.scenario.scenario import Scenario
from relaycast_trie import Engine


@pytest.fixture
def relaycast(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in an empty folder, on lines so long that a sentence stays in one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")

    def run(*arguments: str) -> Ended:
        code = execute(arguments)
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return run


@pytest.fixture
def attacked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an attack that a test asks for in words and as JSON run once."""
    for name in ("churn", "depth", "extra", "omit", "spam", "squat"):
        monkeypatch.setattr(f"relaycast.attacks.{name}", cache(getattr(attacks, name)))


_CURVES: dict[tuple[bytes, str], search.BudgetCurve] = {}
"""By scenario and engine: what a search for budgets came to."""


@pytest.fixture
def searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that look for the budgets of one scenario share one search: it is some thirty runs."""
    genuine = search.find_budget

    def find_budget(scenario: Scenario, *, trie_engine: Engine, **given: Any) -> search.BudgetCurve:
        asked = msgspec.json.encode(scenario), trie_engine
        if asked not in _CURVES:
            _CURVES[asked] = genuine(scenario, trie_engine=trie_engine, **given)
        return _CURVES[asked]

    monkeypatch.setattr(search, "find_budget", find_budget)


@pytest.fixture
def timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the bench of the engines time everything by a single call."""

    def single(work: object, **_: object) -> float:
        assert callable(work)
        work()
        return 1e-3

    for name in ("array_engine", "plain_engine", "py_trie", "user_paths", "yardstick"):
        monkeypatch.setattr(import_module(f"relaycast.bench.{name}"), "timed", single)


@pytest.fixture
def file(tmp_path: Path) -> Written:
    """Write a file and return its name."""

    def write(content: str | bytes | list[Any] | dict[str, Any], name: str = "input.json") -> str:
        data = content if isinstance(content, str | bytes) else json.dumps(content)
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return name

    return write


@pytest.fixture
def refused(relaycast: Command, tmp_path: Path) -> Refused:
    """Run a command line that must be refused: exit code 2, nothing printed or written; return the line on stderr."""

    def run(*arguments: str) -> str:
        before = contents(tmp_path)
        ended = relaycast(*arguments)
        assert ended.code == 2
        assert ended.out == ""
        assert ended.err.startswith("relaycast: ")
        assert ended.err.count("\n") == 1
        assert ended.err.endswith("\n")
        assert contents(tmp_path) == before
        return ended.err.removeprefix("relaycast: ").rstrip("\n")

    return run
