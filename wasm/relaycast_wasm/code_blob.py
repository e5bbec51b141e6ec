"""A runtime's bytes as files and states hold them: WebAssembly, compressed or not (``sp-maybe-compressed-blob``)."""

import pyarrow as pa

from relaycast_wasm.exceptions import NotARuntime

COMPRESSED = bytes.fromhex("52bc537646db8e05")
"""What stands in front of a compressed runtime (``ZSTD_PREFIX``)."""

MAX_CODE_BYTES = 50 * 1024 * 1024
"""The most that a runtime may come to (``CODE_BLOB_BOMB_LIMIT``)."""

COMPONENT = b"\x00asm\x0d\x00\x01\x00"
MAGIC = b"\x00asm\x01\x00\x00\x00"


def wasm_of(code: bytes) -> bytes:
    """Return the WebAssembly that ``code`` is, decompressed; raises ``NotARuntime``."""
    if code.startswith(COMPRESSED):
        try:
            stream = pa.CompressedInputStream(pa.BufferReader(code[len(COMPRESSED) :]), "zstd")
            found = bytes(stream.read(MAX_CODE_BYTES + 1))
        except (OSError, pa.ArrowException) as error:
            raise NotARuntime(f"its compressed part is damaged ({error})") from None
        if len(found) > MAX_CODE_BYTES:
            raise NotARuntime(f"it comes to more than {MAX_CODE_BYTES:,} bytes")
        code = found
    if code.startswith(COMPONENT):
        raise NotARuntime("it is a component, a runtime is a module")
    if not code.startswith(MAGIC):
        raise NotARuntime(f"it begins with 0x{code[:8].hex()}, WebAssembly with 0x{MAGIC.hex()}")
    return code
