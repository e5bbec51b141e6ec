"""Compiled kernels on disk, and what a user is told while some are compiled.

Code is kept in the folder that ``NUMBA_CACHE_DIR`` names, beside the sources, or in the user's folder. Numba names a
shared folder by the place of the sources, and looks at the file of a kernel alone to tell whether its code is still
right. Kernels contain others, though, and what Spark unpacks lies somewhere else in every application.
Law: kept code belongs to the content of all kernels, wherever they lie, an archive included. A file that is not as it
was written, or that another user could have written, is not loaded but made again. Processes that compile the same
kernel at the same time each write whole files; the last one stays.
"""

import atexit
import hashlib
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from numba import config as numba_config
from numba.core import caching as numba_caching
from numba.core import event
from numba.core.runtime import nrt as numba_runtime
from numba.misc import appdirs as numba_appdirs

from relaycast_trie.own_file import foreign, open_own

config: Any = numba_config
caching: Any = numba_caching
appdirs: Any = numba_appdirs
runtime: Any = numba_runtime

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


class Announcer(event.Listener):
    """Listens to numba; says that kernels are being compiled when the first one is, and what it took in the end.

    ``announce`` says it ahead of time, with what is compiled and how long that takes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[float] = []
        self.compiled = 0
        self.seconds = 0.0
        self.said = False
        self._has_refused = False

    def refuse(self, place: str, reason: str) -> None:
        """Report, once in a process, that compiled code in ``place`` is not used, for ``reason``."""
        if not self._has_refused:
            self._has_refused = True
            _say(f"compiled code in {place} is not used: {reason}")

    def on_start(self, event: Any) -> None:
        """Note when a compilation starts."""
        if not self._is_ours(event):
            return
        with self._lock:
            self._open.append(time.perf_counter())
        self.announce("the parts that are called; relaycast_trie.warm_up() compiles all of it ahead of time")

    def announce(self, what: str) -> None:
        """Say, once until the next report, that ``what`` is being compiled."""
        with self._lock:
            is_said, self.said = self.said, True
        if not is_said:
            _say(f"compiling the array engine for this CPU, once: {what}")

    def on_end(self, event: Any) -> None:
        """Add up what compilations took; one inside another counts once."""
        if not self._is_ours(event):
            return
        with self._lock:
            started = self._open.pop()
            self.compiled += 1
            if not self._open:
                self.seconds += time.perf_counter() - started

    def report(self, *, whole: bool = False) -> None:
        """Say what was compiled since the last report, if anything was: all kernels if they are ``whole``."""
        if self.compiled:
            kernels = f"{self.compiled} kernel" + "s" * (self.compiled != 1)
            later = "later runs load all of them" if whole else "later runs load them and compile others they call"
            _say(f"compiled {kernels} in {self.seconds:.1f} s; {later}")
        self.compiled, self.seconds, self.said = 0, 0.0, False

    @staticmethod
    def _is_ours(event: Any) -> bool:
        return str(event.data["dispatcher"].py_func.__module__).startswith(__package__)


def _say(what: str) -> None:
    if sys.stderr is not None:
        print(f"relaycast: {what}", file=sys.stderr)


ANNOUNCER = Announcer()
_events: Any = event
_events.register("numba:compile", ANNOUNCER)
atexit.register(ANNOUNCER.report)


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


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Found

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function)
        self._impl._filename_base += name
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, SOURCES)

    def load_overload(self, sig: object, target_context: Any) -> Any:
        """Load a kernel's code without what only compiling needs: numba would import all that it can compile."""
        runtime.rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _index_key(self, signature: object, codegen: Any) -> tuple[object, ...]:
        """Return what tells code in an index apart; what else it depends on stands in ``SOURCES``."""
        return signature, codegen.magic_tuple()

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Go on with what was compiled where a disk is full, or a folder gone: nothing but time is lost."""
        with suppress(OSError):
            yield
