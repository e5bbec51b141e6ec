"""A Spark that a caller brings is shared: its jobs, names and settings stay as they are."""

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast_ledger.proof_tables import LIST
from relaycast_spark import pyspark_internals
from relaycast_spark.jobs import jobs_as_done, named
from relaycast_spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRIVATE = re.compile(r"\._(jvm|jsc|gateway|accumulatorServer|jdf|sc)\b|\.rdd\b|java_gateway|\"_(gateway|accumulator)")


def test_private_names_of_pyspark_stand_in_one_module() -> None:
    here = Path(pyspark_internals.__file__)
    others = [file for file in here.parent.glob("**/*.py") if file != here]
    assert {file.name: found[0] for file in others if (found := PRIVATE.search(file.read_text()))} == {}


def test_a_callers_name_for_its_jobs_comes_back(spark: "SparkSession") -> None:
    context = spark.sparkContext
    context.setJobGroup("theirs", "their job")
    try:
        with named(spark, "ours"):
            assert context.getLocalProperty("spark.job.description") == "ours"
        assert context.getLocalProperty("spark.jobGroup.id") == "theirs"
        assert context.getLocalProperty("spark.job.description") == "their job"
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]


def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take two seconds a batch."""
    for batch in batches:
        time.sleep(2)
        yield batch


def test_an_interrupt_of_our_jobs_ends_none_of_a_callers(spark: "SparkSession") -> None:
    found: list[int] = []
    theirs = threading.Thread(
        target=lambda: found.append(spark.range(1, numPartitions=1).mapInArrow(slow, "id bigint").count())
    )

    def job(_item: int) -> int:
        return spark.range(1, numPartitions=1).mapInArrow(slow, "id bigint").count()

    with spark_session() as session:
        assert session.sparkContext is spark.sparkContext
        jobs = jobs_as_done(session, range(100), job, lambda item: f"ours {item}")
        theirs.start()
        next(jobs)
        jobs.close()
    theirs.join(60)
    assert found == [1]
    assert spark.range(3).count() == 3, "it was not stopped"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pairs = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}
    columns = {"key": pa.array(pairs, pa.binary()), "value": pa.array(pairs.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    ids, keys = [7, None, -(2**63), 3, 2**63 - 1], [[bytes([number]) * 32] for number in range(5)]
    pq.write_table(pa.table({"id": ids, "keys": pa.array(keys, LIST)}), tmp_path / "requests.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("state")
def test_every_job_has_a_name_and_counts_take_few_tasks(spark: "SparkSession") -> None:
    tracker, settings = spark.sparkContext.statusTracker(), dict(spark.conf.getAll)
    unnamed = set(tracker.getJobIdsForGroup())
    for command in (
        ["prove", "state.parquet", "--requests", "requests.parquet", "--out", "proofs"],
        ["prove", "state.parquet", "--count", "9", "--distinct-nodes", "--out", "numbered"],
        ["prove", f"file://{Path.cwd()}/state.parquet", "--count", "9", "--out", "again"],
        ["verify-proofs", "proofs"],
        ["verify-proofs", "numbered"],
    ):
        assert execute([*command, "--engine", "spark"]) == ExitCode.FINE
    assert set(tracker.getJobIdsForGroup()) <= unnamed
    assert dict(spark.conf.getAll) == settings
    assert pq.read_table("proofs").num_rows == 5


@pytest.mark.parametrize("verb", [["prove", "state.parquet", "--out", "out"], ["verify-proofs", "state.parquet"]])
def test_spark_connect_is_refused_in_a_line_that_says_why(
    verb: list[str], state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    assert execute(verb) == ExitCode.BAD_INPUT
    why = "SPARK_REMOTE=sc://127.0.0.1:1 asks for Spark Connect, which has no SparkContext to name, watch and cancel"
    assert capsys.readouterr().err == f"relaycast: {why} jobs by: unset it and give --master, or --engine local\n"
    assert sorted(path.name for path in state.iterdir()) == ["requests.parquet", "state.parquet"]
