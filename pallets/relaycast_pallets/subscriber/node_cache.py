"""The nodes that stay on chain: exactly the structure on the current paths of the subscribed keys, no values.

A node is kept by its hash, and the same node may stand at several places (two keys with equal ends): it goes when
the last of its places goes. Places are counted; only counts above one need to be stored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from relaycast_pallets.subscriber.plan import Bases
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_pallets.subscriber.walk import Placement
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.paths import descend


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


def net_moves(gained: Iterable[Placement], lost: Iterable[Placement]) -> dict[bytes, int]:
    """Return how many places of each node came, less those that went."""
    moved: dict[bytes, int] = {}
    for _, node_hash in gained:
        moved[node_hash] = moved.get(node_hash, 0) + 1
    for _, node_hash in lost:
        moved[node_hash] = moved.get(node_hash, 0) - 1
    return moved


def marked_placements(subscribed: SubscribedPaths, root: bytes, nodes: Mapping[bytes, bytes]) -> set[Placement]:
    """Return every place of a node with a hash on the paths of the subscribed keys, as far as ``nodes`` reach."""
    paths = sorted(subscribed.paths)
    return {
        (paths[low][:depth], reference)
        for reference, _, _, depth, low, _, _, _ in descend(paths, root, nodes)
        if len(reference) == HASH_LENGTH
    }


def marked_by_base(bases: Bases, nodes: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the hashes of all nodes on the path of each key in the trie of its own base, as far as ``nodes`` reach."""
    keys_at: dict[bytes, list[SubscribedKey]] = {}
    for key, base in bases.items():
        if base is not None:
            keys_at.setdefault(base, []).append(key)
    return {
        node_hash
        for base, keys in keys_at.items()
        for _, node_hash in marked_placements(SubscribedPaths.of(keys), base, nodes)
    }
