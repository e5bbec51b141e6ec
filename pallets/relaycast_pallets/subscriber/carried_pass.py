"""A pass that is charged with all that its block carries: relay nodes, and what they make of the parachain's own trie.

Whatever is looked for, kept or removed in the cache takes a path in the own trie, and that is paid for before it is
touched. A node goes when the last key that used it has moved on, in a block that has read it anyway. A cache may go
altogether, because keys were removed or the child trie is gone. It then goes before anything new of its publisher
comes, over as many blocks as the budget takes.
"""

from functools import partial

from relaycast_pallets.subscriber.counted_nodes import CountedNodes, uses_of, with_uses
from relaycast_pallets.subscriber.node_cache import PublisherCache
from relaycast_pallets.subscriber.own_trie import Load, OwnTrie
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import NO_CACHED_NODES, Bases, PublisherView
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES
from relaycast_pallets.subscriber.proof_pass import Pass
from relaycast_pallets.subscriber.publisher_pass import PublisherPass
from relaycast_pallets.subscriber.result import (
    NodeRead,
    PublisherChange,
    ReadSource,
    Stop,
    StopCause,
)
from relaycast_pallets.subscriber.tracked_proof import TrackedProof
from relaycast_pallets.subscriber.walk import Placement
from relaycast_trie.paths import under
from relaycast_xcm.primitives import ParaId, Weight, WeightMeter

NO_LOAD = Load(0, ())


class CarriedPass(Pass):
    """One pass that pays for paths in the own trie too."""

    def __init__(
        self, proof: TrackedProof, meter: WeightMeter, subscriber: Subscriber, seed: bytes, *, crowded: bool
    ) -> None:
        super().__init__(proof, meter, subscriber, seed, crowded=crowded)
        self._own = OwnTrie(subscriber.system.state)
        self._db_weight = subscriber.config.db_weight
        self._nodes_of = subscriber.storage.cached_trie_nodes

    def read_relay(self, publisher: ParaId | None, node_hash: bytes, source: ReadSource) -> bytes:
        """Return a node or value of the proof; a node with its place in the cache. Raises ``Stop``."""
        data, load, charges = self._nodes.get(node_hash), NO_LOAD, self._charges.value
        if publisher is not None and source is ReadSource.RELAY_NODE:
            load, charges = self._own.path(self._nodes_of.storage_key(publisher, node_hash)), self._charges.node
        if data is None:
            self._least = self._charges.most + Weight(0, load.size)
            raise Stop(StopCause.PROOF)
        if node_hash not in self._accessed:
            size = len(data)
            self._pay_with(load, NodeRead(publisher, node_hash, size, source, charges[size]), self._charges.most)
            self._accessed.add(node_hash)
        elif load.size:
            self._pay_with(load, NodeRead(publisher, node_hash, 0, ReadSource.OWN_PATH, self._db_weight.writes(1)))
        return data

    def read_cached(self, view: PublisherView, node_hash: bytes) -> bytes | None:
        """Return a node of the publisher's cache, paid for before it is looked for; raises ``Stop``."""
        if view.cache is NO_CACHED_NODES:
            return None
        load, weight = self._own.entry(self._nodes_of.storage_key(view.para_id, node_hash)), self._charges.cached[0]
        self._pay_with(load, NodeRead(view.para_id, node_hash, 0, ReadSource.OWN_PATH, weight))
        data = view.cache.get(node_hash)
        if data is not None:
            self.reads[-1] = self.reads[-1]._replace(size=len(data), source=ReadSource.CACHED_NODE)
        return data

    def stored_nodes(self, para_id: ParaId) -> list[bytes]:
        """Return the hashes of all cached nodes of a publisher."""
        return self._nodes_of.second_keys(para_id)

    def pay_for_removal(self, para_id: ParaId, node_hash: bytes) -> None:
        """Pay for the removal of a cached node that is not read; raises ``Stop``."""
        load = self._own.removal(self._nodes_of.storage_key(para_id, node_hash))
        self._pay_with(load, NodeRead(para_id, node_hash, 0, ReadSource.OWN_PATH, self._db_weight.writes(1)))

    def _publisher_pass(self, view: PublisherView) -> PublisherPass:
        return CarriedPublisherPass(self, view)

    def _pay_with(self, load: Load, read: NodeRead, most: Weight | None = None) -> None:
        """Pay for a step and what it adds to the block; ``most`` is what the step itself could weigh."""
        own = Weight(0, load.size)
        try:
            self._pay(read._replace(weight=read.weight + own))
        except Stop:
            self._least = (read.weight if most is None else most) + own
            raise
        self._own.carry(load)


class CarriedPublisherPass(PublisherPass):
    """One publisher's part: old nodes go first where none of them counts, then uses are counted run by run."""

    def __init__(self, run: CarriedPass, view: PublisherView) -> None:
        super().__init__(run, view)
        self._carried = run
        self._stored: list[bytes] | None = None
        self._removed = 0
        self._met: list[tuple[set[Placement], set[Placement]]] = []

    def change(self) -> PublisherChange | None:
        """Return what there is to keep, and the old nodes that went."""
        if not self._root_known:
            change = PublisherChange(self._view.para_id, None, sweeping=True) if self._removed else None
        else:
            change = super().change()
        if change is not None and (change.sweeping or change.root is None or change.disabled_by is not None):
            change.sweep = partial(PublisherCache, remove=set(self._gone()))
        return change

    def _begin(self) -> bytes | None:
        if self._view.cache is NO_CACHED_NODES:
            self._remove_all()
        root = super()._begin()
        if root is None:
            self._remove_all()
        return root

    def _remove_all(self) -> None:
        if self._stored is None:
            self._stored = self._carried.stored_nodes(self._view.para_id)
        for node_hash in self._stored[self._removed :]:
            self._carried.pay_for_removal(self._view.para_id, node_hash)
            self._removed += 1

    def _gone(self) -> list[bytes]:
        return (self._stored or [])[: self._removed]

    def _walk_run(self, start: int, stop: int, old_root: bytes | None) -> None:
        walk = self._walk
        before = walk.gained, walk.lost
        walk.gained, walk.lost = set(), set()
        try:
            super()._walk_run(start, stop, old_root)
        finally:
            self._met.append((walk.gained, walk.lost))
            walk.gained, walk.lost = before[0] | walk.gained, before[1] | walk.lost

    def _interrupted_cache(self, bases: Bases) -> PublisherCache:  # noqa: ARG002 - uses say what goes
        if self._sees_all:
            return self._counted()
        nodes = {node_hash: with_uses(data, 0) for node_hash, data in self._kept(self._new).items()}
        return PublisherCache(insert=nodes, remove=set(self._gone()) - nodes.keys())

    def _swept_cache(self) -> PublisherCache:
        return self._counted() if self._sees_all else self._marked()

    @property
    def _sees_all(self) -> bool:
        """Whether the old paths are walked and nothing of them is out of sight, as the policies are."""
        policies, root = self._run.policies, self._root
        return policies.callback.compared_with(root) == root and policies.cache.keeps(bytes(MAX_NODE_BYTES))

    def _counted(self) -> PublisherCache:
        """Return the changes by the keys that moved from one trie to the other, run by run."""
        moved: dict[bytes, int] = {}
        for (start, stop), (gained, lost) in zip(self._done, self._met, strict=True):
            for sign, placements in ((1, gained), (-1, lost)):
                for prefix, node_hash in placements:
                    low, high = under(self._walk.subscribed.paths, prefix, start, stop)
                    moved[node_hash] = moved.get(node_hash, 0) + sign * (high - low)
        cache, nodes, keeps = PublisherCache(), self._view.cache, self._run.policies.cache.keeps
        for node_hash, difference in moved.items():
            before = nodes.uses(node_hash) if isinstance(nodes, CountedNodes) else 0
            data = self._new.get(node_hash) if before == 0 else nodes.get(node_hash)
            if before + difference <= 0:
                cache.remove |= {node_hash} if before else set()
            elif difference and data is not None and keeps(data):
                cache.insert[node_hash] = with_uses(data, before + difference)
        cache.remove |= set(self._gone()) - cache.insert.keys()
        return cache

    def _marked(self) -> PublisherCache:
        """Return the changes that leave the subscribed paths alone, marked anew: what other policies cost extra."""
        assert self._root is not None
        stored = self._view.cached_nodes()
        known = stored | self._new
        uses = uses_of([(self._view.subscribed, self._root)], known)
        wanted = self._kept({node_hash: known[node_hash] for node_hash in uses if node_hash in known})
        kept = {node_hash: with_uses(data, uses[node_hash]) for node_hash, data in wanted.items()}
        return PublisherCache(insert=kept, remove=(stored.keys() | set(self._gone())) - kept.keys())
