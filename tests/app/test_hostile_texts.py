"""Names from strangers: none of them moves a cursor, sets a title, or ends a command with a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from command_line import Command, Refused, Written
from relaycast.refusal import BadInput, plain
from relaycast.terminal import console, print_table

TITLE = "\x1b]0;owned\x07"
"""What gives a terminal another title."""


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", 'extends = "oracle"\nname = "a\\u001b]0;owned\\u0007"', "at name: got the character '\\x1b' in"),
        ("a.toml", 'extends = "oracle"\nname = "a\\u202eb"', "at name: got the character '\\u202e' in"),
        ("a.toml", 'extends = "oracle"\n"\\u0000" = 1', "a.toml: got the character '\\x00' in '\\x00'"),
        ("a.toml", 'extends = "a\\u0000b"', "at extends: got the character '\\x00' in 'a\\x00b'"),
        ("a.toml", 'extends = "oracle"\npublications = "a\\u0000b.csv"', "at publications: got the character"),
        ("a.json", '{"extends": "oracle", "name": "a\\ud800b"}', "at name: got the character '\\ud800' in"),
        ("a.json", '{"extends": "oracle", "a\\udfff": 1}', "a.json: got the character '\\udfff' in"),
        ("a.yaml", 'extends: oracle\nparachains: [{id: 2000, name: "\\e[2J"}]', "at parachains[0].name: got the char"),
    ],
)
def test_a_text_that_does_not_print_is_refused(
    refused: Refused, file: Written, name: str, text: str, said: str
) -> None:
    line = refused("run", file(text, name))
    assert said in line
    assert line.endswith("expected text that prints")
    assert line.isprintable()


def test_a_description_may_have_lines(relaycast: Command, file: Written) -> None:
    assert not relaycast("run", file('extends = "oracle"\nblocks = 2\ndescription = "one\\n\\ttwo"', "a.toml")).code


@pytest.mark.parametrize("name", [f"a{TITLE}.json", "a\nb.json", "a\u202eb.json"])
def test_a_file_name_is_shown_as_text(refused: Refused, file: Written, name: str) -> None:
    line = refused("trie", "root", "--state-version", "0", file("{}", name))
    assert line.isprintable()
    assert "expected a list of" in line


def test_a_file_name_that_is_no_unicode_is_shown(tmp_path: Path) -> None:
    """Python reads such a name as lone surrogates, which no strict encoding can write."""
    command: list[str | bytes] = [sys.executable, "-m", "relaycast", "run", b"\xff\xfe.toml"]
    ended = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(rb"relaycast: \udcff\udcfe.toml: got no such file or directory")


def test_a_refusal_prints_whatever_it_is_about() -> None:
    refusal = BadInput(f"place{TITLE}", "half \ud800", "\x00", "\u2066")
    assert str(refusal) == r"place\x1b]0;owned\x07: got half \ud800, expected \x00 (\u2066)"
    assert plain("one\ntwo") == "one\ntwo"


def test_a_console_shows_names_and_obeys_its_own_styles(capsys: pytest.CaptureFixture[str]) -> None:
    out = console()
    out.print(f"name {TITLE}", "\ud800", markup=False)
    out.print(Text("a text of ours"))
    print_table(out, ["name"], [[f"cell {TITLE}"]], title=f"title {TITLE}")
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert printed.count(r"\x1b]0;owned\x07") == 3
    assert r"\ud800" in printed


@pytest.mark.parametrize("arguments", [["schema"], ["new", "--help"], ["--help"], ["run", "missing", "--help"]])
def test_a_reader_that_goes_away_ends_a_command_as_it_ends_other_tools(arguments: list[str]) -> None:
    """``relaycast ... | head -1``: the exit code of a broken pipe, and no word."""
    command = [sys.executable, "-c", PIPE_IS_CLOSED, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
    assert process.returncode == 141


PIPE_IS_CLOSED = """
import select, sys
from relaycast.__main__ import main
poll = select.poll()
poll.register(1, 0)
poll.poll()
sys.argv[0] = "relaycast"
main()
"""
"""Waits until nobody reads what this process says, then runs its command line."""
