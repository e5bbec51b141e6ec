"""The pass that goes first: every chain's state, block after block, without a proof being made or checked.

A relay block holds the heads of parachains, and these follow from what they read of the relay chain: no block can be
built before the one before it. What costs most, collecting, pruning and verifying proofs, leaves no trace in any state.
Fast forward leaves it out, reads the relay chain's trie itself, and puts a checkpoint at the start of every segment.
The segments are then replayed in full, side by side, and each must end where fast forward did.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relaycast_collator import Collation, Collator, Parachain, ParachainBlock, RelayBlock, RelayChain
from relaycast_collator.parachain import ExecutedBlock
from relaycast_ledger.segments.checkpoint import closing_digest, freeze
from relaycast_ledger.segments.simulated import Simulated
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.well_known_keys import static_relay_keys
from relaycast_pallets.parachain_system.inbound_messages import (
    InvalidMessages,
    MessagesTaken,
    MessagingState,
    channel_keys,
)
from relaycast_pallets.parachain_system.pallet import (
    IncompleteBelowLimit,
    Panic,
    ParachainInherentData,
    ValidationOutcome,
    ensure_exhausted,
)
from relaycast_pallets.subscriber.pallet import ProcessingMode, process_proof
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_trie import StorageProof
from relaycast_trie.gc_policy import uncollected
from relaycast_xcm import ParaId

ROOTS_KEPT = 8
"""Relay blocks whose static keys are remembered at a time."""

SHARED_KEYS = frozenset(static_relay_keys(ParaId(0))) & frozenset(static_relay_keys(ParaId(1)))
"""The static keys that all parachains have in common."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Blocks ``first`` to ``last``, to be replayed from ``checkpoint`` up to the state with the digest ``closing``."""

    number: int
    first: int
    last: int
    checkpoint: bytes
    closing: bytes


class StaticReads:
    """The nodes on the way to the static keys of a relay block: to those that all parachains read, looked up once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._shared: dict[bytes, frozenset[bytes]] = {}

    def bare_trie(self, relay_root: bytes) -> TrackedProof:
        """Return the trie under ``relay_root`` as one who has read nothing finds it."""
        return TrackedProof.trusted(self._state.nodes_under(relay_root), relay_root)  # type: ignore[arg-type]

    def trie(self, relay_root: bytes, para_id: ParaId) -> TrackedProof:
        """Return the trie under ``relay_root`` as one finds it who has read the static keys of ``para_id``."""
        trie = self.bare_trie(relay_root)
        if relay_root not in self._shared:
            if len(self._shared) >= ROOTS_KEPT:
                self._shared.clear()
            trie.read_static(SHARED_KEYS)
            self._shared[relay_root] = frozenset(trie.accessed)
        trie.accessed |= self._shared[relay_root]
        trie.read_static(key for key in static_relay_keys(para_id) if key not in SHARED_KEYS)
        trie.read_static(channel_keys(trie.read_static, para_id))
        return trie


class FastForwardCollator(Collator):
    """Builds blocks that leave the same state as those of the collator it stands for, with empty proofs."""

    def __init__(self, collator: Collator, relay_chain: RelayChain, static: StaticReads) -> None:
        super().__init__(collator.parachain, relay_chain, max_pov_size=collator.max_pov_size)
        self._static = static
        self._found: tuple[ValidationOutcome, MessagingState] | None = None

    def collate(self, relay_parent: RelayBlock) -> Collation:
        """Run the pass of PRUNE over the whole trie; what is static matters to those who read something else."""
        system, head = self.parachain.parachain_system, self.parachain.head
        inherent = self.bare_inherent(relay_parent)
        root, subscribes = relay_parent.state_root, system.subscriber.subscribes
        trie = self._static.trie(root, system.para_id) if subscribes else self._static.bare_trie(root)
        meter, abridged = system.meter(inherent)
        relay = MessagingState.read(self._static.bare_trie(root).read_static, system.para_id)
        with self.parachain.upgrades.migrated():
            result = process_proof(
                ProcessingMode.PRUNE,
                trie,
                trie.relay_root,
                meter,
                system.subscriber,
                seed=head.hash,
                reduced_by_messages=abridged.reduced_by_messages,
            )
        self._found = ValidationOutcome(result, meter, abridged), relay
        return Collation(StorageProof(), inherent, result)

    def execute(self, collation: Collation) -> ParachainBlock:
        """Take over what the pass found; raises ``Panic`` where the block would."""
        found, parachain = self._found, self.parachain
        assert found is not None
        (outcome, relay), subscriber = found, parachain.subscriber
        result = outcome.result
        parachain.system.events.take()
        try:
            ensure_exhausted(result, outcome.meter)
        except IncompleteBelowLimit as error:
            raise Panic(error) from error
        outcome = replace(outcome, messages=adopt(parachain, result, collation.inherent, relay))
        updates, events = tuple(subscriber.delivered.updates), tuple(parachain.system.events)
        deletions = tuple(subscriber.delivered.deletions)
        return ParachainBlock(parachain.head, collation.inherent, outcome, updates, events, StorageProof(), deletions)


def adopt(
    parachain: Parachain, result: ProofProcessingResult, inherent: ParachainInherentData, relay: MessagingState
) -> MessagesTaken:
    """Let a parachain build its next block with what a pass found: its state is as if it had been proven.

    Raises ``Panic`` where the messages of the inherent are not those that the ``relay`` chain has.
    """
    parent, relay_parent = parachain.head, inherent.validation_data.relay_parent_number
    try:
        with parachain.state.transaction():
            parachain.system.initialize(parent.number + 1, parent_hash=parent.hash)
            parachain.upgrades.begin_block()
            inbound = parachain.parachain_system.inbound
            taken = inbound.take_over(inherent.messages, relay, relay_parent_number=relay_parent)
            parachain.subscriber.apply(result, relay_parent_number=relay_parent)
    except InvalidMessages as refusal:
        raise Panic(refusal) from refusal
    parachain.seal(inherent.validation_data, parachain.state.commit())
    parachain.kept.settle()
    return taken


class FrugalCollator(Collator):
    """Works as ``collator`` does where its chain reads something, and as fast forward does where it reads nothing.

    It can say what its chain knew of messages before the block that it collated last.
    """

    def __init__(self, collator: Collator, static: StaticReads, relay_chain: RelayChain) -> None:
        super().__init__(collator.parachain, relay_chain, max_pov_size=collator.max_pov_size, tamper=collator.tamper)
        self._full = collator
        self._bare = FastForwardCollator(collator, relay_chain, static)
        self._chosen: Collator = collator
        self.messages_before = b""

    def collate(self, relay_parent: RelayBlock) -> Collation:
        """Prepare a block with a proof if the chain reads something, without one if not."""
        idle = self.tamper is None and not self.parachain.subscriber.subscribes
        self._chosen = self._bare if idle else self._full
        self.messages_before = self.parachain.parachain_system.inbound.encode()
        return self._chosen.collate(relay_parent)

    def execute(self, collation: Collation) -> ExecutedBlock | ParachainBlock:
        """Build the block that was prepared; raises ``Panic``."""
        return self._chosen.execute(collation)


def fast_forward(simulation: Simulated, *, done: int, blocks: int, segment_blocks: int) -> Iterator[Segment]:
    """Go from block ``done``, at a segment's end, to ``blocks``; the simulation ends where the last segment does.

    Segment 0 is block 1, which whoever prepared the simulation lets pass: calls that wait for it cannot be put away.
    """
    if not done:
        raise ValueError("fast forward begins after block 1")
    while done < blocks:
        first, last = done + 1, min(done + segment_blocks, blocks)
        simulation.look_ahead(last)
        checkpoint = freeze(simulation)
        with _unburdened(simulation), uncollected():
            for block in range(first, last + 1):
                simulation.pass_over(block)
        yield Segment((first - 2) // segment_blocks + 1, first, last, checkpoint, closing_digest(simulation))
        done = last


@contextmanager
def _unburdened(simulation: Simulated) -> Iterator[None]:
    """Let the collators of fast forward work for a while; those that lie go on themselves."""
    chains = simulation.chains
    honest: dict[ParaId, Collator] = {
        para_id: collator for para_id, collator in chains.collators.items() if collator.tamper is None
    }
    static = StaticReads(chains.relay_chain.state)
    chains.collators.update(
        {para_id: FastForwardCollator(collator, chains.relay_chain, static) for para_id, collator in honest.items()}
    )
    try:
        with simulation.ledger.replaying():
            yield
    finally:
        chains.collators.update(honest)
