"""Sweeps on this machine: every combination in one table, and nothing done twice after an interrupt."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.scenario.files import load_preset
from relaycast.simulation import worker_processes
from relaycast.simulation.run_files import simulate
from relaycast.simulation.sweep import load_sweep, run_cell
from relaycast.simulation.sweep_folder import SweepFolder

SWEEP = """
scenarios = ["oracle", "config-sync"]
seeds = [1, 2]
blocks = 6
policies = [[], ["cache=none"]]
[vary]
"relaychain.pov_percent" = [50, 85]
"""

SMALL = 'scenarios = ["oracle"]\nseeds = [1, 2, 3, 4, 5]\nblocks = 2\n'

ENDS_WELL = {0, ExitCode.INVARIANT_VIOLATED}


def test_a_sweep_is_its_runs_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP)
    table = tmp_path / "table.parquet"
    assert execute(["sweep", str(tmp_path / "sweep.toml"), "--out", str(table), "--workers", "2"]) in ENDS_WELL
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


def test_a_cell_that_fails_says_so_and_spares_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sweep.toml").write_text('scenarios = ["oracle", "gone.toml"]\nblocks = 2\n')
    genesis = tmp_path / "genesis.json"
    genesis.write_text('{"genesis": {"raw": {"top": {}}}}')
    (tmp_path / "gone.toml").write_text('extends = "oracle"\n[relaychain]\ngenesis = "genesis.json"\n')
    monkeypatch.chdir(tmp_path)
    cells = load_sweep("sweep.toml")
    genesis.unlink()
    first, second = (run_cell(msgspec.json.encode(cell)) for cell in cells)
    assert all("error" not in row for row in first)
    (row,) = second
    assert row["error"].startswith("BadInput: genesis.json: got no such file")


@pytest.mark.parametrize("damage", ["none", "flipped", "half", "another sweep", "start over"])
def test_an_interrupted_sweep_goes_on_behind_the_cells_that_are_whole(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep, out, work = tmp_path / "sweep.toml", tmp_path / "table.parquet", tmp_path / ".table.parquet.cells"
    sweep.write_text(SMALL)
    command = ["sweep", str(sweep), "--workers", "1", "--out"]
    assert execute([*command, str(tmp_path / "whole.parquet")]) in ENDS_WELL
    keep = SweepFolder.keep

    def stopping(self: SweepFolder, number: int, rows: list[dict[str, object]]) -> None:
        keep(self, number, rows)
        if number == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(SweepFolder, "keep", stopping)
        assert execute([*command, str(out)]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.endswith("relaycast: interrupted, the same command goes on from here\n")
    kept = sorted(work.glob("cell-*"))
    assert [path.name[:7] for path in kept] == ["cell-0-", "cell-1-", "cell-2-"]
    assert not out.exists()
    (work / ".cell-3.json.1").write_bytes(b"under way when it was killed")
    if damage == "flipped":
        kept[1].write_bytes(kept[1].read_bytes().replace(b"1", b"2", 1))
    if damage == "half":
        kept[1].write_bytes(kept[1].read_bytes()[:40])
    if damage == "another sweep":
        sweep.write_text(SMALL.replace("blocks = 2", "blocks = 3"))
        assert execute([*command, str(tmp_path / "whole.parquet")]) in ENDS_WELL

    ran: list[int] = []

    def noting(work: Any, cells: dict[int, bytes], **rest: Any) -> object:
        ran.extend(cells)
        return worked(work, cells, **rest)

    worked = worker_processes.worked
    monkeypatch.setattr(worker_processes, "worked", noting)
    over = ["--no-resume"] if damage == "start over" else []
    assert execute([*command, str(out), *over]) in ENDS_WELL
    again = {"none": [], "flipped": [1], "half": [1]}.get(damage, [0, 1, 2])
    assert ran == [*again, 3, 4]
    assert pq.read_table(out) == pq.read_table(tmp_path / "whole.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.toml", "table.parquet", "whole.parquet"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--workers", "0"], "--workers: got 0, expected a number from 1 to 1,024"),
        (["--master", "local[2]"], "--master: got local[2] with --engine local, expected --engine spark beside it"),
        (["--engine", "spark", "--workers", "2"], "--workers: got 2 with --engine spark, expected --master local[N]"),
    ],
)
def test_options_of_the_other_engine_are_refused(
    options: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.toml").write_text(SMALL)
    before = sorted(tmp_path.iterdir())
    command = ["sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "x.parquet")]
    assert execute([*command, *options]) == ExitCode.BAD_INPUT
    assert complaint in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before
