"""Every kind of vector that the suite holds, in the order of its folders."""

from relaycast.vectors.broadcaster.broadcaster_kind import BROADCASTER
from relaycast.vectors.proofs.proofs_kind import PROOFS
from relaycast.vectors.subscriber.subscriber_kind import SUBSCRIBER
from relaycast.vectors.vector_kind import VectorKind
from relaycast.vectors.xcm.xcm_kind import XCM

KINDS: tuple[VectorKind, ...] = (SUBSCRIBER, BROADCASTER, XCM, PROOFS)
