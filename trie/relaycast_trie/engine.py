"""Which engine does the work: plain Python for little, compiled kernels for much, the same bytes from both."""

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import Pairs, build_root

Engine = Literal["auto", "plain", "array"]
ENGINES: tuple[Engine, ...] = ("auto", "plain", "array")

ARRAY_FROM = 20_000
"""Keys or nodes from which ``auto`` takes the array engine: below, loading the kernels costs more than it saves."""

ARRAY_FROM_ONCE_LOADED = 500
"""The same when the kernels are in memory already."""

ARRAY_FROM_UNCOMPILED = 1_000_000
"""The same when they would have to be compiled first, which takes half a minute: plain tries take ten seconds."""

KERNELS = Path(__file__).parent / "kernels"
PACKAGE = "relaycast_trie.kernels"

BUILDS, CHANGES, VERIFIES = "encode.refer_to_branches", "settle.change", "verify.verify_proofs"
"""Kernels that contain most others that such work takes, by module and name."""


def check_engine(engine: Engine) -> None:
    """Raise ``ValueError`` for what is no engine."""
    if engine not in ENGINES:
        raise ValueError(f"engine is one of {', '.join(ENGINES)}, got {engine!r}")


def kernels_can_be_compiled() -> bool:
    """Return whether numba compiles at all: with ``NUMBA_DISABLE_JIT`` kernels run in Python, slower than plain tries.

    Numba reads the variable when it is loaded.
    """
    loaded = sys.modules.get(f"{PACKAGE}.memory")
    if loaded is not None:
        return bool(loaded.JIT)
    try:
        return not int(os.environ.get("NUMBA_DISABLE_JIT") or 0)
    except ValueError:
        return True


def kernels_are_loaded(work: str = CHANGES) -> bool:
    """Return whether this process has compiled the kernels for some ``work``, or loaded them compiled.

    Their modules may be imported for other reasons.
    """
    module, _, name = work.partition(".")
    kernel = getattr(sys.modules.get(f"{PACKAGE}.{module}"), name, None)
    return bool(getattr(kernel, "overloads", None))


@cache
def kernels_are_compiled(work: str = CHANGES) -> bool:
    """Return whether compiled kernels lie on disk, newer than what they come from; told without loading the compiler.

    A wrong answer costs time, nothing else.
    """
    files = file_of(work)
    kept = [path.stat().st_mtime_ns for folder in _cache_folders() for path in folder.glob(files)]
    sources = [path.stat().st_mtime_ns for path in KERNELS.glob("*.py")]
    return bool(kept) and max(kept) >= max(sources, default=0)


def file_of(work: str) -> str:
    """Return how numba names the index of a kernel, as a pattern."""
    return f"{work}-*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"


def _cache_folders() -> Iterator[Path]:
    """Yield where numba keeps code: the folder that a variable names, or beside the sources, or the user's."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if not named:
        yield KERNELS / "__pycache__"
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    yield from (Path(named) if named else users).glob(f"{KERNELS.name}_*")


def warm_up_for(engine: Engine) -> None:
    """Load the kernels if ``engine`` cannot do without them, compiling those that no earlier run has compiled."""
    check_engine(engine)
    if engine == "array":
        from relaycast_trie.array.array_trie import warm_up  # noqa: PLC0415 - loads the compiler

        warm_up()


def takes_array(engine: Engine, size: int, *, work: str = BUILDS) -> bool:
    """Return whether ``engine`` means the array engine for so many keys or nodes; ``ValueError`` for no engine."""
    check_engine(engine)
    if engine != "auto" or not kernels_can_be_compiled():
        return engine == "array"
    if kernels_are_loaded(work):
        return size >= ARRAY_FROM_ONCE_LOADED
    return size >= (ARRAY_FROM if kernels_are_compiled(work) else ARRAY_FROM_UNCOMPILED)


def trie_root(pairs: Pairs, *, state_version: StateVersion = StateVersion.V1, engine: Engine = "auto") -> bytes:
    """Return the Blake2b-256 root of the trie that holds ``pairs``; of a key that comes twice the last value counts."""
    state_version = StateVersion(state_version)
    known = pairs if isinstance(pairs, Mapping) else dict(pairs)
    if takes_array(engine, len(known)):
        from relaycast_trie.array.array_trie import ArrayTrie  # noqa: PLC0415 - loads the compiler

        return ArrayTrie.from_pairs(known, state_version=state_version).root
    return build_root(known, state_version=state_version)
