"""Two processes write one table: the one that came first completes it, the other is refused before it starts Spark."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peers import missing
from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast_ledger.table_places import TablePlace, alone_at
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import require_spark

PATIENCE = 240
"""Seconds until a child process must have ended."""

COUNT = 600

PROVE = ["prove", "state.parquet", "--count", str(COUNT), "--keys", "2", "--out"]
VERIFY = ["verify-proofs", "proofs.parquet", "--out"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the working folder, with a state in it."""
    pairs = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}
    columns = {"key": pa.array(pairs, pa.binary()), "value": pa.array(pairs.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(place: str, pid: int) -> str:
    return f"relaycast: {place}: got process {pid} that writes there, expected no other process\n"


@pytest.mark.parametrize("command", [PROVE, ["verify-proofs", "state.parquet", "--out"]])
def test_a_second_writer_is_refused_at_once_and_leaves_the_place_as_it_is(
    command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with alone_at(TablePlace("table"), "--out"):
        before = sorted(folder.rglob("*"))
        assert execute([*command, "table"]) == ExitCode.BAD_INPUT
        assert sorted(folder.rglob("*")) == before
    assert capsys.readouterr().err == refused("table", os.getpid())
    assert [path.name for path in folder.iterdir()] == ["state.parquet"]


def test_tables_side_by_side_have_a_writer_each(folder: Path) -> None:
    with (
        alone_at(TablePlace("a"), "--out"),
        alone_at(TablePlace("a.b"), "--out"),
        alone_at(TablePlace("deep/a"), "--out"),
    ):
        assert sorted(path.name for path in folder.iterdir()) == [".a.b.parts", ".a.parts", "deep", "state.parquet"]
    assert [path.name for path in folder.iterdir()] == ["state.parquet"]


def started(command: list[str]) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "relaycast", *command, "table", "--master", "local[2]"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(folder: Path) -> dict[int, dict[str, object]]:
    """Return the rows of the table by id, each of which occurs once."""
    table = pq.read_table(folder / "table").to_pylist()
    assert sorted(row["id"] for row in table) == list(range(COUNT))
    return {row["id"]: row for row in table}


MEETINGS = [
    (PROVE, PROVE, "while it writes"),
    (VERIFY, PROVE, "together"),  # two verbs, and either may come first
]
MORE_MEETINGS = [
    (PROVE, PROVE, "together"),
    (PROVE, PROVE, "while Spark starts"),
    (VERIFY, VERIFY, "while it writes"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "moment"), MEETINGS)
def test_of_two_processes_one_writes_the_whole_table(
    first: list[str], second: list[str], moment: str, folder: Path
) -> None:
    one_writes_the_whole_table(first, second, moment, folder)


@pytest.mark.soak
@pytest.mark.parametrize(("first", "second", "moment"), MORE_MEETINGS)
def test_of_two_processes_one_writes_the_whole_table_however_they_meet(
    first: list[str], second: list[str], moment: str, folder: Path
) -> None:
    one_writes_the_whole_table(first, second, moment, folder)


def one_writes_the_whole_table(first: list[str], second: list[str], moment: str, folder: Path) -> None:
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    if VERIFY in (first, second):
        assert execute([*PROVE, "proofs.parquet", "--master", "local[2]"]) == 0
    before = {path.name for path in folder.iterdir()}
    one = started(first)
    wait(one, moment, folder)
    other = started(second)
    ended = [(it.pid, *it.communicate(timeout=PATIENCE), it.returncode) for it in (one, other)]
    (winner,) = (it for it in ended if it[-1] == 0)
    (loser,) = (it for it in ended if it[-1] != 0)
    if moment != "together":
        assert winner[0] == one.pid
    assert loser[1:] == ("", refused("table", winner[0]), ExitCode.BAD_INPUT)
    assert {path.name for path in folder.iterdir()} == before | {"table"}

    whole = rows(folder)
    if moment == "while it writes":  # what a refused process left is the same at each moment: nothing
        third = started(first)
        assert (third.communicate(timeout=PATIENCE)[0], third.returncode) == (winner[1], 0)
        assert rows(folder) == whole
        assert {path.name for path in folder.iterdir()} == before | {"table"}


def wait(process: "subprocess.Popen[str]", moment: str, folder: Path) -> None:
    """Wait until a process has come so far."""

    def is_there() -> bool:
        if moment == "while Spark starts":
            return any(child.name() == "java" for child in psutil.Process(process.pid).children())
        return moment == "together" or any(folder.glob("**/.*.staging"))

    deadline = time.monotonic() + PATIENCE
    while not is_there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
