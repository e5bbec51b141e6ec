"""``benches/bench_long_run.py``: what is told of a long run follows from what was seen of it, attempts together."""

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from relaycast.bench.processes import DAEMON, DRIVER, JVM, WORKER, Process, family
from relaycast.scenario.files import load_named

BENCHES = Path(__file__).parents[2] / "benches"
MIB = 1 << 20


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_long_run", BENCHES / "bench_long_run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_long_run"] = module
    spec.loader.exec_module(module)
    return module


def look(attempt: int, second: float, done: tuple[int, int, int], *processes: tuple[int, str, int, float]) -> Any:
    """Return what is seen at one moment; sizes in MiB, half of them unique."""
    stages = zip(("relay chain", "replayed", "written"), done, strict=True)
    seen = [[number, role, size * MIB, size * MIB // 2, cpu] for number, role, size, cpu in processes]
    return {"attempt": attempt, "second": second, "done": {name: it for name, it in stages if it}, "processes": seen}


LOOKS = [
    look(1, 10, (40, 20, 0), (1, DRIVER, 100, 4.0), (2, JVM, 500, 1.0), (3, WORKER, 60, 3.0), (4, WORKER, 70, 3.5)),
    look(1, 20, (60, 40, 0), (1, DRIVER, 110, 8.0), (2, JVM, 510, 2.0), (3, WORKER, 66, 6.0)),
    look(2, 5, (60, 40, 0), (1, DRIVER, 90, 1.0), (7, JVM, 400, 1.0), (8, WORKER, 65, 0.5)),
    look(2, 25, (100, 90, 0), (1, DRIVER, 120, 6.0), (7, JVM, 450, 2.0), (8, WORKER, 68, 7.5)),
    look(2, 30, (100, 100, 0), (1, DRIVER, 121, 7.0), (7, JVM, 450, 2.0)),
    look(2, 40, (100, 100, 100), (1, DRIVER, 140, 16.0), (7, JVM, 450, 2.0)),
    look(2, 42, (100, 100, 100)),
]
"""A run of 100 blocks that was ended after 20 seconds and went on: process 1 is another one then."""


def test_each_phase_takes_the_time_of_all_attempts(bench: ModuleType) -> None:
    assert bench.phase_seconds(LOOKS, 100) == {
        "relay chain": 20 + 25.0,
        "replayed": 20 + 30.0,
        "written": 10.0,
        "report": 2.0,
    }


def test_processor_time_is_that_of_all_processes_that_ever_were(bench: ModuleType) -> None:
    assert bench.cpu_seconds(LOOKS) == {DRIVER: 8 + 16.0, JVM: 4.0, WORKER: 6 + 3.5 + 7.5}


def test_peaks_are_of_one_process(bench: ModuleType) -> None:
    assert bench.largest(LOOKS, 2) == {DRIVER: 140, JVM: 510, WORKER: 70}
    assert bench.largest(LOOKS, 3) == {DRIVER: 70, JVM: 255, WORKER: 35}


def test_the_table_goes_on_to_the_end(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(json.dumps(bench.report_of(LOOKS, 100)))
    assert [it["done"].get("replayed", 0) for it in report["moments"]] == [20, 40, 90, 90, 100, 100, 100, 100, 100, 100]
    assert report["moments"][-1]["mebibytes"][DRIVER] == 140
    assert report["attempts"] == 2
    bench.print_report(report)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["relay", "chain", "45", "2.2"]
    assert lines[lines.index("") + 2].split() == [DRIVER, "24", "240.00", "140", "70"]
    assert lines[-1].split()[:3] == ["100", "100", "140"]


@pytest.mark.parametrize(
    ("line", "stage", "done"),
    [
        ("relaycast: relay chain 1,001 of 100,000 blocks, 27/s, 3,704 s left\n", "relay chain", "1,001"),
        ("relaycast: replayed goes on after 250 of 100,000 blocks\n", "replayed", "250"),
        ("relaycast: written 100,000 of 100,000 blocks, 600/s\n", "written", "100,000"),
    ],
)
def test_progress_is_read_from_the_lines_of_the_command(bench: ModuleType, line: str, stage: str, done: str) -> None:
    found = bench.STAGE.match(line)
    assert (found["stage"], found["done"]) == (stage, done)


def test_the_load_is_what_the_bench_is_named_for() -> None:
    scenario = load_named(str(BENCHES / "long_run.toml"), "run").with_copies()
    assert (scenario.blocks, len(scenario.publishers()), len(scenario.subscribers())) == (100_000, 20, 10)


@pytest.mark.parametrize(
    ("programs", "role"),
    [
        (["java", "python3", "bash"], JVM),
        (["python3", "java", "python3"], DAEMON),
        (["python3", "python3", "java", "python3"], WORKER),
        (["bash", "python3"], "bash"),
    ],
)
def test_processes_are_told_apart_by_what_stands_above_them(programs: list[str], role: str) -> None:
    from relaycast.bench.processes import _role  # noqa: PLC0415 - what no caller needs

    assert _role(programs) == role


def test_a_process_sees_itself_as_the_driver() -> None:

    own: Process
    own, *_ = (it for it in family(os.getpid(), unique=True) if it.number == os.getpid())
    assert own.role == DRIVER
    assert own.resident_bytes >= own.unique_bytes > MIB
    assert own.cpu_seconds > 0
