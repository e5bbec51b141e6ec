"""Every kind of vector that the suite holds, in the order of its folders."""

from relaycast.vectors.broadcaster import BROADCASTER
from relaycast.vectors.proofs import PROOFS
from relaycast.vectors.vector_kind import VectorKind
from relaycast.vectors.xcm import XCM

KINDS: tuple[VectorKind, ...] = (BROADCASTER, XCM, PROOFS)
