"""Files that one process at a time writes: a lock with its process id, and a file that is moved to its place whole.

Law: a file under its final name is complete on disk, also after a loss of power. Some file systems, such as network
shares, have no locks. There a second process is not kept out.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from relaycast_ledger.exceptions import WorkFolderInUse

LOCK = "lock"
"""Its name in a folder."""

LOCK_MODE = 0o600

NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL})
"""Errors of ``flock`` on file systems without locks."""

FULL_DISK = errno.ENOSPC, errno.EDQUOT, errno.EFBIG
"""How the system refuses a write where there is no room."""

TRIES = 100
"""Processes that end may each remove a folder just when the next one goes into it."""


@contextmanager
def alone_with(file: Path, *, works_on: Path, mode: int = LOCK_MODE) -> Iterator[int]:
    """Hold the lock ``file``, created with ``mode`` if needed, and yield its descriptor.

    Raises ``WorkFolderInUse``, and ``OSError`` where the file is a link.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
    try:
        try:
            _lock(handle)
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
        yield handle
    finally:
        os.close(handle)


@contextmanager
def alone_in(folder: Path, *, works_on: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, which is made if need be; raises ``WorkFolderInUse``.

    At the end the lock is removed; so is the folder where it is empty, and those above it that were made for it.
    """
    made = [path for path in folder.parents if not path.exists()]
    lock = folder / LOCK
    try:
        with ExitStack() as held:
            for tries_left in reversed(range(TRIES)):
                try:
                    folder.mkdir(parents=True, exist_ok=True)
                    handle = held.enter_context(alone_with(lock, works_on=works_on))
                    break
                except (FileExistsError, FileNotFoundError):
                    if not tries_left:
                        raise
            try:
                yield
            finally:
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), os.stat(lock)):  # else it is that of the next process
                        lock.unlink()
    finally:
        for path in (folder, *made):
            with suppress(OSError):  # not empty, or gone
                path.rmdir()


def _lock(handle: int) -> None:
    """Lock an open file if its file system has locks; raises ``BlockingIOError`` if another process holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


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
        except BaseException as error:
            staging.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.filename is None:
                error.filename = str(file)
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
