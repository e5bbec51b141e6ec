"""A part of a real chain's state, fetched from a node by read proofs: everything at once, every node checked.

Law: nothing is believed but the block's state root. A node of the trie is kept when its own hash is one that the root
leads to. A proof ends the import that lacks a node on the way to a key that was asked for, or holds one that nobody
asked for. What is asked next follows from what is known: the way to keys, all that lies below prefixes, and the lone
child that a branch would collapse onto.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from relaycast.genesis.witness_file import WitnessFile, WitnessOrigin
from relaycast.genesis.witness_keys import Wanted
from relaycast.inputs import parse_hex
from relaycast.node_client import NodeClient, NodeRefused, Tell
from relaycast.pov.block_input import read_header
from relaycast.refusal import BadInput, short, shown
from relaycast_collator.header import Header
from relaycast_trie import ChildInfo, CodecError, MissingNode, ProofError, Recorder, TrieDB, blake2_256
from relaycast_trie.exceptions import RootMismatch
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.plain.partial_trie import explore
from relaycast_xcm.primitives import U32_MAX

KEYS_AT_A_TIME = 256
"""Keys in one question; fewer where the answer is too big for the node."""

PROOFS = "state_getReadProof", "state_getChildReadProof"
NUMBER_DIGITS = 10

Progress = Callable[[int, int], None]
"""Hears how many nodes there are, and how many bytes they have."""


@dataclass(frozen=True, slots=True)
class _Block:
    """The block whose state is fetched."""

    hash: bytes
    header: Header

    @property
    def text(self) -> str:
        return f"0x{self.hash.hex()}"


def fetch_witness(
    url: str, wanted: Wanted, *, at: str | None = None, tell: Tell = print, progress: Progress = lambda *_: None
) -> WitnessFile:
    """Return a witness of what is ``wanted`` of the state after a block, by default the newest final one.

    ``at`` is its hash or number. Raises ``BadInput``, always in one line.
    """
    checked = _checked_at(at)

    async def fetch() -> WitnessFile:
        async with NodeClient(url, tell) as node:
            return await _Import(node, progress).run(wanted, checked)

    return asyncio.run(fetch())


@dataclass(slots=True)
class _Import:
    node: NodeClient
    progress: Progress
    nodes: dict[bytes, bytes] = field(default_factory=dict)
    node_bytes: int = 0
    at_a_time: int = field(default_factory=lambda: KEYS_AT_A_TIME)

    async def run(self, wanted: Wanted, at: str | int | None) -> WitnessFile:
        block = await self._block(at)
        origin = await self._origin(block)
        root = block.header.state_root
        await self._complete(block, root, wanted.keys, wanted.prefixes)
        with self._refusing("an index of channels"):
            channels = wanted.channel_keys(TrieDB(self.nodes, root).get)
        await self._complete(block, root, wanted.keys | channels, wanted.prefixes)
        for info in wanted.children:
            child_root = TrieDB(self.nodes, root).get(info.prefixed_storage_key())
            if child_root is not None:
                await self._complete(block, self._root_of(info, child_root), (), (b"",), child=info)
        return WitnessFile.of(origin, root, self.nodes)

    async def _block(self, at: str | int | None) -> _Block:
        try:
            return await self._block_by(at, "chain_getFinalizedHead", "chain_getBlockHash", "chain_getHeader")
        except NodeRefused as error:
            if not error.is_unknown_method:
                raise BadInput(self.node.url, str(error), f"block {_named(at)}") from None
        try:
            return await self._block_by(at, "", "archive_v1_hashByHeight", "archive_v1_header")
        except NodeRefused as error:
            raise BadInput(self.node.url, str(error), "a node with chain_getHeader, or with archive_v1") from None

    async def _block_by(self, at: str | int | None, newest: str, by_number: str, header: str) -> _Block:
        """Return the block by these methods; without a method for the newest one, by its number."""
        found: Any = at
        if at is None and newest:
            found = await self.node.ask(newest)
        elif not isinstance(at, str):
            number = await self.node.ask("archive_v1_finalizedHeight") if at is None else at
            found = await self.node.ask(by_number, number)
            found = found[0] if isinstance(found, list) and found else found or None
        told = None if found is None else await self.node.ask(header, found)
        if told is None:
            raise BadInput(self.node.url, f"no block {_named(at)}", "a block that the node has")
        place = f"{self.node.url}: the header of {_named(at)}"
        block = _Block(parse_hex(found, place, size=HASH_LENGTH), read_header(told, place))
        if block.header.hash != block.hash:
            raise BadInput(
                self.node.url, f"a header with the hash 0x{block.header.hash.hex()}", f"that of {block.text}"
            )
        if isinstance(at, int) and block.header.number != at:
            raise BadInput(self.node.url, f"block {block.header.number:,}", f"block {at:,}")
        return block

    async def _origin(self, block: _Block) -> WitnessOrigin:
        """Return what the chain is called; a node need not say it."""
        name, properties, version = [
            await self._said(method, *params)
            for method, params in (
                ("system_chain", ()),
                ("system_properties", ()),
                ("state_getRuntimeVersion", (block.text,)),
            )
        ]
        state_version = version.get("stateVersion") if isinstance(version, dict) else None
        return WitnessOrigin(
            chain=(short(name) if isinstance(name, str) else "") or "a chain",
            number=block.header.number,
            block_hash=block.hash,
            state_version=0 if state_version == 0 else 1,
            properties=properties if isinstance(properties, dict) else {},
        )

    async def _said(self, method: str, *params: object) -> Any:
        try:
            return await self.node.ask(method, *params)
        except NodeRefused:
            return None

    async def _complete(
        self,
        block: _Block,
        root: bytes,
        keys: Iterable[bytes],
        prefixes: Iterable[bytes],
        *,
        child: ChildInfo | None = None,
    ) -> None:
        """Ask until nothing that is wanted of one trie is missing."""
        known, below = sorted(keys), [to_nibbles(prefix) for prefix in prefixes]
        while True:
            with self._refusing("a state"):
                asked = _lacking(self.nodes, root, known, below)
            if not asked:
                return
            while asked:
                part, asked = asked[: self.at_a_time], asked[self.at_a_time :]
                if not await self._take(block, root, part, child):
                    asked = part + asked

    async def _take(self, block: _Block, root: bytes, keys: list[bytes], child: ChildInfo | None) -> bool:
        """Ask for keys and take the nodes; return whether the answer was not too big."""
        names = [f"0x{key.hex()}" for key in keys]
        method, params = PROOFS[0], [names, block.text]
        if child is not None:
            method, params = PROOFS[1], [f"0x{child.prefixed_storage_key().hex()}", names, block.text]
        try:
            answer = await self.node.ask(method, *params)
        except NodeRefused as error:
            if error.is_too_big and len(keys) > 1:
                self.at_a_time = len(keys) // 2
                return False
            raise self._refusal(error, block) from None
        self._check(method, root, keys, self._given(method, answer))
        self.progress(len(self.nodes), self.node_bytes)
        return True

    def _given(self, method: str, answer: Any) -> dict[bytes, bytes]:
        """Return the nodes of a proof, each under its own hash."""
        proof = answer.get("proof") if isinstance(answer, dict) else None
        if not isinstance(proof, list):
            raise BadInput(f"{self.node.url}: {method}", shown(answer), "an object with a list of nodes as proof")
        place = f"{self.node.url}: {method}: proof"
        nodes = [parse_hex(node, f"{place}[{index}]") for index, node in enumerate(proof)]
        return {blake2_256(node): node for node in nodes}

    def _check(self, method: str, root: bytes, keys: list[bytes], given: dict[bytes, bytes]) -> None:
        """Take the nodes of a proof; raises ``BadInput`` where one lacks, and for one that nobody asked for."""
        place, recorder = f"{self.node.url}: {method}", Recorder()
        trie = TrieDB({**self.nodes, **given}, root, recorder=recorder)
        for key in keys:
            try:
                trie.get(key)
            except (MissingNode, RootMismatch) as error:
                what = error.node_hash if isinstance(error, MissingNode) else error.expected
                got = f"a proof without node 0x{what.hex()} on the way to 0x{key.hex()}"
                raise BadInput(place, got, f"all nodes that the root 0x{root.hex()} leads to") from None
            except ProofError as error:
                raise BadInput(place, str(error), "nodes of a trie") from None
        strange = next((it for it in given if it not in recorder.nodes and it not in self.nodes), None)
        if strange is not None:
            got = f"a node with the hash 0x{strange.hex()}"
            raise BadInput(place, got, f"only nodes that 0x{root.hex()} leads to on the way to the keys asked for")
        for node_hash in given.keys() - self.nodes.keys():
            self.nodes[node_hash] = given[node_hash]
            self.node_bytes += len(given[node_hash])

    def _root_of(self, info: ChildInfo, value: bytes) -> bytes:
        if len(value) != HASH_LENGTH:
            got = f"0x{value.hex()} as root of child trie 0x{info.storage_key.hex()}"
            raise BadInput(self.node.url, got, f"{HASH_LENGTH} bytes")
        return value

    def _refusal(self, error: NodeRefused, block: _Block) -> BadInput:
        if error.is_unknown_method:
            return BadInput(self.node.url, f"no method {error.method}", "a node with read proofs: archive_v1 has none")
        if "discarded" in error.message.lower():
            got = f"the state of block {block.header.number:,} discarded ({shown(error.message)})"
            return BadInput(self.node.url, got, "one of its newest 256 blocks, or a node that keeps all states")
        return BadInput(self.node.url, str(error), "a proof")

    @contextmanager
    def _refusing(self, what: str) -> Iterator[None]:
        try:
            yield
        except (CodecError, ProofError) as error:
            raise BadInput(self.node.url, f"{what} that makes no sense: {error}", "the state of a chain") from None


def _lacking(nodes: dict[bytes, bytes], root: bytes, keys: list[bytes], prefixes: list[bytes]) -> list[bytes]:
    """Return the keys to ask for next: those on whose way a node is missing, and one below each gap that is wanted."""
    gaps = explore(nodes, root).gaps
    asked: dict[bytes, None] = {}
    for key in keys:
        try:
            gaps.check(key)
        except MissingNode:
            asked[key] = None
    for path in (*gaps.nodes, *gaps.values):
        if any(path.startswith(prefix) or prefix.startswith(path) for prefix in prefixes):
            asked[_key_below(path)] = None
    asked.update((_key_below(lone.path), None) for lone in gaps.lone)
    return list(asked)


def _key_below(path: bytes) -> bytes:
    """Return a key on whose way stands what is at ``path``."""
    return from_nibbles(path + b"\x00" * (len(path) % 2))


def _checked_at(at: str | None) -> str | int | None:
    if at is None:
        return None
    if at.startswith("0x"):
        parse_hex(at, "--at", size=HASH_LENGTH)
        return at.lower()
    if not (at.isascii() and at.isdecimal() and len(at) <= NUMBER_DIGITS and int(at) <= U32_MAX):
        raise BadInput("--at", shown(at), "the hash or the number of a block")
    return int(at)


def _named(at: str | int | None) -> str:
    return "at all" if at is None else str(at)
