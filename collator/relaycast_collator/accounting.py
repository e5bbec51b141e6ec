"""What every byte of a block's relay proof is for, and what became of the rest of what was collected.

Law: every node counts once. The proof is its static nodes and those of each publisher by cause; what was collected
is the proof and what was pruned of it by reason. Bytes are those of nodes and external values as they stand in a
proof. A node that several publishers share counts with the first of them: the top trie's with the lowest id, the
others with the one that paid.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from relaycast_collator.account_records import BlockAccount, Ending, NodeTotals, PublisherAccount
from relaycast_pallets.policies import Policies
from relaycast_pallets.processing_result import NodeRead, ProofProcessingResult, PublisherChange, ReadSource
from relaycast_pallets.publisher_trie import derive_child_info
from relaycast_pallets.publisher_walk import SubscribedPaths
from relaycast_pallets.subscriber import Subscriber
from relaycast_pallets.subscriber_plan import PublisherView
from relaycast_pallets.tracked_proof import by_hash, decode_known
from relaycast_trie import StorageProof
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf
from relaycast_xcm import ParaId, Weight

Nodes = dict[bytes, bytes]

Sums = dict[str, NodeTotals]
"""Totals by the name of their field in ``PublisherAccount``."""

Span = tuple[bytes, int, int]
"""The hash of a node or value, and the range of keys whose paths lead through it."""


def account_for(
    result: ProofProcessingResult,
    *,
    relay_root: bytes,
    proof: Iterable[bytes],
    collected: StorageProof,
    subscriber: Subscriber,
    callbacks: Mapping[ParaId, int],
) -> BlockAccount:
    """Return the account of one pass over ``proof``, which was pruned from what was ``collected``."""
    given, nodes = by_hash(proof), by_hash(collected.nodes)
    books = {para_id: _Book(view, subscriber) for para_id, view in result.plan.views.items()}
    for change in result.changes:
        books[change.para_id].change = change
    pruned = {node_hash: len(data) for node_hash, data in nodes.items() if node_hash not in given}
    on_top = _follow_top(books, relay_root, nodes, pruned)
    read: set[bytes] = set()
    for entry in result.reads:
        if entry.source.is_relay:
            read.add(entry.node_hash)
        owner = on_top.get(entry.node_hash) if entry.publisher is None else entry.publisher
        if owner is not None:
            books[owner].enter_read(entry, given)
    for book in books.values():
        book.enter_pruned(nodes, pruned)
    return BlockAccount(
        static=_total(len(data) for node_hash, data in given.items() if node_hash not in read),
        publishers=tuple(book.close(callbacks.get(para_id, 0)) for para_id, book in books.items()),
        pruned_unsubscribed=_total(pruned.values()),
    )


@dataclass(slots=True)
class _Book:
    """One publisher's account while it is made up; ``child_root`` is what the relay chain's top trie names.

    ``reached`` is false when a node on the way there was pruned.
    """

    view: PublisherView
    subscriber: Subscriber
    change: PublisherChange | None = None
    child_root: bytes | None = None
    reached: bool = True
    sums: Sums = field(default_factory=dict)
    consumed: Weight = Weight.ZERO
    sibling_bytes: int = 0
    _cached: set[bytes] = field(default_factory=set)
    _places: dict[bytes, bytes] | None = None
    _lost_at: set[bytes] = field(default_factory=set)

    @property
    def ending(self) -> Ending:
        """How the pass left this publisher."""
        change, view = self.change, self.view
        if change is None:
            unchanged = self.child_root == view.root and view.root is not None and view.bases is None
            return Ending.UNCHANGED if unchanged and self.reached else Ending.NOT_REACHED
        if change.disabled_by is not None:
            return Ending.DISABLED
        if change.root is None:
            return Ending.ABSENT
        return Ending.FINISHED if change.finished else Ending.CUT_SHORT

    def enter(self, name: str, node_bytes: int) -> None:
        before = self.sums.get(name)
        self.sums[name] = NodeTotals(1, node_bytes) if before is None else before.plus(node_bytes)

    def enter_read(self, read: NodeRead, given: Nodes) -> None:
        """Enter a read that was paid for, by its cause."""
        self.consumed += _weight_of(read, self.subscriber)
        match read.source:
            case ReadSource.RELAY_TOP:
                self.enter("top", read.size)
            case ReadSource.RELAY_VALUE:
                self.enter("value", read.size)
            case ReadSource.CACHED_NODE:
                self._cached.add(read.node_hash)
                self.enter("cached", read.size)
            case ReadSource.RELAY_NODE:
                self._enter_relay_node(read.node_hash, given[read.node_hash], self.subscriber.policies)

    def enter_pruned(self, nodes: Nodes, pruned: dict[bytes, int]) -> None:
        """Enter what was collected for this publisher and pruned, and take it out of ``pruned``."""
        if self.child_root is None or not pruned:
            return
        ending, done_before = self.ending, self._done_before()
        sizes: dict[str, list[int]] = {}
        for node_hash, low, high in spans(self.view.subscribed, self.child_root, nodes):
            node_bytes = pruned.pop(node_hash, None)
            if node_bytes is None:
                continue
            if node_hash in self._cached:
                name = "pruned_cached"
            elif ending is Ending.DISABLED:
                name = "pruned_disabled"
            elif ending is Ending.NOT_REACHED or (done_before and done_before[high] == done_before[low]):
                name = "pruned_beyond_budget"
            else:
                name = "pruned_unchanged"
            sizes.setdefault(name, []).append(node_bytes)
        for name, found in sizes.items():
            self.sums[name] = self.sums.get(name, NodeTotals()) + _total(found)

    def close(self, callbacks: int) -> PublisherAccount:
        """Return the account."""
        change = self.change
        return PublisherAccount(
            publisher=self.view.para_id,
            ending=self.ending,
            keys=len(self.view.subscribed.keys),
            keys_walked=0 if change is None else change.keys_walked,
            keys_changed=0 if change is None else len(change.changed),
            callbacks=callbacks,
            sibling_bytes=self.sibling_bytes,
            consumed=self.consumed,
            **self.sums,
        )

    def _enter_relay_node(self, node_hash: bytes, data: bytes, policies: Policies) -> None:
        change = self.change
        assert change is not None, "a child trie's nodes are read where its root moved"
        if self._places is None:
            self._places = {found: prefix for prefix, found in sorted(change.gained, reverse=True)}
            self._lost_at = {prefix for prefix, _ in change.lost}
        prefix = self._places[node_hash]
        self.enter(_cause(prefix, node_hash, change, self._lost_at), len(data))
        if not policies.cache.keeps(data):
            self.enter("uncacheable", len(data))
        node = decode_known(node_hash, data)
        if isinstance(node, Branch):
            self.sibling_bytes += sibling_bytes(self.view.subscribed, prefix, node)

    def _done_before(self) -> list[int]:
        """Return how many of the first keys are dealt with, for each number of them; empty when it makes no odds."""
        change = self.change
        if change is None or change.finished:
            return []
        done = (change.bases.get(key) == change.root for key in self.view.subscribed.keys)
        return [0, *accumulate(map(int, done))]


def spans(subscribed: SubscribedPaths, root: bytes, nodes: Mapping[bytes, bytes]) -> Iterator[Span]:
    """Find every node with a hash and every external value on the paths of the keys, as far as ``nodes`` reach."""
    paths = subscribed.paths
    work = [(root, 0, 0, len(paths))]
    while work:
        reference, depth, low, high = work.pop()
        data = nodes.get(reference) if len(reference) == HASH_LENGTH else reference
        if data is None:
            continue
        if len(reference) == HASH_LENGTH:
            yield reference, low, high
        node = decode_known(reference, data)
        if isinstance(node, Empty):
            continue
        path = paths[low][:depth] + node.partial
        first, last = _under(paths, path, low, high)
        if first == last:
            continue
        if len(paths[first]) == len(path):
            if isinstance(node.value, HashedValue):
                yield node.value.hash, first, last
        elif isinstance(node, Branch):
            for nibble, child in enumerate(node.children):
                if child is not None:
                    start, stop = _under(paths, path + bytes([nibble]), first, last)
                    if start < stop:
                        work.append((child, len(path) + 1, start, stop))


def sibling_bytes(subscribed: SubscribedPaths, prefix: bytes, node: Branch) -> int:
    """Return the bytes of references in a ``node`` at ``prefix`` that lead to no subscribed key.

    A child is named by its hash, or stands there itself, behind one byte for its length.
    """
    paths, path = subscribed.paths, prefix + node.partial
    first, last = _under(paths, path, 0, len(paths))
    wanted: set[int] = set()
    while first < last:
        way = paths[first][len(path) : len(path) + 1]
        wanted.update(way)
        first = _under(paths, path + way, first, last)[1] if way else first + 1
    children = enumerate(node.children)
    return sum(1 + len(child) for nibble, child in children if child is not None and nibble not in wanted)


def _cause(prefix: bytes, node_hash: bytes, change: PublisherChange, lost_at: set[bytes]) -> str:
    if (prefix, node_hash) in change.lost:
        return "unseen"
    if prefix in lost_at:
        return "changed"
    above = (prefix[:length] for length in range(len(prefix)))
    return "unseen" if change.unseen and any(place in change.unseen for place in above) else "new"


def _follow_top(
    books: Mapping[ParaId, _Book], relay_root: bytes, nodes: Nodes, pruned: dict[bytes, int]
) -> dict[bytes, ParaId]:
    """Find every publisher's child root and return whose way there each node is on; the lowest id comes first."""
    on_top: dict[bytes, ParaId] = {}
    for para_id in sorted(books):
        book = books[para_id]
        path, depth, reference = to_nibbles(derive_child_info(para_id).prefixed_storage_key()), 0, relay_root
        while True:
            data = nodes.get(reference) if len(reference) == HASH_LENGTH else reference
            if data is None:
                break
            on_top.setdefault(reference, para_id)
            if reference in pruned:
                book.reached = False
                book.enter("pruned_beyond_budget", pruned.pop(reference))
            node = decode_known(reference, data)
            if isinstance(node, Empty) or path[depth : depth + len(node.partial)] != node.partial:
                break
            depth += len(node.partial)
            if depth == len(path):
                book.child_root = node.value if isinstance(node.value, bytes) else None
                break
            child = None if isinstance(node, Leaf) else node.children[path[depth]]
            if child is None:
                break
            depth, reference = depth + 1, child
    return on_top


def _weight_of(read: NodeRead, subscriber: Subscriber) -> Weight:
    metering, db_weight = subscriber.policies.metering, subscriber.config.db_weight
    match read.source:
        case ReadSource.RELAY_VALUE:
            return metering.relay_value(db_weight, read.size)
        case ReadSource.CACHED_NODE:
            return metering.cached_node(db_weight, read.size)
        case _:
            return metering.relay_node(db_weight, read.size)


def _total(sizes: Iterable[int]) -> NodeTotals:
    counted = list(sizes)
    return NodeTotals(len(counted), sum(counted))


def _under(paths: tuple[bytes, ...], prefix: bytes, low: int, high: int) -> tuple[int, int]:
    """Return the range of keys whose paths start with ``prefix``."""
    start = bisect_left(paths, prefix, low, high)
    return start, bisect_left(paths, prefix + b"\x10", start, high)
