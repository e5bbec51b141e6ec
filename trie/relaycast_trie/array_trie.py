"""The array engine: a trie in numpy arrays, worked by compiled kernels; the same bytes as the plain engine, in batches.

Everything that takes many keys takes them in one call. The first call of a process loads or compiles the kernels:
``warm_up`` does that ahead of time.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from relaycast_trie.arena import NEVER_EXTERNAL, Arena, UnsortedError
from relaycast_trie.array_proofs import ArrayProof
from relaycast_trie.columns import Strings, ascending, column_of, column_of_list, take
from relaycast_trie.kernels.get import collect_proof, find_entries, write_nodes
from relaycast_trie.kernels.sort import measure_strings, take_strings
from relaycast_trie.kernels.tables import Column
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.storage_proof import StorageProof

Keys = Strings
Found = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.bool_]]


class ArrayTrie:
    """A trie for work in batches. ``from_arrays``, ``from_pairs`` make one."""

    __slots__ = ("_arena", "state_version")

    def __init__(self, *, state_version: StateVersion = StateVersion.V1) -> None:
        self.state_version = StateVersion(state_version)
        none, _ = column_of_list([])
        self._arena = Arena.build(none, none, 0, external_from=self._external_from)

    @classmethod
    def from_arrays(
        cls, keys: Strings, values: Strings, *, state_version: StateVersion = StateVersion.V1
    ) -> "ArrayTrie":
        """Return the trie of many keys: matrices with a key or value a row, or all data with its offsets.

        Of a key that comes twice the last value counts. Arrays whose keys ascend already are held, not copied: leave
        them alone afterwards.
        """
        trie = cls.__new__(cls)
        trie.state_version = StateVersion(state_version)
        key_column, count = column_of(keys, "keys")
        value_column, value_count = column_of(values, "values")
        if count != value_count:
            raise ValueError(f"{count} keys with {value_count} values")
        trie._arena = trie._built(key_column, value_column, count)
        return trie

    @classmethod
    def from_pairs(
        cls,
        pairs: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]],
        *,
        state_version: StateVersion = StateVersion.V1,
    ) -> "ArrayTrie":
        """Return the trie of keys and values of any lengths; of a key that comes twice the last value counts."""
        known = pairs if isinstance(pairs, Mapping) else dict(pairs)
        keys = sorted(known)
        return cls.from_arrays(keys, [known[key] for key in keys], state_version=state_version)

    @property
    def root(self) -> bytes:
        """The root of the trie as it is now."""
        return self._arena.root_hash(self._arena.root)

    @property
    def memory_bytes(self) -> int:
        """Bytes of all tables, keys and values included."""
        return self._arena.memory_bytes

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``, ``None`` when the trie holds none."""
        data, _, found = self.get_many([key])
        return data.tobytes() if found[0] else None

    def get_many(self, keys: Keys) -> Found:
        """Return all values one after another, the offsets where each starts and ends, and which keys were found."""
        wanted, count = column_of(keys, "keys")
        arena = self._arena
        entries = np.empty(count, np.int32)
        find_entries(arena.entries, arena.branches, arena.root, wanted, count, entries)
        offsets = np.empty(count + 1, np.int64)
        measure_strings(arena.entries.value, entries, offsets)
        data = np.empty(int(offsets[-1]), np.uint8)
        take_strings(arena.entries.value, entries, data, offsets)
        return data, offsets, entries >= 0

    def prove(self, keys: Keys) -> StorageProof:
        """Return the nodes that reading ``keys`` touches: what trie-db's recorder keeps."""
        wanted, count = column_of(keys, "keys")
        arena = self._arena
        if not arena.root:
            return ArrayProof.of_empty(count)
        room = 16 * count + 16
        while True:
            room = 1 << room.bit_length()
            nodes = np.empty(room, np.int64)
            bound = np.zeros(1, np.int64)
            table = np.zeros(2 * room, np.int64)
            used = collect_proof(arena.entries, arena.branches, arena.root, wanted, count, table, nodes, bound)
            if used >= 0:
                break
            room *= 2
        data = np.empty(int(bound[0]) + arena.longest_node, np.uint8)
        offsets = np.empty(used + 1, np.int64)
        write_nodes(arena.entries, arena.branches, nodes, used, data, offsets)
        return ArrayProof.of_arrays(data[: int(offsets[-1])], offsets)

    @property
    def _external_from(self) -> int:
        return 33 if self.state_version is StateVersion.V1 else NEVER_EXTERNAL

    def _built(self, keys: Column, values: Column, count: int) -> Arena:
        try:
            return Arena.build(keys, values, count, external_from=self._external_from)
        except UnsortedError:
            order = ascending(keys, count)
            return Arena.build(take(keys, order), take(values, order), len(order), external_from=self._external_from)

    def __repr__(self) -> str:
        return f"<ArrayTrie 0x{self.root.hex()}, {self._arena.entry_count} keys>"
