"""One pass over a relay state proof: the work in its order, and every read that it pays for."""

from collections.abc import Mapping
from functools import cache

from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.callbacks import CallbackMeter
from relaycast_pallets.subscriber.oversize import Oversize, key_on_the_way
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import Cursor, PublisherView
from relaycast_pallets.subscriber.processing_result import NodeRead, ProofProcessingResult, ReadSource
from relaycast_pallets.subscriber.publisher_pass import PublisherPass
from relaycast_pallets.subscriber.stop import Stop, StopCause
from relaycast_pallets.subscriber.tracked_proof import TrackedProof
from relaycast_pallets.subscriber.turns import Turns
from relaycast_trie.exceptions import InvalidChildRoot
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import HashedValue, Node
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_xcm.primitives import ParaId, WeightMeter


class Pass:
    """One pass: the work in its order, and every read that it pays for."""

    def __init__(
        self, proof: TrackedProof, meter: WeightMeter, subscriber: Subscriber, seed: bytes, *, crowded: bool
    ) -> None:
        self._proof = proof
        self._nodes, self._accessed = proof.nodes, proof.accessed
        self._meter = meter
        self._plan = subscriber.plan()
        self._seed = seed if self._plan.seed is None else self._plan.seed
        self._top_nodes: dict[bytes, Node] = {}
        self._charges = subscriber.charges
        self._least = self._charges.most
        self.policies = subscriber.policies
        self.max_trie_depth = subscriber.config.max_trie_depth
        self.callbacks = CallbackMeter(subscriber.handler, subscriber.config.callback_limit)
        self.cache_limit = subscriber.cache_limit()
        self.reads: list[NodeRead] = []
        order = self.policies.order.arrange(self._plan.views, self._seed)
        self._turns = Turns(self._plan, order, crowded=crowded)

    def run(self) -> ProofProcessingResult:
        before, allowed = self._meter.consumed, self._meter.remaining()
        stopped_at: Cursor | None = None
        stopped_by: StopCause | None = None
        publishers: dict[ParaId, PublisherPass] = {}
        for view, low, high in self._turns.work:
            publisher = publishers.get(view.para_id)
            if publisher is None:
                publisher = publishers[view.para_id] = self._publisher_pass(view)
            try:
                publisher.process(low, high)
            except Stop as stop:
                stopped_at, stopped_by = (view.para_id, view.subscribed.keys[publisher.stopped_at]), stop.cause
                break
        changes = [change for publisher in publishers.values() if (change := publisher.change()) is not None]
        return ProofProcessingResult(
            self._plan,
            self._turns.after(stopped_at),
            changes,
            self.reads,
            self._meter.consumed - before,
            self._seed,
            allowed,
            self._oversize(publishers),
            self._least,
            stopped_by,
            self.callbacks.consumed,
            self.callbacks.limit,
            self.cache_limit,
        )

    def _publisher_pass(self, view: PublisherView) -> PublisherPass:
        return PublisherPass(self, view)

    def _oversize(self, publishers: Mapping[ParaId, PublisherPass]) -> tuple[Oversize, ...]:
        """Return what was read beyond what a read is charged for, with the keys of the entries inside."""
        largest = self._charges.largest
        long = [read for read in self.reads if read.size > largest]
        return tuple(
            Oversize(read.publisher, read.node_hash, read.size, largest, self._key_in(read, publishers))
            for read in long
        )

    def _key_in(self, read: NodeRead, publishers: Mapping[ParaId, PublisherPass]) -> bytes | None:
        if read.publisher is not None:
            return publishers[read.publisher].key_in(read.node_hash)
        ways = map(_path_to, self._plan.views)
        return key_on_the_way(read.node_hash, self._proof.relay_root, ways, self._top_nodes)

    def child_root(self, para_id: ParaId) -> bytes | None:
        """Return the publisher's child root as the relay chain's top trie has it."""
        value = _TopTrie(self, self._proof.relay_root, self._top_nodes).lookup(_path_to(para_id))
        if value is not None and (isinstance(value, HashedValue) or len(value) != HASH_LENGTH):
            raise InvalidChildRoot(derive_child_info(para_id).prefixed_storage_key())
        return value

    def read_relay(self, publisher: ParaId | None, node_hash: bytes, source: ReadSource) -> bytes:
        """Return a node or value of the proof, paid for once a block; raises ``Stop``."""
        data = self._nodes.get(node_hash)
        if data is None:
            raise Stop(StopCause.PROOF)
        if node_hash not in self._accessed:
            size = len(data)
            charges = self._charges.value if source is ReadSource.RELAY_VALUE else self._charges.node
            self._pay(NodeRead(publisher, node_hash, size, source, charges[size]))
            self._accessed.add(node_hash)
        return data

    def read_cached(self, view: PublisherView, node_hash: bytes) -> bytes | None:
        """Return a node of the publisher's cache, paid for, ``None`` when it is not there; raises ``Stop``."""
        data = view.cache.get(node_hash)
        if data is not None:
            size = len(data)
            self._pay(NodeRead(view.para_id, node_hash, size, ReadSource.CACHED_NODE, self._charges.cached[size]))
        return data

    def _pay(self, read: NodeRead) -> None:
        if not self._meter.try_consume(read.weight):
            raise Stop(StopCause.BUDGET)
        self.reads.append(read)


class _TopNodes:
    """Nodes of the relay chain's top trie, as a pass pays for them."""

    __slots__ = ("_run",)

    def __init__(self, run: Pass) -> None:
        self._run = run

    def get(self, node_hash: bytes, /) -> bytes:
        """Return a node that is paid for; raises ``Stop``."""
        return self._run.read_relay(None, node_hash, ReadSource.RELAY_TOP)


class _TopTrie(TrieDB):
    """The relay chain's top trie: each node is read, paid for and decoded once."""

    __slots__ = ("_nodes",)

    def __init__(self, run: Pass, relay_root: bytes, nodes: dict[bytes, Node]) -> None:
        super().__init__(_TopNodes(run), relay_root)
        self._nodes = nodes

    def load(self, reference: bytes, path: bytes) -> Node:
        """Return a node as ``TrieDB`` does; raises ``Stop``."""
        node = self._nodes.get(reference)
        if node is None:
            node = self._nodes[reference] = super().load(reference, path)
        return node


@cache
def _path_to(para_id: ParaId) -> bytes:
    """Return the nibbles of a publisher's child root in the top trie."""
    return to_nibbles(derive_child_info(para_id).prefixed_storage_key())
