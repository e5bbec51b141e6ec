"""``prove``, ``verify-proofs`` and ``sweep`` from the command line to the table."""

import gzip
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.genesis.chain_spec import ChainSpec
from relaycast.refusal import BadInput
from relaycast.simulation.sweep import load_sweep
from relaycast_ledger.proof_tables import LIST
from relaycast_trie import StateVersion, StorageProof, trie_root
from small_disks import small_disk

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


def rows_of(table: Path, *, but: str = "") -> list[dict[str, object]]:
    rows = pq.read_table(table).sort_by("id").to_pylist()
    return [{name: value for name, value in row.items() if name != but} for row in rows]


@pytest.mark.usefixtures("spark")
def test_every_form_of_proofs_gets_the_same_verdicts(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nodes in each proof, nodes kept once, and proofs that are verified where they are made."""
    command = ["prove", str(state), "--count", "300", "--keys", "4", "--absent", "20", "--json", "--out"]
    for name, options in (("nodes", []), ("numbers", ["--distinct-nodes"]), ("verdicts", ["--verify-only"])):
        assert execute([*command, str(tmp_path / name), *options, "--rows-per-file", "20"]) == ExitCode.FINE
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    files = list((tmp_path / "nodes").glob("*.parquet"))
    assert max(pq.read_metadata(file).num_rows for file in files) == 20
    assert {pq.read_metadata(file).row_group(0).column(0).compression for file in files} == {"ZSTD"}

    for name in ("nodes", "numbers"):
        verdicts = tmp_path / f"{name}.verdicts"
        assert execute(["verify-proofs", str(tmp_path / name), "--strict", "--out", str(verdicts), "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert (again["verdicts"], again["proof_bytes"]) == (told["verdicts"], told["proof_bytes"])
        assert rows_of(verdicts) == rows_of(tmp_path / "verdicts")
    nodes = {row["number"]: row["node"] for row in pq.read_table(tmp_path / "numbers" / "_nodes").to_pylist()}
    numbered, listed = (pq.read_table(tmp_path / name).sort_by("id").to_pylist() for name in ("numbers", "nodes"))
    assert [[nodes[number] for number in row["numbers"]] for row in numbered] == [row["nodes"] for row in listed]
    assert nodes.keys() == {number for row in numbered for number in row["numbers"]}


@pytest.mark.usefixtures("spark")
def test_numbers_of_nodes_that_are_not_there_spoil_their_rows_alone(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proofs, verdicts = tmp_path / "proofs", tmp_path / "verdicts"
    command = ["prove", str(state), "--count", "30", "--keys", "1", "--out", str(proofs), "--distinct-nodes"]
    assert execute(command) == ExitCode.FINE
    (file,) = (proofs / "_nodes").glob("*.parquet")
    for checksum in file.parent.glob(".*.crc"):  # Hadoop's own: it would not let the file be read
        checksum.unlink()
    table = pq.read_table(file)
    victim = pq.read_table(proofs).to_pylist()[0]["numbers"][-1]
    pq.write_table(table.filter(pc.not_equal(table.column("number"), victim)), file)
    hit = {row["id"] for row in pq.read_table(proofs).to_pylist() if victim in row["numbers"]}
    assert execute(["verify-proofs", str(proofs), "--out", str(verdicts)]) == ExitCode.CHECK_FAILED
    assert {row["id"] for row in rows_of(verdicts) if row["verdict"] == "UnreadableRow"} == hit
    assert {row["verdict"] for row in rows_of(verdicts) if row["id"] not in hit} == {"valid"}

    shutil.rmtree(proofs / "_nodes")
    capsys.readouterr()
    assert execute(["verify-proofs", str(proofs)]) == ExitCode.BAD_INPUT
    told = f"the nodes of PROOFS {tmp_path}/_nodes: got no such file, expected a Parquet file or folder"
    assert told in capsys.readouterr().err


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
        (["prove", "STATE", "--out", "x", "--rows-per-file", "0"], "--rows-per-file: got 0, expected a number from 1"),
        (["prove", "STATE", "--out", "x", "--distinct-nodes", "--verify-only"], "got --verify-only beside it"),
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
    said = f"--requests {state}: got the columns key, value, expected id and keys"
    assert said in capsys.readouterr().err


def test_a_table_that_ends_early_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and then nothing")
    assert execute(["verify-proofs", str(tmp_path / "half.parquet")]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "half.parquet: got 21 bytes without a footer at their end, expected whole Parquet" in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["half.parquet"]


@pytest.mark.usefixtures("spark")
def test_a_sweep_on_spark_is_that_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    command = ["sweep", str(tmp_path / "sweep.toml"), "--out"]
    assert execute([*command, str(here), "--workers", "1"]) in {0, ExitCode.INVARIANT_VIOLATED}
    assert execute([*command, str(there), "--engine", "spark"]) in {0, ExitCode.INVARIANT_VIOLATED}
    assert "4 runs, 6 rows (one for each subscriber of a run): none of a failed run" in capsys.readouterr().out
    assert pq.read_table(here) == pq.read_table(there)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.parquet", "sweep.toml", "there.parquet"]


SWEEP = """
scenarios = ["oracle", "config-sync"]
blocks = 4
policies = [[], ["cache=none"]]
"""


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
