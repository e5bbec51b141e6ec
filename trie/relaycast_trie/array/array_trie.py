"""The array engine: a trie in numpy arrays, worked by compiled kernels; the same bytes as the plain engine, in batches.

Everything that takes many keys takes them in one call. The first call of a process loads or compiles the kernels:
``warm_up`` does that ahead of time.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.arena import (
    FEW_KEYS,
    NEVER_EXTERNAL,
    Arena,
    ProofColumns,
    ProofPlaces,
    Retired,
    UnsortedError,
    nodes_at,
    prove_columns,
    prove_few,
    prove_places,
)
from relaycast_trie.array.array_proofs import ArrayProof
from relaycast_trie.array.columns import (
    Strings,
    ascending,
    column_of,
    column_of_list,
    columns_of_pairs,
    joined,
    rows_of,
    strings_of,
    take,
)
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.kernels import at_once
from relaycast_trie.kernels.build import measure_strings, take_strings
from relaycast_trie.kernels.get import find_entries
from relaycast_trie.kernels.tables import Column
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.proofs.storage_proof import StorageProof

KERNELS_SORT_FROM = 350
"""Keys of a mapping from which kernels sort faster than Python: measured 0.94 times as fast at 300, 1.08 at 400."""

Found = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Version:
    """A committed trie: its root, where it lies, and the slots that only it and older ones read."""

    root: bytes
    arena: Arena
    node: int
    retired: list[Retired]


class ArrayTrie:
    """A trie for work in batches. ``from_arrays``, ``from_pairs`` make one."""

    __slots__ = ("_arena", "_external_from", "_mixed", "_state_version", "_versions", "window")

    def __init__(self, *, state_version: StateVersion = StateVersion.V1, window: int = 0) -> None:
        self._start(state_version, window)
        none, _ = column_of_list([])
        self._arena = self._built(none, none, 0)

    def _start(self, state_version: StateVersion, window: int) -> None:
        self._set_state_version(state_version)
        self._mixed = False
        self._versions: deque[_Version] = deque()
        self.window = window

    @classmethod
    def from_arrays(
        cls, keys: Strings, values: Strings, *, state_version: StateVersion = StateVersion.V1, window: int = 0
    ) -> "ArrayTrie":
        """Return the trie of many keys: matrices with a key or value a row, or all data with its offsets.

        If a key repeats, its last value wins. Arrays whose keys ascend already are held, not copied: do not change
        them afterwards.
        """
        key_column, count = column_of(keys, "keys")
        value_column, value_count = column_of(values, "values")
        if count != value_count:
            raise ValueError(f"{count} keys with {value_count} values")
        return cls._of_columns(key_column, value_column, count, state_version, window)

    @classmethod
    def from_pairs(
        cls,
        pairs: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]],
        *,
        state_version: StateVersion = StateVersion.V1,
        window: int = 0,
    ) -> "ArrayTrie":
        """Return the trie of keys and values of any lengths. If a key repeats, its last value wins."""
        known = pairs if isinstance(pairs, Mapping) else dict(pairs)
        if len(known) < KERNELS_SORT_FROM:
            known = {key: known[key] for key in sorted(known)}
        return cls._of_columns(*columns_of_pairs(known), len(known), state_version, window)

    @classmethod
    def _of_columns(
        cls, keys: Column, values: Column, count: int, state_version: StateVersion, window: int
    ) -> "ArrayTrie":
        trie = cls.__new__(cls)
        trie._start(state_version, window)
        trie._arena = trie._built(keys, values, count)
        return trie

    @property
    def root(self) -> bytes:
        """The root of the trie as it is now."""
        arena = self._arena
        arena.asked = self.window == 0
        return arena.work_root.tobytes() if arena.hashed else arena.top_hash()

    @property
    def state_version(self) -> StateVersion:
        """How values are stored from now on; what is stored already stays as it is until it is written again."""
        return self._state_version

    @state_version.setter
    def state_version(self, state_version: StateVersion) -> None:
        if state_version != self._state_version and self._arena.keys:
            self._mixed = True
        self._set_state_version(state_version)

    @property
    def memory_bytes(self) -> int:
        """Bytes of all tables, keys and values included."""
        return self._arena.memory_bytes

    @property
    def roots(self) -> list[bytes]:
        """The roots that were committed and can still be read, oldest first."""
        return [version.root for version in self._versions]

    def get(self, key: bytes, *, at: bytes | None = None) -> bytes | None:
        """Return the value of ``key``, ``None`` when the trie holds none; ``at`` is a committed root."""
        if at_once.AT_ONCE and type(key) is bytes:
            arena, root = self._version(at)
            keys, values = [key], [None]
            if at_once.get_at_once(arena.tables, root, id(keys), id(bytes), id(values)):
                raise MemoryError("no memory for a value")
            return values[0]
        data, _, found = self.get_many([key], at=at)
        return data.tobytes() if found[0] else None

    def get_many(self, keys: Strings, *, at: bytes | None = None) -> Found:
        """Return all values one after another, the offsets where each starts and ends, and which keys were found."""
        wanted, count = column_of(keys, "keys")
        arena, root = self._version(at)
        entries = np.empty(count, np.int32)
        find_entries(arena.tables, root, tuple(wanted), count, entries)
        offsets = np.empty(count + 1, np.int64)
        measure_strings(arena.entries.value, entries, offsets)
        data = np.empty(int(offsets[-1]), np.uint8)
        take_strings(arena.entries.value, entries, data, offsets)
        return data, offsets, entries >= 0

    def prove(self, keys: Strings, *, at: bytes | None = None) -> StorageProof:
        """Return the nodes that reading ``keys`` touches: what trie-db's recorder keeps; ``at`` is a committed root."""
        if type(keys) is list and len(keys) <= FEW_KEYS and at_once.AT_ONCE:
            self._arena.settle(self._arena.top)
            proof = prove_few(*self._version(at), keys)
            if proof is not None:
                return proof
        wanted, count = column_of(keys, "keys")
        data, offsets, _ = self._prove(wanted, np.array([0, count]), at)
        return ArrayProof.of_arrays(data, offsets)

    def prove_many(self, keys: Strings, ends: npt.NDArray[np.integer[Any]], *, at: bytes | None = None) -> ProofColumns:
        """Make many proofs in one call: number ``p`` is of the keys from ``ends[p]`` to ``ends[p + 1]``.

        ``.proofs()`` of what is returned are the proofs one by one; each holds a node once.
        """
        return self._prove(*_wanted(keys, ends), at, distinct=True)

    def place_many(self, keys: Strings, ends: npt.NDArray[np.integer[Any]]) -> ProofPlaces:
        """Return of each proof of ``prove_many`` where its nodes stand, as numbers that ``nodes_at`` takes.

        Tries that are built of the same keys and values have the same nodes at the same places, until they change.
        """
        wanted, limits = _wanted(keys, ends)
        self._arena.settle(self._arena.top)
        return prove_places(self._arena, np.full(len(limits) - 1, self._arena.root), wanted, limits)

    def nodes_at(self, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return the nodes at places that ``place_many`` returned, one after another, and their offsets."""
        self._arena.settle(self._arena.top)
        return nodes_at(self._arena, np.ascontiguousarray(places, np.int64))

    def update(self, keys: Strings, values: Strings) -> None:
        """Put many keys. If a key repeats, its last value wins. The new root shows on the next ``root``."""
        if type(keys) is list and type(values) is list and len(keys) <= FEW_KEYS:
            rows: tuple[object, object] = rows_of(keys), rows_of(values)
        else:
            rows = keys, values
        if self._arena.put_rows(*rows, self._external_from):
            return
        key_column, count = column_of(keys, "keys")
        value_column, value_count = column_of(values, "values")
        if count != value_count:
            raise ValueError(f"{count} keys with {value_count} values")
        if self._is_much(key_column, count):
            self._merge(key_column, value_column, count)
        else:
            arena = self._arena
            arena.put(arena.top, key_column, value_column, np.array([count]), external_from=self._external_from)

    def remove(self, keys: Strings) -> None:
        """Remove many keys; those that are not there do not matter. The new root shows on the next ``root``."""
        column, count = column_of(keys, "keys")
        self._arena.remove(self._arena.top, column, np.array([count]))

    def commit(self) -> bytes:
        """Return the root, and keep this version readable ``at`` it until ``window`` more are committed."""
        arena = self._arena
        if self.window > 0:
            _, retired = arena.freeze(arena.top)
            root = arena.root_hash(arena.root)
            if self._versions:
                self._versions[-1].retired.append(retired)
            self._versions.append(_Version(root, arena, arena.root, []))
            while len(self._versions) > self.window:
                for slots in self._versions.popleft().retired:
                    slots.release()
            return root
        return self.root

    def items(self, *, at: bytes | None = None) -> list[tuple[bytes, bytes]]:
        """Return all keys and values, in the order of the keys."""
        arena, root = self._version(at)
        order = arena.listed(root)
        keys, values = take(arena.entries.key, order), take(arena.entries.value, order)
        return list(zip(strings_of(keys, len(order)), strings_of(values, len(order)), strict=True))

    def __len__(self) -> int:
        return self._arena.keys

    def __contains__(self, key: bytes) -> bool:
        return bool(self.get_many([key])[2][0])

    def _prove(
        self, keys: Column, ends: npt.NDArray[np.int64], at: bytes | None, *, distinct: bool = False
    ) -> ProofColumns:
        self._arena.settle(self._arena.top)
        arena, root = self._version(at)
        return prove_columns(arena, np.full(len(ends) - 1, root), keys, ends, distinct=distinct)

    def _set_state_version(self, state_version: StateVersion) -> None:
        self._state_version = StateVersion(state_version)
        self._external_from = 33 if self._state_version is StateVersion.V1 else NEVER_EXTERNAL

    def _built(self, keys: Column, values: Column, count: int) -> Arena:
        try:
            return Arena.build(keys, values, count, external_from=self._external_from)
        except UnsortedError:
            order = ascending(keys, count)
            return Arena.build(take(keys, order), take(values, order), len(order), external_from=self._external_from)

    def _version(self, at: bytes | None) -> tuple[Arena, int]:
        if at is None:
            return self._arena, self._arena.root
        for version in reversed(self._versions):
            if version.root == at:
                return version.arena, version.node
        raise KeyError(f"0x{at.hex()} is none of the last {len(self._versions)} committed roots")

    def _is_much(self, keys: Column, count: int) -> bool:
        """Return whether enough keys are new to make building the trie anew faster than adding them one by one."""
        arena = self._arena
        if self._mixed or 8 * count < arena.keys:
            return False
        entries = np.empty(count, np.int32)
        find_entries(arena.tables, arena.root, tuple(keys), count, entries)
        return bool(8 * np.count_nonzero(entries < 0) >= arena.keys)

    def _merge(self, keys: Column, values: Column, count: int) -> None:
        old = self._arena
        order = old.listed(old.root)
        kept = len(order)
        all_keys, total = joined([(take(old.entries.key, order), kept), (keys, count)])
        all_values, _ = joined([(take(old.entries.value, order), kept), (values, count)])
        self._arena = self._built(all_keys, all_values, total)

    def __repr__(self) -> str:
        return f"<ArrayTrie 0x{self.root.hex()}, {len(self)} keys>"


def root_of(pairs: Mapping[bytes, bytes], state_version: StateVersion) -> bytes:
    """Return the root of the trie that holds ``pairs``: of few of them in one call, of many in sorted tables.

    No table outlives the call.
    """
    if at_once.AT_ONCE and 0 < len(pairs) < KERNELS_SORT_FROM:
        keys, top = sorted(pairs), [b""]
        values = [pairs[key] for key in keys]
        external_from = 33 if state_version is StateVersion.V1 else NEVER_EXTERNAL
        if not at_once.root_at_once(id(keys), id(values), id(bytes), external_from, id(top)):
            return top[0] if len(top[0]) == HASH_LENGTH else blake2_256(top[0])
    return ArrayTrie.from_pairs(pairs, state_version=state_version).root


def _wanted(keys: Strings, ends: npt.NDArray[np.integer[Any]]) -> tuple[Column, npt.NDArray[np.int64]]:
    wanted, count = column_of(keys, "keys")
    limits = np.ascontiguousarray(ends, np.int64)
    if limits.ndim != 1 or not len(limits) or limits[0] != 0 or limits[-1] != count or (np.diff(limits) < 0).any():
        raise ValueError(f"the ends of keys ascend from 0 to {count}, one more than there are proofs")
    return wanted, limits
