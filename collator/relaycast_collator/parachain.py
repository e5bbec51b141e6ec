"""A parachain: a state with the subscriber pallet, an outbox of publications, and blocks on relay parents.

Every parachain can publish and subscribe. A block takes the inherent over or panics; a panicking block is not built.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from relaycast_collator.header import Header
from relaycast_pallets.frame import Event, System
from relaycast_pallets.parachain_system import ParachainInherentData, ParachainSystem, ValidationOutcome
from relaycast_pallets.policies import Policies
from relaycast_pallets.published_entry import PublishedEntry
from relaycast_pallets.relay_budget import BudgetPolicy
from relaycast_pallets.state import State
from relaycast_pallets.subscriber import Subscriber, SubscriberConfig
from relaycast_pallets.subscription import SubscribedKey, SubscriptionHandler, Subscriptions, TtlState
from relaycast_trie import StorageProof, blake2_256, witness
from relaycast_xcm import ParaId, Publish, Weight
from relaycast_xcm.barriers import MAX_PUBLISH_INSTRUCTIONS
from relaycast_xcm.message import encode_versioned_xcm
from relaycast_xcm.ump import POLKADOT_LIMITS

Update = tuple[ParaId, SubscribedKey, PublishedEntry]


@dataclass(frozen=True, slots=True)
class Publication:
    """A value on its way out, and the ``tick`` at which it was given."""

    key: bytes
    value: bytes
    ttl: int
    tick: int


@dataclass(frozen=True, slots=True)
class SentMessage:
    """An upward message with the publications in it."""

    data: bytes
    publications: tuple[Publication, ...]

    @property
    def id(self) -> bytes:
        return blake2_256(self.data)


@dataclass(frozen=True, slots=True)
class ParachainBlock:
    """A block that was built: its header, and what its inherent did."""

    header: Header
    outcome: ValidationOutcome
    updates: tuple[Update, ...]
    events: tuple[Event, ...]
    own_proof: StorageProof
    """The nodes of the parachain's own state that the block reads and rewrites."""

    def __repr__(self) -> str:
        return f"<ParachainBlock #{self.header.number}, {len(self.updates)} updates>"


class KeptValues:
    """The plainest subscriber: it keeps the last value of every key."""

    def __init__(self) -> None:
        self.wanted: dict[ParaId, list[SubscribedKey]] = {}
        self.values: dict[tuple[ParaId, SubscribedKey], tuple[bytes, TtlState]] = {}

    def subscriptions(self) -> tuple[Subscriptions, Weight]:
        return list(self.wanted.items()), Weight.ZERO

    def on_data_updated(self, publisher: ParaId, key: SubscribedKey, value: bytes, ttl_state: TtlState) -> Weight:
        self.values[publisher, key] = value, ttl_state
        return Weight.ZERO


class Parachain:
    """One parachain; ``handler`` is its own code, ``KeptValues`` unless given."""

    def __init__(
        self,
        para_id: ParaId,
        *,
        handler: SubscriptionHandler | None = None,
        config: SubscriberConfig | None = None,
        policies: Policies | None = None,
        budget: BudgetPolicy | None = None,
    ) -> None:
        self.para_id = para_id
        self.kept = KeptValues()
        self.state = State(window=2)
        self.system = System(self.state)
        self.subscriber = Subscriber(self.system, handler or self.kept, config, policies=policies)
        self.parachain_system = ParachainSystem(para_id, self.system, self.subscriber, budget=budget)
        self.head = Header(bytes(32), 0, self.state.root)
        self.outbox: deque[Publication] = deque()

    def publish(self, key: bytes, value: bytes, *, ttl: int = 0, tick: int = 0) -> None:
        """Put a value into the outbox; the next blocks send it, as many as a block may."""
        self.outbox.append(Publication(SubscribedKey(key), value, ttl, tick))

    def build_block(self, inherent: ParachainInherentData) -> ParachainBlock:
        """Build the next block on the inherent's relay parent; raises ``BlockPanicked`` and stays as it was."""
        parent, storage = self.head, self.state.top
        storage.reads = set()
        try:
            with self.state.transaction():
                self.system.initialize(parent.number + 1, parent_hash=parent.hash)
                outcome = self.parachain_system.set_validation_data(inherent, seed=parent.hash)
        finally:
            reads, storage.reads = storage.reads, None
        changes = {key: self.state.get(key) for key in sorted(storage.unsealed)}
        own_proof = witness(self.state.db, self.state.root, reads, changes)
        self.head = Header(parent.hash, parent.number + 1, self.state.commit())
        delivered = self.subscriber.delivered
        return ParachainBlock(self.head, outcome, tuple(delivered.updates), tuple(self.system.events), own_proof)

    def take_messages(self) -> list[SentMessage]:
        """Take out of the outbox what one block may send: full messages of ``Publish`` instructions, oldest first."""
        messages: list[SentMessage] = []
        while self.outbox and len(messages) < POLKADOT_LIMITS.messages_per_candidate:
            messages.append(self._next_message())
        return messages

    def _next_message(self) -> SentMessage:
        taken: list[Publication] = []
        while self.outbox and len(taken) < MAX_PUBLISH_INSTRUCTIONS:
            taken.append(self.outbox[0])
            if taken[1:] and len(_encode(taken)) > POLKADOT_LIMITS.message_bytes:
                taken.pop()
                break
            self.outbox.popleft()
        return SentMessage(_encode(taken), tuple(taken))

    def __repr__(self) -> str:
        return f"<Parachain {self.para_id} at #{self.head.number}>"


def _encode(publications: Sequence[Publication]) -> bytes:
    return encode_versioned_xcm([Publish(entry.key, entry.value, entry.ttl) for entry in publications])
