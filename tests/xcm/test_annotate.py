"""Annotated bytes: nothing between the spans, nothing twice, and what is wrong in its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_xcm import V5, ClearOrigin, Publish, UnsupportedVariant, Xcm, annotate
from xcm.xcm_strategies import messages


@given(messages)
def test_the_spans_of_a_message_are_all_of_its_bytes(message: Xcm) -> None:
    data = V5.encode(message)
    annotation = annotate(data)
    assert annotation.message == message
    assert annotation.error is None
    assert b"".join(span.data for span in annotation.spans) == data
    assert all(data[span.offset :].startswith(span.data) and span.data for span in annotation.spans)


@given(messages, st.data())
def test_wrong_bytes_are_annotated_up_to_the_place_that_is_wrong(message: Xcm, data: st.DataObject) -> None:
    encoded = bytearray(V5.encode(message))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    annotation = annotate(bytes(encoded))
    read = b"".join(span.data for span in annotation.spans)
    assert bytes(encoded).startswith(read)
    assert (annotation.message is None) == (annotation.error is not None)
    if annotation.error is not None:
        assert annotation.error.offset <= len(encoded)
        assert annotation.lines()[-1].endswith(str(annotation.error))


def test_a_publish_reads_field_by_field() -> None:
    key = bytes(range(32))
    lines = annotate(V5.encode((Publish(key, b"\x01\x02\x03", 1_000),))).lines()
    assert lines == [
        f"000000  {'05':<48} message: VersionedXcm = V5",
        f"000001  {'04':<48} V5: Xcm = count 1",
        f"000002  {'34':<48} V5[0]: Instruction = Publish",
        f"000003  {key[:16].hex(' '):<48} V5[0].Publish.key: [u8; 32] = 0x{key.hex()}",
        f"000013  {key[16:].hex(' ')}",
        f"000023  {'0c 01 02 03':<48} V5[0].Publish.value: BoundedVec<u8, 2048> = 0x010203 (3 bytes)",
        f"000027  {'e8 03 00 00':<48} V5[0].Publish.ttl: u32 = 1000",
    ]


def test_a_long_value_is_shown_by_its_beginning_and_its_size() -> None:
    meaning = annotate(V5.encode((Publish(bytes(32), b"\xab" * 2_048, 0),))).spans[4].meaning
    assert meaning == f"V5[0].Publish.value: BoundedVec<u8, 2048> = 0x{'ab' * 40}... (2048 bytes)"


@pytest.mark.parametrize(
    ("data", "path", "last"),
    [
        ("05080a33", "V5[1]", "Instruction SetHints (51) is not supported at byte 3"),
        ("0504340000", "V5[0].Publish.key", "32 bytes expected, 2 left at byte 3"),
        ("0504000400000700", "V5[0].WithdrawAsset[0].fun", "Fungibility has no variant 7 at byte 6"),
        ("", "message", "1 bytes expected, 0 left at byte 0"),
    ],
)
def test_the_error_names_the_field_it_was_met_in(data: str, path: str, last: str) -> None:
    annotation = annotate(bytes.fromhex(data))
    assert annotation.error_path == path
    assert annotation.lines()[-1].endswith(f"{path}: {last}")


def test_annotating_reads_what_decoding_reads() -> None:
    data = V5.encode((ClearOrigin(), Publish(bytes(32), b"x", 0)))
    assert annotate(data).message == V5.decode(data)
    refused = annotate(bytes.fromhex("050408"))
    assert isinstance(refused.error, UnsupportedVariant)
