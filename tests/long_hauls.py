"""Long hauls: tests in many rounds, with a journal, so that ``./check --soak`` goes on where it was stopped.

A round is a test of its own whose number seeds what it draws; what it tells with ``record_property`` is noted and
counted. Law: the journal counts for the sources that it was
written for. A round that passed is not run again until a source changes; one that failed is.
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pytest

from rooms import ROOMS, ROOT

Test = TypeVar("Test", bound=Callable[..., None])

Entry = dict[str, Any]

OPTION = "--soak-journal"


def soak(rounds: int) -> Callable[[Test], Test]:
    """Make a test a long haul: it is given ``soak_round``, a number from 0 on, and is run that number of times."""

    def applied(test: Test) -> Test:
        marked: Test = pytest.mark.soak(pytest.mark.parametrize("soak_round", range(rounds))(test))
        return marked

    return applied


def digest_of_sources() -> str:
    """Return a digest of all that a haul depends on."""
    digest = blake2b(digest_size=8)
    for place in (*ROOMS, "tests"):
        for file in sorted((ROOT / place).rglob("*.py")):
            digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


class Journal:
    """A plugin that leaves out the rounds that passed before, and notes those that end; one line of JSON for each."""

    def __init__(self, file: Path, sources: str) -> None:
        self.file = file
        self.sources = sources
        self.before = [it for it in self._entries() if it["outcome"] == "passed"]
        self.now: list[Entry] = []

    def _entries(self) -> list[Entry]:
        """Return what was noted for these sources; a line that a kill cut short counts for nothing."""
        entries = []
        for line in self.file.read_text().splitlines() if self.file.exists() else ():
            with suppress(ValueError):
                entry = json.loads(line)
                if entry["sources"] == self.sources:
                    entries.append(entry)
        return entries

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed before."""
        passed = {it["test"] for it in self.before}
        done = [item for item in items if _name(item.nodeid) in passed]
        items[:] = [item for item in items if _name(item.nodeid) not in passed]
        if done:
            config.hook.pytest_deselected(items=done)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a round ended, where tests are counted: not in the processes that run them for others."""
        if "PYTEST_XDIST_WORKER" in os.environ or (report.when != "call" and report.passed):
            return
        self.now.append(
            {
                "sources": self.sources,
                "test": _name(report.nodeid),
                "outcome": report.outcome,
                "seconds": round(report.duration, 2),
                "told": [text for _, text in report.user_properties],
            }
        )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a+b") as stream:
            if stream.tell() and not _ends_a_line(stream):
                stream.write(b"\n")
            stream.write(json.dumps(self.now[-1]).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was done, by test."""
        if "PYTEST_XDIST_WORKER" in os.environ:
            return
        terminalreporter.section(f"long hauls, sources {self.sources}")
        hauls = Counter({_haul(it): 0 for it in (*self.before, *self.now)})
        for haul in sorted(hauls):
            before = sum(_haul(it) == haul for it in self.before)
            rounds = [it for it in self.now if _haul(it) == haul]
            ended = Counter(str(it["outcome"]) for it in rounds)
            seconds = sum(float(it["seconds"]) for it in rounds)
            told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(ended.items())) or "none now"
            terminalreporter.write_line(f"{haul}: {before} rounds done before, {told}, {seconds:,.0f} s")
            drawn = Counter(text for it in (*self.before, *rounds) if _haul(it) == haul for text in it.get("told", ()))
            for text, count in sorted(drawn.items()):
                terminalreporter.write_line(f"  {count:>4} {text}")


def _ends_a_line(stream: BinaryIO) -> bool:
    """Tell whether the last line is whole: a kill may have cut it short."""
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) == b"\n"


def _name(nodeid: str) -> str:
    """Return a test's name without the group that it was sent to a worker with."""
    name, _, group = nodeid.rpartition("@")
    return name if name and "]" not in group else nodeid


def _haul(entry: Entry) -> str:
    return str(entry["test"]).partition("[")[0]
