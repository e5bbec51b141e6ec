"""Wrong limits of the cache, each with a law that it breaks."""

from itertools import count
from typing import Any

import pytest
from msgspec import structs

from pallets.block_vectors import ALPHA
from relaycast_pallets import ProofProcessingResult
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.proof_pass import PublisherPass
from relaycast_pallets.subscriber.storage import NO_CACHED_NODES, CachedSize
from relaycast_pallets.subscriber.variants import cache_limit
from relaycast_pallets.subscriber.variants.cache_limit import CacheLimit
from relaycast_pallets.subscriber.walk import PublisherWalk, Side


def unseen_is_unchanged(patch: pytest.MonkeyPatch) -> None:
    """Where the old trie cannot be seen, nothing has changed."""
    visit = PublisherWalk._visit

    def visiting(self: PublisherWalk, low: int, high: int, new: Side, old: Side) -> None:
        if isinstance(old, tuple) and len(old[1]) == 32 and self._reads.old_node(old[1]) is None:
            self.at = high
            return
        visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", visiting)


def kept_from_the_leaves(patch: pytest.MonkeyPatch) -> None:
    """The nodes farthest from the root are kept first."""
    patch.setattr(cache_limit, "_place", lambda prefix: (-len(prefix), prefix))


def no_shares(patch: pytest.MonkeyPatch) -> None:
    """The first publisher may take all the room."""
    patch.setattr(
        CacheLimit,
        "room",
        lambda self, publisher: self.max_bytes - sum(it.size for it in self.sizes.values()) + self.of(publisher).size,
    )


def others_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A publisher that was left takes no room."""
    patch.setattr(CacheLimit, "room", lambda self, _: self.share)


def never_less(patch: pytest.MonkeyPatch) -> None:
    """Removed nodes stay counted."""
    begin = CacheLimit.begin
    patch.setattr(CacheLimit, "begin", lambda self, views, _: begin(self, views, ()))


def leaves_no_nodes_out(patch: pytest.MonkeyPatch) -> None:
    """The limit is set but not enforced."""
    patch.setattr(CacheLimit, "room", lambda self, _: 1 << 30)


def settled_when_pruned(patch: pytest.MonkeyPatch) -> None:
    """The collator writes its counts."""
    read = Subscriber.read

    def counting(self: Subscriber, *given: Any) -> ProofProcessingResult:
        self.storage.put_cached_sizes({ALPHA: CachedSize(1)})
        return read(self, *given)

    patch.setattr(Subscriber, "read", counting)


def left_out_by_the_chain_alone(patch: pytest.MonkeyPatch) -> None:
    """Every second pass, which is the one that verifies, does not find the cache."""
    make, passes = PublisherPass.__init__, count()

    def blind(self: PublisherPass, view: PublisherView, *given: Any) -> None:
        make(self, view, *given)
        if next(passes) % 2:
            self._view = structs.replace(view, cache=NO_CACHED_NODES)

    patch.setattr(PublisherPass, "__init__", blind)
