"""The nodes that a subscriber keeps under ``max_cached_bytes``: those nearest to the roots, in equal shares.

Every followed publisher has the same share of the limit, so no publisher's trie evicts another's nodes. A publisher's
nodes are kept by the number of nibbles above them, fewest first, then by prefix. If they do not all fit, the first
node left out is the *cut*: nothing from there on is kept until the nodes are counted again. A node that is not kept is
proven and delivered again whenever a change leads there; no update is lost.

Sizes and cuts are stored only under a limit. When a limit is lowered, or a share shrinks because another publisher is
followed, a publisher's nodes are evicted at its next change; until then no new node is kept.
"""

from collections.abc import Collection, Iterable, Mapping

from relaycast_pallets.subscriber.node_cache import (
    NodeCache,
    PublisherCache,
    is_settled,
    marked_placements,
)
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.result import ProofProcessingResult, PublisherChange
from relaycast_pallets.subscriber.storage import CachedSize, SubscriberStorage
from relaycast_pallets.subscriber.walk import Placement, Placements
from relaycast_xcm.primitives import ParaId

SPARE = 8
"""When nodes are left out, 1/SPARE of a share stays free, so that a growing trie is seldom counted again."""


class CacheLimit(NodeCache):
    """Keeps nodes within ``max_bytes`` over ``followed`` publishers during one block; reads sizes on first use."""

    def __init__(self, storage: SubscriberStorage, policies: Policies, max_bytes: int, followed: int) -> None:
        super().__init__(storage, policies)
        self.max_bytes = max_bytes
        self.share = max_bytes // max(1, followed)
        self._sizes: dict[ParaId, CachedSize] | None = None

    @property
    def sizes(self) -> dict[ParaId, CachedSize]:
        """The cached nodes by publisher."""
        if self._sizes is None:
            self._sizes = self.storage.cached_sizes_or_counted()
        return self._sizes

    def of(self, publisher: ParaId) -> CachedSize:
        return self.sizes.get(publisher, CachedSize())

    def room(self, publisher: ParaId) -> int:
        """Return the bytes that a publisher's nodes may take: its share, or what the others leave of it."""
        others = sum(it.size for known, it in self.sizes.items() if known != publisher)
        return max(0, min(self.share, self.max_bytes - others))

    def changes(self, result: ProofProcessingResult) -> dict[ParaId, PublisherCache]:
        """Return what becomes of each publisher's cache after a pass; writes the sizes and no node."""
        views = result.plan.views
        self.begin(views, (change.para_id for change in result.changes if change.root is None))
        changes = {change.para_id: self.change(change, views[change.para_id]) for change in result.changes}
        if self._sizes is not None:
            kept = {publisher: it for publisher, it in self._sizes.items() if it.size or publisher in views}
            self.storage.put_cached_sizes({publisher: it for publisher, it in kept.items() if it != CachedSize()})
        return changes

    def begin(self, views: Mapping[ParaId, PublisherView], gone: Iterable[ParaId]) -> None:
        """Forget caches that are dropped whole: of ``gone`` child tries, and of subscriptions that lost keys."""
        cleared = {para_id for para_id, view in views.items() if view.change is SubscriptionChange.REMOVED}
        for publisher in cleared.union(gone):
            self.sizes.pop(publisher, None)

    def swept(self, change: PublisherChange, view: PublisherView, root: bytes) -> PublisherCache:
        """Return the changes that keep as much of the structure as fits.

        Nodes that an earlier block left out are not in the cache, and so unseen in the old trie.
        """
        kept = self.kept(change.nodes)
        if is_settled(change, view) and len(kept) == len(change.nodes):
            cache = self.moved(change, view)
            if cache is not None:
                return cache
        return self.marked(change, view, root)

    def moved(self, change: PublisherChange, view: PublisherView) -> PublisherCache | None:
        """Return the changes from the places gained and lost, ``None`` if the nodes have to be counted again."""
        publisher, new, old = view.para_id, change.nodes, change.cached
        known, room = self.of(publisher), self.room(publisher)
        inserted = {it: new[it] for prefix, it in change.gained if it in new and _keeps(known, prefix)}
        known_moves = Placements()
        known_moves.gained = {it for it in change.gained if it[1] in inserted or it[1] not in new}
        known_moves.lost = {placement for placement in change.lost if placement[1] in old}
        cache = PublisherCache.moved(known_moves.moved(), view.cache.shared(), inserted)
        size = known.size + _bytes(cache.insert.values()) - _bytes(old[it] for it in cache.remove)
        if size > room or (known.cut is not None and 2 * size <= room):
            return None
        self.sizes[publisher] = CachedSize(size, known.cut)
        return cache

    def marked(self, change: PublisherChange, view: PublisherView, root: bytes) -> PublisherCache:
        """Return the changes that keep the nodes nearest to ``root``; counting them reads all stored nodes.

        A new node that the policy does not keep is still followed to its children.
        """
        stored = view.cache.all()
        known = {**stored, **change.nodes}
        placements = marked_placements(view.subscribed, root, known)
        kept, cut = nearest(placements, self.kept(known), self.room(view.para_id))
        self.sizes[view.para_id] = CachedSize(_bytes(kept.values()), cut)
        return PublisherCache.exactly((it for it in placements if it[1] in kept), kept, stored)

    def interrupted(self, change: PublisherChange, view: PublisherView) -> PublisherCache:
        """Return the changes of an interrupted pass: new nodes as far as there is room; none is removed for them."""
        cache, publisher = super().interrupted(change, view), view.para_id
        known, room = self.of(publisher), self.room(publisher)
        stored = view.cache.all() if cache.remove else {}
        size, cut, inserted = known.size - _bytes(stored[it] for it in cache.remove), known.cut, dict[bytes, bytes]()
        for prefix, node_hash in sorted(change.gained, key=lambda placement: _place(placement[0])):
            data = cache.insert.get(node_hash)
            if data is None or node_hash in inserted:
                continue
            if not _keeps(known, prefix) or size + len(data) > room:
                cut = prefix
                break
            inserted[node_hash] = data
            size += len(data)
        self.sizes[publisher] = CachedSize(size, cut)
        return PublisherCache(inserted, cache.remove, cache.shared)

    def clear(self, para_id: ParaId) -> None:
        """Remove the cache of a publisher on request."""
        self.storage.clear_cache(para_id)
        self.storage.forget_cached_size(para_id)


def nearest(
    placements: Collection[Placement], nodes: Mapping[bytes, bytes], room: int
) -> tuple[dict[bytes, bytes], bytes | None]:
    """Return the ``nodes`` to keep within ``room`` bytes, nearest to the root first, and the cut if any is left out."""
    placed = {node_hash for _, node_hash in placements if node_hash in nodes}
    if sum(len(nodes[node_hash]) for node_hash in placed) <= room:
        return {node_hash: nodes[node_hash] for node_hash in placed}, None
    kept, left = dict[bytes, bytes](), room - room // SPARE
    for prefix, node_hash in sorted(placements, key=lambda placement: _place(placement[0])):
        data = nodes.get(node_hash)
        if data is None or node_hash in kept:
            continue
        left -= len(data)
        if left < 0:
            return kept, prefix
        kept[node_hash] = data
    return kept, None


def _keeps(known: CachedSize, prefix: bytes) -> bool:
    """Return whether a node at ``prefix`` is before the cut."""
    return known.cut is None or _place(prefix) < _place(known.cut)


def _place(prefix: bytes) -> tuple[int, bytes]:
    return len(prefix), prefix


def _bytes(nodes: Iterable[bytes]) -> int:
    return sum(map(len, nodes))
