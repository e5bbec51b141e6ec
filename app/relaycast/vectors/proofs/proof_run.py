"""Expectations of the vectors of tries and proofs."""

import msgspec

from relaycast.vectors.proofs.proof_vector import (
    CompactRefused,
    NodeDecoded,
    NodeText,
    ProofCompacted,
    ProofFinding,
    ProofMade,
    ProofRoot,
    ProofVector,
    ProofVerification,
)
from relaycast.vectors.vector import hexed, pairs_of, unhexed
from relaycast_trie import (
    CHILD_STORAGE_PREFIX,
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
    build_database,
    decode_node,
)


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


def state_of(vector: ProofMade) -> tuple[MemoryDB, bytes]:
    """Return a database with the vector's tries, and the root of the top trie."""
    version, top, db = StateVersion(vector.state_version), pairs_of(vector.pairs), MemoryDB()
    for child in vector.children or []:
        found, root = build_database(pairs_of(child.pairs), state_version=version)
        for node in _nodes(found, root):
            db.insert(node)
        if child.pairs:
            top[CHILD_STORAGE_PREFIX + unhexed(child.name)] = root
    found, root = build_database(top, state_version=version)
    for node in _nodes(found, root):
        db.insert(node)
    return db, root


def proof_of(vector: ProofMade) -> ProofMade:
    """Return the vector with its root and the proof."""
    db, root = state_of(vector)
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
