"""``prove``, ``verify-proofs`` and ``sweep`` from the command line to the table."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.genesis.chain_spec import ChainSpec
from relaycast.refusal import BadInput
from relaycast.scenario.files import load_preset
from relaycast.simulation.run_files import simulate
from relaycast.simulation.sweep import load_sweep
from relaycast_spark.proof_tables import LIST
from relaycast_trie import StateVersion, StorageProof, trie_root
from small_disks import small_disk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = {bytes([number]) * 32: bytes([number]) * (number % 50) for number in range(100)}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    columns = {"key": pa.array(PAIRS, pa.binary()), "value": pa.array(PAIRS.values(), pa.binary())}
    pq.write_table(pa.table(columns), tmp_path / "state.parquet")
    return tmp_path / "state.parquet"


@pytest.mark.usefixtures("spark")
def test_what_is_proved_is_verified(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proofs = tmp_path / "proofs.parquet"
    assert execute(["prove", str(state), "--count", "300", "--keys", "3", "--out", str(proofs), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"proofs": 300, "root": f"0x{trie_root(PAIRS).hex()}", "out": str(proofs)}

    assert execute(["verify-proofs", str(proofs), "--strict", "--json"]) == ExitCode.FINE
    told = json.loads(capsys.readouterr().out)
    assert told["verdicts"] == {"valid": 300}
    rows = pq.read_table(told["out"]).sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == list(range(300))
    assert {row["present"] for row in rows} == {3}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "proofs.parquet",
        "proofs.verdicts.parquet",
        "state.parquet",
    ]


TOP = {f"0x{key.hex()}": f"0x{value.hex()}" for key, value in PAIRS.items()}
INNER = {"0x01": "0x02", "0x03": "0x04"}
NAME = "0x6368696c64"
IN_PARTS = {"top": TOP, "childrenDefault": {NAME: INNER}}
SPEC = {"name": "x", "genesis": {"raw": {**IN_PARTS}}}


def in_parquet(file: Path) -> None:
    rows = [(None, *pair) for pair in TOP.items()] + [(NAME, *pair) for pair in INNER.items()]
    children, keys, values = zip(*rows, strict=True)
    pq.write_table(pa.table({"child": children, "key": keys, "value": values}), file)


def in_json(content: object, file: Path) -> None:
    file.write_text(json.dumps(content))


def in_gzip(content: object, file: Path) -> None:
    file.write_bytes(gzip.compress(json.dumps(content).encode()))


@pytest.mark.parametrize(
    ("name", "write", "children", "version"),
    [
        ("spec.json", partial(in_json, SPEC), True, 0),
        ("spec.json.gz", partial(in_gzip, SPEC), True, 0),
        ("pairs.json", partial(in_json, list(TOP.items())), False, 1),
        ("pairs.json", partial(in_json, TOP), False, 1),
        ("answer.json", partial(in_json, {"jsonrpc": "2.0", "result": list(TOP.items())}), False, 1),
        ("state.json", partial(in_json, IN_PARTS), True, 1),
        ("state.parquet", in_parquet, True, 1),  # hex, and a child trie: no table that is proved as it stands
        ("parquet", in_parquet, True, 1),  # known by its first bytes
    ],
)
@pytest.mark.usefixtures("spark")
def test_whatever_import_reads_can_be_proved(
    name: str,
    write: Callable[[Path], None],
    children: bool,
    version: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The roots of child tries stand in the top trie; specs are of state version 0 unless told."""
    write(tmp_path / name)
    state = ChainSpec("x", PAIRS, {bytes.fromhex(NAME[2:]): {b"\1": b"\2", b"\3": b"\4"}} if children else {})
    for told, expected in ((None, version), (1 - version, 1 - version)):
        options = [] if told is None else ["--state-version", str(told)]
        out = tmp_path / f"proofs-{told}"
        command = ["prove", str(tmp_path / name), "--count", "2", "--out", str(out), "--json", *options]
        assert execute(command) == ExitCode.FINE
        root = json.loads(capsys.readouterr().out)["root"]
        assert root == f"0x{state.state_root(state_version=StateVersion(expected)).hex()}"


@pytest.mark.usefixtures("spark")
def test_requests_are_proved_and_a_damaged_proof_is_found(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [[bytes([number]) * 32, b"absent"] for number in range(20)]
    requests = tmp_path / "requests.parquet"
    pq.write_table(pa.table({"id": list(range(20)), "keys": pa.array(keys, LIST)}), requests)
    made = tmp_path / "made.parquet"
    assert execute(["prove", str(state), "--requests", str(requests), "--out", str(made)]) == ExitCode.FINE
    table = pq.read_table(made).sort_by("id")
    nodes = table.column("nodes").to_pylist()
    assert table.column("keys").to_pylist() == keys
    expected = StorageProof(nodes[7]).verify(trie_root(PAIRS), keys[7])
    assert expected[keys[7][0]] == PAIRS[keys[7][0]]

    nodes[7] = [node for node in nodes[7] if node != max(nodes[7], key=len)]
    nodes[8] = [*nodes[8], b"foreign"]
    damaged = tmp_path / "damaged.parquet"
    pq.write_table(table.set_column(3, "nodes", pa.array(nodes, LIST)), damaged)
    capsys.readouterr()
    verdicts = tmp_path / "verdicts.parquet"
    options = ["--strict", "--out", str(verdicts)]
    assert execute(["verify-proofs", str(damaged), *options]) == ExitCode.CHECK_FAILED
    kinds = {row["id"]: row["verdict"] for row in pq.read_table(verdicts).to_pylist()}
    assert kinds.pop(7) == "MissingNode"
    assert kinds.pop(8) == "UnusedNodes"
    assert set(kinds.values()) == {"valid"}
    assert "MissingNode" in capsys.readouterr().out


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("room", [0, 64 << 10])
def test_a_disk_that_is_full_before_the_end_is_told_with_its_place_and_nothing_is_left(
    room: int, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Java does not say where there is no room."""
    proofs = tmp_path / "proofs"
    assert execute(["prove", str(state), "--count", "1500", "--out", str(proofs)]) == ExitCode.FINE
    capsys.readouterr()
    with small_disk(tmp_path / "disk", 128 << 10) as disk:
        (disk / "fill").write_bytes(bytes((128 << 10) - room))
        out = disk / "deep" / "table"
        for command in (["prove", str(state), "--count", "1500"], ["verify-proofs", str(proofs)]):
            assert execute([*command, "--out", str(out)]) == ExitCode.BAD_INPUT
            told = capsys.readouterr().err.splitlines()[-1]
            assert told == f"relaycast: --out {out}: got no space left on device, expected a place that can be written"
            assert [path.name for path in disk.iterdir()] == ["fill"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["verify-proofs", "nowhere.parquet"], "PROOFS nowhere.parquet: got no such file"),
        (["verify-proofs", __file__], "got a file that begins with 0x22222260, expected a Parquet file or folder"),
        (["prove", "STATE", "--out", "x", "--count", "0"], "--count: got 0, expected a number from 1"),
        (["prove", "STATE", "--out", "x", "--requests", "y"], "--requests y: got no such file"),
        (["prove", "FOLDER", "--out", "x"], "got a folder with the column child, expected one file"),
        (["prove", "nowhere.json", "--out", "x"], "nowhere.json: got no such file"),
        (["prove", __file__, "--out", "x"], "expected JSON"),
        (["sweep", "nowhere.toml"], "nowhere.toml: got no such file or directory"),
    ],
)
def test_bad_input_is_told_before_spark_starts(
    arguments: list[str], complaint: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = state.parent / "folder"
    folder.mkdir()
    in_parquet(folder / "part.parquet")
    places = {"STATE": str(state), "FOLDER": str(folder)}
    given = [places.get(argument, argument) for argument in arguments]
    assert execute(given) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("spark")
def test_columns_that_are_no_proofs_are_refused(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["verify-proofs", str(state)]) == ExitCode.BAD_INPUT
    assert "got the columns key, value, expected root, keys and nodes" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_requests_without_ids_are_refused(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--requests", str(state), "--out", str(tmp_path / "made.parquet")]
    assert execute(["prove", str(state), *options]) == ExitCode.BAD_INPUT
    assert "the requests: got the columns key, value, expected id and keys" in capsys.readouterr().err


def test_a_table_that_ends_early_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and then nothing")
    assert execute(["verify-proofs", str(tmp_path / "half.parquet")]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "half.parquet: got 21 bytes without a footer at their end, expected whole Parquet" in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["half.parquet"]


SWEEP = """
scenarios = ["oracle", "config-sync"]
seeds = [1, 2]
blocks = 6
policies = [[], ["cache=none"]]
[vary]
"relaychain.pov_percent" = [50, 85]
"""


@pytest.mark.usefixtures("spark")
def test_a_sweep_is_its_runs_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    table = tmp_path / "table.parquet"
    assert execute(["sweep", str(tmp_path / "sweep.toml"), "--out", str(table)]) in {0, ExitCode.INVARIANT_VIOLATED}
    assert "16 runs, 24 rows (one for each subscriber of a run): none of a failed run" in capsys.readouterr().out
    rows = pq.read_table(table).to_pylist()
    assert [row["cell"] for row in rows] == sorted(row["cell"] for row in rows)
    assert {(row["scenario"], row["seed"], row["relaychain.pov_percent"]) for row in rows} == {
        (name, seed, percent) for name in ("oracle", "config-sync") for seed in (1, 2) for percent in (50, 85)
    }
    relay = msgspec.structs.replace(load_preset("oracle").relaychain, pov_percent=50)
    scenario = msgspec.structs.replace(load_preset("oracle"), seed=2, blocks=6, relaychain=relay)
    outcome = simulate(scenario, out=tmp_path / "out").outcome
    mine = [row for row in rows if row["run_id"] == outcome.run_id]
    assert [(row["para_id"], row["callbacks"], row["proof_bytes_total"]) for row in mine] == [
        (it.para_id, it.callbacks, it.proof_bytes.total) for it in outcome.subscribers
    ]


def test_a_cell_that_fails_says_so_and_spares_the_others(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark is not None
    (tmp_path / "sweep.toml").write_text('scenarios = ["oracle", "gone.toml"]\nblocks = 2\n')
    genesis = tmp_path / "genesis.json"
    genesis.write_text('{"genesis": {"raw": {"top": {}}}}')
    (tmp_path / "gone.toml").write_text('extends = "oracle"\n[relaychain]\ngenesis = "genesis.json"\n')
    monkeypatch.chdir(tmp_path)
    cells = load_sweep("sweep.toml")
    genesis.unlink()
    from relaycast.simulation.sweep import run_cell  # noqa: PLC0415

    first, second = (run_cell(msgspec.json.encode(cell)) for cell in cells)
    assert all("error" not in row for row in first)
    (row,) = second
    assert row["error"].startswith("BadInput: genesis.json: got no such file")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scenarios = []", "sweep.toml: got Expected `array` of length >= 1"),
        ('scenarios = ["oracle"]\nseed = 1', "Object contains unknown field `seed`"),
        ('scenarios = ["orcale"]', "'orcale', expected a preset or a scenario file (did you mean oracle?)"),
        ('scenarios = ["oracle"]\npolicies = [["cash=none"]]', "did you mean cache?"),
        ('scenarios = ["oracle"]\n[vary]\n"relaychain.pov_percnt" = [1]', "did you mean pov_percent?"),
        ('scenarios = ["oracle"]\n[vary]\n"parachains.9.publish.keys" = [1]', "'9', expected a path inside"),
        ('scenarios = ["oracle"]\n[vary]\n"relaychain.pov_percent" = [101]', "expected a whole number <= 100"),
        ('scenarios = ["oracle"]\n[vary]\n"parachains.2000.publish.keys" = [5]', "at most the 5 keys"),
        ("scenarios = [", "text that is not TOML"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(BadInput) as refused:
        load_sweep(str(tmp_path / "sweep.toml"))
    assert complaint in str(refused.value)
