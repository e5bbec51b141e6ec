"""Proofs in columns, as tables hold them: millions are verified without a Python object for any that holds.

All nodes of all proofs lie one after another, and so do all keys; ends say what belongs to which proof. Only a proof
that does not hold becomes an object: the plain verifier says what is wrong with it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaycast_trie.array.columns import MAX_KEY_BYTES, column_of, spread_out
from relaycast_trie.exceptions import ProofError
from relaycast_trie.kernels.tables import Column
from relaycast_trie.kernels.vectors import NOT_A_LIST, measure_lists, take_lists
from relaycast_trie.kernels.verify import ABSENT, HOLDS, TWIN, UNUSED, hash_strings, room_to_walk, verify_proofs
from relaycast_trie.proofs.storage_proof import StorageProof

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Strings = tuple[Bytes, npt.NDArray[Any]]
"""All strings one after another, and the offsets where each starts and the last one ends."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What became of many proofs: how many keys of each are ``present``, and the error of each that fails."""

    present: Offsets
    errors: dict[int, ProofError]


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


def verify_columns(
    roots: Bytes, nodes: Strings, node_ends: Offsets, keys: Strings, key_ends: Offsets, *, strict: bool = False
) -> Verdicts:
    """Verify proof ``p`` for each ``p``: nodes and keys from ``*_ends[p]`` to ``*_ends[p + 1]`` under ``roots[p]``.

    ``roots`` is a matrix with 32 bytes a row. The errors are those of ``StorageProof.verify``.
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
    hashes = np.empty(32 * node_count, np.uint8)
    hash_strings(tuple(node_column), node_count, hashes)
    table, plans, links = room_to_walk(node_ends)
    used = np.zeros(node_count, np.uint8)
    values = np.empty(3 * key_count, np.int64)
    status = np.empty(len(roots), np.uint8)
    flat, trails = np.ascontiguousarray(roots).reshape(-1).copy(), np.empty(0, np.int64)
    verify_proofs(
        tuple(node_column),
        hashes,
        node_ends,
        flat,
        tuple(key_column),
        key_ends,
        table,
        plans,
        links,
        used,
        values,
        trails,
        status,
        False,
    )
    suspects = _suspects(status, used, node_ends, strict)
    there = np.concatenate(([0], np.cumsum(values[0::3] != ABSENT)))
    verdicts = Verdicts(there[key_ends[1:]] - there[key_ends[:-1]], {})
    for number in suspects:
        proof, wanted = StorageProof(_part(node_column, node_ends, number)), _part(key_column, key_ends, number)
        try:
            held = proof.verify(flat[32 * number : 32 * number + 32].tobytes(), wanted, strict=strict)
        except ProofError as error:
            verdicts.errors[number] = error.as_value()
            verdicts.present[number] = 0
        else:
            verdicts.present[number] = sum(held[key] is not None for key in wanted)
    return verdicts


def _suspects(status: Bytes, used: Bytes, node_ends: Offsets, strict: bool) -> list[int]:
    """Return the proofs that the plain verifier is to look at."""
    suspect = status != HOLDS
    if not strict:
        suspect &= status != UNUSED
    else:
        twins = np.concatenate(([0], np.cumsum(used == TWIN)))
        suspect |= twins[node_ends[1:]] > twins[node_ends[:-1]]
    found: list[int] = np.flatnonzero(suspect).tolist()
    return found


def _part(column: Column, ends: Offsets, number: int) -> list[bytes]:
    first, end = int(ends[number]), int(ends[number + 1])
    places = zip(column.at[first:end].tolist(), column.size[first:end].tolist(), strict=True)
    return [column.data[at : at + size].tobytes() for at, size in places]


def _check_ends(ends: Offsets, proofs: int, count: int, what: str) -> None:
    fits = ends.dtype == np.int64 and ends.ndim == 1 and len(ends) == proofs + 1
    if not fits or ends[0] != 0 or ends[-1] != count or bool((ends[1:] < ends[:-1]).any()):
        raise ValueError(f"the ends of {what} ascend from 0 to {count}, one more than there are proofs")
