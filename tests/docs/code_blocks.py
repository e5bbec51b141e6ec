"""The code blocks of the README and of every page, and what makes each of them true.

On a page all blocks run in their order, in one empty folder:

- ``python`` is executed; the blocks of a page share their names.
- ``console`` has command lines after ``$``, and below each what it prints (nothing shown: its exit code alone counts).
  ``...`` stands for anything in a line, alone on a line for any number of lines. A comment ``# exit code 1`` says
  how it ends, where that is not 0. ``relaycast``, ``pytest`` and ``python`` are commands.
- ``toml`` is a scenario or a sweep, and is checked as one.
- a block of any language with ``title="NAME"`` is written into the folder first, under that name.

A comment on the line above a block changes that: ``<!-- slow -->`` leaves it to the slow suite, ``<!-- help only:
REASON -->`` asks no more than that the commands exist, ``<!-- printed by: COMMAND -->`` compares a text with the
beginning of what a command prints, ``<!-- not run: REASON -->`` leaves it alone. Other languages need such a comment.
A page that says ``<!-- in a copy of: FOLDER -->`` finds the files of that folder of the sources.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from cyclopts import CycloptsError, MissingArgumentError

from relaycast.cli.command import build_app, execute
from relaycast.scenario.files import load_scenario
from relaycast.simulation.sweep import load_sweep

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
NOTE = re.compile(r"<!-- (?P<kind>slow|help only|printed by|not run)(?:: (?P<said>(?:(?!-->).)+?))? -->\n\Z", re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
OURS = re.compile(r"(?:^|[|&] )(?:\./)?relaycast ([^|&>]+)")
"""What stands behind the name of the program, at the beginning or in a pipe, up to the next program."""

EXIT_CODE = re.compile(r"# exit code (\d+)$")
VERB = re.compile(r"^(?:\./)?relaycast ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*(?=\s|$))?)")

MOST_MISSING = 8
"""Values that a command line in a sentence may leave out."""

SECONDS = 300
"""The longest that one command of a page may take."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a ``page``, at ``line``; ``note`` is the kind of comment above it, ``said`` its reason."""

    page: str
    line: int
    language: str
    title: str
    text: str
    note: str
    said: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in their order."""
    content = page.read_text()
    found = []
    for fence in FENCE.finditer(content):
        note = NOTE.search(content[: fence.start()])
        title = re.search(r'title="([^"]+)"', fence["info"])
        indent = len(fence["indent"])
        found.append(
            Block(
                page=str(page.relative_to(ROOT)),
                line=content.count("\n", 0, fence.start()) + 1,
                language=fence["language"],
                title=title[1] if title else "",
                text="".join(line[indent:] or "\n" for line in fence["text"].splitlines(keepends=True)),
                note=note["kind"] if note else "",
                said=(note["said"] or "") if note else "",
            )
        )
    return found


def what_is_wrong_with(block: Block) -> str:
    """Return why nothing could ever check this block, or nothing."""
    if block.note in {"not run", "help only", "printed by"} and not block.said:
        return f"“{block.note}” needs a reason"
    if block.language in {"python", "console", "toml"} or block.title or block.note in {"not run", "printed by"}:
        return ""
    return f"a block in “{block.language or 'no language'}” says why nothing runs it: <!-- not run: REASON -->"


class Reader:
    """Somebody who reads a page with care, in an empty ``folder``, and tries everything that it says."""

    def __init__(self, folder: Path, printed: Callable[[], str]) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        self._printed = printed

    def read(self, blocks: list[Block], *, slow: bool) -> None:
        """Try every block; those for the slow suite only when it is that."""
        for block in blocks:
            if block.title:
                file = self.folder / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
        for block in blocks:
            if block.note != "not run" and (slow or block.note != "slow"):
                self._try(block)

    def _try(self, block: Block) -> None:
        match block.language:
            case _ if block.note == "help only":
                for command, _ in commands_of(block.text):
                    self._has_help(command, block.place)
            case _ if block.note == "printed by":
                self._compare(self._run(block.said, 0, block.place), block.text, block.place, begins=True)
            case "python" if not block.title:
                exec(compile("\n" * block.line + block.text, str(ROOT / block.page), "exec"), self.names)
                self._printed()
            case "console":
                for command, shown in commands_of(block.text):
                    code = EXIT_CODE.search(command)
                    printed = self._run(command, int(code[1]) if code else 0, block.place)
                    if shown:
                        self._compare(printed, shown, block.place)
            case "toml":
                self._check_toml(block)

    def _check_toml(self, block: Block) -> None:
        file = self.folder / (block.title or f"{block.line}.toml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)
        is_sweep = "scenarios" in tomllib.loads(block.text)
        assert load_sweep(str(file)) if is_sweep else load_scenario(str(file))

    def _has_help(self, command: str, place: str) -> None:
        verb = VERB.match(command)
        assert verb, f"{place}: no verb of relaycast in “{command}”"
        assert execute([*verb[1].split(), "--help"]) == 0, f"{place}: {command}"
        assert f"relaycast {verb[1]}" in self._printed(), f"{place}: {command}"

    def _run(self, command: str, expected: int, place: str) -> str:
        """Run one command line and return what it printed to standard output."""
        program, *arguments = shlex.split(command, comments=True)
        if program in {"relaycast", "./relaycast"}:
            self._printed()
            with patch.dict(os.environ, COLUMNS="1000"):  # sentences of pages stay in one line
                code: int = execute(arguments)
            printed = self._printed()
        elif program in {"pytest", "python"}:
            line = [
                sys.executable,
                *(["-m", "pytest", "-p", "no:cacheprovider"] if program == "pytest" else []),
                *arguments,
            ]
            ended = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=self.folder)
            code, printed = ended.returncode, ended.stdout
        else:
            pytest.fail(f"{place}: “{program}” is no command that a page can run: <!-- not run: REASON -->")
        assert code == expected, f"{place}: “{command}” ended with {code}\n{printed}"
        return printed

    def _compare(self, printed: str, shown: str, place: str, *, begins: bool = False) -> None:
        printed = "\n".join(line.rstrip() for line in printed.splitlines())
        pattern = pattern_of(shown.rstrip("\n"))
        fits = re.match(pattern, printed) if begins else re.fullmatch(pattern, printed.rstrip("\n"))
        assert fits, f"{place} shows\n{shown}\nbut what is printed is\n{printed}"


def mentioned_in(page: Path) -> Iterator[str]:
    """Yield every command line of ours on a page, whether anything runs it or not, in blocks and in sentences."""
    for block in blocks_of(page):
        if block.language == "console":
            for command, _ in commands_of(block.text):
                yield from OURS.findall(command)
    for code in CODE.findall(FENCE.sub("", page.read_text())):
        yield from OURS.findall(" ".join(code.split()))


def slip_in(command: str) -> str:
    """Return what is wrong with the verb and the options of a command line that may leave out values, or nothing."""
    tokens = ["1" if token == "N" else token for token in shlex.split(command, comments=True)]
    app = build_app()
    for _ in range(MOST_MISSING if tokens[0] != "VERB" else 0):
        try:
            app.parse_args(tokens, exit_on_error=False, print_error=False)
        except MissingArgumentError as error:
            name = "" if error.argument is None or error.keyword else error.argument.name
            tokens += [name, "1"] if name.startswith("--") else ["1"]
        except CycloptsError as error:
            return f"relaycast {command}: {error}"
        else:
            break
    return ""


def example_of(page: Path) -> Path | None:
    """Return the folder of the sources that a page works in a copy of, if it names one."""
    named = re.search(r"<!-- in a copy of: (\S+) -->", page.read_text())
    return None if named is None else ROOT / named[1]


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the command lines of a console block, each with what it is shown to print."""
    command, shown = "", ""
    for line in text.splitlines():
        if command.endswith("\\"):
            command = command[:-1] + line
        elif line.startswith("$ "):
            if command:
                yield command, shown.strip("\n")
            command, shown = line[2:], ""
        else:
            assert command, f"a console block begins with a command line, not with {line!r}"
            shown += f"{line}\n"
    yield command, shown.strip("\n")


def pattern_of(shown: str) -> str:
    """Return a pattern for ``shown``, in which ``...`` stands for anything."""
    lines = [
        r"[\s\S]*?" if line == "..." else re.escape(line).replace(r"\.\.\.", r"[^\n]*") + r"\n"
        for line in shown.splitlines()
    ]
    return "".join(lines).removesuffix(r"\n") + (r"\n?" if shown.endswith("...") else "")
