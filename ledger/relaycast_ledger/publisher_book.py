"""One publisher's account while it is made up: its nodes by cause, out of what was read, kept and pruned."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from msgspec import Struct, field

from relaycast_ledger.account_records import Ending, KeyAccount, NodeTotals, NodeUse, PublisherAccount
from relaycast_ledger.key_accounts import Entry, key_accounts, node_uses
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.proof_pass import decode_known
from relaycast_pallets.subscriber.result import NodeRead, PublisherChange, ReadSource
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.node import Branch, HashedValue
from relaycast_trie.paths import descend, under, ways
from relaycast_xcm.primitives import U64_MAX, Weight

Nodes = Mapping[bytes, bytes]

Span = tuple[bytes, int, int, int]
"""The hash of a node or value, its depth in nibbles, and the range of keys whose paths lead through it."""


class PublisherBook(Struct):
    """``child_root`` is what the relay chain's top trie names.

    ``reached`` is false when a node on the way there was pruned.
    """

    view: PublisherView
    subscriber: Subscriber
    change: PublisherChange | None = None
    child_root: bytes | None = None
    reached: bool = True
    entries: list[Entry] = field(default_factory=list)
    """Every node once, with what it was for."""

    ref_time: int = 0
    proof_size: int = 0
    sibling_bytes: int = 0
    _uncacheable: list[int] = field(default_factory=list)
    _cached: set[bytes] = field(default_factory=set)
    _values: dict[bytes, int] = field(default_factory=dict)
    _gained_at: dict[bytes, bytes] = field(default_factory=dict)
    _lost_at: dict[bytes, bytes] = field(default_factory=dict)
    _lost_prefixes: set[bytes] = field(default_factory=set)

    @property
    def ending(self) -> Ending:
        """How the pass left this publisher."""
        change, view = self.change, self.view
        if change is None:
            unchanged = self.child_root == view.root and view.root is not None and view.processed_roots is None
            return Ending.UNCHANGED if unchanged and self.reached else Ending.NOT_REACHED
        if change.disabled_by is not None:
            return Ending.DISABLED
        if change.root is None:
            return Ending.ABSENT
        return Ending.FINISHED if change.finished else Ending.CUT_SHORT

    def enter_pruned_top(self, node_hash: bytes, node_bytes: int, depth: int) -> None:
        """Enter a node of the top trie that was collected and left out: the child root is not known."""
        self.reached = False
        self.entries.append(Entry("pruned_beyond_budget", node_hash, node_bytes, 0, depth, in_top_trie=True))

    def enter_top(self, read: NodeRead, depth: int) -> None:
        """Enter a read of the top trie on the way to the child root."""
        self._enter_weight(read)
        self.entries.append(Entry("top", read.node_hash, read.size, 0, depth, in_top_trie=True))

    def enter_read(self, read: NodeRead, given: Nodes) -> None:
        """Enter any other read that was paid for, by its cause."""
        self._enter_weight(read)
        match read.source:
            case ReadSource.RELAY_VALUE:
                self._values[read.node_hash] = read.size
            case ReadSource.CACHED_NODE:
                self._cached.add(read.node_hash)
                self._enter_cached(read)
            case ReadSource.RELAY_NODE:
                self._enter_relay_node(read.node_hash, given[read.node_hash])
            case ReadSource.OWN_PATH:
                pass  # a place in the own trie: it weighs something, and no node of the proof stands for it
            case ReadSource.RELAY_TOP:
                raise AssertionError("the top trie's nodes are nobody's own")

    def enter_collected(self, nodes: Nodes, pruned: dict[bytes, int]) -> None:
        """Enter what was collected for this publisher: values that were read, and what was pruned.

        The latter is taken out of ``pruned``.
        """
        if self.child_root is None or not (pruned or self._values):
            return
        ending, done_before, values = self.ending, self._done_before(), self._values
        for node_hash, depth, low, high in spans(self.view.subscribed, self.child_root, nodes):
            node_bytes = pruned.pop(node_hash, None)
            if node_bytes is None:
                if values and node_hash in values:
                    self.entries.append(Entry("value", node_hash, values.pop(node_hash), low, depth))
                continue
            if node_hash in self._cached:
                cause = "pruned_cached"
            elif ending is Ending.DISABLED:
                cause = "pruned_disabled"
            elif ending is Ending.NOT_REACHED or (done_before and done_before[high] == done_before[low]):
                cause = "pruned_beyond_budget"
            else:
                cause = "pruned_unchanged"
            self.entries.append(Entry(cause, node_hash, node_bytes, low, depth))
        assert not values, "a value is read at the end of a subscribed path"

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
            consumed=Weight(min(self.ref_time, U64_MAX), min(self.proof_size, U64_MAX)),
            uncacheable=NodeTotals(len(self._uncacheable), sum(self._uncacheable)),
            **self._sums(),
        )

    def key_accounts(self) -> Iterator[KeyAccount]:
        """Return what each of its keys took."""
        return key_accounts(self.view, self.ending, self.change, self.entries)

    def node_uses(self) -> Iterator[NodeUse]:
        """Return what each of its nodes is for."""
        return node_uses(self.view, self.entries)

    def _sums(self) -> dict[str, NodeTotals]:
        sums: dict[str, list[int]] = {}
        for entry in self.entries:
            total = sums.setdefault(entry.cause, [0, 0])
            total[0] += 1
            total[1] += entry.node_bytes
        return {cause: NodeTotals(nodes, node_bytes) for cause, (nodes, node_bytes) in sums.items()}

    def _enter_relay_node(self, node_hash: bytes, data: bytes) -> None:
        change, subscribed, prefix = self._moved(), self.view.subscribed, self._gained_at[node_hash]
        cause = _cause(prefix, node_hash, change, self._lost_prefixes)
        self.entries.append(Entry(cause, node_hash, len(data), _first_under(subscribed, prefix), len(prefix)))
        if not self.subscriber.policies.cache.keeps(data):
            self._uncacheable.append(len(data))
        node = decode_known(node_hash, data)
        if isinstance(node, Branch):
            self.sibling_bytes += sibling_bytes(subscribed, prefix, node)

    def _enter_cached(self, read: NodeRead) -> None:
        self._moved()
        prefix = self._gained_at[read.node_hash] if read.node_hash in self._gained_at else self._lost_at[read.node_hash]
        index = _first_under(self.view.subscribed, prefix)
        self.entries.append(Entry("cached", read.node_hash, read.size, index, len(prefix)))

    def _enter_weight(self, read: NodeRead) -> None:
        self.ref_time += read.weight.ref_time
        self.proof_size += read.weight.proof_size

    def _moved(self) -> PublisherChange:
        """Return what moved, with its nodes' places by their hashes: of several the first."""
        change = self.change
        assert change is not None, "nodes below the top trie are read where a child root moved"
        if not self._gained_at and not self._lost_at:
            self._gained_at = {node_hash: prefix for prefix, node_hash in sorted(change.gained, reverse=True)}
            self._lost_at = {node_hash: prefix for prefix, node_hash in sorted(change.lost, reverse=True)}
            self._lost_prefixes = {prefix for prefix, _ in change.lost}
        return change

    def _done_before(self) -> list[int]:
        """Return how many of the first keys are dealt with, for each number of them; empty when it makes no odds."""
        change = self.change
        if change is None or change.finished:
            return []
        done = (change.processed_roots.get(key) == change.root for key in self.view.subscribed.keys)
        return [0, *accumulate(map(int, done))]


def spans(subscribed: SubscribedPaths, root: bytes, nodes: Mapping[bytes, bytes]) -> Iterator[Span]:
    """Find every node with a hash and every external value on the paths of the keys, as far as ``nodes`` reach.

    They come in the order of the keys: the first time that one comes is with the first key that leads to it.
    """
    paths = subscribed.paths
    for reference, _, _, depth, low, high, first, value in descend(paths, root, nodes):
        if len(reference) == HASH_LENGTH:
            yield reference, depth, low, high
        if isinstance(value, HashedValue):
            yield value.hash, len(paths[first]), first, first + 1


def sibling_bytes(subscribed: SubscribedPaths, prefix: bytes, node: Branch) -> int:
    """Return the bytes of references in a ``node`` at ``prefix`` that lead to no subscribed key.

    A child is named by its hash, or stands there itself, behind one byte for its length.
    """
    paths, path = subscribed.paths, prefix + node.partial
    first, last = under(paths, path, 0, len(paths)) if paths else (0, 0)
    if first < last and len(paths[first]) == len(path):
        first += 1
    wanted = {nibble for nibble, _, _ in ways(paths, len(path), first, last)}
    children = enumerate(node.children)
    return sum(1 + len(child) for nibble, child in children if child is not None and nibble not in wanted)


def _cause(prefix: bytes, node_hash: bytes, change: PublisherChange, lost_at: set[bytes]) -> str:
    if (prefix, node_hash) in change.lost:
        return "unseen"
    if prefix in lost_at:
        return "changed"
    above = (prefix[:length] for length in range(len(prefix)))
    return "unseen" if change.unseen and any(place in change.unseen for place in above) else "new"


def _first_under(subscribed: SubscribedPaths, prefix: bytes) -> int:
    """Return the number of the first key whose path starts with ``prefix``."""
    return bisect_left(subscribed.paths, prefix)
