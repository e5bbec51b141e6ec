"""What every byte of a block's relay proof is for, and what became of the rest of what was collected.

Law: every node counts once. The proof is its static nodes and those of each publisher by cause; what was collected
is the proof and what was pruned of it by reason. Bytes are those of nodes and external values as they stand in a
proof. A node that several publishers share counts with the first of them: the top trie's with the lowest id, the
others with the one that paid. A node that several keys share counts with the first of these.

The account of a block is a value: totals by publisher and by cause, and where asked for by key and by node. A node
counts with the first subscribed key, in the order of the keys, whose path leads through it. So a key's account is what
it adds to the keys before it, and the accounts of a publisher's keys add up to the publisher's.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from relaycast_ledger.record_fields import Last, Sum, Total, later, merged_totals
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.array_walk import SOURCES, ArrayPlacements, WalkedReads
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.proof_pass import by_hash
from relaycast_pallets.subscriber.result import NodeRead, ProofProcessingResult, PublisherChange, ReadLog, ReadSource
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_pallets.subscriber.walk import decode_known
from relaycast_trie import StorageProof
from relaycast_trie.engine import array_engine
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, HashedValue
from relaycast_trie.paths import descend, under, ways
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.primitives import U64_MAX

if TYPE_CHECKING:
    from relaycast_ledger.walked_entries import WalkedEntries

K = TypeVar("K")


class NodeTotals(Struct, frozen=True):
    """A number of nodes and external values, and their bytes."""

    nodes: int = 0
    node_bytes: int = 0
    """Bytes of the encoded nodes and of external values, without the lengths that SCALE puts before them."""

    def plus(self, node_bytes: int) -> "NodeTotals":
        """Return the totals with one node more."""
        return NodeTotals(self.nodes + 1, self.node_bytes + node_bytes)

    def __add__(self, other: "NodeTotals") -> "NodeTotals":
        return NodeTotals(self.nodes + other.nodes, self.node_bytes + other.node_bytes)


NONE = NodeTotals()
NodeSum = Annotated[NodeTotals, Total()]


def total(sizes: Iterable[int]) -> NodeTotals:
    """Return the number of ``sizes`` and their sum."""
    counted = list(sizes)
    return NodeTotals(len(counted), sum(counted))


def totals_by(sizes: Iterable[tuple[K, int]]) -> dict[K, NodeTotals]:
    """Return the totals of sizes by what they belong to, in the order in which that first comes."""
    nodes: dict[K, int] = {}
    node_bytes: dict[K, int] = {}
    for owner, size in sizes:
        nodes[owner] = nodes.get(owner, 0) + 1
        node_bytes[owner] = node_bytes.get(owner, 0) + size
    return {owner: NodeTotals(count, node_bytes[owner]) for owner, count in nodes.items()}


class Ending(Enum):
    """How a pass left a publisher."""

    UNCHANGED = "unchanged"
    """Its child root did not move: nothing below it was read."""

    FINISHED = "finished"
    CUT_SHORT = "cut short"
    NOT_REACHED = "not reached"
    """The budget ended before its turn, or before its child root was known."""

    DISABLED = "disabled"
    ABSENT = "absent"
    """The relay chain has no child trie of it."""


class PublisherAccount(Struct, frozen=True, kw_only=True):
    """The share of one publisher in one block of a subscriber.

    In the proof are ``top``, ``new``, ``changed``, ``unseen`` and ``value``; beside it ``cached``; and left out of it
    what was pruned. ``uncacheable`` and ``sibling_bytes`` are parts of ``new``, ``changed`` and ``unseen``.
    """

    publisher: ParaId
    ending: Annotated[Ending, Total(add=later)] = Ending.UNCHANGED
    keys: Last = 0
    """Keys that are subscribed to."""

    keys_walked: Sum = 0
    """Keys that were dealt with in this block, changed or not."""

    keys_changed: Sum = 0
    """Keys with a new value in this block."""

    callbacks: Sum = 0
    """Values that were handed on."""

    top: NodeSum = NONE
    """The relay chain's top trie, on the way to the child root."""

    new: NodeSum = NONE
    """Nodes where the old trie, as far as the pass compares with one, has none at that prefix."""

    changed: NodeSum = NONE
    """Nodes that replace another one at the same prefix."""

    unseen: NodeSum = NONE
    """Nodes where the old trie cannot be seen: what was there, or above, is not in the node cache."""

    value: NodeSum = NONE
    """External values; a value of at most 32 bytes is inside its node."""

    cached: NodeSum = NONE
    """Nodes of the new and of the old trie that were read from the node cache."""

    pruned_unchanged: NodeSum = NONE
    """Collected, and nothing below had moved."""

    pruned_cached: NodeSum = NONE
    """Collected and read from the node cache instead."""

    pruned_beyond_budget: NodeSum = NONE
    """Collected, and the budget ended before it was read."""

    pruned_disabled: NodeSum = NONE
    """Collected before it was known that a path is too deep."""

    uncacheable: NodeSum = NONE
    """Nodes that the cache policy does not keep."""

    sibling_bytes: Sum = 0
    """Bytes of child references that lead to no subscribed key."""

    consumed: Annotated[Weight, Total()] = Weight.ZERO
    """Weight that the meter charged for its reads: picoseconds, and bytes."""

    @property
    def structure(self) -> NodeTotals:
        """The nodes of the proof that this publisher took."""
        return self.top + self.new + self.changed + self.unseen

    @property
    def proof(self) -> NodeTotals:
        """What of the proof this publisher took, external values among it."""
        return self.structure + self.value

    @property
    def pruned(self) -> NodeTotals:
        """What was collected for it and left out."""
        return self.pruned_unchanged + self.pruned_cached + self.pruned_beyond_budget + self.pruned_disabled

    def __repr__(self) -> str:
        sizes = {name: getattr(self, name).node_bytes for name in IN_THE_PROOF}
        causes = ", ".join(f"{name} {size:,}" for name, size in sizes.items() if size) or "nothing"
        changed = f"{self.keys_changed} of {self.keys} keys changed"
        return f"<PublisherAccount {self.publisher} {self.ending.value}: {changed}, {causes}>"

    def and_then(self, after: "PublisherAccount") -> "PublisherAccount":
        """Return the account of several blocks, with the keys and the ending of the last of them."""
        return replace(self, **merged_totals(self, after))


IN_THE_PROOF = ("top", "new", "changed", "unseen", "value")
PRUNED = ("pruned_unchanged", "pruned_cached", "pruned_beyond_budget", "pruned_disabled")
TOTALS = (*IN_THE_PROOF, "cached", *PRUNED, "uncacheable")


class KeyEnding(Enum):
    """What became of one subscribed key in one block."""

    CHANGED = "changed"
    """Its new value was read, and told unless the block panicked."""

    UNCHANGED = "unchanged"
    """It is as it was when it was last dealt with, in this block or in an earlier one of the same round."""

    DELETED = "deleted"
    """It was delivered and is deleted, and the deletion is told; under ``silent`` it counts as unchanged."""

    NOT_REACHED = "not reached"
    DISABLED = "disabled"
    ABSENT = "absent"
    """The relay chain has no child trie of its publisher."""


class NodeUse(NamedTuple):
    """One node or external value of a publisher, and what it was for: the total of ``PublisherAccount`` it counts in.

    It counts with the first subscribed key, in the order of the keys, whose path leads through it. All keys need the
    way through the top trie; it counts with the first of all. ``prefix`` are the nibbles at which it stands; a value
    stands at its whole path.
    """

    publisher: ParaId
    key: SubscribedKey
    prefix: bytes
    node_hash: bytes
    node_bytes: int
    cause: str
    """The field of ``PublisherAccount`` that it counts in."""

    in_top_trie: bool


class KeyAccount(Struct, frozen=True, kw_only=True):
    """What one subscribed key took of one block: of each publisher, its keys' accounts add up to its own."""

    publisher: ParaId
    key: SubscribedKey
    ending: KeyEnding
    top: NodeTotals = NONE
    """Nodes in the proof on the way through the relay chain's top trie: they count with the first key there is."""

    structure: NodeTotals = NONE
    """Nodes in the proof, the ``top`` ones among them."""

    value: NodeTotals = NONE
    """Its external value in the proof."""

    cached: NodeTotals = NONE
    """Nodes that were read from the node cache, beside the proof."""

    pruned: NodeTotals = NONE
    """Collected, and left out of the proof for whatever reason."""

    @property
    def took_nothing(self) -> bool:
        """Whether no node counts with the key, and it did not change."""
        idle = self.structure is self.value is self.cached is self.pruned is NONE
        return idle and self.ending is not KeyEnding.CHANGED


class BlockAccount(Struct, frozen=True):
    """A whole block: the static keys' nodes, each publisher, and what was collected on no path of a subscribed key.

    ``keys`` are empty unless accounts are kept by key or by node, ``nodes`` unless by node.
    """

    static: NodeTotals
    """Nodes and bytes of the keys that every parachain block proves, subscriptions or none."""

    publishers: tuple[PublisherAccount, ...]
    """One account for each subscribed publisher: with ``static`` their ``proof`` is the relay proof, byte for byte."""

    pruned_unsubscribed: NodeTotals = NONE
    """Nodes and bytes that were collected on no path of a subscribed key, and left out."""

    keys: tuple[KeyAccount, ...] = ()
    """One account for each subscribed key; a publisher's keys add up to its own account."""

    nodes: tuple[NodeUse, ...] = ()
    """Every node and external value of a publisher, once for each total that it counts in."""

    @property
    def proof(self) -> NodeTotals:
        """The relay proof of the block."""
        return sum([account.proof for account in self.publishers], self.static)

    @property
    def pruned(self) -> NodeTotals:
        """What was collected beside it."""
        return sum([account.pruned for account in self.publishers], self.pruned_unsubscribed)

    @property
    def by_cause(self) -> tuple[int, ...]:
        """Bytes of the proof that all publishers took, in the order of ``IN_THE_PROOF``."""
        return tuple([sum([getattr(it, cause).node_bytes for it in self.publishers]) for cause in IN_THE_PROOF])

    def __repr__(self) -> str:
        sizes = f"{self.proof.node_bytes:,} bytes, {self.static.node_bytes:,} of them static"
        return f"<BlockAccount of {sizes}: {', '.join(map(repr, self.publishers)) or 'no publishers'}>"


class Entry(Struct, frozen=True, gc=False):
    """A node that counts in the total ``cause``, with subscribed key number ``key_index``, ``depth`` nibbles down."""

    cause: str
    node_hash: bytes
    node_bytes: int
    key_index: int
    depth: int
    in_top_trie: bool = False


_COUNTS_IN = {
    "top": ("top", "structure"),
    **dict.fromkeys(("new", "changed", "unseen"), ("structure",)),
    "value": ("value",),
    "cached": ("cached",),
    **dict.fromkeys(PRUNED, ("pruned",)),
}
"""The totals of a ``KeyAccount`` by those of its ``PublisherAccount``."""

_SAME_FOR_ALL = frozenset({Ending.UNCHANGED, Ending.NOT_REACHED, Ending.DISABLED, Ending.ABSENT})
"""Endings of a publisher that are those of its keys."""


ENTERED_IN_ARRAYS = 100
"""Reads of a publisher that are worth arrays."""

RELAY = tuple(source for source in ReadSource if source.is_relay)

Nodes = Mapping[bytes, bytes]

Span = tuple[bytes, int, int, int]
"""The hash of a node or value, its depth in nibbles, and the range of keys whose paths lead through it."""


class PublisherTracker(Struct):
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
    walked: "WalkedEntries | None" = None
    """What a large walk entered in arrays."""

    _uncacheable: list[int] = field(default_factory=list)
    _cached: set[bytes] = field(default_factory=set)
    _values: dict[bytes, int] = field(default_factory=dict)

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
        self.ref_time += read.weight.ref_time
        self.proof_size += read.weight.proof_size
        self.entries.append(Entry("top", read.node_hash, read.size, 0, depth, in_top_trie=True))

    def enter_reads(self, reads: Iterable[NodeRead], given: Nodes) -> None:
        """Enter all other reads that were paid for, by their cause, in the order in which they were made."""
        change, view = self.change, self.view
        assert change is not None, "nodes below the top trie are read where a child root moved"
        gained_at = {node_hash: prefix for prefix, node_hash in sorted(change.gained, reverse=True)}
        lost_at = {node_hash: prefix for prefix, node_hash in sorted(change.lost, reverse=True)}
        lost_prefixes, paths = {prefix for prefix, _ in change.lost}, view.subscribed.paths
        keeps, entries = self.subscriber.policies.cache.keeps, self.entries
        ref_time = proof_size = 0
        for _, node_hash, size, source, weight in reads:
            ref_time += weight.ref_time
            proof_size += weight.proof_size
            if source is ReadSource.CACHED_NODE:
                self._cached.add(node_hash)
                prefix = gained_at[node_hash] if node_hash in gained_at else lost_at[node_hash]
                entries.append(Entry("cached", node_hash, size, bisect_left(paths, prefix), len(prefix)))
            elif source is ReadSource.RELAY_NODE:
                data, prefix = given[node_hash], gained_at[node_hash]
                cause = _cause(prefix, node_hash, change, lost_prefixes)
                first = bisect_left(paths, prefix)
                entries.append(Entry(cause, node_hash, size, first, len(prefix)))
                if not keeps(data):
                    self._uncacheable.append(size)
                node = decode_known(node_hash, data)
                if isinstance(node, Branch):
                    self.sibling_bytes += sibling_bytes(view.subscribed, prefix, node)
            elif source is ReadSource.RELAY_VALUE:
                self._values[node_hash] = size
            else:  # a place in the own trie weighs something, and no node of the proof stands for it
                assert source is ReadSource.OWN_PATH, "the top trie's nodes are nobody's own"
        self.ref_time += ref_time
        self.proof_size += proof_size

    def enter_walked(self, reads: WalkedReads, placements: ArrayPlacements) -> None:
        """Enter what ``enter_reads`` would, in arrays."""
        from relaycast_ledger.walked_entries import WalkedEntries  # noqa: PLC0415 - who walked in arrays has numpy

        walked = self.walked = WalkedEntries.of(reads, placements)
        keeps, hashes, nodes = self.subscriber.policies.cache.keeps, reads.hashes, reads.given.nodes
        for what, number in reads.rows.tolist():
            if SOURCES[what] is ReadSource.CACHED_NODE:
                self._cached.add(hashes[1][number])
            elif SOURCES[what] is ReadSource.RELAY_VALUE:
                self._values[hashes[0][number]] = len(nodes[number])
            elif not keeps(nodes[number]):
                self._uncacheable.append(len(nodes[number]))
        self.sibling_bytes += walked.sibling_bytes
        ref_time, proof_size = walked.weight
        self.ref_time += ref_time
        self.proof_size += proof_size

    def enter_collected(self, nodes: Nodes, pruned: dict[bytes, int]) -> None:
        """Enter what was collected for this publisher: values that were read, and what was pruned.

        The latter is taken out of ``pruned``.
        """
        if self.child_root is None or not (pruned or self._values):
            return
        ending, done_before, values = self.ending, self._done_before(), self._values
        for node_hash, depth, low, high in self._spans(self.child_root, nodes):
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
            uncacheable=total(self._uncacheable),
            **totals_by([(it.cause, it.node_bytes) for it in self.entries]),
            **({} if self.walked is None else {cause: NodeTotals(*it) for cause, it in self.walked.totals().items()}),
        )

    def key_accounts(self) -> Iterator[KeyAccount]:
        """Share the entries out among the keys: one account for each, in their order."""
        view, names = self.view, _COUNTS_IN
        sums = totals_by([((it.key_index, name), it.node_bytes) for it in self.entries for name in names[it.cause]])
        for (index, cause), walked in ({} if self.walked is None else self.walked.by_key()).items():
            for name in names[cause]:
                sums[index, name] = sums.get((index, name), NONE) + NodeTotals(*walked)
        of_keys: dict[int, dict[str, NodeTotals]] = {}
        for (index, name), total in sums.items():
            of_keys.setdefault(index, {})[name] = total
        for index, (key, ending) in enumerate(zip(view.subscribed.keys, self._key_endings(), strict=True)):
            yield KeyAccount(publisher=view.para_id, key=key, ending=ending, **of_keys.get(index, {}))

    def node_uses(self) -> Iterator[NodeUse]:
        """Say of every entry where its node is and for whom."""
        view = self.view
        keys, paths = view.subscribed.keys, view.subscribed.paths
        top = to_nibbles(derive_child_info(view.para_id).prefixed_storage_key())
        for it in self.entries:
            index, prefix = it.key_index, (top if it.in_top_trie else paths[it.key_index])[: it.depth]
            yield NodeUse(view.para_id, keys[index], prefix, it.node_hash, it.node_bytes, it.cause, it.in_top_trie)

    def _key_endings(self) -> list[KeyEnding]:
        keys, change, ending = self.view.subscribed.keys, self.change, self.ending
        if ending in _SAME_FOR_ALL or change is None:
            return [KeyEnding(ending.value)] * len(keys)
        endings = dict.fromkeys(keys, KeyEnding.UNCHANGED if change.finished else KeyEnding.NOT_REACHED)
        endings.update(
            {key: KeyEnding.UNCHANGED for key, base in change.processed_roots.items() if base == change.root}
        )
        endings.update({key: KeyEnding.CHANGED for key, _ in change.changed})
        endings.update(dict.fromkeys(change.deleted, KeyEnding.DELETED))
        return list(endings.values())

    def _spans(self, root: bytes, nodes: Nodes) -> Iterable[Span]:
        """Return ``spans``, in arrays where the walk was in arrays."""
        if self.walked is not None:
            arrays = array_engine("side_by_side")
            collected = arrays.NodeTable(nodes.keys(), nodes.values())
            found = arrays.paths_through(self.walked.reads.keys, collected, root)
            if found is not None:
                return ((node_hash, depth, first, first) for node_hash, depth, first in found)
        return spans(self.view.subscribed, root, nodes)

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
    wanted = [node.children[nibble] for nibble, _, _ in ways(paths, len(path), first, last)]
    there, led_to = ([child for child in some if child is not None] for some in (node.children, wanted))
    return len(there) + sum(map(len, there)) - len(led_to) - sum(map(len, led_to))


def _cause(prefix: bytes, node_hash: bytes, change: PublisherChange, lost_at: set[bytes]) -> str:
    if (prefix, node_hash) in change.lost:
        return "unseen"
    if prefix in lost_at:
        return "changed"
    above = (prefix[:length] for length in range(len(prefix)))
    return "unseen" if change.unseen and any(place in change.unseen for place in above) else "new"


def account_for(
    result: ProofProcessingResult,
    *,
    relay_root: bytes,
    proof: Iterable[bytes],
    collected: StorageProof,
    subscriber: Subscriber,
    callbacks: Mapping[ParaId, int],
    by_key: bool = False,
    by_node: bool = False,
    causes: dict[bytes, str] | None = None,
) -> BlockAccount:
    """Return the account of one pass over ``proof``, which was pruned from what was ``collected``.

    With ``by_key`` it also says what each key took, with ``by_node`` of each node with which key it counts; ``causes``
    learns, by hash, as what.
    """
    nodes = by_hash(collected.nodes) if collected.recorded is None else collected.recorded
    proven = set(proof)
    given = {node_hash: data for node_hash, data in nodes.items() if data in proven}
    if len(given) < len(proven):  # a node that nobody collected
        given = by_hash(proven)
    books = {para_id: PublisherTracker(view, subscriber) for para_id, view in result.plan.views.items()}
    for change in result.changes:
        books[change.para_id].change = change
    pruned = {node_hash: len(data) for node_hash, data in nodes.items() if node_hash not in given}
    on_top = _follow_top(books, relay_root, nodes, pruned)
    in_arrays = {} if by_node or causes is not None else _walked_in_one_go(result)
    as_objects, read = list[NodeRead](), set[bytes]()
    for part in result.reads.parts if isinstance(result.reads, ReadLog) else [result.reads]:
        if isinstance(part, WalkedReads) and part.publisher in in_arrays:
            read.update(part.relay_hashes)
        else:
            as_objects += part if isinstance(part, Sequence) else part.made()
    read.update(entry.node_hash for entry in as_objects if entry.source in RELAY)
    of_publishers: dict[ParaId, list[NodeRead]] = {}
    for entry in as_objects:
        if entry.publisher is not None:
            of_publishers.setdefault(entry.publisher, []).append(entry)
        elif entry.node_hash in on_top:
            owner, depth = on_top[entry.node_hash]
            books[owner].enter_top(entry, depth)
    for para_id, reads in of_publishers.items():
        books[para_id].enter_reads(reads, given)
    for part, placements in in_arrays.values():
        books[part.publisher].enter_walked(part, placements)
    for book in books.values():
        book.enter_collected(nodes, pruned)
    if causes is not None:
        causes.update((node_hash, "static") for node_hash in given if node_hash not in read)
        causes.update((entry.node_hash, entry.cause) for book in books.values() for entry in book.entries)
    static = total([len(data) for node_hash, data in given.items() if node_hash not in read])
    publishers = tuple(book.close(callbacks.get(para_id, 0)) for para_id, book in books.items())
    return BlockAccount(
        static,
        publishers,
        total(pruned.values()),
        tuple(chain.from_iterable(map(PublisherTracker.key_accounts, books.values()))) if by_key else (),
        tuple(chain.from_iterable(map(PublisherTracker.node_uses, books.values()))) if by_node else (),
    )


def _walked_in_one_go(result: ProofProcessingResult) -> dict[ParaId, tuple[WalkedReads, ArrayPlacements]]:
    """Return the reads and placements of publishers that can be entered in arrays, and are worth it."""
    if not isinstance(result.reads, ReadLog):
        return {}
    walked: dict[ParaId, list[WalkedReads]] = {}
    for part in result.reads.parts:
        if isinstance(part, WalkedReads):
            walked.setdefault(part.publisher, []).append(part)
    found = {}
    for change in result.changes:
        parts, placements = walked.get(change.para_id, []), change.placements
        in_part = not change.finished or change.disabled_by is not None or change.unseen
        if in_part or len(parts) != 1 or len(parts[0]) < ENTERED_IN_ARRAYS:
            continue
        if isinstance(placements, ArrayPlacements) and len(placements.columns) == 1:
            found[change.para_id] = parts[0], placements
    return found


def _follow_top(
    books: Mapping[ParaId, PublisherTracker], relay_root: bytes, nodes: Nodes, pruned: dict[bytes, int]
) -> dict[bytes, tuple[ParaId, int]]:
    """Find every publisher's child root and return whose way there each node is on, and how deep it stands.

    The lowest id comes first.
    """
    on_top: dict[bytes, tuple[ParaId, int]] = {}
    for para_id in sorted(books):
        book = books[para_id]
        path = to_nibbles(derive_child_info(para_id).prefixed_storage_key())
        for reference, _, _, depth, _, _, _, value in descend((path,), relay_root, nodes):
            on_top.setdefault(reference, (para_id, depth))
            if reference in pruned:
                book.enter_pruned_top(reference, pruned.pop(reference), depth)
            if isinstance(value, bytes):
                book.child_root = value
    return on_top
