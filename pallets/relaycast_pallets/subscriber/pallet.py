"""The subscriber pallet: a parachain's copy of what it wants from publishers, kept up by relay state proofs.

The pallet asks for its keys (``relay_keys``), is given a proof, and takes over what ``process_proof`` found. Values go
to the handler, the structure of the subscribed paths goes into the cache, and the roots that were processed go into
storage.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.system import Origin, System, ensure_root
from relaycast_pallets.frame.well_known_keys import Child, RelayProofRequest
from relaycast_pallets.subscriber.cache_limit import CacheLimit, settle_caches
from relaycast_pallets.subscriber.callbacks import Delivered, deliver
from relaycast_pallets.subscriber.charges import Charges
from relaycast_pallets.subscriber.config import SubscriberConfig, ensure_cache_can_be_limited
from relaycast_pallets.subscriber.counted_nodes import CountedNodes
from relaycast_pallets.subscriber.delivered_keys import NOTHING_DELIVERED
from relaycast_pallets.subscriber.errors import (
    NoCachedNodes,
    PublisherNotDisabled,
    PublisherRootNotFound,
    SubscriptionsFixed,
    SubscriptionsFull,
    TooManySubscribedKeys,
)
from relaycast_pallets.subscriber.events import (
    CallbackBeyondLimit,
    DisableReason,
    KeyBeyondBudget,
    KeysSubscribed,
    KeysUnsubscribed,
    PublisherCacheCleared,
    PublisherDisabled,
    PublisherEnabled,
    PublisherRootCleared,
)
from relaycast_pallets.subscriber.plan import (
    NO_CACHED_NODES,
    Bases,
    CachedNodes,
    PublisherView,
    SubscriberPlan,
    SubscriptionChange,
)
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES, MeteringPolicy, Policies
from relaycast_pallets.subscriber.processing_result import ProofProcessingResult, PublisherChange
from relaycast_pallets.subscriber.publisher_walk import SubscribedPaths
from relaycast_pallets.subscriber.storage import DEALT_WITH_NONE, TRIE_DEPTH_EXCEEDED, SubscriberStorage
from relaycast_pallets.subscriber.subscription import (
    ChosenSubscriptions,
    SubscribedKey,
    SubscriptionHandler,
    by_publisher,
    ensure_hears,
    weigher_of,
)
from relaycast_pallets.subscriber.subscription_limits import ensure_subscriptions_fit, excess_with, has_room_for
from relaycast_pallets.subscriber.told_keys import delivered_keys, note_told
from relaycast_trie.hasher import blake2_256
from relaycast_xcm.primitives import BlockNumber, ParaId, Rust, Weight

__all__ = ["Delivered", "Key", "Subscriber", "SubscriberConfig"]

Key = Annotated[SubscribedKey, Rust("H256")]
"""A subscribed key in an event."""


class Subscriber:
    """The pallet over a parachain's ``system`` and state, with the parachain's own ``handler``."""

    def __init__(
        self,
        system: System,
        handler: SubscriptionHandler,
        config: SubscriberConfig | None = None,
        *,
        policies: Policies | None = None,
        clear_cache_origin: Callable[[Origin], None] = ensure_root,
    ) -> None:
        self.system = system
        self.handler = handler
        self.config = config or SubscriberConfig()
        self.policies = policies or Policies()
        ensure_subscriptions_fit(self.config, handler)
        ensure_cache_can_be_limited(self.config, self.policies)
        ensure_hears(handler, deletions=self.policies.deletion.tells)
        self.storage = SubscriberStorage(system.state)
        self.delivered = Delivered()
        self._clear_cache_origin = clear_cache_origin
        self._charges: tuple[MeteringPolicy, SubscriberConfig, Charges] | None = None
        self._declared_weight = Weight.ZERO
        self._declared: list[tuple[ParaId, tuple[SubscribedKey, ...]]] | None = None
        self._paths: dict[ParaId, SubscribedPaths] = {}
        self._request: tuple[set[ParaId], RelayProofRequest] | None = None
        self._digests: dict[ParaId, bytes] = {}

    @property
    def charges(self) -> Charges:
        """What reads weigh, by size."""
        known, metering, config = self._charges, self.policies.metering, self.config
        if known is None or known[0] is not metering or known[1] is not config:
            charges = Charges(metering, config.db_weight, config.min_weight.proof_size)
            self._charges = known = (metering, config, charges)
        return known[2]

    @property
    def subscribes(self) -> bool:
        """Whether there is anything to ask for now."""
        return bool(self._wanted())

    def relay_keys(self) -> RelayProofRequest:
        """Return one child trie key for every subscribed key of every publisher that is not disabled."""
        wanted = self._wanted()
        if self._request is None or self._request[0] != wanted.keys():
            children = ((derive_child_info(para_id).storage_key, paths.keys) for para_id, paths in wanted.items())
            request = RelayProofRequest(tuple(Child(name, key) for name, keys in children for key in keys))
            self._request = set(wanted), request
        return self._request[1]

    def plan(self) -> SubscriberPlan:
        """Return what the next pass starts from, with a changed subscription taken into account; writes nothing."""
        roots, digests = self.storage.previous_roots(), self.storage.digests()
        views = {
            para_id: self._view(para_id, paths, roots.get(para_id), digests.get(para_id))
            for para_id, paths in self._wanted().items()
        }
        cursor = self.storage.relay_proof_processing_cursor.get()
        seed = None if cursor is None else self.storage.publisher_order_seed.get()
        owed = None if cursor is None else self.storage.owed_key.get()
        return SubscriberPlan(views, cursor, seed, owed, self._declared_weight)

    def apply(self, result: ProofProcessingResult, *, relay_parent_number: BlockNumber) -> None:
        """Take over what a pass found: storage first, then the handler is called."""
        self.delivered = Delivered()
        settle_caches(result.changes, result.plan.views, result.cache_limit, self.storage)
        if self._tells_deletions:
            note_told(self.storage, result)
        self._note_subscriptions(result)
        roots = self.storage.previous_roots()
        changed: dict[ParaId, bytes] = {}
        for change in result.changes:
            self._apply_change(change, result.plan.views[change.para_id], roots, changed)
        self.storage.put_roots(self.policies.root_commit.when_complete(roots, changed))
        self.storage.put_turn(result.turn.cursor, result.turn.owed)
        if not result.is_complete:
            self.storage.publisher_order_seed.put(result.seed)
        self._tell_passed_over(result)
        for change in result.changes:
            self._deliver(change, relay_parent_number)
        self.system.meter.consume(result.plan.weight)

    def _tell_passed_over(self, result: ProofProcessingResult) -> None:
        if result.beyond_budget is None or any(change.sweeping for change in result.changes):
            return
        publisher, key = result.beyond_budget
        weigher = weigher_of(self.handler)
        if result.is_stopped_by_callbacks and weigher is not None:
            declared, limit = weigher.callback_weight(publisher, key), result.callback_limit
            self.system.deposit_event(CallbackBeyondLimit(publisher, key, declared, limit))
        else:
            self.system.deposit_event(KeyBeyondBudget(publisher, key, sum(read.size for read in result.reads)))

    def subscribe(self, origin: Origin, publisher: ParaId, keys: Sequence[SubscribedKey]) -> None:
        """Follow more keys of a publisher from the next block on.

        Root only; ``SubscriptionsFixed`` where the parachain's own code says what it follows, ``SubscriptionsFull``,
        ``TooManySubscribedKeys``.
        """
        chosen = self._chosen(origin)
        subscriptions = self.handler.subscriptions()[0]
        if not has_room_for(self.config.max_publishers, subscriptions, publisher):
            raise SubscriptionsFull(publisher)
        excess = excess_with(self.config, subscriptions, publisher, keys)
        if excess is not None:
            raise TooManySubscribedKeys(excess)

        chosen.subscribe(publisher, keys)
        self.system.deposit_event(KeysSubscribed(publisher, len(keys)))

    def unsubscribe(self, origin: Origin, publisher: ParaId, keys: Sequence[SubscribedKey]) -> None:
        """Follow these keys of a publisher no more; those that it does not follow are passed over.

        Root only; ``SubscriptionsFixed`` where the parachain's own code says what it follows.
        """
        chosen = self._chosen(origin)

        chosen.unsubscribe(publisher, set(keys))
        self.system.deposit_event(KeysUnsubscribed(publisher, len(keys)))

    def _chosen(self, origin: Origin) -> ChosenSubscriptions:
        ensure_root(origin)
        if not isinstance(self.handler, ChosenSubscriptions):
            raise SubscriptionsFixed
        return self.handler

    def clear_stored_roots(self, origin: Origin, publisher: ParaId) -> None:
        """Forget a publisher's root, so that its keys are dealt with anew. Root only; ``PublisherRootNotFound``."""
        ensure_root(origin)
        if publisher not in self.storage.previous_roots():
            raise PublisherRootNotFound(publisher)

        if self._removes_within_budget:
            self.storage.forget_publisher(publisher, keeps_delivered=self._tells_deletions)
        else:
            self.storage.forget_root(publisher)
        self.system.deposit_event(PublisherRootCleared(publisher))

    def enable_publisher(self, origin: Origin, publisher: ParaId) -> None:
        """Look at a disabled publisher again from the next block on. Root only; ``PublisherNotDisabled``."""
        ensure_root(origin)
        if publisher not in self.storage.disabled_publishers:
            raise PublisherNotDisabled(publisher)

        self.storage.disabled_publishers.remove(publisher)
        self.system.deposit_event(PublisherEnabled(publisher))

    def clear_publisher_cache(self, origin: Origin, publisher: ParaId) -> None:
        """Remove all that is kept of a publisher, nodes or not; the next proof serves the keys then subscribed anew.

        For the configured origin; ``NoCachedNodes`` when there is nothing to remove.
        """
        self._clear_cache_origin(origin)
        if not self.storage.keeps_anything_of(publisher):
            raise NoCachedNodes(publisher)

        self.storage.clear_cache(publisher)
        if self.config.max_cached_bytes is None:
            self.storage.drop_cached_sizes()  # a limit that was removed since the last block has left them
        else:
            self.storage.forget_cached_size(publisher)
        self.storage.forget_publisher(publisher, keeps_delivered=self._tells_deletions)
        self.system.deposit_event(PublisherCacheCleared(publisher))

    def _wanted(self) -> dict[ParaId, SubscribedPaths]:
        """Return the subscribed keys of every publisher that is not disabled."""
        subscriptions, self._declared_weight = self.handler.subscriptions()
        declared = [(para_id, tuple(keys)) for para_id, keys in subscriptions]
        if declared != self._declared:
            wanted = by_publisher(declared)
            self._declared, self._request = declared, None
            self._paths = {para_id: SubscribedPaths.of(keys) for para_id, keys in wanted.items()}
            self._digests = {para_id: blake2_256(b"".join(keys)) for para_id, keys in wanted.items()}
        disabled = self.storage.disabled_publishers
        return {para_id: paths for para_id, paths in self._paths.items() if para_id not in disabled}

    def _view(
        self, para_id: ParaId, subscribed: SubscribedPaths, root: bytes | None, digest: bytes | None
    ) -> PublisherView:
        delivered = NOTHING_DELIVERED
        if self._tells_deletions:
            same = digest == self._digests[para_id]
            delivered = delivered_keys(self.storage, para_id, subscribed.keys, root, are_same=same)
        change, bases = SubscriptionChange.NONE, self.storage.bases(para_id, subscribed.keys)
        if digest is None or digest == DEALT_WITH_NONE:
            change, root, bases = SubscriptionChange.NEW, None, None
        elif digest != self._digests[para_id]:
            before = set(self.storage.subscribed_keys.get(para_id) or ())
            if before <= set(subscribed.keys):
                change = SubscriptionChange.ADDED
                bases = {**(bases or {}), **{key: None for key in subscribed.keys if key not in before}}
            else:
                change, root, bases = SubscriptionChange.REMOVED, None, None
        cache = self._nodes_of(para_id)
        has_base = root is not None or any((bases or {}).values())
        if change is SubscriptionChange.REMOVED or (self._removes_within_budget and not has_base):
            cache = NO_CACHED_NODES
        return PublisherView(para_id, subscribed, root, bases, change, cache, delivered)

    @property
    def _tells_deletions(self) -> bool:
        return self.policies.deletion.tells

    @property
    def _removes_within_budget(self) -> bool:
        return self.policies.metering.charges_own_state

    def cached_nodes(self, publisher: ParaId) -> dict[bytes, bytes]:
        """Return the cached nodes of a publisher by their hash, as they stand in its trie."""
        return self._nodes_of(publisher).all()

    @property
    def keeps_every_node(self) -> bool:
        """Whether the cache holds the whole structure of the subscribed paths: then no value is delivered twice."""
        return self.config.max_cached_bytes is None and self.policies.cache.keeps(bytes(MAX_NODE_BYTES))

    def cache_limit(self) -> CacheLimit | None:
        """Return the limit of cached bytes for the next block, ``None`` if all nodes are kept."""
        most = self.config.max_cached_bytes
        if most is None or self._removes_within_budget:
            return None
        return CacheLimit(most, len(self._paths), self.storage)

    def _nodes_of(self, para_id: ParaId) -> CachedNodes:
        nodes = self.storage.cache_of(para_id)
        return CountedNodes(nodes) if self._removes_within_budget else nodes

    def _waits(self, view: PublisherView, change: PublisherChange | None) -> bool:
        """Return whether nodes of a publisher have to go before it can be followed anew."""
        if not self._removes_within_budget or view.change not in {SubscriptionChange.NEW, SubscriptionChange.REMOVED}:
            return False
        reached = change is not None and not change.sweeping
        return not reached and bool(self.storage.cached_trie_nodes.second_keys(view.para_id))

    def _note_subscriptions(self, result: ProofProcessingResult) -> None:
        """Remember which keys are followed now; of a publisher that left nothing stays but its nodes."""
        changes = {change.para_id: change for change in result.changes}
        followed, changed = self.storage.digests(), list[PublisherView]()
        for para_id in sorted(followed.keys() - self._paths.keys()):
            self.storage.forget_publisher(para_id)
            if self._tells_deletions:
                self.storage.delivered_keys.remove(para_id)
        for view in result.plan.views.values():
            if self._waits(view, changes.get(view.para_id)):
                self.storage.forget_publisher(view.para_id, keeps_delivered=self._tells_deletions)
            elif view.change is not SubscriptionChange.NONE:
                changed.append(view)
        if changed:
            of_changed = {view.para_id: self._digests[view.para_id] for view in changed}
            self.storage.put_digests({**self.storage.digests(), **of_changed})
        for view in changed:
            self._note_subscription(view)

    def _note_subscription(self, view: PublisherView) -> None:
        self.storage.subscribed_keys.insert(view.para_id, view.subscribed.keys)
        if view.change is SubscriptionChange.REMOVED:
            if not self._removes_within_budget:
                self.storage.clear_cache(view.para_id)
            self.storage.forget_root(view.para_id)
        elif view.bases is not None:
            self._remember(view, view.bases, view.root)

    def _remember(self, view: PublisherView, bases: Bases, root: bytes | None) -> None:
        self.storage.put_bases(view.para_id, view.subscribed, bases, root)

    def _apply_change(
        self, change: PublisherChange, view: PublisherView, roots: dict[ParaId, bytes], changed: dict[ParaId, bytes]
    ) -> None:
        para_id = change.para_id
        if change.sweeping:
            roots.pop(para_id, None)
            self._apply_cache(change)
            self.storage.forget_publisher(para_id, keeps_delivered=self._tells_deletions)
            return
        if change.disabled_by is not None:
            self._apply_cache(change)
            self.storage.disabled_publishers.insert(para_id, TRIE_DEPTH_EXCEEDED)
            self.system.deposit_event(PublisherDisabled(para_id, DisableReason.TrieDepthExceeded))
            return
        if change.root is None:
            roots.pop(para_id, None)
            self.storage.unfinished_publishers.remove(para_id)
            self._apply_cache(change)
            if not self._removes_within_budget:
                self.storage.clear_cache(para_id)
            return
        self._apply_cache(change)
        if change.finished:
            changed[para_id] = change.root
            self.storage.unfinished_publishers.remove(para_id)
            return
        kept = self.policies.root_commit.when_stopped(view.root, change.root)
        if kept == view.root:
            self._remember(view, change.bases, view.root)
        elif kept is not None:
            changed[para_id] = kept
            self.storage.unfinished_publishers.remove(para_id)

    def _apply_cache(self, change: PublisherChange) -> None:
        nodes, cache = self.storage.cache_of(change.para_id), change.cache
        for node_hash in sorted(cache.remove):
            nodes.remove(node_hash)
        for node_hash, data in cache.insert.items():
            nodes.insert(node_hash, data)
        if cache.shared:
            self.storage.shared_trie_nodes.insert(change.para_id, cache.shared)
        elif cache.shared is not None:
            self.storage.shared_trie_nodes.remove(change.para_id)

    def _deliver(self, change: PublisherChange, now: BlockNumber) -> None:
        deliver(self.system, self.handler, self.delivered, change, now)

    def __repr__(self) -> str:
        keys = sum(len(paths.keys) for paths in self._paths.values())
        return f"<Subscriber of {keys} keys from {len(self._paths)} publishers>"
