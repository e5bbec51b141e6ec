"""A runtime's metadata in the newest version that both it and this reader know."""

from typing import TYPE_CHECKING

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import encode_u32
from relaycast_wasm.metadata.model import Metadata
from relaycast_wasm.metadata.read import VERSIONS, metadata_versions, opaque_metadata_at_version, read_metadata

if TYPE_CHECKING:
    from relaycast_wasm.runtime import WasmRuntime

LISTING, AT_VERSION = "Metadata_metadata_versions", "Metadata_metadata_at_version"


def metadata_of(runtime: "WasmRuntime") -> Metadata:
    """Return the metadata of ``runtime``; raises ``CallFailed`` and ``CodecError``.

    Old runtimes give one version; later ones list several, of which unstable ones have numbers that nobody knows.
    """
    if {LISTING, AT_VERSION} <= runtime.methods:
        known = [it for it in metadata_versions(_answer(runtime, LISTING, b"")) if it in VERSIONS]
        if known:
            newest = max(known)
            data = opaque_metadata_at_version(_answer(runtime, AT_VERSION, encode_u32(newest)))
            if data is None:
                raise CodecError(f"metadata V{newest}, which the runtime lists, is not what it gives")
            return read_metadata(data)
    return read_metadata(runtime.metadata())


def _answer(runtime: "WasmRuntime", method: str, arguments: bytes) -> bytes:
    from relaycast_wasm.runtime import empty_overlay  # noqa: PLC0415 - loads the engine

    return runtime.call(method, arguments, empty_overlay()).output
