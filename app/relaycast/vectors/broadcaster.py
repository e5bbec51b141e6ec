"""The broadcaster's vectors: every scenario and refusal of the pallet, its limits, expiry and random sequences."""

from collections.abc import Iterable

from relaycast.vectors import registrations
from relaycast.vectors.broadcaster_run import recomputed
from relaycast.vectors.broadcaster_vector import BroadcasterVector
from relaycast.vectors.vector_kind import VectorKind


def made(seed: int) -> Iterable[tuple[str, BroadcasterVector]]:
    """Yield every vector with the name of its file."""
    return [("registration", vector) for vector in registrations.vectors(seed)]


BROADCASTER = VectorKind("broadcaster", BroadcasterVector, made, recomputed)
