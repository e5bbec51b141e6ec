"""Which engine suits how much work: plain Python for little, compiled kernels for much. Both return the same bytes.

The array engine, and with it numpy and the compiler, is imported by the call that needs it (``array_engine``).
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import Pairs, build_root

Engine = Literal["auto", "plain", "array"]
ENGINES: tuple[Engine, ...] = ("auto", "plain", "array")

ARRAY_FROM = 60_000
"""Number of keys or nodes from which ``auto`` takes the array engine.

Below it, loading the kernels costs more time than they save: 0.4 s, and a plain root 6 us a key.
"""

COMPILE_SECONDS = 25.0
"""What compiling all kernels takes on a machine that has not done so yet: two cores."""

COMPILE_SECONDS_FILE = "relaycast-compile-seconds.json"
"""What it took on this machine the last time; it lies where the kernels of later versions find it, too."""

LONGEST_COMPILE_SECONDS = 600.0
"""Nobody has compiled for longer; a file that says so is wrong."""

KEYS_A_SECOND = 50_000
"""Keys for which a second of compiling is waited for: a plain trie of this size takes half of it. Done once."""

KERNELS = Path(__file__).parent / "kernels"
PACKAGE = "relaycast_trie.kernels"

BUILDS, CHANGES, VERIFIES = "encode.refer_to_branches", "settle.change", "verify.verify_proofs"
ROOTS, READS = "at_once.root_at_once", "at_once.verify_at_once"
DECODES, ENCODES = "at_once.decode_at_once", "at_once.encode_at_once"
WALKS, HASHES = "side_by_side.walk_side_by_side", "verify.hash_strings"
FOLDS, UNFOLDS = "compact.encode_walk", "compact.full_list"
"""For each kind of work, the kernel that contains most others that the work needs, by module and name."""

CROSSOVERS = {
    BUILDS: 10,
    CHANGES: 500,
    VERIFIES: 8,
    ROOTS: 2,
    READS: 4,
    DECODES: 500,
    ENCODES: 12,
    FOLDS: 2,
    UNFOLDS: 3,
    WALKS: 16,
    HASHES: 32,
}
"""Size from which arrays are faster once their kernels are loaded: keys, nodes of proofs, and bytes to decode."""

PLAIN_NS = {
    ROOTS: 6_000,
    READS: 3_500,
    ENCODES: 360,
    DECODES: 12,
    FOLDS: 3_700,
    UNFOLDS: 6_500,
    WALKS: 15_000,
    HASHES: 700,
}
"""What the plain engine takes for one key of a root, or one node or byte of a proof."""

LOAD_ALL_NS, LOAD_ONE_NS = 400_000_000, 30_000_000
"""What loading a kernel takes with the compiler's package, and without it where that is loaded."""


def check_engine(engine: Engine) -> None:
    """Raise ``ValueError`` unless ``engine`` is one of ``ENGINES``."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")


def kernels_can_be_compiled() -> bool:
    """Return whether numba compiles: with ``NUMBA_DISABLE_JIT`` kernels run in Python, slower than plain tries.

    Numba reads the variable once, when it is imported.
    """
    loaded = sys.modules.get(f"{PACKAGE}.memory")
    if loaded is not None:
        return bool(loaded.JIT)
    try:
        return not int(os.environ.get("NUMBA_DISABLE_JIT") or 0)
    except ValueError:
        return True


def kernels_are_loaded(work: str = CHANGES) -> bool:
    """Return whether this process has compiled the kernels for ``work``, or loaded them compiled.

    An imported kernel module alone does not count.
    """
    if work not in _LOADED:
        module, _, name = work.partition(".")
        kernel = getattr(sys.modules.get(f"{PACKAGE}.{module}"), name, None)
        if not getattr(kernel, "overloads", None):
            return False
        _LOADED.add(work)
    return True


_LOADED: set[str] = set()
"""Kinds of work whose kernels are loaded: they stay."""


@cache
def kernels_are_compiled(work: str = CHANGES) -> bool:
    """Return whether compiled kernels lie on disk and are newer than their sources; numba is not imported for that.

    A wrong answer costs time only.
    """
    files = file_of(work)
    kept = [path.stat().st_mtime_ns for folder in _cache_folders() for path in folder.glob(files)]
    sources = [path.stat().st_mtime_ns for path in KERNELS.glob("*.py")]
    return bool(kept) and max(kept) >= max(sources, default=0)


def file_of(work: str) -> str:
    """Return the pattern of the file names that numba gives the index of a kernel."""
    return f"{work}-*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"


def _cache_folders() -> Iterator[Path]:
    """Yield the folders where kernels are kept, each beside its sources or in one of its own for their content."""
    for root in _roots():
        if root.name == "__pycache__":
            yield root
        else:
            yield from root.glob(f"{KERNELS.name}_*")


def _roots() -> Iterator[Path]:
    """Yield where code may be kept: in ``NUMBA_CACHE_DIR``, or else beside the kernels and in the user's folder."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        yield Path(named)
    else:
        yield KERNELS / "__pycache__"
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"


@cache
def measured_compile_seconds() -> float | None:
    """Return what compiling all kernels took on this machine the last time, ``None`` where none has been measured."""
    for folder in _roots():
        with suppress(OSError, ValueError, TypeError):
            seconds = float(json.loads((folder / COMPILE_SECONDS_FILE).read_text()))
            if 0 < seconds < LONGEST_COMPILE_SECONDS:
                return seconds
    return None


def array_from_uncompiled() -> int:
    """Return the number of keys or nodes from which ``auto`` has kernels compiled for the array engine."""
    return max(ARRAY_FROM, round((measured_compile_seconds() or COMPILE_SECONDS) * KEYS_A_SECOND))


def pays_in_arrays(work: str, size: int) -> bool:
    """Return whether ``size`` keys of a single root, or nodes or bytes of a single proof, go to the array engine.

    Compiled kernels are loaded when plain work has taken as long as loading them takes. Together that is never more
    than twice as long as the better of the two.
    """
    if size < CROSSOVERS[work] or not kernels_can_be_compiled():
        return False
    if kernels_are_loaded(work):
        return True
    if not kernels_are_compiled(work):
        return False
    _SPENT_NS[work] = _SPENT_NS.get(work, 0) + size * PLAIN_NS[work]
    load_ns = LOAD_ONE_NS if f"{PACKAGE}.at_once" in sys.modules else LOAD_ALL_NS
    return _SPENT_NS[work] >= load_ns and arrays_are_at_hand()


_SPENT_NS: dict[str, int] = {}
"""What plain work of each kind would have taken that arrays are faster at."""


def takes_array(engine: Engine, size: int, *, work: str = BUILDS) -> bool:
    """Return whether ``engine`` means the array engine for ``size`` keys or nodes; raises as ``check_engine``."""
    check_engine(engine)
    if engine != "auto" or not kernels_can_be_compiled():
        return engine == "array"
    if kernels_are_loaded(work):
        return size >= CROSSOVERS[work]
    return size >= (ARRAY_FROM if kernels_are_compiled(work) else array_from_uncompiled()) and arrays_are_at_hand()


def load_aside() -> None:
    """Let a thread load the kernels from now on, when ``auto`` wants them: a server's loop does not wait for that."""
    global _aside  # noqa: PLW0603 - of the process, as what is loaded is
    _aside = True


def arrays_are_at_hand() -> bool:
    """Return whether ``auto`` may take arrays now; until a thread that ``load_aside`` asks for is done it may not."""
    global _loader  # noqa: PLW0603
    if not _aside:
        return True
    if _loader is None:
        _loader = Thread(target=lambda: import_module("relaycast_trie.array.warm_up").load_aside(), daemon=True)
        _loader.start()
    return not _loader.is_alive()


_aside = False
_loader: Thread | None = None


@cache
def array_engine(module: str) -> Any:
    """Return a module of the array engine, whose kernels are compiled first where they are not.

    It is imported by its name, as it imports those that ask for it.
    """
    if kernels_can_be_compiled() and not kernels_are_compiled():
        import_module("relaycast_trie.array.warm_up").compile_once()
    return import_module(f"relaycast_trie.array.{module}")


def trie_root(pairs: Pairs, *, state_version: StateVersion = StateVersion.V1, engine: Engine = "auto") -> bytes:
    """Return the Blake2b-256 root of the trie that holds ``pairs``; if a key repeats, its last value wins."""
    state_version = StateVersion(state_version)
    known = pairs if isinstance(pairs, Mapping) else dict(pairs)
    if takes_array(engine, len(known)) or (engine == "auto" and pays_in_arrays(ROOTS, len(known))):
        root: bytes = array_engine("array_trie").root_of(known, state_version)
        return root
    return build_root(known, state_version=state_version)


def warm_up_for(engine: Engine) -> None:
    """Load the kernels if ``engine`` is ``"array"``; kernels that no earlier run has compiled are compiled."""
    check_engine(engine)
    if engine == "array":
        array_engine("warm_up").warm_up()
