"""The engineering notes are short, and each figure that they name is on record with its command and CPU."""

import json
import re

from rooms import ROOT

NOTES = (ROOT / "docs" / "engineering-notes.md").read_text()
FIGURES = json.loads((ROOT / "docs" / "engineering-figures.json").read_text())
MOST_LINES = 120


def test_the_notes_are_read_in_one_sitting() -> None:
    assert len(NOTES.splitlines()) <= MOST_LINES


def test_a_figure_says_how_and_where_it_was_measured() -> None:
    names = [it["name"] for it in FIGURES]
    assert len(names) == len(set(names))
    for it in FIGURES:
        assert set(it) == {"name", "command", "cpu", "conditions", "figures"}
        assert all(it[part] for part in it)


def test_figures_that_the_notes_name_are_on_record() -> None:
    paragraphs = [" ".join(it.split()) for it in re.split(r"\n(?=- |\n)", NOTES)]
    ends = [re.search(r"[.,] ?((?:`[a-z-]+`(?:, )?)+)$", it) for it in paragraphs]
    named = {name for end in ends if end for name in re.findall(r"`([a-z-]+)`", end[1])}
    assert len(named) > 10
    assert named <= {it["name"] for it in FIGURES}
