"""What users of the array engine call: from dicts, lists and SCALE bytes to roots, SCALE bytes and values."""

from relaycast.bench.sheet import Sheet, blocks_of, random_rows
from relaycast.bench.yardstick import timed
from relaycast_trie import ArrayTrie, StorageProof, trie_root
from relaycast_trie.array.columns import strings_in

GETS = 10_000
PROVED = (1, 10, 100, 1_000)


def run(backend: str, sheet: Sheet) -> None:
    """Run all workloads and note what each takes."""
    pairs = sheet.pairs
    mixed = {key: pairs[key] for key in sheet.some_keys(sheet.count)}
    seconds = timed(lambda: trie_root(mixed, engine="array"))
    sheet.add(backend, "trie_root(dict), ns/key", seconds, units=sheet.count, path="user")
    order = sheet.order()
    keys, values = sheet.keys[order], sheet.values[order]
    seconds = timed(lambda: ArrayTrie.from_arrays(keys, values).root)
    sheet.add(backend, "root of unsorted rows, ns/key", seconds, units=sheet.count, path="user")
    trie = ArrayTrie.from_pairs(pairs)
    _gets(backend, sheet, trie)
    for k in PROVED:
        if k <= sheet.count:
            _proofs(backend, sheet, trie, k)
    _one_update(backend, sheet, trie)


def _gets(backend: str, sheet: Sheet, trie: ArrayTrie) -> None:
    wanted = sheet.some_keys(min(GETS, sheet.count))
    one = wanted[0]

    def get_list() -> list[bytes]:
        data, offsets, _ = trie.get_many(wanted)
        return strings_in(data, offsets)

    sheet.add(backend, "get of one key, ns", timed(lambda: trie.get(one)), path="user")
    sheet.add(backend, "get of a list to a list, ns", timed(get_list), units=len(wanted), path="user")


def _proofs(backend: str, sheet: Sheet, trie: ArrayTrie, k: int) -> None:
    asked, root = sheet.some_keys(k), trie.root
    made = trie.prove(asked)
    proof, encoded, blocks = StorageProof(made.nodes), made.encode(), blocks_of(made.nodes)

    def values(sent: StorageProof) -> dict[bytes, bytes | None]:
        return sent.verify(root, asked).values.copy()

    for workload, seconds, hashed in (
        (f"prove to a set k={k}, us", timed(lambda: trie.prove(asked).nodes), None),
        (f"prove to SCALE bytes k={k}, us", timed(lambda: trie.prove(asked).encode()), None),
        (f"verify() of a set to a dict k={k}, us", timed(lambda: values(proof)), blocks),
        (f"SCALE bytes to a dict k={k}, us", timed(lambda: values(StorageProof.decode(encoded))), blocks),
    ):
        sheet.add(backend, workload, seconds, blocks=hashed, path="user")


def _one_update(backend: str, sheet: Sheet, trie: ArrayTrie) -> None:
    key, turn = sheet.some_keys(1), 0
    fresh = [[bytes(random_rows(1, sheet.width, seed)[0])] for seed in (8, 9)]

    def change() -> None:
        nonlocal turn
        turn += 1
        trie.update(key, fresh[turn % 2])
        _ = trie.root

    change()
    sheet.add(backend, "update one key and its root, us", timed(change), path="user")
