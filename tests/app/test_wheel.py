"""A wheel made of a clone holds every room, installs into an empty environment, and runs there."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from peers import missing
from rooms import PACKAGES, ROOMS, ROOT

pytestmark = pytest.mark.slow

TAKEN = shutil.ignore_patterns("__pycache__", "*.egg-info")


def run(*command: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command that knows nothing of this checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=900)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone, made = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("wheel")
    for room in ROOMS:
        shutil.copytree(ROOT / room, clone / room, ignore=TAKEN)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone / name)
    ended = run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made, clone, cwd=made)
    if "No matching distribution found for hatchling" in ended.stderr:
        missing("the builder of wheels cannot be had without a network")
    assert ended.returncode == 0, ended.stderr
    (file,) = made.glob("relaycast-*.whl")
    return file


def test_it_holds_every_room_with_all_its_files(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = {
        str(file.relative_to(ROOT / room))
        for room in ROOMS
        for file in (ROOT / room / PACKAGES[room]).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert inside == ours


def test_it_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    assert run(sys.executable, "-m", "venv", place, cwd=tmp_path).returncode == 0
    installed = run(place / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    if "No matching distribution found" in installed.stderr:
        missing("the packages that relaycast needs cannot be had without a network")
    assert installed.returncode == 0, installed.stderr
    ended = run(place / "bin" / "relaycast", "demo", "--json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["invariants"]["ok"]
    assert (tmp_path / "out" / told["run_id"] / "report.html").exists()
