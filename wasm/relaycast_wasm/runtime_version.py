"""What a runtime says of itself, as ``Core_version`` answers and the section ``runtime_version`` of its code holds."""

from dataclasses import dataclass

from relaycast_trie.exceptions import CodecError
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_compact, encode_u32
from relaycast_wasm.engine.sections import custom_sections
from relaycast_wasm.exceptions import NotARuntime


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """``apis`` by their 8-byte id; ``transaction_version`` and ``state_version`` are 1 and 0 where it is too old."""

    spec_name: str
    impl_name: str
    authoring_version: int
    spec_version: int
    impl_version: int
    apis: dict[bytes, int]
    transaction_version: int = 1
    state_version: int = 0

    @classmethod
    def decode(cls, data: bytes, *, apis: dict[bytes, int] | None = None) -> "RuntimeVersion":
        """Return the version that ``data`` encodes, old or new (sp-version ``decode_with_version_hint``).

        ``apis`` are those that stand beside it, where ``data`` is the section of a runtime's code.
        """
        reader = ScaleReader(data)
        spec_name, impl_name = _text(reader), _text(reader)
        authoring, spec, impl = reader.u32(), reader.u32(), reader.u32()
        listed = {reader.take(8): reader.u32() for _ in range(reader.length(12))}
        if apis is not None:
            listed = apis
        core = listed.get(CORE, 0)
        transaction = reader.u32() if reader.remaining and core >= 3 else 1
        state = reader.u8() if reader.remaining and core >= 4 else 0
        return cls(spec_name, impl_name, authoring, spec, impl, listed, transaction, state)

    def encode(self) -> bytes:
        """Return the version as ``Core_version`` of a runtime of today answers it."""
        texts = encode_bytes(self.spec_name.encode()) + encode_bytes(self.impl_name.encode())
        numbers = b"".join(map(encode_u32, (self.authoring_version, self.spec_version, self.impl_version)))
        apis = encode_compact(len(self.apis)) + b"".join(key + encode_u32(it) for key, it in self.apis.items())
        return texts + numbers + apis + encode_u32(self.transaction_version) + bytes([self.state_version])

    @property
    def trie_version(self) -> StateVersion:
        """How this runtime's state is written."""
        return StateVersion(min(self.state_version, 1))


API_BYTES = 12
VERSION_SECTION, APIS_SECTION = "runtime_version", "runtime_apis"


def embedded_version(wasm: bytes) -> RuntimeVersion | None:
    """Return the version that stands in a runtime's code; ``None`` where none does (``read_embedded_version``)."""
    found, apis = custom_sections(wasm, VERSION_SECTION), b"".join(custom_sections(wasm, APIS_SECTION))
    if not found:
        return None
    rows = [apis[at : at + API_BYTES] for at in range(0, len(apis), API_BYTES)]
    try:
        listed = {row[:8]: ScaleReader(row[8:]).u32() for row in rows}
        return RuntimeVersion.decode(found[0], apis=listed)
    except CodecError as error:
        raise NotARuntime(f"its section {VERSION_SECTION} does not decode: {error}") from None


CORE = bytes.fromhex("df6acb689907609b")
"""The id of the runtime API ``Core``."""


def _text(reader: ScaleReader) -> str:
    start = reader.offset
    try:
        return reader.bytes_().decode()
    except UnicodeDecodeError:
        raise CodecError("a name is text", start) from None
