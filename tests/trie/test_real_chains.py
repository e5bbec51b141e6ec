"""Real chains: genesis states whose roots everybody knows, and relay proofs that a real runtime accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genesis_states import GENESIS_ROOTS, genesis
from relaycast_trie import (
    CompactProof,
    Hasher,
    MemoryDB,
    ProofError,
    StateVersion,
    StorageProof,
    TrieDB,
    TrieDBMut,
    blake2_256,
    build_database,
    trie_root,
)
from relaycast_trie.plain.build import build_root
from shared_vectors import OWN, Case, cases_in, over, unhex, unhex_all, unhex_or_none, unhex_pairs


@pytest.mark.parametrize("chain", GENESIS_ROOTS)
def test_a_genesis_has_the_root_that_the_chain_started_from(chain: str) -> None:
    held = genesis(chain)
    assert trie_root(held, state_version=StateVersion.V0, engine="plain").hex() == GENESIS_ROOTS[chain]


@pytest.mark.parametrize("chain", GENESIS_ROOTS)
def test_a_genesis_can_be_written_key_by_key_read_and_proven(chain: str) -> None:
    held = genesis(chain)
    trie = TrieDBMut(MemoryDB(), state_version=StateVersion.V0)
    for key, value in held.items():
        trie[key] = value
    assert trie.commit().hex() == GENESIS_ROOTS[chain]
    assert dict(TrieDB(trie.db, trie.root).items()) == held
    asked = sorted(held)[:: len(held) // 20]
    proof = StorageProof.generate(trie.db, trie.root, asked)
    assert dict(proof.verify(trie.root, asked, strict=True).values) == {key: held[key] for key in asked}
    assert CompactProof.encode(proof, trie.root).decode(trie.root) == (proof, trie.root)


@over("smoldot/relay_proofs_real_runtime.json")
def test_a_relay_proof_that_a_runtime_accepted_gives_what_the_runtime_read(cases: list[Case]) -> None:
    for vector in cases:
        proof, root = StorageProof(unhex_all(vector["proof"])), unhex(vector["root"])
        values = {unhex(key): unhex_or_none(value) for key, value in vector["values"].items()}
        assert dict(proof.verify(root, values).values) == values
        assert StorageProof.decode(proof.encode()) == proof
        needed = StorageProof.generate(proof.by_hash(), root, values)
        assert dict(needed.verify(root, values, strict=True).values) == values
        for node in needed.nodes:
            with pytest.raises(ProofError):
                StorageProof(proof.nodes - {node}).verify(root, values)


@over("smoldot/real_genesis_rococo_asset_hub.json")
def test_a_genesis_has_its_root_whether_or_not_the_code_is_at_hand(cases: list[Case]) -> None:
    """Version 1 stores the code outside of its node: a stand-in that hashes to the same is as good."""
    (vector,) = cases
    stand_in, code_hash = b"stands for the code" * 2, unhex(vector["code_blake2_256"])
    hasher = Hasher("knows the code", lambda data: code_hash if data == stand_in else blake2_256(data))
    held = dict(unhex_pairs(vector["kv_without_code"])) | {unhex(vector["code_key"]): stand_in}
    assert build_root(held, state_version=StateVersion.V1, hasher=hasher) == unhex(vector["root_v1"])
    assert build_root(held, state_version=StateVersion.V1) != unhex(vector["root_v1"])


@over("smoldot/real_genesis_rococo_asset_hub.json")
def test_a_genesis_without_its_code_has_nodes_that_prove_each_other(cases: list[Case]) -> None:
    (vector,) = cases
    held = dict(unhex_pairs(vector["kv_without_code"]))
    assert len(held) == 52
    for version in StateVersion:
        db, root = build_database(held, state_version=version)
        assert root == trie_root(held, state_version=version)
        assert dict(StorageProof.generate(db, root, held).verify(root, held, strict=True).values) == held


@given(st.data())
def test_a_relay_proof_with_a_flipped_bit_is_refused_or_unread(data: st.DataObject) -> None:
    vector = data.draw(st.sampled_from(cases_in(OWN / "smoldot/relay_proofs_real_runtime.json")))
    nodes, root = unhex_all(vector["proof"]), unhex(vector["root"])
    place = data.draw(st.integers(0, len(nodes) - 1))
    flipped = bytearray(nodes[place])
    bit = data.draw(st.integers(0, 8 * len(flipped) - 1))
    flipped[bit // 8] ^= 1 << bit % 8
    proof = StorageProof([*nodes[:place], bytes(flipped), *nodes[place + 1 :]])
    for key, expected in vector["values"].items():
        try:
            value = proof.verify(root, [unhex(key)])[unhex(key)]
        except ProofError:
            continue
        assert value == unhex_or_none(expected)
