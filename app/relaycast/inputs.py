"""Files that a user hands to a command: proofs, keys, hexadecimal.

Law: nothing is guessed. What is not exactly what a verb reads raises ``BadInput`` with the place inside the file.
"""

import json
import re
import sys
import tomllib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaycast.refusal import BadInput, one_line, shown
from relaycast.terminal import counted

if TYPE_CHECKING:
    from relaycast_trie import StorageProof

STDIN = "/dev/stdin"
"""How a command line's ``-`` is known inside."""

MAX_FILE_BYTES = 1 << 30
"""Larger files, and what unpacks to more, are refused: a hostile archive must not take the machine's memory."""

NODE_SCHEMES = ("http://", "https://", "ws://", "wss://")
"""What the address of a node begins with."""

MAX_NAME_CHARACTERS = 255
"""Longest name of a file that is looked for."""

EXPECTED_COMPACT = "a compact proof, its nodes in their order"

GZIP_MAGIC = b"\x1f\x8b"


def place_of(file: str) -> str:
    """Return how a refusal calls ``file``."""
    return "standard input" if file == STDIN else file


def read_bytes(file: str) -> bytes:
    """Return what ``file`` holds, unpacked when it is gzipped."""
    try:
        data = _read(file)
        if data.startswith(GZIP_MAGIC):
            data = _unpacked(data)
    except zlib.error as error:
        raise BadInput(place_of(file), f"gzip data that does not unpack: {error}", "a whole gzip file") from None
    except OSError as error:
        got = "a directory" if isinstance(error, IsADirectoryError) else _lower_first(error.strerror or str(error))
        raise BadInput(place_of(file), got, "a file that can be read, or - for standard input") from None
    if len(data) > MAX_FILE_BYTES:
        raise BadInput(place_of(file), f"more than {MAX_FILE_BYTES:,} bytes", "a smaller file")
    return data


def _read(file: str) -> bytes:
    if file == STDIN:
        if sys.stdin is None:
            raise OSError("standard input is closed")
        return sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_FILE_BYTES + 1)


def _unpacked(data: bytes) -> bytes:
    unpack = zlib.decompressobj(wbits=31)
    unpacked = unpack.decompress(data, MAX_FILE_BYTES + 1)
    if not unpack.eof and len(unpacked) <= MAX_FILE_BYTES:
        raise zlib.error("it ends too early")
    return unpacked


def read_json(file: str) -> Any:
    """Return the JSON value that ``file`` holds; an object that names a member twice is refused."""
    return parse_json(read_bytes(file), place_of(file))


def parse_json(data: bytes, place: str) -> Any:
    """Return the JSON value of ``data``; ``place`` is where it comes from."""

    def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(members)
        if len(found) != len(members):
            seen: dict[str, Any] = {}
            for name, value in members:
                if name in seen:
                    both = f"{shown(name)} twice in one object, as {shown(seen[name])} and as {shown(value)}"
                    raise BadInput(place, both, "every name once")
                seen[name] = value
        return found

    try:
        return json.loads(data, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        where = f"{place} line {error.lineno} column {error.colno}"
        context = shown(error.doc[error.pos : error.pos + 20]) if error.pos < len(error.doc) else "the end of the text"
        raise BadInput(where, context, f"JSON: {_lower_first(error.msg)}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{place} at byte {error.start}", f"0x{data[error.start]:02x}", "JSON in UTF-8") from None
    except RecursionError:
        raise BadInput(place, "values nested too deeply", "JSON at most a few hundred levels deep") from None
    except ValueError as error:
        raise BadInput(place, _lower_first(str(error)), "JSON that fits") from None


def parse_toml(data: bytes, place: str, expected: str) -> dict[str, Any]:
    """Return the table of TOML in ``data``; ``place`` is where it comes from, ``expected`` what it should be."""
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise BadInput(f"{place} at byte {error.start}", f"0x{data[error.start]:02x}", "text in UTF-8") from None
    except RecursionError:
        raise BadInput(place, "values nested too deeply", "TOML at most a few hundred levels deep") from None
    except ValueError as error:  # TOMLDecodeError, and numbers of too many digits
        raise BadInput(place, f"text that is not TOML ({one_line(str(error))})", expected) from None


def parse_hex(text: Any, place: str, *, size: int | None = None) -> bytes:
    """Return the bytes of ``0x`` and an even number of hexadecimal digits; of ``size`` bytes where that is given."""
    expected = "0x and an even number of hex digits" if size is None else f"0x and {2 * size} hex digits"
    if not isinstance(text, str) or not text.startswith("0x"):
        raise BadInput(place, shown(text), expected)
    if len(text) % 2:
        raise BadInput(place, f"{shown(text)} with an odd number of digits", expected)
    try:
        data = bytes.fromhex(text[2:])
    except ValueError:
        data = b""
    if 2 * len(data) != len(text) - 2 or (size is not None and len(data) != size):
        raise BadInput(place, shown(text), expected)
    return data


def hex_or_bytes(text: str, what: str) -> tuple[str, bytes]:
    """Return how a refusal calls what ``text`` gives, and its bytes: ``0x`` hex, or a file of hex or of the bytes."""
    if text.startswith("0x"):
        return what, parse_hex(text, what)
    if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", text) and not Path(text).exists():
        raise BadInput(what, shown(text), "0x before the hex digits, or a file")
    place, data = place_of(text), read_bytes(text)
    inside = data.strip().strip(b'"')
    return place, parse_hex(inside.decode("ascii", "replace"), place) if inside.startswith(b"0x") else data


def parse_keys(texts: list[str]) -> list[bytes]:
    """Return the keys that ``--key`` gives, each once, in the order of their first mention."""
    return list(dict.fromkeys(parse_hex(text, "--key") for text in texts))


def parse_root(text: str) -> bytes:
    """Return the root that ``--root`` gives."""
    return parse_hex(text, "--root", size=32)


def read_proof_nodes(file: str) -> list[bytes]:
    """Return a proof's nodes as they stand in ``file``, repetitions included.

    Three forms are read:

    - a list of hex strings,
    - an object with such a list under ``nodes`` or ``proof``, as ``state_getReadProof`` answers, also inside a JSON-RPC
      ``result``,
    - SCALE ``Vec<Vec<u8>>`` as bytes or as one hex string, quoted or not. ``file`` may be that string itself.
    """
    if file.startswith("0x") and not Path(file[:MAX_NAME_CHARACTERS]).exists():
        return _scale_nodes(parse_hex(file, "the proof"), "the proof")
    place = place_of(file)
    data = read_bytes(file)
    text = data.strip()
    if re.fullmatch(rb"(?:[0-9a-fA-F]{2}){2,}", text):
        raise BadInput(place, shown(text.decode("ascii")), "0x before the hex digits, or JSON")
    if _is_binary(data):
        return _scale_nodes(data, place)
    content: Any = text.decode("ascii", "replace") if text.startswith(b"0x") else parse_json(data, place)
    if isinstance(content, dict) and isinstance(content.get("error"), dict):
        raise BadInput(f"{place} at .error", shown(content["error"].get("message")), "an answer with a result")
    if isinstance(content, dict) and "result" in content:
        content, place = content["result"], f"{place} at .result"
    if isinstance(content, dict):
        name = "nodes" if "nodes" in content else "proof"
        if name not in content:
            raise BadInput(
                place,
                f"an object without nodes ({', '.join(map(shown, content)) or 'empty'})",
                '{"nodes": ["0x..", ...]}',
            )
        content, place = content[name], f"{place} at .{name}"
    if isinstance(content, str):
        return _scale_nodes(parse_hex(content, place), place)
    if not isinstance(content, list):
        raise BadInput(place, shown(content), 'a list of nodes ["0x..", ...]')
    return [parse_hex(node, f"{place}[{index}]") for index, node in enumerate(content)]


def compact_proof(nodes: list[bytes], root: bytes | None, place: str) -> tuple["StorageProof", bytes]:
    """Return what the ``nodes`` of a compact proof stand for, and its root, which is ``root`` where that is given."""
    from relaycast_trie.exceptions import InvalidNode, ProofError, RootMismatch  # noqa: PLC0415
    from relaycast_trie.proofs.compact_proof import CompactProof  # noqa: PLC0415

    try:
        return CompactProof(tuple(nodes)).decode(root)
    except RootMismatch as error:
        found = f"0x{(error.actual or b'').hex()}"
        raise BadInput("--root", f"0x{error.expected.hex()}", f"the root that {place} has, {found}") from None
    except InvalidNode as error:
        got = f"a node that does not decode ({error.reason} at its byte {error.offset})"
        raise BadInput(place, got, EXPECTED_COMPACT) from None
    except ProofError as error:
        got = f"{counted(len(nodes), 'node')} that are none: {_lower_first(str(error))}"
        raise BadInput(place, got, EXPECTED_COMPACT) from None


def is_compact(nodes: list[bytes], root: bytes | None) -> bool:
    """Return whether the nodes are a proof (of ``root``, if given) only when read as a compact one.

    Values can look like nodes with omitted hashes, so only decoding the whole proof decides. A proof of one node is
    both.
    """
    from relaycast_trie.exceptions import ProofError  # noqa: PLC0415
    from relaycast_trie.proofs.compact_proof import CompactProof  # noqa: PLC0415

    try:
        proof, _ = CompactProof(tuple(nodes)).decode(root)
    except ProofError:
        return False
    return proof.nodes != frozenset(nodes)


def _is_binary(data: bytes) -> bool:
    """Return whether these bytes are no text: proofs hold hashes, and those hold what no text does."""
    try:
        return any(sign < " " and not sign.isspace() for sign in data.decode())
    except UnicodeDecodeError:
        return True


def _scale_nodes(data: bytes, place: str) -> list[bytes]:
    from relaycast_trie.exceptions import CodecError  # noqa: PLC0415
    from relaycast_trie.scale import ScaleReader  # noqa: PLC0415

    reader = ScaleReader(data)
    try:
        nodes = [reader.bytes_() for _ in range(reader.length())]
        reader.done()
    except CodecError as error:
        raise BadInput(place, f"{shown(f'0x{data.hex()}')} ({error})", "a proof as SCALE Vec<Vec<u8>>") from None
    return nodes


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
