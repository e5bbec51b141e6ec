"""The root of keys and values, and nothing else: no table of the trie outlives the call."""

from collections.abc import Mapping

from relaycast_trie.array.arena import NEVER_EXTERNAL
from relaycast_trie.array.array_trie import KERNELS_SORT_FROM, ArrayTrie
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.kernels import at_once
from relaycast_trie.node_codec import StateVersion


def root_of(pairs: Mapping[bytes, bytes], state_version: StateVersion) -> bytes:
    """Return the root of the trie that holds ``pairs``: of few of them in one call, of many in sorted tables."""
    if at_once.AT_ONCE and 0 < len(pairs) < KERNELS_SORT_FROM:
        keys, top = sorted(pairs), [b""]
        values = [pairs[key] for key in keys]
        external_from = 33 if state_version is StateVersion.V1 else NEVER_EXTERNAL
        if not at_once.root_at_once(id(keys), id(values), id(bytes), external_from, id(top)):
            return top[0] if len(top[0]) == HASH_LENGTH else blake2_256(top[0])
    return ArrayTrie.from_pairs(pairs, state_version=state_version).root
