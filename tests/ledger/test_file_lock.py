"""The lock of a folder: one holder at a time, however often the folder is removed and made again."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from relaycast_ledger.staged_file import LOCK, alone_in, staged, sync
from synced_places import synced_places

HOLD_AGAIN_AND_AGAIN = """
import os, sys
from pathlib import Path
from relaycast_ledger.exceptions import WorkFolderInUse
from relaycast_ledger.staged_file import alone_in

folder, held = Path(sys.argv[1]), 0
while held < 60:
    try:
        with alone_in(folder, works_on=folder):
            os.close(os.open(folder / "mine", os.O_CREAT | os.O_EXCL))
            (folder / "mine").unlink()
            held += 1
    except WorkFolderInUse:
        continue
"""
"""Fails where another process holds the lock, too."""


def test_processes_that_make_and_remove_one_folder_hold_its_lock_in_turn(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HOLD_AGAIN_AND_AGAIN, str(tmp_path / "a")]
    holders = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    assert [holder.communicate()[1] for holder in holders] == [b"", b"", b""]
    assert [holder.returncode for holder in holders] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_folders_that_were_there_stay(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    with alone_in(tmp_path / "a" / "b", works_on=tmp_path):
        assert (tmp_path / "a" / "b" / LOCK).read_text() == str(os.getpid())
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_a_lock_that_is_a_link_is_refused_and_what_it_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / LOCK).symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"), alone_in(tmp_path / "a", works_on=tmp_path):
        pass
    assert (tmp_path / "other").read_text() == "other"


def test_a_lock_is_for_its_user_alone_and_a_staged_file_is_as_others_are(tmp_path: Path) -> None:
    with alone_in(tmp_path / "a", works_on=tmp_path):
        assert (tmp_path / "a" / LOCK).stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").touch()
    with staged(tmp_path / "file") as stream:
        stream.write(b"content")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_where_a_file_system_has_no_locks_work_goes_on_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with alone_in(tmp_path / "a", works_on=tmp_path), staged(tmp_path / "file") as stream:
        stream.write(b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_staged_file_has_its_name_on_disk_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = synced_places(monkeypatch)
    with staged(tmp_path / "file") as stream:
        stream.write(b"content")
    assert synced == [str(tmp_path / ".file.part"), str(tmp_path)]


def test_what_cannot_be_synced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error") as caught:
        sync(tmp_path)
    assert caught.value.filename == str(tmp_path)
