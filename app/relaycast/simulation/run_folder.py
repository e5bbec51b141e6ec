"""``out/<run-id>/``: the files of a run, all of them or none.

Law: files are written beside their place and moved there together. A run that stops half way leaves the folder as it
was, and the same run replaces its files with the same bytes.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from traceback import clear_frames

from relaycast.out_file import parents_of, refusing_os_errors


@contextmanager
def staged(out: Path, run_id: str, *, option: str = "--out") -> Iterator[Path]:
    """Give a folder to write into, which becomes ``out/run_id`` when all went well.

    Raises ``BadInput`` for a folder that cannot be written, and for a disk that is full before the end.
    """
    with refusing_os_errors(f"{option} {out}", "a folder that can be written"), parents_of(out / run_id):
        staging = Path(mkdtemp(prefix=f".{run_id}-", dir=out))
        staging.chmod(0o755)
        try:
            yield staging
            _replace(out / run_id, staging)
        except BaseException as error:
            clear_frames(error.__traceback__)  # files that are open in them take the handles that removing needs
            with suppress(OSError):
                _remove(staging)
            raise


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
    old = staging.with_name(f"{staging.name}.old")
    if target.exists():
        target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
