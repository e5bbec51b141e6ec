"""Parquet from strangers: what its footer may say, and that nobody imports what it names."""

import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast_ledger.exceptions import ParquetRefused
from relaycast_ledger.parquet_files import SPARK_SCHEMA, Footer
from relaycast_ledger.table_places import TablePlace, parquet_files
from relaycast_spark.store import found_footers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTS = pa.list_(pa.binary())
COLUMNS = {
    "root": pa.array([bytes(32)], pa.binary()),
    "keys": pa.array([[b"k"]], LISTS),
    "nodes": pa.array([[b"n"]], LISTS),
    "key": pa.array(["0x01"]),
    "value": pa.array(["0x02"]),
    "block": pa.array([1]),
    "bytes": pa.array([1]),
    "para_id": pa.array([1]),
}
"""Whatever a verb reads."""

ATTACK = """
import pathlib
pathlib.Path(__file__).with_name("ran").touch()
from pyspark.sql.types import BinaryType, UserDefinedType
class Type(UserDefinedType):
    @classmethod
    def sqlType(cls):
        return BinaryType()
"""


def named(kind: dict[str, str]) -> bytes:
    """Return Spark's schema of a table whose column ``root`` has this user-defined type."""
    lists = {"type": "array", "elementType": "binary", "containsNull": True}
    kinds: dict[str, object] = {"root": {"type": "udt", "sqlType": "binary", **kind}, "keys": lists, "nodes": lists}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    return json.dumps({"type": "struct", "fields": fields}).encode()


def write(file: Path, *columns: str, schema: bytes) -> None:
    table = pa.table({name: COLUMNS[name] for name in columns or ("root", "keys", "nodes")})
    pq.write_table(table.replace_schema_metadata({SPARK_SCHEMA: schema}), file)


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that stands after somebody imported the module that hostile footers name."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "hostile_types.py").write_text(ATTACK)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "hostile_types", raising=False)
    return tmp_path / "modules" / "ran"


PYTHON_CLASS = {"pyClass": "hostile_types.Type", "serializedClass": ""}


def test_spark_imports_what_a_footer_names_unless_the_footer_is_checked(
    spark: "SparkSession", attack: Path, tmp_path: Path
) -> None:
    file = tmp_path / "proofs.parquet"
    write(file, schema=named(PYTHON_CLASS))
    with pytest.raises(ParquetRefused):
        found_footers(spark, TablePlace(str(file)), "PROOFS")
    assert not attack.exists()
    _ = spark.read.parquet(str(file)).schema
    assert attack.exists(), "without the check, this very file runs the module"


@pytest.mark.parametrize(
    "kind",
    [
        PYTHON_CLASS,
        {"pyClass": "__main__.Type", "serializedClass": base64.b64encode(b"c__builtin__\neval\n").decode()},
        {"class": "org.example.Type"},
        {},
    ],
)
def test_a_footer_that_names_a_class_is_refused_by_the_name(tmp_path: Path, kind: dict[str, str]) -> None:
    write(tmp_path / "proofs.parquet", schema=named(kind))
    with pytest.raises(ParquetRefused) as refusal:
        Footer.of(tmp_path / "proofs.parquet", "", "PROOFS proofs.parquet")
    said = str(refusal.value)
    assert said.startswith("PROOFS proofs.parquet: got a footer with the user-defined type of ")
    assert all(name in said or value in said for name, value in list(kind.items())[:1])
    assert said.endswith("expected columns of plain types")


def test_the_columns_that_spark_itself_writes_pass(tmp_path: Path) -> None:
    plain = {"name": "root", "type": "binary", "nullable": True, "metadata": {"type": "none"}}
    write(tmp_path / "proofs.parquet", schema=json.dumps({"type": "struct", "fields": [plain]}).encode())
    Footer.of(tmp_path / "proofs.parquet", "", "PROOFS")


def test_a_class_behind_a_name_that_comes_twice_is_seen(tmp_path: Path) -> None:
    """pyarrow shows one of two members of a name, and of two schemas: Java may see the other."""
    twice = named({}).replace(b'"type": "udt"', b'"type": "udt", "type": "binary"')
    assert json.loads(twice)["fields"][0]["type"]["type"] == "binary"
    write(tmp_path / "twice.parquet", schema=twice)
    with pytest.raises(ParquetRefused):
        Footer.of(tmp_path / "twice.parquet", "", "PROOFS")

    stand_in = SPARK_SCHEMA.replace(b"row.metadata", b"row.metadatb")
    table = pa.table({"root": COLUMNS["root"]}).replace_schema_metadata({SPARK_SCHEMA: b"{}", stand_in: named({})})
    pq.write_table(table, tmp_path / "two.parquet")
    data = (tmp_path / "two.parquet").read_bytes()
    (tmp_path / "two.parquet").write_bytes(data.replace(stand_in, SPARK_SCHEMA))
    with pytest.raises(ParquetRefused, match="2 times, expected every name once"):
        Footer.of(tmp_path / "two.parquet", "", "PROOFS")


@pytest.mark.parametrize("schema", [b"no JSON", b"[" * 100_000])
def test_a_schema_that_is_no_json_is_refused(tmp_path: Path, schema: bytes) -> None:
    write(tmp_path / "proofs.parquet", schema=schema)
    with pytest.raises(ParquetRefused, match="that is not JSON, expected whole Parquet"):
        Footer.of(tmp_path / "proofs.parquet", "", "PROOFS")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "begins with 0x,"),
        (b"PAR1", "got 4 bytes without a footer"),
        (b"PAR1" + bytes(100) + b"\xff\xff\xff\x7fPAR1", "got 112 bytes without a footer"),
        (b"PAR1" + bytes(100) + b"\x10\x00\x00\x00PAR1", "a footer that does not read"),
        (b"PARE" + bytes(100) + b"\x10\x00\x00\x00PARE", "begins with 0x50415245"),
    ],
)
def test_what_has_no_footer_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "proofs.parquet").write_bytes(data)
    with pytest.raises(ParquetRefused, match=said):
        Footer.of(tmp_path / "proofs.parquet", "", "PROOFS")


def test_files_of_a_folder_are_those_that_spark_reads(tmp_path: Path) -> None:
    """Summaries too: Spark prefers their schema to that of the files."""
    for name in ("b.parquet", "a", "_metadata", "_common_metadata", "_SUCCESS", ".hidden", "day=1/c", "_day=2/d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [str(file.relative_to(tmp_path)) for file in parquet_files(tmp_path)]
    assert found == ["_common_metadata", "_day=2/d", "_metadata", "a", "b.parquet", "day=1/c"]


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        (["verify-proofs", "FILE"], ("root", "keys", "nodes")),
        (["verify-proofs", "FOLDER"], ("root", "keys", "nodes")),
        (["prove", "FILE", "--out", "OUT"], ("key", "value")),
        (["prove", "FOLDER", "--out", "OUT"], ("key", "value")),
        (["prove", "pairs.json", "--out", "OUT", "--requests", "FILE"], ("keys",)),
        (["import", "state", "FILE"], ("key", "value")),
        (["run", "publications.toml"], ("block", "para_id", "key", "value")),
        (["run", "load.toml"], ("block", "bytes")),
    ],
)
def test_every_verb_refuses_a_hostile_footer(
    arguments: list[str],
    columns: tuple[str, ...],
    attack: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("pairs.json").write_text('[["0x01", "0x02"]]')
    Path("publications.toml").write_text('extends = "oracle"\npublications = "file.parquet"\n')
    Path("load.toml").write_text(
        'extends = "oracle"\n[[parachains]]\nid = 3000\n'
        'messages.downward = { shape = "trace", file = "file.parquet" }\n'
    )
    for file in ("file.parquet", "folder/_metadata", "folder/part.parquet"):
        write(Path(file), *columns, schema=named(PYTHON_CLASS))
    places = {"FILE": "file.parquet", "FOLDER": "folder", "OUT": "out.parquet"}
    assert execute([places.get(it, it) for it in arguments]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "got a footer with the user-defined type of the pyClass 'hostile_types.Type'" in said
    assert said.count("\n") == 1
    assert not attack.exists()
    assert not Path("out.parquet").exists()
