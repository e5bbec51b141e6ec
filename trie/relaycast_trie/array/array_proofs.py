"""Proofs in arrays: made without a Python object a node, and verified many in one call.

An ``ArrayProof`` is a ``StorageProof`` whose set of nodes is made when somebody asks for it. A proof that the kernels
cannot follow goes to the plain verifier, which says what is wrong with it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.columns import column_of_list, strings_in, strings_together
from relaycast_trie.exceptions import ProofError
from relaycast_trie.kernels.scatter import scattered
from relaycast_trie.kernels.tables import Column
from relaycast_trie.kernels.verify import HOLDS, UNUSED, hash_strings, room_to_walk, verify_proofs
from relaycast_trie.proofs.storage_proof import StorageProof, first_repeated
from relaycast_trie.proofs.verify import VerifiedProof

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]


class ArrayProof(StorageProof):
    """A storage proof that keeps its nodes one after another; equal to any proof with the same nodes."""

    __slots__ = ("_as_given", "arrays")

    def __init__(self, nodes: Iterable[bytes] = ()) -> None:
        data, offsets, _, _ = strings_together(nodes)
        self.arrays = data, offsets
        self._as_given = False
        self._set = self._recorded = self._repeated = None

    @classmethod
    def of_arrays(cls, data: Bytes, offsets: Offsets, *, as_given: bool = False) -> "ArrayProof":
        """Return the proof whose nodes are the bytes between consecutive offsets.

        Nodes ``as_given`` come from somebody who is to give each once; others are equal where a trie has equal nodes.
        """
        proof = cls.__new__(cls)
        proof.arrays = data, offsets
        proof._as_given = as_given
        proof._set = proof._recorded = proof._repeated = None
        return proof

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
    """Check many proofs in one call: the values that each proves, or the error that it gives.

    The errors are those of ``StorageProof.verify``: a proof that does not hold is handed to it.
    """
    given = list(proofs)
    wanted = [list(some) for some in keys]
    expected = [bytes(root) for root in roots]
    if not len(given) == len(wanted) == len(expected):
        raise ValueError(f"{len(expected)} roots, {len(given)} proofs and {len(wanted)} lists of keys")
    for root in expected:
        if len(root) != 32:
            raise ValueError(f"a root has 32 bytes, got {len(root)}")
    walked = _walk_all(expected, given, wanted)
    results: list[VerifiedProof | ProofError] = []
    for number, (root, proof, some) in enumerate(zip(expected, given, wanted, strict=True)):
        status = walked.status[number]
        if status == HOLDS or (status == UNUSED and not strict):
            places = walked.values[3 * walked.key_ends[number] : 3 * walked.key_ends[number + 1]]
            results.append(VerifiedProof(root, _Values(walked.nodes.data, some, places)))
        else:
            results.append(_verify_plainly(proof, root, some, strict))
    if strict:
        for number, proof in enumerate(given):
            if proof.repeated is not None:
                results[number] = _verify_plainly(proof, expected[number], wanted[number], strict)
    return results


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
    if len(root) != 32:
        raise ValueError(f"a root has 32 bytes, got {len(root)}")
    known, keys = list(cached), list(keys)
    given = [*known, *(proof.nodes if isinstance(proof, StorageProof) else proof)]
    walked = _walk_all([root], [given], [keys], trail=2 * max(map(len, keys), default=0) + 1, to_end=True)
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
    node_ends: Offsets
    key_ends: Offsets
    used: Bytes
    values: Offsets
    trails: Offsets
    status: list[int]


def _walk_all(
    roots: Sequence[bytes],
    proofs: Sequence[StorageProof | Sequence[bytes]],
    keys: Sequence[Sequence[bytes]],
    *,
    trail: int = 0,
    to_end: bool = False,
) -> _Walked:
    """Hash all nodes and walk all keys; ``trail`` nodes of each way are written down."""
    nodes, node_ends = nodes_of(proofs)
    wanted, key_count = column_of_list(keys[0] if len(keys) == 1 else list(chain.from_iterable(keys)))
    key_ends = _ends(keys, key_count)
    count = int(node_ends[-1])
    hashes = np.empty(32 * count, np.uint8)
    hash_strings(tuple(nodes), count, hashes)
    table, plans, links = room_to_walk(node_ends)
    used = np.zeros(count, np.uint8)
    values = np.empty(3 * key_count, np.int64)
    trails = np.full(trail * key_count, -1, np.int64)
    status = np.empty(len(roots), np.uint8)
    flat = np.frombuffer(bytearray().join(roots), np.uint8)
    verify_proofs(
        tuple(nodes),
        hashes,
        node_ends,
        flat,
        tuple(wanted),
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
    return _Walked(nodes, node_ends, key_ends, used, values, trails, status.tolist())


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
    at = offsets[:-1]
    return Column(data, at, (offsets[1:] - at).astype(np.int32), -1), ends


def _arrays_of(proof: StorageProof | Sequence[bytes]) -> tuple[Bytes, Offsets]:
    data, offsets, _, _ = strings_together(proof.nodes if isinstance(proof, StorageProof) else proof)
    return data, offsets


def _verify_plainly(
    proof: StorageProof, root: bytes, keys: Sequence[bytes], strict: bool
) -> VerifiedProof | ProofError:
    """Return what the plain verifier says of a proof that the kernels did not accept."""
    try:
        return proof.verify_plainly(root, keys, strict=strict)
    except ProofError as error:
        return error.as_value()
