"""Served chains between two ticks, as data: what is needed to go on, without the blocks before."""

from typing import Any

from relaycast_collator.chains import ChainsDump
from relaycast_node.block_time import BlockTime
from relaycast_node.chain.served_chain_dump import ServedChainDump
from relaycast_xcm.checkpoint import Count, Dump


class ChainClockDump(Dump, frozen=True):
    """All chains, the relay chain first in ``served``; ``workload`` is what their workload and its time dumped.

    ``snapshots`` are the numbers of those there were, of ``snapshot_count`` that were ever taken.
    """

    chains: ChainsDump
    workload: Any
    served: list[ServedChainDump]
    snapshots: list[Count]
    snapshot_count: Count
    block_time: BlockTime
