"""The nodes that stay on chain: exactly the structure on the current paths of the subscribed keys, no values.

A node is kept by its hash, and the same node may stand at several places (two keys with equal ends): it goes when
the last of its places goes. Places are counted; only counts above one need to be stored.

After a pass the structure is marked, and the rest is swept. A publisher that changes faster than the budget follows is
never done, so its cache is swept on the way, once in a round of its keys.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.result import ProofProcessingResult, PublisherChange
from relaycast_pallets.subscriber.storage import CachedNodes, ProcessedRoots, SubscriberStorage
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_pallets.subscriber.walk import Placement
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.paths import descend
from relaycast_xcm.primitives import ParaId


class PublisherCache(Struct):
    """Changes of one publisher's cache; ``shared`` are the hashes with several places afterwards, with their counts.

    ``shared`` is ``None`` where the counts stay as they are.
    """

    insert: dict[bytes, bytes] = field(default_factory=dict)
    remove: set[bytes] = field(default_factory=set)
    shared: dict[bytes, int] | None = None

    @classmethod
    def moved(
        cls, moved: Mapping[bytes, int], shared: Mapping[bytes, int], new: dict[bytes, bytes]
    ) -> "PublisherCache":
        """Return the changes when ``moved`` places came (or went, below zero), given the counts above one before."""
        after = dict(shared)
        cache = cls()
        for node_hash, difference in moved.items():
            count = difference if node_hash in new else shared.get(node_hash, 1) + difference
            after.pop(node_hash, None)
            if count <= 0:
                cache.remove.add(node_hash)
            elif count > 1:
                after[node_hash] = count
        cache.insert = {node_hash: data for node_hash, data in new.items() if node_hash not in cache.remove}
        cache.remove -= new.keys()
        cache.shared = after if after != shared else None
        return cache

    @classmethod
    def exactly(
        cls, placements: Iterable[Placement], nodes: Mapping[bytes, bytes], stored: Iterable[bytes]
    ) -> "PublisherCache":
        """Return the changes that leave the nodes at ``placements``, as far as ``nodes`` has them, and nothing else."""
        counts = Counter(node_hash for _, node_hash in placements)
        before = set(stored)
        return cls(
            insert={
                node_hash: nodes[node_hash] for node_hash in counts if node_hash in nodes and node_hash not in before
            },
            remove={node_hash for node_hash in before if node_hash not in counts or node_hash not in nodes},
            shared={node_hash: count for node_hash, count in counts.items() if count > 1 and node_hash in nodes},
        )


class NodeCache:
    """How a subscriber keeps nodes. A variant overrides some of these methods; the others know nothing of it."""

    def __init__(self, storage: SubscriberStorage, policies: Policies) -> None:
        self.storage = storage
        self.policies = policies

    def nodes_of(self, para_id: ParaId) -> CachedNodes:
        """Return the cached nodes of a publisher, as they are in its trie."""
        return self.storage.cache_of(para_id)

    def view(self, view: PublisherView) -> PublisherView:
        """Return a publisher with the cache that counts for the next pass."""
        return view

    def is_waiting(self, _view: PublisherView, _change: PublisherChange | None) -> bool:
        """Return whether nodes of a publisher have to go before it can be followed anew."""
        return False

    def changes(self, result: ProofProcessingResult) -> dict[ParaId, PublisherCache]:
        """Return what becomes of each publisher's cache after a pass; writes no node."""
        self.storage.drop_cached_sizes()
        return {change.para_id: self.change(change, result.plan.views[change.para_id]) for change in result.changes}

    def change(self, change: PublisherChange, view: PublisherView) -> PublisherCache:
        """Return what becomes of one publisher's cache: mark and sweep."""
        if change.root is None or change.disabled_by is not None:
            return PublisherCache()
        return self.swept(change, view, change.root) if change.finished else self.interrupted(change, view)

    def swept(self, change: PublisherChange, view: PublisherView, root: bytes) -> PublisherCache:
        """Return the changes that leave exactly the structure of the subscribed paths in the cache.

        What came and what went is enough where every key was compared with the one old trie and all of that was in
        sight. Otherwise all subscribed paths are marked anew.
        """
        kept = self.kept(change.nodes)
        if is_settled(change, view) and not change.unseen and len(kept) == len(change.nodes):
            return PublisherCache.moved(change.placements.moved(), view.cache.shared(), kept)
        stored = view.cache.all()
        known = stored | change.nodes
        placements = marked_placements(view.subscribed, root, known)
        return PublisherCache.exactly(placements, self.kept(known), stored)

    def interrupted(self, change: PublisherChange, view: PublisherView) -> PublisherCache:
        """Return what was read, to be added; once in a round of the keys, also drop what no key needs.

        What was just read stays, and what is on the path of each key in the trie that it was last processed against.
        """
        cache = PublisherCache(insert=self.kept(change.nodes))
        if view.processed_roots is not None and not 0 < change.began_at < change.stopped_at:
            stored = view.cache.all()  # none of these is new: a node is looked for in the cache first
            cache.remove = stored.keys() - marked_by_root(change.processed_roots, stored | change.nodes)
        return cache

    def kept(self, nodes: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return those of the ``nodes`` that the policy keeps."""
        keeps = self.policies.cache.keeps
        return {node_hash: data for node_hash, data in nodes.items() if keeps(data)}

    def write(self, para_id: ParaId, cache: PublisherCache) -> None:
        """Write the changes of a publisher's cache."""
        self.storage.cache_of(para_id).change(sorted(cache.remove), cache.insert)
        if cache.shared:
            self.storage.shared_trie_nodes.insert(para_id, cache.shared)
        elif cache.shared is not None:
            self.storage.shared_trie_nodes.remove(para_id)

    def drop(self, para_id: ParaId) -> None:
        """Drop the cache of a publisher that lost its trie or some of its keys."""
        self.storage.clear_cache(para_id)

    def clear(self, para_id: ParaId) -> None:
        """Remove the cache of a publisher on request."""
        self.storage.clear_cache(para_id)
        self.storage.drop_cached_sizes()

    def forget_root(self, para_id: ParaId) -> None:
        """Forget a publisher's root, so that its keys are processed anew."""
        self.storage.forget_root(para_id)


def is_settled(change: PublisherChange, view: PublisherView) -> bool:
    """Return whether all keys were compared with the one trie that the cache has the structure of."""
    return view.root is not None and view.processed_roots is None and change.is_compared


def marked_placements(subscribed: SubscribedPaths, root: bytes, nodes: Mapping[bytes, bytes]) -> set[Placement]:
    """Return every place of a node with a hash on the paths of the subscribed keys, as far as ``nodes`` reach."""
    paths = sorted(subscribed.paths)
    return {
        (paths[low][:depth], reference)
        for reference, _, _, depth, low, _, _, _ in descend(paths, root, nodes)
        if len(reference) == HASH_LENGTH
    }


def marked_by_root(processed: ProcessedRoots, nodes: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the hashes of the nodes on the path of each key in its processed trie, as far as ``nodes`` reach."""
    keys_at: dict[bytes, list[SubscribedKey]] = {}
    for key, root in processed.items():
        if root is not None:
            keys_at.setdefault(root, []).append(key)
    return {
        node_hash
        for root, keys in keys_at.items()
        for _, node_hash in marked_placements(SubscribedPaths.of(keys), root, nodes)
    }


class DeliveryRecord:
    """What a subscriber remembers of deliveries: nothing. A variant overrides these methods."""

    def __init__(self, storage: SubscriberStorage) -> None:
        self.storage = storage

    def view(self, view: PublisherView) -> PublisherView:
        """Return a publisher with the keys whose deletion is to be reported."""
        return view

    def note(self, result: ProofProcessingResult) -> None:
        """Write what a pass delivers, before the rest of the pass is written."""

    def forget(self, para_id: ParaId) -> None:
        """Forget a publisher that is processed anew."""
        self.storage.forget_publisher(para_id)

    def leave(self, para_id: ParaId) -> None:
        """Forget a publisher that is no longer subscribed to."""
        self.storage.forget_publisher(para_id)
