"""Runs come to what is recorded of them, byte for byte, whichever engine works on their tries."""

import json
import shutil
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import run_digests
from relaycast.scenario.files import runnable_presets

SHORT_CASES = run_digests.short_cases()
WHOLE = {name: given for name, given in run_digests.cases().items() if name not in SHORT_CASES}
ENGINES = ("plain", "array")
ON_EACH_ENGINE = {"publishers"} | {f"{preset} short" for preset in ("late-subscriber", "mass-expiry", "moving-window")}
"""Runs whose states change most: keys expire and move, and a reader begins anew. What a policy chooses does not depend
on the engine."""


def compare(name: str, given: list[str], out: Path, engine: str) -> None:
    """Fail with a line for each part that differs from what is recorded."""
    now = run_digests.run(given, out, "--trie-engine", engine)
    before = run_digests.stored()[name]["parts"]
    assert run_digests.differences(now, before) == []


def is_slow(name: str, engine: str) -> bool:
    return name == "many-keys short" or (engine == "array" and name not in ON_EACH_ENGINE)


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(name, engine, marks=[pytest.mark.slow] if is_slow(name, engine) else [])
        for name in SHORT_CASES
        for engine in ENGINES
    ],
)
def test_a_run_comes_to_what_is_recorded(name: str, engine: str, tmp_path: Path) -> None:
    compare(name, SHORT_CASES[name], tmp_path, engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WHOLE)
def test_a_preset_at_full_length_comes_to_what_is_recorded(name: str, engine: str, tmp_path: Path) -> None:
    compare(name, WHOLE[name], tmp_path, engine)


def test_every_preset_and_every_scenario_has_its_digests() -> None:
    assert list(run_digests.PRESETS) == sorted(runnable_presets())
    assert run_digests.stored().keys() == run_digests.cases().keys()
    assert all(it["reason"] for it in run_digests.stored().values())


def test_each_policy_changes_what_it_is_recorded_for() -> None:
    stored, changing = run_digests.stored(), 0
    for file in run_digests.FOLDER.glob("policy-*.toml"):
        ground = Path(tomllib.loads(file.read_text())["extends"]).stem
        ours, theirs = stored[file.stem]["parts"], stored[ground]["parts"]
        assert any(ours[table] != theirs[table] for table in run_digests.TABLES), file.stem
        changing += 1
    assert changing >= 10


@pytest.fixture(scope="module")
def scarce(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    out = tmp_path_factory.mktemp("scarce")
    run_digests.run(SHORT_CASES["scarce"], out)
    (folder,) = out.iterdir()
    return folder


def changed_parts(folder: Path, before: run_digests.Digests) -> set[str]:
    now = run_digests.digests_of(folder)
    return {part for part in now.keys() | before.keys() if now.get(part) != before.get(part)}


def test_whatever_a_file_says_counts(scarce: Path, tmp_path: Path) -> None:
    def copy() -> Path:
        return Path(shutil.copytree(scarce, tmp_path / "copy", dirs_exist_ok=True))

    before = run_digests.digests_of(scarce)
    for name in run_digests.TABLES:
        table = pq.read_table(copy() / f"{name}.parquet")
        pq.write_table(table.slice(1), tmp_path / "copy" / f"{name}.parquet")
        assert changed_parts(tmp_path / "copy", before) == {name}
    events = copy() / "events.jsonl"
    lines = events.read_text().splitlines()
    relay = next(index for index, line in enumerate(lines) if '"relay"' in line)
    events.write_text("\n".join([*lines[:relay], *lines[relay + 1 :]]))
    assert changed_parts(tmp_path / "copy", before) == {"events", "events of relay"}
    copied = copy() / "run.json"
    copied.write_text(copied.read_text().replace('"callbacks": 119', '"callbacks": 120'))
    assert changed_parts(tmp_path / "copy", before) == {"figures"}
    snapshot = copy() / "pov.snapshot.toml"
    snapshot.write_text(snapshot.read_text().replace("callbacks = 119", "callbacks = 120"))
    assert changed_parts(tmp_path / "copy", before) == {"snapshot"}


def test_what_was_asked_does_not_count(scarce: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(scarce, tmp_path / "copy"))
    told = json.loads((copied / "run.json").read_text())
    told |= {"run_id": "ff" * 8, "version": "9.9", "engine": "spark", "scenario": {}}
    (copied / "run.json").write_text(json.dumps(told))
    (copied / "report.html").unlink()
    assert changed_parts(copied, run_digests.digests_of(scarce)) == set()


def test_nothing_is_recorded_anew_without_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stored.json"
    kept = run_digests.stored()
    kept["recorded"]["parts"]["events"] = "1 of something else"
    file.write_text(json.dumps(kept))
    monkeypatch.setattr(run_digests, "STORED", file)

    monkeypatch.setattr(sys, "argv", ["run_digests.py", "recorded"])
    assert run_digests.main() == 1
    assert json.loads(file.read_text()) == kept

    monkeypatch.setattr(sys, "argv", ["run_digests.py", "--reason", "events of a new kind", "recorded"])
    assert run_digests.main() == 0
    anew = json.loads(file.read_text())
    assert anew["recorded"]["reason"] == "events of a new kind"
    kept["recorded"] = {"reason": "events of a new kind", "parts": run_digests.stored()["recorded"]["parts"]}
    assert anew == kept
