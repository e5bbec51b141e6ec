"""Roots, nodes, proofs of single tries, and proofs that do not hold."""

from collections.abc import Iterator

from relaycast.vectors.proof_vector import ProofRoot, ProofVector
from relaycast.vectors.vector import VectorSource


def vectors(seed: int) -> Iterator[ProofVector]:
    """Yield the vectors."""
    del seed
    yield ProofRoot(
        id="proofs/root/empty",
        why="the root of a trie without keys",
        source=VectorSource(trap="empty trie"),
        state_version=1,
        pairs=[],
    )
