"""``prove`` and ``verify-proofs`` by processes of this machine, without Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.local_proofs import write_files
from relaycast_ledger.parquet_files import ParquetTable, Piece, local_footers, rows_of, shared_out
from relaycast_ledger.proof_tables import LIST, PROOFS
from relaycast_ledger.table_places import TablePlace, alone_at
from relaycast_trie import StorageProof, trie_root

PATIENCE = 240
"""Seconds until a child process must have come somewhere."""

PAIRS = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}
LOCAL = ["--engine", "local", "--workers", "1"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a state into the working folder."""
    columns = {"key": pa.array(PAIRS, pa.binary()), "value": pa.array(PAIRS.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    monkeypatch.chdir(tmp_path)
    return "state.parquet"


def requests(file: str, ids: list[int | None], keys: list[list[bytes | None] | None]) -> list[str]:
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "keys": pa.array(keys, LIST)}), file)
    return ["--requests", file]


def rows(table: str) -> list[dict[str, Any]]:
    found = pq.read_table(table).to_pylist()
    return sorted(found, key=lambda row: -1 if row["id"] is None else row["id"])


@pytest.mark.parametrize("without", ["PySpark", "Java"])
def test_without_spark_processes_work_and_one_line_says_why(
    without: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if without == "PySpark":
        monkeypatch.setitem(sys.modules, "pyspark", None)
        why = "PySpark is not installed: pip install -e '.[spark]' in the clone of relaycast"
    else:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        why = f"there is no Java in JAVA_HOME={tmp_path}: install Java 17 (Debian: apt install openjdk-17-jre-headless)"
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
    assert execute(["prove", state, "--count", "40", "--keys", "3", "--out", "proofs"]) == ExitCode.FINE
    line, *others = capsys.readouterr().err.splitlines()
    assert line.startswith(f"relaycast: in 1 process of this machine: {why}")
    assert [it for it in others if "compil" not in it] == [
        "relaycast: proved 40 of 40 proofs, " + others[-1].split(", ")[-1]
    ]
    assert execute(["verify-proofs", "proofs", "--strict", "-q"]) == ExitCode.FINE
    assert capsys.readouterr().err == ""
    assert [row["verdict"] for row in rows("proofs.verdicts.parquet")] == ["valid"] * 40
    assert sorted(os.listdir()) == ["proofs", "proofs.verdicts.parquet", "state.parquet"]

    for options in (["--engine", "spark"], ["--master", "local[2]"], ["--conf", "spark.ui.port=1"]):
        assert execute(["prove", state, "--out", "other", *options]) == ExitCode.BAD_INPUT
        assert capsys.readouterr().err.startswith(f"relaycast: {why}")
    assert execute(["prove", "s3://bucket/state.parquet", "--out", "other"]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.startswith(f"relaycast: {why}")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ["--engine", "local", "--master", "local[2]"],
            "--master: got local[2] with --engine local, expected --engine",
        ),
        (["--workers", "2", "--spark-ui"], "--spark-ui: got True with --workers 2, expected --engine spark"),
        (
            ["--engine", "spark", "--workers", "2"],
            "--workers: got 2 with --engine spark, expected --master",
        ),
        (["--workers", "0"], "--workers: got 0, expected a number from 1 to 1,024"),
        (
            ["--engine", "local", "--requests", "s3://a/b"],
            "s3://a/b: got a URI with --engine local, expected --engine",
        ),
        (["--engine", "local", "--rows-per-file", "0"], "--rows-per-file: got 0, expected a number from 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], complaint: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["prove", state, "--out", "proofs", *options]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith(f"relaycast: {complaint}")
    assert os.listdir() == ["state.parquet"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_requests_are_proved_whatever_the_order_of_their_ids(workers: str, state: str) -> None:
    """Ids lie in several ranges, the same one twice, and one is missing."""
    ids = [1 << 20, 5, None, 3 << 18, 7, 5, (1 << 20) + 1]
    keys: list[list[bytes | None] | None] = [[bytes([number]) * 32, b"absent"] for number in range(7)]
    command = ["prove", state, *requests("requests.parquet", ids, keys), "--engine", "local", "--workers", workers]
    assert execute([*command, "--out", "made"]) == ExitCode.FINE
    made = pq.read_table("made").to_pylist()
    assert sorted(map(repr, [(row["id"], row["keys"]) for row in made])) == sorted(
        map(repr, zip(ids, keys, strict=True))
    )
    for row in made:
        assert StorageProof(row["nodes"]).verify(trie_root(PAIRS), row["keys"])[row["keys"][0]] == PAIRS[row["keys"][0]]
    assert execute([*command, "--out", "numbered", "--distinct-nodes"]) == ExitCode.FINE
    nodes = {row["number"]: row["node"] for row in pq.read_table("numbered/_nodes").to_pylist()}
    listed = [(row["id"], row["keys"], [nodes[number] for number in row["numbers"]]) for row in rows("numbered")]
    assert sorted(map(repr, listed)) == sorted(repr((row["id"], row["keys"], row["nodes"])) for row in made)


def test_no_requests_make_an_empty_table(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["prove", state, *requests("requests.parquet", [], []), *LOCAL]
    assert execute([*command, "--out", "made", "--json"]) == ExitCode.FINE
    assert json.loads(capsys.readouterr().out)["proofs"] == 0
    assert pq.read_table("made").schema == PROOFS
    assert execute(["verify-proofs", "made", *LOCAL]) == ExitCode.FINE
    assert pq.read_table("made.verdicts.parquet").num_rows == 0


def test_a_null_among_keys_is_told_before_any_work(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["prove", state, *requests("requests.parquet", [1, 2], [[b"a"], [None]]), *LOCAL, "--out", "made"]
    assert execute(command) == ExitCode.BAD_INPUT
    said = "the requests: got the columns keys with a null among them, expected keys without"
    assert capsys.readouterr().err.splitlines()[-1] == f"relaycast: {said}"
    assert sorted(os.listdir()) == ["requests.parquet", "state.parquet"]


def test_proofs_that_do_not_hold_get_their_verdicts_and_keep_their_other_columns(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["prove", state, "--count", "30", "--keys", "2", *LOCAL, "--out", "made"]) == ExitCode.FINE
    table = pq.read_table("made").sort_by("id")
    nodes: list[list[bytes | None]] = table.column("nodes").to_pylist()
    nodes[3] = [node for node in nodes[3] if node != max(nodes[3], key=lambda it: len(it or b""))]
    nodes[4], nodes[5], nodes[6] = [*nodes[4], b"foreign"], [*nodes[5], nodes[5][0]], [None]
    keep = pa.array([f"name {number}" for number in range(30)]).dictionary_encode()
    damaged = table.set_column(3, "nodes", pa.array(nodes, LIST)).append_column("keep", keep)
    os.mkdir("damaged")
    pq.write_table(damaged.slice(0, 11), "damaged/a.parquet", row_group_size=4)
    pq.write_table(damaged.slice(11), "damaged/b.parquet", row_group_size=30)
    capsys.readouterr()
    command = ["verify-proofs", "damaged", "--strict", *LOCAL, "--rows-per-file", "7", "--out", "verdicts"]
    assert execute(command) == ExitCode.CHECK_FAILED
    assert "MissingNode                   1\n" in capsys.readouterr().out
    kinds = {row["id"]: row["verdict"] for row in rows("verdicts")}
    bad = {3: "MissingNode", 4: "UnusedNodes", 5: "DuplicateNode", 6: "UnreadableRow"}
    assert kinds == {number: bad.get(number, "valid") for number in range(30)}
    assert [row["keep"] for row in rows("verdicts")] == [f"name {number}" for number in range(30)]
    assert max(pq.read_metadata(file).num_rows for file in Path("verdicts").glob("*.parquet")) <= 7


def test_folders_by_value_are_columns(state: str) -> None:
    assert execute(["prove", state, "--count", "9", *LOCAL, "--out", "made"]) == ExitCode.FINE
    table = pq.read_table("made").sort_by("id")
    for day in range(3):
        os.makedirs(f"x=1/proofs/day={day}")
        pq.write_table(table.slice(3 * day, 3), f"x=1/proofs/day={day}/part.parquet")
    assert execute(["verify-proofs", "x=1/proofs", *LOCAL, "--out", "verdicts"]) == ExitCode.FINE
    assert [row["day"] for row in rows("verdicts")] == [number // 3 for number in range(9)]
    assert "x" not in pq.read_schema(next(Path("verdicts").glob("*.parquet"))).names


def test_a_second_writer_is_refused(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    with alone_at(TablePlace("table"), "--out"):
        assert execute(["prove", state, *LOCAL, "--out", "table"]) == ExitCode.BAD_INPUT
    said = f"relaycast: table: got process {os.getpid()} that writes there, expected no other process\n"
    assert capsys.readouterr().err == said


RANGES = 120


def started(arguments: list[str]) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "relaycast", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_proving_goes_on_behind_a_kill_and_no_worker_is_left(number: signal.Signals, state: str) -> None:
    """Ids are so far apart that each has a range of its own."""
    keys: list[list[bytes | None] | None] = [[bytes([it % 251]) * 32] for it in range(RANGES)]
    asked = requests("requests.parquet", [it << 18 for it in range(RANGES)], keys)
    command = ["prove", state, *asked, "--engine", "local", "--workers", "2", "--out"]
    process, work = started([*command, "proofs"]), Path(".proofs.parts")
    deadline = time.monotonic() + PATIENCE
    while len(list(work.glob("ids-*/_files.json"))) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children()
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    if number is not signal.SIGKILL:
        assert said.splitlines()[-1].endswith("the same command goes on from here")
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert not alive
    noted = [file.parent for file in work.glob("ids-*/_files.json")]  # a range without is done again
    kept = {file: file.stat().st_mtime_ns for part in noted for file in part.glob("part-*")}
    assert 3 <= len(kept) < RANGES

    again = started([*command, "proofs"])
    _, said = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, said
    assert f"of {RANGES} proofs" in said
    assert "proved goes on after" in said
    found = {file.name: file.stat().st_mtime_ns for file in Path("proofs").glob("ids-*")}
    assert {f"{file.parent.name}-{file.name}": at for file, at in kept.items()}.items() <= found.items()
    assert execute(["prove", state, *asked, *LOCAL, "--out", "whole"]) == ExitCode.FINE
    assert rows("proofs") == rows("whole")
    assert sorted(os.listdir()) == ["proofs", "requests.parquet", "state.parquet", "whole"]


@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 40))
def test_row_groups_areshared_out_whole_and_in_order(sizes: list[int], most: int) -> None:
    pieces = [Piece(0, size, "file", number) for number, size in enumerate(sizes)]
    shares = list(shared_out(pieces, most))
    assert all(sum(it.end - it.first for it in share) == most for share in shares[:-1])
    taken = [(it.group, row) for share in shares for it in share for row in range(it.first, it.end)]
    assert taken == [(number, row) for number, size in enumerate(sizes) for row in range(size)]


@given(st.integers(0, 2_500), st.integers(1, 1_500), st.integers(1, 1_500))
def test_shares_of_row_groups_have_all_rows_in_batches_of_a_bounded_size(rows: int, group: int, most: int) -> None:
    table = pa.table({"id": pa.array(range(rows), pa.int64())})
    with TemporaryDirectory() as folder:
        for name in "ab":
            pq.write_table(table, f"{folder}/{name}.parquet", row_group_size=group)
        found = ParquetTable.of(local_footers(TablePlace(folder), "PROOFS"))
        shares = [list(rows_of(share, found.schema)) for share in shared_out(found.pieces(), most)]
        assert found.num_rows == 2 * rows
    batches = [batch for share in shares for batch in share]
    assert pa.Table.from_batches(batches, table.schema) == pa.concat_tables([table, table])
    assert all(len(batch) <= 1_000 for batch in batches)
    assert len(batches) <= len(shares) + 2 * (2 * rows // 1_000)


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 12))
def test_files_have_the_rows_of_all_batches_and_no_more_than_the_bound(sizes: list[int], most: int) -> None:
    schema = pa.schema([("id", pa.int64()), ("nodes", LIST)])
    ends = [0, *(sum(sizes[: number + 1]) for number in range(len(sizes)))]
    batches = [
        pa.RecordBatch.from_pydict(
            {"id": range(first, end), "nodes": [[b"same", b"%d" % it] for it in range(first, end)]}, schema
        )
        for first, end in pairwise(ends)
    ]
    with TemporaryDirectory() as folder:
        assert write_files(iter(batches), Path(folder), 0, schema, rows_a_file=most) == ends[-1]
        files = sorted(Path(folder).iterdir())
        found = pa.concat_tables([pq.read_table(file) for file in files])
        assert found == pa.Table.from_batches(batches, schema)
        counts = [pq.read_metadata(file).num_rows for file in files]
        assert counts == [most] * (ends[-1] // most) + [ends[-1] % most] * bool(ends[-1] % most or not ends[-1])
