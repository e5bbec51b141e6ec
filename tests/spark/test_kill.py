"""The driver is killed in the middle of a run: what the next one leaves is what one run would have left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import uuid4

import psutil
import pytest

from long_hauls import soak
from peers import missing
from relaycast.cli.command import execute
from relaycast.scenario.files import load_scenario
from relaycast.simulation.run_files import simulate
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import SCRATCH, require_spark
from spark.left_processes import MARK, ends
from spark.scenarios import contents

SCENARIO = 'extends = "oracle"\nblocks = 240\n'

PATIENCE = 240
"""Seconds until a child process must have come somewhere."""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    arguments = ["run", str(file), "--engine", "spark", "--master", "local[2]", "--segment-blocks", "10"]
    return [sys.executable, "-m", "relaycast", *arguments, "--out", str(tmp_path / "out")]


def started(command: list[str], out: Path, *, segments: int) -> "subprocess.Popen[bytes]":
    """Start a run and wait until it has kept some segments."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    while len(list(out.glob(".*.spark/segment-*.parquet"))) < segments:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def committed(work: Path) -> dict[str, int]:
    """Return the files of the segments that the manifest counts, with their times."""
    manifest = json.loads((work / "manifest.json").read_bytes())
    files = [f"segment-{int(number):06}.parquet" for number, it in manifest["segments"].items() if it["replayed"]]
    return {file: (work / file).stat().st_mtime_ns for file in files}


@pytest.mark.slow
def test_a_killed_run_is_resumed_to_the_same_bytes(tmp_path: Path, command: list[str]) -> None:
    kill_twice_and_resume(tmp_path, command, segments=(4, 4))


@soak(rounds=50)
def test_a_run_killed_anywhere_is_resumed_to_the_same_bytes(
    tmp_path: Path, command: list[str], soak_round: int
) -> None:
    """Two kills in each round: a hundred in all."""
    chance = Random(soak_round)
    kill_twice_and_resume(tmp_path, command, segments=(chance.randint(4, 10), chance.randint(1, 8)), chance=chance)


def kill_twice_and_resume(
    tmp_path: Path, command: list[str], *, segments: tuple[int, int], chance: Random | None = None
) -> None:
    """Kill a run once it has kept so many segments, and a second one; a ``chance`` puts the moments anywhere."""

    def wait() -> None:
        time.sleep(0.0 if chance is None else chance.uniform(0, 0.3))

    out = tmp_path / "out"
    first = started(command, out, segments=segments[0])
    wait()
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=PATIENCE)
    (work,) = out.glob(".*.spark")
    kept = committed(work)
    assert 3 <= len(kept) < 25

    second = started(command, out, segments=len(kept) + segments[1])
    wait()
    second.send_signal(signal.SIGKILL)
    second.communicate(timeout=PATIENCE)
    assert kept.items() <= committed(work).items(), "what was there was not done again"

    finished = subprocess.run([*command, "--resume"], capture_output=True, timeout=PATIENCE, check=False)
    assert finished.returncode == 0, finished.stderr
    assert b"goes on after" in finished.stderr
    local = simulate(load_scenario(command[4]), out=tmp_path / "local").folder
    assert contents(out / local.name) == contents(local)
    assert [path.name for path in out.iterdir()] == [local.name]


@pytest.mark.slow
def test_an_interrupt_stops_cleanly_and_keeps_what_is_done(tmp_path: Path, command: list[str]) -> None:
    out = tmp_path / "out"
    process = started(command, out, segments=3)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Traceback" not in said
    (work,) = out.iterdir()
    assert len(list(work.glob("segment-*.parquet"))) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("ask", [os.kill, os.killpg])
def test_a_run_that_is_asked_to_end_says_how_to_go_on(
    tmp_path: Path, command: list[str], ask: Callable[[int, int], None]
) -> None:
    """Alone, or with the Java process beside it, as systems do it."""
    out = tmp_path / "out"
    process = started(command, out, segments=4)
    ask(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert said.splitlines()[-1] == b"relaycast: stopped by SIGTERM, the same command goes on from here"
    assert b"Traceback" not in said
    assert b"refused" not in said
    (work,) = out.iterdir()
    assert len(committed(work)) >= 3, "the manifest names a file after it is there"


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True])
def test_a_run_that_is_asked_to_end_does_so_although_java_hangs_and_leaves_nothing(
    tmp_path: Path, command: list[str], hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java that hangs answers nothing, whatever the driver waits for; all that Spark writes lies where TMPDIR says."""
    scratch, mark = tmp_path / "scratch", uuid4().hex
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv(MARK, mark)
    process = started(command, tmp_path / "out", segments=3)
    assert list(scratch.glob(f"{SCRATCH}*/blockmgr-*")), "it writes there"
    if hangs:
        (java,) = [it for it in psutil.Process(process.pid).children() if it.name() == "java"]
        java.suspend()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert said.splitlines()[-1] == b"relaycast: stopped by SIGTERM, the same command goes on from here"
    assert b"Traceback" not in said
    assert ends(mark), "neither Java nor a worker is left"
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_run_whose_java_is_killed_says_so_at_once(tmp_path: Path, command: list[str]) -> None:
    process = started(command, tmp_path / "out", segments=3)
    (java,) = [it for it in psutil.Process(process.pid).children() if it.name() == "java"]
    java.kill()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert said.splitlines()[-1] == b"relaycast: JobFailed: the Java process that Spark runs in has ended"
    assert b"Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["prove", "verify-proofs"])
def test_a_table_whose_java_is_asked_to_end_with_it_says_how_to_go_on(verb: str, tmp_path: Path) -> None:
    """Java may be gone before what is half-written was removed."""
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    (tmp_path / "state.json").write_text(json.dumps([[f"0x{number:04x}", "0x01"] for number in range(40)]))
    state, proofs = str(tmp_path / "state.json"), str(tmp_path / "proofs")
    made = ["prove", state, "--count", "60000", "--keys", "1", "--engine", "local", "--workers", "1", "--out", proofs]
    if verb == "verify-proofs":
        assert execute(made) == 0
    given = [verb, proofs] if verb == "verify-proofs" else [verb, state, "--count", "3000000", "--keys", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "relaycast", *given, "--master", "local[2]", "--out", str(tmp_path / "table")],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + PATIENCE
    while not list(tmp_path.glob(".table.parts/.*.staging")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert said.splitlines()[-1] == b"relaycast: stopped by SIGTERM, the same command goes on from here"
    assert b"Traceback" not in said
    assert not (tmp_path / "table").exists()
