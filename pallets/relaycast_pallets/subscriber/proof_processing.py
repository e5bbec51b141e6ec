"""One algorithm in two modes: what the collator prunes by is what the chain verifies by.

``process_proof`` walks the publishers from the cursor on, once around, reading what changed until the meter or the
proof ends. With PRUNE it writes nothing: what it read is what the pruned proof holds. With VERIFY the subscriber
takes over what was found. Running out of weight is a result with a cursor.

A pass may take several blocks. Until a publisher is done its old root stays; which of its keys are dealt with, and
against which root, is remembered, so that no change is told twice and none is lost, even one that is taken back.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache, partial

from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_pallets.subscriber.node_cache import PublisherCache, marked_by_base, marked_placements, net_moves
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import Bases, PublisherView
from relaycast_pallets.subscriber.processing_result import (
    Cursor,
    NodeRead,
    ProofProcessingResult,
    PublisherChange,
    ReadSource,
)
from relaycast_pallets.subscriber.publisher_walk import PublisherWalk, TrieDepthExceeded
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.tracked_proof import TrackedProof, decode_known
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


class _Stop(Exception):
    """The meter, or the proof, has no more."""


def process_proof(
    mode: ProcessingMode,
    proof: StorageProof | TrackedProof,
    relay_root: bytes,
    meter: WeightMeter,
    subscriber: Subscriber,
    *,
    seed: bytes = b"",
    relay_parent_number: BlockNumber = 0,
    demand: Demand | None = None,
) -> ProofProcessingResult:
    """Process a relay state proof for everything that ``subscriber`` subscribes to, within what ``meter`` allows.

    ``seed`` shuffles the publishers; both modes must be given the same one. A pass that goes on where the last one was
    cut short keeps that one's order, so that nobody is drawn to the end again and again. A ``TrackedProof`` learns what
    was read.
    With ``VERIFY`` the result must first meet the ``demand``; then the subscriber's storage is written and its handler
    called, with times to live counted from ``relay_parent_number``. Raises ``InvalidNode`` and ``InvalidChildRoot``
    where the relay chain's state is broken, and ``ValueError`` for VERIFY by hashes that were taken on trust.
    """
    if mode is ProcessingMode.VERIFY and isinstance(proof, TrackedProof) and proof.is_trusted:
        raise ValueError("a block hashes what it is given: no proof that is taken on trust")
    tracked = proof if isinstance(proof, TrackedProof) else TrackedProof(proof, relay_root)
    result = _Pass(tracked, meter, subscriber, seed).run()
    if mode is ProcessingMode.VERIFY:
        if demand is not None:
            demand(result)
        subscriber.apply(result, relay_parent_number=relay_parent_number)
    return result


class _Pass:
    """One pass: the work in its order, and every read that it pays for."""

    def __init__(self, proof: TrackedProof, meter: WeightMeter, subscriber: Subscriber, seed: bytes) -> None:
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

    def run(self) -> ProofProcessingResult:
        before = self._meter.consumed
        cursor: Cursor | None = None
        publishers: dict[ParaId, _PublisherPass] = {}
        for view, low, high in self._work():
            publisher = publishers.get(view.para_id)
            if publisher is None:
                publisher = publishers[view.para_id] = _PublisherPass(self, view)
            try:
                publisher.process(low, high)
            except _Stop:
                cursor = view.para_id, view.subscribed.keys[publisher.stopped_at]
                break
        changes = [change for publisher in publishers.values() if (change := publisher.change()) is not None]
        return ProofProcessingResult(self._plan, cursor, changes, self.reads, self._meter.consumed - before, self._seed)

    def _work(self) -> list[tuple[PublisherView, int, int]]:
        """Return publishers with ranges of their keys, rotated so that the cursor's key comes first."""
        views = self._plan.views
        order = self.policies.order.arrange(views, self._seed)
        work = [(views[para_id], 0, len(views[para_id].subscribed.keys)) for para_id in order]
        cursor = self._plan.cursor
        if cursor is None or cursor[0] not in views or cursor[1] not in views[cursor[0]].subscribed.keys:
            return work
        at = order.index(cursor[0])
        view, _, count = work[at]
        key = view.subscribed.keys.index(cursor[1])
        rotated = [(view, key, count), *work[at + 1 :], *work[:at]]
        return [*rotated, (view, 0, key)] if key else rotated

    def child_root(self, para_id: ParaId) -> bytes | None:
        """Return the publisher's child root as the relay chain's top trie has it."""
        value = _TopTrie(self, self._proof.relay_root, self._top_nodes).lookup(_path_to(para_id))
        if value is not None and (isinstance(value, HashedValue) or len(value) != HASH_LENGTH):
            raise InvalidChildRoot(derive_child_info(para_id).prefixed_storage_key())
        return value

    def read_relay(self, publisher: ParaId | None, node_hash: bytes, source: ReadSource) -> bytes:
        """Return a node or value of the proof, paid for once a block; raises ``_Stop``."""
        data = self._nodes.get(node_hash)
        if data is None:
            raise _Stop
        if node_hash not in self._accessed:
            size = len(data)
            charges = self._charges.value if source is ReadSource.RELAY_VALUE else self._charges.node
            self._pay(charges[size], NodeRead(publisher, node_hash, size, source))
            self._accessed.add(node_hash)
        return data

    def pay_for_cached(self, publisher: ParaId, node_hash: bytes, data: bytes) -> None:
        """Pay for a read of the parachain's own storage; raises ``_Stop``."""
        size = len(data)
        self._pay(self._charges.cached[size], NodeRead(publisher, node_hash, size, ReadSource.CACHED_NODE))

    def _pay(self, weight: Weight, read: NodeRead) -> None:
        if not self._meter.try_consume(weight):
            raise _Stop
        self.reads.append(read)


class _TopNodes:
    """Nodes of the relay chain's top trie, as a pass pays for them."""

    __slots__ = ("_run",)

    def __init__(self, run: _Pass) -> None:
        self._run = run

    def get(self, node_hash: bytes, /) -> bytes:
        """Return a node that is paid for; raises ``_Stop``."""
        return self._run.read_relay(None, node_hash, ReadSource.RELAY_TOP)


class _TopTrie(TrieDB):
    """The relay chain's top trie: each node is read, paid for and decoded once."""

    __slots__ = ("_nodes",)

    def __init__(self, run: _Pass, relay_root: bytes, nodes: dict[bytes, Node]) -> None:
        super().__init__(_TopNodes(run), relay_root)
        self._nodes = nodes

    def load(self, reference: bytes, path: bytes) -> Node:
        """Return a node as ``TrieDB`` does; raises ``_Stop``."""
        node = self._nodes.get(reference)
        if node is None:
            node = self._nodes[reference] = super().load(reference, path)
        return node


@cache
def _path_to(para_id: ParaId) -> bytes:
    """Return the nibbles of a publisher's child root in the top trie."""
    return to_nibbles(derive_child_info(para_id).prefixed_storage_key())


class _PublisherReads:
    """How one publisher's walk gets at nodes: out of its node cache, or out of the proof, and paid for (``NodeReads``).

    ``new`` are the nodes that the proof gave.
    """

    __slots__ = ("_cached", "_run", "_view", "new")

    def __init__(self, run: _Pass, view: PublisherView) -> None:
        self._run = run
        self._view = view
        self._cached: dict[bytes, bytes | None] = {}
        self.new: dict[bytes, bytes] = {}

    def new_node(self, node_hash: bytes) -> Node:
        data = self._cached.get(node_hash, b"")
        if data == b"":
            data = self._read_cached(node_hash)
        if data is None:
            data = self._run.read_relay(self._view.para_id, node_hash, ReadSource.RELAY_NODE)
            self.new[node_hash] = data
        return decode_known(node_hash, data)

    def new_value(self, value_hash: bytes) -> bytes:
        return self._run.read_relay(self._view.para_id, value_hash, ReadSource.RELAY_VALUE)

    def old_node(self, node_hash: bytes) -> Node | None:
        data = self._cached.get(node_hash, b"")
        if data == b"":
            data = self._read_cached(node_hash)
        return None if data is None else decode_known(node_hash, data)

    def _read_cached(self, node_hash: bytes) -> bytes | None:
        """Return a node of the cache, paid for once, ``None`` when it is not there; raises ``_Stop``."""
        data = self._view.cache.get(node_hash)
        if data is not None:
            self._run.pay_for_cached(self._view.para_id, node_hash, data)
        self._cached[node_hash] = data
        return data


class _PublisherPass:
    """One publisher's part of a pass, in one range of keys, or in two when the cursor stood inside it."""

    def __init__(self, run: _Pass, view: PublisherView) -> None:
        self._run = run
        self._view = view
        self._reads = _PublisherReads(run, view)
        self._walk = PublisherWalk(view.subscribed, self._reads, max_depth=run.max_trie_depth)
        self._root: bytes | None = None
        self._root_known = False
        self._done: list[tuple[int, int]] = []
        self._disabled: TrieDepthExceeded | None = None
        self._new = self._reads.new
        self._saw_all_of_old = True
        self._began_at = 0
        self.stopped_at = 0

    def process(self, low: int, high: int) -> None:
        """Deal with keys ``[low, high)``; raises ``_Stop``, and ``stopped_at`` says where."""
        if not self._root_known:
            self._began_at = self.stopped_at = low
            self._root = self._run.child_root(self._view.para_id)
            self._root_known = True
        if self._root is None or self._is_unchanged() or self._disabled is not None:
            return
        for start, stop, base in self._runs(low, high):
            compared = self._run.policies.callback.compared_with(base)
            self._saw_all_of_old &= compared == base
            try:
                self._walk.walk(start, stop, new_root=self._root, old_root=compared)
            except TrieDepthExceeded as error:
                self._disabled = error
                return
            except _Stop:
                self.stopped_at = self._walk.at
                self._done.append((start, self._walk.at))
                raise
            self._done.append((start, stop))

    def change(self) -> PublisherChange | None:
        """Return what there is to keep, ``None`` when nothing moved."""
        if not self._root_known or (self._root is not None and self._is_unchanged()):
            return None
        walk, walked = self._walk, sum(stop - start for start, stop in self._done)
        change = PublisherChange(self._view.para_id, self._root, disabled_by=self._disabled, keys_walked=walked)
        change.gained, change.lost, change.unseen = walk.gained, walk.lost, walk.unseen
        if self._root is None or self._disabled is not None:
            change.finished = True
            return change
        change.changed = walk.changed
        change.finished = walked == len(self._view.subscribed.keys)
        if change.finished:
            change.sweep = self._swept_cache
        else:
            change.bases = self._new_bases()
            change.sweep = partial(self._interrupted_cache, change.bases)
        return change

    def _is_unchanged(self) -> bool:
        return self._root == self._view.root and self._view.bases is None

    def _runs(self, low: int, high: int) -> list[tuple[int, int, bytes | None]]:
        """Return ranges of keys that were last dealt with against the same root."""
        if not self._view.bases:
            return [(low, high, self._view.root)]
        runs: list[tuple[int, int, bytes | None]] = []
        for index in range(low, high):
            base = self._base(self._view.subscribed.keys[index])
            if runs and runs[-1][2] == base:
                runs[-1] = (runs[-1][0], index + 1, base)
            else:
                runs.append((index, index + 1, base))
        return runs

    def _base(self, key: SubscribedKey) -> bytes | None:
        return self._view.root if self._view.bases is None else self._view.bases.get(key, self._view.root)

    def _new_bases(self) -> dict[SubscribedKey, bytes | None]:
        keys = self._view.subscribed.keys
        bases = {key: self._base(key) for key in keys}
        for start, stop in self._done:
            bases.update(dict.fromkeys(keys[start:stop], self._root))
        return bases

    def _kept(self, nodes: dict[bytes, bytes]) -> dict[bytes, bytes]:
        keeps = self._run.policies.cache.keeps
        return {node_hash: data for node_hash, data in nodes.items() if keeps(data)}

    def _interrupted_cache(self, bases: Bases) -> PublisherCache:
        """Return what was read, to be added; once in a round of the keys, also drop what no key needs any more.

        A publisher that changes faster than the budget follows is never done: its cache is swept on the way, down to
        what was just read and what stands on the path of each key in the trie that it was last dealt with against.
        """
        cache = PublisherCache(insert=self._kept(self._new))
        if self._view.bases is not None and not 0 < self._began_at < self.stopped_at:
            stored = self._view.cached_nodes()
            marked = marked_by_base(bases, stored | self._new)
            cache.remove = stored.keys() - marked - self._new.keys()
        return cache

    def _swept_cache(self) -> PublisherCache:
        """Return the changes that leave exactly the structure of the subscribed paths in the cache.

        What came and what went is enough where every key was compared with the one old trie and nothing of that was
        out of sight; otherwise all subscribed paths are marked anew.
        """
        kept, view, walk = self._kept(self._new), self._view, self._walk
        settled = view.root is not None and view.bases is None and self._saw_all_of_old
        if settled and not walk.old_unknown and len(kept) == len(self._new):
            return PublisherCache.moved(net_moves(walk.gained, walk.lost), view.shared_nodes(), kept)
        assert self._root is not None
        stored = view.cached_nodes()
        known = stored | self._new
        placements = marked_placements(view.subscribed, self._root, known)
        return PublisherCache.exactly(placements, self._kept(known), stored)
