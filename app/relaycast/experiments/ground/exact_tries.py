"""Publishers' child tries of any size, exact to the byte, for experiments that need no chains around them.

Keys are hashed names, as publishers make them. For a value that stands outside of its node, the trie holds the hash,
whatever the length. Tries are therefore built with the shortest such entry, and the lengths of values are added.

Small tries are plain ones, which need no compiled kernels; large ones are arrays, with the same bytes.
"""

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from relaycast_trie import CompactProof, StateVersion, StorageProof, blake2_256, build_database
from relaycast_trie.engine import Engine, array_engine, takes_array

if TYPE_CHECKING:
    from relaycast_trie import ArrayTrie

Keys = npt.NDArray[np.uint8]
"""A key of 32 bytes in each row."""

LONGEST_INSIDE = 32
"""Bytes of the longest entry that stands inside its node in state version 1."""

SHORTEST_OUTSIDE = LONGEST_INSIDE + 1


@dataclass(frozen=True, slots=True)
class ExactProofSize:
    """What a proof holds: nodes with their bytes, and external values with theirs."""

    nodes: int
    node_bytes: int
    values: int
    value_bytes: int

    @property
    def proof_bytes(self) -> int:
        return self.node_bytes + self.value_bytes


def hashed_keys(count: int, *, seed: int) -> Keys:
    """Return the keys named ``seed/0``, ``seed/1`` and so on, in that order."""
    data = b"".join(blake2_256(b"%d/%d" % (seed, index)) for index in range(count))
    return np.frombuffer(data, np.uint8).reshape(count, 32)


class Prover(Protocol):
    """A trie that proves its keys."""

    def prove(self, wanted: Keys) -> StorageProof:
        """Return the proof of keys that are there, each once."""

    def weight(self, proof: StorageProof) -> tuple[int, int]:
        """Return how many nodes and external values a proof holds, and their bytes."""

    def compact(self, proof: StorageProof) -> CompactProof:
        """Return a proof of this trie in compact form."""


class _PlainProver:
    def __init__(self, keys: Keys, values: Keys, version: StateVersion) -> None:
        pairs = dict(zip(_rows(keys), _rows(values), strict=True))
        self._db, self._root = build_database(pairs, state_version=version)

    def prove(self, wanted: Keys) -> StorageProof:
        return StorageProof.generate(self._db, self._root, _rows(wanted))

    def weight(self, proof: StorageProof) -> tuple[int, int]:
        return len(proof), proof.proof_bytes

    def compact(self, proof: StorageProof) -> CompactProof:
        return CompactProof.encode(proof, self._root)


class _CompiledProver:
    def __init__(self, keys: Keys, values: Keys, version: StateVersion) -> None:
        make: type[ArrayTrie] = array_engine("array_trie").ArrayTrie
        self._trie = make.from_arrays(keys, values, state_version=version)

    def prove(self, wanted: Keys) -> StorageProof:
        return self._trie.prove(wanted)

    def weight(self, proof: StorageProof) -> tuple[int, int]:
        from relaycast_trie.array.array_proofs import ArrayProof  # noqa: PLC0415

        assert isinstance(proof, ArrayProof)
        _, offsets = proof.arrays
        return len(offsets) - 1, int(offsets[-1] - offsets[0])

    def compact(self, proof: StorageProof) -> CompactProof:
        return CompactProof.encode(proof, self._trie.root)


def prover(
    keys: Keys, values: Keys, *, state_version: StateVersion = StateVersion.V1, engine: Engine = "auto"
) -> Prover:
    """Return the trie of ``keys`` with ``values``, a row each, by the engine that suits their number."""
    made = _CompiledProver if takes_array(engine, len(keys)) else _PlainProver
    return made(keys, values, state_version)


def _rows(matrix: Keys) -> list[bytes]:
    return [row.tobytes() for row in matrix]


class ExactTrie:
    """The child trie of a publisher with ``keys``, each with an entry of ``entry_bytes``."""

    def __init__(self, keys: Keys, *, entry_bytes: int, engine: Engine = "auto") -> None:
        self.keys = keys
        self.entry_bytes = entry_bytes
        self.outside = entry_bytes > LONGEST_INSIDE
        held = SHORTEST_OUTSIDE if self.outside else entry_bytes
        values = np.zeros((len(keys), held), np.uint8)
        values[:, : min(32, held)] = keys[:, : min(32, held)]
        self.trie = prover(keys, values, engine=engine)

    def proof_size(self, wanted: Keys) -> ExactProofSize:
        """Return what proving the ``wanted`` keys, all of them there and each once, takes."""
        nodes, total = self.trie.weight(self.trie.prove(wanted))
        values = len(wanted) if self.outside else 0
        return ExactProofSize(nodes - values, total - values * SHORTEST_OUTSIDE, values, values * self.entry_bytes)

    def draw(self, count: int, draw: Random) -> Keys:
        """Return ``count`` keys, drawn without putting any back."""
        return self.keys[draw.sample(range(len(self.keys)), count)] if count < len(self.keys) else self.keys
