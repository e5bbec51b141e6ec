"""Where all served chains stood, for as long as their blocks are kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from relaycast_node.block_time import BlockTime
from relaycast_node.timeline import ChainId, TimelinePoint


@dataclass(frozen=True, slots=True)
class ChainsSnapshot:
    """Where all chains stood: ``finalized`` are the numbers of their finalized blocks, ``waiting`` their pools."""

    moment: TimelinePoint
    finalized: Mapping[ChainId, int]
    waiting: Mapping[ChainId, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class LastTick:
    """The state after a tick, which is restored if the next tick fails.

    ``heads`` are the newest blocks, ``bans`` those of the pools. Chains that cannot be rolled back have no ``moment``.
    """

    moment: TimelinePoint | None
    heads: Mapping[ChainId, bytes]
    finalized: Mapping[ChainId, int]
    waiting: Mapping[ChainId, tuple[bytes, ...]]
    bans: Mapping[ChainId, Mapping[bytes, float]]
    snapshots: Mapping[int, ChainsSnapshot | None]
    snapshot_count: int
    block_time: BlockTime
