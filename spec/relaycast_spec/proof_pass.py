"""Chapter 6. The pass: what one block reads of all subscribed keys, within a budget.

Every block of a subscriber carries a proof of the relay chain's state. One pass goes over the subscribed keys and reads
what changed: nodes of the proof, and nodes of the cache. Each read is charged. When the budget is used up the pass
stops, and the next block's pass begins there. The same pass runs twice:

- PRUNE, in the collator, over all that it collected. What the pass reads is the proof of the block.
- VERIFY, on chain, over the proof of the block (chapter 7).

A key is *dealt with* when the pass has read all that it needs to know whether the key changed. The *base* of a key is
the child root against which that was last done. The *cursor* is the key at which the next pass begins. A key that does
not fit even at the start of a pass is passed over, and is *owed* a turn in a block without messages. A *round* is as
many passes as it takes to deal with every key once.

Law: since both run the same code on the same state, they read the same nodes, consume the same weight and stop at the
same key. A read that does not fit is not made and consumes nothing.

Source: RFC-0160, "RelayProofExtender"; DECISIONs as marked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from relaycast_spec.scale import State, blake2_256, compact, decode, encode, refuse_if
from relaycast_spec.tries import CHILD_STORAGE, Node, Nodes, Place, child_trie_name, is_hash, lookup, read_all
from relaycast_spec.walk import walk
from relaycast_spec.xcm import FIRST_PUBLIC_ID, ZERO, Weight, fits

Key = bytes
"""A subscribed key: 32 bytes."""

Spot = tuple[int, Key]
"""A publisher, and one of its subscribed keys."""

Base = bytes | None
"""The child root against which a key was last dealt with; ``None``: never."""

LARGEST_STRUCTURE_NODE = 750
"""Bytes of the largest node in the cache. DECISION (max_cached_node): the drafts' 512 leave out full branches."""

CLEARED_DIGEST = bytes(32)
"""Stored instead of a digest after a cache was cleared: the subscription then counts as NEW (policy ``deletion``)."""


class Stop(Exception):
    """The pass stops at the key that it is dealing with."""


class TooDeep(Exception):
    """A path has more nodes than ``max_trie_depth``."""


@dataclass(frozen=True)
class Policies:
    """Where the text leaves a choice: the first is the default, the others are what drafts do, or might."""

    order: str = "shuffled"
    """DECISION (order): public publishers in an order that a seed draws, or ``numeric``, by their ids."""

    metering: str = "every-read"
    """DECISION (metering): each read is charged; ``values-only`` charges no node."""

    root_commit: str = "when-done"
    """DECISION (root_commit): a publisher's root is stored when all its keys are dealt with. ``after-first-key`` stores
    it at once and loses the other keys; ``forget-unchanged`` drops the roots of publishers without news."""

    callback: str = "changed-keys"
    """DECISION (callback): the scenario delivers each key of a changed publisher; here only changed keys are delivered.
    ``all-keys`` keeps to the letter: each key once for each root."""

    cache: str = "structure"
    """DECISION (cache): nodes of subscribed paths are kept; ``none`` proves every path again."""

    deletion: str = "silent"
    """DECISION (deletion): the text has no callback for a deleted key; ``told`` calls back without a value."""

    max_cached_node: int = LARGEST_STRUCTURE_NODE


@dataclass(frozen=True)
class Config:
    """The configuration of a subscriber."""

    max_trie_depth: int
    """Nodes with a hash on the way to a key. DECISION: inline nodes do not count."""

    max_value_length: int
    read_ref_time: int
    """Picoseconds of one read of the database."""

    callback_limit: Weight = field(default_factory=lambda: dict(ZERO))

    @property
    def largest_read(self) -> int:
        """The most bytes that one read is charged; with it a read weighs ``min_weight``.

        DECISION: a longer node, which an old trie may hold, costs no more. ``verify`` refuses a block that stopped
        although one more read of this size would fit, so an honest block must never stop at a read that costs more.
        """
        entry = len(compact(self.max_value_length)) + self.max_value_length + 4 + 4  # value, ttl, when_inserted
        return max(entry, LARGEST_STRUCTURE_NODE)

    def read(self, size: int) -> Weight:
        """Return the weight of a read: one access of the database, and the bytes."""
        return {"ref_time": self.read_ref_time, "proof_size": min(size, self.largest_read)}


@dataclass
class BlockInput:
    """The input of one block of a subscriber."""

    config: Config
    policies: Policies
    subscriptions: list[tuple[int, list[Key]]]
    """As the handler's ``subscriptions()`` declares them: unsorted, perhaps repeated; keys as they are.

    DECISION: the weight that it declares as well is charged to the block, never to the pass.

    Scenario: Subscription Handler / Subscription declaration
    Scenario: Subscription Handler / Pre-computed hash
    """

    state: list[tuple[bytes, bytes]]
    """The entries of the pallet's storage before the block."""

    relay_root: bytes
    relay_parent_number: int
    seed: bytes
    has_messages: bool
    """Whether messages take a part of the budget."""

    budget: Weight
    static_keys: list[bytes]
    """Keys of the relay chain that every parachain's block proves."""

    declared_weights: dict[Spot, Weight] = field(default_factory=dict)
    """Declared weight of the callback for each key; zero for keys that are absent."""

    used_weights: dict[Spot, Weight] = field(default_factory=dict)
    """Weight that a callback really uses, if it differs from the declared one."""


def wanted_keys(subscriptions: Iterable[tuple[int, list[Key]]]) -> dict[int, list[Key]]:
    """Return the subscribed keys of each publisher. DECISION: sorted, each once; one without keys is left out."""
    wanted: dict[int, set[Key]] = {}
    for para_id, keys in subscriptions:
        if keys:
            wanted[para_id] = wanted.get(para_id, set()) | set(keys)
    return {para_id: sorted(keys) for para_id, keys in wanted.items()}


def keys_to_prove(block: BlockInput) -> dict[bytes, list[Key]]:
    """Return what a collator collects for a block: child tries by name, and the subscribed keys in each.

    Disabled publishers are left out. (The vectors begin with what was collected.)

    Scenario: Relay Proof Collection / Proof collection for subscriptions
    Scenario: Trie Depth Limit / Disabled publisher is skipped
    """
    state, wanted = State(block.state), wanted_keys(block.subscriptions)
    enabled = [para_id for para_id in wanted if state.get("DisabledPublishers", para_id) is None]
    return {child_trie_name(para_id): wanted[para_id] for para_id in enabled}


# What a pass starts from


def digest_of(keys: list[Key]) -> bytes:
    """Return the digest by which a change of the subscribed keys is noticed. DECISION: added keys keep the nodes."""
    return blake2_256(b"".join(keys))


def base_of(ranges: list[tuple[Key, Key, Base]] | None, root: Base, key: Key) -> Base:
    """Return the base of a key: that of the range it lies in, else the publisher's root."""
    return next((base for first, last, base in ranges or () if first <= key <= last), root)


class Publisher:
    """A publisher during a pass.

    DECISION: an interrupted pass remembers for each range of keys with which root it was dealt. Without that a change
    that is taken back between two blocks, or keys that are added meanwhile, lose updates or are delivered twice.
    """

    def __init__(
        self,
        para_id: int,
        keys: list[Key],
        state: State,
        *,
        stored_root: Base,
        stored_digest: bytes | None,
        tells_deletions: bool,
    ) -> None:
        self.para_id = para_id
        self.keys = keys
        self.digest = digest_of(keys)
        known = state.get("SubscribedKeys", para_id) or []
        ranges = state.get("UnfinishedPublishers", para_id)
        self.subscription_change = self._subscription_change(stored_digest, known)
        self.root = stored_root if self.subscription_change in ("NONE", "ADDED") else None
        self.has_mixed_bases = self.subscription_change == "ADDED" or (
            self.subscription_change == "NONE" and ranges is not None
        )
        based = {"NONE": keys, "ADDED": known}.get(self.subscription_change, [])
        self.bases: list[Base] = [base_of(ranges, stored_root, key) if key in based else None for key in keys]
        self.delivered: set[Key] = set()
        """Keys that were delivered, where deletions are told."""

        if tells_deletions:
            former = keys if stored_digest == self.digest else known
            self.delivered = delivered_keys(state, para_id, former, ranges, stored_root) & set(keys)
        stored = [] if self.subscription_change == "REMOVED" else state.raw_keys("CachedTrieNodes", para_id)
        self.cache: Nodes = {key[-32:]: decode("bytes", state.entries[key]) for key in stored}
        # what the pass finds out
        self.child_root: bytes | None = None
        self.first: int | None = None
        """Number of the key with which its part began, once its child root is read."""

        self.disabled = False
        self.paid: set[bytes] = set()
        """Cached nodes that were paid for."""

        self.read_from_proof: Nodes = {}
        self.dealt_with: set[int] = set()
        """Numbers of the keys that the pass is done with."""

        self.changes: dict[Key, bytes | None] = {}
        """New entries by key; ``None`` for a key that was deleted."""

    def _subscription_change(self, stored_digest: bytes | None, known: list[Key]) -> str:
        """Return NEW (nothing is known), NONE, ADDED (keys were only added), or REMOVED (some key was removed).

        Scenario: Subscription Handler / Adding subscriptions
        """
        if stored_digest is None or stored_digest == CLEARED_DIGEST:
            return "NEW"
        if stored_digest == self.digest:
            return "NONE"
        return "ADDED" if set(known) <= set(self.keys) else "REMOVED"

    @property
    def has_news(self) -> bool:
        """Whether its child root was read and the block must act on it.

        It must if there is no child trie, if the root differs from the stored one, or if some keys have another base.

        Scenario: Change Detection / Root unchanged
        Scenario: Proof Processing / Unchanged child tries skipped
        """
        was_read = self.first is not None
        return was_read and (self.child_root is None or self.child_root != self.root or self.has_mixed_bases)

    @property
    def is_finished(self) -> bool:
        """Whether all its keys were dealt with."""
        return len(self.dealt_with) == len(self.keys)

    def ranges(self, bases: list[Base]) -> list[tuple[Key, Key, Base]]:
        """Group neighbouring keys with the same base into ranges; skip keys whose base is the publisher's root."""
        found = []
        for base, group in groupby(zip(self.keys, bases, strict=True), lambda pair: pair[1]):
            keys = [key for key, _ in group]
            if base != self.root:
                found.append((keys[0], keys[-1], base))
        return found


def delivered_keys(
    state: State, para_id: int, keys: list[Key], ranges: list[tuple[Key, Key, Base]] | None, root: Base
) -> set[Key]:
    """Return which of the keys were delivered: as a bitmap says, or those that have a base (policy ``deletion``)."""
    bitmap = state.get("DeliveredKeys", para_id)
    if bitmap is None:
        return {key for key in keys if base_of(ranges, root, key) is not None}
    return {key for number, key in enumerate(keys) if bitmap[number // 8] >> number % 8 & 1}


# The pass


class ProofPass:
    """One pass over ``nodes``, in either mode."""

    def __init__(self, block: BlockInput, nodes: list[bytes]) -> None:
        self.block = block
        self.config = block.config
        self.policies = block.policies
        self.state = State(block.state)
        self.nodes: Nodes = {blake2_256(node): node for node in nodes}
        self.accessed: set[bytes] = set()
        self.consumed: Weight = dict(ZERO)
        self.bytes_read = 0
        """Bytes of all reads after the static keys, each with its full size; also where ``metering`` leaves it free."""

        self.stopped_at: Spot | None = None
        self.stopped_by_callbacks = False
        self.roots: dict[int, bytes] = dict(self.state.get("PreviousPublishedDataRoots") or ())
        self.digests: dict[int, bytes] = dict(self.state.get("SubscribedKeysDigests") or ())
        self.wanted = wanted_keys(block.subscriptions)
        stored_cursor = self.state.get("RelayProofProcessingCursor")
        stored_seed = self.state.get("PublisherOrderSeed") if stored_cursor else None
        self.seed = block.seed if stored_seed is None else stored_seed
        enabled = [para_id for para_id in self.wanted if self.state.get("DisabledPublishers", para_id) is None]
        self.publishers = [self._publisher(para_id) for para_id in sorted(enabled, key=self.rank)]
        self.work = [
            ((publisher.para_id, key), publisher, number)
            for publisher in self.publishers
            for number, key in enumerate(publisher.keys)
        ]
        self._begin_at(stored_cursor, self.state.get("OwedKey"))

    def _publisher(self, para_id: int) -> Publisher:
        return Publisher(
            para_id,
            self.wanted[para_id],
            self.state,
            stored_root=self.roots.get(para_id),
            stored_digest=self.digests.get(para_id),
            tells_deletions=self.policies.deletion == "told",
        )

    def rank(self, para_id: int) -> tuple[bool, bytes]:
        """Return the sort key of a publisher: system parachains first, by their id; then the others, shuffled.

        A shuffle gives every publisher its turn at the front. Collator and chain know the same seed.

        Scenario: Publisher Prioritization / System parachain first
        """
        is_public = para_id >= FIRST_PUBLIC_ID
        if is_public and self.policies.order == "shuffled":
            return True, blake2_256(self.seed + encode("u32", para_id))
        return is_public, para_id.to_bytes(4, "big")

    # Where it begins

    def _begin_at(self, stored_cursor: Spot | None, stored_owed: Spot | None) -> None:
        """Rotate the work to the key with which the pass begins.

        DECISION: a key that was passed over is owed. It has its turn in a block without messages, before the cursor.

        Scenario: PoV Budget Constraint / Cursor resumption with wrap-around
        """
        spots = [spot for spot, _, _ in self.work]
        cursor = stored_cursor if stored_cursor in spots else None
        owed = stored_owed if stored_cursor and stored_owed in spots else None
        if cursor is None:
            cursor, owed = owed, None
        self.cursor, self.owed = cursor, owed
        self.begin = cursor if self.block.has_messages or owed is None else owed
        at = spots.index(self.begin) if self.begin else 0
        self.work = self.work[at:] + self.work[:at]

    # How it goes

    def run(self) -> None:
        """Read the static keys, and then what changed of the subscribed keys.

        DECISION: static keys are outside of the budget; nothing else is.

        Scenario: PoV Budget Constraint / Weight exhausted mid-processing
        Scenario: Proof Processing / Budget limit enforced with combined tracking
        """
        read_all(self.nodes, self.block.relay_root, sorted(set(self.block.static_keys)), self.accessed)
        for spot, publisher, number in self.work:
            try:
                self.deal_with(publisher, number)
            except TooDeep:
                publisher.disabled = True
            except Stop:
                self.stopped_at = spot
                break
            publisher.dealt_with.add(number)

    @property
    def is_complete(self) -> bool:
        """Whether every key was dealt with."""
        return self.stopped_at is None

    @property
    def with_news(self) -> list[Publisher]:
        """Publishers with something to apply, in the order in which the work came to them."""
        return [it for it in dict.fromkeys(publisher for _, publisher, _ in self.work) if it.has_news]

    def deal_with(self, publisher: Publisher, number: int) -> None:
        """Deal with one key: read its publisher's child root once, and walk the key's path if there may be news."""
        if publisher.first is None:
            publisher.child_root = self.read_child_root(publisher.para_id)
            publisher.first = number
        key, base = publisher.keys[number], publisher.bases[number]
        if publisher.child_root is None:
            self.note_absent(publisher, key)
        elif publisher.has_news and not publisher.disabled:
            is_compared = self.policies.callback == "changed-keys" or base == publisher.child_root
            compared = base if is_compared else None
            change = walk(
                Place(key.hex(), publisher.child_root),
                None if compared is None else Place(key.hex(), compared),
                lambda place: self.read_new(publisher, place),
                lambda place: self.read_old(publisher, place),
            )
            if change is None:
                return
            if change.end is None:
                self.note_absent(publisher, key)
            else:
                self.note_value(publisher, key, change.end)

    def read_child_root(self, para_id: int) -> bytes | None:
        """Return the root of a publisher's child trie, ``None`` if it has none. The way there is charged as well.

        DECISION: a missing node on this path stops the pass, and an invalid one refuses the block; some drafts take
        both for an absent child trie.
        """
        node = lookup(self.block.relay_root, CHILD_STORAGE + child_trie_name(para_id), self.read_relay)
        if node is None or node.value is None:
            return None
        refuse_if(node.hashed or len(node.value) != 32, "InvalidChildRoot")
        return node.value

    # Reads, and what they cost

    def read_relay(self, wanted: bytes, *, is_structure: bool = True) -> bytes:
        """Return a node or an external value of the proof. What was accessed before in this block is free.

        A node that is not in the proof stops the pass.
        """
        if wanted not in self.nodes:
            raise Stop
        if wanted not in self.accessed:
            self.pay(len(self.nodes[wanted]), is_structure=is_structure)
            self.accessed.add(wanted)
        return self.nodes[wanted]

    def read_new(self, publisher: Publisher, place: Place) -> Node:
        """Read a node of the new trie: from the cache, or else from the proof.

        Scenario: Trie Depth Limit / Proof within depth limit
        Scenario: Proof Processing / Depth limit enforced during processing
        Scenario: Proof Processing / Cached nodes read from storage
        """
        wanted = place.reference
        if not is_hash(wanted):
            return Node.decode(wanted)
        if place.above == self.config.max_trie_depth:
            raise TooDeep
        if wanted in publisher.cache:
            return self.read_cached(publisher, wanted)
        publisher.read_from_proof[wanted] = self.read_relay(wanted)
        return Node.decode(publisher.read_from_proof[wanted])

    def read_old(self, publisher: Publisher, place: Place) -> Node:
        """Read a node of the old trie, from the cache alone; the empty one if it is not there."""
        wanted = place.reference
        if not is_hash(wanted):
            return Node.decode(wanted)
        return self.read_cached(publisher, wanted) if wanted in publisher.cache else Node()

    def read_cached(self, publisher: Publisher, wanted: bytes) -> Node:
        """Read a node of the cache. Each publisher pays once for it in a pass."""
        if wanted not in publisher.paid:
            self.pay(len(publisher.cache[wanted]), is_structure=True)
            publisher.paid.add(wanted)
        return Node.decode(publisher.cache[wanted])

    def pay(self, size: int, *, is_structure: bool) -> None:
        """Charge a read, or stop if it does not fit. The limit may be reached exactly.

        DECISION: a read of the cache is charged here; on a chain a host function measures it.

        Scenario: PoV Budget Constraint / WeightMeter tracks ref_time and proof_size
        """
        is_free = is_structure and self.policies.metering == "values-only"
        charged = add(self.consumed, self.config.read(size))
        if not is_free:
            if not fits(charged, self.block.budget):
                raise Stop
            self.consumed = charged
        self.bytes_read += size

    # What it finds

    def note_value(self, publisher: Publisher, key: Key, end: Node) -> None:
        """Record a changed key with its new entry. An external value is read here."""
        self.make_room_for_callback(publisher, key)
        value = end.value or b""
        publisher.changes[key] = self.read_relay(value, is_structure=False) if end.hashed else value

    def note_absent(self, publisher: Publisher, key: Key) -> None:
        """Record a deleted key. DECISION (deletion): only under ``told``, and only if the key was delivered."""
        if self.policies.deletion == "told" and key in publisher.delivered:
            self.make_room_for_callback(publisher, key)
            publisher.changes[key] = None

    def make_room_for_callback(self, publisher: Publisher, key: Key) -> None:
        """Stop unless one more callback fits into what callbacks may weigh in a block."""
        declared = self.block.declared_weights
        weight = add(self.callback_weight, declared.get((publisher.para_id, key), ZERO))
        self.stopped_by_callbacks = not fits(weight, self.config.callback_limit)
        if self.stopped_by_callbacks:
            raise Stop

    @property
    def callback_weight(self) -> Weight:
        """Total declared weight of the callbacks so far; disabled publishers do not count."""
        spots = [(it.para_id, key) for it in self.publishers if not it.disabled for key in it.changes]
        return add(*(self.block.declared_weights.get(spot, ZERO) for spot in spots))

    # Where the next passes begin

    @property
    def is_stuck(self) -> bool:
        """Whether the pass stopped at the key with which it began, so that this key is passed over.

        DECISION: a key that never fits costs the other keys at most one block per round. A pass that began without a
        cursor is not stuck: the next block tries the key again, first.
        """
        return self.begin is not None and self.begin == self.stopped_at

    @property
    def next_cursors(self) -> tuple[Spot | None, Spot | None]:
        """The new cursor and the new owed key; neither after a complete pass.

        ``end`` is where this pass is to be resumed: the key that stopped it, or the one after it if the pass is stuck.
        ``other`` is whichever of cursor and owed key the pass did not begin with. It is dropped if the pass got past.
        """
        if self.stopped_at is None:
            return None, None
        spots = [spot for spot, _, _ in self.work]
        end = spots[min(1, len(spots) - 1)] if self.is_stuck else self.stopped_at
        other = self.cursor if self.begin == self.owed else self.owed
        if self.owed is None or other is None:  # no second position to keep
            becomes_owed = self.is_stuck and self.block.has_messages and end != self.begin
            return end, self.begin if becomes_owed else None
        if other == end or spots.index(other) < spots.index(self.stopped_at):
            return end, None
        return (other, end) if self.begin == self.owed else (end, other)  # both remain, each in its own role


def add(*weights: Mapping[str, Any]) -> Weight:
    """Return the sum of weights."""
    return {dimension: sum(weight[dimension] for weight in weights) for dimension in ZERO}


def run_pass(block: BlockInput, nodes: list[bytes]) -> ProofPass:
    """Run a pass over some nodes and return it. With all nodes that a collator collected, this is PRUNE."""
    proof_pass = ProofPass(block, nodes)
    proof_pass.run()
    return proof_pass


def prune(block: BlockInput, collected: list[bytes]) -> list[bytes]:
    """Return the proof of a block: what the pass reads of the nodes that were collected.

    Scenario: Trie Node Caching / Subsequent proof with cached nodes
    """
    accessed = run_pass(block, collected).accessed
    return [node for node in dict.fromkeys(collected) if blake2_256(node) in accessed]
