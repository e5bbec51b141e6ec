"""Compiled code on disk: whose it is, which sources and which CPU it is for, and what a process says that makes it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_process import ROOT, run

COMPILE_ONE = "from relaycast_trie.kernels.memory import leading_zeros; print(leading_zeros(1))"
COMPILE_TWO = f"{COMPILE_ONE}; from relaycast_trie.kernels.memory import lowest_bit; print(lowest_bit(1))"
AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to change an owner")
COMPILING = "relaycast: compiling the array engine for this CPU, once"


def copied_to(folder: Path) -> Path:
    """Return a folder with a package of kernels for which nothing is compiled."""
    source = ROOT / "trie" / "relaycast_trie"
    shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def compiles(place: Path, **environment: str) -> bool:
    """Return whether a process with the kernels from ``place`` has to compile the one that it calls."""
    said = run("-c", COMPILE_ONE, PYTHONPATH=str(place), **environment)
    assert "63" in said
    assert (COMPILING in said) == ("compiled" in said.splitlines()[-1])
    return COMPILING in said


def test_where_no_cache_folder_can_be_made_every_process_compiles(tmp_path: Path) -> None:
    """Neither the folder that is named, nor one beside the sources, nor the user's."""
    place, blocked = copied_to(tmp_path), tmp_path / "file"
    for file in (blocked, place / "relaycast_trie" / "kernels" / "__pycache__"):
        file.write_bytes(b"")
    below = str(blocked / "below")
    for _ in range(2):
        assert compiles(place, NUMBA_CACHE_DIR=below, XDG_CACHE_HOME=below, HOME=below)


@pytest.mark.slow
def test_where_the_named_folder_cannot_be_made_code_is_kept_beside_its_sources(tmp_path: Path) -> None:
    place, blocked = copied_to(tmp_path / "place"), tmp_path / "file"
    blocked.write_bytes(b"")
    assert [compiles(place, NUMBA_CACHE_DIR=str(blocked)) for _ in range(2)] == [True, False]
    assert list((place / "relaycast_trie" / "kernels" / "__pycache__").glob("memory.leading_zeros-*.nbc"))


@pytest.mark.slow
def test_a_folder_that_goes_away_costs_time_alone(tmp_path: Path) -> None:
    place, named = copied_to(tmp_path / "place"), tmp_path / "named"
    lose = f"import shutil; shutil.rmtree({str(named)!r}); open({str(named)!r}, 'w').close()"
    script = f"from relaycast_trie.kernels import memory; {lose}; print(memory.leading_zeros(1))"
    assert "63" in run("-c", script, PYTHONPATH=str(place), NUMBA_CACHE_DIR=str(named))


def test_compiled_code_serves_every_copy_of_the_same_kernels_in_folders_and_archives(tmp_path: Path) -> None:
    """A cluster unpacks them somewhere else for every application, or imports them from the archive."""
    first, second = copied_to(tmp_path / "first"), copied_to(tmp_path / "second")
    archive = Path(shutil.make_archive(str(tmp_path / "rooms"), "zip", second))
    shared = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    assert [compiles(place, **shared) for place in (first, second, archive)] == [True, False, False]


@pytest.mark.slow
def test_kernels_in_an_archive_are_kept_in_the_users_folder(tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "rooms"), "zip", copied_to(tmp_path / "place")))
    home = str(tmp_path / "home")
    assert [compiles(archive, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=home, HOME=home) for _ in range(2)] == [True, False]


@pytest.mark.slow
def test_compiled_code_is_not_taken_for_that_of_other_kernels(tmp_path: Path) -> None:
    """Wherever the difference lies: code of one kernel contains others."""
    first, second = copied_to(tmp_path / "first"), copied_to(tmp_path / "second")
    change(second)
    shared = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    assert [compiles(place, **shared) for place in (first, second, first)] == [True, True, False]
    beside = {"NUMBA_CACHE_DIR": ""}
    assert [compiles(first, **beside), compiles(first, **beside)] == [True, False]
    change(first)
    assert [compiles(first, **beside), compiles(first, **beside)] == [True, False]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        "flipped",
        *(
            pytest.param(it, marks=pytest.mark.slow)
            for it in ("truncated", "empty", "swapped", "deleted", "other bytes")
        ),
    ],
)
def test_damaged_code_is_compiled_anew(kept: Path, tmp_path: Path, kind: str, damage: str) -> None:
    shutil.copytree(kept, tmp_path / "kept")
    (file,) = (tmp_path / "kept").rglob(f"*kernels.memory.leading_zeros*.{kind}")
    data = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(data[: len(data) // 2])
        case "empty":
            file.write_bytes(b"")
        case "flipped":
            middle = len(data) // 2
            file.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        case "swapped":
            (other,) = (tmp_path / "kept").rglob(f"*kernels.memory.lowest_bit*.{kind}")
            file.write_bytes(other.read_bytes())
        case "deleted":
            file.unlink()
        case "other bytes":
            file.write_bytes(b"\x80\x05cos\nsystem\n" * 100)
    named = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    assert [compiles(ROOT / "trie", **named) for _ in range(2)] == [True, False]


UNTRUSTED = "relaycast: compiled code in {} is not used: {}\n"


def said_by(place: Path, folder: Path) -> str:
    return run("-c", COMPILE_ONE, PYTHONPATH=str(place), NUMBA_CACHE_DIR=str(folder))


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("harm", ["mode", pytest.param("owner", marks=AS_ROOT), "link"])
def test_code_that_others_may_have_written_is_compiled_anew(kept: Path, tmp_path: Path, kind: str, harm: str) -> None:
    shutil.copytree(kept, tmp_path / "kept")
    (file,) = (tmp_path / "kept").rglob(f"*kernels.memory.leading_zeros*.{kind}")
    match harm:
        case "mode":
            file.chmod(0o666)
            reason = "other users can write to it (mode 0666)"
        case "owner":
            os.chown(file, 65_534, -1)
            reason = f"it belongs to user 65534, this process runs as {os.geteuid()}"
        case "link":
            file.symlink_to(file.rename(tmp_path / "elsewhere"))
            reason = "it is a link"
    said = said_by(ROOT / "trie", tmp_path / "kept")
    assert said.count(UNTRUSTED.format(file, reason)) == said.count("is not used") == 1
    assert COMPILING in said
    again = said_by(ROOT / "trie", tmp_path / "kept")
    assert "is not used" not in again
    assert COMPILING not in again


@pytest.mark.parametrize("harm", ["mode", pytest.param("owner", marks=AS_ROOT)])
def test_a_folder_that_others_may_write_is_not_used(kept: Path, tmp_path: Path, harm: str) -> None:
    place = copied_to(tmp_path / "place")
    shutil.copytree(kept, tmp_path / "kept")
    (folder,) = (tmp_path / "kept").glob("kernels_*")
    if harm == "mode":
        folder.chmod(0o777)
        reason = "other users can write to it (mode 0777)"
    else:
        os.chown(folder, 65_534, -1)
        reason = f"it belongs to user 65534, this process runs as {os.geteuid()}"
    before = sorted(folder.iterdir())
    said = said_by(place, tmp_path / "kept")
    assert UNTRUSTED.format(folder, reason) in said
    assert COMPILING in said
    assert sorted(folder.iterdir()) == before


def test_kept_code_is_for_its_user_alone(kept: Path) -> None:
    files = [file for file in kept.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert [folder.stat().st_mode & 0o777 for folder in kept.iterdir()] == [0o700]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of two kernels."""
    folder = tmp_path_factory.mktemp("kept")
    run("-c", COMPILE_TWO, PYTHONPATH=str(ROOT / "trie"), NUMBA_CACHE_DIR=str(folder))
    return folder


def change(place: Path) -> None:
    """Make another kernel of one that has nothing to do with the one that is compiled."""
    with (place / "relaycast_trie" / "kernels" / "build.py").open("a") as stream:
        stream.write("# another kernel\n")


@pytest.mark.slow
def test_code_for_one_cpu_is_not_taken_for_another_one_that_shares_the_folder(tmp_path: Path) -> None:
    shared = {"NUMBA_CACHE_DIR": str(tmp_path)}
    other = {**shared, "NUMBA_CPU_NAME": "generic"}
    assert [compiles(ROOT / "trie", **cpu) for cpu in (shared, other, shared, other)] == [True, True, False, False]


@pytest.mark.slow
def test_processes_that_start_together_all_compute_and_leave_whole_code(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "trie"), "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", COMPILE_TWO], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in started] == ["63\n0\n"] * 4
    assert not compiles(ROOT / "trie", NUMBA_CACHE_DIR=str(tmp_path))
