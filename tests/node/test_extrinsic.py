"""Extrinsics have the bytes of sp-runtime: held against another library's, taken apart, truncated and mutated."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_node.extrinsic.accounts import dev_account
from relaycast_node.extrinsic.era import IMMORTAL, Era, Mortal
from relaycast_node.extrinsic.extrinsic import (
    Bare,
    Extra,
    Extrinsic,
    Implicit,
    MetadataHashMode,
    Signed,
    decode_extrinsic,
    extrinsic_hash,
    is_bare,
    sign,
    signing_payload,
)
from relaycast_node.extrinsic.signature import AddressKind, MultiAddress, MultiSignature, Scheme, verify
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import encode_bytes

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "signed_extrinsics.json").read_text())
CASES: list[dict[str, Any]] = VECTORS["cases"]
GENESIS = blake2_256(b"genesis")

eras = st.just(IMMORTAL) | st.builds(
    lambda block, exponent: Mortal.starting_at(block, period=1 << exponent), st.integers(0, 1 << 32), st.integers(2, 16)
)
nonces = st.integers(0, 100) | st.integers(0, (1 << 32) - 1)
tips = st.integers(0, 100) | st.integers(0, (1 << 128) - 1)
extras = st.builds(Extra, nonces, era=eras, tip=tips, mode=st.sampled_from(MetadataHashMode))
calls = st.binary(max_size=300)
addresses = st.one_of(
    st.binary(min_size=32, max_size=32).map(MultiAddress.of),
    st.just(MultiAddress(AddressKind.INDEX, b"")),
    st.binary(max_size=70).map(lambda raw: MultiAddress(AddressKind.RAW, raw)),
    st.binary(min_size=20, max_size=20).map(lambda raw: MultiAddress(AddressKind.ADDRESS20, raw)),
)
signatures = st.sampled_from(Scheme).flatmap(
    lambda scheme: st.binary(
        min_size=65 if scheme is Scheme.ECDSA else 64, max_size=65 if scheme is Scheme.ECDSA else 64
    ).map(lambda data: MultiSignature(scheme, data))
)
extrinsics = st.builds(Signed, addresses, signatures, extras, calls) | st.builds(
    Bare, calls, version=st.sampled_from((4, 5))
)


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def era_of(case: dict[str, Any]) -> Era:
    era = case["era"]
    return Mortal.starting_at(era["current"], period=era["period"]) if era else IMMORTAL


def birth_hash(case: dict[str, Any]) -> bytes:
    era = case["era"]
    return blake2_256(b"block %d" % era_of(case).birth(era["current"])) if era else GENESIS


def implicit(case: dict[str, Any]) -> Implicit:
    return Implicit(VECTORS["spec_version"], VECTORS["transaction_version"], GENESIS, birth_hash(case))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
class TestAgainstAnotherLibrary:
    def test_the_extrinsic_decodes_to_what_was_signed_and_encodes_to_the_same_bytes(self, case: dict[str, Any]) -> None:
        data = unhex(case["extrinsic"])
        decoded = decode_extrinsic(data)
        assert isinstance(decoded, Signed)
        assert decoded.extra == Extra(case["nonce"], era=era_of(case), tip=int(case["tip"]))
        assert decoded.call == unhex(case["call"])
        assert decoded.address.value == unhex(case["public"])
        assert decoded.encode() == data

    def test_the_payload_is_the_same(self, case: dict[str, Any]) -> None:
        extra = Extra(case["nonce"], era=era_of(case), tip=int(case["tip"]))
        assert signing_payload(unhex(case["call"]), extra, implicit(case)) == unhex(case["payload"])

    def test_the_signature_holds_where_the_signer_is_an_account(self, case: dict[str, Any]) -> None:
        decoded = decode_extrinsic(unhex(case["extrinsic"]))
        assert isinstance(decoded, Signed)
        account = decoded.address.account
        assert (account is None) == (case["signer"] == "ecdsa")
        if account is not None:
            assert verify(decoded.signature, unhex(case["payload"]), account)
            assert not verify(decoded.signature, unhex(case["payload"]) + b"\x00", account)


def test_a_bare_extrinsic_is_a_version_and_a_call() -> None:
    assert Bare(b"\x00\x00\x00").encode().hex() == "1004000000"
    assert Bare(b"\x00\x00\x00", version=5).encode().hex() == "1005000000"


def test_a_hash_covers_the_length() -> None:
    data = Bare(b"\x00\x00\x00").encode()
    assert extrinsic_hash(data) == blake2_256(bytes.fromhex("1004000000"))


@pytest.mark.parametrize(("call_bytes", "is_hashed"), [(256 - 4 - 73, False), (256 - 4 - 73 + 1, True)])
def test_a_payload_of_more_than_256_bytes_is_hashed(call_bytes: int, is_hashed: bool) -> None:
    call, extra, rest = bytes(call_bytes), Extra(0), Implicit(1, 1, bytes(32), bytes(32))
    whole = call + extra.encode() + rest.encode()
    assert (len(whole) > 256) == is_hashed
    assert signing_payload(call, extra, rest) == (blake2_256(whole) if is_hashed else whole)


def test_a_hash_of_the_metadata_is_part_of_the_payload() -> None:
    with_hash = Implicit(1, 1, bytes(32), bytes(32), b"\x07" * 32)
    assert with_hash.encode()[72:] == b"\x01" + b"\x07" * 32
    assert Implicit(1, 1, bytes(32), bytes(32)).encode()[72:] == b"\x00"


@given(st.sampled_from(Scheme), calls, extras)
def test_what_is_signed_holds_when_it_is_decoded(scheme: Scheme, call: bytes, extra: Extra) -> None:
    alice, rest = dev_account("Alice", scheme), Implicit(1, 2, GENESIS, GENESIS)
    decoded = decode_extrinsic(sign(alice, call, extra, rest).encode())
    assert isinstance(decoded, Signed)
    assert (decoded.address.account, decoded.extra, decoded.call) == (alice.account, extra, call)
    assert verify(decoded.signature, signing_payload(decoded.call, decoded.extra, rest), alice.account)


@given(extrinsics)
def test_an_extrinsic_survives_its_bytes(extrinsic: Extrinsic) -> None:
    assert decode_extrinsic(extrinsic.encode()) == extrinsic


@given(extrinsics, st.data())
def test_a_truncated_extrinsic_is_refused_in_one_line(extrinsic: Extrinsic, data: st.DataObject) -> None:
    encoded = extrinsic.encode()
    with pytest.raises(CodecError) as refusal:
        decode_extrinsic(encoded[: data.draw(st.integers(0, len(encoded) - 1))])
    assert "\n" not in str(refusal.value)


@given(st.builds(Signed, addresses, signatures, extras, st.just(b"")), st.data())
def test_a_truncated_body_under_a_right_length_is_refused(extrinsic: Signed, data: st.DataObject) -> None:
    body = extrinsic.encode()[2:]
    with pytest.raises(CodecError):
        decode_extrinsic(encode_bytes(body[: data.draw(st.integers(0, len(body) - 1))]))


@given(extrinsics, st.data())
def test_a_mutated_extrinsic_decodes_to_its_own_bytes_or_is_refused(extrinsic: Extrinsic, data: st.DataObject) -> None:
    mutated = bytearray(extrinsic.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CodecError):
        assert decode_extrinsic(bytes(mutated)).encode() == bytes(mutated)


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_themselves_or_are_refused(data: bytes) -> None:
    for candidate in (data, encode_bytes(data), encode_bytes(b"\x84" + data)):
        with suppress(CodecError):
            assert decode_extrinsic(candidate).encode() == candidate


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "1 bytes expected, 0 left"),
        (b"\x00", "1 bytes expected, 0 left"),  # a length of 0: no version
        (b"\x10\x04\x00\x00\x00\x00", "announces 4 bytes, 5 follow"),  # something behind it
        (b"\x14\x04\x00\x00\x00", "announces 5 bytes, 4 follow"),
        (b"\x11\x00\x04\x00\x00\x00", "compact 4 takes more bytes than it needs"),
        (b"\x17" + b"\xff" * 9, "a length is a u32"),
        (encode_bytes(b"\x45\x00"), "a general transaction .0x45. is not accepted, expected a signed one .0x84."),
        (encode_bytes(b"\x85\x00"), "an extrinsic starts with 0x04, 0x05 or 0x84, got 0x85"),
        (encode_bytes(b"\x44\x00"), "got 0x44"),
        (encode_bytes(b"\x03"), "got 0x03"),
        (encode_bytes(b"\x84\x05"), "a MultiAddress starts with"),
        (encode_bytes(b"\x84\x01\x03"), "a MultiSignature starts with"),
        (encode_bytes(b"\x84\x01\x00" + bytes(64) + b"\x10\x00"), "an era of period 2"),
        (encode_bytes(b"\x84\x01\x00" + bytes(65) + b"\x07" + b"\xff" * 5), "a nonce is a u32, got 1099511627775"),
        (encode_bytes(b"\x84\x01\x00" + bytes(66) + b"\x37" + b"\xff" * 17), "a tip is a u128"),
        (encode_bytes(b"\x84\x01\x00" + bytes(67) + b"\x02"), "the mode of CheckMetadataHash is 0 or 1, got 2"),
    ],
)
def test_bytes_that_are_no_extrinsic_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CodecError, match=reason):
        decode_extrinsic(data)


@pytest.mark.parametrize("slip", [lambda: Extra(1 << 32), lambda: Extra(0, tip=1 << 128), lambda: Bare(b"", version=3)])
def test_a_value_that_no_bytes_express_is_a_slip(slip: Any) -> None:
    with pytest.raises(ValueError, match=r"a nonce is a u32|a tip is a u128|version 4 or 5"):
        slip()


@pytest.mark.parametrize(
    ("first", "bare"), [(0x04, True), (0x05, True), (0x84, False), (0x45, False), (0xC4, False), (0x00, True)]
)
def test_an_extrinsic_is_bare_by_its_first_byte_alone(first: int, bare: bool) -> None:
    assert is_bare(encode_bytes(bytes([first]) + b"any runtime's")) is bare
