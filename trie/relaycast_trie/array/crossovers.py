"""From which size on arrays are faster on this machine: measured once, and kept beside the kernels.

Both engines do the same work at a few sizes. The clock is that of the CPU time of this thread, and the fastest of
several tries counts. A crossover is never far from the fixed one: a busy moment is not to decide for years.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from relaycast_trie.array import one_proof
from relaycast_trie.array.array_trie import ArrayTrie
from relaycast_trie.array.root import root_of
from relaycast_trie.engine import CROSSOVERS, CROSSOVERS_FILE, DECODES, ENCODES, READS, ROOTS, measured_crossovers
from relaycast_trie.kernels.at_once import AT_ONCE
from relaycast_trie.kernels.keeping import folder
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.plain.build import build_root
from relaycast_trie.proofs.storage_proof import StorageProof

KEYS = (1, 2, 4, 8, 16, 32, 64)
"""Keys of a trie, or of a proof, for which both engines are timed."""

FURTHEST = 4
"""How many times more or less than the fixed crossover a measured one may be."""

TRIES = 5

Work = Callable[[], object]


def calibrate() -> dict[str, int]:
    """Return the crossovers of this machine, measured and kept if no earlier run has done so."""
    known = measured_crossovers()
    place = folder()
    if known or place is None or not AT_ONCE:
        return known
    found = measure()
    with suppress(OSError):
        part = place / f"{CROSSOVERS_FILE}.{os.getpid()}"
        part.write_text(json.dumps(found))
        part.replace(place / CROSSOVERS_FILE)
    measured_crossovers.cache_clear()
    return found


def measure() -> dict[str, int]:
    """Return for each kind of work that is done for users alone the size from which arrays are faster."""
    lost: dict[str, list[tuple[int, bool]]] = {work: [] for work in (ROOTS, READS, ENCODES, DECODES)}
    for count in KEYS:
        for work, size, plain, array in _rivals(count):
            lost[work].append((size, _fastest(array) < _fastest(plain)))
    return {work: _crossover(work, seen) for work, seen in lost.items()}


def _rivals(count: int) -> list[tuple[str, int, Work, Work]]:
    """Return each kind of work with its size, by the plain engine and by arrays."""
    rng = np.random.default_rng(count)
    rows = rng.integers(0, 256, (512, 32), np.uint8)
    pairs = {row.tobytes(): row.tobytes() for row in rows}
    trie, few = ArrayTrie.from_pairs(pairs), dict(list(pairs.items())[:count])
    root, asked = trie.root, list(few)
    proof = StorageProof(trie.prove(asked).nodes)
    encoded = proof.encode_plainly()
    v1 = StateVersion.V1
    return [
        (ROOTS, count, lambda: build_root(few, state_version=v1), lambda: root_of(few, v1)),
        (READS, len(proof), lambda: proof.verify_plainly(root, asked), lambda: one_proof.verify(proof, root, asked)),
        (ENCODES, len(proof), proof.encode_plainly, lambda: one_proof.encode(proof)),
        (DECODES, len(encoded), lambda: StorageProof.decode_plainly(encoded), lambda: one_proof.decode(encoded)),
    ]


def _fastest(work: Work) -> int:
    """Return the nanoseconds of CPU time that ``work`` takes, the best of several tries."""
    best = 1 << 62
    for _ in range(TRIES):
        started = time.thread_time_ns()
        work()
        best = min(best, time.thread_time_ns() - started)
    return best


def _crossover(work: str, seen: list[tuple[int, bool]]) -> int:
    """Return the smallest size from which arrays won at every size; sizes ascend."""
    fixed, found = CROSSOVERS[work], None
    for size, won in reversed(seen):
        if not won:
            break
        found = size
    wanted = seen[-1][0] + 1 if found is None else found
    return min(max(wanted, fixed // FURTHEST), fixed * FURTHEST)
