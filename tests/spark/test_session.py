"""Starting Spark: what is missing is said in one line, before anything else happens."""

import builtins
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import (
    LOCAL_SETTINGS,
    SETTINGS,
    SessionSettings,
    bounded_end,
    chosen_settings,
    defaults_folder,
    is_master,
    local_settings,
    reason_of,
    require_java,
    require_spark,
    retrying,
    spark_session,
    user_defaults,
)


def install_java(folder: Path, says: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "25.0.1" 2025-10-21 LTS', 25),
    ],
)
def test_a_java_from_17_on_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: int) -> None:
    install_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert require_java() == version


@pytest.mark.parametrize(
    ("says", "got"),
    [
        ('java version "1.8.0_402"', "is Java 8, Spark 4 needs 17 or later: install Java 17"),
        ('openjdk version "11.0.2"', "is Java 11, Spark 4 needs 17 or later: install Java 17"),
        ("hello", "is no Java that says its version"),
    ],
)
def test_another_java_is_told_from_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, got: str
) -> None:
    install_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable) as refused:
        require_java()
    assert got in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="there is no Java on the PATH: install Java 17"):
        require_java()


def test_a_missing_pyspark_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = builtins.__import__

    def without_pyspark(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "pyspark":
            raise ImportError(name)
        return genuine(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pyspark)
    with pytest.raises(SparkUnavailable, match=r"pip install -e '\.\[spark\]'"):
        require_spark()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local[2]", "local[2,4]"),  # a failed task would never be tried again
        ("local[*]", "local[*,4]"),
        ("local", "local[1,4]"),
        ("local[2,1]", "local[2,1]"),  # somebody knows what they want
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_tries_failed_tasks_again(given: str, used: str) -> None:
    assert retrying(given) == used


def test_what_a_worker_raised_is_the_reason() -> None:
    told = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "/there/replay.py", line 124, in replay_segments
    yield from _replay_segment(row, keep_proofs)
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
relaycast_xcm.checkpoint.CheckpointRefused: the checkpoint cannot be loaded: format 2, expected 1
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
Caused by: java.lang.IllegalStateException: later"""
    assert reason_of(RuntimeError(told)) == "CheckpointRefused: the checkpoint cannot be loaded: format 2, expected 1"


def test_what_java_raised_is_the_reason_without_its_traceback() -> None:
    told = "Job aborted.\n\tat org.apache\nCaused by: java.io.IOException: No space left on device\n\tat java.io"
    assert reason_of(RuntimeError(told)) == "java.io.IOException: No space left on device"
    assert reason_of(RuntimeError("")) == "RuntimeError"


DEFAULTS = """
# a comment
spark.ui.enabled            true
spark.driver.memory=3g
  spark.sql.session.timeZone : Europe/Zurich
spark.executorEnv.PYTHONHASHSEED
"""


@pytest.mark.parametrize("where", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_the_users_defaults_are_found_where_spark_looks_for_them(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert user_defaults() == {}
    folder = tmp_path if where == "SPARK_CONF_DIR" else tmp_path / "conf"
    monkeypatch.setenv(where, str(tmp_path))
    assert defaults_folder() is None
    folder.mkdir(exist_ok=True)
    (folder / "spark-defaults.conf").write_text(DEFAULTS)
    assert defaults_folder() == folder
    assert user_defaults() == {
        "spark.ui.enabled": "true",
        "spark.driver.memory": "3g",
        "spark.sql.session.timeZone": "Europe/Zurich",
    }


def test_the_command_line_comes_before_the_users_defaults_and_these_before_ours() -> None:
    theirs = {"spark.ui.enabled": "true", "spark.sql.session.timeZone": "CET", "spark.driver.maxResultSize": "1g"}
    given = SessionSettings(extra=(("spark.driver.maxResultSize", "2g"), ("spark.mine", "1")))
    chosen = chosen_settings(given, theirs, "scratch")
    assert (chosen["spark.driver.maxResultSize"], chosen["spark.mine"]) == ("2g", "1")
    assert not {"spark.ui.enabled", "spark.sql.session.timeZone"} & chosen.keys(), "Spark reads these itself"
    ours = (SETTINGS | LOCAL_SETTINGS).keys() - theirs.keys()
    assert {name: chosen[name] for name in ours} == {name: (SETTINGS | LOCAL_SETTINGS)[name] for name in ours}
    assert chosen_settings(SessionSettings(ui=True), theirs, "scratch")["spark.ui.enabled"] == "true"
    elsewhere = chosen_settings(SessionSettings(), {}, "")
    assert not local_settings("scratch").keys() & elsewhere.keys()


def test_a_local_spark_keeps_its_files_where_tmpdir_says_unless_the_user_says_otherwise() -> None:
    chosen = chosen_settings(SessionSettings(), {}, "/my/scratch")
    assert chosen["spark.local.dir"] == "/my/scratch"
    assert chosen["spark.sql.warehouse.dir"].startswith("/my/scratch/")
    assert chosen["spark.driver.defaultJavaOptions"] == '"-Djava.io.tmpdir=/my/scratch"'
    assert "spark.local.dir" not in chosen_settings(SessionSettings(), {"spark.local.dir": "/mine"}, "/x")


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*]", "local[2,4]", "local-cluster[2,1,1024]", "spark://a:1,b:2", "yarn", "k8s://h:1"],
)
def test_masters_as_spark_submit_takes_them_are_known(master: str) -> None:
    assert is_master(master)


def test_what_does_not_end_in_time_after_it_was_asked_to_is_killed() -> None:
    killed = threading.Event()
    with bounded_end(killed.set, seconds=0.01) as begin:
        assert not killed.wait(0.1), "nobody has asked"
        begin()
        begin()
        assert killed.wait(60)


def test_what_ends_in_time_is_left_alone_and_so_are_signals_afterwards() -> None:
    killed, before = threading.Event(), signal.getsignal(signal.SIGTERM)
    with bounded_end(killed.set, seconds=3_600) as begin:
        begin()
    assert signal.getsignal(signal.SIGTERM) is before
    assert not killed.is_set()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("spark.eventLog.enabled", "--conf: got 'spark.eventLog.enabled', expected NAME=VALUE with a name that begins"),
        ("eventLog.enabled=true", "--conf: got 'eventLog.enabled=true', expected NAME=VALUE with a name that begins"),
        ("spark.master=local[4]", "--conf: got 'spark.master=local[4]', expected --master local[4]"),
    ],
)
def test_what_is_no_setting_of_spark_is_refused(
    given: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('scenarios = ["oracle"]')
    run = ["run", "oracle", "--engine", "spark", "--out", str(tmp_path)]
    for command in (run, ["sweep", str(sweep), "--engine", "spark", "--out", str(tmp_path / "sweep.parquet")]):
        assert execute([*command, "--conf", given]) == ExitCode.BAD_INPUT
        said = capsys.readouterr().err
        assert complaint in said
        assert said.count("\n") == 1


@pytest.mark.usefixtures("spark")
def test_a_spark_that_runs_takes_what_it_can_and_has_its_own_settings_again() -> None:
    wanted = SessionSettings(extra=(("spark.sql.shuffle.partitions", "7"),))
    with spark_session(wanted) as session:
        assert session.conf.get("spark.sql.shuffle.partitions") == "7"
    assert session.conf.get("spark.sql.shuffle.partitions") == "2"
    fixed = SessionSettings(extra=(("spark.driver.memory", "2g"),))
    with pytest.raises(SparkUnavailable, match="cannot be set in a Spark that runs"), spark_session(fixed):
        pytest.fail("it cannot be set")


@pytest.mark.slow
def test_settings_reach_spark_and_its_event_log_says_what_each_job_does(tmp_path: Path) -> None:
    """The log is switched on by the user's defaults, and put elsewhere by the command line."""
    pairs = [[f"0x{number:04x}", "0x01"] for number in range(40)]
    (tmp_path / "state.json").write_text(json.dumps(pairs))
    (tmp_path / "conf").mkdir()
    (tmp_path / "log").mkdir()
    defaults = "spark.master local[1]\nspark.eventLog.enabled true\nspark.eventLog.dir file:///nowhere\n"
    defaults += "spark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    arguments = ["prove", "state.json", "--count", "20", "--keys", "2", "--out", "proofs"]
    done = subprocess.run(
        [sys.executable, "-m", "relaycast", *arguments, "--conf", f"spark.eventLog.dir=file://{tmp_path}/log"],
        cwd=tmp_path,
        env={**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf"), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (file,) = (path for path in (tmp_path / "log").iterdir() if not path.name.startswith("."))
    events = [json.loads(line) for line in file.read_text().splitlines()]
    jobs = [event["Properties"] for event in events if event["Event"] == "SparkListenerJobStart"]
    does = ["proved: ids-0-19", "rows counted: ids-0-19"]
    assert list(dict.fromkeys(job["spark.job.description"] for job in jobs)) == does
    groups = dict.fromkeys(job["spark.jobGroup.id"].rpartition(" ")[0] for job in jobs)
    assert list(groups) == [f"relaycast: {it}" for it in does]
    (environment,) = (it for it in events if it["Event"] == "SparkListenerEnvironmentUpdate")
    assert dict(environment["Spark Properties"])["spark.master"] == "local[1,4]"


def test_refusals_survive_a_pickle() -> None:
    refusal = SparkUnavailable("no Java", "install it")
    again = pickle.loads(pickle.dumps(refusal))
    assert (type(again), str(again), vars(again)) == (SparkUnavailable, str(refusal), vars(refusal))
