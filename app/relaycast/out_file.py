"""A file that a command writes: all of it, or nothing.

Law: the file is written beside its place and moved there, one process at a time. Missing parent folders are made, and
removed again where nothing comes of it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR, EMFILE, ENFILE, ENOTDIR
from pathlib import Path
from typing import IO

from relaycast.refusal import BadInput


@contextmanager
def written(file: Path, option: str) -> Iterator[IO[bytes]]:
    """Give a stream whose content becomes ``file`` when all went well.

    Raises ``BadInput`` that names the ``option``, and ``WorkFolderInUse`` where another process writes the same file.
    """
    from relaycast_ledger.staged_file import staged  # noqa: PLC0415 - loads the chains

    with refusing_os_errors(f"{option} {file}".strip(), "a file that can be written"), parents_of(file):
        if file.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with staged(file) as stream:
            yield stream


class _Probed(Exception):
    """A file can be written; nothing is to be left of it."""


def check_file(file: Path, option: str) -> None:
    """Raise what ``written`` raises, and leave everything as it is; to be asked before long work."""
    with suppress(_Probed), written(file, option):
        raise _Probed


def write_text(file: Path, text: str, option: str) -> None:
    """Write ``text`` to ``file``, all of it or nothing; raises what ``written`` raises."""
    with written(file, option) as stream:
        stream.write(text.encode())


@contextmanager
def parents_of(place: Path) -> Iterator[None]:
    """Make the folders above ``place``; those that were missing go again where nothing comes of it."""
    missing = [path for path in place.parents if not path.exists()]
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR)) from None
        yield
    except BaseException:
        for path in missing:
            try:
                path.rmdir()
            except OSError:
                break
        raise


@contextmanager
def refusing_os_errors(place: str, expected: str) -> Iterator[None]:
    """Turn what the system refuses to write into ``BadInput``: a full disk, no permission, a folder that is none.

    Too few file handles, and streams whose other end is gone, are no fault of the place.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, ConnectionError) or error.errno in {None, EMFILE, ENFILE}:
            raise
        raise BadInput(place, os.strerror(error.errno or 0).lower(), expected) from None
