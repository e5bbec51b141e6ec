"""Long hauls go on where they were stopped; and every property of the project under seeds of their own."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from long_hauls import OPTION, Journal, soak
from rooms import ROOMS, ROOT

PROPERTIES = "hypothesis and not slow and not oracle and not soak"


@soak(rounds=200)
@pytest.mark.parametrize("room", ROOMS)
def test_every_property_holds_for_inputs_drawn_anew(room: str, soak_round: int) -> None:
    """A round draws tens of inputs for each of more than a hundred properties: a million and more in all rounds."""
    folder = ROOT / "tests" / room
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", PROPERTIES]
    ended = subprocess.run(
        [*command, f"--hypothesis-seed={soak_round}", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "HYPOTHESIS_PROFILE": "soak"},
    )
    assert ended.returncode in {0, 5}, ended.stdout[-8_000:]  # 5: a room without properties
    assert "failed" not in ended.stdout


HAUL = """
from long_hauls import soak

@soak(rounds=4)
def test_haul(soak_round: int) -> None:
    assert soak_round != {failing}

def test_other() -> None:
    pass
"""


def haul(folder: Path, failing: int, *options: str) -> str:
    """Run four rounds, one of which fails, and return what pytest says."""
    (folder / "test_haul.py").write_text(HAUL.format(failing=failing))
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    soak: rounds\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "soak"]
    rooms = os.pathsep.join(str(ROOT / place) for place in (*ROOMS, "tests"))
    return subprocess.run(
        [*command, OPTION, str(folder / "journal" / "of.jsonl"), *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**{name: value for name, value in os.environ.items() if "XDIST" not in name}, "PYTHONPATH": rooms},
    ).stdout


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param((), id="one process", marks=pytest.mark.slow),
        pytest.param(("-n", "2", "--dist", "loadfile"), id="two workers", marks=pytest.mark.slow),
    ],
)
def test_a_haul_goes_on_with_what_has_not_passed(tmp_path: Path, workers: tuple[str, ...]) -> None:
    first = haul(tmp_path, 2, *workers)
    assert "test_haul.py::test_haul: 0 rounds done before, 1 failed, 3 passed" in first
    journal = tmp_path / "journal" / "of.jsonl"
    with journal.open("a") as stream:
        stream.write('{"sources": "cut sh')
    second = haul(tmp_path, 9, *workers)
    assert "test_haul.py::test_haul: 3 rounds done before, 1 passed" in second
    third = haul(tmp_path, 9, *workers)
    assert "test_haul.py::test_haul: 4 rounds done before, none now" in third


def test_a_journal_counts_for_its_sources_alone(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    entry = {"sources": "ours", "test": "a.py::b[0]", "outcome": "passed", "seconds": 1.0}
    file.write_text("".join(json.dumps({**entry, "sources": it}) + "\n" for it in ("ours", "theirs")))
    assert [len(Journal(file, it).before) for it in ("ours", "theirs", "others")] == [1, 1, 0]


def test_kills_signals_inputs_and_machines_have_their_hauls() -> None:
    hauls = {
        node.name
        for file in (ROOT / "tests").rglob("test_*.py")
        if "@soak(" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "soak"
    }
    assert hauls == {
        "test_200_blocks_are_the_other_hosts_and_our_execution_accepts_each",
        "test_a_driver_that_is_killed_at_any_moment_of_the_start_leaves_no_process_behind",
        "test_a_fork_agrees_with_the_whole_state_in_any_history",
        "test_a_hundred_thousand_requests_are_answered_and_memory_stays_bounded",
        "test_a_hundred_thousand_wild_messages_are_answered_in_flat_memory",
        "test_a_million_messages_are_read_or_refused",
        "test_a_mutant_that_survives_is_judged",
        "test_a_thousand_subscribers_get_exactly_their_events_in_order_whatever_fails",
        "test_a_reader_that_is_told_knows_what_is_published_in_many_networks",
        "test_a_run_interrupted_anywhere_leaves_no_files",
        "test_a_run_killed_anywhere_is_resumed_to_the_same_bytes",
        "test_all_invariants_hold_in_many_networks",
        "test_all_invariants_hold_over_many_long_lives",
        "test_an_interrupt_anywhere_in_the_compiler_is_told_in_one_line",
        "test_every_property_holds_for_inputs_drawn_anew",
        "test_forks_build_the_blocks_of_whole_chains",
        "test_it_goes_through_any_forks_and_kills",
        "test_many_more_tries_have_the_roots_of_the_oracle",
        "test_much_more_damaged_metadata_is_refused_or_read",
        "test_nothing_is_lost_or_overtaken_where_a_process_is_killed_a_hundred_times",
        "test_many_random_steps_are_what_the_specification_computes",
        "test_two_hundred_long_histories_of_chains_that_go_back",
        "test_what_was_acknowledged_survives_any_kill",
        "test_what_was_published_survives_any_kill",
        "test_whatever_a_client_was_told_is_there_after_many_kills",
        "test_whatever_a_signal_hits_the_next_run_completes_it",
        "test_whatever_is_killed_the_next_sweep_completes_the_table",
    }
