"""To be written."""

from collections.abc import Iterator

from relaycast.vectors.proof_vector import ProofVector


def vectors(seed: int) -> Iterator[ProofVector]:
    """Yield the vectors."""
    del seed
    yield from ()
