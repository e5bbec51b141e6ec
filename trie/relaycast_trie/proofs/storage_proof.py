"""A storage proof: the nodes that a few reads of a trie need, and no others.

Only a verified proof can be read. ``verify`` checks the path of every key from the root down and hands out a
``VerifiedProof``; absence is ``None`` there. It is tolerant, as sp-trie is, of nodes that no path needs; ``strict``
refuses those, and nodes that come twice.

>>> from relaycast_trie import StateVersion
>>> from relaycast_trie.plain.build import build_database
>>> db, root = build_database({b"dot": b"5.31", b"dog": b"woof"}, state_version=StateVersion.V1)
>>> proof = StorageProof.generate(db, root, [b"dot", b"cat"])
>>> proof
<StorageProof 1 nodes, 21 bytes>
>>> proof.verify(root, [b"dot", b"cat"]).values
mappingproxy({b'dot': b'5.31', b'cat': None})
>>> proof.verify(bytes(32), [b"dot"])  # doctest: +IGNORE_EXCEPTION_DETAIL
Traceback (most recent call last):
RootMismatch: no node of the proof has the root
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

from relaycast_trie.child_info import ChildInfo
from relaycast_trie.engine import Engine
from relaycast_trie.exceptions import DuplicateNode, ProofError
from relaycast_trie.hasher import BLAKE2B_256, Hasher
from relaycast_trie.plain.memory_db import NodeSource
from relaycast_trie.plain.recorder import Recorder
from relaycast_trie.plain.trie_db import TrieDB
from relaycast_trie.proofs.verify import VerifiedProof, child_trie, verify_nodes
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec


class VerifyMany(Protocol):
    """The signature of ``StorageProof.verify_many``."""

    def __call__(
        self,
        roots: Iterable[bytes],
        proofs: Iterable["StorageProof"],
        keys: Iterable[Iterable[bytes]],
        *,
        strict: bool = False,
        engine: Engine = "auto",
    ) -> list["VerifiedProof | ProofError"]: ...


class Bulk(Protocol):
    """What is done with large proofs in arrays: each method returns ``None`` where Python's own loops are to do it."""

    def decode(self, data: bytes) -> "StorageProof | None":
        """Return the proof that SCALE bytes hold."""

    def encode(self, proof: "StorageProof") -> bytes | None:
        """Return the SCALE bytes of a proof."""

    def verify(self, proof: "StorageProof", root: bytes, keys: list[bytes], strict: bool) -> "VerifiedProof | None":
        """Return what a proof under Blake2b-256 proves, if it holds."""


class StorageProof:
    """A set of nodes and external values (sp-trie ``StorageProof``).

    ``nodes`` is a frozenset; the order and the repetitions of what was given are gone, but ``strict`` verification
    remembers that there were repetitions.
    """

    __slots__ = ("_recorded", "_repeated", "_set")

    verify_many: ClassVar[VerifyMany]
    """Verifies many proofs in one call, by either engine; ``relaycast_trie.dispatch`` attaches it."""

    bulk: ClassVar[Bulk]
    """Work for the array engine; ``relaycast_trie.dispatch`` attaches it."""

    def __init__(self, nodes: Iterable[bytes] = ()) -> None:
        given = [node if type(node) is bytes else bytes(memoryview(node)) for node in nodes]
        unique = frozenset(given)
        self._set: frozenset[bytes] | None = unique
        self._recorded: dict[bytes, bytes] | None = None
        self._repeated = first_repeated(given) if len(given) != len(unique) else None

    @classmethod
    def of_recorded(cls, nodes: dict[bytes, bytes]) -> "StorageProof":
        """Return the proof with nodes that come from a database, by the hashes that it has them by."""
        proof = StorageProof.__new__(StorageProof)
        proof._set, proof._recorded, proof._repeated = None, nodes, None
        return proof

    @property
    def nodes(self) -> frozenset[bytes]:
        """The nodes as a set."""
        if self._set is None:
            assert self._recorded is not None
            self._set = frozenset(self._recorded.values())
        return self._set

    @classmethod
    def without_duplicates(cls, nodes: Iterable[bytes]) -> "StorageProof":
        """Return the proof with these nodes; a repeated node is a ``DuplicateNode``.

        sp-trie ``StorageProof::new_with_duplicate_nodes_check``.
        """
        proof = cls(nodes)
        proof.refuse_duplicates()
        return proof

    @classmethod
    def generate(
        cls, db: NodeSource, root: bytes, keys: Iterable[bytes], *, hasher: Hasher = BLAKE2B_256
    ) -> "StorageProof":
        """Return what reading ``keys`` from the trie with this ``root`` touches; absent keys are proven absent."""
        recorder = Recorder()
        TrieDB(db, root, hasher=hasher, recorder=recorder).get_many(keys)
        return cls.of_recorded(recorder.nodes)

    @classmethod
    def generate_child(
        cls, db: NodeSource, root: bytes, child_info: ChildInfo, keys: Iterable[bytes], *, hasher: Hasher = BLAKE2B_256
    ) -> "StorageProof":
        """Return what reading ``keys`` from a child trie touches, with the way to its root in the top trie.

        Where there is no such child trie, its absence is what is proven (sp-state-machine ``prove_child_read``).
        """
        recorder = Recorder()
        child = child_trie(TrieDB(db, root, hasher=hasher, recorder=recorder), child_info)
        if child is not None:
            child.get_many(keys)
        return cls.of_recorded(recorder.nodes)

    @classmethod
    def merge(cls, proofs: Iterable["StorageProof"]) -> "StorageProof":
        """Return all nodes of all ``proofs``, each once; where databases name two by one hash, both."""
        given = list(proofs)
        merged: dict[bytes, bytes] = {}
        for proof in given:
            known = proof._recorded
            if known is None or any(known[node_hash] != merged[node_hash] for node_hash in merged.keys() & known):
                return cls(frozenset().union(*(proof.nodes for proof in given)))
            merged.update(known)
        return cls.of_recorded(merged)

    @classmethod
    def decode(cls, data: bytes) -> "StorageProof":
        """Return the proof that ``Vec<Vec<u8>>`` bytes hold; raises ``CodecError``, also for bytes left over."""
        if cls is StorageProof and (decoded := cls.bulk.decode(data)) is not None:
            return decoded
        return cls.decode_plainly(data)

    @classmethod
    def decode_plainly(cls, data: bytes) -> "StorageProof":
        """Do what ``decode`` does, in Python whatever the size: it says where bytes are none of a proof."""
        reader = ScaleReader(data)
        nodes = [reader.bytes_() for _ in range(reader.length())]
        reader.done()
        return cls(nodes)

    def encode(self) -> bytes:
        """Return the proof as SCALE ``Vec<Vec<u8>>``, nodes in the order of their bytes."""
        encoded = self.bulk.encode(self)
        return self.encode_plainly() if encoded is None else encoded

    def encode_plainly(self) -> bytes:
        """Do what ``encode`` does, in Python whatever the size."""
        return encode_vec(encode_bytes(node) for node in self)

    def verify(
        self, root: bytes, keys: Iterable[bytes], *, strict: bool = False, hasher: Hasher = BLAKE2B_256
    ) -> "VerifiedProof":
        """Check the proof of ``keys`` against ``root`` and return their values.

        Raises ``RootMismatch``, ``MissingNode``, ``InvalidNode``; ``strict`` adds ``DuplicateNode``, ``UnusedNodes``.
        """
        wanted = list(keys)
        if hasher is BLAKE2B_256 and (verified := self.bulk.verify(self, root, wanted, strict)) is not None:
            return verified
        return self.verify_plainly(root, wanted, strict=strict, hasher=hasher)

    def verify_plainly(
        self, root: bytes, keys: Iterable[bytes], *, strict: bool = False, hasher: Hasher = BLAKE2B_256
    ) -> "VerifiedProof":
        """Do what ``verify`` does, by the plain engine whatever the size: it says what is wrong with a proof."""
        if strict:
            self.refuse_duplicates(hasher=hasher)
        return verify_nodes(self.by_hash(hasher), root, keys, strict=strict, hasher=hasher)

    def verify_child(
        self,
        root: bytes,
        child_info: ChildInfo,
        keys: Iterable[bytes],
        *,
        strict: bool = False,
        hasher: Hasher = BLAKE2B_256,
    ) -> "VerifiedProof":
        """Check the proof of a child trie's ``keys`` against the top trie's ``root``; without a child all are absent.

        Raises what ``verify`` raises, and ``InvalidChildRoot``.
        """
        if strict:
            self.refuse_duplicates(hasher=hasher)
        nodes = self.by_hash(hasher)
        return verify_nodes(nodes, root, keys, child_info=child_info, strict=strict, hasher=hasher)

    def by_hash(self, hasher: Hasher = BLAKE2B_256) -> dict[bytes, bytes]:
        """Return the nodes by their hash."""
        return {hasher.digest(node): node for node in self.nodes}

    @property
    def recorded(self) -> Mapping[bytes, bytes] | None:
        """The nodes under the hashes that the database has them by, if they come from one: to be read, not believed."""
        return self._recorded

    def refuse_duplicates(self, *, hasher: Hasher = BLAKE2B_256) -> None:
        """Raise ``DuplicateNode`` when a node was given twice."""
        repeated = self.repeated
        if repeated is not None:
            raise DuplicateNode(hasher.digest(repeated))

    @property
    def repeated(self) -> bytes | None:
        """The first node that was given twice."""
        return self._repeated

    @property
    def proof_bytes(self) -> int:
        """Bytes of all nodes, without the lengths that SCALE puts before them."""
        return sum(map(len, self.nodes if self._recorded is None else self._recorded.values()))

    @property
    def most_nodes(self) -> int:
        """The number of nodes, or more where that is known faster."""
        return len(self)

    def __iter__(self) -> Iterator[bytes]:
        return iter(sorted(self.nodes))

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def __len__(self) -> int:
        return len(self.nodes if self._recorded is None else self._recorded)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageProof) and self.nodes == other.nodes

    def __hash__(self) -> int:
        return hash(self.nodes)

    def __reduce__(self) -> Any:
        return _unpickled, (tuple(self), self.repeated)

    def __repr__(self) -> str:
        return f"<StorageProof {len(self)} nodes, {self.proof_bytes} bytes>"


def _unpickled(nodes: tuple[bytes, ...], repeated: bytes | None) -> StorageProof:
    proof = StorageProof(nodes)
    proof._repeated = repeated
    return proof


def first_repeated(nodes: list[bytes]) -> bytes:
    """Return the first of the nodes that stands behind an equal one; there is one."""
    seen: set[bytes] = set()
    for node in nodes:
        if node in seen:
            return node
        seen.add(node)
    raise AssertionError("called with unique nodes")
