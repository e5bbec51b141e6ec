"""Proofs that hold each node once: places of a trie with equal content have equal nodes, and values that are hashed."""

import numpy as np

from relaycast_trie.kernels.compiling import face, inlined
from relaycast_trie.kernels.encode import AHEAD
from relaycast_trie.kernels.get import VALUE
from relaycast_trie.kernels.memory import Int64s, int64, load64, prefetch
from relaycast_trie.kernels.tables import REF, Branches, Entries, Tables, branches_in, entries_in


@inlined
def _hash_word(entries: Entries, branches: Branches, node: int, word: int) -> int:
    """Return word 0, 1, 2 or 3 of the hash of a listed node: 8 bytes as a big-endian number.

    ``node`` is a number as ``collect_proofs`` lists them.
    """
    if node >= VALUE:
        return load64(entries.value_hash, (node - VALUE) * 32 + 8 * word)
    if node > 0:
        return load64(entries.ref, (node - 1) * REF + 1 + 8 * word)
    return load64(branches.ref, (-node - 1) * REF + 1 + 8 * word)


@inlined
def _ask_for_hash(entries: Entries, branches: Branches, node: int) -> None:
    """Bring the hash of a listed node into the cache."""
    if node >= VALUE:
        prefetch(entries.value_hash, (node - VALUE) * 32)
    elif node > 0:
        prefetch(entries.ref, (node - 1) * REF)
    else:
        prefetch(branches.ref, (-node - 1) * REF)


@face
def drop_repeated(tables: Tables, nodes: Int64s, node_ends: Int64s, table: Int64s) -> int:
    """Keep of the nodes of a proof that have one hash the first; return how many are left in all.

    The nodes of proof ``p`` are those from ``node_ends[p]`` to ``node_ends[p + 1]``, as ``collect_proofs`` lists them;
    the others move together, and ``node_ends`` with them. ``table`` has one place, and four for each node of the
    largest proof. A root of less than 32 bytes has no hash, and no node beside it.
    """
    entries, branches = entries_in(tables), branches_in(tables)
    kept, first = int64(0), int64(0)
    for proof in range(len(node_ends) - 1):
        last = int64(node_ends[proof + 1])
        places = int64(1)
        while places < 2 * (last - first):
            places <<= 1
        table[:places] = 0
        for i in range(first, last):
            if i + AHEAD < last:
                _ask_for_hash(entries, branches, nodes[i + AHEAD])
            node = int64(nodes[i])
            begin = _hash_word(entries, branches, node, 0)
            slot = int64(begin & np.uint64(places - 1))
            is_new = True
            while table[slot] != 0 and is_new:
                other = int64(nodes[table[slot] - 1])
                if _hash_word(entries, branches, other, 0) == begin:
                    is_new = False
                    for word in range(1, 4):
                        if _hash_word(entries, branches, other, word) != _hash_word(entries, branches, node, word):
                            is_new = True
                slot = slot + 1 & places - 1
            if is_new:
                nodes[kept] = node
                kept += 1
                table[slot] = kept
        node_ends[proof + 1] = kept
        first = last
    return kept
