"""Processes that need the same kernel: one compiles it, the others wait and take what it kept."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaycast_trie.kernels import turns
from relaycast_trie.kernels.turns import CompilerTurns
from rooms import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")

HOLDER = (
    "import sys; from pathlib import Path\n"
    "from relaycast_trie.kernels.turns import CompilerTurns\n"
    "turns = CompilerTurns(Path(sys.argv[1])); turns.take('one'); print('taken', flush=True); sys.stdin.readline()\n"
    "turns.give('one'); print('given', flush=True); sys.stdin.readline()\n"
)


@pytest.fixture
def other(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process, which has the turn of the kernel ``one`` until it reads a line."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "trie")},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process
        process.kill()


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_a_turn_is_waited_for_and_other_kernels_are_not(
    other: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = CompilerTurns(tmp_path)
    assert not mine.take("two")
    monkeypatch.setattr(turns.time, "sleep", lambda _seconds: answer(other))  # type: ignore[attr-defined]
    assert mine.take("one")
    assert not mine.take("one"), "it has the turn already"


def test_a_turn_ends_with_its_process(other: "subprocess.Popen[str]", tmp_path: Path) -> None:
    other.kill()
    other.wait()
    assert not CompilerTurns(tmp_path).take("one")


def test_a_process_that_never_gives_its_turn_up_is_not_waited_for_for_ever(
    other: "subprocess.Popen[str]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LONGEST_WAIT_SECONDS", 0.0)
    assert CompilerTurns(tmp_path).take("one")
    assert other.poll() is None


def test_where_nothing_can_be_written_nobody_waits(tmp_path: Path) -> None:
    nowhere = CompilerTurns(tmp_path / "not there")
    assert not nowhere.take("one")
    nowhere.give("one")


@pytest.mark.slow
def test_processes_that_start_together_compile_each_kernel_once(tmp_path: Path) -> None:
    """A small kernel and those that it contains, by four processes."""
    script = (
        "from relaycast_trie.kernels.announce import ANNOUNCER\n"
        "from relaycast_trie.array.columns import rows_of, column_of_list, ascending\n"
        "ascending(*column_of_list([b'b', b'a']))\n"
        "print(ANNOUNCER.compiled); ANNOUNCER.compiled = 0"
    )
    environment = {"PYTHONPATH": str(ROOT / "trie"), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        for _ in range(4)
    ]
    compiled = [int(process.communicate()[0]) for process in started]
    alone = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(alone.stdout) == 0
    folder = tmp_path / "again"
    folder.mkdir()
    environment["NUMBA_CACHE_DIR"] = str(folder)
    first = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert sum(compiled) == int(first.stdout)
