"""The vectors of XCM: messages as bytes, barriers and the executor."""

from collections.abc import Iterable

from relaycast.vectors.vector_kind import VectorKind
from relaycast.vectors.xcm import xcm_barriers, xcm_executions, xcm_messages
from relaycast.vectors.xcm.xcm_run import recomputed
from relaycast.vectors.xcm.xcm_vector import XcmVector


def made(seed: int) -> Iterable[tuple[str, XcmVector]]:
    """Yield every vector with the name of its file."""
    for name, module in (("messages", xcm_messages), ("barriers", xcm_barriers), ("executions", xcm_executions)):
        for vector in module.vectors(seed):
            yield name, recomputed(vector)


XCM = VectorKind("xcm", XcmVector, made, recomputed)
