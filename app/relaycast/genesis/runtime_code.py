"""The code of a runtime as people have it: Wasm, compressed or not, its hex, or a state that holds it.

Law: the bytes say what they are, not the file's name. A chain spec or a state gives what stands under ``:code``.
"""

from relaycast.genesis.chain_spec import CODE, ChainSpec
from relaycast.genesis.state_export import PARQUET_MAGIC, state_of
from relaycast.inputs import parse_hex, place_of, read_bytes
from relaycast.refusal import BadInput, shown

EXPECTED = "a runtime: Wasm, compressed or not, its 0x hex, or a raw chain spec or state with :code"

WASM_MAGIC = b"\x00asm"
COMPRESSED_MAGIC = bytes.fromhex("52bc537646db8e05")
"""What stands in front of a runtime that is compressed with zstd."""

SHOWN_BYTES = 8


def read_runtime_code(file: str) -> bytes:
    """Return the code of the runtime in ``file``, as its chain would store it; raises ``BadInput``."""
    place, data = place_of(file), read_bytes(file)
    if data.startswith((WASM_MAGIC, COMPRESSED_MAGIC)):
        return data
    text = data.strip()
    if text.startswith((b"0x", b'"0x')):
        return _checked(parse_hex(text.strip(b'"').decode("ascii", "replace"), place), place)
    if text.startswith((b"{", b"[")) or data.startswith(PARQUET_MAGIC):
        return code_of(state_of(data, place), place)
    raise BadInput(place, _beginning(data), EXPECTED)


def code_of(state: ChainSpec, place: str) -> bytes:
    """Return what stands under ``:code`` in a state."""
    code = state.top.get(CODE)
    if code is None:
        raise BadInput(place, "a state without :code", EXPECTED)
    return _checked(code, f"{place} at :code")


def _checked(code: bytes, place: str) -> bytes:
    if not code.startswith((WASM_MAGIC, COMPRESSED_MAGIC)):
        raise BadInput(place, _beginning(code), EXPECTED)
    return code


def _beginning(data: bytes) -> str:
    if not data:
        return "nothing"
    head = data[:SHOWN_BYTES]
    return shown(head.decode()) if head.isascii() and head.decode().isprintable() else f"0x{head.hex()} at its start"
