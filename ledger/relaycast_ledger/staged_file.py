"""A file that is written next to its place and moved there: all or nothing, one process at a time.

Law: a file under its final name is complete on disk, also after a loss of power.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from relaycast_ledger.file_lock import alone_with

FILE_MODE = 0o644


@contextmanager
def staged(file: Path) -> Iterator[IO[bytes]]:
    """Give a stream whose content becomes ``file``, on disk, when all went well.

    Raises ``WorkFolderInUse`` where another process writes the same file.
    """
    staging = file.with_name(f".{file.name}.part")
    with alone_with(staging, works_on=file, mode=FILE_MODE):
        try:
            with staging.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            staging.replace(file)
            sync(file.parent)
        except BaseException:
            staging.unlink(missing_ok=True)
            raise


def sync(place: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk; the ``OSError`` names the place."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None
    finally:
        os.close(handle)


def sync_all(folder: Path) -> None:
    """Wait until a folder with all that is in it is on disk."""
    for place in folder.iterdir():
        if place.is_dir() and not place.is_symlink():
            sync_all(place)
        elif place.is_file():
            sync(place)
    sync(folder)
