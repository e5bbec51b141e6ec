"""One proof in arrays: decoded, encoded and verified in one or two calls, from bytes to values.

Law: whatever a kernel does not accept goes to the plain engine, which says what is wrong with it.
"""

import numpy as np

from relaycast_trie.array.array_proofs import ArrayProof, verify_many
from relaycast_trie.array.columns import ascending
from relaycast_trie.exceptions import ProofError
from relaycast_trie.kernels import at_once
from relaycast_trie.kernels.gather import NOT_BYTES, gathered
from relaycast_trie.kernels.tables import Column
from relaycast_trie.kernels.vectors import LENGTH_BYTES, write_list
from relaycast_trie.kernels.verify import FAILS, UNUSED
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_trie.proofs.verify import VerifiedProof

NO_BYTES, NO_OFFSETS = np.empty(0, np.uint8), np.empty(0, np.int64)

MOST_AT_ONCE = 10_000
"""Nodes of a proof that is verified in one call, which keeps the interpreter's lock for less than a thread's turn."""


def decode(data: bytes) -> StorageProof | None:
    """Return the proof that SCALE bytes hold, ``None`` for anything else."""
    if not at_once.AT_ONCE:
        return None
    count, strings, offsets = at_once.decode_at_once(id(data), id(bytes))
    return None if count < 0 else ArrayProof.of_arrays(strings, offsets, as_given=True)


def encode(proof: StorageProof) -> bytes | None:
    """Return the SCALE bytes of a proof; ``None`` where a node has 2 GiB and more."""
    if isinstance(proof, ArrayProof):
        data, offsets = proof.arrays
        sizes = np.diff(offsets).astype(np.int32)
    else:
        data, offsets, sizes, width = gathered(list(proof.nodes))
        if width == NOT_BYTES:
            return None
    column = Column(data, offsets[:-1], sizes, -1)
    out = np.empty(len(data) + LENGTH_BYTES * (len(sizes) + 1), np.uint8)
    return out[: write_list(column, ascending(column, len(sizes)), out)].tobytes()


def verify(proof: StorageProof, root: bytes, keys: list[bytes], *, strict: bool = False) -> VerifiedProof:
    """Return what ``proof`` proves; raises as ``StorageProof.verify`` does."""
    if len(root) != 32 or not at_once.AT_ONCE or proof.most_nodes > MOST_AT_ONCE:
        return _verify_in_columns(proof, root, keys, strict)
    values: list[bytes | None] = [None] * len(keys)
    asked = [*keys, root]
    if isinstance(proof, ArrayProof):
        answer = at_once.verify_at_once(0, *proof.arrays, id(asked), id(bytes), id(values))
    else:
        nodes = list(proof.nodes)
        answer = at_once.verify_at_once(id(nodes), NO_BYTES, NO_OFFSETS, id(asked), id(bytes), id(values))
    if answer == at_once.NO_MEMORY:
        raise MemoryError("no memory for the values of a proof")
    if answer in (FAILS, NOT_BYTES) or (strict and answer % at_once.TWINS == UNUSED):
        return proof.verify_plainly(root, keys, strict=strict)
    if strict:
        proof.refuse_duplicates()
    return VerifiedProof(root, dict(zip(keys, values, strict=True)))


def _verify_in_columns(proof: StorageProof, root: bytes, keys: list[bytes], strict: bool) -> VerifiedProof:
    (answer,) = verify_many([root], [proof], [keys], strict=strict)
    if isinstance(answer, ProofError):
        raise answer
    return answer
