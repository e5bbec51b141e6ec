"""Publishers' child tries of any size, exact to the byte, for experiments that need no chains around them.

Keys are hashed names, as publishers make them. Of a value that stands outside of its node, the trie holds the hash
whatever its length: tries are therefore built with the shortest such entry, and the lengths of values are added.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from relaycast_trie import ArrayTrie, blake2_256
from relaycast_trie.array_proofs import ArrayProof

Keys = npt.NDArray[np.uint8]
"""A key of 32 bytes in each row."""

LONGEST_INSIDE = 32
"""Bytes of the longest entry that stands inside its node in state version 1."""

SHORTEST_OUTSIDE = LONGEST_INSIDE + 1


@dataclass(frozen=True, slots=True)
class ProofSize:
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


class ExactTrie:
    """The child trie of a publisher with ``keys``, each with an entry of ``entry_bytes``."""

    def __init__(self, keys: Keys, *, entry_bytes: int) -> None:
        self.keys = keys
        self.entry_bytes = entry_bytes
        self.outside = entry_bytes > LONGEST_INSIDE
        held = SHORTEST_OUTSIDE if self.outside else entry_bytes
        values = np.zeros((len(keys), held), np.uint8)
        values[:, : min(32, held)] = keys[:, : min(32, held)]
        self.trie = ArrayTrie.from_arrays(keys, values)

    def proof_size(self, wanted: Keys) -> ProofSize:
        """Return what proving the ``wanted`` keys, all of them there and each once, takes."""
        proof = self.trie.prove(wanted)
        assert isinstance(proof, ArrayProof)
        _, offsets = proof.arrays
        nodes, total, values = len(offsets) - 1, int(offsets[-1] - offsets[0]), len(wanted) if self.outside else 0
        return ProofSize(nodes - values, total - values * SHORTEST_OUTSIDE, values, values * self.entry_bytes)

    def draw(self, count: int, draw: Random) -> Keys:
        """Return ``count`` keys, drawn without putting any back."""
        return self.keys[draw.sample(range(len(self.keys)), count)] if count < len(self.keys) else self.keys
