"""Compact proofs: hashes and values left out, child tries behind the top trie, and lists that do not decode."""

from collections.abc import Iterator
from random import Random

from relaycast.vectors.proofs.child_proofs import published
from relaycast.vectors.proofs.proof_vector import CompactRefused, ProofCompacted, ProofVector
from relaycast.vectors.proofs.trie_proofs import TRIES, Pairs, drawn_keys, drawn_pairs
from relaycast.vectors.vector import VectorSource, hexed
from relaycast_pallets.broadcaster.publisher_trie import derive_child_info
from relaycast_trie import (
    CHILD_STORAGE_PREFIX,
    CompactProof,
    HashedValue,
    Leaf,
    MemoryDB,
    StateVersion,
    StorageProof,
    blake2_256,
    build_database,
    encode_node,
)
from relaycast_trie.nibbles import to_nibbles

_SOURCE = VectorSource(upstream="sp-trie encode_compact")
_WRONG = VectorSource(attack="a changed compact proof")


def vectors(seed: int) -> Iterator[ProofVector]:
    """Yield the vectors; random proofs are drawn from ``seed``."""
    yield from _known_tries()
    yield from _children()
    yield from _random_proofs(seed)
    yield from _wrong(seed)


def _compacted(name: str, why: str, root: bytes, nodes: StorageProof) -> ProofCompacted:
    return ProofCompacted(
        id=f"proofs/compact/{name}", why=why, source=_SOURCE, root=hexed(root), nodes=list(map(hexed, nodes))
    )


def _known_tries() -> Iterator[ProofVector]:
    for name, (why, pairs) in TRIES.items():
        if name == "empty":
            continue
        db, root = build_database(pairs, state_version=StateVersion.V1)
        yield _compacted(f"{name}-all", f"{why}: all keys", root, StorageProof.generate(db, root, pairs))
        if len(pairs) > 1:
            some = sorted(pairs)[:1]
            yield _compacted(f"{name}-one", f"{why}: one key", root, StorageProof.generate(db, root, some))


def _state(tries: dict[int, Pairs]) -> tuple[MemoryDB, bytes]:
    """Return a database with publishers' tries below a top trie, and its root."""
    top, db = {b":code": b"code"}, MemoryDB()
    for para_id, pairs in tries.items():
        found, root = build_database(pairs, state_version=StateVersion.V1)
        for node_hash in found:
            db.insert(found.get(node_hash) or b"")
        top[CHILD_STORAGE_PREFIX + derive_child_info(para_id).storage_key] = root
    found, root = build_database(top, state_version=StateVersion.V1)
    for node_hash in found:
        db.insert(found.get(node_hash) or b"")
    return db, root


def _child_proof(tries: dict[int, Pairs], *, of: list[int]) -> tuple[StorageProof, bytes]:
    """Return the proof of all keys of some publishers, and the root of the top trie."""
    db, root = _state(tries)
    proofs = [StorageProof.generate_child(db, root, derive_child_info(para_id), tries[para_id]) for para_id in of]
    return StorageProof.merge(proofs), root


def _children() -> Iterator[ProofVector]:
    tries = {1_000: published("abc"), 2_000: published("bc", length=40), 2_001: published("cd")}
    for name, of in (("one", [2_000]), ("two", [1_000, 2_001]), ("three", [1_000, 2_000, 2_001])):
        proof, root = _child_proof(tries, of=of)
        yield _compacted(f"children-{name}", f"child tries behind the top trie: {name} of three", root, proof)
    twins = {2_000: published("ab"), 2_001: published("ab")}
    proof, root = _child_proof(twins, of=[2_000])
    yield _compacted("children-twins", "a child trie that two keys name", root, proof)
    db, root = _state(tries)
    way = StorageProof.generate_child(db, root, derive_child_info(2_000), [])
    yield _compacted("children-unread", "the way to a child's root without the child", root, way)


def _random_proofs(seed: int) -> Iterator[ProofVector]:
    for number in range(12):
        random = Random(f"compact {seed} {number}")  # noqa: S311 - vectors, no secrets
        pairs = drawn_pairs(random, 14)
        db, root = build_database(pairs, state_version=StateVersion(number % 2))
        proof = StorageProof.generate(db, root, drawn_keys(random, pairs))
        yield _compacted(f"random-{number}", f"a random proof, number {number}", root, proof)


def _refused(name: str, why: str, root: bytes, items: list[bytes]) -> CompactRefused:
    return CompactRefused(
        id=f"proofs/compact-error/{name}", why=why, source=_WRONG, root=hexed(root), compact=list(map(hexed, items))
    )


def _wrong(seed: int) -> Iterator[ProofVector]:
    random = Random(f"compact wrong {seed}")  # noqa: S311 - vectors, no secrets
    pairs = {bytes([at << 4 | at]) * 3: random.randbytes(40) for at in range(6)}
    db, root = build_database(pairs, state_version=StateVersion.V1)
    items = list(CompactProof.encode(StorageProof.generate(db, root, sorted(pairs)[:3]), root).nodes)
    yield _refused("nothing", "no item at all", root, [])
    for count in range(1, len(items)):
        yield _refused(f"ends-at-{count}", f"the first {count} of {len(items)} items", root, items[:count])
    yield _refused("one-more", "an item behind the last", root, [*items, b"\x00"])
    yield _refused("repeated", "the whole list twice", root, items * 2)
    yield _refused("other-root", "a proof of another trie", blake2_256(b"other"), items)
    yield _refused("swapped", "the last two items change places", root, [*items[:-2], items[-1], items[-2]])
    yield _refused("undecodable", "an item that is no node", root, [*items[:1], b"\x0f", *items[2:]])
    yield _refused("flipped", "a value is another one", root, [*items[:-1], b"\xff" + items[-1][1:]])
    tries = {1_000: published("ab"), 2_000: published("cd")}
    proof, top_root = _child_proof(tries, of=[1_000, 2_000])
    both = list(CompactProof.encode(proof, top_root).nodes)
    proof, _ = _child_proof(tries, of=[2_000])
    second = list(CompactProof.encode(proof, top_root).nodes)
    stranger, stranger_root = build_database(published("xy"), state_version=StateVersion.V1)
    foreign = CompactProof.encode(StorageProof.generate(stranger, stranger_root, published("xy")), stranger_root).nodes
    way = list(CompactProof.encode(_way(tries), top_root).nodes)
    yield _refused("foreign-child", "a child trie that the top trie does not name", top_root, [*way, *foreign])
    yield _refused("child-cut", "the last child trie ends too early", top_root, both[:-1])
    yield _refused("child-and-more", "an item behind the last child trie", top_root, [*second, b"\x00"])
    order = [*way, *second[len(way) :], *both[len(way) : len(both) - len(second) + len(way)]]
    yield _refused("children-swapped", "child tries in the wrong order", top_root, order)
    no_root, short_root = build_database({CHILD_STORAGE_PREFIX + b"name": bytes(31)}, state_version=StateVersion.V1)
    leaf = no_root.get(short_root) or b""
    yield _refused("no-child-root", "the value under a child's key has 31 bytes", short_root, [leaf])
    yield from _external_child_roots()


def _external_child_roots() -> Iterator[ProofVector]:
    """Yield proofs whose value under a child's key stands outside its node, which no child root does."""
    child, child_root = build_database(published("ab"), state_version=StateVersion.V1)
    behind = CompactProof.encode(StorageProof.generate(child, child_root, published("ab")), child_root).nodes
    partial = to_nibbles(CHILD_STORAGE_PREFIX + b"name")
    for name, value in (("33", child_root + b"\x00"), ("32", child_root)):
        leaf = encode_node(Leaf(partial, HashedValue(blake2_256(value))))
        root = blake2_256(leaf)
        why = f"the value under a child's key has {name} bytes and stands outside its node"
        yield _refused(f"external-child-root-{name}", f"{why}: its hash is no child root", root, [leaf])
        marked = [b"\x01" + encode_node(Leaf(partial, b"")), value]
        yield _refused(f"external-child-root-{name}-attached", f"{why}, which is given", root, marked)
        yield _refused(f"external-child-root-{name}-child", f"{why}; a child trie follows", root, [*marked, *behind])


def _way(tries: dict[int, Pairs]) -> StorageProof:
    """Return the proof of the roots of some publishers, without their tries."""
    db, root = _state(tries)
    return StorageProof.merge(
        StorageProof.generate_child(db, root, derive_child_info(para_id), []) for para_id in tries
    )
