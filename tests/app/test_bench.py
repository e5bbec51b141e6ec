"""``relaycast bench engine``: a table and the same as JSON; a backend that is not there is left out with its reason."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from command_line import Command, Refused
from peers import missing
from relaycast.bench import peer, proof_pass, py_trie, sheet, yardstick
from relaycast.bench.engine import MODULES, SIZES, EngineBench, Sheet
from relaycast.bench.peer import FIGURES, figure
from relaycast_trie import warm_up

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """The kernels announce a first compilation on standard error: let that be over before anything is looked at."""
    warm_up()


pytestmark = pytest.mark.usefixtures("timed_once")


def test_a_table_is_printed_and_the_same_is_written(relaycast: Command, tmp_path: Path) -> None:
    ended = relaycast(
        *("bench", "engine", "--sizes", "20", "50", "--values", "40", "--backends", "array", "plain"),
        *("--json", "engine.json"),
    )
    assert (ended.code, ended.err) == (0, "")
    written = json.loads((tmp_path / "engine.json").read_text())
    assert {(row["backend"], row["keys"], row["value_bytes"]) for row in written["rows"]} == {
        (backend, keys, 40) for backend in ("array", "plain") for keys in (20, 50)
    }
    for row in written["rows"]:
        assert f"{row['backend']:11}{row['workload']:40}{row['keys']:>9}" in ended.out
        assert row["path"] in ("user", "kernel")


def test_a_pass_is_timed_plainly_and_in_arrays(
    relaycast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof_pass, "SIZES", ((20, 2, 10),))
    ended = relaycast("bench", "pass", "--blocks", "2", "--json", "pass.json")
    assert (ended.code, ended.err) == (0, "")
    plain, array = json.loads((tmp_path / "pass.json").read_text())["passes"]
    assert [it["engine"] for it in (plain, array)] == ["plain", "array"]
    assert plain["proof_bytes_per_block"] == array["proof_bytes_per_block"] > 0
    assert all(row[f"{name}_ms"] > 0 for row in (plain, array) for name in ("prune", "verify", "seal", "hashlib"))
    assert max(map(len, ended.out.splitlines()[:-1])) <= 80, "the last line is a sentence, which a terminal wraps"


def test_user_paths_kernel_paths_and_the_hash_floor_are_tables_of_their_own(relaycast: Command) -> None:
    ended = relaycast("bench", "engine", "--sizes", "20", "--values", "32", "--backends", "array")
    titles = ["User paths", "Kernel paths", "Hash floor"]
    parts = {title: ended.out.partition(f"\n{title}\n")[2].partition("\n\n")[0] for title in titles}
    assert "trie_root(dict)" in parts["User paths"]
    assert "bulk root" not in parts["User paths"]
    assert "bulk root" in parts["Kernel paths"]
    assert "trie_root(dict)" not in parts["Kernel paths"]
    assert "verify() of a set to a dict k=10" in parts["Hash floor"]
    assert "update" not in parts["Hash floor"]
    assert ended.out.splitlines()[-1].endswith(f"peer: {peer.NAME} on {peer.CPU}, as recorded there")


def test_what_the_peer_was_measured_with_is_measured_here() -> None:
    bench = EngineBench(["array"])
    (one,) = bench.sheets_of([1_000], [32])
    found = {row.workload: row.peer for row in one.rows() if row.peer is not None}
    assert found == {workload: figures[1_000, 32] for workload, figures in FIGURES.items()}
    assert bench.report()["peer"] == {"name": peer.NAME, "cpu": peer.CPU}


def test_a_figure_of_the_peer_is_shown_as_it_was_recorded_or_not_at_all() -> None:
    assert figure("get, ns", 1_000, 32) == 547
    assert figure("get, ns", 1_001, 32) is None
    assert figure("memory, bytes/key", 1_000, 32) is None
    assert {keys for known in peer.FIGURES.values() for keys, _ in known} == set(SIZES)


def test_a_folder_called_trie_is_not_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT)])
    monkeypatch.delitem(sys.modules, "trie", raising=False)
    assert "'.[bench]'" in py_trie.missing()


@pytest.mark.parametrize("name", MODULES)
def test_a_backend_runs_or_says_in_one_line_why_it_cannot(name: str) -> None:
    reason = importlib.import_module(MODULES[name]).missing()  # type: ignore[index]
    assert "\n" not in reason
    if reason:
        missing(reason)
    importlib.import_module(MODULES[name]).run(small := Sheet(40, 33, yardstick.Yardstick(), seed=1))  # type: ignore[index]
    assert small.rows()
    assert {row.backend for row in small.rows()} == {name}


def test_without_the_oracle_that_backend_is_left_out_and_nothing_checked_is_no_success(
    relaycast: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RELAYCAST_ORACLE", str(tmp_path))
    ended = relaycast("bench", "engine", "--sizes", "20", "--backends", "chopsticks", "--json", "out.json")
    assert ended.code == 1
    assert ended.err.startswith("relaycast: bench: chopsticks is left out: ")
    assert ended.err.count("\n") == 1
    assert list(json.loads((tmp_path / "out.json").read_text())["left_out"]) == ["chopsticks"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--json", "."], "--json"),  # found before the first of many minutes
        (["--sizes", "3"], "--sizes"),
        (["--backends", "rust"], "--backends"),
        (["--values", "0"], "--values"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(refused: Refused, arguments: list[str], named: str) -> None:
    assert named in refused("bench", "engine", *arguments)


def test_blocks_of_a_node_are_counted_up() -> None:
    assert [sheet.blocks_of([bytes(size)]) for size in (0, 1, 128, 129, 256)] == [1, 1, 1, 2, 2]
