"""A metering that charges all that a block carries: relay nodes, and the paths that they take in the own trie.

Whatever is looked for, kept or removed in the cache takes a path in the own trie, and that is paid for before it is
touched. A cached node is stored with its uses: of how many keys, each in the trie that it was last processed against,
it is on the path. A key that moves from one trie to another moves the uses of those nodes alone that the walk met. So a
node goes with the last key that used it, in a block that has read it anyway, and nothing has to be marked.

A cache may go altogether, because keys were removed or the child trie is gone. It then goes before anything new of its
publisher comes, over as many blocks as the budget takes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from relaycast_pallets.frame.state import State
from relaycast_pallets.subscriber.node_cache import NodeCache, PublisherCache, marked_placements
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES
from relaycast_pallets.subscriber.proof_pass import (
    Charges,
    PaidReads,
    TrackedProof,
)
from relaycast_pallets.subscriber.result import (
    NodeRead,
    PublisherChange,
    ReadSource,
    Stop,
    StopCause,
)
from relaycast_pallets.subscriber.storage import NO_CACHED_NODES, CachedNodes, SubscriberStorage
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Value
from relaycast_trie.node_codec import decode_known_node
from relaycast_trie.paths import under
from relaycast_xcm.primitives import DbWeight, ParaId, Weight, WeightMeter

USES_BYTES = 4
"""Uses are stored behind the node, a u32."""


class MeterOwnState(Struct, frozen=True):
    """All that a block carries for a read: its bytes, the write that keeps a node, and the paths in the own trie.

    The bytes of the own trie, those of a cached node among them, are charged as the sealed trie has them, each of its
    nodes once a block. A cache that goes altogether is removed within the budgets of several blocks.
    """

    charges_own_state: ClassVar[bool] = True

    def relay_node(self, db_weight: DbWeight, size: int) -> Weight:
        return db_weight.reads_writes(1, 1) + Weight(0, size)

    def relay_value(self, db_weight: DbWeight, size: int) -> Weight:
        return Weight(db_weight.read, size)

    def cached_node(self, db_weight: DbWeight, size: int) -> Weight:  # noqa: ARG002 - bytes are those of the own trie
        return db_weight.reads_writes(1, 1)


# The reads of a pass


class MeteredStateReads(PaidReads):
    """Reads that pay for paths in the own trie too."""

    def __init__(
        self, proof: TrackedProof, meter: WeightMeter, charges: Charges, storage: SubscriberStorage, db_weight: DbWeight
    ) -> None:
        super().__init__(proof, meter, charges)
        self._own = OwnTrie(storage.state)
        self._db_weight = db_weight
        self._nodes_of = storage.cached_trie_nodes
        self._stored: dict[ParaId, list[bytes]] = {}
        self._removed: dict[ParaId, int] = {}

    def child_root(self, view: PublisherView) -> bytes | None:
        """Return the publisher's child root, after all nodes of a cache that no longer counts were paid for."""
        if view.cache is NO_CACHED_NODES:
            self._remove_all(view.para_id)
        root = super().child_root(view)
        if root is None:
            self._remove_all(view.para_id)
        return root

    def relay(self, publisher: ParaId | None, node_hash: bytes, source: ReadSource) -> bytes:
        """Return a node or value of the proof; a node with its place in the cache. Raises ``Stop``."""
        data, load, charges = self.proof.nodes.get(node_hash), NO_LOAD, self.charges.value
        if publisher is not None and source is ReadSource.RELAY_NODE:
            load, charges = self._own.path(self._nodes_of.storage_key(publisher, node_hash)), self.charges.node
        if data is None:
            self.least = self.charges.most + Weight(0, load.size)
            raise Stop(StopCause.PROOF)
        if node_hash not in self.proof.accessed:
            size = len(data)
            self._pay_with(load, NodeRead(publisher, node_hash, size, source, charges(size)), self.charges.most)
            self.proof.accessed.add(node_hash)
        elif load.size:
            self._pay_with(load, NodeRead(publisher, node_hash, 0, ReadSource.OWN_PATH, self._db_weight.writes(1)))
        return data

    def cached(self, view: PublisherView, node_hash: bytes) -> bytes | None:
        """Return a node of the publisher's cache, paid for before it is looked for; raises ``Stop``."""
        if view.cache is NO_CACHED_NODES:
            return None
        load, weight = self._own.entry(self._nodes_of.storage_key(view.para_id, node_hash)), self.charges.cached(0)
        self._pay_with(load, NodeRead(view.para_id, node_hash, 0, ReadSource.OWN_PATH, weight))
        data = view.cache.get(node_hash)
        if data is not None:
            assert isinstance(self.made, list), "no walk under this metering is in arrays"
            self.made[-1] = self.made[-1]._replace(size=len(data), source=ReadSource.CACHED_NODE)
        return data

    def removed(self, para_id: ParaId) -> list[bytes]:
        """Return the cached nodes of a publisher whose removal was paid for."""
        return self._stored.get(para_id, [])[: self._removed.get(para_id, 0)]

    def _remove_all(self, para_id: ParaId) -> None:
        """Pay for the removal of all cached nodes of a publisher, none of which is read; raises ``Stop``."""
        stored = self._stored.setdefault(para_id, self._nodes_of.second_keys(para_id))
        for node_hash in stored[self._removed.get(para_id, 0) :]:
            load = self._own.removal(self._nodes_of.storage_key(para_id, node_hash))
            self._pay_with(load, NodeRead(para_id, node_hash, 0, ReadSource.OWN_PATH, self._db_weight.writes(1)))
            self._removed[para_id] = self._removed.get(para_id, 0) + 1

    def _pay_with(self, load: "Load", read: NodeRead, most: Weight | None = None) -> None:
        """Pay for a step and what it adds to the block; ``most`` is what the step itself could weigh."""
        own = Weight(0, load.size)
        try:
            self.pay(read._replace(weight=read.weight + own))
        except Stop:
            self.least = (read.weight if most is None else most) + own
            raise
        self._own.carry(load)


# The cache


class RefCountedCache(NodeCache):
    """Keeps nodes with their uses; what goes is removed within the budget of a pass."""

    def nodes_of(self, para_id: ParaId) -> CachedNodes:
        """Return the cached nodes of a publisher without their uses."""
        return RefCountedNodes(super().nodes_of(para_id))

    def view(self, view: PublisherView) -> PublisherView:
        """Return a publisher with a cache that counts as long as a key was processed against any root."""
        has_root = view.root is not None or any((view.processed_roots or {}).values())
        return replace(view, cache=self.nodes_of(view.para_id) if has_root else NO_CACHED_NODES)

    def is_waiting(self, view: PublisherView, change: PublisherChange | None) -> bool:
        """Return whether nodes of a publisher have to go before it can be followed anew."""
        if change is not None:
            return change.sweeping
        has_changed = view.change in {SubscriptionChange.NEW, SubscriptionChange.REMOVED}
        return has_changed and bool(self.storage.cached_trie_nodes.second_keys(view.para_id))

    def change(self, change: PublisherChange, view: PublisherView) -> PublisherCache:
        """Return what becomes of one publisher's cache: uses say what goes."""
        if change.root is None or change.disabled_by is not None:
            return PublisherCache(remove=set(change.removed))
        # The old paths were walked, and nothing of them is out of sight.
        compares, keeps = self.policies.callback.compared_with(change.root) == change.root, self.policies.cache.keeps
        if compares and keeps(bytes(MAX_NODE_BYTES)):
            return self.counted(change, view)
        if change.finished:
            return self.swept(change, view, change.root)
        nodes = {node_hash: with_uses(data, 0) for node_hash, data in self.kept(change.nodes).items()}
        return PublisherCache(insert=nodes, remove=set(change.removed) - nodes.keys())

    def counted(self, change: PublisherChange, view: PublisherView) -> PublisherCache:
        """Return the changes by the keys that moved from one trie to the other, range by range."""
        moved: dict[bytes, int] = {}
        for start, stop, placed in change.ranges:
            for sign, placements in ((1, placed.gained), (-1, placed.lost)):
                for prefix, node_hash in placements:
                    low, high = under(view.subscribed.paths, prefix, start, stop)
                    moved[node_hash] = moved.get(node_hash, 0) + sign * (high - low)
        cache, nodes, keeps = PublisherCache(), view.cache, self.policies.cache.keeps
        for node_hash, difference in moved.items():
            before = nodes.uses(node_hash) if isinstance(nodes, RefCountedNodes) else 0
            data = change.nodes.get(node_hash) if before == 0 else nodes.get(node_hash)
            if before + difference <= 0:
                cache.remove |= {node_hash} if before else set()
            elif difference and data is not None and keeps(data):
                cache.insert[node_hash] = with_uses(data, before + difference)
        cache.remove |= set(change.removed) - cache.insert.keys()
        return cache

    def swept(self, change: PublisherChange, view: PublisherView, root: bytes) -> PublisherCache:
        """Return the changes that leave the subscribed paths alone, marked anew: what other policies cost extra."""
        stored = view.cache.all()
        known = stored | change.nodes
        uses = uses_of([(view.subscribed, root)], known)
        wanted = self.kept({node_hash: known[node_hash] for node_hash in uses if node_hash in known})
        kept = {node_hash: with_uses(data, uses[node_hash]) for node_hash, data in wanted.items()}
        return PublisherCache(insert=kept, remove=(stored.keys() | set(change.removed)) - kept.keys())

    def drop(self, para_id: ParaId) -> None:
        """Nothing is left to drop: the cache went within the budget."""

    def forget_root(self, para_id: ParaId) -> None:
        """Forget a publisher's root, and what it was subscribed for: its nodes have to go first."""
        self.storage.forget_publisher(para_id, keeps_delivered=self.policies.deletion.notifies)


def with_uses(node: bytes, uses: int) -> bytes:
    """Return a node as it is stored."""
    return node + uses.to_bytes(USES_BYTES, "little")


def without_uses(stored: bytes) -> bytes:
    """Return the node that was stored."""
    return stored[:-USES_BYTES]


class RefCountedNodes:
    """The cached nodes of one publisher (``CachedNodes``) with their uses."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: CachedNodes) -> None:
        self._nodes = nodes

    def get(self, node_hash: bytes, /) -> bytes | None:
        stored = self._nodes.get(node_hash)
        return None if stored is None else without_uses(stored)

    def all(self) -> dict[bytes, bytes]:
        return {node_hash: without_uses(stored) for node_hash, stored in self._nodes.all().items()}

    def shared(self) -> Mapping[bytes, int]:
        return {}

    def uses(self, node_hash: bytes) -> int:
        """Return on how many paths a node is, none when it is not stored."""
        stored = self._nodes.get(node_hash)
        return 0 if stored is None else int.from_bytes(stored[-USES_BYTES:], "little")


def uses_of(paths: Iterable[tuple[SubscribedPaths, bytes]], nodes: Mapping[bytes, bytes]) -> Counter[bytes]:
    """Return the uses of every node on the paths of keys under their roots, as far as ``nodes`` reach."""
    return Counter(
        node_hash
        for subscribed, root in paths
        for key in subscribed.keys
        for _, node_hash in marked_placements(SubscribedPaths.of([key]), root, nodes)
    )


# The own trie


Place = tuple[bytes, int]
"""A child of a branch: the branch's path, and the child's nibble."""


class Load(NamedTuple):
    """What one step adds to a block: ``size`` bytes of nodes that it does not carry yet."""

    size: int
    nodes: tuple[bytes, ...]
    going: tuple[Place, ...] = ()
    """Children that go with the key, if it goes."""


NO_LOAD = Load(0, ())


class OwnTrie:
    """The sealed top trie of ``state``, and what of it a block carries so far.

    Reading a key takes the nodes on its path and its value, writing one takes the path alone. Removing one may leave a
    branch with a single child, and then takes that child too. The trie is the one that the last block sealed: collator
    and chain have the same, and what was written since is in no proof.
    """

    def __init__(self, state: State) -> None:
        self._nodes, self._root = state.db, state.root
        self._carried: set[bytes] = set()
        self._going: dict[bytes, set[int]] = {}

    def path(self, key: bytes) -> Load:
        """Return what looking for ``key``, or writing it, takes."""
        references, _, _ = self._walk(key)
        return self._load(references)

    def entry(self, key: bytes) -> Load:
        """Return what reading ``key`` takes, and removing it."""
        references, branches, value = self._walk(key)
        if isinstance(value, HashedValue):
            references.append(value.hash)
        return self._with_removal(references, branches, value)

    def removal(self, key: bytes) -> Load:
        """Return what removing ``key`` unread takes."""
        return self._with_removal(*self._walk(key))

    def carry(self, load: Load) -> None:
        """Count a load as carried."""
        self._carried.update(load.nodes)
        for path, nibble in load.going:
            self._going.setdefault(path, set()).add(nibble)

    def _load(self, references: Iterable[bytes], going: tuple[Place, ...] = ()) -> Load:
        new = tuple(dict.fromkeys(it for it in references if len(it) == HASH_LENGTH and it not in self._carried))
        return Load(sum(len(self._nodes.get(it) or b"") for it in new), new, going)

    def _walk(self, key: bytes) -> tuple[list[bytes], list[tuple[bytes, Branch, int]], Value | None]:
        """Return the nodes on the path of ``key``, its branches with their ways, and the value at its end."""
        path, depth, reference = to_nibbles(key), 0, self._root
        references: list[bytes] = []
        branches: list[tuple[bytes, Branch, int]] = []
        while True:
            data = self._nodes.get(reference) if len(reference) == HASH_LENGTH else reference
            if data is None:
                return references, branches, None
            references.append(reference)
            node, above = decode_known_node(data), depth
            if isinstance(node, Empty) or not path.startswith(node.partial, depth):
                return references, branches, None
            depth += len(node.partial)
            if depth == len(path):
                return references, branches, node.value
            child = node.children[path[depth]] if isinstance(node, Branch) else None
            if child is None or not isinstance(node, Branch):
                return references, branches, None
            branches.append((path[:above], node, path[depth]))
            depth, reference = depth + 1, child

    def _with_removal(
        self, references: list[bytes], branches: list[tuple[bytes, Branch, int]], value: Value | None
    ) -> Load:
        """Add the child that a branch is left with, from the lowest branch up as far as branches go altogether."""
        if value is None:
            return self._load(references)
        going: list[Place] = []
        for path, branch, nibble in reversed(branches):
            going.append((path, nibble))
            gone = self._going.get(path, set()) | {nibble}
            left = [child for index, child in enumerate(branch.children) if child is not None and index not in gone]
            if left or branch.value is not None:
                if len(left) == 1 and branch.value is None:
                    references.append(left[0])
                break
        return self._load(references, tuple(going))
