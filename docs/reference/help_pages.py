"""The help of every verb, as the page of commands shows it: a hook of mkdocs that asks the command itself."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

from mkdocs.structure.pages import Page

from relaycast.cli.command import execute
from relaycast.cli.verbs import VERBS

LISTED = re.compile(r"^│ ([a-z][a-z-]*)  +", re.MULTILINE)
COLUMNS = "94"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Append the help of all verbs to the page of commands."""
    if page.file.src_uri != "reference/commands.md":
        return markdown
    with patch.dict("os.environ", {"COLUMNS": COLUMNS, "NO_COLOR": "1"}):
        return "\n".join([markdown, *(part for verb in sorted(VERBS) for part in _sections(verb))])


def _sections(verb: str) -> Iterator[str]:
    shown = help_of(verb)
    yield f"\n## {verb}\n\n```text\n{shown}\n```\n"
    commands = shown.partition("─ Commands ─")[2].partition("╰")[0]
    for name in LISTED.findall(commands):
        yield f"\n### {verb} {name}\n\n```text\n{help_of(verb, name)}\n```\n"


def help_of(*command: str) -> str:
    """Return what ``--help`` prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = execute([*command, "--help"])
    assert code == 0, f"relaycast {' '.join(command)} --help ended with {code}"
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
