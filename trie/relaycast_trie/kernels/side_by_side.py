"""Two tries walked side by side along sorted keys: what the new one has that the old one has not, and the other way.

All keys have 32 bytes. They are followed down both tries at once, in their order, depth first. Where the same node is
at the same place in both, everything below is equal and nothing more is read. The nodes of the old trie are in a table
of *kept* nodes; those of the new one are there too, or else in a table of *given* nodes. Each node is paid for once,
out of two allowances, by its size; a node that does not fit is not read, and the walk ends.

A *side* says where a key is in one of the tries: ``NOWHERE``, at a node to come (``PLACE``), or at its value, which is
there (``INLINE``) or named by its hash (``EXTERNAL``). A node to come has a depth in nibbles, the bytes with which its
parent names it, and the number of hashed nodes above it.

What only Python can answer ends a call; the next one goes on from there. The plain form of the walk, and its law, is
``relaycast_pallets.subscriber.walk``.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relaycast_trie.kernels.compiling import face, inlined
from relaycast_trie.kernels.decode import (
    BRANCH,
    COUNT,
    EMPTY,
    HASHED,
    KIND,
    NO_VALUE,
    PARTIAL,
    PLAN,
    VALUE_AT,
    VALUE_SIZE,
    _same_bytes,
    child_place,
    partial_fits,
    plan_node,
)
from relaycast_trie.kernels.memory import Bytes, Int32s, Int64s, int64
from relaycast_trie.kernels.tables import nibble, shared_nibbles
from relaycast_trie.kernels.verify import MOST_CHILDREN, _same_hash, _slot_of, look_up

KEY, PATH = 32, 64
"""Bytes and nibbles of a key."""

NOWHERE, PLACE, INLINE, EXTERNAL = 0, 1, 2, 3

GIVEN, KEPT, ROOTS = 0, 1, 2
"""Where bytes lie: in a given node, in a kept node, or among the two roots."""

DONE, OUT_OF_BUDGET, NOT_GIVEN, TOO_DEEP, UNDECODABLE, FULL, SAME, ADMIT, CHANGES = range(9)
"""Why a call ends: all keys are dealt with; a node does not fit, is not there, or has too many above it; a node does
not decode; a list of placements is full; are these two values the same; may this value be read. ``CHANGES``: a key is
known to have changed, which ends no call."""

KIND_, DEPTH, SOURCE, AT, SIZE, ABOVE = range(6)
SIDE = 6
LOW, HIGH, NEW, OLD = 0, 1, 2, 2 + SIDE
FRAME = OLD + SIDE
FRAMES = 4_096
"""Frames of the stack: at most 18 for each of 130 steps down."""

TOP, KEY_AT, ASKED, HASH_SOURCE, HASH_AT, HASH_SIZE, READS, FRESH, GAINED, LOST, CHANGED, PENDING = range(12)
STATE = PENDING + 2 * SIDE + 1
"""Numbers that a walk keeps: frames, the key under work, what was asked, the reference to the last node that was looked
for (0 bytes of it once a value was read), how long the lists are, and the key and the two values that wait for an
answer."""

NODE, VALUE, KEPT_NODE = 0, 1, 2
"""What is paid for, and a list of prices for each."""

PLACEMENT = 4
"""A placement: the first key of all that lead to it, its depth, where its node is, and the number of that node. Where
no table has the node, the number is where its hash is, and ``MISSING`` is added to the source."""
MISSING = 4
CHANGE = 4
"""A key that changed, and where its value is."""


class Walk(NamedTuple):
    """What the steps of a walk share."""

    keys: Bytes
    shared: Bytes
    """Nibbles that each key has in common with the one before it."""
    data: tuple[Bytes, Bytes, Bytes]
    """``GIVEN``, ``KEPT`` and ``ROOTS``."""
    given_at: Int64s
    given_size: Int32s
    given_hashes: Bytes
    given_table: Int32s
    used: Bytes
    """Which given nodes are paid for."""
    mine: Bytes
    """Which given nodes this publisher has met."""
    kept_at: Int64s
    kept_size: Int32s
    kept_hashes: Bytes
    kept_table: Int32s
    live: Bytes
    """Which kept nodes still are."""
    met: Bytes
    """Which kept nodes are paid for."""
    prices: npt.NDArray[np.uint64]
    allowed: npt.NDArray[np.uint64]
    plans: Int64s
    state: Int64s
    reads: Int64s
    fresh: Int64s


@face
def enter_nodes(hashes: Bytes, first: int, end: int, table: Int32s, marks: Bytes) -> int:
    """Put the nodes ``first`` to ``end`` into a table of hashes and mark them; return how many were marked anew.

    Of equal nodes the first is in the table, and it is marked.
    """
    mask = len(table) - 1
    entered = int64(0)
    for node in range(first, end):
        slot = _slot_of(hashes, node * 32, mask)
        while table[slot] and not _same_hash(hashes, (int64(table[slot]) - 1) * 32, hashes, node * 32):
            slot = (slot + 1) & mask
        if not table[slot]:
            table[slot] = node + 1
        known = int64(table[slot]) - 1
        if not marks[known]:
            marks[known] = 1
            entered += 1
    return entered


@face
def mark_nodes(wanted: Bytes, hashes: Bytes, table: Int32s, marks: Bytes, mark: int) -> int:
    """Set the marks of the nodes with these hashes, as far as they are there; return how many marks changed."""
    mask = len(table) - 1
    changed = int64(0)
    for at in range(0, len(wanted), 32):
        node = look_up(hashes, table, mask, wanted, at)
        if node >= 0 and int64(marks[node]) != mark:
            marks[node] = mark
            changed += 1
    return changed


@face
def share_nibbles(keys: Bytes, shared: Bytes) -> None:
    """Write how many nibbles each key has in common with the one before it, 0 for the first."""
    for key in range(len(shared)):
        both = int64(0) if key == 0 else shared_nibbles(keys, KEY * (key - 1), KEY, keys, KEY * key, KEY)
        shared[key] = both


@face
def reference_bytes_aside(
    keys: Bytes,
    shared: Bytes,
    data: Bytes,
    node_at: Int64s,
    sizes: Int32s,
    places: Int64s,
    numbers: Int64s,
    plans: Int64s,
) -> int:
    """Return the bytes of the references, in these nodes, to children that no key leads to.

    ``places`` are the first key and the depth of each node. Before a reference is one byte for its length. ``plans``
    has one row.
    """
    aside = int64(0)
    for i in range(len(numbers)):
        node = numbers[i]
        if not plan_node(data, node_at[node], int64(sizes[node]), plans, 0) or plans[KIND] != BRANCH:
            continue
        first, depth = places[2 * i], places[2 * i + 1]
        end = depth + plans[COUNT]
        wanted = int64(0)
        key = first
        while end < PATH and key < len(shared) and (key == first or int64(shared[key]) >= depth):
            if partial_fits(data, plans, 0, keys, KEY * key, KEY, depth):
                wanted |= int64(1) << nibble(keys, KEY * key, end)
            key += 1
        for way in range(MOST_CHILDREN):
            _, size = child_place(data, plans, 0, way)
            if size >= 0 and not wanted >> way & 1:
                aside += size + 1
    return aside


@inlined
def _equal(walk: Walk, left: int, left_at: int, right: int, right_at: int, size: int) -> bool:
    return _same_bytes(walk.data[left], left_at, walk.data[right], right_at, size)


@inlined
def _pay(walk: Walk, what: int, size: int) -> bool:
    """Take the price of a read from what is allowed; return whether it fits."""
    row = min(size, walk.prices.shape[1] - 1)
    time, proof = walk.prices[what, row, 0], walk.prices[what, row, 1]
    if time > walk.allowed[0] or proof > walk.allowed[1]:
        return False
    walk.allowed[0] -= time
    walk.allowed[1] -= proof
    return True


@inlined
def _note_read(walk: Walk, what: int, node: int) -> None:
    at = 2 * walk.state[READS]
    walk.reads[at], walk.reads[at + 1] = what, node
    walk.state[READS] += 1


@inlined
def _first_key(walk: Walk, key: int, depth: int) -> int:
    """Return the first of all keys that have ``depth`` nibbles in common with ``key``."""
    while key > 0 and int64(walk.shared[key]) >= depth:
        key -= 1
    return key


@inlined
def _place(walk: Walk, out: Int64s, kind: int, low: int, depth: int, source: int, number: int) -> None:
    """Note a placement in the list of the ``kind`` ``GAINED`` or ``LOST``."""
    at = PLACEMENT * walk.state[kind]
    out[at] = _first_key(walk, low, depth)
    out[at + 1], out[at + 2], out[at + 3] = depth, source, number
    walk.state[kind] += 1


@inlined
def _find(walk: Walk, source: int, at: int) -> tuple[int, int]:
    """Return what becomes of a search among kept nodes: ``DONE`` or ``OUT_OF_BUDGET``, and the node or -1."""
    node = look_up(walk.kept_hashes, walk.kept_table, len(walk.kept_table) - 1, walk.data[source], at)
    if node < 0 or not walk.live[node]:
        return int64(DONE), int64(-1)
    if not walk.met[node]:
        if not _pay(walk, KEPT_NODE, int64(walk.kept_size[node])):
            return int64(OUT_OF_BUDGET), int64(-1)
        walk.met[node] = 1
        _note_read(walk, KEPT_NODE, node)
    return int64(DONE), node


@inlined
def _take(walk: Walk, what: int, source: int, at: int) -> tuple[int, int]:
    """Return what becomes of a read of a given node or value, and its number."""
    node = look_up(walk.given_hashes, walk.given_table, len(walk.given_table) - 1, walk.data[source], at)
    if node < 0:
        return int64(NOT_GIVEN), node
    if not walk.used[node]:
        if not _pay(walk, what, int64(walk.given_size[node])):
            return int64(OUT_OF_BUDGET), node
        walk.used[node] = 1
        _note_read(walk, what, node)
    return int64(DONE), node


@inlined
def _read(walk: Walk, out: Int64s, low: int, frame: Int64s, side: int, most_above: int, row: int) -> tuple[int, int]:
    """Read the node of a side and plan it in ``row``; return what became of it, and where its bytes are.

    A node of the old trie that is not kept becomes ``EMPTY``: nobody knows what is below it.
    """
    source, at, size = frame[side + SOURCE], frame[side + AT], frame[side + SIZE]
    walk.state[HASH_SOURCE], walk.state[HASH_AT], walk.state[HASH_SIZE] = source, at, size
    if size == 32:
        depth = frame[side + DEPTH]
        if side == NEW and frame[side + ABOVE] == most_above:
            return int64(TOO_DEEP), source
        found, node = _find(walk, source, at)
        if found != DONE:
            return found, source
        if node >= 0:
            place, size, here = walk.kept_at[node], int64(walk.kept_size[node]), int64(KEPT)
        elif side == NEW:
            found, node = _take(walk, NODE, source, at)
            if found != DONE:
                return found, source
            if not walk.mine[node]:
                walk.mine[node] = 1
                walk.fresh[walk.state[FRESH]] = node
                walk.state[FRESH] += 1
            place, size, here = walk.given_at[node], int64(walk.given_size[node]), int64(GIVEN)
        else:
            _place(walk, out, LOST, low, depth, source + MISSING, at)
            walk.plans[row + KIND] = EMPTY
            return int64(DONE), source
        if not plan_node(walk.data[here], place, size, walk.plans, row):
            return int64(UNDECODABLE), source
        _place(walk, out, GAINED if side == NEW else LOST, low, depth, here, node)
        return int64(DONE), here
    if not plan_node(walk.data[source], at, size, walk.plans, row):
        return int64(UNDECODABLE), source
    return int64(DONE), source


@inlined
def _compare_path(walk: Walk, key: int, depth: int, data: Bytes, row: int) -> int:
    """Return -1, 0 or 1: a key is before, under or behind the path that goes on with a partial key."""
    count, packed = walk.plans[row + COUNT], walk.plans[row + PARTIAL]
    odd = count & 1
    for i in range(min(count, PATH - depth)):
        difference = nibble(walk.keys, KEY * key, depth + i) - nibble(data, packed, i + odd)
        if difference:
            return int64(-1) if difference < 0 else int64(1)
    return int64(-1) if count > PATH - depth else int64(0)


@inlined
def _under(walk: Walk, low: int, high: int, depth: int, data: Bytes, row: int) -> tuple[int, int]:
    """Return the range of the keys ``[low, high)`` that go on from ``depth`` with the partial key of a planned node."""
    if partial_fits(data, walk.plans, row, walk.keys, KEY * low, KEY, depth) and (
        high - low == 1 or partial_fits(data, walk.plans, row, walk.keys, KEY * (high - 1), KEY, depth)
    ):
        return low, high
    first, last = low, high
    end = high
    while first < end:
        middle = (first + end) >> 1
        if _compare_path(walk, middle, depth, data, row) < 0:
            first = middle + 1
        else:
            end = middle
    start = first
    while start < last:
        middle = (start + last) >> 1
        if _compare_path(walk, middle, depth, data, row) <= 0:
            start = middle + 1
        else:
            last = middle
    return int64(first), int64(last)


@inlined
def _from_nibble(walk: Walk, low: int, high: int, depth: int, way: int) -> int:
    """Return the first of the keys ``[low, high)`` whose nibble at ``depth`` is ``way`` or more, ``high`` for none."""
    while low < high:
        middle = (low + high) >> 1
        if nibble(walk.keys, KEY * middle, depth) < way:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _push(frames: Int64s, state: Int64s, low: int, high: int, frame: Int64s) -> int:
    """Push a frame with both sides of ``frame``; return where it is."""
    at = int64(FRAME * state[TOP])
    state[TOP] += 1
    frames[at + LOW], frames[at + HIGH] = low, high
    for i in range(2, FRAME):
        frames[at + i] = frame[i]
    return at


@inlined
def _lead(frames: Int64s, at: int, kind: int, depth: int, source: int, place: int, size: int, above: int) -> None:
    """Write a side of a frame that begins at ``frames[at]``."""
    frames[at + KIND_], frames[at + DEPTH], frames[at + SOURCE] = kind, depth, source
    frames[at + AT], frames[at + SIZE], frames[at + ABOVE] = place, size, above


@inlined
def _split(walk: Walk, frames: Int64s, frame: Int64s, low: int, high: int, side: int, row: int, source: int) -> None:
    """Push the keys ``[low, high)`` by where the planned node leads them; the first ones come on top."""
    plans, state = walk.plans, walk.state
    depth, above = frame[side + DEPTH], frame[side + ABOVE] + int64(frame[side + SIZE] == 32)
    if plans[row + KIND] == EMPTY:
        _lead(frames, _push(frames, state, low, high, frame) + side, NOWHERE, 0, 0, 0, 0, 0)
        return
    data = walk.data[source]
    first, last = _under(walk, low, high, depth, data, row)
    depth += plans[row + COUNT]
    if last < high:
        _lead(frames, _push(frames, state, last, high, frame) + side, NOWHERE, 0, 0, 0, 0, 0)
    if first < last and depth == PATH:
        kind, place, size = _value(plans, row)
        _lead(frames, _push(frames, state, first, last, frame) + side, kind, 0, source, place, size, 0)
    else:
        stop = last
        while stop > first:
            way = nibble(walk.keys, KEY * (stop - 1), depth)
            start = _from_nibble(walk, first, stop, depth, way)
            at = _push(frames, state, start, stop, frame) + side
            place, size = int64(0), int64(-1)
            if plans[row + KIND] == BRANCH:
                place, size = child_place(data, plans, row, way)
            if size < 0:
                _lead(frames, at, NOWHERE, 0, 0, 0, 0, 0)
            else:
                _lead(frames, at, PLACE, depth + 1, source, place, size, above)
            stop = start
    if low < first:
        _lead(frames, _push(frames, state, low, first, frame) + side, NOWHERE, 0, 0, 0, 0, 0)


@inlined
def _split_both(
    walk: Walk, frames: Int64s, frame: Int64s, low: int, high: int, new_source: int, old_source: int
) -> None:
    """Push the keys below two branches with equal partial keys whose ways there differ, or go deeper."""
    plans, state = walk.plans, walk.state
    new, old = walk.data[new_source], walk.data[old_source]
    new_above = frame[NEW + ABOVE] + int64(frame[NEW + SIZE] == 32)
    old_above = frame[OLD + ABOVE] + int64(frame[OLD + SIZE] == 32)
    first, last = _under(walk, low, high, frame[NEW + DEPTH], new, 0)
    depth = frame[NEW + DEPTH] + plans[COUNT]
    if depth >= PATH:
        return
    for back in range(MOST_CHILDREN):
        way = MOST_CHILDREN - 1 - back
        new_at, new_size = child_place(new, plans, 0, way)
        old_at, old_size = child_place(old, plans, PLAN, way)
        is_same = new_size == old_size and (new_size < 0 or _same_bytes(new, new_at, old, old_at, new_size))
        if is_same and new_above <= old_above:
            continue
        start = _from_nibble(walk, first, last, depth, way)
        stop = _from_nibble(walk, start, last, depth, way + 1)
        if start == stop:
            continue
        at = _push(frames, state, start, stop, frame)
        if new_size < 0:
            _lead(frames, at + NEW, NOWHERE, 0, 0, 0, 0, 0)
        else:
            _lead(frames, at + NEW, PLACE, depth + 1, new_source, new_at, new_size, new_above)
        if old_size < 0:
            _lead(frames, at + OLD, NOWHERE, 0, 0, 0, 0, 0)
        else:
            _lead(frames, at + OLD, PLACE, depth + 1, old_source, old_at, old_size, old_above)


@inlined
def _is_same_reference(walk: Walk, frame: Int64s) -> bool:
    """Return whether both nodes to come are named alike."""
    size = frame[NEW + SIZE]
    if size != frame[OLD + SIZE]:
        return False
    return _equal(walk, frame[NEW + SOURCE], frame[NEW + AT], frame[OLD + SOURCE], frame[OLD + AT], size)


@inlined
def _is_same_side(walk: Walk, frame: Int64s) -> bool:
    """Return whether both sides of a frame are equal."""
    for i in (KIND_, DEPTH, ABOVE):
        if frame[NEW + i] != frame[OLD + i]:
            return False
    return _is_same_reference(walk, frame)


@inlined
def _are_alike(walk: Walk, new_source: int, old_source: int) -> bool:
    """Return whether both planned nodes are leaves, or both are branches, with equal partial keys."""
    plans = walk.plans
    count = plans[COUNT]
    if plans[KIND] != plans[PLAN + KIND] or plans[KIND] == EMPTY or count != plans[PLAN + COUNT]:
        return False
    return _equal(walk, new_source, plans[PARTIAL], old_source, plans[PLAN + PARTIAL], (count + 1) >> 1)


@inlined
def _value(plans: Int64s, row: int) -> tuple[int, int, int]:
    """Return the kind of the value of a planned node, where it starts, and its bytes."""
    if plans[row + VALUE_SIZE] == NO_VALUE:
        return int64(NOWHERE), int64(0), int64(0)
    if plans[row + VALUE_SIZE] == HASHED:
        return int64(EXTERNAL), plans[row + VALUE_AT], int64(32)
    return int64(INLINE), plans[row + VALUE_AT], plans[row + VALUE_SIZE]


@inlined
def _entry(walk: Walk, changed: Int64s, key: int, side: Int64s) -> int:
    """Read the value of a changed key and note it; return what became of it."""
    source, at, size = side[SOURCE], side[AT], side[SIZE]
    walk.state[HASH_SIZE] = 0
    if side[KIND_] == EXTERNAL:
        found, node = _take(walk, VALUE, source, at)
        if found != DONE:
            return found
        source, at, size = int64(GIVEN), walk.given_at[node], int64(walk.given_size[node])
    row = CHANGE * walk.state[CHANGED]
    changed[row], changed[row + 1], changed[row + 2], changed[row + 3] = key, source, at, size
    walk.state[CHANGED] += 1
    return int64(DONE)


@face
def walk_side_by_side(
    keys: Bytes,
    shared: Bytes,
    given: Bytes,
    given_at: Int64s,
    given_size: Int32s,
    given_hashes: Bytes,
    given_table: Int32s,
    used: Bytes,
    mine: Bytes,
    kept: Bytes,
    kept_at: Int64s,
    kept_size: Int32s,
    kept_hashes: Bytes,
    kept_table: Int32s,
    live: Bytes,
    met: Bytes,
    roots: Bytes,
    prices: npt.NDArray[np.uint64],
    allowed: npt.NDArray[np.uint64],
    plans: Int64s,
    state: Int64s,
    reads: Int64s,
    fresh: Int64s,
    gained: Int64s,
    lost: Int64s,
    changed: Int64s,
    frames: Int64s,
    most_above: int,
    asks: bool,
    answer: bool,
) -> int:
    """Go on with a walk until it ends or asks; return why the call ended.

    ``frames`` is the stack. ``state[ASKED]`` is what the call before asked for, and ``answer`` is the answer. With
    ``asks`` each changed key is asked for before its value is read. ``plans`` has two rows. ``reads`` and ``fresh``
    have room for every node of both tables, ``changed`` for every key; a call ends ``FULL`` before ``gained`` or
    ``lost`` is.
    """
    walk = Walk(
        keys,
        shared,
        (given, kept, roots),
        given_at,
        given_size,
        given_hashes,
        given_table,
        used,
        mine,
        kept_at,
        kept_size,
        kept_hashes,
        kept_table,
        live,
        met,
        prices,
        allowed,
        plans,
        state,
        reads,
        fresh,
    )
    frame = state[PENDING + 1 - NEW :]  # its sides are those in question
    room = min(len(gained), len(lost)) // PLACEMENT
    waits = state[ASKED] != DONE
    while True:
        if waits:
            # A key has come to two values, or to a new one alone.
            asked = state[ASKED]
            state[ASKED] = DONE
            waits = False
            if asked == SAME and answer:
                continue
            if asked != ADMIT and asks:
                state[ASKED] = ADMIT
                return ADMIT
            found = _entry(walk, changed, state[PENDING], frame[NEW : NEW + SIDE])
            if found != DONE:
                return found
            continue
        if not state[TOP]:
            return DONE
        if max(state[GAINED], state[LOST]) == room:
            return FULL
        state[TOP] -= 1
        popped = frames[FRAME * state[TOP] : FRAME * state[TOP] + FRAME]
        low, high = popped[LOW], popped[HIGH]
        for i in range(NEW, FRAME):
            frame[i] = popped[i]
        if _is_same_side(walk, frame):
            continue
        state[KEY_AT] = low
        reads_new, reads_old = frame[NEW + KIND_] == PLACE, frame[OLD + KIND_] == PLACE
        if reads_new and reads_old:
            deeper = frame[NEW + DEPTH] - frame[OLD + DEPTH]
            reads_new, reads_old = deeper <= 0, deeper >= 0
            if deeper == 0 and frame[NEW + ABOVE] <= frame[OLD + ABOVE] and _is_same_reference(walk, frame):
                continue
        if reads_new or reads_old:
            new_source, old_source = int64(0), int64(0)
            for row in range(2):
                if not (reads_old if row else reads_new):
                    continue
                found, source = _read(
                    walk, lost if row else gained, low, frame, OLD if row else NEW, most_above, PLAN * row
                )
                if found != DONE:
                    return found
                if row:
                    old_source = source
                else:
                    new_source = source
            if not (reads_new and reads_old and _are_alike(walk, new_source, old_source)):
                side, row, source = (NEW, 0, new_source) if reads_new else (OLD, PLAN, old_source)
                _split(walk, frames, frame, low, high, side, row, source)
                continue
            if plans[KIND] == BRANCH:
                _split_both(walk, frames, frame, low, high, new_source, old_source)
                continue
            first, last = _under(walk, low, high, frame[NEW + DEPTH], walk.data[new_source], 0)
            if first == last or frame[NEW + DEPTH] + plans[COUNT] != PATH:
                continue
            low = first
            state[KEY_AT] = low
            for row in range(2):
                kind, place, size = _value(plans, PLAN * row)
                _lead(frame, OLD if row else NEW, kind, 0, old_source if row else new_source, place, size, 0)
        if frame[NEW + KIND_] == NOWHERE:
            continue
        state[PENDING] = low
        if frame[OLD + KIND_] == NOWHERE:
            state[ASKED] = CHANGES
        elif frame[NEW + KIND_] != frame[OLD + KIND_]:
            state[ASKED] = SAME
            return SAME
        elif not _is_same_side(walk, frame):
            state[ASKED] = CHANGES
        waits = state[ASKED] == CHANGES
