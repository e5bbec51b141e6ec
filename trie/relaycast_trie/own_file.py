"""Files with compiled code that a process may run.

Law: code runs only from a regular file (not a link) that belongs to this user and that no other user can write.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_own(file: Path) -> BinaryIO:
    """Open a file for reading; ``PermissionError`` says why other users could have changed it."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PermissionError(errno.EPERM, "it is a link", str(file)) from None
        raise
    try:
        status = os.fstat(handle)
        reason = "it is not a regular file" if not stat.S_ISREG(status.st_mode) else foreign(status)
        if reason is not None:
            raise PermissionError(errno.EPERM, reason, str(file))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def foreign(status: os.stat_result) -> str | None:
    """Return why other users can change a file or folder, ``None`` if only this user can."""
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, this process runs as {os.geteuid()}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None
