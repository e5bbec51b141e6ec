"""The plain engine's workloads: readable Python over ``hashlib``."""

from relaycast.bench.sheet import Sheet, blocks_of
from relaycast.bench.yardstick import timed
from relaycast_trie import CompactProof, MemoryDB, StorageProof, TrieDB, TrieDBMut, trie_root

NAME = "plain"
MOST_KEYS = 100_000
PROVED = 100


def missing() -> str:
    return ""


def run(sheet: Sheet) -> None:
    """Run what a trie of this size leaves time for."""
    pairs = sheet.pairs
    seconds = timed(lambda: trie_root(pairs, engine="plain"), budget=0.3, least=1)
    sheet.add(NAME, "trie_root(dict), ns/key", seconds, units=sheet.count, path="user")
    db: MemoryDB = MemoryDB()
    trie = TrieDBMut(db)
    for key, value in pairs.items():
        trie[key] = value
    root = trie.commit()
    asked, reader = sheet.some_keys(PROVED), TrieDB(db, root)
    sheet.add(NAME, "get, ns", timed(lambda: [reader.get(key) for key in asked]), units=len(asked))
    proof = StorageProof.generate(db, root, asked)
    compact, blocks = CompactProof.encode(proof, root), blocks_of(proof.nodes)
    sheet.add(NAME, f"prove k={PROVED}, us", timed(lambda: StorageProof.generate(db, root, asked)))
    sheet.add(NAME, f"verify k={PROVED}, us", timed(lambda: proof.verify(root, asked)), blocks=blocks)
    sheet.add(NAME, f"compact encode k={PROVED}, us", timed(lambda: CompactProof.encode(proof, root)))
    sheet.add(NAME, f"compact decode k={PROVED}, us", timed(lambda: compact.decode(root)))
    _changes(sheet, trie)


def _changes(sheet: Sheet, trie: TrieDBMut) -> None:
    keys = sheet.some_keys(max(1, sheet.count // 100))
    turn = 0

    def change() -> None:
        nonlocal turn
        turn += 1
        for key in keys:
            trie[key] = bytes([turn % 256]) * sheet.width
        trie.commit()

    def remove_and_put_back() -> None:
        for key in keys:
            trie.remove(key)
        trie.commit()
        change()

    sheet.add(NAME, "update 1 %, ns/changed key", timed(change, budget=0.3, least=1), units=len(keys))
    seconds = timed(remove_and_put_back, budget=0.3, least=1)
    sheet.add(NAME, "remove 1 % and insert it again, ns/key", seconds, units=2 * len(keys))
