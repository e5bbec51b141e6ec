"""Where compiled kernels are kept: in the folder that ``NUMBA_CACHE_DIR`` names, beside their sources, or the user's.

Numba names a shared folder by the place of the sources, and looks at the file of a kernel alone to tell whether its
code is still right. Kernels contain others, though, and what Spark unpacks lies somewhere else in every application.
Law: kept code belongs to the content of all kernels, wherever they lie, an archive included. A file that is not as it
was written, or that another user could have written, is not loaded but made again.
"""

import hashlib
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from numba import config as numba_config
from numba.core import caching as numba_caching
from numba.misc import appdirs as numba_appdirs

from relaycast_trie.kernels.announce import ANNOUNCER
from relaycast_trie.kernels.standing import called_by
from relaycast_trie.kernels.turns import CompilerTurns
from relaycast_trie.own_file import foreign, open_own

config: Any = numba_config
caching: Any = numba_caching
appdirs: Any = numba_appdirs

DIGEST_BYTES = 16
FOLDER_MODE, FILE_MODE = 0o700, 0o600

CHECKED = bool(config.DISABLE_JIT or config.BOUNDSCHECK)
"""Whether bytes are moved one by one with their indices looked at."""

SOURCES = hashlib.blake2b(
    bytes([CHECKED])
    + b"".join(
        file.read_bytes()
        for file in sorted(files(__package__).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".py")
    ),
    digest_size=16,
).hexdigest()
"""Stands for all kernels, and for whether they look at indices."""


@cache
def folder() -> Path | None:
    """Return the folder for compiled code, ``None`` if this user has none that only this user can write.

    In ``__pycache__`` only the files are checked: a user who can write there can replace the program anyway.
    """
    shared = f"kernels_{SOURCES}"
    users = Path(appdirs.AppDirs(appname="numba", appauthor=False).user_cache_dir) / shared
    places = [Path(__file__).parent / "__pycache__", users]
    if config.CACHE_DIR:
        places.insert(0, Path(config.CACHE_DIR) / shared)
    return next(filter(_is_usable, places), None)


def keep(dispatcher: Any, *, name: str = "") -> None:
    """Let what is compiled of a kernel be kept; nothing happens where it cannot be, or where nothing is compiled.

    ``name`` tells functions apart that stand in one place.
    """
    if not config.DISABLE_JIT and folder() is not None:
        with suppress(RuntimeError):  # somebody told numba of other places, and none of them will do
            dispatcher._cache = _Cache(dispatcher.py_func, name)


def _is_usable(place: Path) -> bool:
    try:
        place.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        reason = None if place.name == "__pycache__" else foreign(place.stat())
        if reason is not None:
            ANNOUNCER.refuse(str(place), reason)
            return False
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return False
    return True


class _Place(caching._CacheLocator):  # type: ignore[misc]
    """What numba asks for the place of one kernel's code."""

    def __init__(self, file: str, line: int) -> None:
        self._py_file = file  # numba names it where it warns
        self._line = line

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return SOURCES

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self:
        return cls(file, function.__code__.co_firstlineno)


class _Found(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Place]  # noqa: RUF012 - as numba has it


class _Files(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The index of a kernel and its code: each file begins with a digest of its name and of what follows."""

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._save_data(self._index_name, (self._version, self._source_stamp, overloads))

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, overloads = self._load_data(self._index_name) or (None, None, {})
        except FileNotFoundError:
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_data(self, name: str, data: object) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as stream:
            Path(stream.name).chmod(FILE_MODE)
            stream.write(_digest(name, content) + content)

    def _load_data(self, name: str) -> Any:
        try:
            with open_own(Path(self._data_path(name))) as stream:
                data = stream.read()
        except PermissionError as error:
            ANNOUNCER.refuse(self._data_path(name), str(error.strerror))
            return None
        digest, content = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
        return pickle.loads(content) if digest == _digest(name, content) else None  # noqa: S301 - numba's own format


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.blake2b(name.encode() + content, digest_size=DIGEST_BYTES).digest()


@cache
def _turns(place: Path) -> CompilerTurns:
    return CompilerTurns(place)


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Found

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function)
        self._impl._filename_base += name
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, SOURCES)
        self._turns = _turns(Path(self._cache_path))

    def load_overload(self, signature: object, context: object) -> Any:
        """Return what is kept; where it is not there, that is in no other process's hands either."""
        found = super().load_overload(signature, context)
        if found is None and self._turns.take(self._impl.filename_base):
            found = super().load_overload(signature, context)
            if found is not None:
                self._turns.give(self._impl.filename_base)
        return found

    def save_overload(self, signature: object, data: Any) -> None:
        """Keep what was compiled, and let others have it."""
        super().save_overload(signature, data._replace(reload_init=[*data.reload_init, *called_by(data)]))
        self._turns.give(self._impl.filename_base)

    def _index_key(self, signature: object, codegen: Any) -> tuple[object, ...]:
        """Return what tells code in an index apart; what else it depends on stands in ``SOURCES``."""
        return signature, codegen.magic_tuple()

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Go on with what was compiled where a disk is full, or a folder gone: nothing but time is lost."""
        with suppress(OSError):
            yield
