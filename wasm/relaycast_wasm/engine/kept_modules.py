"""Compiled modules on disk, under the hash of their code and of the engine that compiled them.

A compiled module is native code, and an engine runs what it is given. Law: what is run comes from a file of this user
that nobody else can write, and is as it was written: its digest stands in front. What is not is compiled again, and no
failure of the disk is one of the load.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal

from blake3 import blake3

from relaycast_trie.own_file import foreign, open_own

Place = Path | Literal["user"] | None
"""A folder, the user's, or none."""

DIGEST_BYTES = 32
MOST_FILES = 32
"""Modules that stay; what was used longest ago goes first. One takes 10 to 40 MB."""

SUFFIX = ".module"


class KeptModules:
    """Modules kept in ``folder`` for one ``engine``, whose text says all that compiled code depends on."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder = folder
        self._engine = engine

    def name_of(self, wasm: bytes) -> str:
        """Return under which name a module's compiled form is kept."""
        return blake3(len(wasm).to_bytes(8, "little") + wasm + self._engine.encode()).hexdigest()

    def find(self, name: str) -> bytes | None:
        """Return the compiled form as it was kept; ``None`` where there is none, or none to be trusted."""
        file = self._folder / f"{name}{SUFFIX}"
        try:
            with open_own(file) as stream:
                digest, content = stream.read(DIGEST_BYTES), stream.read()
                os.utime(stream.fileno())
        except OSError:
            return None
        return content if digest == _digest(name, content) else None

    def keep(self, name: str, content: bytes) -> None:
        """Write the compiled form; nothing happens where that cannot be."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._folder.is_symlink() or foreign(self._folder.stat()) is not None:
                return
            handle, staging = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=SUFFIX)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_digest(name, content))
                    stream.write(content)
                Path(staging).replace(self._folder / f"{name}{SUFFIX}")
            except BaseException:
                Path(staging).unlink(missing_ok=True)
                raise
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Remove what is beyond the limit, and what killed processes left half-written."""
        files = sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda it: it.lstat().st_mtime_ns)
        for file in files[:-MOST_FILES]:
            file.unlink(missing_ok=True)


def folder_of(place: Place) -> Path | None:
    """Return the folder that ``place`` means, whether it is there or not."""
    if place != "user":
        return place
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(named) if named else Path.home() / ".cache") / "relaycast" / "runtimes"
    except RuntimeError:  # nobody knows of a home
        return None


def _digest(name: str, content: bytes) -> bytes:
    return blake3(content, key=bytes.fromhex(name)).digest(DIGEST_BYTES)
