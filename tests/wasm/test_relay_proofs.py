"""Relay proofs that Asset Hub's runtime accepted in another host: here it accepts each, and none that is tampered with.

The runtime itself checks them, in the inherent ``set_validation_data``, and stores what it read.
"""

import random

import pytest

from relaycast_collator.header import aura_pre_digest
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES, PersistedValidationData
from relaycast_trie import StorageProof
from relaycast_trie.scale import encode_vec
from relaycast_wasm.blocks.block_builder import BlockBuilder
from relaycast_wasm.blocks.inherents import PARACHAIN_SYSTEM, clock_inherents
from relaycast_wasm.exceptions import BlockRefused
from relaycast_wasm.parachain import RuntimeParachain
from shared_vectors import Case, Selection, unhex, unhex_all
from wasm.real_chains import asset_hub, item

SLOT, SLOT_MILLISECONDS = 140_000_000, 12_000
SEED = 900


@pytest.fixture(scope="module")
def para() -> RuntimeParachain:
    return asset_hub()


def given(para: RuntimeParachain, root: bytes, proof: StorageProof) -> BlockBuilder:
    """Begin a block with a relay proof in its inherent; raises ``BlockRefused``."""
    data = PersistedValidationData(para.head.encode(), 1, root, MAX_POV_BYTES)
    builder = para.chain.begin(para.head, [aura_pre_digest(slot=SLOT)])
    clock = clock_inherents(SLOT, slot_milliseconds=SLOT_MILLISECONDS)
    builder.apply_inherents({**clock, PARACHAIN_SYSTEM: data.encode() + proof.encode() + 2 * encode_vec(())})
    return builder


def tampered(proof: StorageProof, needed: StorageProof, chance: random.Random) -> list[StorageProof]:
    """Return proofs that lack a node, that hold one with another byte, and that stand for nothing."""
    dropped, bent = chance.sample(sorted(needed.nodes), 2)
    at = chance.randrange(len(bent))
    other = bent[:at] + bytes([bent[at] ^ 1 << chance.randrange(8)]) + bent[at + 1 :]
    rest = set(proof.nodes)
    return [StorageProof(rest - {dropped}), StorageProof(rest - {bent} | {other}), StorageProof()]


VECTORS = "smoldot/relay_proofs_real_runtime.json"
SELECTIONS = [
    pytest.param(Selection(VECTORS, own=True), id="own"),
    pytest.param(Selection(VECTORS, own=False), id="shared", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("cases", SELECTIONS, indirect=True)
def test_the_runtime_accepts_each_relay_proof_and_reads_what_it_read_elsewhere(
    para: RuntimeParachain, cases: list[Case]
) -> None:
    chance = random.Random(SEED)
    for vector in cases:
        root, proof = unhex(vector["root"]), StorageProof(unhex_all(vector["proof"]))
        overlay = given(para, root, proof).overlay
        for stored, expected in (
            ("HostConfiguration", "host_configuration"),
            ("RelevantMessagingState", "relevant_messaging_state"),
        ):
            assert overlay.get(item("ParachainSystem", stored)) == unhex(vector[expected])
        needed = StorageProof.generate(proof.by_hash(), root, map(unhex, vector["values"]))
        for lie in tampered(proof, needed, chance):
            with pytest.raises(BlockRefused, match="inherent"):
                given(para, root, lie)
        with pytest.raises(BlockRefused, match="inherent"):
            given(para, bytes(32), proof)
