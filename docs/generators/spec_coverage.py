"""Which scenario of the specification is executed by which test: ``docs/spec-coverage.md``.

Run as a program it writes the page. Tests are found by reading the sources, so that the page is the same whichever of
them are selected, skipped or parametrised.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "spec-coverage.md"
CHAPTERS = ROOT / "spec" / "relaycast_spec"
TITLES = TESTS / "vectors" / "spec_scenarios.txt"

MODELLED = "tested, except for the host function: the meter is charged for each read of a cached node instead"
MODELLED_IN = (
    "PoV Budget Constraint / WeightMeter tracks ref_time and proof_size",
    "Proof Processing / Cached nodes read from storage",
)
"""Scenarios that leave reads of the parachain's own storage to a host function and ``StorageWeightReclaimer``."""


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """A test that says it executes ``scenario``."""

    scenario: str
    file: str
    test: str


def titles() -> list[str]:
    """Return every scenario as ``Requirement / Scenario``, in the order of the specification."""
    return TITLES.read_text().splitlines()


def titles_in(specification: str) -> list[str]:
    """Return the scenarios that the text of a specification holds."""
    found: list[str] = []
    requirement = ""
    for line in specification.splitlines():
        if line.startswith("### Requirement: "):
            requirement = line.removeprefix("### Requirement: ").strip()
        elif line.startswith("#### Scenario: "):
            found.append(f"{requirement} / {line.removeprefix('#### Scenario: ').strip()}")
    return found


@cache
def claims() -> list[Claim]:
    """Return what all tests say, sorted."""
    return sorted(claim for file in sorted(TESTS.rglob("test_*.py")) for claim in _claims_of(file))


def rules_by_scenario() -> dict[str, str]:
    """Return for each scenario the rule of the executable specification that names it, as a link to the chapter."""
    found: dict[str, str] = {}
    for file in sorted(CHAPTERS.glob("*.py")):
        rule = ""
        for line in file.read_text().splitlines():
            named = re.match(r" *(?:def|class) (\w+)", line)
            rule = named[1] if named else rule
            scenario = re.match(r" *Scenario: (.+ / .+)$", line)
            if scenario:
                found[scenario[1]] = f"[`{rule}`](specification/{file.stem}.md)"
    return found


def page() -> str:
    """Return the page."""
    by_scenario: dict[str, list[Claim]] = {title: [] for title in titles()}
    for claim in claims():
        by_scenario.setdefault(claim.scenario, []).append(claim)
    tested = sum(map(bool, by_scenario.values()))
    lines = [
        "# Scenarios of the specification and their tests",
        "",
        "Made by `.venv/bin/python docs/generators/spec_coverage.py` from markers in the tests and in the "
        "[executable specification](specification/index.md); a test keeps it fresh.",
        "",
        f"{tested} of {len(by_scenario)} scenarios are executed.",
        "",
        '<div class="scenarios" markdown>',
        "",
        "| requirement | scenario | rule | test | status |",
        "|---|---|---|---|---|",
    ]
    rules = rules_by_scenario()
    for title, found in by_scenario.items():
        requirement, _, scenario = title.partition(" / ")
        tests = "<br>".join(f"`{claim.file}::{claim.test}`" for claim in found)
        lines.append(f"| {requirement} | {scenario} | {rules[title]} | {tests} | {_status(title, found)} |")
    return "\n".join([*lines, "", "</div>"]) + "\n"


def _status(title: str, found: list[Claim]) -> str:
    if not found:
        return "open"
    return MODELLED if title in MODELLED_IN else "tested"


def _claims_of(file: Path) -> Iterator[Claim]:
    text = file.read_text()
    if "mark.scenario(" not in text and "@yields(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = file.relative_to(TESTS).as_posix()
            for scenario in _scenarios(node):
                yield Claim(scenario, name, node.name)


def _scenarios(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield the scenarios of a test: those of its markers, or those that its vectors name as their source."""
    calls = [call for decorator in node.decorator_list for call in ast.walk(decorator) if isinstance(call, ast.Call)]
    if any(isinstance(call.func, ast.Name) and call.func.id == "yields" for call in calls):
        calls += [call for line in node.body for call in ast.walk(line) if isinstance(call, ast.Call)]
    for call in calls:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name in {"scenario", "executes"} and isinstance(call.args[0], ast.Constant):
            yield ast.literal_eval(call.args[0])


if __name__ == "__main__":
    PAGE.write_text(page())
