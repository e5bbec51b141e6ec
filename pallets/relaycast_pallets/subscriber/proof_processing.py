"""One algorithm in two modes: what the collator prunes by is what the chain verifies by.

``process_proof`` walks the publishers from the cursor on, once around, reading what changed until the meter or the
proof ends. With PRUNE it writes nothing: what it read is what the pruned proof holds. With VERIFY the subscriber
takes over what was found. Running out of weight is a result with a cursor.

A pass may take several blocks. Until a publisher is done its old root stays; which of its keys are dealt with, and
against which root, is remembered, so that no change is told twice and none is lost, even one that is taken back.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache

from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_pallets.subscriber.oversize import Oversize, key_on_the_way
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import Cursor
from relaycast_pallets.subscriber.processing_result import (
    NodeRead,
    ProofProcessingResult,
    ReadSource,
)
from relaycast_pallets.subscriber.publisher_pass import PublisherPass, Stop
from relaycast_pallets.subscriber.tracked_proof import TrackedProof
from relaycast_pallets.subscriber.turns import Turns
from relaycast_trie.exceptions import InvalidChildRoot
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import HashedValue, Node
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import BlockNumber, ParaId, Weight, WeightMeter


class ProcessingMode(Enum):
    """Whether what is found is kept: ``PRUNE`` in the collator, ``VERIFY`` on chain."""

    PRUNE = "prune"
    VERIFY = "verify"


Demand = Callable[[ProofProcessingResult], None]
"""What must hold of a pass before anything of it is kept; raises when it does not."""


def process_proof(
    mode: ProcessingMode,
    proof: StorageProof | TrackedProof,
    relay_root: bytes,
    meter: WeightMeter,
    subscriber: Subscriber,
    *,
    seed: bytes = b"",
    relay_parent_number: BlockNumber = 0,
    crowded: bool = False,
    demand: Demand | None = None,
) -> ProofProcessingResult:
    """Process a relay state proof for everything that ``subscriber`` subscribes to, within what ``meter`` allows.

    ``seed`` shuffles the publishers; both modes must be given the same one. A pass that goes on where the last one was
    cut short keeps that one's order, so that no publisher is repeatedly shuffled last. ``crowded`` says that messages
    took a part of what the meter allows (see ``turns``). A ``TrackedProof`` learns what was read.
    With ``VERIFY`` the result must first meet the ``demand``; then the subscriber's storage is written and its handler
    called, with times to live counted from ``relay_parent_number``. Raises ``InvalidNode`` and ``InvalidChildRoot``
    where the relay chain's state is broken, and ``ValueError`` for VERIFY by hashes that were taken on trust.
    """
    if mode is ProcessingMode.VERIFY and isinstance(proof, TrackedProof) and proof.is_trusted:
        raise ValueError("a block hashes what it is given: no proof that is taken on trust")
    tracked = proof if isinstance(proof, TrackedProof) else TrackedProof(proof, relay_root)
    result = _Pass(tracked, meter, subscriber, seed, crowded=crowded).run()
    if mode is ProcessingMode.VERIFY:
        if demand is not None:
            demand(result)
        subscriber.apply(result, relay_parent_number=relay_parent_number)
    return result


class _Pass:
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
        self.policies = subscriber.policies
        self.max_trie_depth = subscriber.config.max_trie_depth
        self.reads: list[NodeRead] = []
        order = self.policies.order.arrange(self._plan.views, self._seed)
        self._turns = Turns(self._plan, order, crowded=crowded)

    def run(self) -> ProofProcessingResult:
        before, allowed = self._meter.consumed, self._meter.remaining()
        stopped_at: Cursor | None = None
        publishers: dict[ParaId, PublisherPass] = {}
        for view, low, high in self._turns.work:
            publisher = publishers.get(view.para_id)
            if publisher is None:
                publisher = publishers[view.para_id] = PublisherPass(self, view)
            try:
                publisher.process(low, high)
            except Stop:
                stopped_at = view.para_id, view.subscribed.keys[publisher.stopped_at]
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
        )

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
            raise Stop
        if node_hash not in self._accessed:
            size = len(data)
            charges = self._charges.value if source is ReadSource.RELAY_VALUE else self._charges.node
            self._pay(charges[size], NodeRead(publisher, node_hash, size, source))
            self._accessed.add(node_hash)
        return data

    def pay_for_cached(self, publisher: ParaId, node_hash: bytes, data: bytes) -> None:
        """Pay for a read of the parachain's own storage; raises ``Stop``."""
        size = len(data)
        self._pay(self._charges.cached[size], NodeRead(publisher, node_hash, size, ReadSource.CACHED_NODE))

    def _pay(self, weight: Weight, read: NodeRead) -> None:
        if not self._meter.try_consume(weight):
            raise Stop
        self.reads.append(read)


class _TopNodes:
    """Nodes of the relay chain's top trie, as a pass pays for them."""

    __slots__ = ("_run",)

    def __init__(self, run: _Pass) -> None:
        self._run = run

    def get(self, node_hash: bytes, /) -> bytes:
        """Return a node that is paid for; raises ``Stop``."""
        return self._run.read_relay(None, node_hash, ReadSource.RELAY_TOP)


class _TopTrie(TrieDB):
    """The relay chain's top trie: each node is read, paid for and decoded once."""

    __slots__ = ("_nodes",)

    def __init__(self, run: _Pass, relay_root: bytes, nodes: dict[bytes, Node]) -> None:
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
