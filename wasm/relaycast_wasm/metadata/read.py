"""Metadata from bytes, whatever its version, and out of what a runtime's functions answer.

Law: bytes that are not metadata of V9 to V16, whole and with nothing behind it, raise ``CodecError`` with the offset
where it shows. Time and memory are bounded by their number, which is bounded too.
"""

from relaycast_trie.exceptions import CodecError
from relaycast_wasm.metadata.model import Metadata
from relaycast_wasm.metadata.named_versions import read_named
from relaycast_wasm.metadata.portable_versions import read_portable
from relaycast_wasm.metadata.reader import MetadataReader

MAGIC = b"meta"
VERSIONS = range(9, 17)

MAX_BYTES = 4 << 20
"""Five times what the largest runtimes have."""


def read_metadata(data: bytes) -> Metadata:
    """Return the metadata that all of ``data`` is: ``meta``, the version, and what that version has."""
    if len(data) > MAX_BYTES:
        raise CodecError(f"metadata has at most {MAX_BYTES:,} bytes, got {len(data):,}")
    reader = MetadataReader(data)
    magic = reader.take(min(len(MAGIC), reader.remaining))
    if magic != MAGIC:
        raise CodecError(f"metadata starts with 0x{MAGIC.hex()} (meta), got 0x{magic.hex()}")
    start = reader.offset
    version = reader.u8()
    if version not in VERSIONS:
        raise CodecError(f"metadata of version {VERSIONS[0]} to {VERSIONS[-1]} expected, got {version}", start)
    metadata = read_named(reader, version) if version < 14 else read_portable(reader, version)
    reader.done()
    return metadata


def opaque_metadata(answer: bytes) -> bytes:
    """Return the metadata inside what ``Metadata_metadata`` answers: a ``Vec<u8>`` of it."""
    reader = MetadataReader(answer)
    data = reader.bytes_()
    reader.done()
    return data


def opaque_metadata_at_version(answer: bytes) -> bytes | None:
    """Return the metadata inside what ``Metadata_metadata_at_version`` answers; ``None`` for a version it lacks."""
    reader = MetadataReader(answer)
    data = reader.bytes_() if reader.option() else None
    reader.done()
    return data


def metadata_versions(answer: bytes) -> tuple[int, ...]:
    """Return the versions that ``Metadata_metadata_versions`` answers."""
    reader = MetadataReader(answer)
    versions = tuple(reader.u32() for _ in range(reader.length(4)))
    reader.done()
    return versions
