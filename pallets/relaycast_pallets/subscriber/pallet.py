"""The subscriber pallet: a parachain's copy of what it wants from publishers, kept up by relay state proofs.

The pallet asks for its keys (``relay_keys``), is given a proof, and takes over what ``process_proof`` found. Values go
to the handler, the structure of the subscribed paths goes into the cache, and the roots that were processed go into
storage.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Annotated

from msgspec import Struct, field

from relaycast_pallets.broadcaster.storage import PublishedEntry, derive_child_info
from relaycast_pallets.frame.system import Origin, System, ensure_root
from relaycast_pallets.frame.well_known_keys import Child, RelayProofRequest
from relaycast_pallets.subscriber.array_walk import ArrayReads
from relaycast_pallets.subscriber.config import SubscriberConfig, ensure_cache_can_be_limited
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
    CallbackOverweight,
    DataDeleted,
    DataProcessed,
    DisableReason,
    EntryUndecodable,
    KeyBeyondBudget,
    KeysSubscribed,
    KeysUnsubscribed,
    PublisherCacheCleared,
    PublisherDisabled,
    PublisherEnabled,
    PublisherRootCleared,
)
from relaycast_pallets.subscriber.node_cache import DeliveryRecord, NodeCache, PublisherCache
from relaycast_pallets.subscriber.plan import (
    PublisherView,
    SubscriberPlan,
    SubscriptionChange,
    make_plan,
    publisher_views,
)
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES, Policies
from relaycast_pallets.subscriber.proof_pass import (
    CallbackMeter,
    PaidReads,
    TrackedProof,
    charges_under,
    run_pass,
)
from relaycast_pallets.subscriber.result import ProofProcessingResult, PublisherChange
from relaycast_pallets.subscriber.storage import TRIE_DEPTH_EXCEEDED, SubscriberStorage
from relaycast_pallets.subscriber.subscription import (
    ChosenSubscriptions,
    HearsDeletions,
    SubscribedKey,
    SubscribedPaths,
    SubscriptionHandler,
    Update,
    WeighsCallbacks,
    by_publisher,
    compute_ttl_state,
    ensure_hears,
    takes_many,
    weigher_of,
)
from relaycast_pallets.subscriber.variants.cache_limit import CacheLimit
from relaycast_pallets.subscriber.variants.deletions import DeliveredKeys
from relaycast_pallets.subscriber.variants.metered_state import MeteredStateReads, RefCountedCache
from relaycast_pallets.subscriber.variants.subscription_limits import (
    ensure_subscriptions_fit,
    excess_with,
    has_room_for,
)
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import BlockNumber, ParaId, Rust, Weight, WeightMeter

__all__ = ["Delivered", "Key", "ProcessingMode", "Subscriber", "SubscriberConfig", "process_proof"]

Key = Annotated[SubscribedKey, Rust("H256")]
"""A subscribed key in an event."""


class ProcessingMode(Enum):
    """Whether what is found is kept: ``PRUNE`` in the collator, ``VERIFY`` on chain.

    One algorithm runs in both modes: it makes the plan of the pass, reads what changed until the meter or the proof
    ends, and, on chain, applies what it found. With ``PRUNE`` nothing is written: the nodes that were read are the
    proof.
    """

    PRUNE = "prune"
    VERIFY = "verify"


Demand = Callable[[ProofProcessingResult], None]
"""What must hold of a pass before anything of it is kept; raises when it does not."""


def process_proof(
    mode: ProcessingMode,
    proof: StorageProof | TrackedProof,
    relay_root: bytes,
    meter: WeightMeter,
    subscriber: "Subscriber",
    *,
    seed: bytes = b"",
    relay_parent_number: BlockNumber = 0,
    reduced_by_messages: bool = False,
    demand: Demand | None = None,
) -> ProofProcessingResult:
    """Process a relay state proof for everything that ``subscriber`` subscribes to, within what ``meter`` allows.

    ``seed`` shuffles the publishers; both modes must be given the same one. A pass that continues where the last one
    was cut short keeps that one's order, so that no publisher is repeatedly shuffled last. ``reduced_by_messages`` says
    that messages took a part of what the meter allows (see ``plan``). A ``TrackedProof`` learns what was read.
    With ``VERIFY`` the result must first meet the ``demand``; then the subscriber's storage is written and its handler
    called, with times to live counted from ``relay_parent_number``. Raises ``InvalidNode`` and ``InvalidChildRoot``
    where the relay chain's state is broken, and ``ValueError`` for VERIFY by hashes that were taken on trust.
    """
    if mode is ProcessingMode.VERIFY and isinstance(proof, TrackedProof) and proof.is_trusted:
        raise ValueError("a block hashes what it is given: no proof that is taken on trust")
    tracked = proof if isinstance(proof, TrackedProof) else TrackedProof(proof, relay_root)
    plan = subscriber.plan(seed, reduced_by_messages=reduced_by_messages)
    result = subscriber.read(plan, tracked, meter)
    if mode is ProcessingMode.VERIFY:
        if demand is not None:
            demand(result)
        subscriber.apply(result, relay_parent_number=relay_parent_number)
    return result


class Delivered(Struct):
    """What one block delivered, for reports, in the order of the calls: values, and keys reported as deleted."""

    updates: list[tuple[ParaId, SubscribedKey, PublishedEntry]] = field(default_factory=list)
    weight: Weight = Weight.ZERO
    """Sum of the weights that callbacks returned; the block is charged with it, whatever they declared."""

    deletions: list[tuple[ParaId, SubscribedKey]] = field(default_factory=list)


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
        ensure_hears(handler, deletions=self.policies.deletion.notifies)
        self.storage = SubscriberStorage(system.state)
        self.delivered = Delivered()
        self.cache_changes: dict[ParaId, PublisherCache] = {}
        """What the last block made of the node caches."""

        self._clear_cache_origin = clear_cache_origin
        self._declared_weight = Weight.ZERO
        self._declared: list[tuple[ParaId, tuple[SubscribedKey, ...]]] | None = None
        self._paths: dict[ParaId, SubscribedPaths] = {}
        self._request: tuple[set[ParaId], RelayProofRequest] | None = None
        self._digests: dict[ParaId, bytes] = {}

    # Where variants hook in: the reads of a pass, the node cache, the record of deliveries

    @property
    def node_cache(self) -> NodeCache:
        """How nodes are kept."""
        if self.policies.metering.charges_own_state:
            return RefCountedCache(self.storage, self.policies)
        if self.config.max_cached_bytes is not None:
            return CacheLimit(self.storage, self.policies, self.config.max_cached_bytes, len(self._paths))
        return NodeCache(self.storage, self.policies)

    @property
    def delivery_record(self) -> DeliveryRecord:
        """What is remembered of deliveries."""
        return DeliveredKeys(self.storage) if self.policies.deletion.notifies else DeliveryRecord(self.storage)

    def paid_reads(self, proof: TrackedProof, meter: WeightMeter) -> PaidReads:
        """Return how a pass reads a proof, and pays for it."""
        charges = charges_under(self.policies.metering, self.config.db_weight, self.config.min_weight.proof_size)
        if self.policies.metering.charges_own_state:
            return MeteredStateReads(proof, meter, charges, self.storage, self.config.db_weight)
        return ArrayReads(proof, meter, charges, self.system.state.engine)

    # From what is wanted to what was found

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

    def plan(self, seed: bytes = b"", *, reduced_by_messages: bool = False) -> SubscriberPlan:
        """Return what the next pass starts from, and its order; writes nothing."""
        wanted = self._wanted()
        cache, record = self.node_cache, self.delivery_record
        found = publisher_views(self.storage, wanted, self._digests)
        views = {para_id: record.view(cache.view(view)) for para_id, view in found.items()}
        return make_plan(
            self.storage,
            views,
            self.policies.order,
            seed,
            reduced_by_messages=reduced_by_messages,
            weight=self._declared_weight,
        )

    def read(self, plan: SubscriberPlan, proof: TrackedProof, meter: WeightMeter) -> ProofProcessingResult:
        """Return what a pass over the proof finds; writes nothing."""
        callbacks = CallbackMeter(self.handler, self.config.callback_limit)
        return run_pass(plan, self.paid_reads(proof, meter), callbacks, self.policies, self.config.max_trie_depth)

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

    # What becomes of it

    def apply(self, result: ProofProcessingResult, *, relay_parent_number: BlockNumber) -> None:
        """Take over what a pass found: storage first, then the handler is called."""
        self.delivered = Delivered()
        self.cache_changes = self.node_cache.changes(result)
        self.delivery_record.note(result)
        self._note_subscriptions(result)
        self._store(result)
        self.storage.put_turn(result.turn.cursor, result.turn.deferred_key)
        if not result.is_complete:
            self.storage.publisher_order_seed.put(result.plan.seed)
        self._report_passed_over(result)
        for change in result.changes:
            self._deliver(change, relay_parent_number)
        self.system.meter.consume(result.plan.weight)

    def _note_subscriptions(self, result: ProofProcessingResult) -> None:
        """Remember which keys are followed now; of a publisher that left nothing stays but its nodes."""
        changes = {change.para_id: change for change in result.changes}
        record, cache = self.delivery_record, self.node_cache
        followed, changed = self.storage.digests(), list[PublisherView]()
        for para_id in sorted(followed.keys() - self._paths.keys()):
            record.leave(para_id)
        for view in result.plan.views.values():
            if cache.is_waiting(view, changes.get(view.para_id)):
                record.forget(view.para_id)
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
            self.node_cache.drop(view.para_id)
            self.storage.forget_root(view.para_id)
        elif view.processed_roots is not None:
            self.storage.put_processed_roots(view.para_id, view.subscribed, view.processed_roots, view.root)

    def _store(self, result: ProofProcessingResult) -> None:
        """Write the caches, the roots that were processed, and how far interrupted publishers came."""
        roots, changed, cache = self.storage.previous_roots(), dict[ParaId, bytes](), self.node_cache
        for change in result.changes:
            cache.write(change.para_id, self.cache_changes[change.para_id])
            if not change.sweeping:
                self._store_change(change, result.plan.views[change.para_id], roots, changed)
        self.storage.put_roots(self.policies.root_commit.when_complete(roots, changed))

    def _store_change(
        self, change: PublisherChange, view: PublisherView, roots: dict[ParaId, bytes], changed: dict[ParaId, bytes]
    ) -> None:
        """Write how far one publisher came; its root goes from ``roots``, or among those that ``changed``."""
        para_id, unfinished = change.para_id, self.storage.unfinished_publishers
        if change.disabled_by is not None:
            self.storage.disabled_publishers.insert(para_id, TRIE_DEPTH_EXCEEDED)
            self.system.deposit_event(PublisherDisabled(para_id, DisableReason.TrieDepthExceeded))
        elif change.root is None:
            roots.pop(para_id, None)
            unfinished.remove(para_id)
            self.node_cache.drop(para_id)
        else:
            kept = change.root if change.finished else self.policies.root_commit.when_stopped(view.root, change.root)
            if not change.finished and kept == view.root:
                self.storage.put_processed_roots(para_id, view.subscribed, change.processed_roots, view.root)
            elif kept is not None:
                changed[para_id] = kept
                unfinished.remove(para_id)

    def _report_passed_over(self, result: ProofProcessingResult) -> None:
        """Deposit an event for a key that does not fit a whole budget, or whose callback does not fit the limit."""
        if result.beyond_budget is None or any(change.sweeping for change in result.changes):
            return
        publisher, key = result.beyond_budget
        weigher = weigher_of(self.handler)
        if result.is_stopped_by_callbacks and weigher is not None:
            declared, limit = weigher.callback_weight(publisher, key), result.callback_limit
            self.system.deposit_event(CallbackBeyondLimit(publisher, key, declared, limit))
        else:
            self.system.deposit_event(KeyBeyondBudget(publisher, key, result.read_bytes))

    def _deliver(self, change: PublisherChange, now: BlockNumber) -> None:
        """Call the handler for every changed key of a publisher, then for every deleted one.

        Times to live count from relay block ``now``.
        """
        publisher, given = change.para_id, list[Update]()
        updates, deposit = self.delivered.updates, self.system.deposit_event
        decoded = [(key, _decoded(encoded)) for key, encoded in change.changed]
        for key, entry in decoded:
            if entry is not None:
                given.append((key, entry.value, compute_ttl_state(entry.ttl, entry.when_inserted, now)))
        called = self._call(publisher, given)
        for key, entry in decoded:
            if entry is None:
                deposit(EntryUndecodable(publisher, key))
                continue
            declared, used = next(called)
            updates.append((publisher, key, entry))
            deposit(DataProcessed(publisher, key, len(entry.value)))
            if used is not Weight.ZERO:
                self._charge(publisher, key, declared, used)
        if not change.deleted:
            return
        handler, weigher = self.handler, weigher_of(self.handler)
        assert isinstance(handler, HearsDeletions), "set-up refuses handlers without on_data_deleted"
        for key in change.deleted:
            declared = _declared(weigher, publisher, key)
            used = handler.on_data_deleted(publisher, key)
            self.delivered.deletions.append((publisher, key))
            self.system.deposit_event(DataDeleted(publisher, key))
            self._charge(publisher, key, declared, used)

    def _call(self, publisher: ParaId, updates: Sequence[Update]) -> Iterator[tuple[Weight | None, Weight]]:
        """Call the handler, at once if it takes many updates; yield what each callback declared, and what it used."""
        handler, weigher = self.handler, weigher_of(self.handler)
        if takes_many(handler):
            declared = [_declared(weigher, publisher, key) for key, _, _ in updates]
            yield from zip(declared, handler.on_data_updated_many(publisher, updates), strict=True)
        else:
            for key, value, ttl_state in updates:
                yield _declared(weigher, publisher, key), handler.on_data_updated(publisher, key, value, ttl_state)

    def _charge(self, publisher: ParaId, key: SubscribedKey, declared: Weight | None, used: Weight) -> None:
        """Charge the weight that a callback used; deposits ``CallbackOverweight`` if it is more than ``declared``."""
        self.delivered.weight += used
        if declared is not None and used.any_gt(declared):
            self.system.deposit_event(CallbackOverweight(publisher, key, declared, used))

    # Calls

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

        self.node_cache.forget_root(publisher)
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

        self.node_cache.clear(publisher)
        self.delivery_record.forget(publisher)
        self.system.deposit_event(PublisherCacheCleared(publisher))

    # What is kept

    def cached_nodes(self, publisher: ParaId) -> dict[bytes, bytes]:
        """Return the cached nodes of a publisher by their hash, as they are in its trie."""
        return self.node_cache.nodes_of(publisher).all()

    @property
    def keeps_every_node(self) -> bool:
        """Whether the cache holds the whole structure of the subscribed paths: then no value is delivered twice."""
        return self.config.max_cached_bytes is None and self.policies.cache.keeps(bytes(MAX_NODE_BYTES))

    def __repr__(self) -> str:
        keys = sum(len(paths.keys) for paths in self._paths.values())
        return f"<Subscriber of {keys} keys from {len(self._paths)} publishers>"


def _declared(weigher: WeighsCallbacks | None, publisher: ParaId, key: SubscribedKey) -> Weight | None:
    return None if weigher is None else weigher.callback_weight(publisher, key)


def _decoded(encoded: bytes) -> PublishedEntry | None:
    """Return an entry of the relay chain, ``None`` where it is none."""
    try:
        return PublishedEntry.decode(encoded)
    except CodecError:
        return None
