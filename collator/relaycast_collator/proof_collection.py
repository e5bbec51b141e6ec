"""What a collator asks a relay chain node for: messages, and proofs of the static keys and what else is requested."""

import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

from relaycast_collator.relay_chain import RelayBlock
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_pallets.frame.well_known_keys import RelayProofRequest
from relaycast_pallets.messaging.inbound_message import InboundMessage
from relaycast_pallets.parachain_system.inbound_messages import channel_keys
from relaycast_pallets.subscriber.tracked_proof import TrackedProof
from relaycast_trie import StorageProof
from relaycast_xcm import ParaId

log = logging.getLogger(__name__)


class StorageProver(Protocol):
    """Who proves reads of the relay chain's state."""

    def prove_read(self, block: RelayBlock, keys: list[bytes], /) -> StorageProof: ...

    def prove_child_read(self, block: RelayBlock, storage_key: bytes, keys: list[bytes], /) -> StorageProof: ...


class RelayProver(StorageProver, Protocol):
    """A relay chain node, as far as a collator needs it."""

    def inbound_messages(
        self, block: RelayBlock, para_id: ParaId, /
    ) -> tuple[Sequence[InboundMessage], Sequence[InboundMessage]]: ...


def collect_relay_storage_proof(
    relay_chain: StorageProver,
    relay_parent: RelayBlock,
    static_keys: Iterable[bytes],
    request: RelayProofRequest,
    *,
    channels_of: ParaId | None = None,
) -> StorageProof:
    """Return one proof of everything: top keys in one read, each child trie in one, merged (cumulus).

    Which channels ``channels_of`` a parachain are open is read out of the proof of the static keys; they are proven as
    well. A child trie that cannot be proven is logged and left out, so that the block can be built without it. Raises
    ``StateDiscarded`` when the relay parent itself is gone.
    """
    top_keys = list(dict.fromkeys([*static_keys, *request.top_keys()]))
    proofs = [relay_chain.prove_read(relay_parent, top_keys)]
    if channels_of is not None:
        channels = channel_keys(TrackedProof.collected(proofs[0], relay_parent.state_root).read_static, channels_of)
        if channels:
            proofs.append(relay_chain.prove_read(relay_parent, channels))
    for storage_key, keys in request.by_child_trie().items():
        try:
            proofs.append(relay_chain.prove_child_read(relay_parent, storage_key, keys))
        except StateDiscarded as error:
            log.warning("child trie 0x%s left out of the relay proof: %s", storage_key.hex(), error)
    return StorageProof.merge(proofs)
