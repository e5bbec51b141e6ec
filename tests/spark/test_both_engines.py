"""Tables of proofs by processes of this machine and by Spark's tasks: the same rows in the same columns."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast_ledger import bulk_work
from relaycast_ledger.bulk_work import Engine, settle
from relaycast_ledger.proof_tables import LIST
from relaycast_ledger.table_places import TablePlace

pytestmark = pytest.mark.usefixtures("spark")

PAIRS = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}
ENGINES = {"local": ["--engine", "local", "--workers", "2"], "spark": ["--engine", "spark"]}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a state, and requests, into the working folder."""
    columns = {"key": pa.array(PAIRS, pa.binary()), "value": pa.array(PAIRS.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    ids = [7, None, 1 << 18, 3, 3, 5 << 18]
    keys = [[bytes([number]) * 32, b"absent"] for number in range(5)]
    pq.write_table(pa.table({"id": ids, "keys": pa.array([*keys, []], LIST)}), tmp_path / "requests.parquet")
    monkeypatch.chdir(tmp_path)
    return "state.parquet"


def same_tables(one: str, other: str) -> None:
    tables = [pq.read_table(name) for name in (one, other)]
    assert tables[0].schema == tables[1].schema
    assert sorted(map(repr, tables[0].to_pylist())) == sorted(map(repr, tables[1].to_pylist()))


def by_both(arguments: list[str], out: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Run a command by each engine, compare what it prints and writes, and return what is printed."""
    told = []
    for engine, options in ENGINES.items():
        code = execute([*arguments, *options, "--json", "--out", f"{out}-{engine}"])
        told.append((code, json.loads(capsys.readouterr().out.splitlines()[-1]) | {"out": out}))
    assert told[0] == told[1]
    same_tables(f"{out}-local", f"{out}-spark")
    found: dict[str, object] = told[0][1]
    return found


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
@pytest.mark.parametrize("form", [[], ["--distinct-nodes"], ["--verify-only"]])
def test_both_engines_draw_and_prove_the_same_keys(
    seed: int, form: list[str], state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["prove", state, "--count", "70", "--keys", "3", "--absent", "20", "--seed", str(seed), *form]
    by_both(command, "proofs", capsys)
    if "--distinct-nodes" in form:
        same_tables("proofs-local/_nodes", "proofs-spark/_nodes")
    if "--verify-only" not in form:
        for engine in ENGINES:
            by_both(["verify-proofs", f"proofs-{engine}"], f"verdicts-{engine}", capsys)
        same_tables("verdicts-local-local", "verdicts-spark-spark")


def test_both_engines_answer_the_same_requests(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    by_both(["prove", state, "--requests", "requests.parquet"], "proofs", capsys)


def test_both_engines_give_the_same_verdicts_and_keep_the_same_columns(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["prove", state, "--count", "12", *ENGINES["local"], "--out", "made"]) == ExitCode.FINE
    table = pq.read_table("made").sort_by("id")
    nodes = table.column("nodes").to_pylist()
    nodes[3], nodes[4], nodes[5], nodes[6] = nodes[3][1:], [*nodes[4], b"foreign"], None, [None]
    kept = {
        "u8": pa.array(range(12), pa.uint8()),
        "u16": pa.array(range(12), pa.uint16()),
        "u32": pa.array(range(12), pa.uint32()),
        "u64": pa.array([2**64 - 1] * 12, pa.uint64()),
        "i8": pa.array(range(12), pa.int8()),
        "name": pa.array(["name"] * 12).dictionary_encode(),
        "large": pa.array(["name"] * 12, pa.large_string()),
        "fixed": pa.array([b"four"] * 12, pa.binary(4)),
        "day": pa.array([date(2026, 1, 1)] * 12),
        "amount": pa.array([Decimal("1.50")] * 12, pa.decimal128(9, 2)),
        "lists": pa.array([[1, None]] * 12, pa.large_list(pa.uint8())),
        "pair": pa.array([{"a": 1, "b": b"x"}] * 12, pa.struct([("a", pa.uint16()), ("b", pa.large_binary())])),
        "map": pa.array([[("a", 1)]] * 12, pa.map_(pa.string(), pa.int32())),
        "half": pa.array([0.5] * 12, pa.float32()),
        "flag": pa.array([True, None] * 6),
    }
    columns = {name: table.column(name) for name in ("id", "root", "keys")}
    pq.write_table(pa.table({**columns, "nodes": pa.array(nodes, LIST), **kept}), "damaged.parquet", row_group_size=5)
    told = by_both(["verify-proofs", "damaged.parquet", "--strict"], "verdicts", capsys)
    assert told["verdicts"] == {"valid": 8, "UnreadableRow": 2, "RootMismatch": 1, "UnusedNodes": 1}


def test_a_moment_is_the_same_by_both_engines(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In UTC or in no zone at all, and whatever the form that it has in the file."""
    assert execute(["prove", state, "--count", "2", *ENGINES["local"], "--out", "made"]) == ExitCode.FINE
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    table = pq.read_table("made")
    for name, kind in (("paris", pa.timestamp("ms", "Europe/Paris")), ("local", pa.timestamp("us"))):
        table = table.append_column(name, pa.array([moment] * 2, kind))
    pq.write_table(table, "proofs.parquet")
    pq.write_table(table, "older.parquet", use_deprecated_int96_timestamps=True)
    for file, zone in (("proofs.parquet", None), ("older.parquet", "UTC")):
        by_both(["verify-proofs", file], file.removesuffix(".parquet"), capsys)
        found = pq.read_table(f"{file.removesuffix('.parquet')}-spark")
        assert found.schema.field("paris").type == pa.timestamp("us", "UTC")
        assert found.schema.field("local").type == pa.timestamp("us", zone)
        assert {it.replace(tzinfo=UTC) for it in found.column("local").to_pylist()} == {moment}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["verify-proofs", "state.parquet"], "got the columns key, value, expected root, keys and nodes"),
        (["prove", "state.parquet", "--requests", "state.parquet"], "got the columns key, value, expected id and keys"),
        (["prove", "state.parquet", "--requests", "nulls.parquet"], "got the columns keys with a null among them"),
        (["verify-proofs", "numbers.parquet"], "got no such file, expected a Parquet file or folder"),
        (["verify-proofs", "texts.parquet"], "got the columns root as string, expected root as binary"),
    ],
)
def test_both_engines_refuse_bad_input_in_the_same_line(
    arguments: list[str], complaint: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"id": [1], "root": [bytes(32)], "keys": pa.array([[b"a"]], LIST)}
    pq.write_table(pa.table({"id": [1], "keys": pa.array([[None]], LIST)}), "nulls.parquet")
    pq.write_table(pa.table({**about, "numbers": [[1]]}), "numbers.parquet")
    pq.write_table(pa.table({**about, "root": ["0x"], "nodes": pa.array([[b"a"]], LIST)}), "texts.parquet")
    lines = []
    for options in ENGINES.values():
        assert execute([*arguments, *options, "--out", "out"]) == ExitCode.BAD_INPUT
        lines.append(capsys.readouterr().err.splitlines()[-1])
    assert lines[0] == lines[1]
    assert complaint in lines[0]
    assert not Path("out").exists()


@pytest.mark.parametrize(("first", "second"), [("local", "spark"), ("spark", "local")])
@pytest.mark.parametrize("asked", [["--count", "300000", "--keys", "1"], ["--requests", "requests.parquet"]])
def test_an_engine_goes_on_behind_the_ranges_of_the_other(
    first: str, second: str, asked: list[str], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def stopping(engine: Engine, staging: TablePlace, place: TablePlace, rows: int) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(place.name)
        settle(engine, staging, place, rows)

    command = ["prove", state, *asked, "--out", "out"]
    with monkeypatch.context() as patched:
        patched.setattr(bulk_work, "settle", stopping)
        assert execute([*command, *ENGINES[first]]) == ExitCode.INTERRUPTED

    def noting(engine: Engine, staging: TablePlace, place: TablePlace, rows: int) -> None:
        assert place.name not in written
        settle(engine, staging, place, rows)

    monkeypatch.setattr(bulk_work, "settle", noting)
    assert execute([*command, *ENGINES[second]]) == ExitCode.FINE
    ids = pq.read_table("out").column("id").to_pylist()
    assert len(ids) == (300_000 if asked[0] == "--count" else 6)
    assert len(set(ids)) == (300_000 if asked[0] == "--count" else 5)
