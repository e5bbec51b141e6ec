"""What a collator asks a relay chain node to prove: the static keys, and what the parachain requests."""

import logging
from collections.abc import Iterable
from typing import Protocol

from relaycast_collator.relay_chain import RelayBlock
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_pallets.parachain_system.relay_proof_request import RelayProofRequest
from relaycast_trie import StorageProof

log = logging.getLogger(__name__)


class RelayProver(Protocol):
    """A relay chain node, as far as a collator needs it."""

    def prove_read(self, block: RelayBlock, keys: list[bytes], /) -> StorageProof: ...

    def prove_child_read(self, block: RelayBlock, storage_key: bytes, keys: list[bytes], /) -> StorageProof: ...


def collect_relay_storage_proof(
    relay_chain: RelayProver, relay_parent: RelayBlock, static_keys: Iterable[bytes], request: RelayProofRequest
) -> StorageProof:
    """Return one proof of everything: top keys in one read, each child trie in one, merged (cumulus).

    A child trie that cannot be proven is logged and left out, so that the block can be built without it. Raises
    ``StateDiscarded`` when the relay parent itself is gone.
    """
    top_keys = list(dict.fromkeys([*static_keys, *request.top_keys()]))
    proofs = [relay_chain.prove_read(relay_parent, top_keys)]
    for storage_key, keys in request.by_child_trie().items():
        try:
            proofs.append(relay_chain.prove_child_read(relay_parent, storage_key, keys))
        except StateDiscarded as error:
            log.warning("child trie 0x%s left out of the relay proof: %s", storage_key.hex(), error)
    return StorageProof.merge(proofs)
