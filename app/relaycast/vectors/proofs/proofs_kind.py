"""The vectors of tries and proofs."""

from collections.abc import Iterable

from relaycast.vectors.proofs import child_proofs, compact_proofs, trie_proofs
from relaycast.vectors.proofs.proof_run import recomputed
from relaycast.vectors.proofs.proof_vector import ProofVector
from relaycast.vectors.vector_kind import VectorKind


def made(seed: int) -> Iterable[tuple[str, ProofVector]]:
    """Yield every vector with the name of its file."""
    for name, module in (("tries", trie_proofs), ("children", child_proofs), ("compact", compact_proofs)):
        for vector in module.vectors(seed):
            yield name, recomputed(vector)


PROOFS = VectorKind("proofs", ProofVector, made, recomputed)
