"""What one pytest session says of kept proof sizes: comparisons made, sizes to keep, and entries that nobody uses.

Law: a kept file is written once, at the end and by the process that the user started. Under pytest-xdist workers hand
their notes over as plain data.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from relaycast.pov.snapshot import ScenarioSizes, Snapshot, read_snapshot, write_kept
from relaycast.refusal import BadInput

HANDED_OVER = "relaycast"
"""The name of a worker's notes in its output."""


@dataclass(slots=True)
class Notes:
    """Notes of one process; files and entries are texts, sizes are plain tables."""

    lines: list[str] = field(default_factory=list)
    compared: dict[str, list[str]] = field(default_factory=dict)
    """Entries that tests asked for, by kept file."""

    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Sizes to keep, by kept file and entry."""

    collected: dict[str, list[str]] = field(default_factory=dict)
    """The tests of each test file, as entries begin with them."""

    is_partial: bool = False
    """Whether some tests of a file were left out: entries that nobody asked for may be theirs."""

    def add(self, other: Mapping[str, Any]) -> None:
        """Take over a worker's notes."""
        self.lines += other["lines"]
        self.is_partial |= other["is_partial"]
        for file, entries in other["compared"].items():
            self.compared.setdefault(file, []).extend(entries)
        for file, sizes in other["measured"].items():
            self.measured.setdefault(file, {}).update(sizes)
        self.collected |= other["collected"]

    def collect(self, items: Iterable[pytest.Item]) -> None:
        """Note which tests there are."""
        for item in items:
            self.collected.setdefault(str(item.path), []).append(name_of_item(item))


def name_of_item(item: pytest.Item) -> str:
    """Return how a test is called in the folder of its file: ``test_feeds.py::TestOracle::test_prices[a]``."""
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"


def notes_of(config: pytest.Config) -> Notes:
    """Return the notes of this process."""
    notes = getattr(config, "_relaycast_notes", None)
    if notes is None:
        notes = config._relaycast_notes = Notes()  # type: ignore[attr-defined]
    assert isinstance(notes, Notes)
    return notes


def finish(session: pytest.Session, passed: set[str], *, deselected: bool) -> None:
    """Write what is to be kept and note what nobody uses, or hand the notes to the process that does."""
    config, notes = session.config, notes_of(session.config)
    notes.is_partial |= deselected or any("::" in argument for argument in config.args)
    notes.collect(getattr(session, "items", ()))
    if hasattr(config, "workeroutput"):
        config.workeroutput[HANDED_OVER] = asdict(notes)
        return
    updates = bool(config.getoption("--pov-update"))
    for file in sorted(notes.compared):
        path = Path(file)
        try:
            kept = read_snapshot(path) if path.exists() else Snapshot()
        except BadInput as error:
            notes.lines.append(str(error))
            continue
        obsolete = _obsolete(path, kept, notes, passed)
        measured = msgspec.convert(notes.measured.get(file, {}), dict[str, ScenarioSizes], str_keys=True)
        changed = {entry: sizes for entry, sizes in measured.items() if kept.scenarios.get(entry) != sizes}
        notes.lines += [f"{path.name}: kept {entry}" for entry in changed]
        if updates:
            notes.lines += [f"{path.name}: removed {entry}, which no test compares" for entry in obsolete]
            left = {entry: sizes for entry, sizes in kept.scenarios.items() if entry not in obsolete}
            if changed or obsolete:
                write_kept(path, Snapshot(scenarios=left).with_scenarios(changed))
        else:
            notes.lines += [f"{path.name}: no test compares {entry} (--pov-update removes it)" for entry in obsolete]


def _obsolete(file: Path, kept: Snapshot, notes: Notes, passed: set[str]) -> list[str]:
    """Return entries that no test of a complete run asked for; those of tests that did not pass may still be used."""
    if notes.is_partial:
        return []
    asked = set(notes.compared[str(file)])
    found = []
    for entry in kept.scenarios:
        test_file = file.parent / entry.partition("::")[0]
        tests = notes.collected.get(str(test_file))
        if entry in asked or (tests is None and test_file.exists()):
            continue
        if all(name in passed for name in tests or () if entry == name or entry.startswith(f"{name} ")):
            found.append(entry)
    return found
