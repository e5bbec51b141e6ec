"""Tries by themselves: nodes, roots of both versions, proofs that are made, and proofs that do not hold."""

from collections.abc import Iterator, Mapping
from random import Random

from relaycast.vectors.proofs.proof_vector import NodeDecoded, ProofMade, ProofRoot, ProofVector, ProofVerification
from relaycast.vectors.vector import VectorSource, entries, hexed
from relaycast_trie import (
    EMPTY_ROOT,
    Branch,
    HashedValue,
    Leaf,
    StateVersion,
    StorageProof,
    blake2_256,
    build_database,
    encode_node,
)

Pairs = dict[bytes, bytes]

RANDOM_TRIES = 24
CHANGED_PROOFS = 6

TRIES: Mapping[str, tuple[str, Pairs]] = {
    "empty": ("no key", {}),
    "one": ("one leaf", {b"dot": b"5.31"}),
    "empty-key": ("the empty key at the root", {b"": b"root", b"a": b"1"}),
    "empty-value": ("a value of no bytes", {b"a": b"", b"b": b"1"}),
    "prefix": ("a key that begins another one: a value in a branch", {b"do": b"verb", b"dog": b"puppy"}),
    "long-prefix": ("three keys, each the beginning of the next", {b"a": b"1", b"ab": b"2", b"abc": b"3"}),
    "half-byte": ("keys part inside a byte", {b"\x10": b"1", b"\x1f": b"2", b"\x20": b"3"}),
    "full-branch": ("sixteen children", {bytes([at << 4]): bytes([at]) for at in range(16)}),
    "inline": ("children that stand inline", {b"\x11\x11": b"1", b"\x11\x12": b"2"}),
    "value-31": ("a value of 31 bytes", {b"a": bytes(31), b"b": b"1"}),
    "value-32": ("a value of 32 bytes stays in its node", {b"a": bytes(32), b"b": b"1"}),
    "value-33": ("a value of 33 bytes is external in version 1", {b"a": bytes(33), b"b": b"1"}),
    "external-root": ("an external value in the root leaf", {b"a": bytes(40)}),
    "external-in-branch": ("an external value in a branch", {b"a": bytes(40), b"ab": b"1"}),
    "external-twice": ("one external value under two keys", {b"a": bytes(40), b"b": bytes(40)}),
    "equal-subtries": (
        "two subtries of equal nodes",
        {first + second: bytes(40) for first in (b"\x1a", b"\x2a") for second in (b"1", b"2")},
    ),
    "partial-30": ("a partial key of 30 nibbles", {bytes(15): b"1"}),
    "partial-62": ("a partial key of 62 nibbles", {bytes(31): b"1"}),
    "partial-64": ("a partial key of 64 nibbles: two bytes of count", {bytes(32): b"1"}),
    "partial-318": ("a partial key of 318 nibbles: the count ends with a byte 0", {bytes(159): b"1"}),
    "partial-320": ("a partial key of 320 nibbles", {bytes(160): bytes(40)}),
    "branch-62": ("a branch with 62 nibbles", {bytes(31) + b"\x10": b"1", bytes(31) + b"\x20": b"2"}),
    "branch-63": ("a branch with 63 nibbles", {bytes(31) + b"\x01": b"1", bytes(31) + b"\x02": b"2"}),
    "branch-64": ("a branch with 64 nibbles", {bytes(32) + b"\x10": b"1", bytes(32) + b"\x20": b"2"}),
    "branch-value-62": ("a branch with 62 nibbles and a value", {bytes(31): b"1", bytes(31) + b"\x20": b"2"}),
    "branch-value-64": ("a branch with 64 nibbles and a value", {bytes(32): b"1", bytes(32) + b"\x20": b"2"}),
    "branch-external-14": ("14 nibbles and an external value", {bytes(7): bytes(33), bytes(7) + b"\x20": b"2"}),
    "branch-external-16": ("16 nibbles and an external value", {bytes(8): bytes(33), bytes(8) + b"\x20": b"2"}),
    "entries": (
        "published entries of values of 23 and 24 bytes",
        {b"\x01" * 32: b"\x5c" + bytes(31), b"\x02" * 32: b"\x60" + bytes(32)},
    ),
}


def vectors(seed: int) -> Iterator[ProofVector]:
    """Yield the vectors; random tries are drawn from ``seed``."""
    yield from _nodes()
    yield from _roots(seed)
    yield from _proofs(seed)
    yield from _verified(seed)
    yield from _wrong(seed)
    yield from _crafted()


def drawn_pairs(random: Random, count: int) -> Pairs:
    """Return pairs whose keys share beginnings, with values on both sides of 32 bytes."""
    starts = [random.randbytes(random.randrange(4)) for _ in range(3)]
    sizes = (0, 1, 20, 32, 33, 60)
    return {
        random.choice(starts) + random.randbytes(random.choice((1, 2, 32))): random.randbytes(random.choice(sizes))
        for _ in range(count)
    }


def _node(name: str, why: str, encoded: bytes) -> NodeDecoded:
    source = VectorSource(upstream="sp-trie NodeCodec")
    return NodeDecoded(id=f"proofs/node/{name}", why=why, source=source, encoded=hexed(encoded))


def _nodes() -> Iterator[ProofVector]:
    digest = HashedValue(blake2_256(b"value"))
    some = tuple({1: bytes(32), 4: b"\x41\x01\x04\x02", 15: bytes([9]) * 32}.get(at) for at in range(16))
    for count in (0, 1, 2, 14, 15, 16, 30, 31, 32, 62, 63, 64, 270, 286, 317, 318, 319, 573):
        partial = bytes(at % 16 for at in range(count))
        yield _node(f"leaf-{count}", f"a leaf with {count} nibbles", encode_node(Leaf(partial, b"v")))
        yield _node(f"hashed-leaf-{count}", f"its value is hashed, {count} nibbles", encode_node(Leaf(partial, digest)))
        branch = Branch(partial, some, None if count % 2 else digest)
        yield _node(f"branch-{count}", f"a branch with {count} nibbles", encode_node(branch))
    yield _node("branch-value", "a branch with a value in it", encode_node(Branch(b"\x01", some, b"value")))
    full = Branch(b"", (bytes(32),) * 16)
    yield _node("branch-full", "a full branch of hashes: 531 bytes", encode_node(full))
    yield _node("leaf-long-value", "a value of 64 bytes: two bytes of length", encode_node(Leaf(b"\x01", bytes(64))))
    leaf, branch_bytes = encode_node(Leaf(b"\x01\x02\x03", b"v")), encode_node(Branch(b"", some))
    wrong = {
        "none": ("no byte", b""),
        "zero-header": ("a branch header of 0x01, which no node has", b"\x01"),
        "empty-and-more": ("the empty node, and bytes that are ignored", b"\x00\x01\x02"),
        "left-over": ("a leaf, and bytes that are ignored", leaf + b"\xff\xff"),
        "header-0f": ("a first byte that no node has", b"\x0f" + leaf[1:]),
        "padding-of-zero": ("padding of 1 and a nibble of 0", bytes([leaf[0], 0x10]) + leaf[2:]),
        "padding": ("the padding of an odd partial key is not zero", bytes([leaf[0], leaf[1] | 0x10]) + leaf[2:]),
        "partial-cut": ("a partial key that is cut off", leaf[:2]),
        "count-cut": ("a count that is cut off", b"\x7f\xff"),
        "value-cut": ("a value that is cut off", leaf[:-1]),
        "value-padded": ("a length in two bytes that fits one", b"\x41\x01\x05\x00v"),
        "value-big-mode": ("a length in five bytes that fits one", b"\x41\x01\x03\x01\x00\x00\x00v"),
        "no-children": ("a branch without children", b"\x80\x00\x00"),
        "bitmap-cut": ("half a bitmap", b"\x80\x01"),
        "child-cut": ("a child that is cut off", branch_bytes[:-1]),
        "hash-cut": ("31 bytes of a value's hash", b"\x21\x01" + bytes(31)),
        "child-33": ("a child of 33 bytes: a decoder reads any length", b"\x80\x01\x00\x84" + bytes(33)),
        "child-empty": ("a child of no bytes", b"\x80\x01\x00\x00"),
    }
    for name, (why, encoded) in wrong.items():
        yield _node(name, why, encoded)


def _roots(seed: int) -> Iterator[ProofVector]:
    source = VectorSource(upstream="sp-trie trie_root")
    for name, (why, pairs) in TRIES.items():
        for version in (0, 1):
            yield ProofRoot(
                id=f"proofs/root/{name}-v{version}",
                why=f"{why}, state version {version}",
                source=source,
                state_version=version,
                pairs=entries(pairs),
            )
    for number in range(RANDOM_TRIES):
        random = Random(f"root {seed} {number}")  # noqa: S311 - vectors, no secrets
        pairs = drawn_pairs(random, random.choice((3, 8, 16)))
        yield ProofRoot(
            id=f"proofs/root/random-{number}",
            why=f"{len(pairs)} random pairs, number {number}",
            source=source,
            state_version=number % 2,
            pairs=entries(pairs),
        )


def _proofs(seed: int) -> Iterator[ProofVector]:
    source = VectorSource(upstream="prove_read")
    for name, keys, why in (
        ("prefix", [b"do"], "a value in a branch"),
        ("prefix", [b"d"], "a key that ends above the branch"),
        ("prefix", [b"dogs"], "a key that goes on below a leaf"),
        ("prefix", [b"cat"], "a key that parts from the root's partial key"),
        ("full-branch", [b"\x30"], "one child of sixteen"),
        ("full-branch", [b"\x30", b"\x31", b"\x40"], "two children, and an absence below one of them"),
        ("value-33", [b"a"], "an external value is part of the proof"),
        ("value-33", [b"b"], "an external value that is not read is no part of it"),
        ("external-twice", [b"a", b"b"], "one external value stands for both keys"),
        ("inline", [b"\x11\x11"], "inline nodes are part of their parents"),
        ("empty", [b"a"], "absence in an empty trie: the empty node"),
        ("one", [], "no keys: no nodes"),
    ):
        at = "-".join(key.hex() for key in keys) or "none"
        yield ProofMade(
            id=f"proofs/proof/{name}-{at}",
            why=why,
            source=source,
            state_version=1,
            pairs=entries(TRIES[name][1]),
            keys=list(map(hexed, keys)),
        )
    for number in range(12):
        random = Random(f"proof {seed} {number}")  # noqa: S311 - vectors, no secrets
        pairs = drawn_pairs(random, 14)
        yield ProofMade(
            id=f"proofs/proof/random-{number}",
            why=f"keys that are there and keys that are not, number {number}",
            source=source,
            state_version=number % 2,
            pairs=entries(pairs),
            keys=list(map(hexed, drawn_keys(random, pairs))),
        )


def drawn_keys(random: Random, pairs: Pairs) -> list[bytes]:
    """Return some keys of ``pairs``, and some that are not among them."""
    there = random.sample(sorted(pairs), min(3, len(pairs)))
    return [*there, there[0] + b"\x00", random.randbytes(2)]


def _given(seed: int, number: int) -> tuple[Random, bytes, list[bytes], list[bytes]]:
    """Return a random proof: its root, its nodes in the order of their bytes, and its keys."""
    random = Random(f"verification {seed} {number}")  # noqa: S311 - vectors, no secrets
    pairs = drawn_pairs(random, 12)
    db, root = build_database(pairs, state_version=StateVersion.V1)
    keys = drawn_keys(random, pairs)
    return random, root, list(StorageProof.generate(db, root, keys)), keys


def _verification(
    name: str, why: str, source: VectorSource, root: bytes, nodes: list[bytes], keys: list[bytes], *, strict: bool
) -> ProofVerification:
    how = "strict" if strict else "tolerant"
    return ProofVerification(
        id=f"proofs/verification/{name}-{how}",
        why=f"{why}, {how}",
        source=source,
        root=hexed(root),
        nodes=list(map(hexed, nodes)),
        keys=list(map(hexed, keys)),
        strict=strict,
    )


def _verified(seed: int) -> Iterator[ProofVector]:
    holds = VectorSource(upstream="read_proof_check")
    for number in range(6):
        random, root, nodes, keys = _given(seed, number)
        random.shuffle(nodes)
        yield _verification(f"holds-{number}", "an honest proof in any order", holds, root, nodes, keys, strict=True)
    _, root, nodes, keys = _given(seed, 0)
    for strict in (False, True):
        yield _verification("empty-trie", "an empty trie needs no node", holds, EMPTY_ROOT, [], [b"a"], strict=strict)
        yield _verification("empty-node", "its node may be given", holds, EMPTY_ROOT, [b"\x00"], [b"a"], strict=strict)
        yield _verification("no-keys", "nothing is read", holds, root, [], [], strict=strict)
        yield _verification("no-keys-nodes", "nothing is read, nodes are given", holds, root, nodes, [], strict=strict)
        yield _verification("nothing", "no node at all", holds, root, [], keys, strict=strict)
        yield _verification("same-key", "a key twice", holds, root, nodes, [*keys, keys[0]], strict=strict)


def _wrong(seed: int) -> Iterator[ProofVector]:
    source = VectorSource(attack="a changed proof")
    for number in range(CHANGED_PROOFS):
        random, root, nodes, keys = _given(seed, number)
        at = random.randrange(len(nodes))
        bit = random.randrange(8 * len(nodes[at]))
        flipped = (int.from_bytes(nodes[at], "little") ^ 1 << bit).to_bytes(len(nodes[at]), "little")
        lies = {
            "dropped": ("a node is missing", nodes[:at] + nodes[at + 1 :]),
            "root-dropped": ("the root is missing", [it for it in nodes if blake2_256(it) != root]),
            "added": ("a node that no key needs", [*nodes, random.randbytes(40)]),
            "repeated": ("a node comes twice", [*nodes, nodes[at]]),
            "flipped": ("a bit is another one", [*nodes[:at], flipped, *nodes[at + 1 :]]),
            "cut": ("a node lacks its last byte", [*nodes[:at], nodes[at][:-1], *nodes[at + 1 :]]),
        }
        for name, (why, given) in lies.items():
            for strict in (False, True):
                yield _verification(f"{name}-{number}", why, source, root, given, keys, strict=strict)


def _crafted() -> Iterator[ProofVector]:
    source = VectorSource(attack="crafted nodes")
    cases: dict[str, tuple[str, list[bytes], list[bytes]]] = {}
    cases["root-undecodable"] = ("the root's hash fits, its bytes do not decode", [b"\x01\x02"], [b"a"])
    child = b"\x0f" * 40
    branch = encode_node(Branch(b"", tuple({6: blake2_256(child), 15: bytes(32)}.get(at) for at in range(16))))
    cases["child-undecodable"] = ("a child's bytes do not decode", [branch, child], [b"a"])
    cases["child-untouched"] = ("a child that does not decode is not read", [branch, child], [b"\x10"])
    cases["child-missing"] = ("a child that is not there", [branch, child], [b"\xf0"])
    inline = encode_node(Branch(b"", tuple({6: b"\x0f\x01", 15: bytes(32)}.get(at) for at in range(16))))
    cases["inline-undecodable"] = ("an inline child does not decode", [inline], [b"a"])
    value = bytes(40)
    leaf = encode_node(Leaf(b"\x06\x01", HashedValue(blake2_256(value))))
    cases["value-there"] = ("an external value", [leaf, value], [b"a"])
    cases["value-missing"] = ("an external value is not there", [leaf], [b"a"])
    cases["value-not-read"] = ("absence needs no external value", [leaf], [b"b"])
    cases["order"] = ("the first key decides which error it is", [branch, child], [b"\xf0", b"a"])
    long_root = encode_node(Leaf(b"\x06\x01", b"v")) + bytes(9)
    cases["root-with-rest"] = ("bytes behind a node are ignored", [long_root], [b"a"])
    unused = "two faults: reading fails before unused nodes are looked for"
    cases["unused-and-missing"] = (unused, [leaf, bytes(50)], [b"a"])
    cases["repeated-and-missing"] = ("two faults: repeated nodes come first", [leaf, leaf], [b"a"])
    for name, (why, nodes, keys) in cases.items():
        for strict in (False, True):
            root = blake2_256(nodes[0])
            yield _verification(f"crafted-{name}", why, source, root, nodes, keys, strict=strict)
