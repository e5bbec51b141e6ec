"""Sweeps that are killed at random moments, or whose workers are: the next one completes the table, cell by cell."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil
import pyarrow.parquet as pq
import pytest

from long_hauls import soak
from relaycast.cli.exit_code import ExitCode

SWEEP = 'scenarios = ["oracle"]\nseeds = [1, 2, 3, 4, 5, 6]\nblocks = 8\n'

PATIENCE = 300
"""Seconds until a child process must have ended."""

ENDS_WELL = {0, int(ExitCode.INVARIANT_VIOLATED)}


def started(folder: Path) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "relaycast", "sweep", "sweep.toml", "--workers", "2", "--out", "table.parquet"]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, object]], float]:
    """Return the rows of a sweep that nobody disturbs, and the seconds that it takes."""
    folder, began = tmp_path_factory.mktemp("whole"), time.monotonic()
    (folder / "sweep.toml").write_text(SWEEP)
    process = started(folder)
    process.communicate(timeout=PATIENCE)
    assert process.returncode in ENDS_WELL
    return pq.read_table(folder / "table.parquet").to_pylist(), time.monotonic() - began


@pytest.mark.parametrize("victim", ["the sweep", "a worker"])
@soak(rounds=25)
def test_whatever_is_killed_the_next_sweep_completes_the_table(
    victim: str,
    whole: tuple[list[dict[str, object]], float],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    soak_round: int,
) -> None:
    rows, seconds = whole
    chance = Random(f"{victim} {soak_round}")
    (tmp_path / "sweep.toml").write_text(SWEEP)
    process = started(tmp_path)
    work, deadline = tmp_path / ".table.parquet.cells", time.monotonic() + PATIENCE
    while not work.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, seconds / 2))
    kept = len(list(work.glob("cell-*")))
    record_property("hit", f"{victim} after {kept} cells")
    if victim == "the sweep":
        process.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    else:
        _kill_a_worker(process.pid, chance)
    _, said = process.communicate(timeout=PATIENCE)
    assert b"Traceback" not in said
    assert victim == "the sweep" or process.returncode in ENDS_WELL, "another worker does its work"

    again = started(tmp_path)
    _, said = again.communicate(timeout=PATIENCE)
    assert again.returncode in ENDS_WELL, said
    assert pq.read_table(tmp_path / "table.parquet").to_pylist() == rows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.toml", "table.parquet"]


def _kill_a_worker(pid: int, chance: Random) -> None:
    """Kill a process that works for the sweep, if there is one yet or still."""
    try:
        workers = [child for child in psutil.Process(pid).children() if "spawn_main" in " ".join(child.cmdline())]
        if workers:
            chance.choice(workers).kill()
    except psutil.Error:
        return
