"""The measured side of a prediction: an exact trie of seeded keys, and what proofs of it weigh.

The keys and values are made as a scenario's are: names hashed, no two values alike. A published entry is stored.
"""

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from relaycast.predict.closed_forms import ValueBytes, full_proof, value_sizes
from relaycast.scenario.workload import value_of
from relaycast_pallets.broadcaster.storage import INFINITE, PublishedEntry
from relaycast_trie import StateVersion, StorageProof
from relaycast_trie.engine import Engine, array_engine, takes_array
from relaycast_trie.plain.build import build_database
from relaycast_trie.plain.trie_db_mut import TrieDBMut

if TYPE_CHECKING:
    from relaycast_trie.array.array_trie import ArrayTrie

Pairs = dict[bytes, bytes]


class Measured(NamedTuple):
    """Bytes of the proofs of one exact trie."""

    full_bytes: int
    delta_bytes: int


def measured_proofs(
    keys: int,
    subscribed: int,
    updated: int,
    value_bytes: ValueBytes,
    *,
    elsewhere: int = 0,
    seed: int = 0,
    engine: Engine = "auto",
) -> Measured:
    """Build the trie, prove the subscribed keys, update, prove again: what is new in the second proof is the delta.

    The arguments are those of ``relaycast.predict``; large tries take the array engine.
    """
    full_proof(keys, subscribed, value_bytes)
    sizes = value_sizes(value_bytes)
    names = [blake2b(f"{seed}/{index}".encode(), digest_size=32).digest() for index in range(keys)]
    changing = [*range(updated), *range(subscribed, subscribed + elsewhere)]

    def entries(indices: list[int] | range, turn: int) -> Pairs:
        found = {}
        for index in indices:
            value = value_of(seed, 0, index, turn, sizes[index % len(sizes)])
            found[names[index]] = PublishedEntry(value, INFINITE, turn).encode()
        return found

    prove = _prove_in_arrays if takes_array(engine, keys) else _prove_plainly
    before, after = prove(entries(range(keys), 1), names[:subscribed], entries(changing, 2))
    new = after.nodes - before.nodes
    return Measured(before.proof_bytes, sum(map(len, new)))


def _prove_plainly(pairs: Pairs, wanted: list[bytes], changes: Pairs) -> tuple[StorageProof, StorageProof]:
    db, root = build_database(pairs, state_version=StateVersion.V1)
    before = StorageProof.generate(db, root, wanted)
    trie = TrieDBMut(db, root, state_version=StateVersion.V1)
    for key, entry in changes.items():
        trie[key] = entry
    return before, StorageProof.generate(db, trie.commit(prune=False), wanted)


def _prove_in_arrays(pairs: Pairs, wanted: list[bytes], changes: Pairs) -> tuple[StorageProof, StorageProof]:
    trie: ArrayTrie = array_engine("array_trie").ArrayTrie.from_pairs(pairs)
    before = trie.prove(wanted)
    if changes:
        trie.update(list(changes), list(changes.values()))
    return before, trie.prove(wanted)
