"""To be written."""

from collections.abc import Iterator

from relaycast.vectors.xcm_vector import XcmVector


def vectors(seed: int) -> Iterator[XcmVector]:
    """Yield the vectors."""
    del seed
    yield from ()
