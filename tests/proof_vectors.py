"""Vectors of tries and proofs: what each says, and the run of one through the trie."""

from collections.abc import Mapping
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_trie import (
    Branch,
    ChildInfo,
    CodecError,
    CompactProof,
    Empty,
    HashedValue,
    InvalidNode,
    MemoryDB,
    ProofError,
    StateVersion,
    StorageProof,
    blake2_256,
    build_database,
    decode_node,
)
from vector_fields import Entry, Hash, Hex, Vector, VectorSource, hexed, pairs_of, unhexed

Pairs = dict[bytes, bytes]
Nibble = Annotated[int, Meta(ge=0, lt=16)]
Version = Annotated[int, Meta(ge=0, le=1, description="the state version")]


class ProofRoot(Vector, frozen=True, kw_only=True, tag_field="test", tag="root"):
    """The root of a trie, and its nodes and external values in the order of their bytes."""

    computed = ("root", "nodes")
    state_version: Version
    pairs: list[Entry]
    root: Hash | None = None
    nodes: list[Hex] | None = None


class ChildPairs(Struct, frozen=True, forbid_unknown_fields=True):
    """The pairs of a child trie, whose ``name`` is its key without ``:child_storage:default:``."""

    name: Hex
    pairs: list[Entry]


class ProofMade(Vector, frozen=True, kw_only=True, tag_field="test", tag="proof"):
    """The proof of ``keys``: of the top trie, or of its child trie ``child`` with the way to the child's root.

    The roots of the child tries are added to ``pairs``; a child trie without pairs has no root there.
    """

    computed = ("root", "nodes")
    state_version: Version
    pairs: list[Entry]
    keys: list[Hex]
    children: list[ChildPairs] | None = None
    child: Hex | None = None
    root: Hash | None = None
    nodes: list[Hex] | None = None
    """In the order of their bytes, each once."""


class ProofFinding(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ``values`` of the keys in their order, ``null`` where proven absent, or the ``error``."""

    values: list[Hex | None] | None = None
    error: str | None = None


class ProofVerification(Vector, frozen=True, kw_only=True, tag_field="test", tag="verification"):
    """Nodes that are to prove ``keys`` under ``root``; ``strict`` refuses repeated and unused nodes."""

    computed = ("expect",)
    root: Hash
    nodes: list[Hex]
    keys: list[Hex]
    strict: bool
    child: Hex | None = None
    expect: ProofFinding | None = None


class ProofCompacted(Vector, frozen=True, kw_only=True, tag_field="test", tag="compact"):
    """A storage proof and its compact form, both ways; ``nodes`` in the order of their bytes."""

    computed = ("compact",)
    root: Hash
    nodes: list[Hex]
    compact: list[Hex] | None = None


class CompactRefused(Vector, frozen=True, kw_only=True, tag_field="test", tag="compact-error"):
    """A compact proof that does not decode to a proof under ``root``."""

    computed = ("error",)
    root: Hash
    compact: list[Hex]
    error: str | None = None


class NodeDecoded(Vector, frozen=True, kw_only=True, tag_field="test", tag="node"):
    """A node's bytes: what they hold, or that they do not decode."""

    encoded: Hex
    node: "NodeText | None" = None
    error: str | None = None


class NodeText(Struct, frozen=True, forbid_unknown_fields=True):
    """A node, the empty one without a partial key, a value or children; ``partial`` in nibbles."""

    partial: list[Nibble]
    value: Hex | None
    """The value, or its hash where it is ``hashed``."""

    hashed: bool
    children: list[Hex | None]
    """None of a leaf, 16 of a branch: 32 bytes are a hash, fewer an inline node."""


ProofVector = ProofRoot | ProofMade | ProofVerification | ProofCompacted | CompactRefused | NodeDecoded


def recomputed(vector: ProofVector) -> ProofVector:
    """Return the vector with what it expects computed anew."""
    match vector:
        case ProofRoot():
            return root_of(vector)
        case ProofMade():
            return proof_of(vector)
        case ProofVerification():
            return msgspec.structs.replace(vector, expect=finding(vector))
        case ProofCompacted():
            return compacted(vector)
        case CompactRefused():
            return msgspec.structs.replace(vector, error=compact_error(vector))
        case NodeDecoded():
            return decoded(vector)


def root_of(vector: ProofRoot) -> ProofRoot:
    """Return the vector with root and nodes."""
    db, root = build_database(pairs_of(vector.pairs), state_version=StateVersion(vector.state_version))
    return msgspec.structs.replace(vector, root=hexed(root), nodes=_listed(StorageProof(_nodes(db, root))))


def with_children(
    top: Pairs, children: Mapping[bytes, Pairs], version: StateVersion = StateVersion.V1
) -> tuple[MemoryDB, bytes, dict[bytes, bytes]]:
    """Return a database with a top trie and its children, the root, and the children's roots."""
    db, roots = MemoryDB(), {}
    for name, held in children.items():
        found, roots[name] = build_database(held, state_version=version)
        for node in _nodes(found, roots[name]):
            db.insert(node)
    named = {ChildInfo(name).prefixed_storage_key(): root for name, root in roots.items()}
    found, root = build_database({**top, **named}, state_version=version)
    for node in _nodes(found, root):
        db.insert(node)
    return db, root, roots


def proof_of(vector: ProofMade) -> ProofMade:
    """Return the vector with its root and the proof."""
    children = {unhexed(child.name): pairs_of(child.pairs) for child in vector.children or [] if child.pairs}
    db, root, _ = with_children(pairs_of(vector.pairs), children, StateVersion(vector.state_version))
    keys = list(map(unhexed, vector.keys))
    if vector.child is None:
        proof = StorageProof.generate(db, root, keys)
    else:
        proof = StorageProof.generate_child(db, root, ChildInfo.new_default(unhexed(vector.child)), keys)
    return msgspec.structs.replace(vector, root=hexed(root), nodes=_listed(proof))


def finding(vector: ProofVerification) -> ProofFinding:
    """Verify the vector's nodes."""
    proof, root = StorageProof(map(unhexed, vector.nodes)), unhexed(vector.root)
    keys = list(map(unhexed, vector.keys))
    try:
        if vector.child is None:
            verified = proof.verify(root, keys, strict=vector.strict)
        else:
            info = ChildInfo.new_default(unhexed(vector.child))
            verified = proof.verify_child(root, info, keys, strict=vector.strict)
    except ProofError as error:
        return ProofFinding(error=type(error).__name__)
    found = [verified[key] for key in keys]
    return ProofFinding([None if value is None else hexed(value) for value in found])


def compacted(vector: ProofCompacted) -> ProofCompacted:
    """Return the vector with the compact proof, and the nodes that this one stands for."""
    root = unhexed(vector.root)
    compact = CompactProof.encode(StorageProof(map(unhexed, vector.nodes)), root)
    proof, _ = compact.decode(root)
    return msgspec.structs.replace(vector, nodes=_listed(proof), compact=list(map(hexed, compact.nodes)))


def compact_error(vector: CompactRefused) -> str:
    """Return the name of what is wrong with a compact proof."""
    try:
        CompactProof(tuple(map(unhexed, vector.compact))).decode(unhexed(vector.root))
    except ProofError as error:
        return type(error).__name__
    return "none"


def decoded(vector: NodeDecoded) -> NodeDecoded:
    """Return the vector with what its bytes hold."""
    try:
        node = decode_node(unhexed(vector.encoded))
    except CodecError:
        return msgspec.structs.replace(vector, node=None, error=InvalidNode.__name__)
    if isinstance(node, Empty):
        return msgspec.structs.replace(vector, node=NodeText([], None, hashed=False, children=[]))
    hashed = isinstance(node.value, HashedValue)
    value = node.value.hash if isinstance(node.value, HashedValue) else node.value
    inner = node.children if isinstance(node, Branch) else ()
    children = [None if child is None else hexed(child) for child in inner]
    told = NodeText(list(node.partial), None if value is None else hexed(value), hashed, children)
    return msgspec.structs.replace(vector, node=told)


def _nodes(db: MemoryDB, root: bytes) -> list[bytes]:
    """Return every node and external value of a database, the empty node where there is nothing else."""
    return [data for node_hash in {root, *db} if (data := db.get(node_hash)) is not None]


def _listed(proof: StorageProof) -> list[str]:
    return list(map(hexed, proof))


# Tries and proofs that vectors are about

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
"""Why, and the pairs."""


def drawn_pairs(random: Random, count: int) -> Pairs:
    """Return pairs whose keys share beginnings, with values on both sides of 32 bytes."""
    starts = [random.randbytes(random.randrange(4)) for _ in range(3)]
    sizes = (0, 1, 20, 32, 33, 60)
    return {
        random.choice(starts) + random.randbytes(random.choice((1, 2, 32))): random.randbytes(random.choice(sizes))
        for _ in range(count)
    }


def drawn_keys(random: Random, pairs: Pairs) -> list[bytes]:
    """Return some keys of ``pairs``, and some that are not among them."""
    there = random.sample(sorted(pairs), min(3, len(pairs)))
    return [*there, there[0] + b"\x00", random.randbytes(2)]


def drawn_proof(number: int) -> tuple[Random, bytes, list[bytes], list[bytes]]:
    """Return a random proof: its root, its nodes in the order of their bytes, and its keys."""
    random = Random(f"verification 7 {number}")
    pairs = drawn_pairs(random, 12)
    db, root = build_database(pairs, state_version=StateVersion.V1)
    keys = drawn_keys(random, pairs)
    return random, root, list(StorageProof.generate(db, root, keys)), keys


def published(names: str, *, length: int = 4) -> Pairs:
    """Return what a child trie holds of a publisher that wrote these keys in block 1."""
    return {blake2_256(name.encode()): PublishedEntry((name * length).encode(), 0, 1).encode() for name in names}


def verification(
    name: str,
    why: str,
    source: VectorSource,
    root: bytes,
    nodes: list[bytes],
    keys: list[bytes],
    *,
    strict: bool,
    child: bytes | None = None,
) -> ProofVerification:
    """Return the vector of nodes that are to prove ``keys``."""
    how = "strict" if strict else "tolerant"
    return ProofVerification(
        id=f"proofs/{'' if child is None else 'child-'}verification/{name}-{how}",
        why=f"{why}, {how}",
        source=source,
        root=hexed(root),
        nodes=list(map(hexed, nodes)),
        keys=list(map(hexed, keys)),
        strict=strict,
        child=None if child is None else hexed(child),
    )
