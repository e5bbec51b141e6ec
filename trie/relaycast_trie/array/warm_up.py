"""All kernels: loaded ahead of time, and compiled where no earlier run has done it; and how many are kept on disk.

Two processes compile, in groups: a group is what one kind of work needs. The second process begins at the other end of
the list. What one has compiled, the other loads from the folder.
"""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np

from relaycast_trie import kernels
from relaycast_trie.array.array_proofs import (
    ArrayProof,
    decode_compact,
    decode_one,
    decode_proofs,
    encode_compact,
    encode_one,
    trace_paths,
    verify_many,
    verify_one,
)
from relaycast_trie.array.array_trie import ArrayTrie, root_of
from relaycast_trie.array.forest import ArrayForest, Sealing, seal_together, witnesses
from relaycast_trie.array.side_by_side import KeyColumn, NodeTable, SideBySide, hashes_of, price_lists
from relaycast_trie.engine import (
    BUILDS,
    CHANGES,
    COMPILE_SECONDS,
    COMPILE_SECONDS_FILE,
    READS,
    UNFOLDS,
    VERIFIES,
    kernels_are_compiled,
    measured_compile_seconds,
)
from relaycast_trie.gc_policy import uncollected
from relaycast_trie.kernels.compiling import JIT
from relaycast_trie.kernels.disk_cache import ANNOUNCER, CHECKED, folder
from relaycast_trie.kernels.memory import MASKED
from relaycast_trie.kernels.multibuffer_hash import LANES
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import build_database
from relaycast_trie.proofs.storage_proof import StorageProof


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


KEYS = [bytes([i % 7, i]) * (1 + i % 3) for i in range(64)]
VALUES = [key * 20 for key in KEYS]


def roots() -> ArrayTrie:
    """Build a trie of keys in any order, and compute a root and no more."""
    pairs = dict(zip(KEYS, VALUES, strict=True))
    root_of(pairs, StateVersion.V1)
    ArrayTrie.from_pairs(pairs)
    trie = ArrayTrie.from_arrays(KEYS[::-1], VALUES[::-1], window=1)
    trie.commit()
    return trie


def changes() -> None:
    """Change few values and many, remove some, and list all entries."""
    trie = roots()
    trie.update(KEYS[:2], KEYS[2:4])
    trie.remove(KEYS[4:6])
    trie.commit()
    trie.update([key + b"+" for key in KEYS], KEYS)
    trie.items()


def proofs() -> ArrayProof:
    """Read keys and prove them, one, few and many; take a proof to bytes."""
    trie = roots()
    trie.get(KEYS[0])
    trie.get_many(KEYS)
    trie.prove(KEYS[:2])
    (proof,) = trie.prove_many(KEYS, np.array([0, len(KEYS)])).proofs()
    encode_one(proof)
    return proof


def verdicts() -> None:
    """Take proofs of the plain engine from bytes, and verify them: what makes roots is not needed."""
    db, root = build_database(dict(zip(KEYS, VALUES, strict=True)), state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, KEYS)
    encoded = proof.encode()
    decoded = decode_one(encoded) or proof
    for some in (decoded, proof):
        verify_one(some, root, KEYS)
    decode_proofs(np.frombuffer(encoded, np.uint8), np.array([0, len(encoded)]))
    trace_paths(root, list(proof.nodes), KEYS)
    for verified in verify_many([root], [decoded], [KEYS]):
        assert not isinstance(verified, Exception)
        assert verified.values


def compact_proofs() -> None:
    """Take a proof to the compact form and back."""
    root, proof = roots().root, proofs()
    compact = encode_compact(proof, root)
    assert compact is not None
    decode_compact(compact)
    compact.to_bytes()


def states() -> None:
    """Seal blocks over many tries."""
    forest = ArrayForest()
    forest.seal({forest.add(): dict.fromkeys(KEYS, bytes(40))}, told=True)
    forest.close(told=True)
    forest.get(forest.root(0), KEYS[0])
    forest.hashed()
    sealing = Sealing(forest, 0, {KEYS[0]: None}, KEYS[1:2])
    (proof,) = witnesses([sealing])
    proof.compacted()
    seal_together([sealing])


def walks() -> None:
    """Walk two tries side by side, the old one empty."""
    db, root = build_database({bytes([i]) * 32: bytes(40) for i in range(2)}, state_version=StateVersion.V1)
    nodes = [node for node_hash in db.references() if (node := db.get(node_hash)) is not None]
    given = NodeTable(hashes_of(nodes), nodes)
    given.unmark_all()
    given.mark([])
    walk = SideBySide(KeyColumn([bytes(32)]), given, NodeTable(), price_lists([[(0, 0)]] * 3), most_above=1)
    walk.begin(0, 1, root, None, (0, 0))
    walk.go_on(asks=False)


GROUPS: tuple[Callable[[], object], ...] = (verdicts, roots, proofs, changes, compact_proofs, walks, states)
"""The first one and the last have few kernels in common, so that two processes compile few kernels twice."""


def warm_up() -> float:
    """Load all kernels, compiling those that no earlier run has compiled, and return the seconds that it took.

    Where there is a second core, a second process compiles with this one.
    """
    started, is_cold = time.perf_counter(), _is_much_to_compile()
    if is_cold:
        measured = measured_compile_seconds()
        known = "on two cores" if measured is None else "by the last time"
        ANNOUNCER.announce(f"all of it, about {measured or COMPILE_SECONDS:.0f} s {known}")
    helper = _process_of(compile_from_the_end) if is_cold and _cores() > 1 else None
    try:
        with uncollected() if is_cold else nullcontext():  # the compiler keeps nearly all that it makes
            for group in GROUPS:
                group()
    finally:
        if helper is not None:
            helper.wait()
    if is_cold:
        _keep_compile_seconds(time.perf_counter() - started)
    ANNOUNCER.report(whole=True)
    return time.perf_counter() - started


def compile_once() -> None:
    """Compile all kernels if none are and the code can be kept: one wait instead of one for each kind of work.

    A worker compiles what it calls: others compile at the same time.
    """
    if parent_process() is None and _is_much_to_compile():
        warm_up()


def load_aside() -> None:
    """Load all kernels while nobody waits; a process of its own compiles them first, where that is to be done."""
    if _is_much_to_compile():
        ANNOUNCER.announce("all of it, in a process of its own; plain tries go on meanwhile")
        helper = _process_of(warm_up)
        if helper is not None:
            helper.wait()
    warm_up()


def _keep_compile_seconds(seconds: float) -> None:
    """Note what compiling took, where the kernels of other versions find it; nothing happens where that cannot be."""
    place = folder()
    if place is None:
        return
    root = place if place.name == "__pycache__" else place.parent
    with suppress(OSError):
        part = root / f"{COMPILE_SECONDS_FILE}.{os.getpid()}"
        part.write_text(json.dumps(round(seconds, 1)))
        part.replace(root / COMPILE_SECONDS_FILE)
    measured_compile_seconds.cache_clear()


def compile_from_the_end() -> None:
    """Do what the second process does: all groups, the last one first."""
    with uncollected():
        for group in reversed(GROUPS):
            group()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_much_to_compile() -> bool:
    if not JIT or folder() is None:
        return False
    kernels_are_compiled.cache_clear()
    known = all(kernels_are_compiled(work) for work in (BUILDS, CHANGES, READS, UNFOLDS, VERIFIES))
    return not known and not any(it.overloads for it in all_kernels())


def _process_of(task: Callable[[], object]) -> subprocess.Popen[bytes] | None:
    code = f"from {task.__module__} import {task.__name__} as it; it()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, and code that stands here
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
