"""Where commands write: missing folders, full disks, too few file handles, two writers of a file."""

import re
from pathlib import Path

import pytest

from command_line import Command, Refused, Written
from relaycast.out_file import written
from relaycast.refusal import BadInput
from relaycast_ledger.exceptions import WorkFolderInUse
from small_disks import FULL, full_disk, handles

PROOF = '{"nodes": ["0x42010402"]}'

SMALL = """
blocks = 3
parachains = [{ id = 2000, publish = { keys = 2 } }, { id = 3000, subscribe = [{ publisher = 2000 }] }]
"""

VERBS = {
    "run": "run oracle --blocks 3 --out {}",
    "compare": "compare oracle --blocks 3 --policy cache=none --out {}",
    "budget": "budget small.toml --out {}",
    "bench": "bench E8 --quick --out {}",
    "bench engine": "bench engine --sizes 10 --values 1 --backends plain --json {}/engine.json",
    "pov snapshot": "pov snapshot small.toml --out {}/kept.toml",
    "proof show": "proof show proof.json --html {}/proof.html",
}
"""A command line of every verb that writes to a place of the user's, without Spark."""


def command_of(verb: str, place: str) -> list[str]:
    Path("proof.json").write_text(PROOF)
    Path("small.toml").write_text(SMALL)
    return VERBS[verb].format(place).split()


@pytest.mark.usefixtures("timed_once", "searched_once")
@pytest.mark.parametrize("verb", VERBS)
def test_missing_folders_are_made(verb: str, relaycast: Command, tmp_path: Path) -> None:
    ended = relaycast(*command_of(verb, "not/there/yet"))
    assert ended.code == 0
    assert any(path.is_file() and path.stat().st_size for path in (tmp_path / "not" / "there" / "yet").rglob("*"))
    assert not any(path.name.endswith(".part") for path in tmp_path.rglob("*"))


@pytest.mark.usefixtures("searched_once")
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_told_in_one_line_and_nothing_is_left(verb: str, relaycast: Command, tmp_path: Path) -> None:
    command = command_of(verb, "disk/room/deep")
    with full_disk(tmp_path / "disk") as disk:
        ended = relaycast(*command)
        assert list(disk.iterdir()) == []
    assert ended.code == 2
    assert FULL_DISK.fullmatch(ended.err.splitlines(keepends=True)[-1])


FULL_DISK = re.compile(
    rf"relaycast: --(out|json|html) disk/room/deep\S*: got ({'|'.join(FULL)}), expected a (file|folder) .*\n"
)


@pytest.mark.parametrize("free", range(1, 9))
def test_too_few_file_handles_are_told_in_one_line_and_nothing_is_left(
    free: int, relaycast: Command, tmp_path: Path
) -> None:
    """From one handle to enough for a run: it is completed, or there is nothing of it."""
    assert relaycast("run", "oracle", "--blocks", "3", "--out", "warm").code == 0
    with handles(free) as limit:
        ended = relaycast("run", "oracle", "--blocks", "3", "--out", "out")
    if ended.code:
        assert ended.code == 2
        line = f"file handles: got a limit of {limit:,}, all in use, expected a higher one (ulimit -n)"
        assert ended.err == f"relaycast: {line}\n"
        assert not (tmp_path / "out").exists()
    else:
        assert free > 4, "four tables are open at a time"


@pytest.mark.parametrize("verb", ["run", "pov snapshot", "proof show", "bench"])
@pytest.mark.parametrize("place", ["file/below", "file"])
def test_a_file_where_a_folder_is_wanted_is_refused(
    verb: str, place: str, file: Written, refused: Refused, relaycast: Command
) -> None:
    file("a file", "file")
    command = command_of(verb, place)
    line = refused(*command)
    assert re.search(r"got not a directory, expected a (file|folder)", line)


def test_a_new_scenario_on_a_full_disk_leaves_no_file(
    relaycast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with full_disk(tmp_path / "disk") as disk:
        monkeypatch.chdir(disk)
        ended = relaycast("new", "weather")
        assert list(disk.iterdir()) == []
        monkeypatch.chdir(tmp_path)
    assert ended.code == 2
    assert "new weather.toml: got " in ended.err


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    place = tmp_path / "table.parquet"
    place.write_bytes(b"before")
    with written(place, "--out") as stream:
        stream.write(b"first")
        refused = pytest.raises(WorkFolderInUse, match=r"table\.parquet: got another process that writes there")
        with refused, written(place, "--out"):
            pass
        assert place.read_bytes() == b"before"
    assert place.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]


def test_a_file_that_fails_half_way_is_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "table.parquet"

    def half() -> None:
        with written(place, "--out") as stream:
            stream.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadInput, match=r"--out .*: got is a directory, expected a file"), written(tmp_path, "--out"):
        pass
