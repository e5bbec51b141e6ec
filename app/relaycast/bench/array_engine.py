"""The array engine's workloads, those that the peer was measured with among them."""

import numpy as np

from relaycast.bench import user_paths
from relaycast.bench.sheet import Sheet, blocks_of, random_rows
from relaycast.bench.yardstick import timed
from relaycast_trie import ArrayTrie, CompactProof, StorageProof
from relaycast_trie.array.array_proofs import verify_many
from relaycast_trie.kernels.multibuffer_hash import BLOCK

NAME = "array"
MOST_KEYS = 100_000_000
GETS = 10_000
HASHED_FROM = 33
"""Bytes from which state version 1 keeps a value outside its node, and hashes it by itself."""


def missing() -> str:
    return ""


def run(sheet: Sheet) -> None:
    """Run all workloads: what users call, then what kernels take of it."""
    user_paths.run(NAME, sheet)
    keys, values, count = sheet.keys, sheet.values, sheet.count
    seconds = timed(lambda: ArrayTrie.from_arrays(keys, values).root)
    trie = ArrayTrie.from_arrays(keys, values)
    sheet.add(NAME, "bulk root, ns/key", seconds, units=count, blocks=_blocks(trie, sheet) / count)
    sheet.add_size(NAME, "memory, bytes/key", trie.memory_bytes / count)
    wanted = np.ascontiguousarray(keys[np.random.default_rng(3).integers(0, count, GETS)])
    sheet.add(NAME, "get, ns", timed(lambda: trie.get_many(wanted)), units=GETS)
    for k in (100, 1_000):
        _proofs(sheet, trie, k)
    for percent in (0.1, 1.0, 10.0):
        _updates(sheet, trie, percent)
    _removals(sheet, trie)


def _blocks(trie: ArrayTrie, sheet: Sheet) -> float:
    """Return the blocks of all nodes: a leaf and an external value are whole ones, branches are counted by bytes."""
    table = trie._arena.branches.row
    children = int(np.count_nonzero(table[:, :16], axis=1).sum())
    external = -(-sheet.width // BLOCK) if sheet.width >= HASHED_FROM else 0
    return sheet.count * (1 + external) + (children * 33 + len(table) * (3 + 64)) / BLOCK


def _proofs(sheet: Sheet, trie: ArrayTrie, k: int) -> None:
    asked = sheet.some_keys(k)
    root, proof = trie.root, trie.prove(asked)
    plain, blocks = StorageProof(proof.nodes), blocks_of(proof.nodes)
    sheet.add(NAME, f"prove k={k}, us", timed(lambda: trie.prove(asked)))
    sheet.add(NAME, f"verify k={k}, us", timed(lambda: verify_many([root], [proof], [asked])), blocks=blocks)
    from_set = timed(lambda: verify_many([root], [plain], [asked]))
    sheet.add(NAME, f"verify k={k} from a set, us", from_set, blocks=blocks)
    if k == 1_000:
        compact = CompactProof(CompactProof.encode(proof, root).nodes)
        sheet.add(NAME, f"compact encode k={k}, us", timed(lambda: CompactProof.encode(proof, root)))
        sheet.add(NAME, f"compact decode k={k}, us", timed(lambda: compact.decode(root)))


def _updates(sheet: Sheet, trie: ArrayTrie, percent: float) -> None:
    changed = max(1, round(sheet.count * percent / 100))
    keys = np.ascontiguousarray(sheet.keys[sheet.order()[:changed]])
    fresh = [random_rows(changed, sheet.width, seed) for seed in (8, 9)]
    turn = 0

    def change() -> None:
        nonlocal turn
        turn += 1
        trie.update(keys, fresh[turn % 2])
        _ = trie.root

    change()
    sheet.add(NAME, f"update {percent:g} %, ns/changed key", timed(change), units=changed)


def _removals(sheet: Sheet, trie: ArrayTrie) -> None:
    chosen = sheet.order()[: max(1, sheet.count // 100)]
    keys, values = np.ascontiguousarray(sheet.keys[chosen]), np.ascontiguousarray(sheet.values[chosen])

    def remove_and_put_back() -> None:
        trie.remove(keys)
        _ = trie.root
        trie.update(keys, values)
        _ = trie.root

    remove_and_put_back()
    sheet.add(NAME, "remove 1 % and insert it again, ns/key", timed(remove_and_put_back), units=2 * len(chosen))
