"""Where all served chains stood, for as long as their blocks are kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from relaycast_node.timeline import ChainId, TimelinePoint


@dataclass(frozen=True, slots=True)
class ChainsSnapshot:
    """Where all chains stood: ``finalized`` are the numbers of their finalized blocks, ``waiting`` their pools."""

    moment: TimelinePoint
    finalized: Mapping[ChainId, int]
    waiting: Mapping[ChainId, tuple[bytes, ...]]
