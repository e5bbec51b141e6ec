"""Development accounts have sp-keyring's keys, and what they sign is verified as sp-core verifies it."""

from functools import partial

import pytest
from coincurve import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from relaycast_node.extrinsic.accounts import DEV_SEED, KeyPair, chain_code, dev_account, dev_accounts
from relaycast_node.extrinsic.signature import AddressKind, MultiAddress, MultiSignature, Scheme, verify
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import ScaleReader

SR25519 = {
    "//Alice": "d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d",
    "//Bob": "8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48",
    "//Charlie": "90b5ab205c6974c9ea841be688864633dc9ca8a357843eeacf2314649965fe22",
    "//Dave": "306721211d5404bd9da88e0204360a1a9ab8b87c66c1bc2fcdd37f3c2222cc20",
    "//Eve": "e659a7a1628cdd93febc04a4e0646ea20e9f5f0ce097d9a05290d4a9e054df4e",
    "//Ferdie": "1cbd2d43530a44705ad088af313e18f80b53ef16b36177cd4b77b846f2a5f07c",
    "//Alice//stash": "be5ddb1579b72e84524fc29e78609e3caf42e85aa118ebfe0b0ad404b5bdd25f",
    "//Bob//stash": "fe65717dad0447d715f660a0a58411de509b42e6efb8375f562f58a554d5860e",
}
ED25519 = {
    "//Alice": "88dc3417d5058ec4b4503e0c12ea1a0a89be200fe98922423d4334014fa6b0ee",
    "//Bob": "d17c2d7823ebf260fd138f2d7e27d114c0145d968b5ff5006125f2414fadae69",
    "//Charlie": "439660b36c6c03afafca027b910b4fecf99801834c62a5e6006f27d978de234f",
    "//Dave": "5e639b43e0052c47447dac87d6fd2b6ec50bdd4d0f614e4299c665249bbd09d9",
    "//Eve": "1dfe3e22cc0d45c70779c1095f7489a8ef3cf52d62fbd8c2fa38c9f1723502b5",
    "//Ferdie": "568cb4a574c6d178feb39c27dfc8b3f789e5f5423e19c71633c748b9acf086b5",
}
ECDSA = {
    "//Alice": "020a1091341fe5664bfa1782d5e04779689068c916b04cb365ec3153755684d9a1",
    "//Bob": "0390084fdbf27d2b79d26a4f13f0ccd982cb755a661969143c37cbc49ef5b91f27",
}

schemes = st.sampled_from(Scheme)
payloads = st.binary(max_size=300)


@pytest.mark.parametrize(
    ("scheme", "expected"), [(Scheme.SR25519, SR25519), (Scheme.ED25519, ED25519), (Scheme.ECDSA, ECDSA)]
)
def test_development_accounts_have_the_keys_of_sp_keyring(scheme: Scheme, expected: dict[str, str]) -> None:
    pairs = dev_accounts(scheme)
    assert len(pairs) == 12
    assert {name: pairs[name].public.hex() for name in expected} == expected


def test_an_ecdsa_account_is_the_hash_of_its_key() -> None:
    alice = dev_account("Alice", Scheme.ECDSA)
    assert alice.account.hex() == "01e552298e47454041ea31273b4b630c64c104e4514aa3643490b8aaca9cf8ed"
    assert alice.account == blake2_256(alice.public)


@pytest.mark.parametrize(
    ("junction", "code"),
    [
        ("Alice", b"\x14Alice"),  # a SCALE string
        ("7", b"\x07"),  # a number is a u64
        ("18446744073709551616", b"\x5018446744073709551616"),  # one that is too big is a string
    ],
)
def test_a_junction_is_padded_to_32_bytes(junction: str, code: bytes) -> None:
    assert chain_code(junction) == code.ljust(32, b"\x00")


def test_a_long_junction_is_hashed() -> None:
    assert chain_code("x" * 32) == blake2_256(b"\x80" + b"x" * 32)


@given(schemes, payloads)
def test_what_a_key_signs_holds_for_its_account_and_payload_only(scheme: Scheme, payload: bytes) -> None:
    alice, bob = dev_account("Alice", scheme), dev_account("Bob", scheme)
    signature = alice.sign(payload)
    assert verify(signature, payload, alice.account)
    assert not verify(signature, payload + b"\x00", alice.account)
    assert not verify(signature, payload, bob.account)


@given(schemes, payloads, st.data())
def test_a_signature_with_a_bit_flipped_does_not_hold(scheme: Scheme, payload: bytes, data: st.DataObject) -> None:
    alice = dev_account("Alice", scheme)
    signed = bytearray(alice.sign(payload).data)
    bit = data.draw(st.integers(0, 8 * len(signed) - 1))
    signed[bit // 8] ^= 1 << bit % 8
    assert not verify(MultiSignature(scheme, bytes(signed)), payload, alice.account)


@given(schemes, st.binary(min_size=65, max_size=65), st.binary(min_size=32, max_size=32))
def test_no_bytes_make_verification_fail_otherwise_than_by_no(scheme: Scheme, data: bytes, account: bytes) -> None:
    assert not verify(MultiSignature(scheme, data[: 65 if scheme is Scheme.ECDSA else 64]), b"payload", account)


def test_ethereum_s_recovery_ids_hold_too() -> None:
    alice = dev_account("Alice", Scheme.ECDSA)
    signed = alice.sign(b"payload").data
    assert verify(MultiSignature(Scheme.ECDSA, signed[:64] + bytes([signed[64] + 27])), b"payload", alice.account)


def test_an_ecdsa_signature_with_a_high_s_holds_as_in_sp_io() -> None:
    alice = dev_account("Alice", Scheme.ECDSA)
    signed = alice.sign(b"payload").data
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high = (order - int.from_bytes(signed[32:64], "big")).to_bytes(32, "big")
    assert verify(MultiSignature(Scheme.ECDSA, signed[:32] + high + bytes([signed[64] ^ 1])), b"payload", alice.account)


def test_a_signature_over_wrapped_bytes_does_not_hold_for_the_bytes() -> None:
    alice = dev_account("Alice")
    assert not verify(alice.sign(b"<Bytes>hello</Bytes>"), b"hello", alice.account)


def test_an_ecdsa_key_signs_the_hash_of_the_payload() -> None:
    alice = dev_account("Alice", Scheme.ECDSA)
    other = PrivateKey(alice.secret).sign_recoverable(b"payload", hasher=blake2_256)
    assert alice.sign(b"payload").data == other


@given(schemes, payloads)
def test_signatures_and_addresses_survive_their_bytes(scheme: Scheme, raw: bytes) -> None:
    signature = dev_account("Alice", scheme).sign(b"")
    assert MultiSignature.decode(ScaleReader(signature.encode())) == signature
    address = MultiAddress(AddressKind.RAW, raw)
    assert MultiAddress.decode(ScaleReader(address.encode())) == address


@pytest.mark.parametrize(
    ("encoded", "size"),
    [(b"\x00" + bytes(32), 33), (b"\x01", 1), (b"\x03" + bytes(32), 33), (b"\x04" + bytes(20), 21)],
)
def test_every_kind_of_address_decodes_and_only_an_id_is_an_account(encoded: bytes, size: int) -> None:
    reader = ScaleReader(encoded)
    address = MultiAddress.decode(reader)
    assert (reader.offset, address.encode()) == (size, encoded)
    assert address.account == (bytes(32) if encoded[0] == 0 else None)


@pytest.mark.parametrize(
    ("decode", "data", "reason"),
    [
        (MultiAddress.decode, b"\x05", "a MultiAddress starts with 0 to 4, got 5"),
        (MultiAddress.decode, b"\x00\x01", "32 bytes expected, 1 left"),
        (MultiSignature.decode, b"\x03", "a MultiSignature starts with 0, 1 or 2, got 3"),
        (MultiSignature.decode, b"\x02" + bytes(64), "65 bytes expected, 64 left"),
    ],
)
def test_bytes_that_are_no_address_and_no_signature_are_refused(decode: object, data: bytes, reason: str) -> None:
    assert callable(decode)
    with pytest.raises(CodecError, match=reason):
        decode(ScaleReader(data))


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        (partial(KeyPair.from_uri, "Alice"), "hard junctions"),
        (partial(KeyPair.from_uri, "//Alice/soft"), "hard junctions"),
        (partial(KeyPair.from_uri, "//"), "hard junctions"),
        (partial(KeyPair.from_seed, DEV_SEED[1:]), "a seed has 32 bytes, got 31"),
        (partial(dev_account, "Mallory"), "one of Alice, Bob, .*, got 'Mallory'"),
        (partial(MultiAddress.of, b"\x00"), "has 32 bytes, got 1"),
        (partial(MultiSignature, Scheme.ECDSA, bytes(64)), "has 65 bytes, got 64"),
    ],
)
def test_a_slip_is_a_value_error(slip: partial[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        slip()


def test_a_key_pair_does_not_print_its_secret() -> None:
    alice = dev_account("Alice", Scheme.ED25519)
    assert alice.secret.hex() not in repr(alice)
    assert repr(alice.secret) not in repr(alice)
