"""The harness in Rust that the guide shows: it compiles without cargo, and finds vectors that differ."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "conformance"
REGISTRY = Path("/usr/share/cargo/registry")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The harness, compiled; skipped where there is no compiler or library, unless all peers are required."""
    missing = "rustc" if shutil.which("rustc") is None else "librust-serde-json-dev"
    if shutil.which("rustc") is None or not list(REGISTRY.glob("serde_json-*")):
        if os.environ.get("RELAYCAST_REQUIRE_PEERS") == "1":
            pytest.fail(f"{missing} is missing")
        pytest.skip(f"{missing} is missing")
    out = tmp_path_factory.mktemp("target")
    subprocess.run([EXAMPLE / "build.sh", out], check=True, capture_output=True, timeout=300)
    return out / "harness"


@pytest.fixture(scope="module")
def suite(conformance_suite: Path) -> Path:
    return conformance_suite


def run(harness: Path, suite: Path) -> tuple[int, dict[str, tuple[int, int, int]], str]:
    """Return the exit code, the counts of each form (agree, differ, not run), and what was said of errors."""
    ended = subprocess.run([harness, suite], capture_output=True, text=True, timeout=120, check=False)
    counts = {}
    for line in ended.stdout.splitlines():
        if not line.startswith("  "):
            words = line[24:].split()
            counts[line[:24].strip()] = int(words[0]), int(words[2]), int(words[4])
    return ended.returncode, counts, ended.stderr


def test_the_harness_reads_every_vector_and_agrees_where_it_has_an_implementation(harness: Path, suite: Path) -> None:
    code, counts, _ = run(harness, suite)
    manifest = json.loads((suite / "suite.json").read_text())
    prunings = counts["subscriber prune"]
    assert code == 0
    assert sum(map(sum, counts.values())) - sum(prunings) == manifest["vectors"]
    assert counts["proofs verification"][0] > 50
    assert counts["proofs verification"][1:] == (0, 0)
    assert counts["subscriber verify"][2] > 1_000


def changed(suite: Path, folder: Path, old: str, new: str) -> Path:
    """Return a copy of the suite with the first ``old`` in its proofs replaced."""
    copy = shutil.copytree(suite, folder / "suite")
    for file in sorted((copy / "proofs").glob("*.json")):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            if '"test":"verification"' in line.replace(" ", "") and old in line:
                lines[number] = line.replace(old, new, 1)
                file.write_text("\n".join(lines))
                return copy
    raise AssertionError(f"no {old} in the proofs")


def test_a_vector_that_is_wrong_is_found(harness: Path, suite: Path, tmp_path: Path) -> None:
    code, counts, _ = run(harness, changed(suite, tmp_path, '"RootMismatch"', '"MissingNode"'))
    assert code == 1
    assert counts["proofs verification"][1] == 1


def test_a_suite_that_cannot_be_read_is_an_error_in_one_line(harness: Path, suite: Path, tmp_path: Path) -> None:
    for wrong in (tmp_path / "nothing", changed(suite, tmp_path, '"root"', '"rood"')):
        code, _, said = run(harness, wrong)
        assert (code, said.count("\n")) == (2, 1)
