"""What a runtime says of itself, as ``Core_version`` answers and the section ``runtime_version`` of its code holds."""

from dataclasses import dataclass

from relaycast_trie.exceptions import CodecError
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.scale import ScaleReader


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
    def decode(cls, data: bytes) -> "RuntimeVersion":
        """Return the version that ``data`` encodes, old or new (sp-version ``decode_with_version_hint``)."""
        reader = ScaleReader(data)
        spec_name, impl_name = _text(reader), _text(reader)
        authoring, spec, impl = reader.u32(), reader.u32(), reader.u32()
        apis = {reader.take(8): reader.u32() for _ in range(reader.length(12))}
        core = apis.get(CORE, 0)
        transaction = reader.u32() if reader.remaining and core >= 3 else 1
        state = reader.u8() if reader.remaining and core >= 4 else 0
        return cls(spec_name, impl_name, authoring, spec, impl, apis, transaction, state)

    @property
    def trie_version(self) -> StateVersion:
        """How this runtime's state is written."""
        return StateVersion(min(self.state_version, 1))


CORE = bytes.fromhex("df6acb689907609b")
"""The id of the runtime API ``Core``."""


def _text(reader: ScaleReader) -> str:
    start = reader.offset
    try:
        return reader.bytes_().decode()
    except UnicodeDecodeError:
        raise CodecError("a name is text", start) from None
