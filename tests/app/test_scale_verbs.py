"""``relaycast scale``: every type both ways, names that are nearly right, and bytes that are none of a type."""

import io
import json
from typing import Any

import pytest

from command_line import Command, Refused, Written
from relaycast_pallets import PublishedEntry
from relaycast_xcm import V5, Location, Publish
from relaycast_xcm.registry import types

ENTRY = {"value": "0x352e3331", "ttl": 100, "when_inserted": 1000}
ENTRY_HEX = "0x10352e333164000000e8030000"


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize(
    ("type_name", "value", "encoded"),
    [
        ("PublishedEntry", ENTRY, ENTRY_HEX),
        ("TtlState", "Infinite", "0x00"),
        ("TtlState", {"ValidFor": 5}, "0x0105000000"),
        ("Location", {"parents": 0, "interior": {"X1": [{"Parachain": 2000}]}}, "0x000100411f"),
        ("LocationV5", {"parents": 1, "interior": "Here"}, "0x0100"),
        ("StorageProof", ["0x01", "0x"], "0x08040100"),
        ("Vec<u8>", "0xcafe", "0x08cafe"),
        ("Option<u32>", None, "0x00"),
        ("Compact<u64>", 64, "0x0101"),
    ],
)
def test_a_value_and_its_bytes_lead_to_each_other(relaycast: Command, type_name: str, value: Any, encoded: str) -> None:
    written = relaycast("scale", "encode", type_name, json.dumps(value))
    assert (written.code, written.out, written.err) == (0, f"{encoded}\n", "")
    read = relaycast("scale", "decode", type_name, encoded)
    assert (read.code, read.json, read.err) == (0, value, "")


def test_json_tells_the_type_and_how_many_bytes(relaycast: Command) -> None:
    told = relaycast("scale", "encode", "Location", '{"parents": 1, "interior": "Here"}', "--json").json
    value = {"parents": 1, "interior": "Here"}
    assert told == {"type": "LocationV5", "hex": "0x0100", "bytes": 2, "value": value}
    assert relaycast("scale", "decode", "Location", "0x0100", "--json").json == value


def test_bytes_come_from_a_file_or_from_a_pipe(
    relaycast: Command, file: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (bytes.fromhex(ENTRY_HEX[2:]), f"{ENTRY_HEX}\n", f'"{ENTRY_HEX}"'):
        assert relaycast("scale", "decode", "PublishedEntry", file(content, "entry")).json == ENTRY
    piped(monkeypatch, ENTRY_HEX)
    assert relaycast("scale", "decode", "PublishedEntry", "-").json == ENTRY
    piped(monkeypatch, json.dumps(ENTRY))
    assert relaycast("scale", "encode", "PublishedEntry", "-").out == f"{ENTRY_HEX}\n"


def test_what_other_verbs_and_pallets_write_is_read(relaycast: Command) -> None:
    message = relaycast("xcm", "encode", "--publish", f"0x{'01' * 32}=0xcafe@9").out.strip()
    publish = {"key": f"0x{'01' * 32}", "value": "0xcafe", "ttl": 9}
    assert relaycast("scale", "decode", "VersionedXcm", message).json == {"V5": [{"Publish": publish}]}
    entry = PublishedEntry(b"5.31", 100, 1_000).encode()
    assert relaycast("scale", "decode", "PublishedEntry", f"0x{entry.hex()}").json == ENTRY
    written = relaycast("scale", "encode", "Publish", json.dumps(publish)).out
    assert bytes.fromhex(written[2:]) == V5.encode((Publish(bytes([1]) * 32, b"\xca\xfe", 9),))[3:]
    here = relaycast("scale", "encode", "Location", json.dumps(Location.here().to_json())).out
    assert bytes.fromhex(here[2:]) == Location.here().encode()


def test_every_type_is_listed_with_what_it_is_made_of(relaycast: Command) -> None:
    lines = relaycast("scale", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(types())
    (entry,) = [line for line in lines if line.startswith("PublishedEntry ")]
    assert entry.split(maxsplit=1)[1] == "{ value: Vec<u8>, ttl: u32, when_inserted: u32 }"
    (state,) = relaycast("scale", "list", "ttlstate").out.splitlines()
    assert state == "TtlState  Infinite | ValidFor(u32) | TimedOut"
    assert "NotRead" not in "".join(lines)


def test_json_lists_types_for_programs(relaycast: Command) -> None:
    told = relaycast("scale", "list", "Ttl", "--json").json["types"]
    assert told == {
        "TtlData": {"struct": {"ttl": "u32", "when_inserted": "u32"}},
        "TtlState": {"enum": {"Infinite": "Null", "ValidFor": "u32", "TimedOut": "Null"}},
    }


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("decode", "PublishdEntry", "0x"),
            "scale decode: got 'PublishdEntry', expected the name of a type (did you mean PublishedEntry?)",
        ),
        (
            ("encode", "xyz", "1"),
            "scale encode: got 'xyz', expected the name of a type (relaycast scale list shows all)",
        ),
        (("list", "xyz"), "scale list: got 'xyz', expected a part of a type's name (relaycast scale list shows all)"),
        (("decode", "TtlState", "00"), "the bytes: got '00', expected 0x before the hex digits, or a file"),
        (("decode", "TtlState", "0x0"), "the bytes: got '0x0' with an odd number of digits"),
        (("decode", "TtlState", "nowhere"), "nowhere: got no such file or directory"),
        (
            ("decode", "PublishedEntry", "0x1035"),
            "the bytes at byte 1: got 0x35, expected a PublishedEntry (4 bytes expected, 1 left)",
        ),
        (("decode", "PublishedEntry", "0x"), "the bytes at byte 0: got the end, expected a PublishedEntry (0 bytes,"),
        (("decode", "TtlState", "0x0000"), "the bytes at byte 1: got 0x00, expected a TtlState (1 bytes left over)"),
        (
            ("decode", "TtlState", "0x07"),
            "the bytes at byte 1: got the end, expected a TtlState (Index '7' not present",
        ),
        (("encode", "TtlState", "Infinite"), "the value line 1 column 1: got 'Infinite', expected JSON"),
        (
            ("encode", "TtlState", '"Timedout"'),
            "the value: got 'Timedout', expected a variant of TtlState: Infinite, Va",
        ),
        (("encode", "PublishedEntry", '{"value": "0x"}'), "the value at ttl: got nothing, expected its u32"),
        (
            ("encode", "PublishedEntry", '{"value": "0x", "ttl": 4294967296, "when_inserted": 0}'),
            "the value at ttl: got 4294967296, expected a u32",
        ),
        (("encode", "ParaId", '{"a": 1, "a": 2}'), "the value: got 'a' twice in one object"),
        (("encode", "Xcm", "[" * 100_000), "the value: got values nested too deeply"),
        (("encode",), "scale encode: got no TYPE, expected a type: a name of"),
        (("decode", "TtlState"), "scale decode: got no DATA, expected 0x hex, a file"),
        (("decod", "TtlState"), "scale: got 'decod', expected a verb, did you mean decode?"),
    ],
)
def test_a_slip_is_one_line(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert refused("scale", *arguments).startswith(line)


def test_values_nested_as_deep_as_json_goes_are_refused(refused: Refused) -> None:
    deep = '[{"SetAppendix": ' * 300 + "[]" + "}]" * 300
    assert refused("scale", "encode", "Xcm", deep).startswith("the value: got values nested too deeply")
