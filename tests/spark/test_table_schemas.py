"""The columns of strangers' tables: what every file must have, what is kept, and what is refused by the file's name."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast_ledger.parquet_files import SPARK_SCHEMA, ParquetTable

ENGINES = [
    pytest.param(["--engine", "local", "--workers", "1"], id="local"),
    pytest.param(["--engine", "spark"], id="spark", marks=pytest.mark.slow),
]
Change = Callable[[pa.Table], pa.Table]
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> list[str]:
    """Return the options of an engine; Spark runs if it is the one."""
    options: list[str] = request.param
    if "spark" in options:
        request.getfixturevalue("spark")
    return options


@pytest.fixture
def proofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> pa.Table:
    """Return four proofs, and go to a folder with an empty folder ``mixed``."""
    monkeypatch.chdir(tmp_path)
    pairs = {bytes([number]) * 32: bytes([number]) * 40 for number in range(20)}
    columns = {"key": pa.array(pairs, pa.binary()), "value": pa.array(pairs.values(), pa.binary())}
    pq.write_table(pa.table(columns), "state.parquet")
    made = ["prove", "state.parquet", "--count", "4", "--engine", "local", "--workers", "1", "--out", "made"]
    assert execute(made) == ExitCode.FINE
    capsys.readouterr()
    Path("mixed").mkdir()
    return pq.read_table("made").sort_by("id")


def with_column(name: str, values: list[Any] | pa.Array, kind: pa.DataType | None = None) -> Change:
    return lambda table: table.append_column(name, pa.array(values, kind))


def without(*names: str) -> Change:
    return lambda table: table.drop_columns(list(names))


def renamed(old: str, new: str) -> Change:
    return lambda table: table.rename_columns([new if name == old else name for name in table.schema.names])


def with_stale_footer(names: list[str], change: Change) -> Change:
    """Let Spark's own schema say other columns than there are."""
    lists = {"type": "array", "elementType": "binary", "containsNull": True}
    kinds = {"id": "long", "root": "binary", "keys": lists, "nodes": lists}
    fields = [{"name": name, "type": kinds[name], "nullable": True, "metadata": {}} for name in names]
    schema = json.dumps({"type": "struct", "fields": fields}).encode()
    return lambda table: change(table).replace_schema_metadata({SPARK_SCHEMA: schema})


def texts(table: pa.Table) -> pa.Table:
    return table.set_column(3, "nodes", pa.array([["0x"]] * len(table)))


def same(table: pa.Table) -> pa.Table:
    return table


ALL = ["id", "root", "keys", "nodes"]
FORMS = "root, keys and nodes (or proof, or numbers)"

REFUSED: dict[str, tuple[Change, Change, str, str]] = {
    "nodes lost behind a stale footer": (same, with_stale_footer(ALL, without("nodes")), "id, root, keys", FORMS),
    "a verdict behind a stale footer": (
        with_stale_footer(ALL, same),
        with_stale_footer(ALL, with_column("verdict", ["fine"] * 2)),
        "verdict",
        "other names than those of the verdicts",
    ),
    "a verdict in capitals": (
        same,
        with_column("Verdict", ["fine"] * 2),
        "Verdict",
        "other names than those of the verdicts",
    ),
    "no root": (same, without("root"), "id, keys, nodes", FORMS),
    "nodes that are text": (same, texts, "nodes as list<item: string>", "nodes as list<item: binary>"),
    "another form of proof": (
        same,
        lambda it: without("nodes")(with_column("proof", [b"\0"] * 2)(it)),
        "id, root, keys, proof",
        "nodes, as in PROOFS mixed/a.parquet",
    ),
    "a kept column of another type": (
        with_column("note", [1, 2]),
        with_column("note", ["1", "2"]),
        "note as string",
        "note as int64, as in PROOFS mixed/a.parquet",
    ),
    "an id of another type": (
        same,
        lambda it: it.set_column(0, "id", it.column("id").cast(pa.int32())),
        "id as int32",
        "id as int64, as in PROOFS mixed/a.parquet",
    ),
    "a kept column in other capitals": (
        with_column("note", [1, 2]),
        with_column("Note", [1, 2]),
        "Note as int64",
        "note as int64, as in PROOFS mixed/a.parquet",
    ),
    "two names that differ in capitals": (
        same,
        lambda it: with_column("Note", [1, 2])(with_column("note", [1, 2])(it)),
        "note twice",
        "every name once, in capitals or not",
    ),
    "moments in nanoseconds": (
        same,
        with_column("at", [MOMENT] * 2, pa.timestamp("ns")),
        "at as timestamp[ns]",
        "types that Spark has, timestamp[us] among them",
    ),
    "moments in nanoseconds inside of a list": (
        same,
        with_column("at", [[MOMENT]] * 2, pa.list_(pa.timestamp("ns", "UTC"))),
        "at as list<item: timestamp[ns, tz=UTC]>",
        "types that Spark has, timestamp[us] among them",
    ),
    "a time of day": (
        same,
        with_column("at", [1, 2], pa.time64("us")),
        "at as time64[us]",
        "types that Spark has, timestamp[us] among them",
    ),
    "half a float": (
        same,
        with_column("x", [1.0, 2.0], pa.float16()),
        "x as halffloat",
        "types that Spark has, timestamp[us] among them",
    ),
    "a decimal of 50 digits": (
        same,
        with_column("x", [Decimal(1)] * 2, pa.decimal256(50, 0)),
        "x as decimal256(50, 0)",
        "types that Spark has, timestamp[us] among them",
    ),
}
"""Changes to the first and the second file of a folder, and the columns that are complained of in the second."""


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("case", REFUSED)
def test_the_second_file_is_refused_by_its_name(
    case: str, engine: list[str], proofs: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, got, expected = REFUSED[case]
    pq.write_table(first(proofs.slice(0, 2)), "mixed/a.parquet")
    pq.write_table(second(proofs.slice(2)), "mixed/b.parquet")
    assert execute(["verify-proofs", "mixed", *engine, "--out", "verdicts"]) == ExitCode.BAD_INPUT
    line = f"relaycast: PROOFS mixed/b.parquet: got the columns {got}, expected {expected}"
    assert capsys.readouterr().err.splitlines()[1:] == [line]
    assert not Path("verdicts").exists()


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_the_name_of_a_folder_is_no_verdict_either(
    engine: list[str], proofs: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mixed/message=x").mkdir()
    pq.write_table(proofs, "mixed/message=x/a.parquet")
    assert execute(["verify-proofs", "mixed", *engine, "--out", "verdicts"]) == ExitCode.BAD_INPUT
    line = "PROOFS mixed/message=x/a.parquet: got the columns message, expected other names than those of the verdicts"
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(
    "engine", [*ENGINES, pytest.param(["--engine", "spark", "jvm"], marks=pytest.mark.slow)], indirect=True
)
def test_a_file_without_a_kept_column_has_nulls_there(
    engine: list[str], proofs: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in other physical types, another order, and below folders; the last engine reads as it does at a URI."""
    dotted = "a.b c"
    if "jvm" in engine:
        engine, dotted = engine[:2], "abc"  # PySpark's mapInArrow takes no name with a dot
        monkeypatch.setattr(ParquetTable, "is_local", False)
    for day in (1, 2):
        Path(f"mixed/day=2026-01-0{day}/_x=a%2Fb").mkdir(parents=True)
    first = with_column("note", ["one", "two"])(proofs.slice(0, 2))
    first = with_column("at", [MOMENT] * 2, pa.timestamp("ms", "Europe/Paris"))(first)
    second = proofs.slice(2).select(["nodes", "keys", "root", "id"])
    second = second.set_column(2, "root", second.column("root").cast(pa.binary(32)))
    second = second.set_column(0, "nodes", second.column("nodes").cast(pa.large_list(pa.large_binary())))
    second = with_column(dotted, [1, 2], pa.uint8())(with_column("at", [MOMENT] * 2, pa.timestamp("us"))(second))
    pq.write_table(with_stale_footer(["id"], same)(first), "mixed/day=2026-01-01/_x=a%2Fb/z.parquet", row_group_size=1)
    pq.write_table(second, "mixed/day=2026-01-02/_x=a%2Fb/a.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(proofs.slice(0, 0).select(["id"]), "mixed/_metadata")
    assert execute(["verify-proofs", "mixed", "--strict", *engine, "--out", "verdicts"]) == ExitCode.FINE
    table = pq.read_table("verdicts").sort_by("id")
    kept = table.select(["id", "note", "at", dotted, "day", "_x"])
    assert [str(field.type) for field in kept.schema] == [
        "int64",
        "string",
        "timestamp[us, tz=UTC]",
        "int16",
        "date32[day]",
        "string",
    ]
    days = [date(2026, 1, day) for day in (1, 1, 2, 2)]
    assert [list(row.values()) for row in kept.to_pylist()] == [
        [number, note, MOMENT, small, day, "a/b"]
        for number, note, small, day in zip(range(4), ["one", "two", None, None], [None, None, 1, 2], days, strict=True)
    ]


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_requests_need_two_columns_of_every_file_whatever_the_others_are(
    engine: list[str], proofs: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = with_column("at", [MOMENT] * 4, pa.timestamp("ns"))(proofs.select(["id", "keys"]))
    pq.write_table(asked, "mixed/a.parquet")
    pq.write_table(proofs.select(["keys", "id"]), "mixed/b.parquet")
    command = ["prove", "state.parquet", "--requests", "mixed", *engine, "--out", "answers"]
    assert execute(command) == ExitCode.FINE
    assert sorted(pq.read_table("answers").column("id").to_pylist()) == [0, 0, 1, 1, 2, 2, 3, 3]
    pq.write_table(proofs.select(["id"]), "mixed/c.parquet")
    capsys.readouterr()
    assert execute(command) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.splitlines()[1:] == [
        "relaycast: --requests mixed/c.parquet: got the columns id, expected id and keys"
    ]


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_rows_that_do_not_read_are_told_in_one_line(
    engine: list[str], proofs: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """The footer is whole, the pages before it are not."""
    pq.write_table(proofs, "mixed/a.parquet", compression="none", use_dictionary=False)
    data = bytearray(Path("mixed/a.parquet").read_bytes())
    data[4:300] = bytes(296)
    Path("mixed/a.parquet").write_bytes(data)
    assert execute(["verify-proofs", "mixed", *engine, "--out", "verdicts"]) != ExitCode.FINE
    *_, line = capsys.readouterr().err.splitlines()
    assert "mixed/a.parquet: got rows that do not read (" in line
    assert "Traceback" not in line
