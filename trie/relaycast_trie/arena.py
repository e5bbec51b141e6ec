"""A trie's tables and what is free in them: built whole from sorted keys, changed in place or by fresh copies.

The tables belong to one ``Arena``; several versions of a trie can share it, each with a root node of its own.
"""

import hashlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from relaycast_trie.columns import MAX_KEY_BYTES, longest
from relaycast_trie.kernels.build import UNSORTED, build_branches, order_by_height
from relaycast_trie.kernels.encode import BRANCH_BYTES, refer_to_branches, refer_to_entries
from relaycast_trie.kernels.tables import FRESH, SIZE, Branches, Column, Entries

NEVER_EXTERNAL = 1 << 62
_NONE = np.empty(0, np.int32)


class UnsortedError(ValueError):
    """Keys that do not strictly ascend."""


@dataclass(slots=True)
class Arena:
    """The tables of a trie, how much of them is in use, and the slots that are free again."""

    entries: Entries
    branches: Branches
    root: int
    """The node that the newest version starts with; 0 for the empty trie."""
    entry_count: int
    branch_count: int
    longest_key: int
    longest_value: int
    free_entries: list[int] = field(default_factory=list)
    free_branches: list[int] = field(default_factory=list)

    @classmethod
    def build(cls, keys: Column, values: Column, count: int, *, external_from: int) -> "Arena":
        """Return the tables of a trie from ``count`` keys that strictly ascend; raises ``UnsortedError``."""
        longest_key, longest_value = longest(keys, count), longest(values, count)
        if longest_key > MAX_KEY_BYTES:
            raise ValueError(f"a key has at most {MAX_KEY_BYTES} bytes, got {longest_key}")
        room = max(count - 1, 0)
        branches = _zeroed_branches(room)
        entries = Entries(
            keys,
            values,
            np.empty(32 * count if longest_value >= external_from else 0, np.uint8),
            np.empty(count, np.int32),
            np.empty(32 * count, np.uint8),
            np.empty(count, np.uint8),
        )
        heights = np.zeros(room, np.int32)
        nibbles = 2 * longest_key + 2
        result = np.zeros(1, np.int64)
        used = build_branches(entries, count, branches, heights, np.empty(nibbles, np.int32), result)
        if used == UNSORTED:
            raise UnsortedError("keys do not strictly ascend")
        branches = _cut_branches(branches, used)
        arena = cls(entries, branches, int(result[0]), count, used, longest_key, longest_value)
        order = np.empty(used, np.int32)
        levels = np.zeros(nibbles + 2, np.int64)
        highest = order_by_height(heights, used, order, levels)
        room_for_node = arena.longest_node
        refer_to_entries(entries, _NONE, count, external_from, room_for_node, FRESH)
        refer_to_branches(entries, branches, order, levels[: highest + 1], room_for_node, FRESH)
        return arena

    @property
    def longest_node(self) -> int:
        """Bytes that are enough for any node, with room for copies of whole slots behind it."""
        return BRANCH_BYTES + self.longest_key + self.longest_key // 64 + self.longest_value

    def reference(self, node: int) -> bytes:
        """Return the reference of a node: 32 bytes of hash, or fewer of encoding."""
        if node > 0:
            table, slot, state = self.entries.ref, node - 1, self.entries.state[node - 1]
        else:
            table, slot, state = self.branches.ref, -node - 1, self.branches.state[-node - 1]
        return table[32 * slot : 32 * slot + (int(state) & SIZE)].tobytes()

    def root_hash(self, node: int) -> bytes:
        """Return the root of the version that starts with ``node``: a root is hashed however short it is."""
        reference = self.reference(node) if node else b"\x00"
        return reference if len(reference) == 32 else hashlib.blake2b(reference, digest_size=32).digest()

    @property
    def memory_bytes(self) -> int:
        """Bytes of all tables."""
        arrays = [*self.entries.key[:3], *self.entries.value[:3], *self.entries[2:], *self.branches]
        return sum(array.nbytes for array in arrays)


def _zeroed_branches(room: int) -> Branches:
    """Return tables for so many branches; memory that is not touched costs nothing yet."""
    return Branches(
        np.zeros(16 * room, np.int32),
        np.zeros(room, np.uint16),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(32 * room, np.uint8),
        np.zeros(room, np.uint8),
    )


def _cut_branches(branches: Branches, used: int) -> Branches:
    """Give back what is beyond the first ``used`` branches."""
    return Branches(*(resized(table, used * (len(table) // max(1, len(branches.ways)))) for table in branches))


def resized(table: npt.NDArray[np.generic], size: int) -> npt.NDArray[np.generic]:
    """Return a table with another length, in place where the memory allows; new items are zero."""
    table.resize(size, refcheck=False)
    return table
