"""``relaycast xcm``: messages from JSON to bytes, and bytes back to what each of them means."""

import json as json_text
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.inputs import hex_or_bytes, parse_hex, place_of, read_json
from relaycast.refusal import BadInput, one_line, shown
from relaycast.terminal import counted

if TYPE_CHECKING:
    from relaycast_trie import CodecError
    from relaycast_xcm import Annotation, Instruction, Location, XcmCodec

app = App(name="xcm", help="Turn XCM messages from JSON into SCALE bytes, and explain bytes.")

Flavour = Annotated[
    Literal["entry", "items", "pairs"],
    Parameter(
        name="--flavour",
        help="how Publish is laid out: key, value and ttl (entry), or as in the drafts 10679 (items) and 9994 (pairs)",
    ),
]
Publications = Annotated[
    list[str] | None,
    Parameter(
        name="--publish", help="0xKEY=0xVALUE or 0xKEY=0xVALUE@TTL instead of a file; may be given several times"
    ),
]

Fees = Annotated[
    int | None,
    Parameter(name="--fees", help="planck that the message pays for its execution, beside --publish and --para-id"),
]
ParaIdOption = Annotated[
    int | None, Parameter(name="--para-id", help="the parachain whose account pays, beside --fees")
]

PUBLICATION = "0xKEY=0xVALUE or 0xKEY=0xVALUE@TTL"

_SLIP = re.compile(r"^(?P<path>\S+): (?:expected (?P<expected>.+), got (?P<got>.+)|(?P<slip>.+))$", re.DOTALL)
_VARIANT = re.compile(r"^(?P<type>\w+) has no variant (?P<got>'.*?')(?:, (?P<hint>did you mean .+))?$")
_REST = re.compile(r"^(?P<count>\d+) bytes left over$")
_SHORT = re.compile(r"^(?P<wanted>\d+) (?P<what>bytes expected|items announced), (?P<left>\d+)(?: bytes)? left$")


@app.command
def encode(
    file: Annotated[str | None, Parameter(help="a message as JSON, or - for standard input")] = None,
    /,
    *,
    publish: Publications = None,
    fees: Fees = None,
    para_id: ParaIdOption = None,
    flavour: Flavour = "entry",
    json: Json = False,
) -> ExitCode:
    """Print the 0x SCALE bytes of a message: VersionedXcm::V5.

    FILE is JSON: {"V5": [..]} or the list of instructions alone, with the field names of Rust. --publish writes a
    message of Publish instructions without a file. With --fees and --para-id it pays for its execution from the
    parachain's account on the relay chain, and what is left returns there.

    Example: echo '["ClearOrigin"]' | relaycast xcm encode -
    """
    from relaycast_xcm import paid_message  # noqa: PLC0415

    codec = _codec(flavour)
    if file is not None and publish:
        raise BadInput("xcm encode", "a file and --publish", "one of them")
    account = _payer(fees, para_id, publish)
    if publish:
        place, message = "--publish", _publications(publish, flavour)
    elif file is not None:
        place, message = place_of(file), read_json(file)
    else:
        raise BadInput("xcm encode", "no message", f"a file, - for standard input, or --publish {PUBLICATION}")
    try:
        program = codec.from_json(message)
        if account is not None and fees is not None:
            program = paid_message(program, fees=fees, account=account)
        data = codec.encode(program)
    except ValueError as error:
        raise _refused(str(error), place) from None
    if json:
        print(json_text.dumps({**_described(data, flavour), "message": codec.to_json(program)}))
    else:
        print(f"0x{data.hex()}")
    return ExitCode.FINE


@app.command
def decode(
    message: Annotated[
        str, Parameter(help="0x hex, a file that holds it or the bytes themselves, or - for standard input")
    ],
    /,
    *,
    flavour: Flavour = "entry",
    json: Json = False,
) -> ExitCode:
    """Print what every byte of a message means: offset, bytes, meaning.

    Bytes that are no VersionedXcm::V5 are shown as far as they can be read; then one line says where they go wrong, and
    the exit code is 2.

    Example: relaycast xcm decode 0x05040a
    """
    from relaycast_xcm import annotate  # noqa: PLC0415

    place, data = hex_or_bytes(message, "the message")
    codec = _codec(flavour)
    annotation = annotate(data, codec=codec)
    if json:
        _print_json(annotation, data, codec)
    else:
        _print_table(annotation)
    if annotation.error is not None:
        raise _undecodable(annotation.error, annotation.error_path, data, place)
    return ExitCode.FINE


def _codec(flavour: str) -> "XcmCodec":
    from relaycast_xcm import XcmCodec, XcmFlavour  # noqa: PLC0415

    flavours = (XcmFlavour.entry(), XcmFlavour.items(), XcmFlavour.pairs())
    return XcmCodec({it.name: it for it in flavours}[flavour])


def _payer(fees: int | None, para_id: int | None, publish: list[str] | None) -> "Location | None":
    """Return whose account pays for the message, ``None`` where nobody does."""
    from relaycast_xcm import MAX_PAID_INSTRUCTIONS, Location  # noqa: PLC0415

    if fees is None and para_id is None:
        return None
    if fees is None or para_id is None or not publish:
        given = "--fees" if fees is not None else "--para-id"
        raise BadInput("xcm encode", f"{given} alone", "--fees, --para-id and --publish together")
    if len(publish) > MAX_PAID_INSTRUCTIONS:
        raise BadInput("--publish", f"{len(publish)} of them", f"at most {MAX_PAID_INSTRUCTIONS} in a paid message")
    if not 0 < fees < 1 << 128:
        raise BadInput("--fees", str(fees), "planck from 1 to 2^128 - 1")
    if not 0 <= para_id < 1 << 32:
        raise BadInput("--para-id", str(para_id), "a number from 0 to 4294967295")
    return Location.parachain(para_id)


def _publications(texts: list[str], flavour: str) -> Any:
    """Return the message that ``--publish`` stands for, as its JSON."""
    entries = [_publication(text, flavour) for text in texts]
    if flavour == "entry":
        return [{"Publish": entry} for entry in entries]
    return [{"Publish": {"data": entries}}]


def _publication(text: str, flavour: str) -> dict[str, str | int]:
    key, equals, rest = text.partition("=")
    value, at, ttl = rest.partition("@")
    if not equals:
        raise BadInput("--publish", shown(text), PUBLICATION)
    parse_hex(key, "--publish key", size=None if flavour == "pairs" else 32)
    parse_hex(value, "--publish value")
    if at and flavour != "entry":
        raise BadInput("--publish", f"a ttl of {shown(ttl)}", f"none: Publish of the flavour {flavour} has no ttl")
    if at and not (ttl.isascii() and ttl.isdecimal() and int(ttl) < 1 << 32):
        raise BadInput("--publish ttl", shown(ttl), "a number of relay blocks from 0 (for ever) to 4294967295")
    entry: dict[str, str | int] = {"key": key, "value": value}
    return {**entry, "ttl": int(ttl or 0)} if flavour == "entry" else entry


def _refused(message: str, place: str) -> BadInput:
    """Return a slip in a message's JSON as a refusal."""
    found = _SLIP.match(message)
    if found is None:
        return BadInput(place, one_line(message), "a message that a receiver decodes")
    here = f"{place} at {found['path']}"
    if found["got"] is not None:
        return BadInput(here, found["got"], found["expected"])
    if variant := _VARIANT.match(found["slip"]):
        return BadInput(here, variant["got"], f"a variant of {variant['type']} in XCM V5", variant["hint"] or "")
    return BadInput(here, one_line(found["slip"]), "the names and fields of XCM V5")


def _described(data: bytes, flavour: str) -> dict[str, Any]:
    from relaycast_trie import blake2_256  # noqa: PLC0415

    return {"flavour": flavour, "hex": f"0x{data.hex()}", "bytes": len(data), "id": f"0x{blake2_256(data).hex()}"}


def _print_json(annotation: "Annotation", data: bytes, codec: "XcmCodec") -> None:
    spans = [
        {
            "offset": span.offset,
            "bytes": f"0x{span.data.hex()}",
            "path": span.path,
            "type": span.type_name,
            "value": span.value,
        }
        for span in annotation.spans
    ]
    message: tuple[Instruction, ...] | None = annotation.message
    ending: dict[str, Any] = {"message": None if message is None else codec.to_json(message)}
    if annotation.error is not None:
        error = annotation.error
        ending["error"] = {
            "kind": type(error).__name__,
            "offset": error.offset,
            "path": annotation.error_path,
            "message": str(error),
        }
    print(json_text.dumps({**_described(data, codec.flavour.name), "spans": spans, **ending}))


def _print_table(annotation: "Annotation") -> None:
    from relaycast.terminal import console, print_table  # noqa: PLC0415
    from relaycast_xcm.message import BYTES_PER_LINE  # noqa: PLC0415

    rows = [
        (f"{at + span.offset:06x}", span.data[at : at + BYTES_PER_LINE].hex(" "), "" if at else span.meaning)
        for span in annotation.spans
        for at in range(0, len(span.data), BYTES_PER_LINE)
    ]
    if rows:
        print_table(console(), ("offset", "bytes", "meaning"), rows)


def _undecodable(error: "CodecError", path: str, data: bytes, place: str) -> BadInput:
    """Return where bytes go wrong, what stands there and what was expected."""
    got, expected = _mismatch(error)
    rest = data[error.offset : error.offset + 8]
    stands = f" (0x{rest.hex()}{'...' if len(data) > error.offset + 8 else ''})" if rest else ""
    return BadInput(f"{place} at byte {error.offset}, {path}", got + stands, expected)


def _mismatch(error: "CodecError") -> tuple[str, str]:
    from relaycast_xcm import BoundExceeded, UnknownVariant, UnsupportedVariant, UnsupportedVersion  # noqa: PLC0415

    found = {
        UnsupportedVersion: ("version {0.version}", "version 5"),
        UnknownVariant: ("variant {0.index}", "a variant of {0.type_name} in XCM V5"),
        UnsupportedVariant: ("{0.variant} ({0.index})", "a variant of {0.type_name} that relaycast reads"),
        BoundExceeded: ("{0.count} items", "at most {0.limit} in a {0.type_name}"),
    }.get(type(error))
    if found is not None:
        return found[0].format(error), found[1].format(error)
    if short := _SHORT.match(error.reason):
        left, wanted = int(short["left"]), int(short["wanted"])
        if short["what"].startswith("bytes"):
            return counted(left, "byte"), counted(wanted, "byte")
        return f"{counted(left, 'byte')} behind the count", counted(wanted, "item")
    rest = _REST.match(error.reason)
    return (f"{counted(int(rest['count']), 'byte')} more", "the end") if rest else (error.reason, "VersionedXcm::V5")
