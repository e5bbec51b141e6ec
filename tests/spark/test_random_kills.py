"""Signals at random moments of commands on Spark: the next run completes the work, and no process is left behind.

A round sends two of them, each to a run of its own: one while Spark starts, one in a later phase. It tells which signal
hit which phase, as far as that can be seen from outside.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import uuid4

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from long_hauls import soak
from peers import missing
from relaycast_ledger.proof_tables import LIST
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import require_spark
from spark.left_processes import MARK, ends
from spark.scenarios import contents

PATIENCE = 300
"""Seconds until a child process must have come somewhere."""

LAUNCH, START, END = "Python starts", "Spark starts", "Spark stops"

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}

IDS = range(0, 3 << 18, 1_024)
"""Ids of requests: far apart, so that few proofs fill several ranges."""

LINES = (
    b"relaycast: interrupted, nothing was written",
    b"relaycast: interrupted, the same command goes on from here",
    b"relaycast: stopped by SIGTERM, nothing was written",
    b"relaycast: stopped by SIGTERM, the same command goes on from here",
)


@dataclass(slots=True)
class Running:
    """A command that runs in ``folder``, and what it writes there."""

    verb: str
    folder: Path
    arguments: list[str]
    mark: str = field(default_factory=lambda: uuid4().hex)
    process: "subprocess.Popen[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment["SPARK_LOCAL_DIRS"] = str(self.folder / "scratch")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "relaycast", *self.arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def phase(self) -> str:
        """Return what the command does now."""
        try:
            process = psutil.Process(self.process.pid)
            if not _catches(self.process.pid, signal.SIGTERM):
                return LAUNCH
            if not any(child.name() == "java" for child in process.children()):
                return START
        except (psutil.Error, OSError):
            return END
        return PHASE[self.verb](self.folder / "out")

    def wait_for(self, phases: list[str], *, seconds: float = PATIENCE) -> None:
        """Wait until the command is in one of these phases or has ended, or the time is over."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and self.phase() not in phases and time.monotonic() < deadline:
            time.sleep(0.01)


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def phase_of_run(out: Path) -> str:
    work = next(out.glob(".*.spark"), None)
    if work is None or not (work / "manifest.json").exists():
        return END if list(out.glob("[!.]*")) else START
    if any(not path.name.endswith(".spark") for path in out.glob(".*")):
        return "assembly"
    segments = json.loads((work / "manifest.json").read_bytes())["segments"]
    return "replay" if sum(bool(it["replayed"]) for it in segments.values()) > 1 else "spine"


def phase_of_prove(out: Path) -> str:
    work = out / ".proofs.parquet.parts"
    if (out / "proofs.parquet").exists():
        return END
    if (work / "whole").exists():
        return "gathering"
    return "ranges" if (work / "terms.json").exists() else START


def phase_of_verify(out: Path) -> str:
    if (out / "verdicts.parquet").exists():
        return END
    return "writing" if list(out.glob(".*.staging")) else START


PHASE = {"run": phase_of_run, "prove": phase_of_prove, "verify-proofs": phase_of_verify}

LATER = {"run": ["spine", "replay", "assembly", END], "prove": ["ranges", "gathering", END]}
LATER["verify-proofs"] = ["writing", END]


@dataclass(frozen=True, slots=True)
class Whole:
    """What an undisturbed command writes, and how long its phases take."""

    arguments: list[str]
    written: object
    seconds: dict[str, float]


def written(verb: str, out: Path) -> object:
    """Return what a command has written, whatever the order of its rows."""
    if verb == "run":
        (folder,) = out.iterdir()
        return contents(folder)
    (table,) = out.iterdir()
    return pq.read_table(table).sort_by("id").to_pylist()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Whole]:
    """Run each command once, undisturbed."""
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    known: dict[str, Whole] = {}
    inputs = tmp_path_factory.mktemp("inputs")
    pairs = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(200)}
    columns = {"key": pa.array(pairs, pa.binary()), "value": pa.array(pairs.values(), pa.binary())}
    pq.write_table(pa.table(columns), inputs / "state.parquet")
    keys = [[bytes([number % 251]) * 32, b"absent"] for number in IDS]
    pq.write_table(pa.table({"id": list(IDS), "keys": pa.array(keys, LIST)}), inputs / "requests.parquet")
    (inputs / "scenario.toml").write_text('extends = "oracle"\nblocks = 80\n')
    arguments = {
        "run": ["run", f"{inputs}/scenario.toml", "--engine", "spark", "--segment-blocks", "10", "--out", "out"],
        "prove": ["prove", f"{inputs}/state.parquet", "--requests", f"{inputs}/requests.parquet"],
        "verify-proofs": ["verify-proofs", f"{inputs}/proofs.parquet", "--out", "out/verdicts.parquet"],
    }
    arguments["prove"] += ["--out", "out/proofs.parquet"]

    def give(verb: str) -> Whole:
        if verb not in known:
            folder = tmp_path_factory.mktemp(verb)
            if verb == "verify-proofs":
                give("prove")
            known[verb] = measured(verb, folder, [*arguments[verb], "--master", "local[1]"])
            if verb == "prove":
                shutil.copytree(folder / "out" / "proofs.parquet", inputs / "proofs.parquet")
        return known[verb]

    return give


def measured(verb: str, folder: Path, arguments: list[str]) -> Whole:
    running = Running(verb, folder, arguments)
    began = {"": time.monotonic()}
    while running.process.poll() is None:
        began.setdefault(running.phase(), time.monotonic())
        time.sleep(0.01)
    _, said = running.process.communicate()
    assert running.process.returncode == 0, said
    moments = [began[""], *(began[phase] for phase in LATER[verb] if phase in began), time.monotonic()]
    phases = [START, *(phase for phase in LATER[verb] if phase in began)]
    lasted = {phase: end - begin for phase, begin, end in zip(phases, moments[:-1], moments[1:], strict=True)}
    return Whole(arguments, written(verb, folder / "out"), lasted)


@pytest.mark.parametrize("verb", PHASE)
@soak(rounds=50)
def test_whatever_a_signal_hits_the_next_run_completes_it(
    verb: str,
    whole: Callable[[str], Whole],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    soak_round: int,
) -> None:
    expected, chance = whole(verb), Random(f"{verb} {soak_round}")
    early, late = (chance.choice(list(CODES)) for _ in range(2))
    running = Running(verb, tmp_path, expected.arguments)
    running.wait_for(LATER[verb], seconds=chance.uniform(0, expected.seconds[START]))
    hit(running, early, chance, record_property)

    for whole_already in (tmp_path / "out").glob("[!.]*"):  # the moment came late
        shutil.rmtree(whole_already)
    running = Running(verb, tmp_path, expected.arguments)
    later = LATER[verb][soak_round % len(LATER[verb]) :]
    running.wait_for(later)
    time.sleep(chance.uniform(0, expected.seconds.get(later[0], 0)))
    hit(running, late, chance, record_property)

    running = Running(verb, tmp_path, expected.arguments)
    _, said = running.process.communicate(timeout=PATIENCE)
    assert running.process.returncode == 0, said
    assert ends(running.mark)
    assert written(verb, tmp_path / "out") == expected.written


def hit(running: Running, number: int, chance: Random, tell: Callable[[str, object], None]) -> None:
    """Send a signal, to the process alone or to all that it started, and look at how it ends."""
    phase, ask = running.phase(), chance.choice([os.kill, os.killpg])
    if running.process.poll() is None:
        ask(running.process.pid, number)
    else:
        phase = "after the end"
    tell("hit", f"{signal.Signals(number).name} while {phase}")
    _, said = running.process.communicate(timeout=PATIENCE)
    assert ends(running.mark), f"{phase}: processes are left"
    if phase in {LAUNCH, "after the end"}:
        return
    allowed = {CODES[signal.Signals(number)]} | ({0, -number} if phase == END else set())
    assert running.process.returncode in allowed, (phase, said)
    assert b"Traceback" not in said, phase
    assert b"Exception ignored" not in said, phase
    if running.process.returncode > 0:
        assert said.splitlines()[-1] in LINES, phase
