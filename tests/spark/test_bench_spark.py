"""``relaycast bench spark``: what is printed is what is written, and both sides count the same proofs."""

import json
from pathlib import Path

import pytest

from relaycast.bench.processes import DRIVER, peaks
from relaycast.bench.proof_rates import BATCH, PROCESSES, SPARK, ProofTerms, count_range, take_table
from relaycast.bench.run_rates import market
from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.simulation.run_files import simulate

TERMS = ProofTerms(count=2_500, keys=3, trie_keys=400)


def test_tasks_count_the_same_proofs_however_they_are_cut() -> None:
    take_table(TERMS.table())
    whole = count_range(0, TERMS.count, TERMS)
    parts = [count_range(first, min(first + 700, TERMS.count), TERMS) for first in range(0, TERMS.count, 700)]
    assert whole[0] == TERMS.count > BATCH
    assert (sum(part[0] for part in parts), sum(part[1] for part in parts)) == whole
    assert count_range(0, 100, TERMS) != count_range(0, 100, ProofTerms(2_500, 3, 400, seed=2))


@pytest.mark.slow
def test_proofs_and_blocks_are_measured_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spark.json"
    arguments = ["bench", "spark", "--count", "64", "--trie-keys", "50", "--keys", "2", "--cores", "1"]
    run = ["--blocks", "3", "--publishers", "2", "--subscribers", "1", "--changed", "1", "--json", str(file)]
    assert execute([*arguments, *run]) == ExitCode.FINE
    written, printed = json.loads(file.read_text()), capsys.readouterr().out
    assert [(row["what"], row["cores"], row["proofs"]) for row in written["proofs"]] == [
        (PROCESSES, 1, 64),
        (SPARK, 1, 64),
    ]
    assert len({row["proof_bytes"] for row in written["proofs"]}) == 1
    assert written["proofs"][1]["session_seconds"] >= 0 < written["proofs"][1]["first_job_seconds"]
    assert f"{written['spark_over_processes']:.2f} times as long as plain processes" in printed
    local, on_spark = written["runs"]
    assert local["run_id"] == on_spark["run_id"]
    assert on_spark["peak_mebibytes"].keys() >= {DRIVER}


def test_a_market_runs_with_every_size_it_is_asked_for(tmp_path: Path) -> None:
    for publishers, subscribers, changed in ((1, 1, None), (3, 2, 10), (5, 7, 1)):
        scenario = market(4, publishers, subscribers, changed=changed)
        outcome = simulate(scenario, out=tmp_path / str(publishers)).outcome
        assert outcome.invariants.ok
        assert [it.keys for it in outcome.subscribers] == [5 * min(4, publishers)] * subscribers


def test_the_own_process_has_a_peak() -> None:
    with peaks() as seen:
        while DRIVER not in seen:
            bytes(1 << 20)
    assert seen[DRIVER] > 10


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--json", "pyproject.toml/told.json"], "--json"),  # found before the first of many minutes
        (["--count", "0"], "--count: got 0 without --blocks"),
        (["--cores", "0"], "--cores"),
        (["--keys", "0"], "--keys"),
        (["--changed", "11"], "--changed"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["bench", "spark", *arguments]) == ExitCode.BAD_INPUT
    said = capsys.readouterr()
    assert named in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
