"""``out/<run-id>/``: the files of a run, all of them or none.

Law: files are written beside their place and moved there together. A run that stops half way leaves the folder as it
was, and the same run replaces its files with the same bytes.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from relaycast.refusal import BadInput


@contextmanager
def staged(out: Path, run_id: str) -> Iterator[Path]:
    """Give a folder to write into, which becomes ``out/run_id`` when all went well; raises ``BadInput``."""
    made = _missing_parents(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=f".{run_id}-", dir=out))
        staging.chmod(0o755)
    except OSError as error:
        _remove_empty(made)
        got = (error.strerror or str(error)).lower()
        raise BadInput(f"--out {out}", got, "a folder that can be written") from None
    try:
        yield staging
        _replace(out / run_id, staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        _remove_empty(made)
        raise


class _Probed(Exception):
    """A folder can be written; nothing is to be left of it."""


def check_writable(out: Path) -> None:
    """Raise ``BadInput`` unless a folder can be made in ``out``; to be asked before long work."""
    try:
        with staged(out, "probe"):
            raise _Probed
    except _Probed:
        return


def write_page(file: Path, text: str, option: str) -> None:
    """Write ``text`` to ``file``, all of it or nothing; raises ``BadInput`` that names the ``option``."""
    staging = file.with_name(f".{file.name}.part")
    try:
        staging.write_text(text, encoding="utf-8", newline="\n")
        staging.replace(file)
    except OSError as error:
        staging.unlink(missing_ok=True)
        got = (error.strerror or str(error)).lower()
        raise BadInput(f"{option} {file}", got, "a file that can be written") from None


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


def _missing_parents(folder: Path) -> list[Path]:
    """Return what would have to be made, the innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
