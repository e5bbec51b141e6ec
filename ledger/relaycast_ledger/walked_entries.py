"""What the account of a block says of the nodes of a large walk, in arrays: ``accounting`` is its law.

Only what was walked in arrays in one go is entered so, with the whole old trie in sight.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from relaycast_pallets.subscriber.array_walk import SOURCES, ArrayPlacements, WalkedReads
from relaycast_pallets.subscriber.result import ReadSource
from relaycast_trie.array import side_by_side as arrays

CAUSES = ("new", "changed", "cached")

Totals = tuple[int, int]
"""A number of nodes, and their bytes."""


class WalkedEntries(Struct, frozen=True):
    """Nodes by the first key that each counts with, their bytes, and their cause as ``CAUSES`` number it."""

    reads: WalkedReads
    causes: npt.NDArray[Any]
    keys: npt.NDArray[Any]
    sizes: npt.NDArray[Any]
    sibling_bytes: int

    @classmethod
    def of(cls, reads: WalkedReads, placements: ArrayPlacements) -> "WalkedEntries":
        """Return the entries of one walk."""
        ((_, _, (gained, lost), _),) = placements.columns
        what, number = reads.rows[:, 0], reads.rows[:, 1]
        is_node, is_cached = (what == SOURCES.index(it) for it in (ReadSource.RELAY_NODE, ReadSource.CACHED_NODE))
        places = np.zeros(len(what), np.int64)
        nodes = number[is_node]
        places[is_node] = arrays.first_places(gained, arrays.GIVEN, len(reads.given))[nodes]
        came, went = (arrays.first_places(placed, arrays.KEPT, len(reads.hashes[1])) for placed in (gained, lost))
        kept = number[is_cached]
        places[is_cached] = np.where(came[kept] < arrays.PLACE_OF_NONE, came[kept], went[kept])
        causes = np.where(is_cached, CAUSES.index("cached"), np.isin(places, lost[:, 0] << 7 | lost[:, 1]))
        counts = is_node | is_cached
        aside = arrays.bytes_aside(reads.keys, reads.given, places[is_node], nodes)
        return cls(reads, causes[counts], places[counts] >> 7, reads.sizes[counts], aside)

    @property
    def weight(self) -> Totals:
        """What all reads of the walk weigh: picoseconds, and bytes."""
        prices, what = self.reads.charges.prices, self.reads.rows[:, 0]
        ref_time, proof_size = prices[what, np.minimum(self.reads.sizes, prices.shape[1] - 1)].sum(0).tolist()
        return ref_time, proof_size

    def totals(self) -> dict[str, Totals]:
        """Return the totals by cause."""
        nodes = np.bincount(self.causes, minlength=len(CAUSES)).tolist()
        node_bytes = np.bincount(self.causes, self.sizes, len(CAUSES)).astype(np.int64).tolist()
        return {cause: (nodes[at], node_bytes[at]) for at, cause in enumerate(CAUSES) if nodes[at]}

    def by_key(self) -> dict[tuple[int, str], Totals]:
        """Return the totals by the number of the key and by cause."""
        places, found = np.unique(self.keys * len(CAUSES) + self.causes, return_inverse=True)
        nodes, node_bytes = np.bincount(found).tolist(), np.bincount(found, self.sizes).astype(np.int64).tolist()
        return {
            (place // len(CAUSES), CAUSES[place % len(CAUSES)]): it
            for place, it in zip(places.tolist(), zip(nodes, node_bytes, strict=True), strict=True)
        }
