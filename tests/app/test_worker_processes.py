"""Worker processes: their work is done whatever becomes of them, and they end with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.worker_tasks import always_killed, doubled, killed_once
from relaycast.simulation.worker_processes import ATTEMPTS, WorkersEnded, worked

PATIENCE = 120


@pytest.mark.parametrize("workers", [1, 2])
def test_every_item_is_worked_on_once_whatever_the_number_of_workers(workers: int) -> None:
    items = {number: bytes([number]) for number in range(3)}
    assert dict(worked(doubled, items, workers=workers)) == {number: item * 2 for number, item in items.items()}
    assert list(worked(doubled, {}, workers=workers)) == []


def test_a_worker_that_is_killed_is_replaced_and_its_work_done_again(tmp_path: Path) -> None:
    names = ["a", "b.kill", "c"]
    items = {number: str(tmp_path / name).encode() for number, name in enumerate(names)}
    found = dict(worked(killed_once, items, workers=2))
    assert found == {number: name.encode() for number, name in enumerate(names)}
    assert (tmp_path / "b.kill").exists()


@pytest.mark.slow
def test_work_that_ends_its_workers_every_time_is_given_up() -> None:
    with pytest.raises(WorkersEnded, match=f"ended before their work was done, {ATTEMPTS} times in a row"):
        list(worked(always_killed, {0: b"", 1: b""}, workers=2))


LEFT_ALONE = """
import sys
from relaycast.simulation.worker_processes import worked
from app.worker_tasks import sleeping
if __name__ == "__main__":
    list(worked(sleeping, {number: sys.argv[1].encode() for number in range(2)}, workers=2))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_is_left_when_its_parent_ends(number: int, tmp_path: Path) -> None:
    script, marks = tmp_path / "script.py", tmp_path / "marks"
    script.write_text(LEFT_ALONE)
    marks.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, str(script), str(marks)], env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE
    while len(list(marks.iterdir())) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = [psutil.Process(int(path.name)) for path in marks.iterdir()]
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert not alive
