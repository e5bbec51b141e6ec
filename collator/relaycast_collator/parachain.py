"""A parachain: a state with the subscriber pallet, an outbox of publications, and blocks on relay parents.

Every parachain can publish and subscribe. A block takes the inherent over or panics; a panicking block is not built,
and what was done in it is undone.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from relaycast_collator.header import (
    BlockBody,
    DigestItem,
    Header,
    aura_pre_digest,
    modelled_seal,
    relay_parent_storage_root_item,
)
from relaycast_collator.latest_values import KeptRow, LatestValues, WantedRow, WeightRow
from relaycast_collator.outbox import Outbox, Publication, SentMessage
from relaycast_collator.upgrades import ParachainUpgrades
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.frame.state import State, StateDump, commit_together
from relaycast_pallets.frame.system import Event, System
from relaycast_pallets.frame.tries import EngineChoice
from relaycast_pallets.parachain_system.inbound_messages import MessagingState
from relaycast_pallets.parachain_system.pallet import (
    ParachainInherentData,
    ParachainSystem,
    PersistedValidationData,
    ValidationOutcome,
)
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscriptionHandler
from relaycast_pallets.subscriber.variants.subscription_limits import excess_with, has_room_for
from relaycast_trie import EMPTY_ROOT, StorageProof
from relaycast_trie.engine import Engine
from relaycast_xcm import Location, ParaId, Weight
from relaycast_xcm.checkpoint import U32, VERSION, CheckpointRefused, Count, Dump, Version, refusing
from relaycast_xcm.ump import POLKADOT_LIMITS, UpwardLimits

Update = tuple[ParaId, SubscribedKey, PublishedEntry]

Deletion = tuple[ParaId, SubscribedKey]
"""A key whose deletion the subscriber was told."""


class ParachainDump(Dump, frozen=True):
    """A parachain between two blocks; ``head`` is the header in SCALE."""

    version: Version
    para_id: U32
    head: bytes
    tick: Count
    state: StateDump
    wanted: list[WantedRow]
    kept: list[KeptRow]
    outbox: list[Publication]
    upgrades: U32 | UnsetType = UNSET
    """Number of runtime upgrades up to ``head``; absent where there were none."""

    weights: list[WeightRow] | UnsetType = UNSET
    """The declared weights of callbacks; absent if all are zero."""


class ParachainBlock(Struct, frozen=True):
    """A block that was built: its header, the inherent it was given, what that did, and what it cost."""

    header: Header
    inherent: ParachainInherentData
    outcome: ValidationOutcome
    updates: tuple[Update, ...]
    events: tuple[Event, ...]
    own_proof: StorageProof
    """The nodes of the parachain's own state that the block reads and rewrites."""

    deletions: tuple[Deletion, ...] = ()

    def __repr__(self) -> str:
        return f"<ParachainBlock #{self.header.number}, {len(self.updates)} updates>"


class Parachain:
    """One parachain; ``handler`` is its own code, ``LatestValues`` unless given.

    ``tick`` is that of its next block; the network's clock sets it.
    """

    def __init__(
        self,
        para_id: ParaId,
        *,
        handler: SubscriptionHandler | None = None,
        config: SubscriberConfig | None = None,
        policies: Policies | None = None,
        budget: BudgetPolicy | None = None,
        upward_limits: UpwardLimits = POLKADOT_LIMITS,
        trie_engine: Engine | EngineChoice = "auto",
    ) -> None:
        self.para_id = para_id
        self.kept = LatestValues()
        self.outbox = Outbox(limits=upward_limits, account=Location.parachain(para_id))
        self.state = State(window=2, engine=trie_engine)
        self.system = System(self.state)
        self.subscriber = Subscriber(self.system, self.kept if handler is None else handler, config, policies=policies)
        self.parachain_system = ParachainSystem(para_id, self.system, self.subscriber, budget=budget)
        self.upgrades = ParachainUpgrades(self.parachain_system, self.kept)
        self.head = Header(bytes(32), 0, self.state.root)
        self.tick = 1
        self.body: BlockBody | None = None
        self.state.join(self.kept)
        self.state.join(self.outbox)

    def join(self, relay: MessagingState, *, relay_block: int) -> None:
        """Take over, before block 1, the heads and channels that the relay chain has for this id in ``relay_block``."""
        assert self.head.number == 0, "a parachain joins before its first block"
        if not relay.is_empty:
            self.parachain_system.inbound.adopt(relay, relay_block=relay_block)
            self.seal_genesis()

    def seal_genesis(self) -> None:
        """Make what was written before block 1 part of the genesis."""
        assert self.head.number == 0, "the genesis is sealed before the first block"
        self.head = Header(bytes(32), 0, self.state.commit())

    def publish(self, key: bytes, value: bytes, *, ttl: int = 0, tick: int | None = None, fees: int = 0) -> None:
        """Put a value into the outbox; the next blocks send it, as many as a block may.

        It counts as published at ``tick``, by default that of the next block. With ``fees`` its message pays for its
        execution, up to that amount of planck for it, from the parachain's sovereign account.

        Raises ``ValueError`` for a key that has not 32 bytes, a value longer than a ``Publish`` takes, a ``ttl`` that
        is no u32, or ``fees`` that are no u64. So does a publication that no message can hold.
        """
        published_at = self.tick if tick is None else tick
        self.outbox.put(Publication(SubscribedKey(key), value, ttl, published_at, fees))

    def subscribe(self, publisher: ParaId, keys: list[bytes]) -> None:
        """Want more ``keys`` of a publisher from the next block on; ``ValueError`` when that cannot be."""
        if self.subscriber.handler is not self.kept:
            raise ValueError(f"parachain {self.para_id} has a handler of its own that says what it wants")
        added = [SubscribedKey(key) for key in keys]
        subscriptions, limit = list(self.kept.wanted.items()), self.subscriber.config.max_publishers
        if not has_room_for(limit, subscriptions, publisher):
            raise ValueError(f"parachain {self.para_id} subscribes to {limit} publishers at most")
        excess = excess_with(self.subscriber.config, subscriptions, publisher, added)
        if excess is not None:
            raise ValueError(f"keys that parachain {self.para_id} subscribes to: {excess}")
        self.kept.subscribe(publisher, added)

    def declare(self, publisher: ParaId, keys: list[bytes], weight: Weight) -> None:
        """Declare the weight of a callback for each of these keys; ``ValueError`` for a handler of the chain's own."""
        if self.subscriber.handler is not self.kept:
            raise ValueError(f"parachain {self.para_id} has a handler of its own that says what its callbacks weigh")
        self.kept.declare(publisher, map(SubscribedKey, keys), weight)

    def unsubscribe(self, publisher: ParaId, keys: list[bytes]) -> None:
        """Want these keys of a publisher no more from the next block on; what was kept of them stays."""
        self.kept.unsubscribe(publisher, set(map(SubscribedKey, keys)))

    def build_block(self, inherent: ParachainInherentData) -> ParachainBlock:
        """Build the next block on the inherent's relay parent; raises ``Panic`` and stays as it was."""
        return seal_blocks([self.execute_block(inherent)])[0]

    def execute_block(self, inherent: ParachainInherentData) -> "ExecutedBlock":
        """Do what the next block does and leave it to ``seal_blocks``; raises ``Panic`` and stays as it was."""
        parent, storage, extrinsics_root = self.head, self.state.top, EMPTY_ROOT
        self.system.events.take()
        storage.reads = set()
        try:
            with self.state.transaction():
                self.system.initialize(parent.number + 1, parent_hash=parent.hash)
                self.upgrades.begin_block()
                if self.body is not None:
                    self.body.open(parent.number + 1, parent.hash, _logs(inherent.validation_data))
                outcome = self.parachain_system.set_validation_data(inherent, seed=parent.hash)
                if self.body is not None:
                    self.body.apply(inherent)
                    extrinsics_root = self.body.close().extrinsics_root
        finally:
            reads, storage.reads = storage.reads, None
        return ExecutedBlock(self, inherent, outcome, reads, extrinsics_root)

    def seal(self, data: PersistedValidationData, state_root: bytes, extrinsics_root: bytes = EMPTY_ROOT) -> None:
        """Make the next block the head: its state is sealed, with ``state_root``."""
        logs, parent = _logs(data), self.head
        unsealed = Header(parent.hash, parent.number + 1, state_root, extrinsics_root, logs)
        digest = (*logs, modelled_seal(self.para_id, unsealed))
        self.head = Header(parent.hash, unsealed.number, state_root, extrinsics_root, digest)
        self.upgrades.end_block()

    def take_messages(self, *, queued_count: int = 0, queued_bytes: int = 0) -> list[SentMessage]:
        """Take out of the outbox what one block may send, see ``Outbox.take_messages``."""
        return self.outbox.take_messages(queued_count=queued_count, queued_bytes=queued_bytes)

    def dump(self) -> ParachainDump:
        """Return where the chain stands between two blocks; ``ValueError`` when it has a handler of its own."""
        if self.subscriber.handler is not self.kept:
            raise ValueError(f"parachain {self.para_id} has a handler of its own, which cannot be put away")
        wanted, kept, weights = self.kept.dump()
        return ParachainDump(
            version=VERSION,
            para_id=int(self.para_id),
            head=self.head.encode(),
            tick=self.tick,
            state=self.state.dump(),
            wanted=wanted,
            kept=kept,
            outbox=list(self.outbox),
            upgrades=self.upgrades.built or UNSET,
            weights=weights or UNSET,
        )

    def load(self, dump: ParachainDump) -> None:
        """Stand where another chain stood that was made like this one; raises ``CheckpointRefused``.

        A chain that refuses can no longer be used.
        """
        with refusing(f"parachain {self.para_id}"):
            if dump.para_id != self.para_id:
                raise CheckpointRefused(f"got parachain {dump.para_id}")
            self.state.load(dump.state)
            self.head = Header.decode(dump.head)
            if self.head.state_root != self.state.root:
                raise CheckpointRefused(f"its head has the state root 0x{self.head.state_root.hex()}")
            self.kept.load(dump.wanted, dump.kept, () if isinstance(dump.weights, UnsetType) else dump.weights)
            self.outbox.load(dump.outbox)
            self.upgrades.load(dump.upgrades or 0)
        self.tick = dump.tick
        self.system.events.take()

    def __repr__(self) -> str:
        return f"<Parachain {self.para_id} at #{self.head.number}>"


def _logs(data: PersistedValidationData) -> tuple[DigestItem, ...]:
    """Return what a block's author knows before it is built: its slot, and its relay parent's state root."""
    number = data.relay_parent_number
    return aura_pre_digest(slot=number), relay_parent_storage_root_item(data.relay_parent_storage_root, number)


class ExecutedBlock(NamedTuple):
    """A block whose state is not sealed: its chain has executed it, and still has the parent as its head."""

    parachain: Parachain
    inherent: ParachainInherentData
    outcome: ValidationOutcome
    reads: set[bytes]
    extrinsics_root: bytes


def seal_blocks(executed: Sequence[ExecutedBlock]) -> list[ParachainBlock]:
    """Seal the states of several parachains together, and make their blocks the heads."""
    proofs = commit_together([(it.parachain.state, it.reads) for it in executed])
    return [_sealed(it, own_proof) for it, own_proof in zip(executed, proofs, strict=True)]


def _sealed(executed: ExecutedBlock, own_proof: StorageProof) -> ParachainBlock:
    parachain, inherent, outcome, _, extrinsics_root = executed
    parachain.seal(inherent.validation_data, parachain.state.root, extrinsics_root)
    parachain.kept.settle()
    delivered, events = parachain.subscriber.delivered, tuple(parachain.system.events)
    updates, deletions = tuple(delivered.updates), tuple(delivered.deletions)
    return ParachainBlock(parachain.head, inherent, outcome, updates, events, own_proof, deletions)
