"""One pass over a relay state proof: each key in its turn, until all are processed or something runs out.

Every read is paid for, and no read that does not fit is made. A pass may take several blocks: until a publisher is
done, its old root stays, and which of its keys are processed, and against which root, is remembered. No change is
delivered twice and none is lost, even one that is taken back.

INVARIANT: the pass writes nothing. What it reads follows from the plan, the proof's nodes and the meters alone, so
that a collator and its chain read the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.plan import PublisherView, SubscriberPlan
from relaycast_pallets.subscriber.policies import MeteringPolicy, Policies
from relaycast_pallets.subscriber.result import (
    NodeRead,
    Oversize,
    ProofProcessingResult,
    PublisherChange,
    ReadLog,
    ReadSource,
    Stop,
    StopCause,
    WalkedRange,
)
from relaycast_pallets.subscriber.storage import Cursor
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscriptionHandler, weigher_of
from relaycast_pallets.subscriber.walk import PublisherWalk, TrieDepthExceeded, decode_known
from relaycast_trie.engine import HASHES, array_engine, pays_in_arrays
from relaycast_trie.exceptions import InvalidChildRoot, UnusedNodes
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.node import Empty, HashedValue, Node, Value
from relaycast_trie.paths import descend
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import DbWeight, ParaId, Weight, WeightMeter

NodesByHash = Mapping[bytes, bytes]


# The proof


class TrackedProof:
    """The nodes of a ``proof`` under ``relay_root``; ``accessed`` are the hashes of those read so far.

    The nodes are hashed here, even if a proof names their hashes; only ``trusted`` takes these as they come. At the end
    the sets of nodes given and read are compared, never their counts: a proof padded with as many foreign nodes as it
    lacks must not pass.
    """

    __slots__ = ("_table", "_unmarked", "accessed", "is_trusted", "nodes", "relay_root")

    def __init__(self, proof: StorageProof | Iterable[bytes], relay_root: bytes) -> None:
        self.nodes: NodesByHash = by_hash(proof.nodes if isinstance(proof, StorageProof) else proof)
        self.relay_root = relay_root
        self.accessed: set[bytes] = set()
        self.is_trusted = False
        self._table: Any = None
        self._unmarked: list[bytes] = []

    @classmethod
    def trusted(cls, nodes: NodesByHash, relay_root: bytes) -> "TrackedProof":
        """Return nodes under the hashes that they came with, for PRUNE alone: a block hashes what it is given."""
        tracked = cls((), relay_root)
        tracked.nodes, tracked.is_trusted = nodes, True
        return tracked

    @classmethod
    def collected(cls, proof: StorageProof, relay_root: bytes) -> "TrackedProof":
        """Return a proof that its collector is to prune, under the hashes that its nodes came with if they did."""
        return cls(proof, relay_root) if proof.recorded is None else cls.trusted(proof.recorded, relay_root)

    @classmethod
    def without_duplicates(cls, nodes: Sequence[bytes], relay_root: bytes) -> "TrackedProof":
        """Return a proof as a block is given it; raises ``DuplicateNode`` when a node is there twice."""
        tracked = cls(nodes, relay_root)
        return tracked if len(tracked.nodes) == len(nodes) else cls(StorageProof.without_duplicates(nodes), relay_root)

    def record(self, node_hash: bytes, _data: bytes, /) -> None:
        """Count a node as read."""
        self.accessed.add(node_hash)
        if self._table is not None:
            self._unmarked.append(node_hash)

    def table(self) -> Any:
        """Return the nodes in arrays (``array.side_by_side.NodeTable``); those that were read are marked."""
        if self._table is None:
            self._table = array_engine("side_by_side").NodeTable(self.nodes.keys(), self.nodes.values())
            self._table.unmark_all()
            self._unmarked = list(self.accessed)
        if self._unmarked:
            self._table.mark(self._unmarked)
            self._unmarked = []
        return self._table

    def read_static(self, keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """Read keys of the relay chain's top trie outside of any budget.

        Raises ``RootMismatch``, ``MissingNode`` and ``InvalidNode``.
        """
        return TrieDB(self.nodes, self.relay_root, recorder=self).get_many(keys)

    def read_nodes(self) -> StorageProof:
        """Return the proof with the nodes that were read, and no others."""
        nodes = self.nodes
        return StorageProof([nodes[node_hash] for node_hash in self.accessed if node_hash in nodes])

    def ensure_no_unused_nodes(self) -> None:
        """Raise ``UnusedNodes`` unless every node of the proof was read (cumulus ``AccessedNodesTracker``)."""
        unused = self.nodes.keys() - self.accessed
        if unused:
            raise UnusedNodes(tuple(sorted(unused)))


def by_hash(nodes: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return nodes by their hash."""
    given = list(nodes)
    if pays_in_arrays(HASHES, len(given)):
        return dict(zip(array_engine("side_by_side").hashes_of(given), given, strict=True))
    return {blake2_256(node): node for node in given}


# What reads and callbacks weigh


class Charges:
    """Weights by size under one ``metering``: of a relay ``node``, of a relay ``value``, of a ``cached`` node.

    No read is charged for more than ``largest`` bytes. What the relay chain holds may be longer: a version 0 trie has
    its values inside its nodes. A read that does not fit leaves less than the largest charge, so that no honest block
    panics. ``most`` is the largest charge of all.
    """

    def __init__(self, metering: MeteringPolicy, db_weight: DbWeight, largest: int) -> None:
        self.largest = largest

        def by_size(charge: Callable[[DbWeight, int], Weight]) -> Callable[[int], Weight]:
            return cache(lambda size: charge(db_weight, min(size, largest)))

        self.node = by_size(metering.relay_node)
        self.value = by_size(metering.relay_value)
        self.cached = by_size(metering.cached_node)
        self.most = self.node(largest).max(self.value(largest)).max(self.cached(largest))

    @cached_property
    def prices(self) -> Any:
        """What a relay node, a relay value and a cached node weigh, by size, as the array engine has it."""
        sizes = range(self.largest + 1)
        lists = [[(it.ref_time, it.proof_size) for it in map(of, sizes)] for of in (self.node, self.value, self.cached)]
        return array_engine("side_by_side").price_lists(lists)


charges_under = lru_cache(maxsize=64)(Charges)
"""The charges under a metering, with these database weights and this largest charge, made once."""


class CallbackMeter:
    """Sum of the weights that ``handler`` declares for the callbacks of one pass: at most ``limit``.

    The inherent is mandatory, so the time that callbacks take must be bounded. A changed value is read only if the
    meter has room for its callback; the pass ends at the first key without room. A callback for a deletion weighs the
    same as one with a value. If a handler declares nothing, its callbacks weigh nothing.
    """

    __slots__ = ("_weigher", "consumed", "limit")

    def __init__(self, handler: SubscriptionHandler, limit: Weight) -> None:
        self._weigher = weigher_of(handler)
        self.limit = limit
        self.consumed = Weight.ZERO

    @property
    def weighs(self) -> bool:
        """Whether the handler declares anything."""
        return self._weigher is not None

    def admit(self, publisher: ParaId, key: SubscribedKey) -> Weight:
        """Return the weight of one more callback, for ``consume``; raises ``Stop`` if it does not fit."""
        if self._weigher is None:
            return Weight.ZERO
        weight = self._weigher.callback_weight(publisher, key)
        if weight is not Weight.ZERO and not (self.consumed + weight).all_lte(self.limit):
            raise Stop(StopCause.CALLBACKS)
        return weight

    def consume(self, weight: Weight) -> None:
        """Count a callback that was admitted."""
        if weight is not Weight.ZERO:
            self.consumed += weight

    def give_back(self, weight: Weight) -> None:
        """Take back what was counted for callbacks that will not be made."""
        self.consumed -= weight

    def __repr__(self) -> str:
        return f"CallbackMeter(consumed={self.consumed}, limit={self.limit})"


class PaidReads:
    """The reads of one pass, in their order, each paid for out of ``meter`` once a block."""

    def __init__(self, proof: TrackedProof, meter: WeightMeter, charges: Charges) -> None:
        self.proof = proof
        self.meter = meter
        self.charges = charges
        self._top_nodes: dict[bytes, Node] = {}
        self.made: list[NodeRead] | ReadLog = []
        self.least = charges.most
        """The most that the last read could have weighed."""

    def child_root(self, view: PublisherView) -> bytes | None:
        """Return the publisher's child root as the relay chain's top trie has it; raises ``Stop``."""
        value = _TopTrie(self, self.proof.relay_root, self._top_nodes).lookup(_path_to(view.para_id))
        if value is not None and (isinstance(value, HashedValue) or len(value) != HASH_LENGTH):
            raise InvalidChildRoot(derive_child_info(view.para_id).prefixed_storage_key())
        return value

    def fits_arrays(self, _view: PublisherView) -> bool:
        """Return whether a publisher can be walked in arrays."""
        return False

    def walk(self, view: PublisherView, _keys: int, *, max_depth: int) -> PublisherWalk:
        """Return what walks the keys of a publisher, that many of them first."""
        return PublisherWalk(view.subscribed, max_depth=max_depth)

    def get(self, node_hash: bytes, /) -> bytes:
        """Return a node of the top trie; raises ``Stop``."""
        return self.relay(None, node_hash, ReadSource.RELAY_TOP)

    def relay(self, publisher: ParaId | None, node_hash: bytes, source: ReadSource) -> bytes:
        """Return a node or value of the proof; raises ``Stop``."""
        data = self.proof.nodes.get(node_hash)
        if data is None:
            raise Stop(StopCause.PROOF)
        if node_hash not in self.proof.accessed:
            size = len(data)
            charges = self.charges.value if source is ReadSource.RELAY_VALUE else self.charges.node
            self.pay(NodeRead(publisher, node_hash, size, source, charges(size)))
            self.proof.record(node_hash, data)
        return data

    def cached(self, view: PublisherView, node_hash: bytes) -> bytes | None:
        """Return a node of the publisher's cache, ``None`` when it is not there; raises ``Stop``."""
        data = view.cache.get(node_hash)
        if data is not None:
            size = len(data)
            self.pay(NodeRead(view.para_id, node_hash, size, ReadSource.CACHED_NODE, self.charges.cached(size)))
        return data

    def removed(self, _para_id: ParaId) -> list[bytes]:
        """Return the cached nodes of a publisher whose removal was paid for: none, the removal of nodes is free."""
        return []

    def pay(self, read: NodeRead) -> None:
        """Charge a read; raises ``Stop`` if it does not fit."""
        if not self.meter.try_consume(read.weight):
            raise Stop(StopCause.BUDGET)
        self.made.append(read)


class _TopTrie(TrieDB):
    """The relay chain's top trie: nodes are decoded once for all publishers."""

    __slots__ = ("_decoded",)

    def __init__(self, reads: PaidReads, relay_root: bytes, decoded: dict[bytes, Node]) -> None:
        super().__init__(reads, relay_root)
        self._decoded = decoded

    def load(self, reference: bytes, path: bytes) -> Node:
        node = self._decoded.get(reference)
        if node is None:
            node = self._decoded[reference] = super().load(reference, path)
        return node


@cache
def _path_to(para_id: ParaId) -> bytes:
    """Return the nibbles of a publisher's child root in the top trie."""
    return to_nibbles(derive_child_info(para_id).prefixed_storage_key())


# The pass


def run_pass(
    plan: SubscriberPlan, reads: PaidReads, callbacks: CallbackMeter, policies: Policies, max_trie_depth: int
) -> ProofProcessingResult:
    """Read what changed of the planned keys. Raises ``InvalidNode`` and ``InvalidChildRoot``."""
    before, allowed = reads.meter.consumed, reads.meter.remaining()
    stopped_at: Cursor | None = None
    stopped_by: StopCause | None = None
    publishers: dict[ParaId, PublisherPass] = {}
    for view, low, high in plan.turns.work:
        publisher = publishers.get(view.para_id)
        if publisher is None:
            publisher = PublisherPass(view, reads, callbacks, policies, max_trie_depth)
            publishers[view.para_id] = publisher
        try:
            publisher.process(low, high)
        except Stop as stop:
            stopped_at, stopped_by = (view.para_id, view.subscribed.keys[publisher.found.stopped_at]), stop.cause
            break
    changes = [change for publisher in publishers.values() if (change := publisher.change()) is not None]
    return ProofProcessingResult(
        plan,
        plan.turns.after(stopped_at),
        changes,
        reads.made,
        reads.meter.consumed - before,
        allowed,
        tuple(_oversize(reads, publishers)),
        reads.least,
        stopped_by,
        callbacks.consumed,
        callbacks.limit,
    )


class PublisherPass:
    """One publisher's part of a pass, in one range of keys, or in two when the cursor is between its keys.

    ``found`` is what the part found so far. The walk reads nodes here (``NodeReads``): from the publisher's node
    cache, or else from the proof.
    """

    def __init__(
        self,
        view: PublisherView,
        reads: PaidReads,
        callbacks: CallbackMeter,
        policies: Policies,
        max_trie_depth: int,
    ) -> None:
        self.found = PublisherChange(view.para_id)
        self._view = view
        self._reads = reads
        self._callbacks = callbacks
        self._policies = policies
        self._max_depth = max_trie_depth
        self._walk = PublisherWalk(view.subscribed, max_depth=max_trie_depth)
        self.looked_for: dict[bytes, bytes | None] = {}
        self._callback_weight = Weight.ZERO
        self._is_root_known = False

    def process(self, low: int, high: int) -> None:
        """Process keys ``[low, high)``; raises ``Stop``, and ``found.stopped_at`` says where."""
        self._walk.at = low
        try:
            if not self._is_root_known:
                self.found.began_at = self.found.stopped_at = low
                self.found.root = self._reads.child_root(self._view)
                self._is_root_known = True
            if self.found.root is None:
                self.absent(low, high)
            elif not self._is_unchanged and self.found.disabled_by is None:
                self._walk_all(low, high, self.found.root)
        except Stop:
            self.found.stopped_at = self._walk.at
            raise

    def change(self) -> PublisherChange | None:
        """Return what there is to keep, ``None`` when nothing moved."""
        found, walk = self.found, self._walk
        found.removed = self._reads.removed(found.para_id)
        if not self._is_root_known:
            found.sweeping = bool(found.removed)
            return found if found.sweeping else None
        if found.root is not None and self._is_unchanged:
            return None
        found.keys_walked = sum(it.stop - it.start for it in found.ranges)
        found.placements = walk.placements.all_of(it.placements for it in found.ranges)
        found.unseen = walk.unseen
        found.cached = {node_hash: data for node_hash, data in self.looked_for.items() if data is not None}
        if found.disabled_by is not None:
            found.finished, found.deleted = True, []
        elif found.root is None:
            found.finished = True
        else:
            found.changed = walk.changed
            found.finished = found.keys_walked == len(walk.subscribed.keys)
            if not found.finished:
                found.processed_roots = self._processed_roots()
        return found

    def key_in(self, node_hash: bytes) -> bytes | None:
        """Return the key of the entry that a node or value read for this publisher holds."""
        data = self.found.nodes.get(node_hash)
        if data is None:
            return next((key for key, entry in self._walk.changed if blake2_256(entry) == node_hash), None)
        prefix = next(prefix for prefix, gained in self.found.gained if gained == node_hash)
        return _entry_key(prefix, decode_known(node_hash, data))

    @property
    def _is_unchanged(self) -> bool:
        return self.found.root == self._view.root and self._view.processed_roots is None

    def _walk_all(self, low: int, high: int, root: bytes) -> None:
        """Walk keys ``[low, high)`` under ``root``; raises ``Stop``. A trie that is too deep disables the publisher."""
        found = self.found
        if not found.ranges:
            self._walk = self._reads.walk(self._view, high - low, max_depth=self._max_depth)
        walk = self._walk
        for start, stop, base in self._bases(low, high):
            # Keys processed against the current root are done under every policy; otherwise no pass would ever end.
            old_root = base if base == root else self._policies.callback.compared_with(base)
            found.is_compared &= old_root == base
            walk.placements = type(walk.placements)()
            try:
                walk.walk(self, start, stop, new_root=root, old_root=old_root)
            except TrieDepthExceeded as error:
                found.disabled_by, walk.at = error.as_value(), start
                self._callbacks.give_back(self._callback_weight)
                return
            finally:
                found.ranges.append(WalkedRange(start, walk.at, walk.placements))

    def _bases(self, low: int, high: int) -> list[tuple[int, int, bytes | None]]:
        """Return ranges of keys that were last processed against the same root."""
        view = self._view
        if not view.processed_roots:
            return [(low, high, view.root)]
        bases: list[tuple[int, int, bytes | None]] = []
        for index in range(low, high):
            base = view.processed_root(view.subscribed.keys[index])
            if bases and bases[-1][2] == base:
                bases[-1] = (bases[-1][0], index + 1, base)
            else:
                bases.append((index, index + 1, base))
        return bases

    def _processed_roots(self) -> dict[SubscribedKey, bytes | None]:
        keys = self._view.subscribed.keys
        processed = {key: self._view.processed_root(key) for key in keys}
        for start, stop, _ in self.found.ranges:
            processed.update(dict.fromkeys(keys[start:stop], self.found.root))
        return processed

    def new_node(self, node_hash: bytes) -> Node:
        data = self.looked_for.get(node_hash, b"")
        if data == b"":
            data = self._cached(node_hash)
        if data is None:
            data = self._reads.relay(self._view.para_id, node_hash, ReadSource.RELAY_NODE)
            self.found.nodes[node_hash] = data
        return decode_known(node_hash, data)

    def old_node(self, node_hash: bytes) -> Node | None:
        data = self.looked_for.get(node_hash, b"")
        if data == b"":
            data = self._cached(node_hash)
        return None if data is None else decode_known(node_hash, data)

    def changed_entry(self, key: SubscribedKey, value: Value) -> bytes:
        """Return the new entry of a key, read only if its callback fits too; raises ``Stop``."""
        weight = self.admit(key)
        if isinstance(value, HashedValue):
            value = self._reads.relay(self._view.para_id, value.hash, ReadSource.RELAY_VALUE)
        self.consume(weight)
        return value

    @property
    def weighs(self) -> bool:
        """Whether callbacks weigh anything."""
        return self._callbacks.weighs

    def admit(self, key: SubscribedKey) -> Weight:
        """Return the weight of the callback for a changed key; raises ``Stop`` if it does not fit."""
        return self._callbacks.admit(self._view.para_id, key)

    def absent(self, low: int, high: int) -> None:
        """Note those of the keys ``[low, high)``, all proven absent, whose deletion is to be reported; may ``Stop``."""
        keys, delivered = self._view.subscribed.keys, self._view.delivered()
        if not delivered:
            return
        for index in range(low, high):
            if keys[index] in delivered:
                self._walk.at = index
                self.consume(self._callbacks.admit(self._view.para_id, keys[index]))
                self.found.deleted.append(keys[index])

    def _cached(self, node_hash: bytes) -> bytes | None:
        """Return a node of the cache, paid for once, ``None`` when it is not there; raises ``Stop``."""
        data = self.looked_for[node_hash] = self._reads.cached(self._view, node_hash)
        return data

    def consume(self, weight: Weight) -> None:
        """Count a callback, which is dropped again if the publisher is disabled."""
        self._callbacks.consume(weight)
        if weight is not Weight.ZERO:
            self._callback_weight += weight


# What was read beyond its charge


def _oversize(reads: PaidReads, publishers: Mapping[ParaId, PublisherPass]) -> Iterator[Oversize]:
    """Yield what was longer than a read is charged for, with the keys of the entries inside."""
    largest = reads.charges.largest
    if isinstance(reads.made, ReadLog) and reads.made.largest <= largest:
        return
    for publisher, node_hash, size, _, _ in reads.made:
        if size > largest:
            if publisher is None:
                key = _key_on_top(node_hash, reads.proof, publishers)
            else:
                key = publishers[publisher].key_in(node_hash)
            yield Oversize(publisher, node_hash, size, largest, key)


def _key_on_top(node_hash: bytes, proof: TrackedProof, publishers: Iterable[ParaId]) -> bytes | None:
    """Return the key of the entry that a node on the way to some publishers' child roots holds."""
    paths = sorted(map(_path_to, publishers))
    read = {it: data for it in proof.accessed if (data := proof.nodes.get(it)) is not None}
    for reference, _, node, depth, low, _, _, _ in descend(paths, proof.relay_root, read):
        if reference == node_hash:
            return _entry_key(paths[low][:depth], node)
    return None


def _entry_key(prefix: bytes, node: Node) -> bytes | None:
    """Return the key whose value ``node`` at the nibbles ``prefix`` holds, ``None`` when it holds none."""
    if isinstance(node, Empty) or node.value is None:
        return None
    path = prefix + node.partial
    return None if len(path) % 2 else from_nibbles(path)
