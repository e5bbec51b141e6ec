"""``relaycast scale``: SCALE bytes from JSON and JSON from SCALE bytes, for every type of pub-sub and of XCM V5."""

import json as json_text
from typing import Annotated, Any

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import AlwaysJson, Json
from relaycast.inputs import STDIN, hex_or_bytes, parse_json, place_of, read_bytes
from relaycast.refusal import BadInput, nearest, one_line, shown

app = App(name="scale", help="Turn JSON into SCALE bytes and back, for the types of pub-sub and of XCM V5.")

TypeName = Annotated[
    str, Parameter(name="TYPE", help="a type: a name of `relaycast scale list`, a number such as u32, a Vec or Option")
]
SHOWN_BYTES = 16
"""How many bytes a refusal shows."""


@app.command
def decode(
    kind: TypeName,
    data: Annotated[str, Parameter(help="0x hex, a file with the hex or the bytes, or - for standard input")],
    /,
    *,
    json: AlwaysJson = False,  # noqa: ARG001
) -> ExitCode:
    """Print what the bytes of a type mean, as JSON.

    Bytes that are missing, left over or not in canonical form are refused with exit code 2. The V5 at the end of XCM
    types may be left out.

    Example: relaycast scale decode PublishedEntry 0x10352e333164000000e8030000
    """
    from relaycast_trie import CodecError  # noqa: PLC0415
    from relaycast_xcm.registry import scale_decode  # noqa: PLC0415 - py-scale-codec is slow to load

    name = _known(kind, "scale decode")
    place, read = hex_or_bytes(data, "the bytes")
    try:
        value = scale_decode(name, read)
    except CodecError as error:
        rest = read[error.offset : error.offset + SHOWN_BYTES]
        more = "..." if len(read) > error.offset + SHOWN_BYTES else ""
        got = f"0x{rest.hex()}{more}" if rest else "the end"
        raise BadInput(f"{place} at byte {error.offset}", got, f"a {name}", one_line(error.reason)) from None
    print(json_text.dumps(value))
    return ExitCode.FINE


@app.command
def encode(
    kind: TypeName,
    value: Annotated[str, Parameter(help="JSON, or - for standard input")],
    /,
    *,
    json: Json = False,
) -> ExitCode:
    """Print the 0x bytes of a value of a type.

    Structures are objects with all their fields, bytes are 0x hex, variants are a name or {"Name": content}. Large
    numbers may come as text.

    Example: relaycast scale encode TtlState '{"ValidFor": 5}'
    """
    from relaycast_xcm.registry import RegistryMismatch, scale_encode  # noqa: PLC0415 - py-scale-codec is slow to load

    name = _known(kind, "scale encode")
    text = read_bytes(STDIN) if value == STDIN else value.encode()
    place = place_of(STDIN) if value == STDIN else "the value"
    content = parse_json(text, place)
    try:
        data = scale_encode(name, content)
    except RegistryMismatch as error:
        where = f"{place} at {error.path}" if error.path else place
        raise BadInput(where, shown(error.got), error.expected) from None
    except RecursionError:
        raise BadInput(place, "values nested too deeply", f"a {name}") from None
    if json:
        print(json_text.dumps({"type": name, "hex": f"0x{data.hex()}", "bytes": len(data), "value": content}))
    else:
        print(f"0x{data.hex()}")
    return ExitCode.FINE


@app.command(name="list")
def list_(
    text: Annotated[str, Parameter(help="only types with this in their name")] = "", /, *, json: Json = False
) -> ExitCode:
    """Print the types by name, each with what it is made of.

    Example: relaycast scale list Publish
    """
    from relaycast_xcm.registry import types  # noqa: PLC0415 - py-scale-codec is slow to load

    found = {name: definition for name, definition in sorted(types().items()) if text.lower() in name.lower()}
    if not found:
        raise BadInput("scale list", shown(text), "a part of a type's name", _hint(text, list(types())))
    if json:
        print(json_text.dumps({"types": {name: _definition(definition) for name, definition in found.items()}}))
        return ExitCode.FINE
    width = max(map(len, found))
    for name, definition in found.items():
        print(f"{name:{width}}  {_shape(definition)}")
    return ExitCode.FINE


def _known(type_name: str, verb: str) -> str:
    from relaycast_xcm.registry import full_name, types  # noqa: PLC0415 - py-scale-codec is slow to load

    name = full_name(type_name)
    if name is None:
        raise BadInput(verb, shown(type_name), "the name of a type", _hint(type_name, list(types())))
    return name


def _hint(name: str, names: list[str]) -> str:
    hint = nearest(name, names)
    return hint if hint.startswith("did") else "relaycast scale list shows all"


def _definition(definition: Any) -> Any:
    """Return a type as JSON: its other name, its fields, or its variants with what they hold."""
    if isinstance(definition, str):
        return definition
    return {definition["type"]: {name: kind for name, kind in definition["type_mapping"] if kind != "NotRead"}}


def _shape(definition: Any) -> str:
    """Return a type on one line."""
    if isinstance(definition, str):
        return _plain(definition)
    parts = [(name, _plain(kind)) for name, kind in definition["type_mapping"] if kind != "NotRead"]
    if definition["type"] == "struct":
        return f"{{ {', '.join(f'{name}: {kind}' for name, kind in parts)} }}"
    return " | ".join(name if kind == "Null" else f"{name}({kind})" for name, kind in parts)


def _plain(kind: str) -> str:
    return kind.replace("HexBytes", "Vec<u8>")
