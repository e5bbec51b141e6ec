"""Messages: VersionedXcm V5 as bytes and as JSON, its limits, and the layouts that the drafts give to ``Publish``."""

import json
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relaycast_trie.exceptions import CodecError
from relaycast_xcm import (
    INSTRUCTION_NAMES,
    PUBLISH_INDEX,
    V5,
    Asset,
    BoundExceeded,
    ClearOrigin,
    Instruction,
    Json,
    Location,
    Publish,
    PublishItem,
    PublishItems,
    SetAppendix,
    SetErrorHandler,
    TooDeep,
    TooManyInstructions,
    TransferAsset,
    UnknownVariant,
    UnsupportedVariant,
    UnsupportedVersion,
    WithdrawAsset,
    Xcm,
    XcmCodec,
    XcmFlavour,
    annotate,
    assets,
    decode_versioned_xcm,
    encode_versioned_xcm,
)
from shared_vectors import Case, shared, unhex
from xcm.xcm_strategies import messages
from xcm.xcm_vectors import vectors_of

KEY = bytes(32)
NATIVE = Location.here()


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


@pytest.mark.parametrize("index", [53, 255])
def test_an_instruction_that_does_not_exist_is_refused(index: int) -> None:
    with pytest.raises(UnknownVariant, match=f"no variant {index} at byte 2"):
        V5.decode(bytes([5, 4, index]))


@pytest.mark.parametrize("version", [0, 2, 4, 6])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"version {version} is not supported, only 5 at byte 0"):
        V5.decode(bytes([version, 0]))


def test_an_asset_that_is_not_fungible_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVariant, match="NonFungible"):
        V5.decode(bytes.fromhex("050400040000") + b"\x01\x00")


def test_an_asset_of_nothing_is_refused() -> None:
    with pytest.raises(CodecError, match="amount zero at byte 7"):
        V5.decode(bytes.fromhex("05040004" + "0000" + "0000"))


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


def test_a_list_of_21_assets_is_refused() -> None:
    many = assets(Asset.fungible(Location.parachain(para), 1) for para in range(21))
    with pytest.raises(ValueError, match="at most 20"):
        V5.encode((TransferAsset(many, NATIVE),))
    raw = b"".join(asset.id.encode() + b"\x00\x04" for asset in many)
    with pytest.raises(BoundExceeded, match="Assets of 21, at most 20"):
        V5.decode(b"\x05\x04\x04" + bytes([21 << 2]) + raw + b"\x00\x00")


def test_a_message_has_at_most_100_instructions() -> None:
    full = (ClearOrigin(),) * 100
    assert V5.decode(V5.encode(full)) == full
    with pytest.raises(ValueError, match="101 instructions"):
        V5.encode((*full, ClearOrigin()))
    with pytest.raises(TooManyInstructions) as refusal:
        V5.decode(bytes.fromhex("059501") + b"\x0a" * 101)
    assert (refusal.value.count, refusal.value.limit, refusal.value.offset) == (101, 100, 1)


def test_nested_instructions_count_towards_the_limit() -> None:
    within = (SetErrorHandler((ClearOrigin(),) * 49), SetAppendix((ClearOrigin(),) * 49))
    assert V5.decode(V5.encode(within)) == within
    beyond = (SetErrorHandler((ClearOrigin(),) * 49), SetAppendix((ClearOrigin(),) * 50))
    with pytest.raises(ValueError, match="101 instructions"):
        V5.encode(beyond)


def test_messages_nest_eight_deep_and_no_deeper() -> None:
    deepest = nested(8, (ClearOrigin(),))
    assert V5.decode(V5.encode(deepest)) == deepest
    with pytest.raises(ValueError, match="at most 8 deep"):
        V5.encode(nested(9))
    with pytest.raises(TooDeep, match="deeper than 8"):
        V5.decode(b"\x05" + b"\x04\x16" * 8 + b"\x04\x0a")


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
