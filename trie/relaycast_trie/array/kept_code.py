"""What of the compiled code is kept on disk, and for which CPU it is: for whoever wants to know why a run waits."""

import importlib
import os
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaycast_trie import kernels
from relaycast_trie.kernels.blake2b import LANES
from relaycast_trie.kernels.compiling import JIT
from relaycast_trie.kernels.keeping import CHECKED
from relaycast_trie.kernels.memory import MASKED


@dataclass(frozen=True, slots=True)
class KeptCode:
    """Compiled kernels on disk: ``kept`` of ``kernels`` in ``folder``; ``None`` where no folder would do."""

    kernels: int
    kept: int
    folder: Path | None
    writable: bool
    lanes: int = LANES
    """Messages that are hashed at once."""

    masked: bool = MASKED
    compiled: bool = JIT
    """Whether kernels are compiled at all; ``NUMBA_DISABLE_JIT`` forbids it."""

    checked: bool = CHECKED
    """Whether every index is looked at, which is slow."""


def kept_code() -> KeptCode:
    """Return what is kept; loads every kernel module, and compiles nothing."""
    caches = [it._cache for it in all_kernels()]
    folders = [Path(cache.cache_path) for cache in caches if getattr(cache, "cache_path", None)]
    folder = folders[0] if folders else None
    kept = sum(bool(_entries(cache)) for cache in caches)
    return KeptCode(len(caches), kept, folder, folder is not None and _is_writable(folder))


def all_kernels() -> Iterator[Any]:
    """Yield every kernel as numba keeps it; none where nothing is compiled."""
    for info in pkgutil.iter_modules(kernels.__path__):
        module = importlib.import_module(f"{kernels.__name__}.{info.name}")
        for thing in vars(module).values():
            if hasattr(thing, "py_func") and thing.py_func.__module__ == module.__name__:
                yield thing


def _entries(cache: Any) -> object:
    try:
        return cache._cache_file._load_index()
    except (AttributeError, OSError, ValueError):
        return None


def _is_writable(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)
