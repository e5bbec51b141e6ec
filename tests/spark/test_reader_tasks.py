"""A run whose readers are built in tasks of Spark, side by side: the same folder, and what happens when one ends."""

import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Listener
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.refusal import BadInput
from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.run_estimate import Way
from relaycast.simulation.run_files import simulate
from relaycast.simulation.side_by_side import WorkerEnded
from relaycast.simulation.spark_engine import SparkOptions, simulate_with_spark
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.jobs import FAILED, _answered
from spark.scenarios import MARKET, UPGRADED, contents, recorded

HUNDRED = replace(load_preset("hundred-subscribers"), blocks=5)


class Counted:
    """A progress that counts blocks, and does something at the third."""

    def __init__(self, at_three: Callable[[], None] = lambda: None) -> None:
        self.done, self.at_three = 0, at_three

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        assert (stage, done, unit) == ("built", 0, "blocks")

    def advance(self, _stage: str, rows: int) -> None:
        self.done += rows
        if self.done == 3:
            self.at_three()


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("scenario", [MARKET, UPGRADED, HUNDRED], ids=lambda scenario: scenario.name)
def test_it_leaves_the_same_folder(tmp_path: Path, scenario: Scenario) -> None:
    local = simulate(scenario, out=tmp_path / "local").folder
    counted = Counted()
    ways: list[Way] = []
    finished = simulate_with_spark(
        scenario, out=tmp_path / "tasks", options=SparkOptions(workers=2), progress=counted, say=ways.append
    )
    assert ways == [Way(2, "--workers 2")]
    assert contents(finished.folder) == contents(local)
    assert finished.outcome.engine == "spark"
    assert counted.done == scenario.blocks
    assert [path.name for path in (tmp_path / "tasks").iterdir()] == [local.name]


@pytest.mark.usefixtures("spark")
def test_the_command_says_that_many_readers_are_built_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "hundred-subscribers", "--blocks", "5", "--engine", "spark", "--out", str(tmp_path / "spark")]
    assert execute(command) == ExitCode.FINE
    said = "relaycast: spread by readers side by side in 2 processes, a run that is stopped starts over: 1."
    assert said in capsys.readouterr().err
    local = simulate(HUNDRED, out=tmp_path / "local").folder
    assert contents(tmp_path / "spark" / local.name) == contents(local)


def command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended meanwhile
        return ""


def end_the_tasks() -> None:
    """Kill the processes that Spark runs tasks of Python in: each is the child of one like itself."""
    python = [it for it in psutil.Process().children(recursive=True) if "pyspark.daemon" in command_of(it)]
    tasks = [it for it in python if it.ppid() in {other.pid for other in python}]
    assert tasks
    for task in tasks:
        task.kill()


@pytest.mark.usefixtures("spark")
def test_a_task_that_is_killed_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(WorkerEnded, match="a worker process ended in relay block"):
        simulate_with_spark(HUNDRED, out=tmp_path, options=SparkOptions(workers=2), progress=Counted(end_the_tasks))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("spark")
def test_more_tasks_than_cores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailable, match="3 tasks run at the same time, and it has 2 cores"):
        simulate_with_spark(HUNDRED, out=tmp_path, options=SparkOptions(workers=4))
    assert list(tmp_path.iterdir()) == []


def test_recorded_publications_are_refused(tmp_path: Path) -> None:
    scenario = recorded(tmp_path / "feed.csv")
    with pytest.raises(BadInput, match="2 with recorded publications on Spark"):
        simulate_with_spark(scenario, out=tmp_path / "out", options=SparkOptions(workers=2))
    assert not (tmp_path / "out").exists()


def answer_to(*callers: tuple[bytes, bytes]) -> int | None:
    """Return which task the driver hears, when callers come one after another: each has a key and says something."""
    with Listener(("127.0.0.1", 0), authkey=b"ours") as listener:

        def call() -> None:
            for key, said in callers:
                try:
                    with Client(listener.address, authkey=key) as line:
                        line.send_bytes(said)
                except Exception:
                    continue

        thread = threading.Thread(target=call)
        thread.start()
        number, line = _answered(listener)
        line.close()
        thread.join()
    return number


def test_the_driver_hears_who_has_the_key() -> None:
    assert answer_to((b"ours", b"7")) == 7
    assert answer_to((b"theirs", b"7"), (b"ours", b"3")) == 3
    assert answer_to((b"ours", FAILED)) is None
