"""``./check`` says of each step how it ended, and fails when one does; stand-ins play the tools."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rooms import ROOT

TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
echo "$(basename "$0") searches ${HYPOTHESIS_PROFILE-usual}, compiles ${PYTHONDONTWRITEBYTECODE-once}" >> "$LOG.set"
[ "$(basename "$0")" != mypy ] || echo "Success: no issues found in ${FILES:-1} source files"
case " ${FAILING-} " in *" $(basename "$0") "*) echo "what $(basename "$0") says"; exit 1 ;; esac
"""
PYTHON = """#!/bin/sh
echo "python $*" >> "$LOG"
[ "$1" = -c ] || echo 1
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    place = tmp_path / "a clone"
    (place / "app").mkdir(parents=True)
    (place / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "check", place / "check")
    (place / "app" / "prepare.sh").write_text("")
    for name in ("ruff", "mypy", "pytest", "python"):
        tool = place / ".venv" / "bin" / name
        tool.write_text(PYTHON if name == "python" else TOOL)
        tool.chmod(0o755)
    return place


def check(clone: Path, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LOG": str(clone.parent / "log"), **more}
    return subprocess.run(
        [clone / "check", *arguments], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def pytests(clone: Path) -> list[str]:
    return [line for line in (clone.parent / "log").read_text().splitlines() if line.startswith("pytest")]


def test_every_step_is_told_and_all_is_well(clone: Path) -> None:
    ended = check(clone)
    assert ended.returncode == 0, ended.stdout
    lines = ended.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        [step, "ok"] for step in ("format", "lint", "kernels", "tests", "types")
    ]
    assert lines[-1].startswith("check: all is well, ")
    assert len(pytests(clone)) == 1


@pytest.mark.parametrize(("tool", "steps"), [("mypy", "types"), ("pytest", "tests"), ("ruff", "format, lint")])
def test_a_step_that_fails_is_named_with_what_it_said(clone: Path, tool: str, steps: str) -> None:
    ended = check(clone, FAILING=tool)
    assert ended.returncode == 1
    assert f"check: failed: {steps} after " in ended.stdout
    assert f"what {tool} says" in ended.stdout


def test_types_that_were_not_checked_in_every_file_are_a_failure(clone: Path) -> None:
    ended = check(clone, FILES="7")
    assert ended.returncode == 1
    assert "there are 1 files of Python" in ended.stdout


@pytest.mark.parametrize(
    ("argument", "markers"),
    [("--slow", ["", "(slow or oracle or clients or brokers) and not soak"]), ("--soak", ["soak"])],
)
def test_an_argument_chooses_the_suites(clone: Path, argument: str, markers: list[str]) -> None:
    assert check(clone, argument).returncode == 0
    assert [line.partition(" -m ")[2].partition(" --")[0] for line in pytests(clone)] == markers


@pytest.mark.parametrize(
    ("arguments", "given", "profile"),
    [
        ([], {}, "quick"),
        ([], {"HYPOTHESIS_PROFILE": "ci"}, "ci"),  # what a developer asks for
        (["--slow"], {}, "usual"),  # conftest chooses: dev, or ci where CI is set
    ],
)
def test_searches_are_short_unless_more_is_asked_for(
    clone: Path, arguments: list[str], given: dict[str, str], profile: str
) -> None:
    assert check(clone, *arguments, PYTHONDONTWRITEBYTECODE="1", **given).returncode == 0
    told = (clone.parent / "log.set").read_text().splitlines()
    assert {line for line in told if line.startswith("pytest")} == {f"pytest searches {profile}, compiles once"}


def test_an_argument_that_is_none_is_refused(clone: Path) -> None:
    ended = check(clone, "--fast")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "check: unknown argument '--fast', expected --slow, --soak or nothing\n"


@pytest.mark.slow
def test_a_files_tests_share_a_worker_and_those_on_spark_do() -> None:
    files = ["node/test_era.py", "xcm/test_assets.py", "spark/test_bulk_verbs.py", "spark/test_table_places.py"]
    command = [sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, *(str(ROOT / "tests" / file) for file in files)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    ran = set(re.findall(r"^\[(gw\d)\] .* tests/(\S+?)::", ended.stdout, re.MULTILINE))
    assert len(ran) == len(files)
    assert len({worker for worker, _ in ran}) == 2
    assert len({worker for worker, file in ran if file.startswith("spark/")}) == 1
