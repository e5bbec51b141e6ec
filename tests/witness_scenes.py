"""Served chains as nodes that a witness is fetched from, without a network; and whole twins of forks."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from relaycast.genesis.witness_fetch import _Import
from relaycast.genesis.witness_file import WitnessFile
from relaycast.genesis.witness_keys import Wanted, wanted_by
from relaycast.node_client import NodeRefused
from relaycast.refusal import BadInput
from relaycast_node.chain.exceptions import UnknownBlock
from relaycast_node.chain_clock import ChainClock
from relaycast_node.rpc.header_json import header_json, hexed_or_null
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_trie import CHILD_STORAGE_PREFIX

PARACHAINS = (2000, 3000, 3001)
"""Those of the preset oracle."""

Lie = Callable[[str, Any], Any]
"""Changes what a node answers to a method, or raises."""


class LocalNode:
    """The relay chain of ``live`` as a node; ``lie`` changes its answers."""

    url = "http://node"

    def __init__(self, live: ChainClock, lie: Lie = lambda _, answer: answer) -> None:
        self._chain = live.relay
        self._lie = lie
        self.asked: list[str] = []

    async def ask(self, method: str, *params: Any) -> Any:
        self.asked.append(method)
        return self._lie(method, self._answer(method, params))

    def _answer(self, method: str, params: tuple[Any, ...]) -> Any:
        chain = self._chain
        answers: dict[str, Callable[..., Any]] = {
            "chain_getFinalizedHead": lambda: hexed_or_null(chain.finalized.hash),
            "chain_getBlockHash": lambda number: hexed_or_null(chain.hash_of(number)),
            "chain_getHeader": self._header,
            "system_chain": lambda: chain.name,
            "system_properties": lambda: chain.properties,
            "state_getRuntimeVersion": lambda _: {"stateVersion": 1},
            "state_getReadProof": lambda keys, at: self._proof(at, lambda it: chain.prove(it, map(unhexed, keys))),
            "state_getChildReadProof": lambda name, keys, at: self._proof(
                at, lambda it: chain.prove_child(it, unhexed(name)[len(CHILD_STORAGE_PREFIX) :], map(unhexed, keys))
            ),
        }
        if method not in answers:
            raise NodeRefused(method, -32_601, "Method not found")
        return answers[method](*params)

    def _header(self, at: str) -> Any:
        block = self._chain.block(unhexed(at))
        return None if block is None else header_json(block.header)

    @staticmethod
    def _proof(at: str, prove: Callable[[bytes], list[bytes]]) -> dict[str, Any]:
        try:
            nodes = prove(unhexed(at))
        except (StateDiscarded, UnknownBlock):
            raise NodeRefused("state_getReadProof", 4003, "UnknownBlock: State already discarded for 0x..") from None
        return {"at": at, "proof": [f"0x{node.hex()}" for node in nodes]}


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def fetched(
    live: ChainClock, wanted: Wanted | None = None, *, at: str | int | None = None, lie: Lie = lambda _, answer: answer
) -> WitnessFile:
    """Fetch a witness from the relay chain of ``live``, by default what the preset oracle needs of its best block."""
    node = LocalNode(live, lie)
    known = wanted_by(PARACHAINS) if wanted is None else wanted
    best = live.relay.best.number if at is None else at
    return asyncio.run(_Import(node, lambda *_: None).run(known, best))  # type: ignore[arg-type]


def refused_import(live: ChainClock, lie: Lie) -> str:
    """Return the line in which an import from a lying node ends."""
    with pytest.raises(BadInput) as told:
        fetched(live, lie=lie)
    line = str(told.value)
    assert "\n" not in line
    return line


def kept(found: WitnessFile, folder: Path) -> str:
    """Write a witness and return its file."""
    file = folder / "fork.witness.json.gz"
    file.write_bytes(found.encode())
    return str(file)


def twins(live: ChainClock, file: str, *, seed: int = 5) -> tuple[rc.Network, rc.Network]:
    """Return a network whose relay chain forks the best block of ``live``, and one that has its whole state."""
    fork, whole = rc.Network(seed=seed, genesis=file), rc.Network(seed=seed)
    relay = whole.chains.relay_chain
    relay.state.load(live.chains.relay_chain.state.dump())
    relay.seal_genesis()
    assert relay.genesis_root == fork.chains.relay_chain.genesis_root == live.relay.best.header.state_root
    return fork, whole
