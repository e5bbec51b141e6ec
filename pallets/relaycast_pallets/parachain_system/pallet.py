"""The parachain's side of a block's relay chain data: the inherent is believed only as far as its proof goes.

``set_validation_data`` reads the static keys, takes the messages over up to the heads that they name, and gives pub-sub
what the messages leave. It demands that every node of the proof was used, and that nothing was left out that would have
fitted. Otherwise the block panics: nothing of it is kept or handed on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relaycast_pallets.frame.system import System
from relaycast_pallets.frame.well_known_keys import RelayProofRequest, static_relay_keys
from relaycast_pallets.messaging.inbound_message import (
    NO_MESSAGES,
    AbridgedMessages,
    InboundMessage,
    InboundMessagesData,
)
from relaycast_pallets.parachain_system.inbound_messages import (
    NOTHING_TAKEN,
    InboundMessages,
    MessagesTaken,
    MessagingState,
    ensure_advanced,
)
from relaycast_pallets.parachain_system.relay_budget import Abridged, BudgetPolicy, PovUsage, Remaining
from relaycast_pallets.subscriber.pallet import Demand, ProcessingMode, Subscriber, process_proof
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_trie.scale import encode_bytes, encode_u32
from relaycast_xcm.primitives import U64_MAX, BlockNumber, ParaId, Weight, WeightMeter

MAX_POV_BYTES = 10 * 1024 * 1024
"""The largest proof of validity of a parachain block (polkadot-primitives ``MAX_POV_SIZE``); 5 MiB until 2025."""


@dataclass(frozen=True, slots=True)
class PersistedValidationData:
    """What the relay chain says about the block to be built (polkadot-primitives)."""

    parent_head: bytes
    relay_parent_number: BlockNumber
    relay_parent_storage_root: bytes
    max_pov_size: int = MAX_POV_BYTES

    def __repr__(self) -> str:
        root = self.relay_parent_storage_root.hex()
        return f"<PersistedValidationData of relay block {self.relay_parent_number}, state 0x{root}>"

    def encode(self) -> bytes:
        """SCALE: the head as ``Vec<u8>``, then u32, H256 and u32."""
        numbers = encode_u32(self.relay_parent_number) + self.relay_parent_storage_root
        return encode_bytes(self.parent_head) + numbers + encode_u32(self.max_pov_size)


@dataclass(frozen=True, slots=True)
class ParachainInherentData:
    """What a collator hands to its block: validation data, the relay state proof's nodes, and messages."""

    validation_data: PersistedValidationData
    relay_chain_state: tuple[bytes, ...]
    downward_messages: AbridgedMessages = NO_MESSAGES
    horizontal_messages: AbridgedMessages = NO_MESSAGES

    @property
    def proof_bytes(self) -> int:
        """Bytes of the relay state proof's nodes."""
        return sum(map(len, self.relay_chain_state))

    @property
    def messages(self) -> InboundMessagesData:
        """All messages, as the call of the inherent encodes them."""
        return InboundMessagesData(self.downward_messages, self.horizontal_messages)

    @property
    def message_bytes(self) -> int:
        """Bytes of messages in full, and of the entries of those that are hashed."""
        both = self.downward_messages, self.horizontal_messages
        return sum(messages.full_bytes + messages.hashed_bytes for messages in both)

    def __repr__(self) -> str:
        messages = len(self.downward_messages) + len(self.horizontal_messages)
        proof = f"{len(self.relay_chain_state)} nodes, {self.proof_bytes:,} bytes"
        return f"<ParachainInherentData on {self.validation_data!r}: {proof}, {messages} messages>"

    def usage(self) -> PovUsage:
        """Return what the messages use of the block."""
        downward, horizontal = self.downward_messages, self.horizontal_messages
        hashed_bytes = downward.hashed_bytes + horizontal.hashed_bytes
        return _usage(self.validation_data, downward.full, horizontal.full, hashed_bytes=hashed_bytes)


class IncompleteBelowLimit(
    RelaycastError, message="the proof ends at publisher {publisher}, key {key}, with {remaining} of the budget left"
):
    """Processing ended at ``cursor`` although ``remaining`` would have held the largest node: data was left out."""

    publisher: ParaId
    key: bytes
    remaining: Weight


class Panic(RelaycastError):
    """The block is invalid, for this ``cause``; nothing of it is kept."""

    cause: RelaycastError

    def __str__(self) -> str:
        return f"the block panicked: {type(self.cause).__name__}: {self.cause}"


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """What ``set_validation_data`` did: the pass, the meter after it, how the proof was shared out, and messages."""

    result: ProofProcessingResult
    meter: WeightMeter
    abridged: Abridged
    messages: MessagesTaken = NOTHING_TAKEN


class ParachainSystem:
    """The pallet of parachain ``para_id``; ``ref_time_limit`` bounds pub-sub's reading time, in picoseconds."""

    def __init__(
        self,
        para_id: ParaId,
        system: System,
        subscriber: Subscriber,
        *,
        budget: BudgetPolicy | None = None,
        ref_time_limit: int = U64_MAX,
    ) -> None:
        self.para_id = para_id
        self.system = system
        self.subscriber = subscriber
        self.budget = budget or Remaining()
        self.ref_time_limit = ref_time_limit
        self.inbound = InboundMessages(system.state)

    def static_keys(self) -> tuple[bytes, ...]:
        """Return the relay chain keys that every proof covers, open channels apart."""
        return static_relay_keys(self.para_id)

    def read_static(self, proof: TrackedProof) -> MessagingState:
        """Read every static key, those of open channels among them, and return what they say about messages.

        Raises what the proof raises, ``CodecError`` and ``ChannelMissing``.
        """
        known = proof.read_static(self.static_keys())

        def read(keys: Iterable[bytes]) -> dict[bytes, bytes | None]:
            """Return values that were read, after reading those of keys that were not."""
            unknown = [key for key in keys if key not in known]
            if unknown:
                known.update(proof.read_static(unknown))
            return known

        return MessagingState.read(read, self.para_id)

    def relay_keys_to_prove(self) -> RelayProofRequest:
        """Return what a proof covers besides: the subscribed keys of every publisher that is not disabled."""
        return self.subscriber.relay_keys()

    def create_inherent(
        self, data: PersistedValidationData, downward: Sequence[InboundMessage], horizontal: Sequence[InboundMessage]
    ) -> ParachainInherentData:
        """Return the inherent of an honest collator, still without a proof, from what the relay chain's queues hold.

        Processed messages are dropped; the budget policy says how many of the others are in full.
        """
        downward, horizontal = self.inbound.unprocessed(downward, horizontal)
        if not downward and not horizontal:
            return ParachainInherentData(data, ())
        abridged = self.budget.share_out(_usage(data, downward, horizontal))
        return ParachainInherentData(
            data,
            (),
            AbridgedMessages.of(downward, abridged.downward_count),
            AbridgedMessages.of(horizontal, abridged.horizontal_count),
        )

    def prune(
        self, inherent: ParachainInherentData, seed: bytes, *, collected: StorageProof | None = None
    ) -> tuple[StorageProof, ProofProcessingResult]:
        """Return what of the inherent's proof the block will read within its budget; writes nothing.

        The collator's half: raises what the block would panic with. What it has ``collected`` may stand in for the
        inherent's own nodes; a proof that was read from a database is not hashed again.
        """
        relay_root = inherent.validation_data.relay_parent_storage_root
        if collected is None:
            proof = TrackedProof(inherent.relay_chain_state, relay_root)
        else:
            proof = TrackedProof.collected(collected, relay_root)
        self.read_static(proof)
        meter, abridged = self.meter(inherent)
        result = self._process(ProcessingMode.PRUNE, proof, inherent, meter, seed, abridged)
        return proof.read_nodes(), result

    def set_validation_data(self, inherent: ParachainInherentData, seed: bytes) -> ValidationOutcome:
        """Take over the inherent; raises ``Panic`` and leaves no trace when it does not hold."""
        try:
            with self.system.state.transaction():
                return self._verify(inherent, seed)
        except RelaycastError as error:
            raise Panic(error) from error

    def _verify(self, inherent: ParachainInherentData, seed: bytes) -> ValidationOutcome:
        relay_root = inherent.validation_data.relay_parent_storage_root
        proof = TrackedProof.without_duplicates(inherent.relay_chain_state, relay_root)
        relay = self.read_static(proof)
        relay_parent_number = inherent.validation_data.relay_parent_number
        messages = self.inbound.take_over(inherent.messages, relay, relay_parent_number=relay_parent_number)
        meter, abridged = self.meter(inherent)
        advancement = self.subscriber.policies.advancement
        ensure_advanced(inherent.horizontal_messages, relay.ingress, abridged.horizontal_room, advancement)

        def demand(result: ProofProcessingResult) -> None:
            proof.ensure_no_unused_nodes()
            ensure_exhausted(result, meter)

        result = self._process(ProcessingMode.VERIFY, proof, inherent, meter, seed, abridged, demand)
        return ValidationOutcome(result, meter, abridged, messages)

    def _process(
        self,
        mode: ProcessingMode,
        proof: TrackedProof,
        inherent: ParachainInherentData,
        meter: WeightMeter,
        seed: bytes,
        abridged: Abridged,
        demand: Demand | None = None,
    ) -> ProofProcessingResult:
        return process_proof(
            mode,
            proof,
            proof.relay_root,
            meter,
            self.subscriber,
            seed=seed,
            relay_parent_number=inherent.validation_data.relay_parent_number,
            reduced_by_messages=abridged.reduced_by_messages,
            demand=demand,
        )

    def meter(self, inherent: ParachainInherentData) -> tuple[WeightMeter, Abridged]:
        """Return what pub-sub may use beside the messages of the inherent."""
        abridged = self.budget.share_out(inherent.usage())
        return WeightMeter(Weight(self.ref_time_limit, abridged.pubsub_bytes)), abridged


def _usage(
    data: PersistedValidationData,
    downward: Sequence[InboundMessage],
    horizontal: Sequence[InboundMessage],
    *,
    hashed_bytes: int = 0,
) -> PovUsage:
    downward_data, horizontal_data = tuple(it.data for it in downward), tuple(it.data for it in horizontal)
    return PovUsage(data.max_pov_size, downward_data, horizontal_data, hashed_bytes=hashed_bytes)


def ensure_exhausted(result: ProofProcessingResult, meter: WeightMeter) -> None:
    """Raise ``IncompleteBelowLimit`` where a pass ended early although ``meter`` would have held the largest read.

    A pass ended by its callback meter may leave any budget: whatever the proof holds, the chain stops at the same key.
    """
    if result.stopped_at is None or result.is_stopped_by_callbacks:
        return
    if meter.can_consume(result.least):
        raise IncompleteBelowLimit(*result.stopped_at, meter.remaining())
