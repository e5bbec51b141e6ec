"""The collator: it collects messages and a proof, prunes it by the block's own algorithm, and hands both over.

A collator remembers nothing between blocks: another one can take over at any time. ``tamper`` is for collators that
lie: it gets the honest inherent and returns the one that is handed over.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from relaycast_collator.parachain import ExecutedBlock, Parachain, ParachainBlock, seal_blocks
from relaycast_collator.relay_chain import RelayBlock
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_pallets.frame.well_known_keys import RelayProofRequest
from relaycast_pallets.messaging.inbound_message import InboundMessage
from relaycast_pallets.parachain_system.inbound_messages import channel_keys
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES, ParachainInherentData, PersistedValidationData
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.result import ProofProcessingResult
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


Tamper = Callable[[ParachainInherentData], ParachainInherentData]


@dataclass(frozen=True, slots=True)
class Pace:
    """When a parachain builds: ``cores`` blocks in every ``relay_blocks``-th relay block, all on one relay parent.

    One in each relay block is what asynchronous backing gives, one in two what was before it, several at once are
    elastic scaling. The relay parent is the newest relay block, or one that is older by ``relay_parent_offset``.
    """

    relay_blocks: int = 1
    cores: int = 1
    relay_parent_offset: int = 0

    def __post_init__(self) -> None:
        if self.relay_blocks < 1 or self.cores < 1 or self.relay_parent_offset < 0:
            raise ValueError(f"relay_blocks and cores must be at least 1, relay_parent_offset at least 0, got {self}")

    def blocks_in(self, tick: int, para_id: int) -> int:
        """Return how many blocks the parachain builds in this relay block; by their ids parachains take turns."""
        return self.cores if (tick - para_id) % self.relay_blocks == 0 else 0


@dataclass(frozen=True, slots=True)
class Collation:
    """What a collator prepared: the proof as collected, the inherent with what of it is needed, and how it pruned."""

    collected: StorageProof
    inherent: ParachainInherentData
    pruning: ProofProcessingResult

    def __repr__(self) -> str:
        collected, handed_over = self.collected.proof_bytes, self.inherent.proof_bytes
        return f"<Collation: {collected:,} bytes collected, {handed_over:,} handed over, {self.pruning!r}>"


class Collator:
    """Builds the blocks of one parachain on the relay chain's state."""

    def __init__(
        self,
        parachain: Parachain,
        relay_chain: RelayProver,
        *,
        max_pov_size: int = MAX_POV_BYTES,
        tamper: Tamper | None = None,
    ) -> None:
        self.parachain = parachain
        self.relay_chain = relay_chain
        self.max_pov_size = max_pov_size
        self.tamper = tamper

    def collate(self, relay_parent: RelayBlock) -> Collation:
        """Prepare a block on ``relay_parent``: collect, then prune within the budget that messages leave."""
        system, para_id = self.parachain.parachain_system, self.parachain.para_id
        request = system.relay_keys_to_prove()
        collected = collect_relay_storage_proof(
            self.relay_chain, relay_parent, system.static_keys(), request, channels_of=para_id
        )
        bare = self.bare_inherent(relay_parent)
        with self.parachain.upgrades.migrated():
            pruned, pruning = system.prune(bare, seed=self.parachain.head.hash, collected=collected)
        data, downward, horizontal = bare.validation_data, bare.downward_messages, bare.horizontal_messages
        return Collation(collected, ParachainInherentData(data, tuple(pruned), downward, horizontal), pruning)

    def bare_inherent(self, relay_parent: RelayBlock) -> ParachainInherentData:
        """Return the inherent of a block on ``relay_parent`` but for its proof: validation data and messages."""
        parachain = self.parachain
        data = PersistedValidationData(
            parachain.head.encode(), relay_parent.number, relay_parent.state_root, self.max_pov_size
        )
        waiting = self.relay_chain.inbound_messages(relay_parent, parachain.para_id)
        return parachain.parachain_system.create_inherent(data, *waiting)

    def build(self, collation: Collation) -> ParachainBlock:
        """Hand the inherent over, tampered with if this collator lies; raises ``Panic``."""
        built = self.execute(collation)
        return seal_blocks([built])[0] if isinstance(built, ExecutedBlock) else built

    def execute(self, collation: Collation) -> ExecutedBlock | ParachainBlock:
        """Build a block but for the seal of its state, which comes with those of other parachains; raises ``Panic``.

        A block that was built elsewhere is whole.
        """
        inherent = collation.inherent if self.tamper is None else self.tamper(collation.inherent)
        return self.parachain.execute_block(inherent)

    def __repr__(self) -> str:
        return f"<Collator of {self.parachain!r}{', which lies' if self.tamper is not None else ''}>"
