"""Migrations of the subscriber's storage at a runtime upgrade, before the first block of the new code reads it.

Most constants and policies may change between two blocks, even while a pass is interrupted: what is stored does not
depend on them. Three changes need a migration:

* Metering ``carried`` stores each cached node with its uses, the others store plain nodes and count those that stand
  at several places. Nodes are rewritten. Under ``carried`` any change of the kept nodes makes uses be counted again.
* A root that ``after-first-key`` stored may stand for keys that were never dealt with. Storage does not say which, so
  all roots are forgotten, and every subscribed value is delivered once more.
* Policy ``told`` needs a record of the delivered keys. After ``silent``, keys that were dealt with count as delivered;
  a change to ``silent`` removes the record.
"""

from collections import Counter
from collections.abc import Mapping

from relaycast_pallets.subscriber.node_cache import marked_placements
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_pallets.subscriber.variants.deletions import migrate_delivered
from relaycast_pallets.subscriber.variants.metered_state import uses_of, with_uses, without_uses
from relaycast_xcm.primitives import ParaId, Weight

Nodes = dict[bytes, bytes]
"""Nodes by their hash."""

Groups = list[tuple[SubscribedPaths, bytes]]
"""Subscribed keys of one publisher by the root that they were last dealt with against."""


def migrate(subscriber: Subscriber, before: Policies) -> Weight:
    """Migrate storage from the policies ``before`` to those of ``subscriber``; return the weight.

    The weight is one read and one write for each cached node of each publisher; no limit bounds it.
    """
    storage, after = subscriber.storage, subscriber.policies
    accesses = _migrate_nodes(storage, before, after) if _moves_nodes(before, after) else 0
    notified_before, notifies = before.deletion.notifies, after.deletion.notifies
    accesses += migrate_delivered(storage, notified_before=notified_before, notifies=notifies)
    if after.root_commit.keeps_updates and not before.root_commit.keeps_updates:
        accesses += _forget_roots(storage)
    return subscriber.config.db_weight.reads_writes(accesses, accesses)


def _moves_nodes(before: Policies, after: Policies) -> bool:
    """Return whether the form of cached nodes changes, or whether their uses may be wrong."""
    counted = after.metering.charges_own_state
    return before.metering.charges_own_state != counted or (counted and _kept_by(before) != _kept_by(after))


def _kept_by(policies: Policies) -> tuple[object, ...]:
    """Return the policies that decide which nodes are kept, and whose uses are counted."""
    return policies.root_commit, policies.callback, policies.cache


def _migrate_nodes(storage: SubscriberStorage, before: Policies, after: Policies) -> int:
    """Rewrite the cached nodes of all publishers, followed or not, and return how many there are."""
    storage.drop_cached_sizes()
    stored: dict[ParaId, Nodes] = {}
    for para_id, node_hash, data in storage.cached_trie_nodes.items():
        stored.setdefault(para_id, {})[node_hash] = data
    for para_id, found in stored.items():
        counted = before.metering.charges_own_state
        nodes = {node_hash: without_uses(data) for node_hash, data in found.items()} if counted else found
        dealt_with = _dealt_with(storage, para_id)
        if after.metering.charges_own_state:
            wanted = _counted(nodes, dealt_with)
            storage.shared_trie_nodes.remove(para_id)
        else:
            wanted = nodes
            _count_places(storage, para_id, nodes, dealt_with)
        _rewrite(storage, para_id, found, wanted)
    return sum(map(len, stored.values()))


def _dealt_with(storage: SubscriberStorage, para_id: ParaId) -> Groups | None:
    """Return which keys were dealt with against which root, ``None`` where no root is remembered of the publisher."""
    keys = storage.subscribed_keys.get(para_id) or ()
    root, processed = storage.previous_roots().get(para_id), storage.processed_roots(para_id, keys)
    if root is None and processed is None:
        return None
    by_root: dict[bytes, list[SubscribedKey]] = {}
    for key in keys:
        base = root if processed is None else processed.get(key, root)
        if base is not None:
            by_root.setdefault(base, []).append(key)
    return [(SubscribedPaths.of(group), base) for base, group in by_root.items()]


def _counted(nodes: Nodes, dealt_with: Groups | None) -> Nodes:
    """Return nodes with their uses, without those on no path: no pass would ever remove them.

    Without a remembered root all nodes stay, until a pass or a call removes them.
    """
    if dealt_with is None:
        return {node_hash: with_uses(data, 0) for node_hash, data in nodes.items()}
    uses = uses_of(dealt_with, nodes)
    return {node_hash: with_uses(data, uses[node_hash]) for node_hash, data in nodes.items() if uses[node_hash]}


def _count_places(storage: SubscriberStorage, para_id: ParaId, nodes: Nodes, dealt_with: Groups | None) -> None:
    """Remember which plain nodes stand at several places, where all keys were dealt with against one root.

    Elsewhere a pass counts them anew, and sweeps, before it relies on them.
    """
    if dealt_with is None or len(dealt_with) != 1:
        return
    counts = Counter(node_hash for _, node_hash in marked_placements(*dealt_with[0], nodes) if node_hash in nodes)
    shared = {node_hash: count for node_hash, count in counts.items() if count > 1}
    if shared:
        storage.shared_trie_nodes.insert(para_id, shared)


def _rewrite(storage: SubscriberStorage, para_id: ParaId, stored: Mapping[bytes, bytes], wanted: Nodes) -> None:
    for node_hash in sorted(stored.keys() - wanted.keys()):
        storage.cached_trie_nodes.remove(para_id, node_hash)
    for node_hash, data in sorted(wanted.items()):
        if stored[node_hash] != data:
            storage.cached_trie_nodes.insert(para_id, node_hash, data)


def _forget_roots(storage: SubscriberStorage) -> int:
    """Forget the roots of all publishers; return the number of publishers."""
    followed = sorted(storage.digests())
    for para_id in followed:
        storage.forget_root(para_id)
    return len(followed)
