"""Chapter 7. The subscriber: what the parachain's block demands of its proof, and what it writes.

``verify`` runs the pass over the nodes of the block. The proof must be exact: every node is read, and nothing is
missing that would have fitted. Otherwise the block panics, and nothing of it is kept. Then ``apply`` stores roots, the
cache and the cursor, and calls back for each key that changed.

Law: nothing is delivered before the pass is over (DECISION): a path that is too deep takes back what its publisher
brought.

Source: RFC-0160, "Subscriber pallet".
"""

from collections.abc import Iterator
from typing import Any

from relaycast_spec.proof_pass import CLEARED_DIGEST, Base, BlockInput, Key, ProofPass, Publisher, Spot, add
from relaycast_spec.scale import U32_MAX, Refused, State, decode, encode, refuse_if
from relaycast_spec.tries import Nodes, Place, places
from relaycast_spec.xcm import ZERO, fits

Callback = tuple[int, Key, bytes | None, bytes | None]
"""``on_data_updated``: publisher, key, value, and the encoded ``TtlState``. A deletion has neither of the last two."""

OF_A_CACHE = ("UnfinishedPublishers", "CachedTrieNodes", "SharedTrieNodes")
"""Items that hold what is kept of a publisher's trie."""


def verify(block: BlockInput, given: list[bytes]) -> ProofPass:
    """Run the pass over the nodes that a block is given; ``Refused`` names why the block panics.

    Scenario: PoV Budget Constraint / Proof validation - all nodes accessed
    Scenario: PoV Budget Constraint / Proof validation - incomplete at weight limit
    Scenario: PoV Budget Constraint / Proof validation - incomplete below weight limit
    """
    done = ProofPass(block, given)
    refuse_if(len(done.nodes) < len(given), "DuplicateNode")
    done.run()
    # DECISION: sets are compared, not counts; counts miss a node that stands in for another
    unused = sorted(set(done.nodes) - done.accessed)
    refuse_if(unused, "UnusedNodes", {"hashes": unused})
    # an honest pass stops only where the largest read would not fit; one that callbacks stopped leaves budget over.
    # DECISION: the largest read is that of the largest entry or node, whichever is longer
    if done.stopped_at is not None and not done.stopped_by_callbacks:
        one_more = add(done.consumed, block.config.read(block.config.largest_read))
        publisher, key = done.stopped_at
        remaining = {dimension: block.budget[dimension] - used for dimension, used in done.consumed.items()}
        detail = {"publisher": publisher, "key": key, "remaining": remaining}
        refuse_if(fits(one_more, block.budget), "IncompleteBelowLimit", detail)
    return done


class Subscriber:
    """The pallet's storage and what changes it. ``done`` is the verified pass of the block."""

    def __init__(self, block: BlockInput, done: ProofPass) -> None:
        self.block = block
        self.done = done
        self.policies = block.policies
        self.state: State = done.state
        self.roots = done.roots
        self.digests = done.digests
        self.events: list[bytes] = []

    def deposit_event(self, name: str, *fields: Any) -> None:
        """Add an event of the block."""
        self.events.append(encode("SubscriberEvent", {name: fields}))

    # After the pass

    def apply(self) -> list[Callback]:
        """Write what the pass leaves, and return the callbacks in their order.

        DECISION (root_commit): a root is stored when all keys were dealt with, and callbacks of an interrupted
        publisher come now. DECISION: a child trie that is gone takes root and cache with it.

        Scenario: Change Detection / Root changed
        """
        done, changed = self.done, self.done.with_news
        finished = {
            it.para_id: it.child_root
            for it in changed
            if it.child_root is not None and it.is_finished and not it.disabled
        }
        if self.policies.deletion == "told":
            for publisher in done.publishers:
                self.remember_delivered(publisher)
        self.follow_subscriptions()
        for publisher in changed:
            if publisher.child_root is None:
                self.forget(publisher.para_id, *OF_A_CACHE)
            elif publisher.disabled:
                self.disable(publisher.para_id)
            elif publisher.para_id in finished:
                self.keep_finished(publisher, publisher.child_root)
            else:
                self.keep_interrupted(publisher, publisher.child_root)
        self.roots = finished if self.policies.root_commit == "forget-unchanged" else self.roots | finished
        self.write_maps()
        self.write_cursors()
        self.note_passed_over()
        return [callback for it in changed if not it.disabled for callback in self.callbacks(it)]

    def forget(self, para_id: int, *items: str) -> None:
        """Remove a publisher's root, and all entries of some items of it."""
        self.roots.pop(para_id, None)
        for item in items:
            for key in self.state.raw_keys(item, para_id):
                del self.state.entries[key]

    def write_maps(self) -> None:
        """Write roots and digests; a map that is empty has no entry."""
        self.state.put("PreviousPublishedDataRoots", sorted(self.roots.items()) or None)
        self.state.put("SubscribedKeysDigests", sorted(self.digests.items()) or None)

    def write_cursors(self) -> None:
        """Write where the next passes begin, and the seed of an order that was not done with."""
        cursor, owed = self.done.next_cursors
        self.state.put("RelayProofProcessingCursor", cursor)
        self.state.put("OwedKey", owed)
        self.state.put("PublisherOrderSeed", None if self.done.is_complete else self.done.seed)

    def note_passed_over(self) -> None:
        """Report a key that exceeds a whole budget, or a callback that exceeds a whole block's limit (DECISION)."""
        done = self.done
        if not done.is_stuck or done.begin is None:
            return
        if done.stopped_by_callbacks:
            declared = self.block.declared_weights.get(done.begin, ZERO)
            self.deposit_event("CallbackBeyondLimit", *done.begin, declared, self.block.config.callback_limit)
        else:
            self.deposit_event("KeyBeyondBudget", *done.begin, done.bytes_read)

    def follow_subscriptions(self) -> None:
        """Update the record of subscriptions.

        DECISION: an unsubscribed publisher loses its root, digest, keys, ranges and delivery bitmap, so that a new
        subscription starts afresh. Its cached nodes stay until ``clear_publisher_cache``.

        Scenario: Trie Node Caching / Subscription change clears cache
        """
        for para_id in set(self.digests) - set(self.done.wanted):
            del self.digests[para_id]
            self.forget(para_id, "SubscribedKeys", "UnfinishedPublishers", "DeliveredKeys")
        for publisher in self.done.publishers:
            if publisher.subscription_change == "NONE":
                continue
            self.digests[publisher.para_id] = publisher.digest
            self.state.put("SubscribedKeys", publisher.keys, publisher.para_id)
            if publisher.subscription_change == "REMOVED":
                self.forget(publisher.para_id, *OF_A_CACHE)
            if publisher.subscription_change == "ADDED":
                self.state.put("UnfinishedPublishers", publisher.ranges(publisher.bases), publisher.para_id)

    def disable(self, para_id: int) -> None:
        """Disable a publisher whose trie is too deep; nothing else of it changes, and others are not touched.

        Scenario: Trie Depth Limit / Proof exceeds depth limit
        """
        self.state.put("DisabledPublishers", "TrieDepthExceeded", para_id)
        self.deposit_event("PublisherDisabled", para_id, "TrieDepthExceeded")

    # The cache

    def keep_finished(self, publisher: Publisher, root: bytes) -> None:
        """Keep exactly the nodes on the subscribed paths of the new trie. Values are no part of them.

        After a complete pass these are at most ``max_trie_depth`` nodes for each key.

        DECISION: nodes are marked for all keys first, then the size limit applies. The drafts sweep once per key, so
        only the last key's nodes survive. ``SharedTrieNodes`` counts the places of a node that has several, for an
        implementation that removes nodes without walking all paths; nothing here reads it.

        Scenario: Trie Node Caching / Initial proof processing
        Scenario: Trie Node Caching / Partial subscription caching
        Scenario: Trie Depth Limit / Depth limit bounds cache size
        """
        nodes = publisher.cache | publisher.read_from_proof
        prefixes = self.prefixes_by_node(publisher, [root] * len(publisher.keys), nodes)
        kept = {name: node for name, node in self.small(nodes).items() if name in prefixes}
        shared = [(name, len(prefixes[name])) for name in sorted(kept) if len(prefixes[name]) > 1]
        self.state.put("SharedTrieNodes", shared or None, publisher.para_id)
        self.state.put("UnfinishedPublishers", None, publisher.para_id)
        self.write_nodes(publisher, nodes, kept)

    def keep_interrupted(self, publisher: Publisher, root: bytes) -> None:
        """Keep the old root, record which keys were dealt with against the new one, and cache what was read."""
        para_id, nodes = publisher.para_id, publisher.cache | publisher.read_from_proof
        bases: list[Base] = [
            root if number in publisher.dealt_with else base for number, base in enumerate(publisher.bases)
        ]
        if self.policies.root_commit == "after-first-key" and root != publisher.root:
            self.roots[para_id] = root
            self.state.put("UnfinishedPublishers", None, para_id)
        else:
            self.state.put("UnfinishedPublishers", publisher.ranges(bases), para_id)
        prefixes = self.prefixes_by_node(publisher, bases, nodes)
        prunes = self.prunes_interrupted(publisher)
        kept = {name: node for name, node in publisher.cache.items() if not prunes or name in prefixes}
        self.write_nodes(publisher, nodes, kept | self.small(publisher.read_from_proof))

    def prunes_interrupted(self, publisher: Publisher) -> bool:
        """Return whether an interrupted pass removes the cached nodes that no base leads to.

        It does from the second interrupted pass on, unless this pass began after the publisher's first key and stopped
        further on. DECISION: the text leaves open which of these passes remove nodes; no value depends on it.
        """
        first, stopped_at = publisher.first or 0, self.done.stopped_at
        is_here = stopped_at is not None and stopped_at[0] == publisher.para_id
        stopped = publisher.keys.index(stopped_at[1]) if is_here and stopped_at is not None else first
        return publisher.has_mixed_bases and not 0 < first < stopped

    def prefixes_by_node(self, publisher: Publisher, bases: list[Base], nodes: Nodes) -> dict[bytes, set[str]]:
        """Return the prefixes at which each node stands on the way to a subscribed key, as far as nodes are known."""
        found: dict[bytes, set[str]] = {}
        for key, base in zip(publisher.keys, bases, strict=True):
            for place in places(base, key, nodes.get) if base is not None else ():
                if isinstance(place, Place) and place.reference in nodes:
                    prefix = key.hex().removesuffix(place.path)
                    found.setdefault(place.reference, set()).add(prefix)
        return found

    def small(self, nodes: Nodes) -> Nodes:
        """Return the nodes that the cache admits."""
        most = 0 if self.policies.cache == "none" else self.policies.max_cached_node
        return {name: node for name, node in nodes.items() if len(node) <= most}

    def write_nodes(self, publisher: Publisher, known: Nodes, kept: Nodes) -> None:
        """Write the nodes that are kept, and remove the other known ones."""
        for name in known:
            self.state.put("CachedTrieNodes", kept.get(name), publisher.para_id, name)

    # Callbacks

    def callbacks(self, publisher: Publisher) -> Iterator[Callback]:
        """Yield the callbacks of a publisher, each with its events: new values, and then deletions.

        Scenario: Subscription Handler / Data update callback
        """
        deletions_last = sorted(publisher.changes.items(), key=lambda change: change[1] is None)
        for key, data in deletions_last:
            spot, entry = (publisher.para_id, key), entry_of(data)
            if data is None:
                self.deposit_event("DataDeleted", *spot)
                yield *spot, None, None
            elif entry is None:
                self.deposit_event("EntryUndecodable", *spot)
                continue
            else:
                self.deposit_event("DataProcessed", *spot, len(entry["value"]))
                yield *spot, entry["value"], encode("TtlState", self.ttl_state(entry))
            self.check_weight(spot)

    def ttl_state(self, entry: dict[str, Any]) -> Any:
        """Return how long an entry is still valid, in blocks of the relay chain (the law's ``ValidFor``).

        DECISION: counted from the relay parent's number; some drafts take the parachain's own block number.
        """
        if not entry["ttl"]:
            return "Infinite"
        left = entry["when_inserted"] + entry["ttl"] - self.block.relay_parent_number
        return {"BlocksLeft": min(left, U32_MAX)} if left > 0 else "TimedOut"

    def check_weight(self, spot: Spot) -> None:
        """Report a callback that used more than it declared. Where nothing is declared, nothing is checked."""
        if not self.block.declared_weights:
            return
        declared = self.block.declared_weights.get(spot, ZERO)
        used = self.block.used_weights.get(spot, declared)
        if not fits(used, declared):
            self.deposit_event("CallbackOverweight", *spot, declared, used)

    def remember_delivered(self, publisher: Publisher) -> None:
        """Write which keys were delivered, a bit for each, so that a deletion is told once (policy ``deletion``)."""
        has_news = publisher in self.done.with_news
        has_base = publisher.root is not None or publisher.has_mixed_bases
        if publisher.subscription_change == "NONE" and not (has_news and (publisher.changes or not has_base)):
            return  # nothing was delivered or deleted: the bitmap stays
        delivered = set(publisher.delivered)
        if has_news and not publisher.disabled:
            has_base = publisher.child_root is not None
            delivered |= {key for key, data in publisher.changes.items() if entry_of(data) is not None}
            delivered -= {key for key, data in publisher.changes.items() if data is None}
        bits = sum(1 << number for number, key in enumerate(publisher.keys) if key in delivered)
        bitmap = bits.to_bytes((len(publisher.keys) + 7) // 8, "little")
        # without a bitmap every key with a base counts as delivered, so one of zeros is written too
        self.state.put("DeliveredKeys", bitmap if delivered or has_base else None, publisher.para_id)

    # Calls by root

    def call(self, name: str, para_id: int) -> None:
        """Dispatch one of the calls below, by its name."""
        {
            "clear_stored_roots": self.clear_stored_roots,
            "enable_publisher": self.enable_publisher,
            "clear_publisher_cache": self.clear_publisher_cache,
        }[name](para_id)

    def clear_stored_roots(self, para_id: int) -> None:
        """Forget a publisher's root: its keys are dealt with anew."""
        refuse_if(para_id not in self.roots, "PublisherRootNotFound")
        self.forget(para_id, "UnfinishedPublishers")
        self.write_maps()
        self.deposit_event("PublisherRootCleared", para_id)

    def enable_publisher(self, para_id: int) -> None:
        """Let a disabled publisher be read again.

        Scenario: Trie Depth Limit / Re-enable disabled publisher
        """
        refuse_if(not self.state.put("DisabledPublishers", None, para_id), "PublisherNotDisabled")
        self.deposit_event("PublisherEnabled", para_id)

    def clear_publisher_cache(self, para_id: int) -> None:
        """Remove all that is kept of a publisher. What was delivered is remembered, if deletions are told.

        DECISION: whatever is kept goes, nodes or not.

        Scenario: Subscription Handler / Removing subscriptions requires cache clear
        """
        remembers = self.policies.deletion == "told" and para_id in self.digests
        items = OF_A_CACHE if remembers else (*OF_A_CACHE, "SubscribedKeys", "DeliveredKeys")
        digest = self.digests.get(para_id, CLEARED_DIGEST)
        is_held = para_id in self.roots or digest != CLEARED_DIGEST
        is_stored = any(self.state.raw_keys(item, para_id) for item in items)
        refuse_if(not is_held and not is_stored, "NoCachedNodes")
        self.forget(para_id, *items)
        self.digests.pop(para_id, None)
        if remembers:
            self.digests[para_id] = CLEARED_DIGEST
        self.drop_cursors_of(para_id)
        self.write_maps()
        self.deposit_event("PublisherCacheCleared", para_id)

    def drop_cursors_of(self, para_id: int) -> None:
        """Remove a cursor and an owed key of a publisher; an owed key of another one becomes the cursor."""
        stored = [self.state.get("RelayProofProcessingCursor"), self.state.get("OwedKey")]
        left = [spot for spot in stored if spot is not None and spot[0] != para_id]
        self.state.put("RelayProofProcessingCursor", left[0] if left else None)
        self.state.put("OwedKey", left[1] if len(left) > 1 else None)
        if not left:
            self.state.put("PublisherOrderSeed", None)


def entry_of(data: bytes | None) -> dict[str, Any] | None:
    """Decode a published entry; ``None`` if the bytes are not one."""
    if data is None:
        return None
    try:
        entry: dict[str, Any] = decode("PublishedEntry", data)
    except Refused:
        return None
    return entry
