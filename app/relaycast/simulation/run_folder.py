"""``out/<run-id>/``: the files of a run, all of them or none.

Law: files are written next to their place and moved there together, once they are on disk. A run that stops half way
leaves the folder as it was, and the same run replaces its files with the same bytes.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from traceback import clear_frames
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from relaycast.out_file import parents_of, refusing_os_errors

if TYPE_CHECKING:
    from relaycast_ledger.run_tables import RunTables

RUN_ID = re.compile("[0-9a-f]{16}")


class OpenFiles(NamedTuple):
    """Files that are written while a run passes: lines of its event log, and its tables."""

    events: BinaryIO
    tables: "RunTables"


@contextmanager
def staged(out: Path, run_id: str, *, option: str = "--out") -> Iterator[Path]:
    """Give a folder to write into, which becomes ``out/run_id`` when all went well.

    Raises ``BadInput`` for a folder that cannot be written, and for a disk that is full before the end.
    """
    with (
        refusing_os_errors(f"{option} {out}", "a folder that can be written"),
        parents_of(out / run_id),
        ExitStack() as lock,
    ):
        staging = Path(mkdtemp(prefix=f".{run_id}-", dir=out))
        try:
            staging.chmod(0o755)
            lock.enter_context(_locked(staging))
            _remove_left_behind(staging, run_id)
            yield staging
            _replace(out / run_id, staging)
        except BaseException as error:
            clear_frames(error.__traceback__)  # files that are open in them take the handles that removing needs
            lock.close()
            with suppress(OSError):
                _remove(staging)
            raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, so that others see that somebody works there; it goes with the process."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some shares lock nothing
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _remove_left_behind(staging: Path, run_id: str) -> None:
    """Remove what killed processes left of the same run: folders like ``staging`` that nobody holds.

    Names that a user chose are left alone: a user's folder could have such a name.
    """
    if not RUN_ID.fullmatch(run_id):
        return
    for folder in staging.parent.glob(f".{run_id}-????????"):
        if folder != staging and folder.is_dir() and not folder.is_symlink():
            with suppress(OSError):  # in use, or gone meanwhile
                handle = os.open(folder, os.O_RDONLY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)
                finally:
                    os.close(handle)


class _Probed(Exception):
    """A folder can be written; nothing is to be left of it."""


def check_writable(out: Path, *, option: str = "--out") -> None:
    """Raise ``BadInput`` unless a folder can be made in ``out``; to be asked before long work."""
    try:
        with staged(out, "probe", option=option):
            raise _Probed
    except _Probed:
        return


def _remove(folder: Path) -> None:
    """Remove a folder with one free file handle; ``shutil.rmtree`` takes more."""
    for path in folder.iterdir():
        _remove(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    folder.rmdir()


def _replace(target: Path, staging: Path) -> None:
    """Move ``staging`` to ``target``; what stood there goes when the new files are in place."""
    from relaycast_ledger.staged_file import sync, sync_all  # noqa: PLC0415 - loads the chains

    sync_all(staging)
    old = staging.with_name(f"{staging.name}.old")
    if target.exists():
        target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)
