"""The relay proofs of the last parachain blocks: as collected, as pruned, and what each node is there for.

What a node is for is worked out when somebody asks. A Wasm parachain's collator prunes nothing, and
what its nodes are for is not known here: its proof comes without tries.
"""

from collections import Counter, deque
from dataclasses import dataclass

from relaycast_collator import BlockBuilt, ChainSimulator, Fact, WasmBlockBuilt
from relaycast_ledger.accounting import account_for
from relaycast_ledger.proof_picture import PicturedTrie, picture_tries
from relaycast_pallets.parachain_system.inbound_messages import channel_keys
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_xcm import ParaId

BLOCKS_KEPT = 64
"""Blocks of each parachain whose proofs are kept for ``dev_proof``, the newest."""


@dataclass(frozen=True, slots=True)
class ProofOfBlock:
    """The proof of one parachain block: its relay parent, all nodes collected, those handed over, and their places."""

    para_id: ParaId
    number: int
    relay_parent_number: int
    relay_parent_hash: bytes
    relay_parent_root: bytes
    full: tuple[bytes, ...]
    pruned: tuple[bytes, ...]
    tries: tuple[PicturedTrie, ...]


class ProofTracker:
    """Keeps the inputs of the proofs of the last blocks of ``chains``; ``on_fact`` takes facts of complete ticks."""

    def __init__(self, chains: ChainSimulator) -> None:
        self._chains = chains
        self._built: dict[ParaId, deque[BlockBuilt | WasmBlockBuilt]] = {}

    def on_fact(self, fact: Fact) -> None:
        """Keep a block that was built; a block at the height of an earlier one takes its place."""
        if isinstance(fact, BlockBuilt | WasmBlockBuilt):
            kept = self._built.setdefault(fact.para_id, deque(maxlen=BLOCKS_KEPT))
            while kept and kept[-1].block.header.number >= fact.block.header.number:
                kept.pop()
            kept.append(fact)

    def last(self, para_id: ParaId) -> BlockBuilt | None:
        """Return what was told of a modelled parachain's newest block."""
        kept = self._built.get(para_id)
        newest = kept[-1] if kept else None
        return newest if isinstance(newest, BlockBuilt) else None

    def numbers(self, para_id: ParaId) -> range:
        """Return the numbers of the blocks that are kept."""
        kept = self._built.get(para_id)
        return range(kept[0].block.header.number, kept[-1].block.header.number + 1) if kept else range(0)

    def proof_of(self, para_id: ParaId, number: int) -> ProofOfBlock | None:
        """Return the proof of a parachain's block, ``None`` where that block is not kept."""
        fact = next((it for it in self._built.get(para_id, ()) if it.block.header.number == number), None)
        if fact is None:
            return None
        if isinstance(fact, WasmBlockBuilt):
            nodes = tuple(fact.block.relay_proof)
            full, pruned, tries = nodes, nodes, tuple[PicturedTrie, ...]()
        else:
            full, pruned = tuple(fact.collation.collected.nodes), fact.block.inherent.relay_chain_state
            tries = self._tries(fact)
        parent = fact.relay_parent
        return ProofOfBlock(
            para_id=para_id,
            number=number,
            relay_parent_number=parent.number,
            relay_parent_hash=parent.hash,
            relay_parent_root=parent.state_root,
            full=full,
            pruned=tuple(pruned),
            tries=tries,
        )

    def _tries(self, fact: BlockBuilt) -> tuple[PicturedTrie, ...]:
        result, collected, root = fact.block.outcome.result, fact.collation.collected, fact.relay_parent.state_root
        parachain = self._chains.parachains[fact.para_id]
        causes: dict[bytes, str] = {}
        account = account_for(
            result,
            relay_root=root,
            proof=fact.block.inherent.relay_chain_state,
            collected=collected,
            subscriber=parachain.subscriber,
            callbacks=Counter(publisher for publisher, _, _ in fact.block.updates),
            causes=causes,
        )
        read = TrackedProof.collected(collected, root).read_static
        static_keys = (*parachain.parachain_system.static_keys(), *channel_keys(read, fact.para_id))
        return picture_tries(result, account, causes, root, static_keys, collected)
