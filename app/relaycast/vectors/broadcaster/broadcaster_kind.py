"""The broadcaster's vectors: every scenario and refusal of the pallet, its limits, expiry and random sequences."""

from collections.abc import Iterable

from relaycast.vectors.broadcaster import broadcaster_histories, deletions, expirations, publications, registrations
from relaycast.vectors.broadcaster.broadcaster_run import recomputed
from relaycast.vectors.broadcaster.broadcaster_vector import BroadcasterVector
from relaycast.vectors.vector_kind import VectorKind

_FILES = {
    "registration": registrations,
    "publication": publications,
    "deletion": deletions,
    "expiry": expirations,
    "histories": broadcaster_histories,
}


def made(seed: int) -> Iterable[tuple[str, BroadcasterVector]]:
    """Yield every vector with the name of its file."""
    for name, module in _FILES.items():
        for vector in module.vectors(seed):
            yield name, vector


BROADCASTER = VectorKind("broadcaster", BroadcasterVector, made, recomputed)
