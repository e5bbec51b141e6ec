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

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from relaycast_trie.child_info import ChildInfo
from relaycast_trie.engine import (
    ARRAY_FROM,
    DECODES,
    ENCODES,
    READS,
    VERIFIES,
    Engine,
    array_engine,
    pays_in_arrays,
    takes_array,
)
from relaycast_trie.exceptions import DuplicateNode, InvalidChildRoot, ProofError, UnusedNodes
from relaycast_trie.hasher import BLAKE2B_256, HASH_LENGTH, Hasher
from relaycast_trie.plain.memory_db import NodeSource
from relaycast_trie.plain.trie_db import Recorder, TrieDB
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec

Values = dict[bytes, bytes | None]


class VerifiedProof:
    """What a proof proves about the trie with this ``root``: ``values`` by key, absence as ``None``.

    ``values`` may be a function, which is called when somebody asks for them.
    """

    __slots__ = ("_values", "root")

    def __init__(self, root: bytes, values: Values | Callable[[], Values]) -> None:
        self.root = root
        self._values = values

    def __reduce__(self) -> tuple[type["VerifiedProof"], tuple[bytes, Values]]:
        return VerifiedProof, (self.root, self._known())

    @property
    def values(self) -> MappingProxyType[bytes, bytes | None]:
        """The values by key; ``.copy()`` gives a dict of its own, in a tenth of the time that ``dict()`` takes."""
        return MappingProxyType(self._known())

    def _known(self) -> Values:
        known = self._values
        if not isinstance(known, dict):
            known = self._values = known()
        return known

    def __getitem__(self, key: bytes) -> bytes | None:
        return self._known()[key]

    def __repr__(self) -> str:
        present = sum(value is not None for value in self.values.values())
        return (
            f"<VerifiedProof of {present} values and {len(self.values) - present} absences under 0x{self.root.hex()}>"
        )


def verify_nodes(
    nodes: Mapping[bytes, bytes],
    root: bytes,
    keys: Iterable[bytes],
    *,
    child_info: ChildInfo | None = None,
    strict: bool = False,
    hasher: Hasher = BLAKE2B_256,
) -> VerifiedProof:
    """Read ``keys`` from ``nodes`` (each under its own hash) below ``root``, in a child trie where one is named.

    Raises ``RootMismatch``, ``MissingNode``, ``InvalidNode``, ``InvalidChildRoot``; ``strict`` adds ``UnusedNodes``.
    """
    recorder = Recorder()
    trie: TrieDB | None = TrieDB(nodes, root, hasher=hasher, recorder=recorder)
    if child_info is not None:
        assert trie is not None
        trie = child_trie(trie, child_info)
    values = {key: None if trie is None else trie.get(key) for key in keys}
    unused = nodes.keys() - recorder.nodes.keys() if strict else set()
    if unused:
        raise UnusedNodes(tuple(sorted(unused)))
    return VerifiedProof(root, values)


def child_trie(top: TrieDB, child_info: ChildInfo) -> TrieDB | None:
    """Return the child trie that ``top`` names, ``None`` when it names none; raises ``InvalidChildRoot``."""
    key = child_info.prefixed_storage_key()
    child_root = top.get(key)
    if child_root is None:
        return None
    if len(child_root) != HASH_LENGTH:
        raise InvalidChildRoot(key)
    return TrieDB(top.db, child_root, hasher=top.hasher, recorder=top.recorder)


class StorageProof:
    """A set of nodes and external values (sp-trie ``StorageProof``).

    ``nodes`` is a frozenset; the order and the repetitions of what was given are gone, but ``strict`` verification
    remembers that there were repetitions.
    """

    __slots__ = ("_recorded", "_repeated", "_set")

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
            known = proof.recorded
            if known is None or any(known[node_hash] != merged[node_hash] for node_hash in merged.keys() & known):
                return cls(frozenset().union(*(proof.nodes for proof in given)))
            merged.update(known)
        return cls.of_recorded(merged)

    @classmethod
    def decode(cls, data: bytes) -> "StorageProof":
        """Return the proof that ``Vec<Vec<u8>>`` bytes hold; raises ``CodecError``, also for bytes left over."""
        decoded: StorageProof | None = None
        if cls is StorageProof and type(data) is bytes and pays_in_arrays(DECODES, len(data)):
            decoded = array_engine("array_proofs").decode_one(data)
        return cls.decode_plainly(data) if decoded is None else decoded

    @classmethod
    def decode_plainly(cls, data: bytes) -> "StorageProof":
        """``decode`` in Python whatever the size: it says where bytes are none of a proof."""
        reader = ScaleReader(data)
        nodes = [reader.bytes_() for _ in range(reader.length())]
        reader.done()
        return cls(nodes)

    def encode(self) -> bytes:
        """Return the proof as SCALE ``Vec<Vec<u8>>``, nodes in the order of their bytes."""
        encoded: bytes | None = None
        if type(self) is not StorageProof or pays_in_arrays(ENCODES, self.most_nodes):
            encoded = array_engine("array_proofs").encode_one(self)
        return self.encode_plainly() if encoded is None else encoded

    def encode_plainly(self) -> bytes:
        """Pure-Python ``encode``."""
        return encode_vec(encode_bytes(node) for node in self)

    def verify(
        self, root: bytes, keys: Iterable[bytes], *, strict: bool = False, hasher: Hasher = BLAKE2B_256
    ) -> "VerifiedProof":
        """Check the proof of ``keys`` against ``root`` and return their values.

        Raises ``RootMismatch``, ``MissingNode``, ``InvalidNode``; ``strict`` adds ``DuplicateNode``, ``UnusedNodes``.
        """
        wanted = list(keys)
        if hasher is BLAKE2B_256 and pays_in_arrays(READS, self.most_nodes):
            verified: VerifiedProof = array_engine("array_proofs").verify_one(self, root, wanted, strict=strict)
            return verified
        return self.verify_plainly(root, wanted, strict=strict, hasher=hasher)

    @staticmethod
    def verify_many(
        roots: Iterable[bytes],
        proofs: Iterable["StorageProof"],
        keys: Iterable[Iterable[bytes]],
        *,
        strict: bool = False,
        engine: Engine = "auto",
    ) -> "list[VerifiedProof | ProofError]":
        """Verify many proofs in one call; return for each its verified values, or the error that ``verify`` raises.

        Both engines return the same results. Proofs that an ``ArrayTrie`` made always go to the array engine unless
        ``engine`` is ``"plain"`` or its kernels would have to be compiled first.
        """
        given = list(proofs)
        in_arrays = any(type(proof) is not StorageProof for proof in given)
        if takes_array(engine, ARRAY_FROM if in_arrays else sum(map(len, given)), work=VERIFIES):
            found: list[VerifiedProof | ProofError]
            found = array_engine("array_proofs").verify_many(roots, given, keys, strict=strict)
            return found
        each = zip(roots, given, keys, strict=True)
        return [verdict(proof.verify, root, wanted, strict=strict) for root, proof, wanted in each]

    def verify_plainly(
        self, root: bytes, keys: Iterable[bytes], *, strict: bool = False, hasher: Hasher = BLAKE2B_256
    ) -> "VerifiedProof":
        """``verify`` by the plain engine whatever the size: it says what is wrong with a proof."""
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

    def compacted(self) -> bytes | None:
        """Return its compact form in SCALE, if kernels make it from the hashes that nodes were recorded by."""
        return None

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


def verdict(
    verify: Callable[..., VerifiedProof], root: bytes, keys: Iterable[bytes], *, strict: bool
) -> VerifiedProof | ProofError:
    """Return what ``verify``, a method of a proof, returns, or the error that it raises."""
    try:
        return verify(root, keys, strict=strict)
    except ProofError as error:
        return error.as_value()


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
