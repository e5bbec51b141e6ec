"""Signatures of development keys: the library verifies them, and equal payloads have equal ones."""

import hashlib

import pytest
import sr25519
from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp

from relaycast_wasm.transactions.schnorrkel import keccak, ristretto
from relaycast_wasm.transactions.signing import Signer

ALICE = bytes.fromhex("d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d")
"""The account of ``//Alice``."""


@given(st.binary(max_size=300), st.sampled_from(["Alice", "Bob", "Charlie"]))
def test_the_library_verifies_what_is_signed_here(payload: bytes, name: str) -> None:
    signer = Signer.dev(name)
    signature = signer.sign(payload)
    assert sr25519.verify(signature, payload, signer.public)
    assert not sr25519.verify(signature, payload + b"\x00", signer.public)
    assert signer.sign(payload) == signature


@pytest.mark.parametrize("name", ["Alice", "Bob", "Dave", "Eve", "Ferdie"])
def test_a_public_key_is_the_ristretto_encoding_of_the_secrets_point(name: str) -> None:
    signer = Signer.dev(name)
    assert ristretto(crypto_scalarmult_ed25519_base_noclamp(signer.secret[:32])) == signer.public
    assert name != "Alice" or signer.public == ALICE


def test_the_permutation_is_that_of_sha3() -> None:
    state = bytearray(b"\x06".ljust(135, b"\x00") + b"\x80").ljust(200, b"\x00")
    keccak(state)
    assert bytes(state[:32]) == hashlib.sha3_256(b"").digest()
