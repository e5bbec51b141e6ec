"""Running scenarios: the same input gives the same bytes, files come together or not at all, exit codes tell how."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from command_line import Command, Refused, Written
from file_contents import contents
from long_hauls import soak
from relaycast.cli.command import refusal
from relaycast.simulation.run_folder import staged
from relaycast_ledger.outcome import percentiles, rank
from shared_vectors import shared
from synced_places import synced_places

SCENARIO = """
extends = "polkadot-2026"
name = "small"
blocks = 8
[[parachains]]
id = 2000
publish = { keys = 3, value_bytes = [10, 40], every = 2, changed = 1, ttl = 5, prefix = "k" }
[[parachains]]
id = 3000
name = "reader"
subscribe = [{ publisher = 2000, keys = 2 }]
"""


@pytest.fixture
def scenario(file: Written) -> str:
    return file(SCENARIO, "small.toml")


def test_json_is_one_object_with_the_contract_s_names(relaycast: Command, scenario: str) -> None:
    ended = relaycast("run", scenario, "--json")
    assert (ended.code, ended.err) == (0, "")
    run = ended.json
    assert {"run_id", "blocks", "subscribers", "invariants", "engine", "seed", "schema"} <= run.keys()
    assert (run["blocks"], run["seed"], run["invariants"]) == (8, 7, {"ok": True, "violations": []})
    (subscriber,) = run["subscribers"]
    assert subscriber["para_id"] == 3000
    assert subscriber["callbacks"] == subscriber["deliveries"] == 4  # both keys, then k/0 and k/1 once more
    assert subscriber["latency_blocks"] == {"p50": 2, "p99": 2, "max": 2}
    assert subscriber["proof_bytes"].keys() == {"p50", "p99", "max", "total"}
    assert (subscriber["incomplete_blocks"], subscriber["disabled_publishers"]) == (0, [])


def test_the_same_input_gives_the_same_bytes(relaycast: Command, scenario: str, tmp_path: Path) -> None:
    first = relaycast("run", scenario, "--out", "a", "--json").json
    second = relaycast("run", scenario, "--out", "b", "--json").json
    assert first == second
    assert contents(tmp_path / "a" / first["run_id"]).values()
    strip = {path.removeprefix(str(tmp_path / "a")): data for path, data in contents(tmp_path / "a").items()}
    assert strip == {path.removeprefix(str(tmp_path / "b")): data for path, data in contents(tmp_path / "b").items()}
    assert not any(str(tmp_path).encode() in (data or b"") for data in strip.values())


def test_another_seed_or_length_is_another_run(relaycast: Command, scenario: str) -> None:
    runs = [("--seed", "1"), ("--seed", "2"), ("--blocks", "9"), ("--blocks", "8")]
    ids = {relaycast("run", scenario, *options, "--json").json["run_id"] for options in runs}
    assert len(ids) == 4


def test_a_run_leaves_its_files_and_nothing_else(relaycast: Command, scenario: str, tmp_path: Path) -> None:
    run = relaycast("run", scenario, "--json").json
    folder = tmp_path / "out" / run["run_id"]
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == [run["run_id"]]
    tables = {"blocks.parquet", "proofs.parquet", "keys.parquet", "deliveries.parquet"}
    others = {"run.json", "events.jsonl", "report.html", "pov.snapshot.toml"}
    assert {entry.name for entry in folder.iterdir()} == tables | others
    written = json.loads((folder / "run.json").read_text())
    assert written["scenario"]["parachains"][0]["publish"]["keys"] == 3
    assert written["subscribers"] == run["subscribers"]
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert events[0] == {"schema": 2, "run_id": run["run_id"]}
    kinds = {(event["chain"], event["event"]) for event in events[1:]}
    assert {("relay", "PublisherRegistered"), ("relay", "DataPublished"), (3000, "DataProcessed")} <= kinds


def test_a_run_again_replaces_its_files(relaycast: Command, scenario: str, tmp_path: Path) -> None:
    run = relaycast("run", scenario, "--json").json
    stray = tmp_path / "out" / run["run_id"] / "stray"
    stray.touch()
    relaycast("run", scenario)
    assert not stray.exists()


def test_the_summary_names_what_people_ask_for(relaycast: Command) -> None:
    ended = relaycast("demo", "config-sync")
    for word in ("proof", "p50", "p99", "first", "of PoV", "latency", "every invariant held", "report: out/"):
        assert word in ended.out
    assert ended.err == ""


def test_the_report_needs_no_network_and_one_script_to_search(
    relaycast: Command, scenario: str, tmp_path: Path
) -> None:
    relaycast("run", scenario)
    (report,) = (tmp_path / "out").glob("*/report.html")
    page = report.read_text()
    assert page.count("<script") == page.count("<script>") == 1
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") - page.count('<svg class="icicle"') == 4
    assert "3000 reader" in page


def test_what_a_scenario_says_cannot_become_markup(relaycast: Command, file: Written, tmp_path: Path) -> None:
    relaycast("run", file(SCENARIO.replace('"reader"', '"<b>&</b>"'), "small.toml"))
    (report,) = (tmp_path / "out").glob("*/report.html")
    assert "<b>&</b>" not in report.read_text()
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in report.read_text()


def test_a_run_on_a_real_genesis_starts_from_its_root(relaycast: Command, tmp_path: Path) -> None:
    spec = shared("data/westend-genesis.json.gz")
    run = relaycast("demo", "config-sync", "--blocks", "6", "--genesis", str(spec), "--json").json
    assert run["relaychain"]["genesis"] == "Westend"
    assert run["relaychain"]["genesis_root"] == "0x7e92439a94f79671f9cade9dff96a094519b9001a7432244d46ab644bb6f746f"
    assert str(spec.parent) not in (tmp_path / "out" / run["run_id"] / "run.json").read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--blocks", "0"], "--blocks: got 0, expected a number from 1 to 1,000,000"),
        (["--seed", "-1"], "--seed: got -1, expected a number from 0 to 2^63 - 1"),
        (["--genesis", "nowhere.json"], "nowhere.json: got no such file or directory, expected a file that"),
        (["--genesis", "small.toml"], "small.toml line 2 column 1: got 'extends"),
        (["--out", "small.toml/below"], "--out small.toml/below: got not a directory, expected a folder that"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(refused: Refused, scenario: str, options: list[str], told: str) -> None:
    assert refused("run", scenario, *options).startswith(told)


def test_a_folder_that_cannot_be_written_is_refused(
    refused: Refused, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("relaycast.simulation.run_folder.mkdtemp", denied)
    assert refused("run", scenario, "--out", "made/for/this").startswith("--out made/for/this: got permission denied")


def _write_half(out: Path, error: type[BaseException]) -> None:
    with staged(out, "id") as folder:
        (folder / "file").write_text("second")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_stops_half_way_leaves_the_folder_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    with staged(tmp_path / "out", "id") as folder:
        (folder / "file").write_text("first")
    before = contents(tmp_path)
    with pytest.raises(error):
        _write_half(tmp_path / "out", error)
    with pytest.raises(error):
        _write_half(tmp_path / "new" / "out", error)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_with_one_line_and_no_files(tmp_path: Path, number: int, code: int) -> None:
    interrupt(tmp_path, number, code, seconds=0.0)


@soak(rounds=50)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_interrupted_anywhere_leaves_no_files(tmp_path: Path, number: int, code: int, soak_round: int) -> None:
    interrupt(tmp_path, number, code, seconds=Random(soak_round).uniform(0, 5))


SAID = {130: "interrupted", 143: "stopped by SIGTERM"}


@soak(rounds=25)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_anywhere_in_the_compiler_is_told_in_one_line(
    tmp_path: Path, number: int, code: int, soak_round: int
) -> None:
    """The compiler calls back from C, where nothing can be raised, and turns interrupts into errors of its own."""
    interrupt_compiler(tmp_path, number, code, seconds=Random(soak_round).uniform(0, 10))


def interrupt_compiler(tmp_path: Path, number: int, code: int, *, seconds: float) -> None:
    """Send a signal to a run, a number of seconds after it began to compile its first kernel."""
    command = [sys.executable, "-m", "relaycast", "demo", "--trie-engine", "array", "--out", str(tmp_path / "out")]
    rooms = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NUMBA_CACHE_DIR": str(tmp_path / "code")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **rooms})
    assert process.stderr is not None
    assert "compiling the array engine" in process.stderr.readline()
    time.sleep(seconds)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    told, compiled = err.splitlines()
    assert (process.returncode, told) == (code, f"relaycast: {SAID[code]}, nothing was written")
    assert compiled.startswith("relaycast: compiled ")
    assert not (tmp_path / "out").exists()


CALLED_BACK = """
import ctypes, signal, sys, time
from relaycast import __main__ as way_in
from relaycast.cli import command

@ctypes.CFUNCTYPE(None)
def called_back():
    signal.raise_signal(int(sys.argv[1]))

def execute(arguments):
    called_back()
    for _ in range(1_000):
        time.sleep(0.01)
    return 0

command.execute = execute
way_in.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_comes_while_c_code_calls_back_is_not_lost(number: int, code: int) -> None:
    """Nothing can be raised there; the compiler calls back for every kernel, after all that takes it long."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", CALLED_BACK, str(int(number))]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr == f"relaycast: {SAID[code]}, nothing was written\n"


def interrupt(tmp_path: Path, number: int, code: int, *, seconds: float) -> None:
    """Send a signal to a run, a number of seconds after it began to write."""
    command = [sys.executable, "-m", "relaycast", "demo", "--blocks", "100000", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    for _ in range(400):
        if list(tmp_path.glob("out/.*/events.jsonl")):
            break
        time.sleep(0.05)
    time.sleep(seconds)
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (code, "")
    assert err == f"relaycast: {SAID[code]}, nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_percentiles_are_values_that_occurred() -> None:
    assert [rank(range(1, 101), percent) for percent in (50, 99, 100)] == [50, 99, 100]
    assert [rank([7], percent) for percent in (50, 99, 100)] == [7, 7, 7]
    assert percentiles([3, 1, 2]) == percentiles([1, 2, 3])
    assert (percentiles([]).p50, percentiles([]).total) == (0, 0)


@pytest.mark.parametrize(("unbuffered", "place"), [("", "standard output"), ("1", "standard output or a file")])
def test_output_that_cannot_be_written_is_said_in_one_line(tmp_path: Path, unbuffered: str, place: str) -> None:
    command = [sys.executable, "-m", "relaycast", "trie", "root", str(tmp_path / "pairs.json")]
    (tmp_path / "pairs.json").write_text("[]")
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONUNBUFFERED"] = unbuffered
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert ended.returncode == 2
    assert ended.stderr == f"relaycast: {place}: got no space left on device, expected a place that can be written\n"


def test_names_are_printed_as_they_are(relaycast: Command, file: Written) -> None:
    ended = relaycast("run", file(SCENARIO.replace('"reader"', '"[/red][bold]"'), "small.toml"))
    assert ended.code == 0
    assert ended.out.count("3000 [/red][bold]") == 4


def test_the_files_of_a_run_are_on_disk_before_the_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = synced_places(monkeypatch)
    with staged(tmp_path, "run") as folder:
        (folder / "below").mkdir()
        (folder / "below" / "one").write_text("one")
        (folder / "two").write_text("two")
    *inside, out = synced
    assert sorted(inside) == sorted(map(str, (folder, folder / "below", folder / "below" / "one", folder / "two")))
    assert out == str(tmp_path)
    assert (tmp_path / "run" / "two").read_text() == "two"


def test_an_error_of_an_unnamed_file_is_not_called_one_of_standard_output() -> None:
    line, code = refusal(OSError(errno.EIO, os.strerror(errno.EIO)))
    assert (line, code) == (
        "standard output or a file: got input/output error, expected a place that can be written",
        2,
    )


def test_what_a_killed_run_left_is_removed_by_the_next_one_and_nothing_else(tmp_path: Path) -> None:
    run_id = "0123456789abcdef"
    names = f".{run_id}-abcdefgh", f".{run_id}-notes", ".fedcba9876543210-abcdefgh"
    left, theirs, other = (tmp_path / name for name in names)
    for folder in (left, theirs, other):
        folder.mkdir()
        (folder / "file").write_text("kept")
    with staged(tmp_path, run_id) as held, staged(tmp_path, run_id) as folder:
        assert held.is_dir()
        (folder / "new").write_text("new")
    assert not left.exists()
    assert (theirs / "file").read_text() == (other / "file").read_text() == "kept"
