"""Messages: VersionedXcm V5 as bytes and as JSON, its limits, and the layouts that the drafts give to ``Publish``."""

import json
import pickle
import re
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import encode_bytes, encode_compact
from relaycast_xcm import (
    INSTRUCTION_NAMES,
    PUBLISH_INDEX,
    V5,
    AccountId32,
    AccountIndex64,
    AccountKey20,
    All,
    AllCounted,
    AllOf,
    AllOfCounted,
    Asset,
    BoundExceeded,
    BuyExecution,
    ByFork,
    ByGenesis,
    ClearError,
    ClearOrigin,
    ClearTopic,
    Definite,
    DepositAsset,
    DescendOrigin,
    Ethereum,
    GeneralIndex,
    GeneralKey,
    GlobalConsensus,
    Instruction,
    Json,
    Location,
    NetworkName,
    OnlyChild,
    OriginKind,
    PalletInstance,
    Parachain,
    PayFees,
    Plurality,
    Publish,
    PublishItem,
    PublishItems,
    RefundSurplus,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    Transact,
    TransferAsset,
    Trap,
    UnpaidExecution,
    UnsupportedVariant,
    UnsupportedVersion,
    Weight,
    Wild,
    WildFungibility,
    WithdrawAsset,
    Xcm,
    XcmCodec,
    XcmFlavour,
    annotate,
    assets,
    decode_versioned_xcm,
    encode_versioned_xcm,
)
from relaycast_xcm.location import (
    AtLeastProportion,
    BodyIndex,
    BodyName,
    BodyVoice,
    Fraction,
    Junction,
    Members,
    Moniker,
    MoreThanProportion,
)
from relaycast_xcm.primitives import U64_MAX, U128_MAX
from shared_vectors import Case, shared, unhex
from vector_fields import VectorSource, hexed, scenario
from xcm.message_vectors import XcmBytes, XcmMalformed, XcmVector, message_json
from xcm.xcm_strategies import messages
from xcm.xcm_vectors import vectors_of
from yielded_vectors import yields

KEY = bytes(32)
NATIVE = Location.here()
TOPIC = bytes([7]) * 32
PUBLISH = Publish(KEY, b"\x01\x02\x03", 0)


def nested(depth: int, innermost: Xcm = ()) -> Xcm:
    """Return a message in which ``depth`` messages stand inside one another."""
    message = innermost
    for _ in range(depth - 1):
        message = (SetAppendix(message),)
    return message


@pytest.mark.parametrize("case", vectors_of("xcm_v5") + vectors_of("publish"))
def test_a_message_has_the_bytes_of_its_vector(case: Case) -> None:
    message = V5.from_json(case["human"])
    assert V5.encode(message) == unhex(case["enc"])
    assert V5.decode(unhex(case["enc"])) == message


def test_the_shared_vectors_hold_no_other_bytes() -> None:
    vectors = json.loads(shared("vectors/smoldot/scale_hash_xcm.json").read_text())
    for case in vectors["xcm_v5"]:
        assert V5.encode(V5.from_json(case["human"])) == unhex(case["enc"])
        assert V5.encode(V5.decode(unhex(case["enc"]))) == unhex(case["enc"])
    for case in vectors["locations_v5"]:
        assert b"\x05" + Location.from_json(case["human"]["V5"]).encode() == unhex(case["enc"])
    assert len(vectors["xcm_v5"]) == len(vectors_of("xcm_v5"))


def written(name: str, why: str, source: VectorSource, *message: Instruction) -> XcmBytes:
    """Return the vector of a message, as JSON and as bytes."""
    encoded = V5.encode(message)
    return XcmBytes(
        id=f"xcm/bytes/{name}", why=why, source=source, message=message_json(encoded), encoded=hexed(encoded)
    )


def refused(name: str, why: str, source: VectorSource, encoded: bytes, complaint: str) -> XcmMalformed:
    """Return the vector of bytes that are refused with ``complaint``."""
    with pytest.raises(CodecError, match=re.escape(complaint)):
        V5.decode(encoded)
    return XcmMalformed(id=f"xcm/malformed/{name}", why=why, source=source, encoded=hexed(encoded))


@yields("xcm/messages")
def test_a_publish_is_its_index_its_key_its_value_and_its_time_to_live() -> Iterator[XcmVector]:
    published = scenario("XCM Publish Instruction / Successful publish")
    assert V5.encode((PUBLISH,)).hex() == "0504" + "34" + KEY.hex() + "0c010203" + "00000000"
    yield written("publish", "the instruction of the scenario", published, PUBLISH)


@yields("xcm/messages")
@pytest.mark.parametrize("length", [0, 1, 63, 64, 1_024, 2_048])
def test_a_compact_length_precedes_a_value(length: int) -> Iterator[XcmVector]:
    why = f"a value of {length} bytes and the compact length before it"
    published = Publish(bytes([0xAB]) * 32, bytes(length), 100)
    yield written(f"publish-length-{length}", why, VectorSource(trap="compact lengths"), published)


@yields("xcm/messages")
@pytest.mark.parametrize("ttl", [1, 0x0102_0304, (1 << 32) - 1])
def test_a_time_to_live_takes_four_bytes(ttl: int) -> Iterator[XcmVector]:
    finite = scenario("XCM Publish Instruction / Publish with finite TTL")
    why = "a time to live is a u32 of fixed size, little-endian"
    yield written(f"publish-ttl-{ttl}", why, finite, Publish(bytes(range(32)), b"\x01", ttl))


@yields("xcm/messages")
@pytest.mark.parametrize("count", [0, 2, 16, 63, 64, 100])
def test_a_message_holds_up_to_100_publications(count: int) -> Iterator[XcmVector]:
    source = VectorSource(upstream="publish_from_parachain_works")
    published = [Publish(bytes([at]) * 32, b"", 0) for at in range(count)]
    yield written(f"publish-times-{count}", f"{count} instructions: a decoder takes up to 100", source, *published)


TWO = assets([Asset.fungible(NATIVE, 10), Asset.fungible(Location.parachain(1_000), 7)])
LIMIT = Weight(1_000_000_000, 65_536)
INSTRUCTIONS: dict[str, Instruction] = {
    "withdraw-asset": WithdrawAsset(TWO),
    "withdraw-nothing": WithdrawAsset(()),
    "withdraw-20": WithdrawAsset(assets(Asset.fungible(Location.parachain(at), 1) for at in range(20))),
    "transfer-asset": TransferAsset(TWO, Location.parachain(2_000)),
    "transact": Transact(OriginKind.NATIVE, None, b"\x01\x02"),
    "transact-weight": Transact(OriginKind.XCM, Weight(5, 6), bytes(70)),
    "transact-sovereign": Transact(OriginKind.SOVEREIGN_ACCOUNT, None, b""),
    "transact-superuser": Transact(OriginKind.SUPERUSER, Weight(U64_MAX, 0), b"\xff"),
    "clear-origin": ClearOrigin(),
    "descend-origin": DescendOrigin((PalletInstance(50),)),
    "descend-nowhere": DescendOrigin(()),
    "deposit-definite": DepositAsset(Definite(TWO), Location.account(TOPIC)),
    "deposit-all": DepositAsset(Wild(All()), Location.parent()),
    "deposit-all-of": DepositAsset(Wild(AllOf(NATIVE, WildFungibility.NON_FUNGIBLE)), Location.parent()),
    "deposit-all-counted": DepositAsset(Wild(AllCounted(1)), Location.sibling(2_000)),
    "deposit-all-of-counted": DepositAsset(Wild(AllOfCounted(Location.parent(), WildFungibility.FUNGIBLE, 70)), NATIVE),
    "buy-execution": BuyExecution(Asset.fungible(NATIVE, 1), None),
    "buy-execution-limited": BuyExecution(Asset.fungible(Location.parent(), U128_MAX), LIMIT),
    "refund-surplus": RefundSurplus(),
    "clear-error": ClearError(),
    "trap": Trap(0),
    "trap-u64": Trap(U64_MAX),
    "set-topic": SetTopic(TOPIC),
    "clear-topic": ClearTopic(),
    "unpaid-execution": UnpaidExecution(),
    "unpaid-execution-limited": UnpaidExecution(LIMIT, Location.parachain(1_000)),
    "pay-fees": PayFees(Asset.fungible(NATIVE, 12_345)),
}


@yields("xcm/messages")
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_instruction_alone_has_its_bytes(name: str) -> Iterator[XcmVector]:
    source, instruction = VectorSource(upstream="staging-xcm v5 Instruction"), INSTRUCTIONS[name]
    yield written(name, f"{type(instruction).__name__} alone", source, instruction)


@yields("xcm/messages")
@pytest.mark.parametrize("amount", [1, 63, 64, 1 << 30, U64_MAX, 1 << 64, U128_MAX])
def test_an_amount_is_a_compact_number(amount: int) -> Iterator[XcmVector]:
    source, why = VectorSource(upstream="staging-xcm v5 Instruction"), f"an amount of {amount} as a compact number"
    yield written(f"amount-{amount}", why, source, WithdrawAsset((Asset.fungible(NATIVE, amount),)))


COMPACT_BOUNDS = (0, 1, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 32) - 1)
IN_AN_ORIGIN = VectorSource(upstream="staging-xcm v5 Junction")
JUNCTIONS: dict[str, Junction] = {
    **{f"parachain-{para_id}": Parachain(para_id) for para_id in COMPACT_BOUNDS},
    "account-32": AccountId32(None, bytes(range(32))),
    "account-32-polkadot": AccountId32(NetworkName.POLKADOT, bytes(range(32))),
    "account-32-genesis": AccountId32(ByGenesis(TOPIC), bytes(range(32))),
    "account-index": AccountIndex64(NetworkName.KUSAMA, U64_MAX),
    "account-20": AccountKey20(Ethereum(1), bytes(range(20))),
    "pallet": PalletInstance(255),
    "index": GeneralIndex(U128_MAX),
    "key": GeneralKey(3, b"abc".ljust(32, b"\x00")),
    "only-child": OnlyChild(),
    "treasury": Plurality(BodyName.TREASURY, BodyVoice.VOICE),
    "moniker": Plurality(Moniker(b"\x01\x02\x03\x04"), Members(3)),
    "body-index": Plurality(BodyIndex(64), Fraction(1, 2)),
    "unit": Plurality(BodyName.UNIT, AtLeastProportion(2, 3)),
    "executive": Plurality(BodyName.EXECUTIVE, MoreThanProportion(1, 1 << 30)),
    "consensus-polkadot": GlobalConsensus(NetworkName.POLKADOT),
    "consensus-fork": GlobalConsensus(ByFork(1 << 40, TOPIC)),
    "consensus-bitcoin": GlobalConsensus(NetworkName.BITCOIN_CORE),
    "consensus-cash": GlobalConsensus(NetworkName.BITCOIN_CASH),
    "consensus-bulletin": GlobalConsensus(NetworkName.POLKADOT_BULLETIN),
    "consensus-ethereum": GlobalConsensus(Ethereum(11_155_111)),
}


@yields("xcm/messages")
@pytest.mark.parametrize("name", JUNCTIONS)
def test_a_junction_has_its_bytes(name: str) -> Iterator[XcmVector]:
    why = f"{type(JUNCTIONS[name]).__name__} in an origin"
    yield written(f"junction-{name}", why, IN_AN_ORIGIN, DescendOrigin((JUNCTIONS[name],)))


@yields("xcm/messages")
def test_an_interior_has_up_to_eight_junctions_and_a_location_255_parents() -> Iterator[XcmVector]:
    for count in range(2, 9):
        steps = tuple(GeneralIndex(at) for at in range(count))
        yield written(f"interior-{count}", f"X{count}: {count} junctions", IN_AN_ORIGIN, DescendOrigin(steps))
    highest = UnpaidExecution(None, Location.new(255, OnlyChild()))
    yield written("parents-255", "as many parents as a u8 counts", IN_AN_ORIGIN, highest)


@yields("xcm/messages")
def test_messages_nest_eight_deep_and_no_deeper() -> Iterator[XcmVector]:
    depth, complaint = VectorSource(trap="containers nest at most 8 deep"), "nested deeper than 8 levels"
    yield written("nested", "a handler and an appendix", depth, SetErrorHandler((Trap(1),)), SetAppendix((PUBLISH,)))
    yield written("nested-8", "eight messages inside one another", depth, *nested(8, (ClearOrigin(),)))
    with pytest.raises(ValueError, match="at most 8 deep"):
        V5.encode(nested(9))
    three = (DescendOrigin((PalletInstance(1),)), WithdrawAsset((Asset.fungible(NATIVE, 1),)), SetAppendix((PUBLISH,)))
    yield written("nested-beside", "nine containers beside one another", depth, *(three * 3))
    others = b"\x05" + encode_compact(7) + b"\x0b\x01\x04\x01" * 3 + b"\x16\x04\x0a" * 3 + b"\x16\x04" * 8 + b"\x0a"
    yield refused("nested-9-after-others", "nine deep, behind others that ended", depth, others, complaint)
    too_deep = b"\x05" + b"\x04\x16" * 8 + b"\x04\x0a"
    yield refused("nested-9", "nine messages inside one another", depth, too_deep, complaint)
    interior = b"\x05" + b"\x04\x16" * 7 + b"\x04\x0b\x01\x00\x04"
    yield refused("nested-interior", "an interior is the ninth container", depth, interior, complaint)


@yields("xcm/messages")
def test_a_message_has_at_most_100_instructions_with_those_inside() -> Iterator[XcmVector]:
    count = VectorSource(trap="nested instructions are counted, at most 100")
    yield written("count-100", "one instruction with 99 inside", count, SetAppendix((ClearOrigin(),) * 99))
    many = b"\x05\x04\x16" + encode_compact(100) + b"\x0a" * 100
    yield refused(
        "count-101",
        "one instruction with 100 inside",
        count,
        many,
        "at most 100 are decoded at byte 3",
    )
    flat = b"\x05" + encode_compact(101) + b"\x0a" * 101
    yield refused(
        "count-101-flat",
        "101 instructions one after another",
        count,
        flat,
        "at most 100 are decoded at byte 1",
    )
    with pytest.raises(ValueError, match="101 instructions"):
        V5.encode((ClearOrigin(),) * 101)
    announced = b"\x05" + encode_compact(1 << 30)
    why = "a count of 2^30 and nothing behind it"
    yield refused("count-announced", why, count, announced, "instructions, at most 100")


@yields("xcm/messages")
@pytest.mark.parametrize("number", range(40))
def test_a_random_message_has_its_bytes(number: int) -> Iterator[XcmVector]:
    random = Random(f"xcm 7 {number}")
    message = [drawn(random) for _ in range(random.randrange(1, 6))]
    yield written(f"random-{number}", f"a random message, number {number}", VectorSource(trap="encoding"), *message)


def drawn(random: Random) -> Instruction:
    amount = random.getrandbits(random.choice((4, 12, 40, 100))) + 1
    fee = Asset.fungible(place(random), amount)
    weight = Weight(random.getrandbits(40), random.getrandbits(20))
    return random.choice(
        (
            Publish(random.randbytes(32), random.randbytes(random.choice((0, 5, 40, 90))), random.getrandbits(32)),
            Publish(random.randbytes(32), random.randbytes(random.choice((0, 5, 40, 90))), 0),
            WithdrawAsset(assets([fee, Asset.fungible(place(random), 5)])),
            TransferAsset((fee,), place(random)),
            DepositAsset(Wild(AllCounted(random.randrange(90))), place(random)),
            BuyExecution(fee, random.choice((None, weight))),
            UnpaidExecution(random.choice((None, weight)), random.choice((None, place(random)))),
            DescendOrigin(place(random).interior),
            SetAppendix((RefundSurplus(), DepositAsset(Wild(All()), place(random)))),
            Trap(random.getrandbits(random.choice((5, 60)))),
            SetTopic(random.randbytes(32)),
            Transact(OriginKind.NATIVE, random.choice((None, weight)), random.randbytes(random.randrange(80))),
        )
    )


def place(random: Random) -> Location:
    steps = [
        Parachain(random.getrandbits(random.choice((6, 14, 32)))),
        AccountId32(random.choice((None, NetworkName.KUSAMA)), random.randbytes(32)),
        PalletInstance(random.randrange(256)),
        GeneralIndex(random.getrandbits(random.choice((6, 70)))),
    ]
    return Location.new(random.randrange(3), random.sample(steps, random.randrange(4)))


ONE = b"\x05\x04"
PUBLISHED = ONE + b"\x34" + KEY
WITHDRAWN = ONE + b"\x00\x04" + bytes(3)
MANY = b"".join(b"\x00\x01\x00" + encode_compact(para_id) + b"\x00\x04" for para_id in range(21))
NO_MESSAGE = VectorSource(trap="bytes that do not decode")
MALFORMED: dict[str, tuple[str, bytes, str]] = {
    "empty": ("no byte", b"", "1 bytes expected, 0 left at byte 0"),
    "version-4": ("version 4", b"\x04\x04\x0a", "version 4 is not supported, only 5 at byte 0"),
    "version-6": ("version 6", b"\x06\x04\x0a", "version 6 is not supported, only 5 at byte 0"),
    "no-count": ("a version alone", b"\x05", "1 bytes expected, 0 left at byte 1"),
    "no-instruction": ("one instruction announced", ONE, "1 bytes expected, 0 left at byte 2"),
    "left-over": ("a byte behind the message", ONE + b"\x0a\x00", "1 bytes left over at byte 3"),
    "instruction-53": ("the first index behind Publish", ONE + b"\x35", "Instruction has no variant 53 at byte 2"),
    "instruction-255": ("the last index", ONE + b"\xff", "Instruction has no variant 255 at byte 2"),
    "count-padded": ("a count in two bytes that fits one", b"\x05\x05\x00\x0a", "more bytes than it needs at byte 1"),
    "value-padded": ("a value's length in two bytes that fits one", PUBLISHED + b"\x05\x00\x01" + bytes(4), "byte 35"),
    "value-2049": ("a value of 2,049 bytes", PUBLISHED + encode_bytes(bytes(2_049)) + bytes(4), "allowed at byte 35"),
    "value-announced": ("a value of 2,049 bytes, cut off", PUBLISHED + encode_compact(2_049) + bytes(9), "at byte 35"),
    "ttl-cut": ("three bytes of a time to live", PUBLISHED + b"\x04\x01" + bytes(3), "expected, 3 left at byte 37"),
    "key-cut": ("31 bytes of a key", ONE + b"\x34" + bytes(31), "32 bytes expected, 31 left at byte 3"),
    "interior-9": ("nine junctions", ONE + b"\x0b\x09" + b"\x04\x01" * 9, "Junctions has no variant 9 at byte 3"),
    "junction-10": ("a junction that V5 does not have", ONE + b"\x0b\x01\x0a", "Junction has no variant 10 at byte 4"),
    "network-4": ("a network that V5 no longer has", ONE + b"\x0b\x01\x09\x04", "NetworkId has no variant 4 at byte 5"),
    "network-11": ("a network that V5 does not have", ONE + b"\x0b\x01\x09\x0b", "has no variant 11 at byte 5"),
    "parachain-padded": ("an id of 63 in two bytes", ONE + b"\x0b\x01\x00\xfd\x00", "bytes than it needs at byte 5"),
    "parachain-u33": ("an id of 2^32", ONE + b"\x0b\x01\x00\x07\x00\x00\x00\x00\x01", "got 4294967296 at byte 5"),
    "body-10": ("a body that V5 does not have", ONE + b"\x0b\x01\x08\x0a\x00", "BodyId has no variant 10 at byte 5"),
    "part-5": ("a part that V5 does not have", ONE + b"\x0b\x01\x08\x00\x05", "BodyPart has no variant 5 at byte 6"),
    "option-2": ("an Option that is neither there nor not", ONE + b"\x2f\x00\x02", "with 0 or 1, got 2 at byte 4"),
    "weight-limit-2": ("a third kind of weight limit", ONE + b"\x2f\x02", "Option starts with 0 or 1, got 2 at byte 3"),
    "origin-kind-4": ("a fifth kind of origin", ONE + b"\x06\x04\x00\x00", "OriginKind has no variant 4 at byte 3"),
    "amount-zero": ("an asset of amount 0", WITHDRAWN + b"\x00", "a fungible asset of amount zero at byte 7"),
    "amount-padded-5": ("an amount of 2^31 in five bytes", WITHDRAWN + b"\x07\x00\x00\x00\x80\x00", "needs at byte 7"),
    "amount-padded-4": ("an amount of 1 in four bytes", WITHDRAWN + b"\x03\x01\x00\x00\x00", "than it needs at byte 7"),
    "amount-padded-8": ("an amount of 1 in eight bytes", WITHDRAWN + b"\x13\x01" + bytes(7), "than it needs at byte 7"),
    "parachain-padded-4": ("an id of 2^14 - 1 in four bytes", ONE + b"\x0b\x01\x00\xfe\xff\x00\x00", "needs at byte 5"),
    "amount-u129": ("an amount of 2^128", WITHDRAWN + b"\x37" + bytes(16) + b"\x01", "Compact<u128> is at most"),
    "assets-21": ("21 assets", ONE + b"\x00" + encode_compact(21) + MANY, "at most 20 allowed at byte 3"),
    "assets-repeated": ("one id twice", ONE + b"\x00\x08" + b"\x00\x00\x00\x04" * 2, "assets out of order at byte 3"),
    "assets-unsorted": ("ids that descend", ONE + b"\x00\x08\x01\x00\x00\x04\x00\x00\x00\x04", "of order at byte 3"),
    "filter-2": ("a third kind of filter", ONE + b"\x0d\x02", "AssetFilter has no variant 2 at byte 3"),
    "wild-4": ("a fifth wildcard", ONE + b"\x0d\x01\x04", "WildAsset has no variant 4 at byte 4"),
    "trap-u65": ("a code of 2^64", ONE + b"\x19\x17" + bytes(8) + b"\x01", "got 18446744073709551616 at byte 3"),
    "topic-cut": ("31 bytes of a topic", ONE + b"\x2c" + bytes(31), "32 bytes expected, 31 left at byte 3"),
}
"""Why, the bytes and the complaint."""


@yields("xcm/messages")
@pytest.mark.parametrize("name", MALFORMED)
def test_bytes_that_are_no_message_are_refused_where_they_fail(name: str) -> Iterator[XcmVector]:
    why, encoded, complaint = MALFORMED[name]
    yield refused(name, why, NO_MESSAGE, encoded, complaint)


@yields("xcm/messages")
def test_a_message_that_is_cut_off_is_refused() -> Iterator[XcmVector]:
    whole = V5.encode((DescendOrigin((Parachain(2_000),)), Publish(TOPIC, b"\x01\x02", 9), SetTopic(TOPIC)))
    for length in range(2, len(whole), 7):
        why = f"the first {length} of {len(whole)} bytes of a message"
        yield refused(f"cut-{length}", why, NO_MESSAGE, whole[:length], "left at byte")


@given(messages)
def test_a_message_survives_bytes_and_json(message: Xcm) -> None:
    data = encode_versioned_xcm(message)
    assert decode_versioned_xcm(data) == message
    assert V5.from_json(json.loads(json.dumps(V5.to_json(message)))) == message


@given(st.binary(max_size=200).map(lambda tail: b"\x05" + tail))
@example(b"\x05\xfe\xff\xff\xff")  # a count of a billion
@example(b"\x05\x04\x34" + KEY + b"\xfe\xff\xff\xff")  # a value of a gigabyte
@example(b"\x05\x04\x00\xfe\xff\xff\xff")  # a billion assets
@example(b"\x05" + b"\x04\x16" * 5_000)  # messages inside messages
def test_hostile_bytes_are_refused_or_decode_to_what_encodes_to_them(data: bytes) -> None:
    annotation = annotate(data)
    if annotation.message is not None:
        assert V5.encode(V5.decode(data)) == data
        return
    with pytest.raises(CodecError) as refusal:
        V5.decode(data)
    assert str(refusal.value) == str(annotation.error)
    assert refusal.value.offset <= len(data)


@given(messages.filter(bool), st.data())
def test_a_message_that_is_cut_short_or_longer_is_refused(message: Xcm, data: st.DataObject) -> None:
    encoded = V5.encode(message)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CodecError):
        V5.decode(encoded[:cut])
    with pytest.raises(CodecError, match="left over") as refusal:
        V5.decode(encoded + b"\x00")
    assert refusal.value.offset == len(encoded)


def test_publish_follows_the_last_instruction_of_v5() -> None:
    assert PUBLISH_INDEX == 0x34
    assert INSTRUCTION_NAMES[47] == "UnpaidExecution"
    assert INSTRUCTION_NAMES[51] == "SetHints"
    assert len(set(INSTRUCTION_NAMES)) == 52


@pytest.mark.parametrize(
    ("index", "name"),
    [(8, "HrmpChannelAccepted"), (38, "ExportMessage"), (51, "SetHints"), (1, "ReserveAssetDeposited")],
)
def test_an_instruction_that_is_not_read_is_refused_by_its_name(index: int, name: str) -> None:
    with pytest.raises(UnsupportedVariant) as refusal:
        V5.decode(bytes.fromhex("05080a") + bytes([index]) + bytes(40))
    assert (refusal.value.variant, refusal.value.index, refusal.value.offset) == (name, index, 3)
    assert str(refusal.value) == f"Instruction {name} ({index}) is not supported at byte 3"
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


@pytest.mark.parametrize("version", [0, 2])
def test_a_version_of_long_ago_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"version {version} is not supported, only 5 at byte 0"):
        V5.decode(bytes([version, 0]))


def test_an_asset_that_is_not_fungible_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVariant, match="NonFungible"):
        V5.decode(bytes.fromhex("050400040000") + b"\x01\x00")


@pytest.mark.parametrize(
    "ids",
    [
        (Location.parent(), Location.here()),  # the wrong way round
        (Location.here(), Location.here()),  # the same twice
        (Location.parachain(2_000), Location.parachain(1_000)),  # ordered by number, not by bytes
    ],
)
def test_assets_out_of_order_neither_decode_nor_encode(ids: tuple[Location, Location]) -> None:
    listed = tuple(Asset.fungible(asset_id, 1) for asset_id in ids)
    raw = b"\x05\x04\x00\x08" + b"".join(asset.id.encode() + b"\x00\x04" for asset in listed)
    with pytest.raises(CodecError, match="out of order"):
        V5.decode(raw)
    with pytest.raises(ValueError, match="sorted by id"):
        V5.encode((WithdrawAsset(listed),))
    assert V5.decode(V5.encode((WithdrawAsset(assets(listed)),))) == (WithdrawAsset(assets(listed)),)


def test_a_list_of_21_assets_is_not_written() -> None:
    many = assets(Asset.fungible(Location.parachain(para), 1) for para in range(21))
    with pytest.raises(ValueError, match="at most 20"):
        V5.encode((TransferAsset(many, NATIVE),))


def test_nested_instructions_count_towards_the_limit() -> None:
    within = (SetErrorHandler((ClearOrigin(),) * 49), SetAppendix((ClearOrigin(),) * 49))
    assert V5.decode(V5.encode(within)) == within
    beyond = (SetErrorHandler((ClearOrigin(),) * 49), SetAppendix((ClearOrigin(),) * 50))
    with pytest.raises(ValueError, match="101 instructions"):
        V5.encode(beyond)


def test_assets_count_as_a_level_of_nesting() -> None:
    with pytest.raises(ValueError, match="no receiver decodes"):
        V5.encode(nested(8, (WithdrawAsset(assets([Asset.fungible(NATIVE, 1)])),)))


def test_encoding_messages_nested_a_thousand_deep_is_a_slip_and_no_crash() -> None:
    with pytest.raises(ValueError, match="at most 8 deep"):
        V5.encode(nested(1_000))


@pytest.mark.parametrize(("limit", "size"), [(2_048, 2_048), (16, 16), (0, 0)])
def test_a_value_may_reach_its_bound_and_not_pass_it(limit: int, size: int) -> None:
    codec = XcmCodec(XcmFlavour.entry(max_value_bytes=limit))
    message = (Publish(KEY, bytes(size), 7),)
    assert codec.decode(codec.encode(message)) == message
    too_long = (Publish(KEY, bytes(size + 1), 7),)
    with pytest.raises(ValueError, match=f"at most {limit} bytes"):
        codec.encode(too_long)
    wide = XcmCodec(XcmFlavour.entry(max_value_bytes=4_096))
    with pytest.raises(BoundExceeded) as refusal:
        codec.decode(wide.encode(too_long))
    assert (refusal.value.count, refusal.value.limit, refusal.value.offset) == (size + 1, limit, 35)


def test_a_publish_that_cannot_be_written_is_a_slip() -> None:
    with pytest.raises(ValueError, match="a key has 32 bytes, got 31"):
        Publish(bytes(31), b"", 0)
    with pytest.raises(ValueError, match="u32"):
        Publish(KEY, b"", 2**32)
    with pytest.raises(TypeError, match="Instruction expected"):
        V5.encode(("ClearOrigin",))  # type: ignore[arg-type]  # wrong on purpose


def test_a_draft_with_a_list_of_items_has_its_own_layout() -> None:
    codec = XcmCodec(XcmFlavour.items())
    message = (PublishItems((PublishItem(KEY, b"\x01\x02"),)),)
    assert codec.encode(message).hex() == "0504" + "34" + "04" + KEY.hex() + "080102"
    assert codec.decode(codec.encode(message)) == message
    with pytest.raises(TypeError, match="Instruction expected"):
        codec.encode((Publish(KEY, b""),))


def test_the_first_draft_publishes_pairs_of_any_length() -> None:
    # the Publish of polkadot-sdk #9994's manual test: the key and the value "0x123"
    codec = XcmCodec(XcmFlavour.pairs())
    data = bytes.fromhex("0504" + "34" + "04" + "143078313233" + "143078313233")
    assert codec.decode(data) == (PublishItems((PublishItem(b"0x123", b"0x123"),)),)
    assert codec.encode(codec.decode(data)) == data


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("ClearOrigin", "V5: expected a list of at most 100 instructions"),
        ({"V4": []}, "message: expected a list of instructions, or an object with V5"),
        (["ClearOrgin"], r"V5\[0\]: Instruction has no variant 'ClearOrgin', did you mean 'ClearOrigin'"),
        ([{"SetHints": []}], r"V5\[0\]: Instruction has no variant 'SetHints' \(known, not supported\)"),
        ([{"Publish": {"key": "0x00", "value": "0x", "ttl": 0}}], r"V5\[0\].Publish.key: expected 32 bytes as 0x hex"),
        ([{"Publish": {"key": "0x" + "00" * 32, "value": "0x"}}], r"V5\[0\].Publish: Publish lacks its field 'ttl'"),
        (
            [{"Publish": {"key": "0x" + "00" * 32, "value": "0x" + "00" * 2_049, "ttl": 0}}],
            "value: expected at most 2048 bytes, got '2049 bytes'",
        ),
        ([{"Publish": {"key": "0x" + "00" * 32, "value": "0xzz", "ttl": 0}}], "value: expected bytes as 0x hex"),
        ([{"Publish": {"key": "0x" + "00" * 32, "value": "0x", "ttl": True}}], "ttl: expected a u32, got True"),
        ([{"UnpaidExecution": {"weight_limit": "Limitless", "check_origin": None}}], "'Unlimited' or an object"),
        ([{"ClearOrigin": None, "ClearTopic": None}], r"V5\[0\]: expected Instruction as a name"),
        ([{"WithdrawAsset": [{"id": {"parents": 0, "interior": "Here"}, "fun": {"Fungible": 0}}]}], "above zero"),
    ],
)
def test_json_that_is_no_message_is_told_by_its_place(data: Json, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        V5.from_json(data)


def test_json_numbers_may_come_as_text_where_javascript_would_round_them() -> None:
    withdrawal: Json = [
        {"WithdrawAsset": [{"id": {"parents": 0, "interior": "Here"}, "fun": {"Fungible": str(10**30)}}]}
    ]
    assert V5.from_json(withdrawal) == (WithdrawAsset((Asset.fungible(NATIVE, 10**30),)),)


def test_an_instruction_without_fields_is_its_name_in_json() -> None:
    message: tuple[Instruction, ...] = (ClearOrigin(),)
    assert V5.to_json(message) == {"V5": ["ClearOrigin"]}
    spellings: list[Json] = ["ClearOrigin", {"ClearOrigin": None}, {"ClearOrigin": []}]
    for spelling in spellings:
        assert V5.from_json([spelling]) == message
