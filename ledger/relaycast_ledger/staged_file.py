"""A file that is written beside its place and moved there: all of it or nothing, one process at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from relaycast_ledger.file_lock import alone_with


@contextmanager
def staged(file: Path) -> Iterator[IO[bytes]]:
    """Give a stream whose content becomes ``file``, on disk, when all went well.

    Raises ``WorkFolderInUse`` where another process writes the same file.
    """
    staging = file.with_name(f".{file.name}.part")
    with alone_with(staging, works_on=file):
        try:
            with staging.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            staging.replace(file)
        except BaseException:
            staging.unlink(missing_ok=True)
            raise
