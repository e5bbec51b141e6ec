"""A standalone master with two workers on loopback, an executor killed in mid-run, and the folder of a local run.

They are started from the classes that PySpark itself brings; nothing else is installed.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peers import missing
from relaycast.scenario.files import load_scenario
from relaycast.simulation.run_files import simulate
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import require_spark
from spark.scenarios import contents

pytestmark = pytest.mark.slow

SCENARIO = 'extends = "oracle"\nblocks = 200\n'

PATIENCE = 240
"""Seconds until something must have come about."""


@contextmanager
def daemon(name: str, log: Path, *arguments: str, within: tuple[str, ...] = ()) -> Iterator[int]:
    """Run one of Spark's daemons for a while and yield its process; it and what it started end with the ``with`` block.

    It is started by the command ``within``, if there is one.
    """
    import pyspark  # noqa: PLC0415

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    loud = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}  # a session's is quiet
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*within, str(spark_class), f"org.apache.spark.deploy.{name}", *arguments],
            stdout=stream,
            stderr=stream,
            env={**loud, **own},
            start_new_session=True,
        )
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def says(log: Path, text: str) -> bool:
    return text in log.read_text()


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that daemons log to and executors work in."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(works: Path) -> Iterator[str]:
    """Start a master and two workers with a core each, and return its URL."""
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    logs = [works / name for name in ("master.log", "worker-1.log", "worker-2.log")]
    common = ("--host", "127.0.0.1", "--webui-port", "0")
    sizes = ("--cores", "1", "--memory", "1g")
    with daemon("master.Master", logs[0], *common, "--port", str(port)):
        until(partial(says, logs[0], "Starting Spark master"), "no master")
        places = [("--work-dir", str(works / f"work-{number}")) for number in (1, 2)]
        with (
            daemon("worker.Worker", logs[1], *common, *sizes, *places[0], url),
            daemon("worker.Worker", logs[2], *common, *sizes, *places[1], url),
        ):
            for log in logs[1:]:
                until(partial(says, log, "Successfully registered with master"), f"no {log.stem}")
            yield url


def executors(folder: Path) -> list[int]:
    """Return the processes of the executors that work below ``folder``."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line, place = process.info["cmdline"], process.info["cwd"]
        if line and place and any("CoarseGrainedExecutorBackend" in it for it in line):
            found += [process.pid] if Path(place).is_relative_to(folder) else []
    return found


def test_readers_are_built_in_tasks_of_two_executors(tmp_path: Path, master: str) -> None:
    file, out = tmp_path / "scenario.toml", tmp_path / "out"
    file.write_text('extends = "hundred-subscribers"\nblocks = 4\n')
    command = [sys.executable, "-m", "relaycast", "run", str(file), "--engine", "spark", "--master", master]
    ended = subprocess.run(
        [*command, "--workers", "3", "--out", str(out)],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert ended.returncode == 0, ended.stderr
    local = simulate(load_scenario(str(file)), out=tmp_path / "local").folder
    assert contents(out / local.name) == contents(local)


def test_more_tasks_than_the_cluster_has_cores_are_told(tmp_path: Path, master: str) -> None:
    command = [sys.executable, "-m", "relaycast", "run", "hundred-subscribers", "--blocks", "4", "--engine", "spark"]
    at_once = ["--conf", "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures=1"]
    ended = subprocess.run(
        [*command, "--master", master, "--workers", "5", *at_once, "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert ended.returncode == 1
    said = f"relaycast: JobFailed: {master} has too few cores: 4 tasks run at the same time"
    assert ended.stderr.splitlines()[-1] == said
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_killed_executor_changes_nothing(tmp_path: Path, works: Path, master: str) -> None:
    file, out = tmp_path / "scenario.toml", tmp_path / "out"
    file.write_text(SCENARIO)
    arguments = ["run", str(file), "--engine", "spark", "--master", master, "--segment-blocks", "10"]
    run = subprocess.Popen(
        [sys.executable, "-m", "relaycast", *arguments, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    try:
        until(lambda: run.poll() is not None or len(list(out.glob(".*.spark/segment-*"))) > 4, "no segments")
        assert run.poll() is None, run.communicate()
        victims = executors(works)
        assert victims, "no executor to kill"
        os.kill(victims[0], signal.SIGKILL)
        until(lambda: run.poll() is not None or victims[0] not in executors(works), "the executor lives")
        _, said = run.communicate(timeout=PATIENCE)
    finally:
        if run.poll() is None:
            run.kill()
            run.communicate()
    assert run.returncode == 0, said
    local = simulate(load_scenario(str(file)), out=tmp_path / "local").folder
    assert contents(out / local.name) == contents(local)
    assert [path.name for path in out.iterdir()] == [local.name]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    pairs = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}
    columns = {"key": pa.array(pairs, pa.binary()), "value": pa.array(pairs.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    return tmp_path / "state.parquet"


def ended(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "relaycast", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


def test_proofs_are_written_to_and_verified_in_a_folder_that_workers_share(
    tmp_path: Path, state: Path, master: str
) -> None:
    proofs, verdicts = tmp_path / "proofs", tmp_path / "verdicts"
    made = ended("prove", state, "--count", 500, "--keys", 2, "--master", master, "--out", proofs)
    assert made.returncode == 0, made.stderr
    judged = ended("verify-proofs", f"file://{proofs}", "--master", master, "--out", verdicts)
    assert judged.returncode == 0, judged.stderr
    assert sorted(pq.read_table(verdicts).column("id").to_pylist()) == list(range(500))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proofs", "state.parquet", "verdicts"]


def test_a_folder_that_one_worker_does_not_share_is_told_with_its_host_before_the_work(
    tmp_path: Path, works: Path, state: Path, master: str
) -> None:
    """A third worker has another file system at the folder."""
    folder, log = tmp_path / "folder", works / "worker-3.log"
    folder.mkdir()
    aside = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs {folder} && exec "$@"', "sh")
    if subprocess.run([*aside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a process cannot have mounts of its own here")
    made = ended("prove", state, "--count", 50, "--engine", "local", "--workers", 1, "--out", folder / "proofs")
    assert made.returncode == 0, made.stderr
    arguments = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
    with daemon("worker.Worker", log, *arguments, "--work-dir", str(works / "work-3"), master, within=aside):
        until(partial(says, log, "Successfully registered with master"), "no third worker")
        for verb in (["prove", state, "--count", 9, "--out", folder / "t"], ["verify-proofs", folder / "proofs"]):
            refused = ended(*verb, "--master", master)
            assert refused.returncode == 2, refused.stderr
            got = f"a path that the worker on {socket.gethostname()} does not share with this machine"
            assert got in refused.stderr.splitlines()[-1]
    assert [path.name for path in folder.iterdir()] == ["proofs"]


def test_an_executor_that_is_killed_loses_no_proofs(tmp_path: Path, works: Path, state: Path, master: str) -> None:
    arguments = ["prove", str(state), "--count", "600000", "--keys", "2", "--master", master, "--out"]
    run = subprocess.Popen(
        [sys.executable, "-m", "relaycast", *arguments, str(tmp_path / "proofs")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    try:
        parts = tmp_path / ".proofs.parts"
        until(lambda: run.poll() is not None or any(parts.glob(".ids-*.staging/part-*")), "no task")
        os.kill(executors(works)[0], signal.SIGKILL)
        _, said = run.communicate(timeout=PATIENCE)
    finally:
        run.kill()
    assert run.returncode == 0, said
    ids = pq.read_table(tmp_path / "proofs", columns=["id"]).column("id").to_pylist()
    assert sorted(ids) == list(range(600_000))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proofs", "state.parquet"]
