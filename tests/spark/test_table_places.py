"""Where tables lie: paths of this machine, URIs, and places that a cluster's machines do not share."""

import json
import os
import subprocess
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
from relaycast_ledger.bulk_work import Engine, ranges, remove_leftovers, settle, staged_table
from relaycast_ledger.exceptions import ParquetRefused, PlaceRefused, RowsLost
from relaycast_ledger.parquet_files import SPARK_SCHEMA, ParquetTable
from relaycast_ledger.table_places import LocalFiles, TablePlace
from relaycast_spark.store import Store, found_footers, refuse_unshared
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
    for text in ("s3://bucket/a/proofs.parquet", "hdfs://host:9000/a/proofs.parquet", "file:/a/proofs.parquet"):
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


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443", None])
def test_a_path_of_this_machine_is_refused_where_spark_runs_on_others(master: str | None) -> None:
    with pytest.raises(PlaceRefused) as refusal:
        refuse_unshared(TablePlace("/a/b.parquet"), master)
    said = f"/a/b.parquet: got a path of this machine where Spark runs on {master}, expected s3://, hdfs:// or another"
    assert str(refusal.value) == f"{said} URI, or file:///a/b.parquet where all machines share that folder"
    refuse_unshared(TablePlace("file:///a/b.parquet"), master)
    for local in ("local", "local[4]", "local-cluster[2,1,1024]"):
        refuse_unshared(TablePlace("/a/b.parquet"), local)


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify-proofs", "STATE"],
        ["verify-proofs", "file:///a.parquet", "--out", "out.parquet"],
        ["prove", "STATE", "--out", "out.parquet"],
        ["prove", "STATE", "--out", "s3://bucket/out.parquet", "--requests", "STATE"],
    ],
)
def test_both_verbs_refuse_paths_of_this_machine_on_a_cluster_before_spark_starts(
    arguments: list[str], state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(state) if argument == "STATE" else argument for argument in arguments]
    assert execute([*given, "--master", "spark://127.0.0.1:1"]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "got a path of this machine where Spark runs on spark://127.0.0.1:1" in said
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_tables_at_uris_are_proved_and_verified(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that is named by a URI may have any name, too."""
    out = f"file://{tmp_path}/proofs.parquet"
    assert execute(["prove", f"file://{state}", "--count", "50", "--out", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == out
    assert execute(["verify-proofs", out, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["verdicts"], told["out"]) == ({"valid": 50}, f"file://{tmp_path}/proofs.verdicts.parquet")
    assert pq.read_table(tmp_path / "proofs.verdicts.parquet").num_rows == 50


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
    assert ParquetTable.of(found_footers(spark, TablePlace(f"file://{folder}"), "PROOFS")).num_rows == 100
    pq.write_table(table.replace_schema_metadata({SPARK_SCHEMA: b'{"type": "udt"}'}), folder / "b.parquet")
    with pytest.raises(ParquetRefused, match=r"PROOFS file:.*/folder/b.parquet: got a footer with the user-defined"):
        found_footers(spark, TablePlace(f"file://{folder}"), "PROOFS")
    with pytest.raises(PlaceRefused, match="got no file there"):
        found_footers(spark, TablePlace(f"file://{tmp_path}/nowhere"), "PROOFS")


def write_ids(place: TablePlace, *, rows: int) -> None:
    """Write ten ids, of which there are to be so many."""
    schema = pa.schema([("id", pa.int64())])
    with staged_table(LocalFiles(), place) as staging:
        staging.path.mkdir()
        write_files(
            iter([pa.RecordBatch.from_pydict({"id": range(10)}, schema)]), staging.path, 0, schema, rows_a_file=4
        )
        settle(LocalEngine(place.work.path, workers=1), staging, place, rows)


def test_rows_that_do_not_arrive_are_told_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(RowsLost) as refusal:
        write_ids(TablePlace(str(tmp_path / "ids.parquet")), rows=20)
    said = f"{tmp_path}/ids.parquet: got 10 rows there after 20 were written, expected as many"
    assert str(refusal.value) == said
    assert not list(tmp_path.iterdir())


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

    def stopping(engine: Engine, staging: TablePlace, place: TablePlace, rows: int) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(place.name)
        settle(engine, staging, place, rows)

    out, command = tmp_path / "proofs.parquet", ["prove", str(state), "--count", "150", "--keys", "2", *engine, "--out"]
    monkeypatch.setattr(bulk_work, "settle", stopping)
    assert execute([*command, str(out)]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.endswith("relaycast: interrupted, the same command goes on from here\n")
    assert written == ["ids-0-39", "ids-40-79"]
    assert not out.exists()

    first = next((tmp_path / ".proofs.parquet.parts" / "ids-0-39").glob("part-*"))
    if damage == "flipped":  # the footer is as it was
        data = bytearray(first.read_bytes())
        data[len(data) // 3] ^= 1
        first.write_bytes(data)
    if damage == "lost":
        first.unlink()
    if damage == "unnoted":
        first.with_name(bulk_work.NOTED).write_bytes(b"{")
    del written[:]

    def noting(engine: Engine, staging: TablePlace, place: TablePlace, rows: int) -> None:
        written.append(place.name)
        settle(engine, staging, place, rows)

    monkeypatch.setattr(bulk_work, "settle", noting)
    assert execute([*command, str(out)]) == 0
    assert written == [*(["ids-0-39"] if damage != "none" else []), "ids-80-119", "ids-120-149"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proofs.parquet", "state.parquet"]

    whole = tmp_path / "whole.parquet"
    monkeypatch.undo()
    assert execute([*command, str(whole)]) == 0
    assert pq.read_table(out).sort_by("id") == pq.read_table(whole).sort_by("id")


@pytest.mark.parametrize("moved", [1, 3, 7])
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
