"""Starting Spark: what is missing is said in one line, before anything else happens."""

import builtins
import pickle
from pathlib import Path
from typing import Any

import pytest

from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import reason_of, require_java, require_spark, retrying


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
    with pytest.raises(SparkUnavailable, match=r"pip install '\.\[spark\]'"):
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


def test_refusals_survive_a_pickle() -> None:
    refusal = SparkUnavailable("no Java", "install it")
    again = pickle.loads(pickle.dumps(refusal))
    assert (type(again), str(again), vars(again)) == (SparkUnavailable, str(refusal), vars(refusal))
