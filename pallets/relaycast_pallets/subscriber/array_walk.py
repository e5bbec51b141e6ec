"""The walk of a publisher in arrays: ``walk`` is its law, and says what it finds and why.

A kernel of the trie's array engine goes down both tries. What it cannot know it asks for: whether a value and a hash
of one are the same, and whether a callback is admitted. What it found becomes objects when it ends.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.proof_pass import Charges, PaidReads, PublisherPass, TrackedProof
from relaycast_pallets.subscriber.result import NodeRead, ReadLog, ReadSource, ReadTotal, Stop, StopCause
from relaycast_pallets.subscriber.storage import NO_CACHED_NODES, PublisherNodes
from relaycast_pallets.subscriber.walk import (
    NodeReads,
    Placement,
    Placements,
    PublisherWalk,
    TrieDepthExceeded,
    decode_known,
    is_same,
)
from relaycast_trie.engine import WALKS, Engine, array_engine, kernels_can_be_compiled, pays_in_arrays
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.node import HashedValue, Value
from relaycast_trie.node_codec import decode_node
from relaycast_xcm.primitives import ParaId, Weight, WeightMeter

MOST_PRICES = 1 << 14
"""Sizes that a price list has at most. Longer charges are walked plainly: a list of each size would take too long."""

MOVED_IN_ARRAYS = 100
"""Places that are worth arrays."""

SOURCES = (ReadSource.RELAY_NODE, ReadSource.RELAY_VALUE, ReadSource.CACHED_NODE)
"""What is paid for, as the kernel numbers it."""

_CACHED = SOURCES.index(ReadSource.CACHED_NODE)


class ArrayReads(PaidReads):
    """Reads of a pass that walks publishers in arrays if the ``engine`` is ``array``, or ``auto`` and that pays."""

    def __init__(self, proof: TrackedProof, meter: WeightMeter, charges: Charges, engine: Engine) -> None:
        super().__init__(proof, meter, charges)
        self._engine = engine

    def fits_arrays(self, view: PublisherView) -> bool:
        """Return whether a publisher can be walked in arrays: no deletions to report, and a price for each size."""
        fits = isinstance(self.proof.nodes, dict) and self.meter.consumed.all_lte(self.meter.limit)
        fits = fits and self.charges.largest < MOST_PRICES and view.delivered is frozenset
        return fits and (view.cache is NO_CACHED_NODES or isinstance(view.cache, PublisherNodes))

    def walk(self, view: PublisherView, keys: int, *, max_depth: int) -> PublisherWalk:
        """Return what walks a publisher, that many ``keys`` first."""
        pays = pays_in_arrays(WALKS, keys) if self._engine == "auto" else self._engine == "array"
        if pays and self.fits_arrays(view) and kernels_can_be_compiled():
            cache = view.cache
            kept = cache.table() if isinstance(cache, PublisherNodes) else array_engine("side_by_side").NodeTable()
            if kept is not None:
                if not isinstance(self.made, ReadLog):
                    self.made = ReadLog(self.made)
                return ArrayWalk(self, view, kept, max_depth=max_depth)
        return super().walk(view, keys, max_depth=max_depth)


class ArrayWalk(PublisherWalk):
    """A walk of one publisher's keys in arrays."""

    __slots__ = ("_kept", "_keys", "_paid", "_side_by_side", "_view")

    def __init__(self, paid: PaidReads, view: PublisherView, kept: Any, *, max_depth: int) -> None:
        super().__init__(view.subscribed, max_depth=max_depth)
        self.placements = ArrayPlacements()
        arrays = array_engine("side_by_side")
        keys = self._keys = arrays.KeyColumn(view.subscribed.keys)
        self._paid, self._view, self._kept = paid, view, kept
        self._side_by_side = arrays.SideBySide(
            keys, paid.proof.table(), kept, paid.charges.prices, most_above=max_depth
        )

    def walk(self, reads: NodeReads, low: int, high: int, *, new_root: bytes, old_root: bytes | None) -> None:
        """Deal with keys ``[low, high)``, as the plain walk does."""
        assert isinstance(reads, PublisherPass)
        meter, walk = self._paid.meter, self._side_by_side
        self._paid.proof.table()  # what was read by other ways since counts as paid
        before = meter.remaining()
        walk.begin(low, high, new_root, old_root, (before.ref_time, before.proof_size))
        try:
            self._go_on(reads)
            self.at = high
        except BaseException:
            self.at = walk.key
            raise
        finally:
            left = walk.allowed
            meter.consume(Weight(before.ref_time - left[0], before.proof_size - left[1]))
            self._take(reads)

    def _go_on(self, reads: PublisherPass) -> None:
        """Answer the kernel until it is done; raises what the reads of a plain walk raise."""
        arrays, walk = array_engine("side_by_side"), self._side_by_side
        answer, admitted = False, Weight.ZERO
        while True:
            before = walk.changes
            status = walk.go_on(asks=reads.weighs, answer=answer)
            if walk.changes > before:
                reads.consume(admitted)
            answer, admitted = False, Weight.ZERO
            if status == arrays.DONE:
                return
            if status == arrays.FULL:
                self._take(reads)
            elif status == arrays.SAME:
                answer = is_same(*(_value(*value) for value in walk.values))
            elif status == arrays.ADMIT:
                admitted = reads.admit(self.subscribed.keys[walk.key])
            else:
                self._end(status)

    def _end(self, status: int) -> None:
        """Raise what ends a walk."""
        arrays, walk = array_engine("side_by_side"), self._side_by_side
        if status == arrays.TOO_DEEP:
            raise TrieDepthExceeded(self.subscribed.keys[walk.key], self._max_depth)
        reference = walk.reference
        if len(reference) == HASH_LENGTH:
            self._note_reads([reference])
        if status == arrays.UNDECODABLE:
            if len(reference) == HASH_LENGTH:
                data = self._view.cache.get(reference)
                decode_known(reference, self._paid.proof.nodes[reference] if data is None else data)
            decode_node(reference)
            raise AssertionError(f"the kernel refuses a node that decodes: 0x{reference.hex()}")
        raise Stop(StopCause.PROOF if status == arrays.NOT_GIVEN else StopCause.BUDGET)

    def _note_reads(self, hashes: list[bytes]) -> None:
        """Note what was looked for in the cache."""
        if isinstance(self._view.cache, PublisherNodes):
            self._view.cache.note_reads(hashes)

    def _take(self, reads: PublisherPass) -> None:
        """Take what was found so far out of the arrays; reads and placements become objects when they are asked for."""
        walk, paid, found = self._side_by_side, self._paid, reads.found
        given, kept = paid.proof.table(), self._kept
        of_given, of_kept = walk.paid_nodes
        made = WalkedReads(self._view.para_id, paid.charges, (self._keys, given, kept), walk.reads)
        cached = {kept.hashes[number]: kept.nodes[number] for number in of_kept}
        met = {given.hashes[number]: given.nodes[number] for number in walk.fresh}
        assert isinstance(paid.made, ReadLog)
        paid.made.extend_by(made)
        paid.proof.accessed.update(map(given.hashes.__getitem__, of_given))
        found.nodes.update(met)
        reads.looked_for.update(cached)
        missing = [(self.subscribed.paths[first][:depth], node_hash) for first, depth, node_hash in walk.missing]
        self.unseen.update(prefix for prefix, _ in missing)
        self._note_reads([*met, *cached, *(node_hash for _, node_hash in missing)])
        assert isinstance(self.placements, ArrayPlacements)
        self.placements.columns.append((self.subscribed.paths, (given.hashes, kept.hashes), walk.placed, missing))
        keys = self.subscribed.keys
        self.changed += [(keys[key], walk.bytes_at(source, at, size)) for key, source, at, size in walk.changed]
        walk.forget()


class WalkedReads:
    """Reads of a walk in arrays (``ReadColumns``): rows of what was read, as ``SOURCES`` number it, and which node."""

    __slots__ = ("charges", "given", "hashes", "keys", "publisher", "rows", "sizes")

    def __init__(self, publisher: ParaId, charges: Charges, arrays: tuple[Any, Any, Any], rows: Any) -> None:
        self.keys, self.given, kept = arrays
        self.publisher, self.charges, self.rows = publisher, charges, rows
        self.hashes = self.given.hashes, kept.hashes
        self.sizes = array_engine("side_by_side").sizes_of(rows, self.given, kept)

    @property
    def largest(self) -> int:
        return int(self.sizes.max(initial=0))

    @property
    def relay_hashes(self) -> list[bytes]:
        """The hashes of what was read from the proof."""
        return [self.hashes[0][number] for what, number in self.rows.tolist() if what != _CACHED]

    def __len__(self) -> int:
        return len(self.rows)

    def made(self) -> list[NodeRead]:
        prices = self.charges.node, self.charges.value, self.charges.cached
        made = []
        for (what, number), size in zip(self.rows.tolist(), self.sizes.tolist(), strict=True):
            node_hash = self.hashes[what == _CACHED][number]
            made.append(NodeRead(self.publisher, node_hash, size, SOURCES[what], prices[what](size)))
        return made

    def totals(self) -> dict[str, ReadTotal]:
        found = {}
        for what in dict.fromkeys(self.rows[:, 0].tolist()):
            sizes = self.sizes[self.rows[:, 0] == what]
            found[SOURCES[what].value] = ReadTotal(len(sizes), int(sizes.sum()))
        return found

    def are_those_of(self, other: "WalkedReads", /) -> bool:
        if self.charges is not other.charges:  # equal ones may have been made twice
            return self.made() == other.made()
        return self.publisher == other.publisher and self._named() == other._named()

    def _named(self) -> list[tuple[int, bytes]]:
        return [(what, self.hashes[what == _CACHED][number]) for what, number in self.rows.tolist()]


class ArrayPlacements(Placements):
    """Places of nodes in arrays; they become sets when they are asked for."""

    def __init__(self) -> None:
        self.columns: list[tuple[Sequence[bytes], tuple[list[bytes], list[bytes]], Any, list[Placement]]] = []
        """The paths of the keys, the hashes of given and of kept nodes, the places in arrays, and those without a
        node, which are lost."""

    @classmethod
    def all_of(cls, some: Iterable[Placements]) -> "ArrayPlacements":
        """Return the places of several ranges of keys together."""
        together = cls()
        together.columns = [column for it in some if isinstance(it, ArrayPlacements) for column in it.columns]
        return together

    def __getattr__(self, name: str) -> Any:
        if name not in {"gained", "lost"}:
            raise AttributeError(name)
        self.gained, self.lost = set(), set()
        for paths, hashes, (gained, lost), missing in self.columns:
            for placed, found in ((gained, self.gained), (lost, self.lost)):
                found.update((paths[first][:depth], hashes[at][it]) for first, depth, at, it in placed.tolist())
            self.lost.update(missing)
        return self.__dict__[name]

    def moved(self) -> dict[bytes, int]:
        """Return how many places of each node came, less those that went."""
        if len(self.columns) != 1:
            return super().moved()
        ((_, hashes, placed, missing),) = self.columns
        if missing or sum(map(len, placed)) < MOVED_IN_ARRAYS:
            return super().moved()
        moves = array_engine("side_by_side").net_moves(*placed)
        return {hashes[source][number]: difference for source, number, difference in moves}


def _value(data: bytes, is_hash: bool) -> Value:
    return HashedValue(data) if is_hash else data
