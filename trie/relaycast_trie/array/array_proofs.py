"""Proofs in arrays, without a Python object a node: decoded, encoded and verified, one or many in a call.

An ``ArrayProof`` is a ``StorageProof`` whose set of nodes is made on first use. Columns hold many proofs as tables do:
all nodes one after another, all keys too, and ends that say what belongs to which proof.
Law: what a kernel does not accept goes to the plain engine, which says what is wrong with it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.columns import (
    MAX_KEY_BYTES,
    ascending,
    column_of,
    column_of_list,
    spread_out,
    strings_in,
    strings_together,
)
from relaycast_trie.child_info import CHILD_STORAGE_PREFIX
from relaycast_trie.exceptions import ProofError
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.kernels import at_once
from relaycast_trie.kernels.compact import compact_list, encode_walk, full_list, name_children
from relaycast_trie.kernels.decode import LENGTH_BYTES, NOT_A_LIST, PLAN, measure_lists, take_lists, write_list
from relaycast_trie.kernels.python_lists import NOT_BYTES, gathered, scattered
from relaycast_trie.kernels.tables import Column
from relaycast_trie.kernels.verify import (
    ABSENT,
    FAILS,
    HOLDS,
    TWIN,
    UNUSED,
    fill_table,
    hash_strings,
    look_up,
    room_to_walk,
    verify_proofs,
)
from relaycast_trie.proofs.compact_proof import CompactProof
from relaycast_trie.proofs.storage_proof import StorageProof, VerifiedProof, first_repeated, verdict

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Strings = tuple[Bytes, npt.NDArray[Any]]
"""All strings one after another, and the offsets where each starts and the last one ends."""

NO_BYTES, NO_OFFSETS = np.empty(0, np.uint8), np.empty(0, np.int64)

MOST_AT_ONCE = 10_000
"""Nodes of a proof that is verified in one call, which keeps the interpreter's lock for less than a thread's turn."""

FEW_NODES = 200
"""Nodes of a proof that are encoded in one call."""

_PREFIX = np.frombuffer(bytearray(CHILD_STORAGE_PREFIX), np.uint8)


class ArrayProof(StorageProof):
    """A storage proof that keeps its nodes one after another; equal to any proof with the same nodes."""

    __slots__ = ("_as_given", "arrays")

    def __init__(self, nodes: Iterable[bytes] = ()) -> None:
        data, offsets, _, _ = strings_together(nodes)
        self._keep(data, offsets, as_given=False)

    @classmethod
    def of_arrays(cls, data: Bytes, offsets: Offsets, *, as_given: bool = False) -> Self:
        """Return the proof whose nodes are the bytes between consecutive offsets.

        Nodes ``as_given`` come from somebody who is to give each once; others are equal where a trie has equal nodes.
        """
        proof = cls.__new__(cls)
        proof._keep(data, offsets, as_given=as_given)
        return proof

    def _keep(self, data: Bytes, offsets: Offsets, *, as_given: bool) -> None:
        self.arrays = data, offsets
        self._as_given = as_given
        self._set = self._recorded = self._repeated = None

    @property
    def nodes(self) -> frozenset[bytes]:
        """The nodes as a set."""
        if self._set is None:
            self._set = frozenset(strings_in(*self.arrays))
        return self._set

    @property
    def repeated(self) -> bytes | None:
        """The first node that was given twice."""
        if not self._as_given or len(self.nodes) == self.most_nodes:
            return None
        return first_repeated(strings_in(*self.arrays))

    @property
    def most_nodes(self) -> int:
        """How many nodes there are when equal ones count as several."""
        return len(self.arrays[1]) - 1

    def __reduce__(self) -> Any:
        return super().__reduce__() if self._as_given else (ArrayProof.of_arrays, self.arrays)


class HashedProof(ArrayProof):
    """An ``ArrayProof`` that has each node once, and the hashes that tries have its nodes by; the root comes first."""

    __slots__ = ("_hashes",)
    _hashes: Bytes

    @classmethod
    def of_hashed(cls, data: Bytes, offsets: Offsets, hashes: Bytes) -> "HashedProof":
        """Return the proof whose nodes are the bytes between consecutive offsets, with 32 bytes of hash for each."""
        proof = cls.of_arrays(data, offsets)
        proof._hashes = hashes
        return proof

    @property
    def recorded(self) -> dict[bytes, bytes]:
        """The nodes by their hashes."""
        if self._recorded is None:
            hashes = self._hashes.tobytes()
            each = [hashes[at : at + HASH_LENGTH] for at in range(0, len(hashes), HASH_LENGTH)]
            self._recorded = dict(zip(each, strings_in(*self.arrays), strict=True))
        return self._recorded

    @property
    def proof_bytes(self) -> int:
        return len(self.arrays[0])

    def compacted(self) -> bytes | None:
        found = compact_list(*self.arrays, self._hashes, _PREFIX)
        return found.tobytes() if len(found) else None

    def __len__(self) -> int:
        return self.most_nodes


def decode_one(data: bytes) -> StorageProof | None:
    """Return the proof that SCALE bytes hold, ``None`` for anything else."""
    found = _decoded(data)
    return None if found is None else ArrayProof.of_arrays(*found, as_given=True)


def _decoded(data: bytes) -> tuple[Bytes, Offsets] | None:
    """Return the strings that SCALE bytes hold and their offsets, ``None`` for anything else."""
    if not at_once.AT_ONCE:
        return None
    count, strings, offsets = at_once.decode_at_once(id(data), id(bytes))
    return None if count < 0 else (strings, offsets)


def encode_one(proof: StorageProof) -> bytes | None:
    """Return the SCALE bytes of a proof; ``None`` where a node has 2 GiB and more."""
    if isinstance(proof, ArrayProof):
        data, offsets = proof.arrays
    else:
        data, offsets, _, width = gathered(list(proof.nodes))
        if width == NOT_BYTES:
            return None
    if at_once.AT_ONCE and len(offsets) <= FEW_NODES:
        encoded = [b""]
        if at_once.encode_at_once(data, offsets, id(encoded)):
            raise MemoryError("no memory for a proof")
        return encoded[0]
    column = _column(data, offsets)
    return _encoded(column, ascending(column, len(column.size)))


def _encoded(column: Column, order: npt.NDArray[np.int32]) -> bytes:
    """Return the strings of a column in this order as SCALE ``Vec<Vec<u8>>``."""
    out = np.empty(len(column.data) + LENGTH_BYTES * (len(order) + 1), np.uint8)
    return out[: write_list(column, order, out)].tobytes()


@dataclass(frozen=True, slots=True)
class DecodedProofs:
    """The nodes of many proofs as ``verify_columns`` takes them; those that are ``spoiled`` do not decode: no nodes."""

    nodes: Strings
    node_ends: Offsets
    spoiled: npt.NDArray[np.bool_]


def decode_proofs(data: Bytes, ends: npt.NDArray[Any]) -> DecodedProofs:
    """Decode proof ``p``, SCALE ``Vec<Vec<u8>>`` from ``ends[p]`` to ``ends[p + 1]``, for each ``p``.

    Nodes stay in their order, and come as often as they do. What ``StorageProof.decode`` refuses is spoiled.
    """
    column, count = column_of((data, ends), "proofs")
    places = np.append(column.at[:count], ends[-1:]).astype(np.int64)
    counts, sizes = np.empty(count, np.int64), np.empty(count, np.int64)
    measure_lists(column.data, places, counts, sizes)
    spoiled = counts == NOT_A_LIST
    node_ends = np.concatenate(([0], np.cumsum(np.maximum(counts, 0))))
    strings, offsets = np.empty(int(sizes.sum()), np.uint8), np.empty(int(node_ends[-1]) + 1, np.int64)
    take_lists(column.data, places, counts, strings, offsets)
    return DecodedProofs((strings, offsets), node_ends, spoiled)


def verify_one(proof: StorageProof, root: bytes, keys: list[bytes], *, strict: bool = False) -> VerifiedProof:
    """Return what ``proof`` proves; raises as ``StorageProof.verify`` does."""
    if len(root) != 32 or not at_once.AT_ONCE or proof.most_nodes > MOST_AT_ONCE:
        (found,) = verify_many([root], [proof], [keys], strict=strict)
        if isinstance(found, ProofError):
            raise found
        return found
    values: list[bytes | None] = [None] * len(keys)
    asked = [*keys, root]
    if isinstance(proof, ArrayProof):
        answer = at_once.verify_at_once(0, *proof.arrays, id(asked), id(bytes), id(values))
    else:
        nodes = list(proof.nodes)
        answer = at_once.verify_at_once(id(nodes), NO_BYTES, NO_OFFSETS, id(asked), id(bytes), id(values))
    if answer == at_once.NO_MEMORY:
        raise MemoryError("no memory for the values of a proof")
    if answer in (FAILS, NOT_BYTES) or (strict and answer % at_once.TWINS == UNUSED):
        return proof.verify_plainly(root, keys, strict=strict)
    if strict:
        proof.refuse_duplicates()
    return VerifiedProof(root, dict(zip(keys, values, strict=True)))


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of keys, cut out of the nodes of a proof when the first of them is asked for."""

    data: Bytes
    keys: Sequence[bytes]
    places: npt.NDArray[np.int64]

    def __call__(self) -> dict[bytes, bytes | None]:
        starts, sizes = self.places[0::3].copy(), self.places[1::3].astype(np.int32)
        return dict(zip(self.keys, scattered(self.data, starts, sizes), strict=True))


def verify_many(
    roots: Iterable[bytes],
    proofs: Iterable[StorageProof],
    keys: Iterable[Iterable[bytes]],
    *,
    strict: bool = False,
) -> list[VerifiedProof | ProofError]:
    """Check many proofs in one call: the values that each proves, or the error that ``StorageProof.verify`` raises."""
    given = list(proofs)
    wanted = [list(some) for some in keys]
    expected = [bytes(root) for root in roots]
    if not len(given) == len(wanted) == len(expected):
        raise ValueError(f"{len(expected)} roots, {len(given)} proofs and {len(wanted)} lists of keys")
    for root in expected:
        _check_root(root)
    walked = _walk_lists(expected, given, wanted)
    results: list[VerifiedProof | ProofError] = []
    statuses = zip(walked.status.tolist(), expected, given, wanted, strict=True)
    for number, (status, root, proof, some) in enumerate(statuses):
        holds = status == HOLDS or (status == UNUSED and not strict)
        if holds and not (strict and proof.repeated is not None):
            places = walked.values[3 * walked.key_ends[number] : 3 * walked.key_ends[number + 1]]
            results.append(VerifiedProof(root, _Values(walked.nodes.data, some, places)))
        else:
            results.append(verdict(proof.verify_plainly, root, some, strict=strict))
    return results


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What became of many proofs: how many keys of each are ``present``, and the error of each that fails."""

    present: Offsets
    errors: dict[int, ProofError]


def verify_columns(
    roots: Bytes, nodes: Strings, node_ends: Offsets, keys: Strings, key_ends: Offsets, *, strict: bool = False
) -> Verdicts:
    """Verify proof ``p`` for each ``p``: nodes and keys from ``*_ends[p]`` to ``*_ends[p + 1]`` under ``roots[p]``.

    ``roots`` is a matrix with 32 bytes a row. The errors are those of ``StorageProof.verify``. Only a proof that does
    not hold becomes an object.
    """
    if roots.ndim != 2 or roots.shape[1] != 32:
        raise ValueError(f"roots are a matrix with 32 bytes a row, got the shape {roots.shape}")
    node_column, node_count = column_of(nodes, "nodes")
    key_column, key_count = column_of(keys, "keys")
    _check_ends(node_ends, len(roots), node_count, "nodes")
    _check_ends(key_ends, len(roots), key_count, "keys")
    node_column, key_column = spread_out(node_column, node_count), spread_out(key_column, key_count)
    if key_count and int(key_column.size[:key_count].max()) > MAX_KEY_BYTES:
        raise ValueError(f"a key has at most {MAX_KEY_BYTES} bytes")
    flat = np.ascontiguousarray(roots).reshape(-1).copy()
    walked = _walk(flat, node_column, node_ends, key_column, key_ends)
    there = np.concatenate(([0], np.cumsum(walked.values[0::3] != ABSENT)))
    verdicts = Verdicts(there[key_ends[1:]] - there[key_ends[:-1]], {})
    for number in _suspects(walked, node_ends, strict):
        proof, wanted = StorageProof(_part(node_column, node_ends, number)), _part(key_column, key_ends, number)
        held = verdict(proof.verify_plainly, flat[32 * number : 32 * number + 32].tobytes(), wanted, strict=strict)
        if isinstance(held, ProofError):
            verdicts.errors[number] = held
            verdicts.present[number] = 0
        else:
            verdicts.present[number] = sum(held[key] is not None for key in wanted)
    return verdicts


@dataclass(frozen=True, slots=True)
class PathTrace:
    """Which nodes the paths of some keys pass, in a proof and in what is cached beside it.

    Nodes are numbered as they were given, those of the proof first, then those of the cache. External values are
    needed, and on no path.
    """

    needed: npt.NDArray[np.bool_]
    """For each node of the proof, whether a path or a value needs it and the cache does not have it."""
    kept: npt.NDArray[np.bool_]
    """For each node of the cache, whether a path passes it."""
    proof_bytes: Offsets
    """The bytes of each node of the proof."""
    depths: Offsets
    """For each key, how many hashed nodes its path passes, the root included, as far as they are there."""
    complete: npt.NDArray[np.bool_]
    """For each key, whether its path ends at a value or an absence, rather than at a missing or broken node."""
    paths: list[list[int]]
    """For each key, the nodes that its path passes."""


def trace_paths(
    root: bytes, proof: StorageProof | Sequence[bytes], keys: Sequence[bytes], *, cached: Sequence[bytes] = ()
) -> PathTrace:
    """Follow all ``keys`` from ``root`` through the nodes of a proof and of a cache, and say which are needed.

    A node that both have counts as the cache's. A root that neither has leaves every path empty and incomplete.
    """
    _check_root(root)
    known, keys = list(cached), list(keys)
    given = [*known, *(proof.nodes if isinstance(proof, StorageProof) else proof)]
    walked = _walk_lists([root], [given], [keys], trail=2 * max(map(len, keys), default=0) + 1, to_end=True)
    first, count = len(known), len(walked.used)
    steps = walked.values[2::3]
    depths = np.where(steps < 0, ~steps, steps)
    moved = np.where(walked.trails < first, walked.trails + (count - first), walked.trails - first)
    trails = moved.reshape(len(keys), -1).tolist() if keys else []
    used = walked.used == 1
    return PathTrace(
        used[first:],
        used[:first],
        walked.nodes.size[first:].astype(np.int64),
        depths,
        steps >= 0,
        [trail[:depth] for trail, depth in zip(trails, depths.tolist(), strict=True)],
    )


@dataclass(frozen=True, slots=True)
class _Walked:
    """What the walks of all keys of all proofs found, as ``verify_proofs`` writes it."""

    nodes: Column
    key_ends: Offsets
    used: Bytes
    values: Offsets
    trails: Offsets
    status: Bytes


def _walk_lists(
    roots: Sequence[bytes],
    proofs: Sequence[StorageProof | Sequence[bytes]],
    keys: Sequence[Sequence[bytes]],
    *,
    trail: int = 0,
    to_end: bool = False,
) -> _Walked:
    nodes, node_ends = nodes_of(proofs)
    wanted, count = column_of_list(keys[0] if len(keys) == 1 else list(chain.from_iterable(keys)))
    flat = np.frombuffer(bytearray().join(roots), np.uint8)
    return _walk(flat, nodes, node_ends, wanted, _ends(keys, count), trail=trail, to_end=to_end)


def _walk(
    roots: Bytes,
    nodes: Column,
    node_ends: Offsets,
    keys: Column,
    key_ends: Offsets,
    *,
    trail: int = 0,
    to_end: bool = False,
) -> _Walked:
    """Hash all nodes and walk all keys; ``trail`` nodes of each way are written down."""
    count, key_count = int(node_ends[-1]), int(key_ends[-1])
    hashes = _hashes(nodes, count)
    used = np.zeros(count, np.uint8)
    values = np.empty(3 * key_count, np.int64)
    trails = np.full(trail * key_count, -1, np.int64)
    status = np.empty(len(roots) // 32, np.uint8)
    table, plans, links = room_to_walk(node_ends)
    verify_proofs(
        tuple(nodes),
        hashes,
        node_ends,
        roots,
        tuple(keys),
        key_ends,
        table,
        plans,
        links,
        used,
        values,
        trails,
        status,
        to_end,
    )
    return _Walked(nodes, key_ends, used, values, trails, status)


def _hashes(nodes: Column, count: int) -> Bytes:
    hashes = np.empty(32 * count, np.uint8)
    hash_strings(tuple(nodes), count, hashes)
    return hashes


def _suspects(walked: _Walked, node_ends: Offsets, strict: bool) -> list[int]:
    """Return the proofs that the plain verifier is to look at."""
    suspect = walked.status != HOLDS
    if not strict:
        suspect &= walked.status != UNUSED
    else:
        twins = np.concatenate(([0], np.cumsum(walked.used == TWIN)))
        suspect |= twins[node_ends[1:]] > twins[node_ends[:-1]]
    found: list[int] = np.flatnonzero(suspect).tolist()
    return found


def _ends(groups: Sequence[Collection[Any]], count: int) -> Offsets:
    """Return where each group starts and ends when all groups come one after another; ``count`` were read of them."""
    if len(groups) == 1:
        return np.array([0, count])
    ends = np.zeros(len(groups) + 1, np.int64)
    np.cumsum([len(group) for group in groups], out=ends[1:])
    if ends[-1] != count:
        raise RuntimeError(f"lists of byte strings changed while they were read: {ends[-1]} are left of {count}")
    return ends


def nodes_of(proofs: Sequence[StorageProof | Sequence[bytes]]) -> tuple[Column, Offsets]:
    """Return the nodes of all proofs in one column, and where those of each proof start and end."""
    if any(isinstance(proof, ArrayProof) for proof in proofs):
        return _joined([proof.arrays if isinstance(proof, ArrayProof) else _arrays_of(proof) for proof in proofs])
    groups = [proof.nodes if isinstance(proof, StorageProof) else proof for proof in proofs]
    data, offsets, sizes, _ = strings_together(groups[0] if len(groups) == 1 else chain.from_iterable(groups))
    return Column(data, offsets[:-1], sizes, -1), _ends(groups, len(sizes))


def _joined(groups: Sequence[tuple[Bytes, Offsets]]) -> tuple[Column, Offsets]:
    if len(groups) == 1:
        data, offsets = groups[0]
        ends = np.array([0, len(offsets) - 1])
    else:
        data = np.concatenate([part for part, _ in groups])
        shifts = np.cumsum([0, *(len(part) for part, _ in groups)])
        starts = [part_offsets[:-1] + shift for (_, part_offsets), shift in zip(groups, shifts, strict=False)]
        offsets = np.append(np.concatenate(starts), len(data))
        ends = np.cumsum([0, *(len(part_offsets) - 1 for _, part_offsets in groups)])
    return _column(data, offsets), ends


def _arrays_of(proof: StorageProof | Sequence[bytes]) -> tuple[Bytes, Offsets]:
    data, offsets, _, _ = strings_together(proof.nodes if isinstance(proof, StorageProof) else proof)
    return data, offsets


def _column(data: Bytes, offsets: Offsets) -> Column:
    return Column(data, offsets[:-1], (offsets[1:] - offsets[:-1]).astype(np.int32), -1)


def _part(column: Column, ends: Offsets, number: int) -> list[bytes]:
    first, end = int(ends[number]), int(ends[number + 1])
    places = zip(column.at[first:end].tolist(), column.size[first:end].tolist(), strict=True)
    return [column.data[at : at + size].tobytes() for at, size in places]


def _check_root(root: bytes) -> None:
    if len(root) != 32:
        raise ValueError(f"a root has 32 bytes, got {len(root)}")


def _check_ends(ends: Offsets, proofs: int, count: int, what: str) -> None:
    fits = ends.dtype == np.int64 and ends.ndim == 1 and len(ends) == proofs + 1
    if not fits or ends[0] != 0 or ends[-1] != count or bool((ends[1:] < ends[:-1]).any()):
        raise ValueError(f"the ends of {what} ascend from 0 to {count}, one more than there are proofs")


class ArrayCompactProof(CompactProof):
    """A compact proof that keeps its nodes one after another; equal to any compact proof with the same nodes."""

    __slots__ = ("_nodes", "arrays")
    _nodes: tuple[bytes, ...] | None
    arrays: tuple[Bytes, Offsets]

    def __init__(self, data: Bytes, offsets: Offsets) -> None:
        object.__setattr__(self, "arrays", (data, offsets))
        object.__setattr__(self, "_nodes", None)

    @property
    def nodes(self) -> tuple[bytes, ...]:
        """The nodes, in walking order."""
        known = self._nodes
        if known is None:
            known = tuple(strings_in(*self.arrays))
            object.__setattr__(self, "_nodes", known)
        return known

    def to_bytes(self) -> bytes:
        """Return the proof as SCALE ``Vec<Vec<u8>>``, in walking order."""
        column = _column(*self.arrays)
        return _encoded(column, np.arange(len(column.size), dtype=np.int32))

    @property
    def proof_bytes(self) -> int:
        """Bytes of all nodes, without the lengths that SCALE puts before them."""
        return int(self.arrays[1][-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompactProof) and self.nodes == other.nodes

    def __hash__(self) -> int:
        return hash((self.nodes,))

    def __reduce__(self) -> Any:
        return ArrayCompactProof, self.arrays


def compact_from_bytes(data: bytes) -> CompactProof | None:
    """Return the compact proof that SCALE bytes hold, ``None`` for anything else."""
    found = _decoded(data)
    return None if found is None else ArrayCompactProof(*found)


def encode_compact(proof: StorageProof, root: bytes) -> CompactProof | None:
    """Return ``proof`` in compact form; ``None`` for what the plain codec is to look at."""
    nodes, ends = nodes_of([proof])
    count = int(ends[-1])
    hashes = _hashes(nodes, count)
    table, mask = _filled_table(hashes, count)
    start = look_up(hashes, table, mask, np.frombuffer(bytearray(root), np.uint8), 0) if len(root) == 32 else -1
    if start < 0:
        return None
    plan, stack, children = np.zeros(PLAN, np.int64), np.empty(16 * count + 64, np.int64), np.empty(4 * count, np.int64)
    named = name_children(nodes, hashes, table, mask, start, _PREFIX, plan, stack, children)
    if named < 0:
        return None
    most = 2 * count + 16  # nodes that several places share, such as equal values, are written at each
    out, offsets = np.empty(2 * len(nodes.data) + 4 * most, np.uint8), np.empty(most, np.int64)
    written = encode_walk(nodes, hashes, table, mask, start, children[:named], plan, stack, out, offsets)
    return None if written < 0 else ArrayCompactProof(out[: int(offsets[written])], offsets[: written + 1])


def decode_compact(compact: CompactProof) -> tuple[StorageProof, bytes] | None:
    """Return the storage proof and the root of its top trie; ``None`` for what the plain codec is to look at."""
    arrays = compact.arrays if isinstance(compact, ArrayCompactProof) else _arrays_of(compact.nodes)
    nodes, offsets, root = full_list(*arrays, _PREFIX)
    return (ArrayProof.of_arrays(nodes, offsets), root.tobytes()) if len(root) else None


def _filled_table(hashes: Bytes, count: int) -> tuple[npt.NDArray[np.int32], int]:
    """Return a hash table of nodes by their ``hashes``, and its last place."""
    table = np.empty(4 << count.bit_length(), np.int32)
    mask = len(table) - 1
    fill_table(hashes, 0, count, table, mask, np.empty(count, np.uint8))
    return table, mask
