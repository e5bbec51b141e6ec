"""Two tries walked side by side in arrays: tables of nodes by hash, sorted keys, and a walk that stops and goes on.

``kernels.side_by_side`` says what a walk does. Nodes stay in a ``NodeTable`` from walk to walk.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.columns import strings_together
from relaycast_trie.kernels import side_by_side as kernel
from relaycast_trie.kernels.decode import PLAN
from relaycast_trie.kernels.verify import hash_strings

Array = npt.NDArray[Any]

DONE, OUT_OF_BUDGET, NOT_GIVEN, TOO_DEEP = kernel.DONE, kernel.OUT_OF_BUDGET, kernel.NOT_GIVEN, kernel.TOO_DEEP
UNDECODABLE, FULL, SAME, ADMIT = kernel.UNDECODABLE, kernel.FULL, kernel.SAME, kernel.ADMIT
GIVEN, KEPT = kernel.GIVEN, kernel.KEPT

LEAST_ROOM = 64
"""Nodes that a table has room for from the beginning."""


ROOM_A_KEY = 4
"""Placements for each key that a walk has room for before it has to stop for more."""


class NodeTable:
    """Nodes by hash, each with a mark: that it is there, or that it was read. A node that is unmarked keeps its place.

    ``hashes`` and ``nodes`` are the same as Python has them, in the order in which they came.
    """

    def __init__(self, hashes: Iterable[bytes] = (), nodes: Iterable[bytes] = ()) -> None:
        self._begin()
        self.insert(list(hashes), list(nodes))

    def _begin(self) -> None:
        self.hashes: list[bytes] = []
        self.nodes: list[bytes] = []
        self.count = 0
        self._bytes = 0
        self.data = np.empty(0, np.uint8)
        self.at = np.empty(0, np.int64)
        self.size = np.empty(0, np.int32)
        self.names = np.empty(0, np.uint8)
        self.marks = np.empty(0, np.uint8)
        self.slots = np.zeros(4, np.int32)

    def __len__(self) -> int:
        """Return how many places are taken, those of unmarked nodes too."""
        return len(self.nodes)

    def insert(self, hashes: list[bytes], nodes: list[bytes]) -> None:
        """Add nodes, or mark them again, under their hashes."""
        if not nodes:
            return
        first, end = len(self.nodes), len(self.nodes) + len(nodes)
        self.hashes += hashes
        self.nodes += nodes
        data, offsets, sizes, _ = strings_together(nodes)
        self.data = _with_room(self.data, self._bytes, self._bytes + len(data))
        self.at, self.size = _with_room(self.at, first, end), _with_room(self.size, first, end)
        self.names, self.marks = _with_room(self.names, 32 * first, 32 * end), _with_room(self.marks, first, end)
        self.data[self._bytes : self._bytes + len(data)] = data
        self.at[first:end] = offsets[:-1] + self._bytes
        self.size[first:end] = sizes
        self.names[32 * first : 32 * end] = np.frombuffer(b"".join(hashes), np.uint8)
        self.marks[first:end] = 0
        self._bytes += len(data)
        if 2 * end > len(self.slots):
            marks = self.marks.copy()
            self.slots = np.zeros(4 << end.bit_length(), np.int32)
            kernel.enter_nodes(self.names, 0, first, self.slots, marks)
        self.count += kernel.enter_nodes(self.names, first, end, self.slots, self.marks)

    def remove(self, hashes: list[bytes]) -> None:
        """Unmark nodes."""
        self.count -= self._mark(hashes, 0)
        if len(self.nodes) > LEAST_ROOM + 2 * self.count:
            kept = np.flatnonzero(self.marks[: len(self.nodes)]).tolist()
            hashes, nodes = [self.hashes[it] for it in kept], [self.nodes[it] for it in kept]
            self._begin()
            self.insert(hashes, nodes)

    def mark(self, hashes: Iterable[bytes]) -> None:
        """Mark those of the nodes that are there."""
        self.count += self._mark(hashes, 1)

    def unmark_all(self) -> None:
        """Take all marks away."""
        self.marks[:] = 0
        self.count = 0

    def _mark(self, hashes: Iterable[bytes], mark: int) -> int:
        wanted = np.frombuffer(bytearray().join(hashes), np.uint8)
        return int(kernel.mark_nodes(wanted, self.names, self.slots, self.marks, mark))


def hashes_of(nodes: list[bytes]) -> list[bytes]:
    """Return the hash of each node; all are hashed together."""
    data, offsets, sizes, _ = strings_together(nodes)
    hashes = np.empty(32 * len(nodes), np.uint8)
    hash_strings((data, offsets[:-1], sizes, -1), len(nodes), hashes)
    together = hashes.tobytes()
    return [together[at : at + 32] for at in range(0, len(together), 32)]


def sizes_of(reads: Array, given: NodeTable, kept: NodeTable) -> Array:
    """Return the bytes of what was read: of nodes that are ``given``, values among them, or ``kept``."""
    is_kept = reads[:, 0] == kernel.KEPT_NODE
    sizes = np.empty(len(reads), np.int64)
    sizes[is_kept], sizes[~is_kept] = kept.size[reads[is_kept, 1]], given.size[reads[~is_kept, 1]]
    return sizes


def net_moves(gained: Array, lost: Array) -> list[tuple[int, int, int]]:
    """Return each node of these places: ``GIVEN`` or ``KEPT``, its number, and how many came, less those that went.

    A place that comes twice in a list counts once.
    """
    nodes = []
    for placed in (gained, lost):
        _, first = np.unique(placed @ _PLACES, return_index=True)
        nodes.append(placed[first, 2:] @ np.array([1, 2]))
    signs = np.repeat([1, -1], [len(nodes[0]), len(nodes[1])])
    named, places = np.unique(np.concatenate(nodes), return_inverse=True)
    moved = np.bincount(places, signs, len(named)).astype(np.int64)
    return list(zip((named & 1).tolist(), (named >> 1).tolist(), moved.tolist(), strict=True))


_PLACES = np.array([1 << 40, 1 << 33, 1, 2])
"""Makes one number of a placement: 2^23 keys, 65 depths and 2^32 nodes have room."""


def price_lists(lists: Sequence[Sequence[tuple[int, int]]]) -> Array:
    """Return price lists as walks take them."""
    return np.array(lists, np.uint64)


def _with_room(array: Array, used: int, wanted: int) -> Array:
    """Return the array with room for ``wanted`` items; the first ``used`` stay."""
    if wanted <= len(array):
        return array
    grown = np.empty(max(wanted, 2 * len(array), LEAST_ROOM), array.dtype)
    grown[:used] = array[:used]
    return grown


class KeyColumn:
    """Sorted keys of 32 bytes."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.data = np.frombuffer(bytearray().join(keys), np.uint8)
        self.shared = np.empty(len(keys), np.uint8)
        kernel.share_nibbles(self.data, self.shared)


class SideBySide:
    """The walks of one publisher's keys: ``given`` nodes of the new trie, ``kept`` ones of the old trie and the new.

    ``prices`` are by what is read (``NODE``, ``VALUE``, ``KEPT_NODE``), by size, and in two dimensions; the last size
    stands for all above it. ``given`` nodes that are marked are paid for. What was found is in ``reads``, ``fresh``,
    ``gained``, ``lost`` and ``changed`` until ``forget``.
    """

    def __init__(self, keys: KeyColumn, given: NodeTable, kept: NodeTable, prices: Array, *, most_above: int) -> None:
        self._keys, self._given, self._kept, self._prices = keys, given, kept, prices
        self._most_above = most_above
        self._mine = np.zeros(len(given), np.uint8)
        self._met = np.zeros(len(kept), np.uint8)
        self._state = np.zeros(kernel.STATE, np.int64)
        self._plans = np.zeros(2 * PLAN, np.int64)
        self._allowed = np.zeros(2, np.uint64)
        self._reads = np.empty(2 * (len(given) + len(kept)), np.int64)
        self._fresh = np.empty(len(given), np.int64)
        self._frames = np.empty(kernel.FRAMES * kernel.FRAME, np.int64)
        self._placed = np.empty((2, 0), np.int64)
        self._changed = np.empty(0, np.int64)
        self.roots = b""

    def begin(self, low: int, high: int, new_root: bytes, old_root: bytes | None, allowed: tuple[int, int]) -> None:
        """Begin a walk of the keys ``[low, high)``; an ``old_root`` of ``None`` is an old trie without keys."""
        self._allowed[:] = allowed
        self.roots = new_root + (old_root or new_root)
        self._flat_roots = np.frombuffer(bytearray(self.roots), np.uint8)
        frame = self._frames[: kernel.FRAME]
        frame[:] = 0
        frame[kernel.LOW], frame[kernel.HIGH] = low, high
        for side, root in ((kernel.NEW, new_root), (kernel.OLD, old_root)):
            if root is not None:
                frame[side : side + kernel.SIDE] = (
                    kernel.PLACE,
                    0,
                    kernel.ROOTS,
                    32 * (side == kernel.OLD),
                    len(root),
                    0,
                )
        self._state[kernel.TOP], self._state[kernel.ASKED] = 1, kernel.DONE
        self._state[kernel.KEY_AT] = low
        room = kernel.PLACEMENT * max(ROOM_A_KEY * (high - low), LEAST_ROOM)
        if self._placed.shape[1] < room:
            self._placed = np.empty((2, room), np.int64)
        if len(self._changed) < kernel.CHANGE * (high - low):
            self._changed = np.empty(kernel.CHANGE * (high - low), np.int64)

    def go_on(self, *, asks: bool, answer: bool = False) -> int:
        """Go on until the walk ends or asks, and return why it did."""
        given, kept = self._given, self._kept
        return int(
            kernel.walk_side_by_side(
                self._keys.data,
                self._keys.shared,
                given.data,
                given.at,
                given.size,
                given.names,
                given.slots,
                given.marks,
                self._mine,
                kept.data,
                kept.at,
                kept.size,
                kept.names,
                kept.slots,
                kept.marks,
                self._met,
                self._flat_roots,
                self._prices,
                self._allowed,
                self._plans,
                self._state,
                self._reads,
                self._fresh,
                self._placed[0],
                self._placed[1],
                self._changed,
                self._frames,
                self._most_above,
                asks,
                answer,
            )
        )

    @property
    def allowed(self) -> tuple[int, int]:
        """What is left of what was allowed, in both dimensions."""
        time, proof = self._allowed.tolist()
        return time, proof

    @property
    def key(self) -> int:
        """The number of the key under work."""
        return int(self._state[kernel.KEY_AT])

    @property
    def reads(self) -> Array:
        """What was paid for, in order: ``NODE``, ``VALUE`` or ``KEPT_NODE``, and the number of the node."""
        return self._rows(self._reads, kernel.READS, 2).copy()

    @property
    def paid_nodes(self) -> tuple[list[int], list[int]]:
        """The numbers of the given and of the kept nodes that were paid for, in order."""
        reads = self._rows(self._reads, kernel.READS, 2)
        is_kept = reads[:, 0] == kernel.KEPT_NODE
        return reads[~is_kept, 1].tolist(), reads[is_kept, 1].tolist()

    @property
    def fresh(self) -> list[int]:
        """The numbers of the given nodes that were met, in order, each once."""
        numbers: list[int] = self._fresh[: int(self._state[kernel.FRESH])].tolist()
        return numbers

    @property
    def placed(self) -> tuple[Array, Array]:
        """The placements met in the new and in the old trie alone, a row each (``PLACEMENT``); some may come twice."""
        gained = self._rows(self._placed[0], kernel.GAINED, kernel.PLACEMENT)
        lost = self._rows(self._placed[1], kernel.LOST, kernel.PLACEMENT)
        return gained.copy(), lost[lost[:, 2] < kernel.MISSING]

    @property
    def missing(self) -> list[tuple[int, int, bytes]]:
        """The placements in the old trie of nodes that are not kept: the first key, the depth, and the hash."""
        lost = self._rows(self._placed[1], kernel.LOST, kernel.PLACEMENT)
        rows = lost[lost[:, 2] >= kernel.MISSING].tolist()
        return [(first, depth, self.bytes_at(source - kernel.MISSING, at, 32)) for first, depth, source, at in rows]

    @property
    def changed(self) -> list[list[int]]:
        """The keys that changed, in order, and where their values are."""
        rows: list[list[int]] = self._rows(self._changed, kernel.CHANGED, kernel.CHANGE).tolist()
        return rows

    @property
    def changes(self) -> int:
        """How many keys changed so far."""
        return int(self._state[kernel.CHANGED])

    def _rows(self, array: Array, count: int, width: int) -> Array:
        return array[: width * int(self._state[count])].reshape(-1, width)

    def forget(self) -> None:
        """Forget what was found so far."""
        self._state[[kernel.READS, kernel.FRESH, kernel.GAINED, kernel.LOST, kernel.CHANGED]] = 0

    def bytes_at(self, source: int, at: int, size: int) -> bytes:
        """Return bytes of a node or a root."""
        if source == kernel.ROOTS:
            return self.roots[at : at + size]
        return (self._given if source == kernel.GIVEN else self._kept).data[at : at + size].tobytes()

    @property
    def reference(self) -> bytes:
        """How the last node that was looked for is named; nothing once a value was read."""
        source, at, size = self._state[kernel.HASH_SOURCE : kernel.HASH_SIZE + 1].tolist()
        return self.bytes_at(source, at, size)

    @property
    def values(self) -> tuple[tuple[bytes, bool], tuple[bytes, bool]]:
        """The new and the old value in question, each with whether it is a hash of the value."""
        sides = self._state[kernel.PENDING + 1 :].reshape(2, kernel.SIDE).tolist()
        new, old = (
            (self.bytes_at(source, at, size), kind == kernel.EXTERNAL) for kind, _, source, at, size, _ in sides
        )
        return new, old


PLACE_OF_NONE = np.iinfo(np.int64).max


def first_places(placed: Array, source: int, nodes: int) -> Array:
    """Return the place of each of so many nodes of a ``source``: ``place >> 7`` is its first key, the rest its depth.

    Of several the first counts, ``PLACE_OF_NONE`` is that of a node without.
    """
    places = np.full(nodes, PLACE_OF_NONE)
    mine = placed[placed[:, 2] == source]
    np.minimum.at(places, mine[:, 3], mine[:, 0] << 7 | mine[:, 1])
    return places


def bytes_aside(keys: KeyColumn, given: NodeTable, places: Array, numbers: Array) -> int:
    """Return the bytes of references to children that no key leads to, in ``given`` nodes at ``places``."""
    apart = np.stack((places >> 7, places & 127), 1).reshape(-1)
    nodes = given.data, given.at, given.size
    plans = np.zeros(PLAN, np.int64)
    return int(kernel.reference_bytes_aside(keys.data, keys.shared, *nodes, apart, numbers.copy(), plans))


def paths_through(keys: KeyColumn, given: NodeTable, root: bytes) -> list[tuple[bytes, int, int]] | None:
    """Return the nodes with a hash on the paths of all keys, and the external values at their ends.

    Each comes with its depth in nibbles and its first key, in the order of these keys. ``None`` where the given nodes
    do not reach.
    """
    walk = SideBySide(keys, given, NodeTable(), np.zeros((3, 1, 2), np.uint64), most_above=1 << 30)
    count = len(keys.shared)
    walk.begin(0, count, root, None, (0, 0))
    rows, changed, status = [], [], FULL
    while status == FULL:
        status = walk.go_on(asks=False)
        rows.append(walk.placed[0][:, [0, 1, 3]])
        changed += walk.changed
        walk.forget()
    if status != DONE:
        return None
    values = np.array(changed, np.int64).reshape(-1, kernel.CHANGE)
    numbers = np.minimum(np.searchsorted(given.at[: len(given)], values[:, 2]), len(given) - 1)
    is_apart = (given.at[numbers] == values[:, 2]) & (values[:, 1] == kernel.GIVEN) & (values[:, 3] > 0)
    ends = np.stack((values[:, 0], np.full(len(values), kernel.PATH), numbers), 1)[is_apart]
    found = np.concatenate((*rows, ends))
    ordered = found[np.lexsort((found[:, 1], found[:, 0]))].tolist()
    return [(given.hashes[number], depth, first) for first, depth, number in ordered]
