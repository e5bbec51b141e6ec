"""How a trie lies in arrays: a table of entries (keys with values) and a table of branches.

A node is named by a number: ``entry + 1`` is the leaf of an entry, ``-(branch + 1)`` a branch, 0 none. An entry whose
key ends where a branch stands is that branch's value and no leaf. What a parent needs of a node is its *reference*,
in a slot of its own: its hash, or its encoding when that is shorter than 32 bytes.

INVARIANT: a slot that a reachable node names is never changed, unless its state says that it is fresh.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from relaycast_trie.kernels.compiling import inlined, kernel
from relaycast_trie.kernels.memory import (
    CHECKED,
    Bytes,
    Int32s,
    Int64s,
    _address,
    copy,
    int64,
    intrinsic,
    leading_zeros,
    load64,
)
from relaycast_trie.kernels.multibuffer_hash import Rooms
from relaycast_trie.kernels.packed_args import Handed, part_of

SIZE = 0x3F
"""The bits of a state that tell the size of the reference."""
STALE = 0x3F
"""In place of the size: the reference is to be computed."""
EXTERNAL = 0x40
"""Mark of an entry whose value is stored under its hash."""
FRESH = 0x80
"""Made since the last commit, so that nobody else reads it and it may change in place."""

NO_START = -1
"""The start of an entry that is the value of a branch."""


class Column(NamedTuple):
    """Byte strings: ``width`` bytes each, one after another, or with -1 those that ``at`` and ``size`` tell."""

    data: Bytes
    at: Int64s
    size: Int32s
    width: int


class Entries(NamedTuple):
    """Keys and values."""

    key: Column
    value: Column
    value_hash: Bytes
    start: Int32s
    """From which nibble on a leaf spells its key; the nibbles before are the path to it."""
    ref: Bytes
    state: npt.NDArray[np.uint8]


WAYS, START, DEPTH, SAMPLE, VALUED, STATE, STALE_WAYS = range(16, 23)
ROW = 24
"""A row of a branch: 16 children, and a bitmap of those that are there. Then from which nibble to which its partial key
goes, and some entry below in whose key it stands. Then the entry whose key ends here, plus one; the state; a bitmap of
the children that may be stale."""

REF = 33
"""A slot for a reference has the SCALE length before it, as a parent writes it."""


class Branches(NamedTuple):
    """Branches. All numbers of a row lie together: a kernel that reads one of them reads others too."""

    row: Annotated[Int32s, ROW]
    ref: Bytes


class Slots(NamedTuple):
    """Counters, and the lists of slots that are free or retired; each list has room for its whole table."""

    counters: Int64s
    free_entries: Int32s
    pending_entries: Int32s
    """Dropped. They become free when all references are computed: until then samples may name them."""

    free_branches: Int32s
    retired_entries: Int32s
    retired_branches: Int32s


class Work(NamedTuple):
    """Room to work in, which an arena keeps: lists of what is stale, a queue of it, lanes, and a path down."""

    stale: Int32s
    """Nodes from the roots down; external values to be hashed, as ``settle.ALONE + entry``."""

    above: Int32s
    """For each item, the place in ``stale`` of the one that waits for it; -1 for a root."""

    waiting: Int32s
    """For each item, how many items it waits for."""

    queue: Int32s
    """Places of the items that wait for nothing more."""

    rooms: Rooms
    path: Int64s
    """Branches that a key passes."""

    root: Bytes
    """The hash of the first root."""


class Parts(NamedTuple):
    """Everything that is handed over to kernels together."""

    entries: Entries
    branches: Branches
    slots: Slots
    work: Work


Tables = Handed
"""``Parts``, as ``packed_args.hand_over`` makes it."""

Strings = tuple[Any, ...]
"""A column without names. Callers in Python hand over plain tuples: numba looks at named ones with Python code, which
takes 8 us a call. INVARIANT: only kernels that count no references take it apart; another one would give back what it
never took."""

entries_in: Callable[[Tables], Entries] = part_of(Parts, "entries")
branches_in: Callable[[Tables], Branches] = part_of(Parts, "branches")
slots_in: Callable[[Tables], Slots] = part_of(Parts, "slots")
work_in: Callable[[Tables], Work] = part_of(Parts, "work")


@inlined
def column_in(column: Strings) -> Column:
    """Return a column that was handed over without names."""
    return Column(*column)


@intrinsic
def _copy_chosen(typingctx: Any, target: Any, target_at: Any, left: Any, right: Any, node: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, zero = ir.IntType(64), ir.IntType(64)(0)
        entry = builder.icmp_signed(">", args[4], zero)
        tables = (_address(context, builder, signature.args[i], args[i], zero) for i in (2, 3))
        slot = builder.sub(builder.select(entry, args[4], builder.neg(args[4])), word(1))
        of = builder.gep(builder.select(entry, *tables), [builder.mul(slot, word(REF))])
        to = _address(context, builder, signature.args[0], args[0], args[1])
        head = builder.load(of, align=1)
        builder.store(head, to, align=1)
        hashed = ir.VectorType(ir.IntType(8), 32).as_pointer()
        data = builder.load(builder.bitcast(builder.gep(of, [word(1)]), hashed), align=1)
        builder.store(data, builder.bitcast(builder.gep(to, [word(1)]), hashed), align=1)
        return builder.zext(head, word)

    return types.int64(target, types.int64, left, right, types.int64), generate


if CHECKED:

    @kernel
    def copy_reference(out: Bytes, at: int, entry_refs: Bytes, branch_refs: Bytes, node: int) -> int:
        """Write the slot of a node's reference, of which 32 bytes may be idle, and return its first byte."""
        refs = entry_refs if node > 0 else branch_refs
        slot = (node - 1 if node > 0 else -node - 1) * REF
        copy(out, at, refs, slot, REF)
        return int64(refs[slot])

else:

    @inlined
    def copy_reference(out: Bytes, at: int, entry_refs: Bytes, branch_refs: Bytes, node: int) -> int:
        """Write the slot of a node's reference, of which 32 bytes may be idle, and return its first byte.

        Which table it is in is chosen, not branched on: leaves and branches come in no order that a CPU could guess.
        """
        return _copy_chosen(out, at, entry_refs, branch_refs, node)  # type: ignore[no-any-return]


@inlined
def place(column: Column, index: int) -> tuple[int, int]:
    """Return where string ``index`` of a column starts in its data, and its bytes."""
    if column.width >= 0:
        return int64(index) * column.width, column.width
    return column.at[index], int64(column.size[index])


@inlined
def nibble(data: Bytes, at: int, index: int) -> int:
    """Return nibble ``index`` of the key that starts at ``data[at]``; the high half of a byte comes first."""
    byte = int64(data[at + (index >> 1)])
    return byte & 15 if index & 1 else byte >> 4


@inlined
def shared_nibbles(left: Bytes, left_at: int, left_size: int, right: Bytes, right_at: int, right_size: int) -> int:
    """Return how many nibbles two keys have in common before they part or one ends.

    They are the ``left_size`` bytes from ``left[left_at]`` on, and the same of ``right``.
    """
    size = min(left_size, right_size)
    i = 0
    while i + 8 <= size:
        difference = load64(left, left_at + i) ^ load64(right, right_at + i)
        if difference:
            return 2 * i + (leading_zeros(difference) >> 2)
        i += 8
    while i < size:
        byte = int64(left[left_at + i]) ^ int64(right[right_at + i])
        if byte:
            return 2 * i + (1 if byte < 16 else 0)
        i += 1
    return 2 * size
