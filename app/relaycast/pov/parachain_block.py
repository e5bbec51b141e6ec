"""A parachain block as a node returns it, and the inherent with the relay chain's data.

The call ``set_validation_data`` is recognised by its arguments, whatever the index of its pallet. A bare extrinsic
decodes completely in one of cumulus' forms, and the relay chain's state root is the hash of a node of the proof.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from relaycast_collator.header import Header
from relaycast_pallets.messaging.inbound_message import AbridgedMessages, InboundMessage, InboundMessagesData
from relaycast_pallets.parachain_system.pallet import PersistedValidationData
from relaycast_trie import CodecError, StorageProof
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec
from relaycast_xcm import ParaId

BARE = frozenset({0x04, 0x05})
"""First bytes of extrinsics without a signature, of versions 4 and 5."""

CALL_INDEX_BYTES = 2
ROOT_BYTES = 32


@dataclass(frozen=True, slots=True)
class GivenRelayData:
    """Arguments of ``set_validation_data``; ``form`` names the encoding of a cumulus version."""

    form: str
    call_index: tuple[int, int]
    """The index of the pallet in its runtime, and of the call in the pallet."""

    validation_data: PersistedValidationData
    nodes: tuple[bytes, ...]
    """The relay chain's state proof, as it is encoded: a set has its nodes in the order of their bytes."""

    messages: InboundMessagesData
    descendants: tuple[Header, ...] = ()
    """Headers of relay blocks above the relay parent, where the relay parent is not the newest."""


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A block: its header, and its extrinsics without the length that stands before each."""

    header: Header
    extrinsics: tuple[bytes, ...]

    @classmethod
    def decode(cls, data: bytes) -> "RawBlock":
        """Return the block that all of ``data`` encodes (SCALE ``Block``); raises ``CodecError``."""
        reader = ScaleReader(data)
        header = Header.read(reader)
        extrinsics = tuple(reader.bytes_() for _ in range(reader.length()))
        reader.done()
        return cls(header, extrinsics)

    @property
    def extrinsic_bytes(self) -> int:
        """Bytes of the body: all extrinsics, each with its length, and their number."""
        return len(encode_vec(encode_bytes(it) for it in self.extrinsics))

    def relay_data(self) -> tuple[int, GivenRelayData] | None:
        """Return the index of the extrinsic with the relay chain's data, and the data; ``None`` if there is none."""
        for index, extrinsic in enumerate(self.extrinsics):
            given = read_relay_data(extrinsic)
            if given is not None:
                return index, given
        return None


def read_relay_data(extrinsic: bytes) -> GivenRelayData | None:
    """Return the relay chain's data in a bare extrinsic, ``None`` for another call."""
    if len(extrinsic) < 1 + CALL_INDEX_BYTES or extrinsic[0] not in BARE:
        return None
    call = extrinsic[1], extrinsic[2]
    for form, read_rest in _FORMS.items():
        reader = ScaleReader(extrinsic, 1 + CALL_INDEX_BYTES)
        try:
            data, nodes = _read_validation_data(reader), _read_nodes(reader)
            descendants, messages = read_rest(reader)
            reader.done()
        except (CodecError, ValueError):
            continue
        if data.relay_parent_storage_root in StorageProof(nodes).by_hash():
            return GivenRelayData(form, call, data, nodes, messages, descendants)
    return None


def _read_validation_data(reader: ScaleReader) -> PersistedValidationData:
    return PersistedValidationData(reader.bytes_(), reader.u32(), reader.take(ROOT_BYTES), reader.u32())


def _read_nodes(reader: ScaleReader) -> tuple[bytes, ...]:
    return tuple(reader.bytes_() for _ in range(reader.length()))


Rest = tuple[tuple[Header, ...], InboundMessagesData]


def _read_full(reader: ScaleReader) -> Rest:
    downward = tuple(InboundMessage(reader.u32(), reader.bytes_()) for _ in range(reader.length(5)))
    horizontal = tuple(_read_channels(reader))
    return (), InboundMessagesData(AbridgedMessages(downward), AbridgedMessages(horizontal))


def _read_channels(reader: ScaleReader) -> Iterator[InboundMessage]:
    for _ in range(reader.length(5)):
        sender = ParaId(reader.u32())
        for _ in range(reader.length(5)):
            yield InboundMessage(reader.u32(), reader.bytes_(), sender)


def _read_abridged(reader: ScaleReader) -> Rest:
    return (), InboundMessagesData.read(reader)


def _read_with_descendants(reader: ScaleReader) -> Rest:
    descendants = tuple(Header.read(reader) for _ in range(reader.length()))
    return descendants, InboundMessagesData.read(reader)


def _read_with_peer(reader: ScaleReader) -> Rest:
    descendants = tuple(Header.read(reader) for _ in range(reader.length()))
    if reader.option():
        reader.bytes_()
    return descendants, InboundMessagesData.read(reader)


_FORMS: dict[str, Callable[[ScaleReader], Rest]] = {
    "messages in full": _read_full,
    "abridged messages": _read_abridged,
    "abridged messages, relay parent descendants": _read_with_descendants,
    "abridged messages, relay parent descendants, collator peer": _read_with_peer,
}
"""Readers of the arguments after the proof, oldest first (cumulus ``ParachainInherentData`` and its successors)."""
