"""The nodes that a subscriber keeps under ``max_cached_bytes``: those nearest to the roots, in equal shares.

Every followed publisher has the same share of the limit, so no publisher's trie evicts another's nodes. A publisher's
nodes are kept by the number of nibbles above them, fewest first, then by prefix. If they do not all fit, the first
node left out is the *cut*: nothing from there on is kept until the nodes are counted again. A node that is not kept is
proven and delivered again whenever a change leads there; no update is lost.

Sizes and cuts are stored only under a limit. When a limit is lowered, or a share shrinks because another publisher is
followed, a publisher's nodes are evicted at its next change; until then no new node is kept.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from relaycast_pallets.subscriber.node_cache import PublisherCache, marked_placements, net_moves
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.walk import Placement
from relaycast_xcm.primitives import ParaId

SPARE = 8
"""When nodes are left out, 1/SPARE of a share stays free, so that a growing trie is seldom counted again."""

Sizes = dict[ParaId, "CachedSize"]


class CachedSize(NamedTuple):
    """The cached nodes of one publisher: ``size`` bytes, none at the nibbles ``cut`` or beyond."""

    size: int = 0
    cut: bytes | None = None

    def keeps(self, prefix: bytes) -> bool:
        """Return whether a node at ``prefix`` is before the cut."""
        return self.cut is None or _place(prefix) < _place(self.cut)


class SizedNodes(Protocol):
    """The part of the pallet's storage that a limit reads and writes."""

    def cached_sizes_or_counted(self) -> Sizes: ...

    def put_cached_sizes(self, sizes: Mapping[ParaId, CachedSize]) -> None: ...

    def drop_cached_sizes(self) -> None: ...


class CacheLimit:
    """A limit of ``max_bytes`` over ``followed`` publishers during one block; storage is read on first use.

    ``begin``, then one call of ``moved``, ``marked`` or ``admitted`` for each publisher in turn, then ``store``.
    """

    def __init__(self, max_bytes: int, followed: int, storage: SizedNodes) -> None:
        self.max_bytes = max_bytes
        self.share = max_bytes // max(1, followed)
        self._storage = storage
        self._sizes: Sizes | None = None

    @property
    def sizes(self) -> Sizes:
        """The cached nodes by publisher."""
        if self._sizes is None:
            self._sizes = self._storage.cached_sizes_or_counted()
        return self._sizes

    def of(self, publisher: ParaId) -> CachedSize:
        return self.sizes.get(publisher, CachedSize())

    def room(self, publisher: ParaId) -> int:
        """Return the bytes that a publisher's nodes may take: its share, or what the others leave of it."""
        others = sum(it.size for known, it in self.sizes.items() if known != publisher)
        return max(0, min(self.share, self.max_bytes - others))

    def begin(self, views: Mapping[ParaId, PublisherView], gone: Iterable[ParaId]) -> None:
        """Forget caches that are dropped whole: of ``gone`` child tries, and of subscriptions that lost keys."""
        cleared = {para_id for para_id, view in views.items() if view.change is SubscriptionChange.REMOVED}
        for publisher in cleared.union(gone):
            self.sizes.pop(publisher, None)

    def moved(
        self,
        view: PublisherView,
        gained: Collection[Placement],
        lost: Collection[Placement],
        *,
        new: Mapping[bytes, bytes],
        old: Mapping[bytes, bytes],
    ) -> PublisherCache | None:
        """Return the changes from the places gained and lost, ``None`` if the nodes have to be counted again.

        ``new`` are nodes by hash from the proof, ``old`` those from the cache.
        """
        publisher, known, room = view.para_id, self.of(view.para_id), self.room(view.para_id)
        inserted = {it: new[it] for prefix, it in gained if it in new and known.keeps(prefix)}
        came = [it for it in gained if it[1] in inserted or it[1] not in new]
        cache = PublisherCache.moved(net_moves(came, lost), view.shared_nodes(), inserted)
        size = known.size + _bytes(cache.insert.values()) - _bytes(old[it] for it in cache.remove)
        if size > room or (known.cut is not None and 2 * size <= room):
            return None
        self.sizes[publisher] = CachedSize(size, known.cut)
        return cache

    def marked(
        self, view: PublisherView, root: bytes, new: Mapping[bytes, bytes], keeps: Callable[[bytes], bool]
    ) -> PublisherCache:
        """Return the changes that keep the nodes nearest to ``root``; counting them reads all stored nodes.

        A ``new`` node that the policy does not keep is still followed to its children.
        """
        stored = view.cached_nodes()
        known = {**stored, **new}
        placements = marked_placements(view.subscribed, root, known)
        admitted = {node_hash: data for node_hash, data in known.items() if keeps(data)}
        kept, cut = nearest(placements, admitted, self.room(view.para_id))
        self.sizes[view.para_id] = CachedSize(_bytes(kept.values()), cut)
        return PublisherCache.exactly((it for it in placements if it[1] in kept), kept, stored)

    def admitted(self, view: PublisherView, cache: PublisherCache, gained: Iterable[Placement]) -> PublisherCache:
        """Return the changes of an interrupted pass: new nodes as far as there is room; none is removed for them."""
        publisher, known, room = view.para_id, self.of(view.para_id), self.room(view.para_id)
        stored = view.cached_nodes() if cache.remove else {}
        size, cut, inserted = known.size - _bytes(stored[it] for it in cache.remove), known.cut, dict[bytes, bytes]()
        for prefix, node_hash in sorted(gained, key=lambda placement: _place(placement[0])):
            data = cache.insert.get(node_hash)
            if data is None or node_hash in inserted:
                continue
            if not known.keeps(prefix) or size + len(data) > room:
                cut = prefix
                break
            inserted[node_hash] = data
            size += len(data)
        self.sizes[publisher] = CachedSize(size, cut)
        return PublisherCache(inserted, cache.remove, cache.shared)

    def store(self, followed: Collection[ParaId]) -> None:
        """Write the sizes; a publisher that is not ``followed`` is left out once none of its nodes are kept."""
        if self._sizes is not None:
            kept = {publisher: it for publisher, it in self._sizes.items() if it.size or publisher in followed}
            self._storage.put_cached_sizes({publisher: it for publisher, it in kept.items() if it != CachedSize()})


class SettlesCache(Protocol):
    """The result of a pass for one publisher, as its cache needs it."""

    @property
    def para_id(self) -> ParaId: ...

    @property
    def root(self) -> bytes | None: ...

    def settle(self) -> None: ...


def settle_caches(
    changes: Sequence[SettlesCache],
    views: Mapping[ParaId, PublisherView],
    limit: CacheLimit | None,
    storage: SizedNodes,
) -> None:
    """Compute the changes of every publisher's cache; writes the sizes and nothing else of the pass."""
    if limit is None:
        storage.drop_cached_sizes()
    else:
        limit.begin(views, (change.para_id for change in changes if change.root is None))
    for change in changes:
        change.settle()
    if limit is not None:
        limit.store(views)


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


def _place(prefix: bytes) -> tuple[int, bytes]:
    return len(prefix), prefix


def _bytes(nodes: Iterable[bytes]) -> int:
    return sum(map(len, nodes))
