"""A chain takes an extrinsic, or says why not, in the order and the words of a Substrate runtime."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.small_chain import ALICE, KEPT_HASHES, LONGEST, SmallChain, remark, set_timestamp, signed
from relaycast_node.extrinsic.accounts import dev_account
from relaycast_node.extrinsic.era import Mortal
from relaycast_node.extrinsic.extrinsic import Bare, Extra, MetadataHashMode, Signed, decode_extrinsic, sign
from relaycast_node.extrinsic.signature import AddressKind, MultiAddress, Scheme
from relaycast_node.extrinsic.validity import (
    ValidTransaction,
    decode_validity,
    how_many_fit,
    implicit_of,
    nonce_tag,
    pre_dispatch,
    validate,
)
from relaycast_node.extrinsic.validity_errors import (
    INVALID_TEXTS,
    UNKNOWN_TEXTS,
    Invalid,
    InvalidTransaction,
    TransactionValidityError,
    Unknown,
    UnknownTransaction,
)
from relaycast_trie.exceptions import CodecError
from relaycast_xcm.primitives import U64_MAX, Weight

CHAIN = SmallChain(nonces={ALICE.account: 3})


def of(data: bytes) -> Signed:
    extrinsic = decode_extrinsic(data)
    assert isinstance(extrinsic, Signed)
    return extrinsic


def refusal(extrinsic: Signed | Bare, view: SmallChain = CHAIN) -> TransactionValidityError:
    with pytest.raises(TransactionValidityError) as refused:
        validate(extrinsic, view)
    return refused.value


def test_the_next_nonce_requires_nothing_and_provides_its_tag() -> None:
    valid = validate(of(signed(CHAIN, ALICE, 3)), CHAIN)
    tag = ALICE.account + b"\x03\x00\x00\x00"
    assert valid == ValidTransaction(priority=1, provides=(tag,), longevity=U64_MAX - 11)


def test_a_higher_nonce_requires_the_tag_of_the_nonce_below() -> None:
    valid = validate(of(signed(CHAIN, ALICE, 7)), CHAIN)
    assert (valid.requires, valid.provides) == ((nonce_tag(ALICE.account, 6),), (nonce_tag(ALICE.account, 7),))


@pytest.mark.parametrize(("tip", "per_block", "priority"), [(0, 5, 5), (9, 5, 50), (1 << 99, 5, U64_MAX)])
def test_priority_is_the_tip_and_one_for_each_that_fits_a_block(tip: int, per_block: int, priority: int) -> None:
    chain = replace(CHAIN, per_block=per_block)
    assert validate(of(signed(chain, ALICE, 3, tip=tip)), chain).priority == priority


@pytest.mark.parametrize("scheme", Scheme)
def test_every_kind_of_key_is_taken(scheme: Scheme) -> None:
    bob = dev_account("Bob", scheme)
    chain = SmallChain(balances={bob.account: 100})
    assert validate(of(signed(chain, bob, 0)), chain).provides == (nonce_tag(bob.account, 0),)


def test_an_era_says_how_long_an_extrinsic_is_valid_from_the_next_block_on() -> None:
    era = Mortal.starting_at(10, period=16)
    assert era.death(11) == 26
    assert validate(of(signed(CHAIN, ALICE, 3, era=era)), CHAIN).longevity == 26 - 11


def test_an_era_that_ends_with_the_head_is_another_era_for_the_next_block() -> None:
    old = replace(CHAIN, block_number=9)
    data = signed(old, ALICE, 3, era=Mortal.starting_at(8, period=4))
    assert validate(of(data), replace(CHAIN, block_number=10)).longevity == 1
    assert refusal(of(data), replace(CHAIN, block_number=12)).args[0] is Invalid.BAD_PROOF


def test_an_era_whose_first_block_is_the_next_one_has_no_hash_to_sign() -> None:
    extrinsic = replace(of(signed(CHAIN, ALICE, 3)), extra=Extra(3, era=Mortal.starting_at(11, period=64)))
    assert refusal(extrinsic).args[0] is Invalid.ANCIENT_BIRTH_BLOCK


def test_an_era_whose_first_block_is_forgotten_is_refused_as_ancient() -> None:
    era = Mortal.starting_at(10, period=1024)
    extrinsic = of(signed(CHAIN, ALICE, 3, era=era))
    assert validate(extrinsic, replace(CHAIN, block_number=10 + KEPT_HASHES)).longevity == 1024 - KEPT_HASHES - 1
    later = replace(CHAIN, block_number=11 + KEPT_HASHES)
    assert str(refusal(extrinsic, later)) == "Transaction has an ancient birth block"


def test_a_low_nonce_is_stale() -> None:
    assert str(refusal(of(signed(CHAIN, ALICE, 2)))) == "Transaction is outdated"


@pytest.mark.parametrize(
    "other",
    [
        replace(CHAIN, spec_version=1004),
        replace(CHAIN, transaction_version=8),
        replace(CHAIN, genesis_hash=bytes(32)),
    ],
)
def test_what_was_signed_for_another_chain_or_version_has_a_bad_signature(other: SmallChain) -> None:
    assert str(refusal(of(signed(other, ALICE, 3)))) == "Transaction has a bad signature"


@pytest.mark.parametrize(("balance", "tip", "pays"), [(10, 0, True), (9, 0, False), (14, 5, False), (15, 5, True)])
def test_a_fee_must_be_paid_with_the_tip(balance: int, tip: int, pays: bool) -> None:
    chain = SmallChain(balances={ALICE.account: balance})
    extrinsic = of(signed(chain, ALICE, 0, tip=tip))
    if pays:
        assert validate(extrinsic, chain).priority == tip + 1
    else:
        assert str(refusal(extrinsic, chain)) == "Inability to pay some fees (e.g. account balance too low)"


def test_an_account_that_does_not_exist_cannot_pay_even_where_it_has_a_nonce() -> None:
    chain = SmallChain(balances={}, nonces={ALICE.account: 9})
    assert refusal(of(signed(chain, ALICE, 0)), chain).args[0] is Invalid.PAYMENT


def test_what_no_block_has_room_for_exhausts_resources() -> None:
    extrinsic = of(signed(CHAIN, ALICE, 3, call=remark(bytes(LONGEST))))
    assert str(refusal(extrinsic)) == "Transaction would exhaust the block limits"


@pytest.mark.parametrize("kind", [AddressKind.INDEX, AddressKind.RAW, AddressKind.ADDRESS32, AddressKind.ADDRESS20])
def test_an_address_that_is_no_account_cannot_be_looked_up(kind: AddressKind) -> None:
    sizes = {AddressKind.ADDRESS32: 32, AddressKind.ADDRESS20: 20}
    extrinsic = replace(of(signed(CHAIN, ALICE, 3)), address=MultiAddress(kind, bytes(sizes.get(kind, 0))))
    assert refusal(extrinsic).encode_result().hex() == "010100"


def test_a_hash_of_the_metadata_cannot_be_looked_up() -> None:
    extrinsic = of(signed(CHAIN, ALICE, 3, mode=MetadataHashMode.ENABLED))
    refused = refusal(extrinsic)
    assert isinstance(refused, UnknownTransaction)
    assert refused.rust_name == "CannotLookup"


def test_a_bare_call_has_no_validator_and_an_inherent_is_not_for_the_pool() -> None:
    assert refusal(Bare(remark(b""))).encode_result().hex() == "010101"
    assert refusal(Bare(set_timestamp(6))).encode_result().hex() == "010009"
    assert refusal(of(signed(CHAIN, ALICE, 3, call=set_timestamp(6)))).args[0] is Invalid.MANDATORY_VALIDATION


def test_a_call_that_does_not_decode_is_a_codec_error() -> None:
    for extrinsic in (Bare(b"\xff\xff"), Bare(b""), of(signed(CHAIN, ALICE, 3, call=remark(b"") + b"\x00"))):
        with pytest.raises(CodecError):
            validate(extrinsic, CHAIN)


def test_the_first_check_that_fails_is_the_answer() -> None:
    """Address, era, metadata hash, signature, nonce, weight, fee: each is wrong with all behind it."""
    poor = replace(CHAIN, balances={ALICE.account: 0})
    ancient = Mortal.starting_at(11, period=64)
    huge = remark(bytes(LONGEST))
    wrong = of(signed(poor, ALICE, 2, call=huge))
    steps = [
        (
            replace(wrong, address=MultiAddress(AddressKind.RAW, b""), extra=Extra(2, era=ancient)),
            Unknown.CANNOT_LOOKUP,
        ),
        (replace(wrong, extra=Extra(2, era=ancient, mode=MetadataHashMode.ENABLED)), Invalid.ANCIENT_BIRTH_BLOCK),
        (replace(wrong, extra=Extra(2, mode=MetadataHashMode.ENABLED), call=huge), Unknown.CANNOT_LOOKUP),
        (replace(wrong, extra=Extra(2, tip=1)), Invalid.BAD_PROOF),
        (wrong, Invalid.STALE),
        (of(signed(poor, ALICE, 3, call=huge)), Invalid.EXHAUSTS_RESOURCES),
        (of(signed(poor, ALICE, 3)), Invalid.PAYMENT),
    ]
    assert [refusal(extrinsic, poor).args[0] for extrinsic, _ in steps] == [reason for _, reason in steps]


def test_nobody_is_a_bad_signer() -> None:
    """The account of zeros is a point of ed25519 that anybody signs for, where small points are accepted."""
    nobody = replace(of(signed(CHAIN, ALICE, 3)), address=MultiAddress.of(bytes(32)))
    assert refusal(nobody).args[0] in {Invalid.BAD_PROOF, Invalid.BAD_SIGNER}


def test_before_a_dispatch_a_nonce_that_is_too_high_is_of_the_future() -> None:
    pre_dispatch(of(signed(CHAIN, ALICE, 3)), CHAIN)
    with pytest.raises(InvalidTransaction, match="will be valid in the future"):
        pre_dispatch(of(signed(CHAIN, ALICE, 4)), CHAIN)


def test_before_a_dispatch_an_inherent_passes_and_another_bare_call_does_not() -> None:
    pre_dispatch(Bare(set_timestamp(6)), CHAIN)
    with pytest.raises(UnknownTransaction, match="unsigned validator"):
        pre_dispatch(Bare(remark(b"")), CHAIN)
    with pytest.raises(InvalidTransaction, match="must not be validated"):
        pre_dispatch(of(signed(CHAIN, ALICE, 3, call=set_timestamp(6))), CHAIN)


@pytest.mark.parametrize(
    ("weight", "length", "count"),
    [
        (Weight(100, 10), 10, 10),  # time is scarce
        (Weight(10, 50), 10, 2),  # proof is scarce
        (Weight(1, 1), 500, 2),  # length is scarce
        (Weight.ZERO, 0, 100),  # nothing is counted as 1
        (Weight.MAX, 10**9, 1),  # more than a block is one block
    ],
)
def test_the_scarcest_resource_says_how_many_fit_a_block(weight: Weight, length: int, count: int) -> None:
    assert how_many_fit(weight, length, block_weight=Weight(1_000, 100), block_length=1_000) == count


def test_a_valid_transaction_has_the_bytes_of_sp_runtime() -> None:
    valid = ValidTransaction(priority=1, requires=(b"\x01",), provides=(b"\x02\x03",), longevity=64, propagate=True)
    expected = "00" + "0100000000000000" + "040401" + "04080203" + "4000000000000000" + "01"
    assert valid.encode_result().hex() == expected


@pytest.mark.parametrize(
    ("error", "encoded", "rust_name"),
    [
        (InvalidTransaction(Invalid.CALL), "010000", "Call"),
        (InvalidTransaction(Invalid.PAYMENT), "010001", "Payment"),
        (InvalidTransaction(Invalid.ANCIENT_BIRTH_BLOCK), "010005", "AncientBirthBlock"),
        (InvalidTransaction(Invalid.CUSTOM, 200), "010007c8", "Custom(200)"),
        (InvalidTransaction(Invalid.BAD_SIGNER), "01000a", "BadSigner"),
        (UnknownTransaction(Unknown.CANNOT_LOOKUP), "010100", "CannotLookup"),
        (UnknownTransaction(Unknown.NO_UNSIGNED_VALIDATOR), "010101", "NoUnsignedValidator"),
        (UnknownTransaction(Unknown.CUSTOM, 3), "01010203", "Custom(3)"),
    ],
)
def test_a_refusal_has_the_bytes_and_the_name_of_sp_runtime(
    error: InvalidTransaction | UnknownTransaction, encoded: str, rust_name: str
) -> None:
    assert error.encode_result().hex() == encoded
    assert error.rust_name == rust_name
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args) == (type(error), error.args)


def test_every_reason_has_words() -> None:
    assert INVALID_TEXTS.keys() == set(Invalid)
    assert UNKNOWN_TEXTS.keys() == set(Unknown)


@given(st.data())
def test_a_mutated_signed_extrinsic_is_refused_by_a_chain_in_one_of_three_ways(data: st.DataObject) -> None:
    mutated = bytearray(signed(CHAIN, ALICE, 3, era=Mortal.starting_at(10, period=64), call=remark(b"hello")))
    at = data.draw(st.integers(0, len(mutated) - 1))
    mutated[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises((CodecError, InvalidTransaction, UnknownTransaction)) as refused:
        validate(decode_extrinsic(bytes(mutated)), CHAIN)
    assert "\n" not in str(refused.value)


def test_the_implicit_of_an_immortal_extrinsic_is_the_genesis_twice() -> None:
    rest = implicit_of(Extra(0), CHAIN)
    assert rest.genesis_hash == rest.birth_hash == CHAIN.genesis_hash
    assert sign(ALICE, remark(b""), Extra(3), rest).encode() == signed(CHAIN, ALICE, 3)


refusals = st.one_of(
    st.builds(
        lambda reason, custom: InvalidTransaction(reason, custom if reason is Invalid.CUSTOM else 0),
        st.sampled_from(Invalid),
        st.integers(0, 255),
    ),
    st.builds(
        lambda reason, custom: UnknownTransaction(reason, custom if reason is Unknown.CUSTOM else 0),
        st.sampled_from(Unknown),
        st.integers(0, 255),
    ),
)


@given(refusals)
def test_a_refusal_is_read_as_it_is_written(refusal: TransactionValidityError) -> None:
    with pytest.raises(type(refusal)) as read:
        decode_validity(refusal.encode_result())
    assert read.value.args == refusal.args


@given(st.integers(0, U64_MAX), st.lists(st.binary()), st.lists(st.binary()), st.integers(0, U64_MAX), st.booleans())
def test_a_valid_transaction_is_read_as_it_is_written(
    priority: int, requires: list[bytes], provides: list[bytes], longevity: int, propagate: bool
) -> None:
    valid = ValidTransaction(
        priority=priority,
        requires=tuple(requires),
        provides=tuple(provides),
        longevity=longevity,
        propagate=propagate,
    )
    assert decode_validity(valid.encode_result()) == valid
    with pytest.raises(CodecError):
        decode_validity(valid.encode_result()[:-1])


@pytest.mark.parametrize("data", [b"", b"\x01\x02\x00", b"\x01\x00\x63", b"\x01\x01\x03", b"\x01\x00\x07"])
def test_a_verdict_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode_validity(data)
