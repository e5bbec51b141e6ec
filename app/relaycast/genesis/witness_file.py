"""Witness files: a part of a real state in ``.witness.json.gz``, which relay chains start from.

Law: the state root is the only thing believed. Every node in the file is one that the root leads to.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from relaycast.genesis.chain_spec import ChainSpec
from relaycast.inputs import parse_hex
from relaycast.refusal import BadInput, short, shown
from relaycast_trie import CHILD_STORAGE_PREFIX, ProofError, StateVersion
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.plain.partial_trie import PartialTrie, StateWitness, explore

MARK = "witness"
"""The member that says that a file is a witness; its value is the version of the format."""

FORMAT = 1
EXPECTED = "a witness as relaycast import rpc writes it"


class WitnessOrigin(Struct, frozen=True):
    """The block that a witness is from."""

    chain: str
    number: int
    block_hash: bytes
    state_version: int = 1
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the state is called."""
        return f"{self.chain} at block {self.number}"


class WitnessFile(Struct, frozen=True):
    """A witness with its origin, and what it shows of the top trie and of child tries by name."""

    origin: WitnessOrigin
    witness: StateWitness
    top: PartialTrie
    children: Mapping[bytes, PartialTrie]

    @classmethod
    def of(cls, origin: WitnessOrigin, root: bytes, nodes: Mapping[bytes, bytes]) -> "WitnessFile":
        """Explore the nodes; raises ``ProofError``."""
        known = dict(nodes)
        top = explore(known, root)
        children = {
            key.removeprefix(CHILD_STORAGE_PREFIX): explore(known, value)
            for key, value in sorted(top.values.items())
            if key.startswith(CHILD_STORAGE_PREFIX) and len(value) == HASH_LENGTH
        }
        return cls(origin, StateWitness(root, known), top, children)

    def encode(self) -> bytes:
        """Return the file, gzipped; the same witness gives the same bytes."""
        content = {
            MARK: FORMAT,
            "chain": self.origin.chain,
            "number": self.origin.number,
            "hash": f"0x{self.origin.block_hash.hex()}",
            "stateRoot": f"0x{self.witness.root.hex()}",
            "stateVersion": self.origin.state_version,
            "properties": dict(self.origin.properties),
            "nodes": [f"0x{node.hex()}" for _, node in sorted(self.witness.nodes.items())],
        }
        return gzip.compress(json.dumps(content, indent=0).encode(), mtime=0)

    def spec(self) -> ChainSpec:
        """Return the state to start from: values are those that are known."""
        top = {key: value for key, value in self.top.values.items() if not key.startswith(CHILD_STORAGE_PREFIX)}
        children = {name: trie.values for name, trie in self.children.items() if trie.values}
        version = StateVersion(self.origin.state_version)
        name = f"{self.origin.name} (a witness, on plain tries)"
        return ChainSpec(name, top, children, version, self.origin.properties, self.witness)


def is_witness(content: Any) -> bool:
    """Return whether JSON says that it is a witness."""
    return isinstance(content, dict) and MARK in content


def witness_of(content: Mapping[str, Any], place: str) -> WitnessFile:
    """Return the witness that a JSON value is; raises ``BadInput``."""
    if content[MARK] != FORMAT:
        raise BadInput(f"{place} at .{MARK}", shown(content[MARK]), f"{FORMAT}, the format that this version reads")
    nodes = content.get("nodes")
    if not isinstance(nodes, list):
        raise BadInput(f"{place} at .nodes", shown(nodes), 'a list of nodes ["0x..", ...]')
    root = parse_hex(content.get("stateRoot"), f"{place} at .stateRoot", size=HASH_LENGTH)
    origin = _origin_of(content, place)
    given = StateWitness.of_nodes(root, (parse_hex(node, f"{place} at .nodes[{at}]") for at, node in enumerate(nodes)))
    try:
        found = WitnessFile.of(origin, root, given.nodes)
    except ProofError as error:
        raise BadInput(f"{place} at .nodes", str(error), EXPECTED) from None
    used = set[bytes]().union(found.top.uses, *(trie.uses for trie in found.children.values()))
    _refuse_others(given.nodes.keys() - used, root, place)
    return found


def _origin_of(content: Mapping[str, Any], place: str) -> WitnessOrigin:
    chain, number = content.get("chain"), content.get("number")
    if not isinstance(chain, str):
        raise BadInput(f"{place} at .chain", shown(chain), "the name of a chain")
    if type(number) is not int or number < 0:
        raise BadInput(f"{place} at .number", shown(number), "the number of a block")
    version, properties = content.get("stateVersion"), content.get("properties")
    if type(version) is not int or version not in (0, 1):
        raise BadInput(f"{place} at .stateVersion", shown(version), "0 or 1")
    block_hash = parse_hex(content.get("hash"), f"{place} at .hash", size=HASH_LENGTH)
    return WitnessOrigin(short(chain), number, block_hash, version, properties if isinstance(properties, dict) else {})


def _refuse_others(others: Iterable[bytes], root: bytes, place: str) -> None:
    strange = sorted(others)
    if strange:
        more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
        got = f"a node with the hash 0x{strange[0].hex()}{more}"
        raise BadInput(f"{place} at .nodes", got, f"only nodes that the state root 0x{root.hex()} leads to")
