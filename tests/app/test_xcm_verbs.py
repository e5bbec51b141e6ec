"""``relaycast xcm``: JSON to bytes, bytes to what they mean, and what is refused."""

import json

import pytest

from command_line import Command, Refused, Written
from relaycast_trie import blake2_256
from relaycast_xcm import (
    V5,
    ClearOrigin,
    Location,
    Publish,
    PublishItem,
    PublishItems,
    SetTopic,
    XcmCodec,
    XcmFlavour,
    paid_message,
)

KEY = "0x" + "01" * 32
MESSAGE = [{"Publish": {"key": KEY, "value": "0xcafe", "ttl": 100}}]
BYTES = V5.encode((Publish(bytes.fromhex(KEY[2:]), b"\xca\xfe", 100),))


def test_a_message_is_printed_as_hex_alone(relaycast: Command, file: Written) -> None:
    for content in (MESSAGE, {"V5": MESSAGE}):
        ended = relaycast("xcm", "encode", file(content))
        assert (ended.code, ended.out, ended.err) == (0, f"0x{BYTES.hex()}\n", "")


def test_the_bytes_are_those_of_the_public_draft(relaycast: Command) -> None:
    ended = relaycast("xcm", "encode", "--publish", f"{'0x' + '00' * 32}=0x010203")
    assert ended.out == "0x050434" + "00" * 32 + "0c010203" + "00000000\n"


@pytest.mark.parametrize(
    ("option", "value", "ttl"),
    [
        ("0xcafe", b"\xca\xfe", 0),
        ("0xcafe@100", b"\xca\xfe", 100),
        ("0x@4294967295", b"", 4_294_967_295),
    ],
)
def test_publications_are_written_without_a_file(relaycast: Command, option: str, value: bytes, ttl: int) -> None:
    ended = relaycast("xcm", "encode", "--publish", f"{KEY}={option}")
    assert V5.decode(bytes.fromhex(ended.out[2:])) == (Publish(bytes.fromhex(KEY[2:]), value, ttl),)


def test_a_message_pays_for_itself_where_it_is_told_to(relaycast: Command) -> None:
    ended = relaycast("xcm", "encode", "--publish", f"{KEY}=0x01", "--fees", "200000000", "--para-id", "2000")
    expected = paid_message(
        [Publish(bytes.fromhex(KEY[2:]), b"\1")], fees=200_000_000, account=Location.parachain(2_000)
    )
    assert V5.decode(bytes.fromhex(ended.out[2:])) == expected


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--fees", "5"), "xcm encode: got --fees alone, expected --fees, --para-id and --publish together"),
        (("--publish", f"{KEY}=0x", "--para-id", "5"), "xcm encode: got --para-id alone"),
        (("--fees", "5", "--para-id", "2000"), "xcm encode: got --fees alone"),
        (("--publish", f"{KEY}=0x", "--fees", "0", "--para-id", "2000"), "--fees: got 0, expected planck from 1"),
        (("--publish", f"{KEY}=0x", "--fees", "1", "--para-id", "4294967296"), "--para-id: got 4294967296"),
        (("--publish", f"{KEY}=0x", "--fees", "x", "--para-id", "2000"), "--fees: got 'x', expected a whole number"),
    ],
)
def test_payments_that_are_none_are_refused(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert line in refused("xcm", "encode", *arguments)


def test_too_many_paid_publications_for_one_message_are_refused(refused: Refused) -> None:
    many = [part for _ in range(96) for part in ("--publish", f"{KEY}=0x")]
    line = "--publish: got 96 of them, expected at most 95 in a paid message"
    assert line in refused("xcm", "encode", *many, "--fees", "1", "--para-id", "2000")


def test_every_publish_is_an_instruction_of_one_message(relaycast: Command) -> None:
    ended = relaycast("xcm", "encode", "--publish", f"{KEY}=0x01", "--publish", f"{KEY}=0x02")
    assert [item.value for item in V5.decode(bytes.fromhex(ended.out[2:])) if isinstance(item, Publish)] == [
        b"\1",
        b"\2",
    ]


@pytest.mark.parametrize(("flavour", "codec"), [("items", XcmFlavour.items()), ("pairs", XcmFlavour.pairs())])
def test_older_flavours_put_all_items_into_one_instruction(relaycast: Command, flavour: str, codec: XcmFlavour) -> None:
    ended = relaycast("xcm", "encode", "--publish", f"{KEY}=0x01", "--publish", f"{KEY}=0x02", "--flavour", flavour)
    items = tuple(PublishItem(bytes.fromhex(KEY[2:]), value) for value in (b"\1", b"\2"))
    assert XcmCodec(codec).decode(bytes.fromhex(ended.out[2:])) == (PublishItems(items),)
    shown = relaycast("xcm", "decode", ended.out.strip(), "--flavour", flavour)
    assert shown.code == 0
    assert "V5[0].Publish.data[1].value" in shown.out


def test_json_tells_the_bytes_their_id_and_the_message(relaycast: Command, file: Written) -> None:
    shown = relaycast("xcm", "encode", file(MESSAGE), "--json").json
    assert shown == {
        "flavour": "entry",
        "hex": f"0x{BYTES.hex()}",
        "bytes": len(BYTES),
        "id": f"0x{blake2_256(BYTES).hex()}",
        "message": {"V5": MESSAGE},
    }


def test_decoding_shows_offset_bytes_and_meaning(relaycast: Command) -> None:
    ended = relaycast("xcm", "decode", f"0x{BYTES.hex()}")
    rows = [line.rstrip() for line in ended.out.splitlines()]
    assert (ended.code, ended.err) == (0, "")
    assert rows[0].split() == ["offset", "bytes", "meaning"]
    assert rows[1].split(maxsplit=2) == ["000000", "05", "message: VersionedXcm = V5"]
    assert rows[5] == "000013  " + " ".join(["01"] * 16)
    assert rows[-1].startswith("000026  64 00 00 00 ")
    assert rows[-1].endswith("V5[0].Publish.ttl: u32 = 100")


@pytest.mark.parametrize("content", [BYTES, f"0x{BYTES.hex()}\n", json.dumps(f"0x{BYTES.hex()}")])
def test_a_file_holds_hex_or_the_bytes_themselves(relaycast: Command, file: Written, content: str | bytes) -> None:
    assert relaycast("xcm", "decode", file(content), "--json").json["message"] == {"V5": MESSAGE}


def test_spans_in_json_are_all_of_the_bytes(relaycast: Command) -> None:
    data = V5.encode((ClearOrigin(), SetTopic(bytes(32))))
    shown = relaycast("xcm", "decode", f"0x{data.hex()}", "--json").json
    assert "".join(span["bytes"][2:] for span in shown["spans"]) == data.hex()
    assert [span["offset"] for span in shown["spans"]] == sorted(span["offset"] for span in shown["spans"])


def test_what_encode_prints_decode_takes(relaycast: Command, file: Written) -> None:
    message = {"V5": ["ClearOrigin", {"SetTopic": "0x" + "07" * 32}, *MESSAGE]}
    printed = relaycast("xcm", "encode", file(message)).out
    assert relaycast("xcm", "decode", printed.strip(), "--json").json["message"] == message


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("0x0504340000", "byte 3, V5[0].Publish.key: got 2 bytes (0x0000), expected 32 bytes"),
        ("0x040c", "byte 0, message: got version 4 (0x040c), expected version 5"),
        ("0x0504ff", "byte 2, V5[0]: got variant 255 (0xff), expected a variant of Instruction in XCM V5"),
        ("0x050433", "byte 2, V5[0]: got SetHints (51) (0x33), expected a variant of Instruction that relaycast reads"),
        ("0x05040aff", "byte 3, message: got 1 byte more (0xff), expected the end"),
        (
            f"0x050434{'00' * 32}0c01",
            "byte 35, V5[0].Publish.value: got 1 byte behind the count (0x0c01), expected 3 items",
        ),
        (f"0x050434{'00' * 32}0520{'00' * 2049}", "byte 35, V5[0].Publish.value: got 2049 items"),
        ("0x", "byte 0, message: got 0 bytes, expected 1 byte"),
    ],
)
def test_wrong_bytes_are_shown_as_far_as_they_go(relaycast: Command, data: str, line: str) -> None:
    ended = relaycast("xcm", "decode", data)
    readable = int(line.split()[1].rstrip(","))
    offsets = [int(row.split()[0], 16) for row in ended.out.splitlines()[1:]]
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert f"the message at {line}" in ended.err
    assert all(offset < readable for offset in offsets)
    assert (offsets != []) == (readable > 0)


def test_wrong_bytes_in_json_say_where_and_still_end_with_two(relaycast: Command) -> None:
    ended = relaycast("xcm", "decode", "0x0504340000", "--json")
    assert ended.code == 2
    assert ended.json["message"] is None
    assert ended.json["error"]["offset"] == 3
    assert ended.json["error"]["path"] == "V5[0].Publish.key"
    assert [span["path"] for span in ended.json["spans"]] == ["message", "V5", "V5[0]"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            [{"Publsh": {}}],
            "at V5[0]: got 'Publsh', expected a variant of Instruction in XCM V5 (did you mean 'Publish'?)",
        ),
        ([{"Publish": {"key": KEY, "value": "0x"}}], "at V5[0].Publish: got Publish lacks its field 'ttl'"),
        (
            [{"Publish": {"key": "0x01", "value": "0x", "ttl": 0}}],
            "at V5[0].Publish.key: got '0x01', expected 32 bytes",
        ),
        ({"V4": []}, "input.json at message: got {'V4': []}, expected a list of instructions"),
        ("{", "input.json line 1 column 2"),
    ],
)
def test_a_message_that_is_none_is_refused(refused: Refused, file: Written, content: object, line: str) -> None:
    assert line in refused("xcm", "encode", file(content))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--publish", "nonsense"), "--publish: got 'nonsense', expected 0xKEY=0xVALUE or 0xKEY=0xVALUE@TTL"),
        (("--publish", "0x11=0x22"), "--publish key: got '0x11', expected 0x and 64 hex digits"),
        (("--publish", f"{KEY}=22"), "--publish value: got '22'"),
        (("--publish", f"{KEY}=0x22@4294967296"), "--publish ttl: got '4294967296'"),
        (("--publish", f"{KEY}=0x22@5", "--flavour", "items"), "has no ttl"),
        (("--publish", f"{KEY}=0x{'00' * 2049}"), "at V5[0].Publish.value: got '2049 bytes', expected at most 2048"),
        ((), "xcm encode: got no message"),
        (("--flavour", "entri"), "--flavour"),
    ],
)
def test_publications_that_are_none_are_refused(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert line in refused("xcm", "encode", *arguments)


def test_a_file_and_publications_are_one_too_many(refused: Refused, file: Written) -> None:
    assert "got a file and --publish" in refused("xcm", "encode", file(MESSAGE), "--publish", f"{KEY}=0x")


def test_hex_without_its_prefix_is_told_what_it_lacks(refused: Refused) -> None:
    assert refused("xcm", "decode", "0504") == "the message: got '0504', expected 0x before the hex digits, or a file"


def test_a_file_that_is_not_there_is_refused(refused: Refused) -> None:
    assert "nowhere.hex: got no such file" in refused("xcm", "decode", "nowhere.hex")


def test_a_value_of_one_byte_is_said_so(relaycast: Command) -> None:
    encoded = relaycast("xcm", "encode", "--publish", f"0x{'11' * 32}=0x01@3").out.split()[0]
    assert "= 0x01 (1 byte)" in relaycast("xcm", "decode", encoded).out
