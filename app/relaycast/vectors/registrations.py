"""Registration."""

from collections.abc import Iterator

from relaycast.vectors.broadcaster_vector import BroadcasterVector
from relaycast.vectors.sequence import Sequence
from relaycast.vectors.vector import scenario


def vectors(seed: int) -> Iterator[BroadcasterVector]:
    """Yield the vectors."""
    del seed
    there = Sequence()
    there.register(2_000)
    yield there.vector(
        "register/public",
        "the deposit is held, the manager stored",
        scenario("Publisher Registration / Public parachain registration"),
    )
