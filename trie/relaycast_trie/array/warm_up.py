"""All kernels loaded ahead of time, and compiled where no earlier run has done it: in groups, by two processes.

A group is what one kind of work needs. The second process begins at the other end of the list. Whichever process
reaches a kernel first compiles it (``kernels.turns``); the other one loads it from the folder.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress

import numpy as np

from relaycast_trie.array import one_proof
from relaycast_trie.array.array_proofs import ArrayProof, trace_paths, verify_many
from relaycast_trie.array.array_trie import ArrayTrie
from relaycast_trie.array.compact import decode_compact, encode_compact
from relaycast_trie.array.crossovers import calibrate
from relaycast_trie.array.forest import ArrayForest
from relaycast_trie.array.kept_code import all_kernels
from relaycast_trie.array.proof_columns import decode_proofs
from relaycast_trie.array.root import root_of
from relaycast_trie.engine import (
    BUILDS,
    CHANGES,
    COMPILE_SECONDS_FILE,
    READS,
    VERIFIES,
    kernels_are_compiled,
    measured_compile_seconds,
)
from relaycast_trie.garbage import uncollected
from relaycast_trie.kernels.announce import ANNOUNCER
from relaycast_trie.kernels.compiling import JIT
from relaycast_trie.kernels.keeping import folder
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import build_database
from relaycast_trie.proofs.storage_proof import StorageProof

KEYS = [bytes([i % 7, i]) * (1 + i % 3) for i in range(64)]
VALUES = [key * 20 for key in KEYS]


def roots() -> ArrayTrie:
    """Build a trie of keys in any order, and compute a root and no more."""
    root_of(dict(zip(KEYS, VALUES, strict=True)), StateVersion.V1)
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
    one_proof.encode(proof)
    return proof


def verdicts() -> None:
    """Take proofs of the plain engine from bytes, and verify them: what makes roots is not needed."""
    db, root = build_database(dict(zip(KEYS, VALUES, strict=True)), state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, KEYS)
    encoded = proof.encode()
    decoded = one_proof.decode(encoded) or proof
    for some in (decoded, proof):
        one_proof.verify(some, root, KEYS)
    decode_proofs(np.frombuffer(encoded, np.uint8), np.array([0, len(encoded)]))
    trace_paths(root, list(proof.nodes), KEYS)
    for verified in verify_many([root], [decoded], [KEYS]):
        assert not isinstance(verified, Exception)
        assert verified.values


def compact_proofs() -> None:
    """Take a proof to the compact form and back."""
    root, proof = roots().root, proofs()
    decode_compact(encode_compact(proof, root), root)


def states() -> None:
    """Seal blocks over many tries."""
    forest = ArrayForest()
    forest.seal({forest.add(): dict.fromkeys(KEYS, bytes(40))}, told=True)
    forest.close(told=True)
    forest.get(forest.root(0), KEYS[0])
    forest.hashed()


GROUPS: tuple[Callable[[], object], ...] = (verdicts, roots, proofs, changes, compact_proofs, states)
"""The first one and the last have few kernels in common, so that two processes wait little for each other."""


def warm_up() -> float:
    """Load all kernels, compiling those that no earlier run has compiled, and return the seconds that it took.

    Where there is a second core, a second process compiles with this one. What is faster by arrays is measured too,
    once on a machine.
    """
    started, is_cold = time.perf_counter(), _is_much_to_compile()
    helper = _second_process() if is_cold and _cores() > 1 else None
    try:
        with uncollected() if is_cold else nullcontext():  # the compiler keeps nearly all that it makes
            for group in GROUPS:
                group()
    finally:
        if helper is not None:
            helper.wait()
    if is_cold:
        _keep_compile_seconds(time.perf_counter() - started)
    ANNOUNCER.report()
    calibrate()
    return time.perf_counter() - started


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
    known = all(kernels_are_compiled(work) for work in (BUILDS, CHANGES, READS, VERIFIES))
    return not known and not any(it.overloads for it in all_kernels())


def _second_process() -> subprocess.Popen[bytes] | None:
    code = "from relaycast_trie.array.warm_up import compile_from_the_end as it; it()"
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
