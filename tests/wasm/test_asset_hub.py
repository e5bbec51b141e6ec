"""Rococo's Asset Hub on relay parents of the network: its own ``validate_block`` judges what was built.

It sees nothing but the block, our compact proof of its state and our relay proof in the block's inherent.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from relaycast_collator.header import Header
from relaycast_collator.relay_chain import RelayBlock, RelayChain
from relaycast_collator.wasm_parachain import BlockNotBuilt
from relaycast_trie import StorageProof
from relaycast_trie.exceptions import ProofError
from relaycast_wasm.blocks.applied import is_success
from relaycast_wasm.blocks.validation import validate_block
from relaycast_wasm.chain import BuiltBlock
from relaycast_wasm.exceptions import CallFailed
from relaycast_wasm.parachain import RuntimeParachain
from wasm.real_chains import ALICE, ASSET_HUB, BOB, asset_hub, broken, writer

SEED = 20
BLOCKS = 200
RELAY_BLOCKS = 2
"""How many relay blocks one of its slots lasts."""


@dataclass(slots=True)
class Built:
    """A block, its parent, and the relay parent that it stands on."""

    parent: Header
    relay_parent: RelayBlock
    block: BuiltBlock


class Network:
    """A relay chain, and Asset Hub on it."""

    def __init__(self) -> None:
        self.relay = RelayChain(window=8, trie_engine="plain")
        self.relay.configure()
        self.para = asset_hub()
        self.tx = writer(self.para.chain, self.para.head.hash)

    def next_block(self) -> Built:
        for _ in range(RELAY_BLOCKS):
            relay_parent = self.relay.build_block()
        parent = self.para.head
        parachain = self.para.build_block(relay_parent, self.relay)
        assert self.para.built is not None
        assert sum(share.proof_bytes for share in parachain.shares) == parachain.own_proof.proof_bytes
        self.relay.include(ASSET_HUB, parachain.header.encode(), parachain.taken)
        return Built(parent, relay_parent, self.para.built)

    def submit(self, number: int) -> None:
        """Let the next block hold transactions of several kinds."""
        nonce = self.para.chain.account_nonce(ALICE.public)
        for offset in range(number % 4):
            self.para.submit(self.tx.sign(self.tx.transfer(BOB.public, 10**12), ALICE, nonce=nonce + offset))
        if number % 3 == 0:
            self.para.submit(broken(self.tx.sign(self.tx.transfer(BOB.public, 1), ALICE, nonce=nonce)))
            self.para.submit(self.tx.sign(self.tx.remark(bytes(number)), ALICE, nonce=nonce + number % 4))


def is_valid(para: RuntimeParachain, built: Built, proof: StorageProof | None = None) -> bool:
    """Return whether the block is valid with this proof of its own state, by default the recorded one."""
    relay_parent = built.relay_parent
    number, root = relay_parent.number, relay_parent.state_root
    try:
        result = validate_block(
            para.chain.runtime,
            built.parent,
            built.block,
            relay_parent_number=number,
            relay_parent_root=root,
            proof=proof,
        )
    except (CallFailed, ProofError):
        return False
    assert result.head_data == built.block.header.encode()
    return True


def refused_without(para: RuntimeParachain, built: Built, nodes: list[bytes]) -> int:
    """Count the nodes without which the block is refused."""
    whole = built.block.own_proof
    return sum(not is_valid(para, built, StorageProof(set(whole.nodes) - {node})) for node in nodes)


def test_its_validators_accept_a_block_with_transfers_and_need_each_node_of_its_proof() -> None:
    network = Network()
    network.next_block()
    network.submit(3)
    built = network.next_block()
    assert len(built.block.results) == 2 + 3 + 1
    assert all(map(is_success, built.block.results))
    assert [it.reason for it in built.block.refused] == ["its signature does not fit"]
    assert is_valid(network.para, built)
    nodes = random.Random(SEED).sample(sorted(built.block.own_proof.nodes), 3)
    assert refused_without(network.para, built, nodes) == len(nodes)


def test_a_block_that_cannot_be_built_leaves_everything_as_it_was() -> None:
    network = Network()
    built = network.next_block()
    before = network.para.state.snapshot(), network.para.head, network.para.state.root
    network.para.submit(network.tx.sign(network.tx.remark(b"waits"), ALICE, nonce=0))
    with pytest.raises(BlockNotBuilt, match="Slot must increase"):
        network.para.build_block(built.relay_parent, network.relay)
    assert (network.para.state.snapshot(), network.para.head, network.para.state.root) == before
    assert len(network.para.waiting) == 1
    assert len(network.next_block().block.extrinsics) == 3


@pytest.mark.slow
def test_its_validators_accept_200_blocks_and_refuse_each_without_any_one_node(
    record_property: Callable[[str, object], None],
) -> None:
    chance, network = random.Random(SEED), Network()
    refused = results = 0
    for number in range(BLOCKS):
        network.submit(number)
        built = network.next_block()
        assert is_valid(network.para, built), number
        nodes = sorted(built.block.own_proof.nodes)
        dropped = nodes if number % 50 == 3 else chance.sample(nodes, 2)
        assert refused_without(network.para, built, dropped) == len(dropped), number
        refused, results = refused + len(dropped), results + len(built.block.results)
    record_property("blocks", BLOCKS)
    record_property("extrinsics", results)
    record_property("proofs without a node refused", refused)
