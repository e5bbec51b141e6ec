"""What a check of proof sizes says on GitHub: annotations of the pull request, and the summary of the job.

Law: a text stays the text of one annotation and of one table cell, whatever characters a scenario's name has.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from relaycast.pov.gate import Moved, Verdict, moved
from relaycast.terminal import counted

SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file which a step's summary is appended to."""

WORKSPACE = "GITHUB_WORKSPACE"
"""The environment variable that names the folder which files of annotations are relative to."""

MOST_ANNOTATIONS = 10
"""Errors, or warnings, that one step prints: GitHub shows no more than ten of each."""

HEADINGS = {"grew": "What grew", "shrank": "What shrank"}

COLUMNS = ("scenario", "subscriber", "size", "kept", "measured", "change")

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$!@])")


class Level(Enum):
    """How an annotation is shown."""

    ERROR = "error"
    WARNING = "warning"


class GitHubNote(NamedTuple):
    """A note on a file of the pull request."""

    level: Level
    title: str
    text: str

    def command(self, file: str) -> str:
        """Return the line of output that makes the annotation."""
        properties = f"file={escaped_property(file)},title={escaped_property(self.title)}"
        return f"::{self.level.value} {properties}::{escaped(self.text)}"


class Findings(NamedTuple):
    """What a check found beside the sizes."""

    broken: Sequence[str]
    """Invariants that were violated."""

    oversize: Sequence[str]
    """A line for each scenario with blocks that do not fit."""

    allow_oversize: bool
    starved: Sequence[str] = ()
    """A line for each scenario with readers that did not receive what they subscribe to."""

    allow_starved: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether any of it fails the check."""
        unfit = (self.oversize and not self.allow_oversize) or (self.starved and not self.allow_starved)
        return bool(self.broken or unfit)


def escaped(text: str) -> str:
    """Return the text of a workflow command: its percent signs and ends of lines are escaped."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """Return the value of a workflow command's property: its colons and commas are escaped as well."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def annotation_lines(verdict: Verdict, findings: Findings, file: Path) -> Iterator[str]:
    """Yield an annotation for each subscriber that grew or shrank, and for whatever else the check found.

    GitHub shows ten of each level, so the tenth line counts the others where there are more.
    """
    found = list(_annotations(verdict, findings))
    name = _in_workspace(file)
    for level in Level:
        same = [it for it in found if it.level is level]
        if len(same) > MOST_ANNOTATIONS:
            more = f"{len(same) - MOST_ANNOTATIONS + 1} more are in the summary of the job"
            same = [*same[: MOST_ANNOTATIONS - 1], GitHubNote(level, "proof sizes", more)]
        yield from (it.command(name) for it in same)


def summary(verdict: Verdict, findings: Findings, names: Iterable[str], file: Path) -> str:
    """Return the summary of the job in Markdown: the verdict, a table of what grew, and one of what shrank."""
    failed = not verdict.ok or findings.has_failed
    parts = [
        f"### Proof sizes: {'failed' if failed else 'passed'}",
        f"{verdict.compared:,} sizes of {_cell(', '.join(names))} compared with {_cell(str(file))}: "
        f"{len(verdict.grown) or 'none'} grew beyond {100 * verdict.tolerance:g}%.",
        *_listed([f"violated: {line}" for line in findings.broken]),
        *_listed([*findings.oversize, *findings.starved]),
        *_listed([f"cannot be compared: {line}" for line in verdict.wrong]),
    ]
    groups = list(moved(verdict))
    for title, heading in HEADINGS.items():
        same = [it for it in groups if it.title == title]
        if same:
            parts += [f"#### {heading}", _table(same), *_causes(same)]
    parts += _listed(verdict.notes)
    return "\n\n".join(parts) + "\n\n"


def write_summary(text: str) -> None:
    """Append to the summary of the job; without one nothing happens. Raises ``OSError``."""
    name = os.environ.get(SUMMARY_FILE)
    if name:
        with Path(name).open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


def _annotations(verdict: Verdict, findings: Findings) -> Iterator[GitHubNote]:
    for line in findings.broken:
        yield GitHubNote(Level.ERROR, "an invariant was violated", line)
    for line in findings.oversize:
        level = Level.WARNING if findings.allow_oversize else Level.ERROR
        yield GitHubNote(level, "blocks do not fit", line)
    for line in findings.starved:
        level = Level.WARNING if findings.allow_starved else Level.ERROR
        yield GitHubNote(level, "readers starved", line)
    for line in verdict.wrong:
        yield GitHubNote(Level.ERROR, "cannot be compared", line)
    for it in moved(verdict):
        level = Level.ERROR if it.title == "grew" else Level.WARNING
        title = f"{it.scenario}, {it.who} {it.subscriber}: {counted(len(it.figures), 'size')} {it.title}"
        yield GitHubNote(level, title, "\n".join(it.lines))
    for line in verdict.notes:
        yield GitHubNote(Level.WARNING, "callbacks differ", line)


def _in_workspace(file: Path) -> str:
    """Return the file as annotations name it: relative to the workspace where it is in one."""
    workspace = os.environ.get(WORKSPACE)
    if workspace and file.resolve().is_relative_to(Path(workspace).resolve()):
        return file.resolve().relative_to(Path(workspace).resolve()).as_posix()
    return file.as_posix()


def _table(groups: Iterable[Moved]) -> str:
    rows = [
        (_cell(it.scenario), str(it.subscriber), _cell(it.figure), f"{it.kept:,}", f"{it.measured:,}", it.change)
        for group in groups
        for it in group.figures
    ]
    marks = ("---", "--:", "---", "--:", "--:", "--:")
    return "\n".join(f"| {' | '.join(row)} |" for row in (COLUMNS, marks, *rows))


def _causes(groups: Iterable[Moved]) -> Iterator[str]:
    for it in groups:
        if it.causes:
            where = f"{_cell(it.scenario)}, {it.who} {it.subscriber}"
            yield "\n".join([f"Causes, {where}:", "", "```text", *it.causes, "```"])


def _listed(lines: Iterable[str]) -> list[str]:
    items = [f"- {_cell(line)}" for line in lines]
    return ["\n".join(items)] if items else []


def _cell(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
