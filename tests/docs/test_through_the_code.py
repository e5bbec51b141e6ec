"""The page that follows one value through the code: a trace of its own example passes what the page names, in order.

Every other file that the trace enters is in one of the places that the page lists as below its line.
"""

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from docs.code_blocks import ROOT

PAGE = (ROOT / "docs" / "concepts" / "through-the-code.md").read_text()
SECTIONS = PAGE.split("\n## ")
BELOW = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
"""Files, and folders with a slash at their end."""

Call = tuple[str, str]
"""A file and a function in it."""


def steps(section: str) -> list[tuple[int, Call]]:
    """Return the rows of a section, by their numbers."""
    rows = re.findall(r"^\| (\d+) \| `([^`]+)`, `(\w+)` \|", section, re.MULTILINE)
    return [(int(number), (file, function)) for number, file, function in rows]


@pytest.fixture(scope="module")
def calls() -> list[list[Call]]:
    """Return what the example of each section calls in the rooms below the front door, in order."""
    found: list[list[Call]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(ROOT):
            name = str(file.relative_to(ROOT))
            if not name.startswith((".venv", "app/", "tests/")):
                found[-1].append((name, frame.f_code.co_name))

    made: dict[str, object] = {}
    for section in SECTIONS:
        found.append([])
        for example in re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
            code = compile(example, "the page", "exec")
            sys.setprofile(note)
            try:
                exec(code, made)
            finally:
                sys.setprofile(None)
    found[0] = []  # the imports
    return found


def test_the_steps_are_numbered() -> None:
    numbers = [number for number, _ in steps(PAGE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 30


def test_the_value_passes_the_steps_of_each_section_in_their_order(calls: list[list[Call]]) -> None:
    """Whoever listens does so while the chains step: those steps are looked for in the section before, too."""
    for index, section in enumerate(SECTIONS):
        made = calls[index] if section.startswith("Block ") else calls[index - 1] + calls[index]
        at = 0
        for number, step in steps(section):
            assert step in made[at:], f"step {number}: {step} is not called after the step before it"
            at = made.index(step, at)


def test_every_file_that_the_page_leaves_out_is_below_its_line(calls: list[list[Call]]) -> None:
    entered = {file for made in calls for file, _ in made} - {file for _, (file, _) in steps(PAGE)}
    assert not {file for file in entered if not file.startswith(tuple(BELOW))}


def test_what_is_below_the_line_is_entered_and_is_no_step(calls: list[list[Call]]) -> None:
    entered = {file for made in calls for file, _ in made}
    assert not [place for place in BELOW if not any(file.startswith(place) for file in entered)]
    assert not [file for _, (file, _) in steps(PAGE) if file.startswith(tuple(BELOW))]
