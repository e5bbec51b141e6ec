"""Many chains and one clock: a relay chain, parachains that publish and subscribe, a collator for each.

In every tick each parachain builds a block on the relay block of the tick before, and the relay chain builds the next
block with the messages that parachains sent in the tick before. So a value published at tick t is in the relay chain
at t + 1 and reaches subscribers at t + 2, unless queues or budgets hold it up.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from relaycast_collator.collator import Collation, Collator, Tamper
from relaycast_collator.parachain import Parachain, ParachainBlock, SentMessage, Update
from relaycast_collator.records import BlockRecord, Delivery, Invariants, ReadTotals, Violation
from relaycast_collator.relay_chain import Genesis, RelayBlock, RelayChain
from relaycast_pallets.broadcaster_config import POLKADOT, BroadcasterConfig
from relaycast_pallets.frame import Origin
from relaycast_pallets.parachain_system import MAX_POV_BYTES, BlockPanicked
from relaycast_pallets.policies import MAX_NODE_BYTES, Policies
from relaycast_pallets.proof_processing import NodeRead
from relaycast_pallets.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber import PublisherDisabled, SubscriberConfig
from relaycast_pallets.subscription import SubscribedKey, SubscriptionHandler
from relaycast_trie import StorageProof, blake2_256
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.ump import Processed, Processing

VERSIONS_KEPT = 256
"""Publications of one key remembered for latencies; a subscriber further behind counts from the oldest of them."""

Messages = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Downward and horizontal messages of one block."""


class Network:
    """A relay chain from ``genesis``, and parachains; everything follows from ``seed`` and the calls made."""

    def __init__(
        self,
        *,
        seed: int = 0,
        genesis: Genesis | None = None,
        broadcaster: BroadcasterConfig = POLKADOT,
        window: int = 64,
    ) -> None:
        self.seed = seed
        self.relay_chain = RelayChain(genesis, seed=seed, broadcaster=broadcaster, window=window)
        self.parachains: dict[ParaId, Parachain] = {}
        self.collators: dict[ParaId, Collator] = {}
        self.invariants = Invariants()
        self.traffic: dict[ParaId, Callable[[int], Messages]] = {}
        self.tick = 0
        self._calls: list[Callable[[], Weight]] = []
        self._sent: dict[ParaId, list[SentMessage]] = {}
        self._under_way: dict[bytes, deque[SentMessage]] = {}
        self._versions: dict[tuple[ParaId, bytes], deque[tuple[int, int]]] = {}
        self._seen: dict[tuple[ParaId, ParaId, bytes], int] = {}

    def add_parachain(
        self,
        para_id: int,
        *,
        handler: SubscriptionHandler | None = None,
        config: SubscriberConfig | None = None,
        policies: Policies | None = None,
        budget: BudgetPolicy | None = None,
        max_pov_size: int = MAX_POV_BYTES,
        tamper: Tamper | None = None,
    ) -> Parachain:
        """Add a parachain with its collator; ``ValueError`` when there is one with this id."""
        known = ParaId(para_id)
        if known in self.parachains:
            raise ValueError(f"parachain {known} is there already")
        parachain = Parachain(known, handler=handler, config=config, policies=policies, budget=budget)
        self.parachains[known] = parachain
        self.collators[known] = Collator(parachain, self.relay_chain, max_pov_size=max_pov_size, tamper=tamper)
        return parachain

    def register_publisher(self, para_id: int) -> None:
        """Register a public parachain with the next relay block, by a manager of its own who is given the deposit."""
        publisher, broadcaster = ParaId(para_id), self.relay_chain.broadcaster
        manager = manager_of(publisher)

        def register() -> Weight:
            self.relay_chain.balances.mint(manager, 2 * broadcaster.config.publisher_deposit)
            return broadcaster.register_publisher(Origin.signed(manager), publisher)

        self._calls.append(register)

    def subscribe(self, para_id: int, publisher: int, keys: list[bytes]) -> None:
        """Let a parachain that keeps values want more ``keys`` of a publisher."""
        wanted = self.parachains[ParaId(para_id)].kept.wanted.setdefault(ParaId(publisher), [])
        wanted.extend(SubscribedKey(key) for key in keys)

    def step(self) -> Iterator[BlockRecord]:
        """Let one tick pass; the records of its subscriber blocks come one by one."""
        self.tick += 1
        parent = self.relay_chain.head
        self._deliver_messages()
        self._build_relay_block()
        for para_id, parachain in self.parachains.items():
            yield from self._build_parachain_block(para_id, parent)
            self._sent[para_id] = parachain.take_messages()

    def _build_relay_block(self) -> None:
        for para_id, parachain in self.parachains.items():
            self.relay_chain.include(para_id, parachain.head.encode())
        calls = tuple(self._calls)
        self._calls.clear()
        block = self.relay_chain.build_block(calls)
        for message in block.messages:
            waiting = self._under_way.get(message.id)
            if waiting:
                self._note_publications(message, waiting.popleft(), block.number)

    def _deliver_messages(self) -> None:
        for para_id, messages in self._sent.items():
            if messages:
                self.relay_chain.upward.receive(para_id, [message.data for message in messages])
            for message in messages:
                self._under_way.setdefault(message.id, deque()).append(message)
        self._sent.clear()

    def _note_publications(self, processed: Processing, message: SentMessage, number: int) -> None:
        if not isinstance(processed, Processed):
            return
        for publication in message.publications:
            versions = self._versions.setdefault((processed.origin, publication.key), deque(maxlen=VERSIONS_KEPT))
            versions.append((number, publication.tick))

    def _build_parachain_block(self, para_id: ParaId, parent: RelayBlock) -> Iterator[BlockRecord]:
        collator = self.collators[para_id]
        downward, horizontal = self.traffic.get(para_id, _no_traffic)(self.tick)
        collation = collator.collate(parent, downward_messages=downward, horizontal_messages=horizontal)
        try:
            block = collator.build(collation)
        except BlockPanicked as panic:
            if collator.tamper is None:
                self._violated("an honest block is valid", para_id, str(panic))
            yield self._record(para_id, parent, collation, None, str(panic))
            return
        self._check(para_id, collation, block)
        if collator.parachain.subscriber.subscribes or block.updates:
            yield self._record(para_id, parent, collation, block, None)

    def _record(
        self, para_id: ParaId, parent: RelayBlock, collation: Collation, block: ParachainBlock | None, panic: str | None
    ) -> BlockRecord:
        result = collation.pruning if block is None else block.outcome.result
        budget = self.collators[para_id].parachain.parachain_system.budget.share_out(collation.inherent.usage())
        relay_bytes = sum(read.size for read in result.reads if read.source.is_relay)
        return BlockRecord(
            tick=self.tick,
            para_id=para_id,
            number=self.parachains[para_id].head.number,
            relay_parent=parent.number,
            collected_bytes=collation.collected.proof_bytes,
            proof_bytes=collation.inherent.proof_bytes,
            proof_nodes=len(collation.inherent.relay_chain_state),
            own_bytes=0 if block is None else block.own_proof.proof_bytes,
            static_bytes=collation.inherent.proof_bytes - relay_bytes,
            reads=_totals(result.reads),
            budget_bytes=budget.pubsub_bytes,
            consumed=result.consumed,
            complete=result.is_complete,
            deliveries=() if block is None else tuple(self._delivery(para_id, update) for update in block.updates),
            disabled=()
            if block is None
            else tuple(event.publisher for event in block.events if isinstance(event, PublisherDisabled)),
            panic=panic,
        )

    def _delivery(self, para_id: ParaId, update: Update) -> Delivery:
        publisher, key, entry = update
        versions = self._versions.get((publisher, key), ())
        seen = self._seen.get((para_id, publisher, key), 0)
        tick = next((tick for number, tick in versions if number == entry.when_inserted), entry.when_inserted - 1)
        skipped = sum(seen < number < entry.when_inserted for number, _ in versions) if seen else 0
        self._seen[para_id, publisher, key] = entry.when_inserted
        return Delivery(publisher, key, entry, tick, self.tick, skipped)

    def _check(self, para_id: ParaId, collation: Collation, block: ParachainBlock) -> None:
        """Check the invariants that one block can show."""
        pruned, verified, meter = collation.pruning, block.outcome.result, block.outcome.meter
        checks: Mapping[str, bool] = {
            "prune and verify read the same nodes": pruned.reads == verified.reads,
            "prune and verify consume the same weight": pruned.consumed == verified.consumed,
            "prune and verify set the same cursor": pruned.cursor == verified.cursor,
            "no more is consumed than allowed": meter.consumed.all_lte(meter.limit),
            "the pruned proof is a part of the collected one": StorageProof(collation.inherent.relay_chain_state).nodes
            <= collation.collected.nodes,
            "cached nodes are within their bound": all(
                len(data) <= MAX_NODE_BYTES for change in verified.changes for data in change.cache.insert.values()
            ),
        }
        self.invariants.checked += len(checks)
        for invariant, holds in checks.items():
            if not holds:
                self._violated(invariant, para_id, f"{pruned!r} and {verified!r}")

    def _violated(self, invariant: str, para_id: ParaId, seen: str) -> None:
        self.invariants.violations.append(Violation(invariant, self.tick, para_id, seen))

    def __repr__(self) -> str:
        return f"<Network at tick {self.tick}: {self.relay_chain!r}, {len(self.parachains)} parachains>"


def manager_of(publisher: ParaId) -> bytes:
    """Return the account that manages a publisher which the network registers."""
    return blake2_256(b"manager" + publisher.encode())


def _no_traffic(_tick: int) -> Messages:
    return (), ()


def _totals(reads: list[NodeRead]) -> dict[str, ReadTotals]:
    totals: dict[str, ReadTotals] = {}
    for read in reads:
        known = totals.get(read.source.value, ReadTotals())
        totals[read.source.value] = replace(known, nodes=known.nodes + 1, proof_bytes=known.proof_bytes + read.size)
    return totals
