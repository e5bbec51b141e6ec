"""One process of this machine at a time: a file that is locked while it works, with its number inside."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaycast_ledger.exceptions import WorkFolderInUse

LOCK = "lock"
"""Its name in a folder."""


@contextmanager
def alone_with(file: Path, *, works_on: Path) -> Iterator[None]:
    """Hold the lock ``file``, made if need be; raises ``WorkFolderInUse``, and ``OSError`` where it is a link."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(handle), os.stat(file)):  # its holder has moved it to its place meanwhile
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            pid = os.read(handle, 32).decode("ascii", "replace").strip()
            raise WorkFolderInUse(str(works_on), pid) from None
        os.ftruncate(handle, 0)
        try:
            os.write(handle, str(os.getpid()).encode())
        except OSError as error:
            file.unlink()
            raise OSError(error.errno, error.strerror, str(file)) from None
        yield
    finally:
        os.close(handle)
