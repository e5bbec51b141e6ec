"""Westend's runtime as the relay chain: what is modelled stands beside it in one state, and proofs are made of that."""

import pytest

from relaycast_collator.header import BABE, PRE_RUNTIME, ordered_root
from relaycast_collator.relay_chain import Call, Genesis, RelayChain
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT, para_head
from relaycast_trie import StateVersion
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_u64
from relaycast_wasm.blocks.applied import is_success
from relaycast_wasm.exceptions import BlockRefused
from relaycast_wasm.metadata.of_runtime import metadata_of
from relaycast_wasm.relay_body import RuntimeRelayBody
from relaycast_wasm.transactions.extrinsics import TransactionWriter
from relaycast_xcm import ParaId, Weight
from wasm.real_chains import ALICE, BOB, item, runtime_of, top_of

SYSTEM_CHAIN = ParaId(1_000)
NOW, DID_UPDATE = item("Timestamp", "Now"), item("Timestamp", "DidUpdate")
KEY, VALUE = b"k" * 32, b"published" * 8


@pytest.fixture
def relay() -> RelayChain:
    return RelayChain(Genesis(top_of("westend"), state_version=StateVersion.V0), window=8, trie_engine="plain")


@pytest.fixture
def body(relay: RelayChain) -> RuntimeRelayBody:
    relay.body = found = RuntimeRelayBody(runtime_of("westend"), relay)
    return found


def publishing(relay: RelayChain) -> Call:
    def publish() -> Weight:
        relay.broadcaster.handle_publish(SYSTEM_CHAIN, KEY, VALUE)
        return Weight.ZERO

    return Call(publish, Weight.ZERO)


def test_the_runtime_builds_and_the_modelled_pallets_write_into_the_same_state(
    relay: RelayChain, body: RuntimeRelayBody
) -> None:
    tx = TransactionWriter(metadata_of(body.runtime), body.runtime.version, relay.head.hash)
    body.submit(tx.sign(tx.transfer(BOB.public, 10**12), ALICE, nonce=0))
    body.submit(tx.sign(tx.transfer(BOB.public, 10**12), ALICE, nonce=0))
    relay.include(SYSTEM_CHAIN, b"a head")
    block = relay.build_block((publishing(relay),))
    assert [is_success(it.result) for it in body.body] == [True] * len(body.body)
    assert [it.reason for it in body.refused] == ["its nonce is used up"]
    assert body.waiting == []
    assert body.account_nonce(ALICE.public) == 1
    read = relay.prove_read(block, [NOW, CURRENT_SLOT, para_head(SYSTEM_CHAIN)])
    held = read.verify(block.state_root, [NOW, CURRENT_SLOT, para_head(SYSTEM_CHAIN)])
    assert held[CURRENT_SLOT] == encode_u64(1)
    assert held[NOW] == encode_u64(6_000)
    assert held[para_head(SYSTEM_CHAIN)] == encode_bytes(b"a head")
    info = derive_child_info(SYSTEM_CHAIN)
    proof = relay.prove_child_read(block, info.storage_key, [KEY])
    entry = proof.verify_child(block.state_root, info, [KEY])[KEY]
    assert entry is not None
    assert VALUE in entry


def test_its_headers_say_what_the_runtime_says_and_follow_on_each_other(
    relay: RelayChain, body: RuntimeRelayBody
) -> None:
    blocks = [relay.build_block() for _ in range(3)]
    for number, (parent, block) in enumerate(zip([relay.blocks[0], *blocks], blocks, strict=False), start=1):
        assert (block.header.parent_hash, block.number) == (parent.hash, number)
        claim = block.header.digest[0]
        assert (claim.variant, claim.engine) == (PRE_RUNTIME, BABE)
        reader = ScaleReader(claim.data[1:])
        assert reader.u32() < 4
        assert reader.u64() == number
    assert len(blocks[0].header.digest) == 2  # the first block of an epoch tells of the next one
    assert blocks[-1].header.extrinsics_root == ordered_root([it.extrinsic for it in body.body])
    assert relay.state.root == blocks[-1].state_root


def test_a_block_that_the_runtime_does_not_begin_leaves_the_relay_chain_as_it_was(
    relay: RelayChain, body: RuntimeRelayBody
) -> None:
    relay.build_block()
    relay.state.put(DID_UPDATE, b"\x01")
    relay.state.commit()
    before = relay.state.snapshot(), relay.head, dict(relay.heads)
    with pytest.raises(BlockRefused):
        relay.build_block()
    assert (relay.state.snapshot(), relay.head, relay.heads) == before
