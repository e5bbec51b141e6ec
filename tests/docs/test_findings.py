"""Findings for the authors of RFC-0160: each has a figure that something makes again, and a proposal.

What the commands of the page print is compared in ``test_code_blocks``; here are its form, and the figures that it
quotes from experiments.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "findings.md").read_text()
RECORD = json.loads((ROOT / "docs" / "experiments" / "results.json").read_text())

FINDINGS = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
QUOTING = [it for it in PAGE.split("\n\n") if "(experiments.md#" in it]


def quoted(paragraph: str) -> set[str]:
    """Return the figures of a paragraph: numbers of two digits and more, and shares."""
    plain = re.sub(r"\[E\d+\]\([^)]*\)", "", paragraph)
    return {it for it in re.findall(r"\d[\d,.]*\d%?|\d%", plain) if not re.fullmatch(r"20\d\d", it)}


def recorded(paragraph: str) -> str:
    """Return the answers of the experiments that a paragraph links."""
    linked = [RECORD[name] for name in re.findall(r"\[(E\d+)\]", paragraph)]
    return " ".join(str(it["full"].get("answer") or it["answer"]) for it in linked)


def test_findings_are_numbered_without_gaps() -> None:
    assert [int(it.split(".")[0]) for it in FINDINGS] == list(range(1, len(FINDINGS) + 1))


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda it: it.split("\n")[0])
def test_a_finding_has_a_figure_that_can_be_made_again_and_a_proposal(finding: str) -> None:
    assert "```" in finding or "(experiments.md#" in finding
    assert finding.count("**Proposed:**") == 1


@pytest.mark.parametrize("paragraph", QUOTING, ids=lambda it: it[:50])
def test_figures_quoted_from_experiments_are_on_record(paragraph: str) -> None:
    answers = recorded(paragraph)
    assert quoted(paragraph)
    assert {it for it in quoted(paragraph) if it not in answers} == set()


def test_a_figure_that_is_not_on_record_is_found() -> None:
    wrong = QUOTING[0].replace("%", "9%")
    assert [it for it in quoted(wrong) if it not in recorded(wrong)]
