"""Substrate's Merkle tries and their proofs: bytes, hashes, nodes; nothing here knows a parachain.

``TrieDB`` reads and ``TrieDBMut`` writes a trie over a ``MemoryDB``; ``StorageProof`` proves what it holds.
``ArrayTrie`` does the same in compiled batches; it is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from relaycast_trie.child_info import CHILD_STORAGE_PREFIX, ChildInfo
from relaycast_trie.engine import ENGINES, Engine, trie_root
from relaycast_trie.exceptions import (
    CodecError,
    DuplicateNode,
    IncompleteProof,
    InvalidNode,
    MissingNode,
    ProofError,
    RelaycastError,
    RootMismatch,
    StatementError,
    UnusedNodes,
)
from relaycast_trie.hasher import (
    BLAKE2B_256,
    BLAKE3_256,
    HASH_LENGTH,
    HASHERS,
    KECCAK_256,
    Hasher,
    blake2_128,
    blake2_128_concat,
    blake2_256,
    blake3_256,
    keccak_256,
    twox_64,
    twox_64_concat,
    twox_128,
)
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf, Node
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion, decode_node, encode_node
from relaycast_trie.plain.build import build_database
from relaycast_trie.plain.memory_db import MemoryDB, NodeSource, PruningJournal
from relaycast_trie.plain.trie_db import Recorder, TrieDB
from relaycast_trie.plain.trie_db_mut import TrieDBMut
from relaycast_trie.plain.trie_update import witness
from relaycast_trie.proofs.compact_proof import CompactProof
from relaycast_trie.proofs.statement_proof import generate_proof, verify_proof
from relaycast_trie.proofs.storage_proof import StorageProof, VerifiedProof, verify_nodes

if TYPE_CHECKING:
    from relaycast_trie.array.array_trie import ArrayTrie
    from relaycast_trie.array.warm_up import warm_up

_COMPILED = {"ArrayTrie": "array_trie", "warm_up": "warm_up"}
"""What loads the compiler, by the module that it is in."""


def __getattr__(name: str) -> Any:
    if name in _COMPILED:
        return getattr(import_module(f"{__name__}.array.{_COMPILED[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "BLAKE2B_256",
    "BLAKE3_256",
    "CHILD_STORAGE_PREFIX",
    "EMPTY_ROOT",
    "ENGINES",
    "HASHERS",
    "HASH_LENGTH",
    "KECCAK_256",
    "ArrayTrie",
    "Branch",
    "ChildInfo",
    "CodecError",
    "CompactProof",
    "DuplicateNode",
    "Empty",
    "Engine",
    "HashedValue",
    "Hasher",
    "IncompleteProof",
    "InvalidNode",
    "Leaf",
    "MemoryDB",
    "MissingNode",
    "Node",
    "NodeSource",
    "ProofError",
    "PruningJournal",
    "Recorder",
    "RelaycastError",
    "RootMismatch",
    "StateVersion",
    "StatementError",
    "StorageProof",
    "TrieDB",
    "TrieDBMut",
    "UnusedNodes",
    "VerifiedProof",
    "blake2_128",
    "blake2_128_concat",
    "blake2_256",
    "blake3_256",
    "build_database",
    "decode_node",
    "encode_node",
    "generate_proof",
    "keccak_256",
    "trie_root",
    "twox_64",
    "twox_64_concat",
    "twox_128",
    "verify_nodes",
    "verify_proof",
    "warm_up",
    "witness",
]
