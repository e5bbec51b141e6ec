"""A run by several processes is that of one, byte for byte, whatever its readers do."""

import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

import run_digests
from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.scenario.files import load_preset, load_scenario
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation import run_estimate, side_by_side
from relaycast.simulation.run_estimate import Estimate, Shares, chosen_shares, passed_alone, shares_of
from relaycast.simulation.run_files import simulate
from relaycast.simulation.side_by_side import ReaderShare, WorkerEnded, reader_shares, ticks_a_part
from relaycast.simulation.simulation import Simulation
from relaycast_xcm import ParaId

CASES = run_digests.short_cases()
QUICK = {"scarce-cores", "late-readers", "message-loads"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_two_processes_come_to_what_is_recorded_of_one(name: str, tmp_path: Path) -> None:
    now = run_digests.run(CASES[name], tmp_path, "--workers", "2")
    assert run_digests.differences(now, run_digests.stored()[name]["parts"]) == []


def test_every_file_of_a_run_is_that_of_one_process(tmp_path: Path) -> None:
    scenario = replace(load_preset("oracle"), blocks=12)
    one, three = (simulate(scenario, out=tmp_path / str(workers), workers=workers).folder for workers in (1, 3))
    assert one.name == three.name
    assert {file.name: file.read_bytes() for file in one.iterdir()} == {
        file.name: file.read_bytes() for file in three.iterdir()
    }


def pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let several processes pay from block 5 on, whatever they save."""
    monkeypatch.setattr(run_estimate, "LEAST_SAVED_SECONDS", -1e9)
    monkeypatch.setattr(run_estimate, "LEAST_GAIN", 1e-9)
    monkeypatch.setattr(run_estimate, "FREE_CORE", 0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_a_run_goes_on_in_several_processes_once_that_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pays(monkeypatch)
    runs = []
    for number, workers in enumerate(([], ["--workers", "1"])):
        out = tmp_path / str(number)
        assert execute(["run", "oracle", "--blocks", "14", "--json", "--out", str(out), *workers]) == ExitCode.FINE
        (folder,) = out.iterdir()
        runs.append({file.name: file.read_bytes() for file in folder.iterdir()})
        said = capsys.readouterr().err
        assert said == "" if workers else "relaycast: 2 processes build the blocks after 5; --workers 1 keeps one\n"
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", ["late-readers", "scarce-cores"])
def test_several_processes_that_begin_late_come_to_what_is_recorded_of_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: list[int] = []

    def sharing(simulation: Simulation, shares: Shares) -> list[ReaderShare]:
        shared.append(simulation.chains.tick)
        return reader_shares(simulation, shares)

    pays(monkeypatch)
    monkeypatch.setattr(side_by_side, "reader_shares", sharing)
    now = run_digests.run(CASES[name], tmp_path)
    assert shared == [5]
    assert run_digests.differences(now, run_digests.stored()[name]["parts"]) == []


def many(readers: int) -> Simulation:
    reading = [
        ParachainTable(id=3000 + it, subscribe=[SubscriptionTable(publisher=2000, keys=2)]) for it in range(readers)
    ]
    publisher = ParachainTable(id=2000, publish=PublishTable(keys=2))
    return Simulation.prepare(Scenario(name="many", blocks=9, parachains=[publisher, *reading]))


@pytest.mark.parametrize(
    ("left", "part", "readers", "cores", "processes", "why"),
    [
        (2.0, 0.9, 40, 64, 1, "a short run: less than two seconds would be saved"),
        (100.0, 0.9, 40, 1, 1, "one core"),
        (100.0, 0.9, 1, 8, 1, "one reader, whose blocks build on each other"),
        (100.0, 0.2, 40, 8, 1, "cheap readers: every process repeats the other four fifths"),
        (5.0, 0.9, 40, 2, 1, "5 seconds become 3.4"),
        (8.0, 0.9, 40, 2, 2, "8 seconds become 5.3"),
        (100.0, 0.9, 40, 4, 4, "as many as there are cores"),
        (1e6, 0.9, 40, 64, 14, "more would not be a tenth faster"),
        (1e6, 0.9, 3, 64, 3, "no more than readers"),
    ],
)
def test_as_many_processes_as_pay(left: float, part: float, readers: int, cores: int, processes: int, why: str) -> None:
    simulation = many(readers)
    parts = {ParaId(chain.id): part / readers for chain in simulation.scenario.subscribers()}
    assert len(chosen_shares(simulation, Estimate(left, 0.0, parts), cores)) == processes, why


@pytest.mark.parametrize(("processor", "processes"), [(0.5, 1), (0.9, 2)])
def test_a_core_that_others_use_starts_no_process(
    processor: float, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on by 10 s whenever it is read; the processor works for a part of them."""
    reads = itertools.count(step=10)
    monkeypatch.setattr(time, "perf_counter", lambda: next(reads))
    monkeypatch.setattr(time, "process_time", lambda: processor * next(reads))
    assert len(passed_alone(many(8), 2, None)) == processes


def test_readers_are_shared_by_what_they_read_and_publishers_by_nobody() -> None:
    hundred = Simulation.prepare(replace(load_preset("hundred-subscribers"), blocks=1))
    readers = [chain.id for chain in hundred.scenario.subscribers()]
    for workers in (1, 2, 7):
        shares = shares_of(hundred, workers)
        assert len(shares) == workers
        assert sorted(para_id for share in shares for para_id in share) == sorted(readers)
        assert max(map(len, shares[1:]), default=0) - min(map(len, shares[1:]), default=0) <= 5
        assert len(shares[0]) == min(map(len, shares)), "this process also puts the files together"
    oracle = Simulation.prepare(load_preset("oracle"))
    assert shares_of(oracle, 8) == [[3001], [3000]], "this process also puts the files together"


def test_readers_that_also_publish_or_change_are_built_by_every_process() -> None:
    kept = run_digests.FOLDER / "upgrades.toml"
    simulation = Simulation.prepare(load_scenario(str(kept)))
    shared = {para_id for share in shares_of(simulation, 4) for para_id in share}
    for chain in simulation.scenario.subscribers():
        assert (chain.id in shared) == (chain.publish is None and not chain.upgrades)


def fails(self: ReaderShare, block: int) -> object:
    if block == 2 and not self.tells_of_all:
        raise ValueError("a slip")
    return tick(self, block)


def is_killed(self: ReaderShare, block: int) -> object:
    if block == 2 and not self.tells_of_all:
        os.kill(os.getpid(), signal.SIGKILL)
    return tick(self, block)


tick = ReaderShare.tick


@pytest.mark.parametrize(
    ("ends", "reason"),
    [(fails, "a worker process ended in relay block 2: ValueError: a slip"), (is_killed, "ended from outside")],
)
def test_a_worker_that_ends_is_told_and_nothing_is_written(
    ends: Callable[[ReaderShare, int], object], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReaderShare, "tick", ends)
    with pytest.raises(WorkerEnded, match=reason):
        simulate(replace(load_preset("oracle"), blocks=4), out=tmp_path, workers=2)
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_workers_that_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "oracle", "--out", str(tmp_path), "--workers"]
    assert execute([*command, "0"]) == ExitCode.BAD_INPUT
    assert "--workers: got 0, expected a number from 1 to 1,024" in capsys.readouterr().err
    assert execute([*command, "0", "--engine", "spark"]) == ExitCode.BAD_INPUT
    assert "--workers: got 0, expected a number from 1 to 1,024" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--segment-blocks", "5"], ["--keep-proofs"], ["--fail-fast"], ["--no-resume"]])
def test_options_of_segments_are_refused_beside_workers(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "oracle", "--out", str(tmp_path / "out"), "--engine", "spark", "--workers", "2", *option]
    assert execute(command) == ExitCode.BAD_INPUT
    said = f"{option[0]}: got it with --workers 2, expected no --workers: they build a run without segments"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_part_holds_fewer_relay_blocks_where_readers_have_many_keys() -> None:
    few = Simulation.prepare(load_preset("oracle"))
    assert ticks_a_part(few) == 16
    wide = SubscriptionTable(publisher=2000, keys=9_000)
    readers = [ParachainTable(id=3_000 + number, subscribe=[wide]) for number in range(8)]
    publisher = ParachainTable(id=2000, publish=PublishTable(keys=9_000, changed=1))
    many = Simulation.prepare(Scenario(name="wide", blocks=40, parachains=[publisher, *readers]))
    assert ticks_a_part(many) == (1 << 18) // 72_000 == 3
