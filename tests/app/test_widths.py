"""What verbs print fits the terminal: 80 columns, and 60 where a terminal has 60. Numbers and names stay whole."""

import pytest

from command_line import Command, Written
from relaycast.terminal import console, print_table

SCENARIO = """
blocks = 12
[[parachains]]
id = 2000
publish = { keys = 60, value_bytes = [16, 90] }
[[parachains]]
id = 2001
publish = { keys = 5 }
[[parachains]]
id = 3000
name = "a-reader-with-a-rather-long-name"
subscribe = [{ publisher = 2000 }, { publisher = 2001 }]
"""

VERBS = (
    ("run", "wide.toml", "--verbose"),
    ("run", "wide.toml", "--policy", "budget=remaining:1KiB"),
    ("demo", "griefed-publisher", "--blocks", "6"),
    ("compare", "wide.toml", "--policy", "cache=none"),
    ("budget", "wide.toml"),
    ("predict", "--keys", "5000", "--subscribed", "500", "--value", "16", "--updated", "77"),
    ("list",),
    ("doctor",),
    ("attack", "spam", "--blocks", "1", "--parachains", "1"),
    ("attack", "omit", "--blocks", "10"),
    ("attack", "callbacks", "--blocks", "10"),
    ("attack", "price", "--blocks", "4"),
    ("sweep", "sweep.toml"),
    ("pov", "snapshot", "wide.toml"),
    ("trie", "show", "pairs.json"),
    ("proof", "show", "proof.json"),
    ("bench",),
    ("bench", "E1", "--quick"),
)


@pytest.mark.parametrize("columns", ["", "80", "60"])
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_what_a_verb_prints_fits_the_terminal(
    relaycast: Command, file: Written, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: str
) -> None:
    file(SCENARIO, "wide.toml")
    file('scenarios = ["wide.toml"]\nblocks = 4\n', "sweep.toml")
    file('[["0x01", "0x02"], ["0x03", "0x04"]]', "pairs.json")
    file(relaycast("proof", "make", "pairs.json", "--key", "0x01").out, "proof.json")
    monkeypatch.delenv("COLUMNS")
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    ended = relaycast(*words)
    assert ended.code in {0, 1}, ended.err
    wide = [line for line in ended.out.splitlines() if len(line) > int(columns or 80)]
    assert [line for line in wide if len(line.split()) > 1 and not _names_a_file(line)] == []


def _names_a_file(line: str) -> bool:
    """Return whether a line says where a file is; a path stays whole, to be copied, as a hash does."""
    return line.partition(": ")[0] in {"report", "table"}


ROW = ("3000 a-reader", "1,234,567", "10,485,760", "98,765", "12,345,678", "1,048,576", "99.99%")


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_a_table_that_does_not_fit_becomes_a_block_a_row_with_whole_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns = ("reader", "keys", "proof\np50", "\np99", "\nmax", "own", "of PoV")
    print_table(console(), columns, [ROW, ROW], right=columns[1:])
    printed = capsys.readouterr().out
    assert all(len(line) <= width for line in printed.splitlines())
    assert all(printed.count(cell) == 2 for cell in ROW)
    assert ("proof p99 98,765" in printed) == (width < 71)


def test_a_text_in_a_table_is_wrapped_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_table(
        console(), ("name", "blocks", "text"), [("oracle", "60", "every word stays whole " * 9)], right=("blocks",)
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 4
    assert all(len(line) <= 60 for line in lines)
    assert "".join(lines).count("oracle") == 1
    words = {word for line in lines[1:] for word in line.split()}
    assert words == {"oracle", "60", "every", "word", "stays", "whole"}
