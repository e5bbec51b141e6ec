"""Where tables lie: paths of this machine, URIs, and places that a cluster's machines do not share."""

import json
import os
import socket
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.local_proofs import LocalEngine, write_files
from relaycast_ledger import bulk_work
from relaycast_ledger.bulk_work import Engine, ranges, remove_leftovers, settle
from relaycast_ledger.exceptions import ParquetRefused, PlaceRefused, RowsLost
from relaycast_ledger.parquet_files import SPARK_SCHEMA, ParquetTable
from relaycast_ledger.table_places import LocalFiles, TablePlace
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import refuse_silent
from relaycast_spark.store import Store, found_footers, look_at
from synced_places import synced_places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    columns = {"key": pa.array(PAIRS, pa.binary()), "value": pa.array(PAIRS.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    return tmp_path / "state.parquet"


def test_a_uri_goes_to_spark_as_it_is() -> None:
    for text in ("s3://bucket/a/proofs.parquet", "hdfs://host:9000/a/proofs.parquet", "file://host/a/proofs.parquet"):
        place = TablePlace(text)
        assert place.is_uri
        assert (place.uri, place.pattern, place.name) == (text, text, "proofs.parquet")
        assert place.beside("verdicts").uri == text.replace("proofs.parquet", "verdicts")


def test_a_path_is_one_of_this_machine_whatever_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = TablePlace("a[1] {b}*?.parquet")
    assert place.uri == f"file://{tmp_path}/a[1] {{b}}*?.parquet"
    assert place.pattern == f"file://{tmp_path}/a\\[1\\] \\{{b\\}}\\*\\?.parquet"
    assert place.beside("c").path == Path("c")


@pytest.mark.parametrize("text", ["file:/a/b", "file:///a/b", "file://localhost/a/b", "FILE:///a/b/"])
def test_a_uri_of_this_machines_files_is_a_path(text: str) -> None:
    place = TablePlace(text)
    assert not place.is_uri
    assert (place.path, place.uri, place.name) == (Path("/a/b"), "file:///a/b", "b")
    assert place.work.path == Path("/a/.b.parts")
    assert place.inside("c").path == Path("/a/b/c")
    assert str(place.beside("c")) == text.partition("/a/")[0] + "/a/c", "it is shown as it was given"


@pytest.mark.parametrize("verb", [["verify-proofs", "STATE"], ["prove", "STATE", "--out", "out.parquet"]])
def test_a_master_that_nobody_listens_for_is_told_in_a_line_before_spark_starts(
    verb: list[str], state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(spark_sql.SparkSession, "getActiveSession", lambda: None)
    given = [str(state) if argument == "STATE" else argument for argument in verb]
    assert execute([*given, "--master", "spark://127.0.0.1:1"]) == ExitCode.BAD_INPUT
    *_, said = capsys.readouterr().err.splitlines()
    why = "nothing answers at --master spark://127.0.0.1:1 (127.0.0.1:1: connection refused)"
    assert said == f"relaycast: {why}: start it or name another"


@pytest.mark.parametrize(
    ("master", "silent"),
    [
        ("spark://127.0.0.1:1,[::1]:1", "127.0.0.1:1: connection refused"),
        ("k8s://https://127.0.0.1:1", "127.0.0.1:1: connection refused"),
        ("spark://127.0.0.1:1,127.0.0.1:OPEN", ""),
        ("local[2]", ""),
        ("yarn", ""),
    ],
)
def test_one_master_that_answers_will_do(master: str, silent: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = master.replace("OPEN", str(server.getsockname()[1]))
        if not silent:
            refuse_silent(given)
            return
        with pytest.raises(SparkUnavailable, match=silent):
            refuse_silent(given)


def test_a_worker_sees_a_file_of_this_machine_or_says_that_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "probe").write_bytes(b"12")
    ids = pa.RecordBatch.from_pydict({"id": [3]})
    for size, is_written, sees in ((2, False, True), (3, False, False), (2, True, True), (3, True, False)):
        (found,) = look_at(str(tmp_path / "probe"), size, is_written, iter([ids]))
        assert found.to_pylist() == [{"number": 3, "host": socket.gethostname(), "sees": sees}]
        assert (tmp_path / "probe-3").exists() == (is_written and sees)
        (tmp_path / "probe-3").unlink(missing_ok=True)
    (found,) = look_at(str(tmp_path / "nowhere"), 0, True, iter([ids]))
    assert found.column("sees").to_pylist() == [False]


@pytest.mark.parametrize(
    ("out", "complaint"),
    [
        ("s3://bucket/t", "spark.jars.packages=org.apache.hadoop:hadoop-aws:3.5.0 --conf spark.hadoop.fs.s3.impl="),
        ("s3a://bucket/t", "a scheme that this Spark has no connector for, expected --conf spark.jars.packages=org.ap"),
        ("gs://bucket/t", "expected --conf spark.jars.packages=com.google.cloud.bigdataoss:gcs-connector:VERSION"),
        ("hdfs://127.0.0.1:1/t", "Connection refused"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_place_that_spark_does_not_reach_is_told_with_the_package_to_add(
    out: str, complaint: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["prove", str(state), "--count", "5", "--out", out], ["verify-proofs", out, "--out", f"{state}.v"]):
        assert execute(command) == ExitCode.BAD_INPUT
        *_, said = capsys.readouterr().err.splitlines()
        assert complaint in said
        assert said.startswith("relaycast: ")


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_tables_at_uris_are_proved_and_verified(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that is named by a URI may have any name, too."""
    for scheme in ("file://", "viewfs://tests"):
        out = f"{scheme}{tmp_path}/proofs.parquet"
        assert execute(["prove", f"{scheme}{state}", "--count", "50", "--out", out, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["out"] == out
        assert execute(["verify-proofs", out, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["verdicts"], told["out"]) == ({"valid": 50}, f"{scheme}{tmp_path}/proofs.verdicts.parquet")
        assert pq.read_table(tmp_path / "proofs.verdicts.parquet").num_rows == 50
        names = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")}
        assert names == {"state.parquet", "proofs.parquet", "proofs.verdicts.parquet"}


@pytest.mark.usefixtures("spark")
def test_a_name_that_spark_takes_for_a_pattern_is_the_name_of_a_file(state: Path, tmp_path: Path) -> None:
    proofs = tmp_path / "a[1] {b,c}*.parquet"
    assert execute(["prove", str(state), "--count", "20", "--out", str(proofs)]) == 0
    assert execute(["verify-proofs", str(proofs)]) == 0
    assert pq.read_table(tmp_path / "a[1] {b,c}*.verdicts.parquet").num_rows == 20


def test_the_footer_of_every_file_at_a_uri_is_checked(spark: "SparkSession", state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    table = pq.read_table(state)
    pq.write_table(table, folder / "a.parquet")
    assert ParquetTable.of(found_footers(spark, TablePlace(f"viewfs://tests{folder}"), "PROOFS")).num_rows == 100
    pq.write_table(table.replace_schema_metadata({SPARK_SCHEMA: b'{"type": "udt"}'}), folder / "b.parquet")
    with pytest.raises(ParquetRefused, match=r"PROOFS viewfs:.*/folder/b.parquet: got a footer with the user-defined"):
        found_footers(spark, TablePlace(f"viewfs://tests{folder}"), "PROOFS")
    with pytest.raises(PlaceRefused, match="got no file there"):
        found_footers(spark, TablePlace(f"viewfs://tests{tmp_path}/nowhere"), "PROOFS")


def write_ids(place: TablePlace, *, rows: int) -> None:
    """Write ten ids, of which there are to be so many."""
    schema = pa.schema([("id", pa.int64())])
    staging = place.beside(f".{place.name}.{os.getpid()}.staging")
    staging.path.mkdir()
    write_files(iter([pa.RecordBatch.from_pydict({"id": range(10)}, schema)]), staging.path, 0, schema, rows_a_file=4)
    settle(LocalEngine(place.work.path, workers=1), staging, place, rows)


def test_rows_that_do_not_arrive_are_told_and_the_table_does_not_appear(tmp_path: Path) -> None:
    with pytest.raises(RowsLost) as refusal:
        write_ids(TablePlace(str(tmp_path / "ids.parquet")), rows=20)
    said = f"{tmp_path}/ids.parquet: got 10 rows there after 20 were written, expected as many"
    assert str(refusal.value) == said
    assert not (tmp_path / "ids.parquet").exists()


def test_what_a_killed_process_moved_away_comes_back_and_what_it_had_begun_goes(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    for name in (f".table.{ended.pid}.old", f".table.{ended.pid}.staging", f".table.{os.getpid()}.old"):
        (tmp_path / name).mkdir()
    (tmp_path / f".table.{ended.pid}.old" / "file").touch()
    (tmp_path / f".table.b.{ended.pid}.old").mkdir()  # of another table
    others = [f".table.{os.getpid()}.old", f".table.b.{ended.pid}.old"]
    remove_leftovers(TablePlace(str(tmp_path / "table")))
    assert [path.name for path in (tmp_path / "table").iterdir()] == ["file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "table"])
    (tmp_path / f".table.{ended.pid}.old").mkdir()
    remove_leftovers(TablePlace(str(tmp_path / "table")))
    assert [path.name for path in (tmp_path / "table").iterdir()] == ["file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "table"])


def test_ranges_tile_the_ids() -> None:
    for first, last in ((0, 0), (0, 999_999), (-5, 3), (7, 10**9), (0, 2**62)):
        found = list(ranges(first, last))
        assert found[0][0] == first
        assert found[-1][1] == last
        assert all(one[1] + 1 == other[0] for one, other in pairwise(found))
        assert len(found) <= bulk_work.MOST_RANGES


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> list[str]:
    """Return the options for each engine; one process does not start others."""
    if request.param == "spark":
        request.getfixturevalue("spark")
        return ["--engine", "spark"]
    return ["--engine", "local", "--workers", "1"]


def settling(written: list[str], most: int | None = None) -> Callable[[Engine, TablePlace, TablePlace, int], None]:
    """Return a ``settle`` that notes the names of what it writes, and is interrupted after ``most``."""

    def noting(engine: Engine, staging: TablePlace, place: TablePlace, rows: int) -> None:
        if len(written) == most:
            raise KeyboardInterrupt
        written.append(place.name)
        settle(engine, staging, place, rows)

    return noting


@pytest.mark.parametrize("damage", ["none", "flipped", "lost", "unnoted"])
def test_proving_goes_on_behind_the_ranges_that_are_whole(
    damage: str,
    engine: list[str],
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bulk_work, "IDS_A_RANGE", 40)
    written: list[str] = []

    out, command = tmp_path / "proofs.parquet", ["prove", str(state), "--count", "150", "--keys", "2", *engine, "--out"]
    monkeypatch.setattr(bulk_work, "settle", settling(written, most=2))
    assert execute([*command, str(out)]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.endswith("relaycast: interrupted, the same command goes on from here\n")
    found = ["ids-0-39", "ids-40-79", "ids-80-119", "ids-120-149"]
    whole = list(written)
    assert len(whole) == 2
    assert set(whole) < set(found), "in any order: more than one range is under way"
    assert not out.exists()

    first = next((tmp_path / ".proofs.parquet.parts" / whole[0]).glob("part-*"))
    if damage == "flipped":  # the footer is as it was
        data = bytearray(first.read_bytes())
        data[len(data) // 3] ^= 1
        first.write_bytes(data)
    if damage == "lost":
        first.unlink()
    if damage == "unnoted":
        first.with_name(bulk_work.NOTED).write_bytes(b"{")
    del written[:]

    monkeypatch.setattr(bulk_work, "settle", settling(written))
    assert execute([*command, str(out)]) == 0
    assert sorted(written) == sorted({*found} - {*whole[damage != "none" :]})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proofs.parquet", "state.parquet"]

    monkeypatch.undo()
    assert execute([*command, str(tmp_path / "again")]) == 0
    assert pq.read_table(out).sort_by("id") == pq.read_table(tmp_path / "again").sort_by("id")


@pytest.mark.parametrize("change", ["none", "flipped", "input"])
def test_verifying_goes_on_behind_the_pieces_that_have_verdicts(
    change: str,
    engine: list[str],
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bulk_work, "VERDICTS_WIDER", 1)
    monkeypatch.setattr(bulk_work, "IDS_A_RANGE", 40)
    proofs, out = tmp_path / "proofs", tmp_path / "verdicts"
    assert execute(["prove", str(state), "--count", "150", *engine, "--rows-per-file", "20", "--out", str(proofs)]) == 0
    written: list[str] = []

    command = ["verify-proofs", str(proofs), *engine, "--out", str(out)]
    monkeypatch.setattr(bulk_work, "settle", settling(written, most=2))
    assert execute(command) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.endswith("relaycast: interrupted, the same command goes on from here\n")
    assert not out.exists()
    first, second = written
    if change == "flipped":
        file = next((tmp_path / ".verdicts.parts" / first).glob("part-*"))
        file.write_bytes(file.read_bytes()[:-9] + bytes(9))
    if change == "input":
        os.utime(next(proofs.glob("*.parquet")), (1, 1))

    del written[:]
    monkeypatch.setattr(bulk_work, "settle", settling(written))
    assert execute(command) == 0
    again = {"none": set(), "flipped": {first}, "input": {first, second}}[change]
    assert again <= set(written)
    assert not ({first, second} - again) & set(written)
    assert sorted(pq.read_table(out).column("id").to_pylist()) == list(range(150))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proofs", "state.parquet", "verdicts"]


@pytest.mark.parametrize("moved", [1, 2])
def test_what_was_gathered_before_a_kill_is_not_proved_again(
    moved: int, engine: list[str], state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_work, "IDS_A_RANGE", 40)
    moves: list[str] = []

    files = Store if "spark" in engine else LocalFiles

    def stopping(store: Any, source: TablePlace, target: TablePlace) -> None:
        if "/whole/" in target.text:
            moves.append(source.name)
        if len(moves) > moved:
            raise KeyboardInterrupt
        move(store, source, target)

    out, move = tmp_path / "proofs.parquet", files.move
    command = ["prove", str(state), "--count", "100", "--keys", "2", *engine, "--out", str(out)]
    with monkeypatch.context() as patched:
        patched.setattr(files, "move", stopping)
        assert execute(command) == ExitCode.INTERRUPTED
    monkeypatch.setattr(bulk_work, "settle", lambda *_, **__: pytest.fail("written before"))
    assert execute(command) == 0
    assert sorted(pq.read_table(out).column("id").to_pylist()) == list(range(100))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proofs.parquet", "state.parquet"]


def test_ranges_made_on_other_terms_are_made_again(
    engine: list[str], state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_work, "put_in_place", lambda *_: pytest.fail("stopped before the end"))
    out = tmp_path / "proofs.parquet"
    with pytest.raises(pytest.fail.Exception):
        execute(["prove", str(state), "--count", "30", "--keys", "2", *engine, "--out", str(out)])
    monkeypatch.undo()
    assert execute(["prove", str(state), "--count", "30", "--keys", "3", *engine, "--out", str(out)]) == 0
    assert {len(row["keys"]) for row in pq.read_table(out).to_pylist()} == {3}


def test_a_table_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = synced_places(monkeypatch)
    place = TablePlace(str(tmp_path / "table"))
    write_ids(place, rows=10)
    files = {file.name for file in place.path.iterdir()}
    assert len(files) == 3
    assert {Path(it).name for it in synced[:-1]} >= files
    assert all(Path(it).name in files or ".staging" in Path(it).name for it in synced[:-1])
    assert synced[-1] == str(tmp_path)
