"""Direct tests notice a change of a module; what they cannot notice is judged in ``judged.toml``."""

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from long_hauls import soak
from mutants.mutation import DIRECT_TESTS, Mutant, judged, mutate
from rooms import ROOT

JUDGED = judged(Path(__file__).with_name("judged.toml"))

needs_cosmic_ray = pytest.mark.skipif(
    importlib.util.find_spec("cosmic_ray") is None, reason="Cosmic Ray comes with the extra 'soak'"
)


@soak(rounds=1)
@pytest.mark.parametrize("module", DIRECT_TESTS)
def test_a_mutant_that_survives_is_judged(tmp_path: Path, module: str, soak_round: int) -> None:
    sessions = ROOT / ".soak" / "mutants"
    score = mutate(module, DIRECT_TESTS[module], root=ROOT, sessions=sessions, scratch=tmp_path)
    with (sessions / "scores.txt").open("a") as scores:
        survived = len(score.survivors)
        scores.write(f"{module}: {score.killed} killed, {survived} survived, {score.cpu_seconds:,.0f} s of CPU time\n")
    assert score.killed
    assert [it for it in score.survivors if it not in JUDGED.get(module, {})] == []


@pytest.mark.parametrize("module", JUDGED)
def test_a_judgement_is_about_a_line_that_stands_there_and_stands_in_the_notes(module: str) -> None:
    assert module in DIRECT_TESTS
    lines = {" ".join(it.split()) for it in (ROOT / module).read_text().splitlines()}
    notes = " ".join((ROOT / "docs" / "mutants.md").read_text().split())
    for mutant, because in JUDGED[module].items():
        assert mutant.line in lines
        assert mutant.becomes != mutant.line
        assert because in notes


@pytest.mark.parametrize("module", DIRECT_TESTS)
def test_a_mutated_module_has_direct_tests(module: str) -> None:
    assert (ROOT / module).is_file()
    assert DIRECT_TESTS[module]
    assert all((ROOT / it).is_file() for it in DIRECT_TESTS[module])


LIMIT = """LIMIT = 3


def within(size: int | None = None, *, least: int | None = None) -> int | None:
    return size
"""
TEST = """from limit import LIMIT

with open({log!r}, "a") as log:
    log.write(f"{{LIMIT}}\\n")


def test_the_limit() -> None:
    assert LIMIT {holds}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A module of two mutants: the number of its first line may be one more or one less."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "limit.py").write_text(LIMIT)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    return root


def limits(tree: Path, number: int, *, holds: str = "> 2") -> tuple[list[str], tuple[int, tuple[Mutant, ...]]]:
    """Return which limits were tried by now, and what came of all."""
    log, scratch = tree.parent / "log", tree.parent / f"scratch-{number}"
    (tree / "test_limit.py").write_text(TEST.format(log=str(log), holds=holds))
    scratch.mkdir()
    score = mutate("limit.py", ["test_limit.py"], root=tree, sessions=tree.parent / "sessions", scratch=scratch)
    return log.read_text().split(), (score.killed, score.survivors)


MORE = Mutant("", "LIMIT = 3", "LIMIT = 4")


@needs_cosmic_ray
def test_a_mutant_that_no_test_notices_survives_and_types_have_no_mutants(tree: Path) -> None:
    tried, score = limits(tree, 0)
    assert (tried[0], sorted(tried[1:])) == ("3", ["2", "4"])
    assert score == (1, (MORE,))
    assert (tree / "limit.py").read_text() == LIMIT


@needs_cosmic_ray
def test_a_run_goes_on_with_the_mutants_that_were_not_tried(tree: Path) -> None:
    first = limits(tree, 0)
    (session,) = (tree.parent / "sessions").iterdir()
    with closing(sqlite3.connect(session)) as db, db:
        db.execute("DELETE FROM work_results WHERE test_outcome = 'SURVIVED'")
    tried, score = limits(tree, 1)
    assert tried == [*first[0], "3", "4"]
    assert score == first[1]


@needs_cosmic_ray
def test_a_changed_test_tries_all_mutants_anew(tree: Path) -> None:
    limits(tree, 0)
    tried, score = limits(tree, 1, holds="== 3")
    assert len(tried) == 6
    assert score == (2, ())


@needs_cosmic_ray
def test_tests_that_fail_by_themselves_judge_no_mutant(tree: Path) -> None:
    with pytest.raises(ValueError, match="the direct tests fail without a mutant"):
        limits(tree, 0, holds="== 7")
