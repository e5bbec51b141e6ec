"""What the README and the pages show is what happens."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from docs.code_blocks import (
    PAGES,
    ROOT,
    Block,
    Reader,
    blocks_of,
    commands_of,
    example_of,
    mentioned_in,
    pattern_of,
    slip_in,
    what_is_wrong_with,
)

WITH_BLOCKS = [page for page in PAGES if blocks_of(page)]
SLOW = [page for page in WITH_BLOCKS if any(block.note == "slow" for block in blocks_of(page))]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reader:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # readers have activated the environment
    return Reader(tmp_path, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=named)
def test_every_block_can_be_checked_or_says_why_not(page: Path) -> None:
    wrong = [f"{block.place}: {said}" for block in blocks_of(page) if (said := what_is_wrong_with(block))]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_line_of_a_page_has_a_verb_and_options_that_exist(page: Path) -> None:
    assert not [slip for command in mentioned_in(page) if (slip := slip_in(command))]


@pytest.mark.parametrize("wrong", ["predicted", "compare oracle --blokcs 3", "history --folow", "run --workers many"])
def test_a_command_line_that_does_not_exist_is_found(wrong: str) -> None:
    assert slip_in(wrong)


def test_the_command_lines_of_a_page_are_found_in_blocks_and_in_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docs.code_blocks.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "`relaycast run\noracle` and `demo`.\n<!-- not run: no -->\n```console\n$ ./relaycast demo > a\n"
        "$ echo 1 | relaycast proof show - | jq\n$ python -m relaycast\n```\n"
    )
    assert [it.strip() for it in mentioned_in(page)] == ["demo", "proof show -", "run oracle"]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=named)
def test_what_a_page_shows_is_what_happens(page: Path, reader: Reader) -> None:
    example = example_of(page)
    if example is not None:
        shutil.copytree(example, reader.folder, dirs_exist_ok=True)
    reader.read(blocks_of(page), slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=named)
def test_what_a_page_shows_is_what_happens_slowly(page: Path, reader: Reader) -> None:
    reader.read(blocks_of(page), slow=True)


def block(text: str, *, language: str = "console", note: str = "", said: str = "", title: str = "") -> Block:
    return Block("page.md", 1, language, title, text, note, said)


@pytest.mark.parametrize(
    "wrong",
    [
        block("$ relaycast demo --nothing-like-it\n"),  # an option that is not there
        block("$ relaycast xcm encode --publish 0x00=0x01\n"),  # a key that has not 32 bytes
        block("$ relaycast --version\nrelaycast 99.9\n"),  # another output
        block("$ relaycast --version  # exit code 1\n"),  # another exit code
        block("$ relaycast predicted\n", note="help only", said="no such verb"),
        block("$ curl example.org\n"),  # nothing that a page can run
        block("assert 1 + 1 == 3\n", language="python"),
        block("relaycast 99\n", language="text", note="printed by", said="relaycast --version"),
    ],
)
def test_a_block_that_is_not_true_is_found(wrong: Block, reader: Reader) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        reader.read([wrong], slow=False)


def test_a_scenario_that_is_none_is_found(reader: Reader) -> None:
    with pytest.raises(Exception, match="blokcs"):
        reader.read([block('extends = "polkadot-2026"\nblokcs = 3\n', language="toml")], slow=False)


@pytest.mark.parametrize(
    "silent",
    [
        block("anything", language="text"),
        block("anything", language=""),
        block("anything", language="bash"),
        block("$ relaycast demo", note="not run"),
    ],
)
def test_a_block_that_nothing_checks_needs_a_reason(silent: Block) -> None:
    assert what_is_wrong_with(silent)


def test_what_is_for_the_slow_suite_waits_for_it(reader: Reader) -> None:
    wrong = block("assert False\n", language="python", note="slow")
    reader.read([wrong], slow=False)
    with pytest.raises(AssertionError):
        reader.read([wrong], slow=True)


def test_files_are_there_before_anything_runs_and_names_are_kept(reader: Reader) -> None:
    reader.read(
        [
            block("from pathlib import Path\ntext = Path('later.txt').read_text()\n", language="python"),
            block("said\n", language="text", title="later.txt"),
            block("assert text == 'said\\n'\n", language="python"),
        ],
        slow=False,
    )


def test_a_block_is_found_with_what_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.code_blocks.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n<!-- slow -->\n```python\n1\n```\n\n<!-- not run: needs a\ncluster -->\n```console\n$ a\n```\n\n"
        '1. item\n\n    ```toml title="x.toml"\n    a = 1\n\n    b = 2\n    ```\n'
    )
    slow, first, second = blocks_of(page)
    assert slow.note == "slow"
    assert (first.language, first.note, first.said, first.line) == ("console", "not run", "needs a\ncluster", 10)
    assert (second.language, second.title, second.text) == ("toml", "x.toml", "a = 1\n\nb = 2\n")


def test_commands_go_on_over_lines() -> None:
    assert list(commands_of("$ a \\\n  b\nc\nd\n$ e\n")) == [("a   b", "c\nd"), ("e", "")]


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nd", True),
        ("a\n...", "a\nb\nc", True),
        ("...\nc", "a\nb\nc", True),
        ("2 passed in ...s", "2 passed in 0.01s", True),
        ("a ... c", "a\nc", False),
        ("a.c", "abc", False),
    ],
)
def test_dots_stand_for_anything(shown: str, printed: str, fits: bool) -> None:
    assert bool(re.fullmatch(pattern_of(shown), printed)) is fits
