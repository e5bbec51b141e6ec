"""Many chains and one clock: a relay chain, parachains that publish and subscribe, a collator for each.

In every tick each parachain builds a block on the relay block of the tick before, and the relay chain builds the next
block with the messages that parachains sent in the tick before. So a value published at tick t is in the relay chain
at t + 1 and reaches subscribers at t + 2, unless queues, budgets or the pace of a parachain hold it up. What the relay
chain's queue has no room for stays in the parachain's outbox, and messages that a block has no room for in its queue.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from relaycast_collator.account_records import BlockAccount
from relaycast_collator.accounting import account_for
from relaycast_collator.block_checks import Check, account_checks, agreement_checks, delivery_checks, pass_checks
from relaycast_collator.cards import network_card
from relaycast_collator.collator import Collation, Collator, Pace, Tamper
from relaycast_collator.deliveries import Deliveries, Place
from relaycast_collator.garbage import uncollected
from relaycast_collator.inbound import InboundQueue, Messages
from relaycast_collator.outbox import SentMessage
from relaycast_collator.parachain import Parachain, ParachainBlock, Update
from relaycast_collator.proof_picture import ProofPicture, picture_tries
from relaycast_collator.records import BlockRecord, Invariants, ReadTotals
from relaycast_collator.relay_chain import BLOCK_WEIGHT, Call, Genesis, RelayBlock, RelayChain
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.frame.system import Origin
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES, BlockPanicked, ParachainInherentData
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.pallet import PublisherDisabled, SubscriberConfig
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.processing_result import NodeRead, ProofProcessingResult, ReadSource
from relaycast_pallets.subscriber.subscription import SubscriptionHandler
from relaycast_trie import blake2_256
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.ump import POLKADOT_LIMITS, UpwardLimits


class Network:
    """A relay chain from ``genesis``, and parachains; everything follows from ``seed`` and the calls made.

    ``window`` counts the relay blocks that can be proven from, two at least: parachains build on the last but one.
    With ``accounting`` every record says what each byte of its proof is for, and with ``accounting_by_key`` for whom.
    ``pictured`` counts, by subscriber, how many more of its blocks with callbacks come with a picture.
    Unless it ``keeps_score`` the same blocks pass, but it makes no records and checks no invariants.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        genesis: Genesis | None = None,
        broadcaster: BroadcasterConfig = POLKADOT,
        block_weight: Weight = BLOCK_WEIGHT,
        upward_limits: UpwardLimits = POLKADOT_LIMITS,
        window: int = 64,
        accounting: bool = False,
        accounting_by_key: bool = False,
        trie_engine: Engine = "auto",
    ) -> None:
        if window < 2:
            raise ValueError(f"parachains build on the relay block before the newest: no window of {window} will do")
        self.seed = seed
        self.window = window
        self.accounting = accounting
        self.accounting_by_key = accounting_by_key
        self.keeps_score = True
        self.pictured: Counter[ParaId] = Counter()
        self.relay_chain = RelayChain(
            genesis,
            seed=seed,
            broadcaster=broadcaster,
            block_weight=block_weight,
            upward_limits=upward_limits,
            window=window,
            trie_engine=trie_engine,
        )
        self.parachains: dict[ParaId, Parachain] = {}
        self.collators: dict[ParaId, Collator] = {}
        self.invariants = Invariants()
        self.traffic: dict[ParaId, Callable[[int], Messages]] = {}
        """What arrives for a parachain by tick, in the newest relay block that blocks of this tick can be built on."""

        self.inbound: dict[ParaId, InboundQueue] = {}
        self.paces: dict[ParaId, Pace] = {}
        self.tick = 0
        self._calls: list[Call] = []
        self._sent: dict[ParaId, list[list[SentMessage]]] = {}
        self._deliveries = Deliveries()

    @property
    def trie_engine(self) -> Engine:
        """What works on the tries of every chain; nothing but time follows from it, and it may change between ticks."""
        return self.relay_chain.state.engine

    @trie_engine.setter
    def trie_engine(self, engine: Engine) -> None:
        for state in (self.relay_chain.state, *(chain.state for chain in self.parachains.values())):
            state.engine = engine

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
        pace: Pace | None = None,
    ) -> Parachain:
        """Add a parachain with its collator, to build from the next tick on, a block in each unless ``pace`` differs.

        Without a ``config`` it reckons with the longest values that this relay chain lets anyone publish.
        ``ValueError`` when this id is taken, or the relay parents would be older than what can be proven from.
        """
        known, pace = ParaId(para_id), pace or Pace()
        if known in self.parachains:
            raise ValueError(f"parachain {known} is there already")
        if pace.relay_parent_offset > self.window - 2:
            raise ValueError(
                f"only {self.window} relay blocks can be proven from, no offset of {pace.relay_parent_offset}"
            )
        limits = self.relay_chain.upward.limits
        if config is None:
            config = SubscriberConfig(max_value_length=self.relay_chain.broadcaster.config.max_value_length)
        parachain = Parachain(
            known,
            handler=handler,
            config=config,
            policies=policies,
            budget=budget,
            upward_limits=limits,
            trie_engine=self.trie_engine,
        )
        parachain.tick = self.tick + 1
        self.parachains[known] = parachain
        self.inbound[known], self.paces[known] = InboundQueue(), pace
        self.collators[known] = Collator(parachain, self.relay_chain, max_pov_size=max_pov_size, tamper=tamper)
        return parachain

    def offboard(self, para_id: int) -> None:
        """Let a parachain go: it builds no block any more; the next relay block removes all that it published."""
        leaving = self._known(para_id).para_id
        for kept in (self.parachains, self.collators, self.inbound, self.paces):
            del kept[leaving]
        self.traffic.pop(leaving, None)
        self._sent.pop(leaving, None)
        self._deliveries.forget(leaving)
        self.call(lambda: self.relay_chain.offboard(leaving), declared=Weight.ZERO)

    def register_publisher(self, para_id: int) -> None:
        """Register a public parachain with the next relay block, by a manager of its own who is given the deposit."""
        publisher, broadcaster = ParaId(para_id), self.relay_chain.broadcaster
        manager = manager_of(publisher)

        def register() -> Weight:
            self.relay_chain.balances.mint(manager, 2 * broadcaster.config.publisher_deposit)
            return broadcaster.register_publisher(Origin.signed(manager), publisher)

        self.call(register, declared=broadcaster.config.weight("register_publisher"))

    def call(self, call: Callable[[], Weight], *, declared: Weight) -> None:
        """Make a call in the next relay block, whose ``calls`` say how it ended.

        A call that is refused weighs what it ``declared``; one that declares more than the block has left is not made.
        What no one is asked about, such as letting a parachain go, declares nothing.
        """
        self._calls.append(Call(call, declared))

    def deregister_publisher(self, para_id: int) -> None:
        """Let the manager whom ``register_publisher`` made deregister, with the next relay block: all entries go."""
        publisher, broadcaster = ParaId(para_id), self.relay_chain.broadcaster
        origin = Origin.signed(manager_of(publisher))
        declared = broadcaster.config.weight("deregister_publisher", k=len(broadcaster.storage.keys_of(publisher)))
        self.call(lambda: broadcaster.deregister_publisher(origin, publisher), declared=declared)

    def subscribe(self, para_id: int, publisher: int, keys: list[bytes]) -> None:
        """Let a parachain that keeps values want more ``keys`` of a publisher; ``ValueError`` when it cannot."""
        self._known(para_id).subscribe(ParaId(publisher), keys)

    def unsubscribe(self, para_id: int, publisher: int, keys: list[bytes]) -> None:
        """Let a parachain that keeps values want these keys no more; those that it did not want are passed over."""
        self._known(para_id).unsubscribe(ParaId(publisher), keys)

    @uncollected()
    def step(self) -> list[BlockRecord]:
        """Let one tick pass and return the records of its subscriber blocks, and of those that panicked."""
        self.tick += 1
        parents = tuple(self.relay_chain.blocks)
        self._deliver_messages()
        self._build_relay_block()
        records: list[BlockRecord] = []
        for para_id, parachain in self.parachains.items():
            self._receive(para_id, parents[-1])
            pace = self.paces[para_id]
            parent = parents[max(0, len(parents) - 1 - pace.relay_parent_offset)]
            for _ in range(pace.blocks_in(self.tick, para_id)):
                records.extend(self._build_parachain_block(para_id, parent))
            parachain.tick = self.tick + 1
        return records

    def _known(self, para_id: int) -> Parachain:
        parachain = self.parachains.get(ParaId(para_id))
        if parachain is None:
            raise ValueError(f"there is no parachain {para_id}")
        return parachain

    def _build_relay_block(self) -> None:
        for para_id, parachain in self.parachains.items():
            self.relay_chain.include(para_id, parachain.head.encode())
        calls = tuple(self._calls)
        self._calls.clear()
        block = self.relay_chain.build_block(calls)
        for message in block.messages:
            self._deliveries.processed(message, block.number)

    def _deliver_messages(self) -> None:
        for para_id, blocks in self._sent.items():
            for messages in blocks:
                self.relay_chain.upward.receive(para_id, [message.data for message in messages])
                self._deliveries.sent(para_id, messages)
        self._sent.clear()

    def _take_messages(self, parachain: Parachain) -> None:
        upward, para_id = self.relay_chain.upward, parachain.para_id
        on_their_way = [message for messages in self._sent.get(para_id, ()) for message in messages]
        messages = parachain.take_messages(
            queued_count=upward.count(para_id) + len(on_their_way),
            queued_bytes=upward.size_bytes(para_id) + sum(len(message.data) for message in on_their_way),
        )
        if messages:
            self._sent.setdefault(para_id, []).append(messages)

    def _receive(self, para_id: ParaId, newest: RelayBlock) -> None:
        arriving = self.traffic.get(para_id)
        if arriving is not None:
            self.inbound[para_id].arrive(arriving(self.tick), relay_block=newest.number)

    def _build_parachain_block(self, para_id: ParaId, parent: RelayBlock) -> Iterator[BlockRecord]:
        collator = self.collators[para_id]
        parachain = collator.parachain
        parachain.tick = self.tick
        subscribes = parachain.subscriber.subscribes
        inbound = self.inbound[para_id]
        downward, horizontal = inbound.offered(collator.max_pov_size, relay_parent=parent.number)
        collation = collator.collate(parent, downward_messages=downward, horizontal_messages=horizontal)
        try:
            block = collator.build(collation)
        except BlockPanicked as panic:
            honest = Check("an honest block is valid", collator.tamper is not None, panic)
            self._note(para_id, [honest])
            yield self._record(para_id, parent, collation, None, str(panic))
        else:
            given = block.inherent.downward_messages, block.inherent.horizontal_messages
            message_bytes = inbound.take(block.outcome.abridged, given=given)
            if not self.keeps_score:
                self._note_deliveries(para_id, parent, block)
                self._take_messages(parachain)
                return
            repeated = self._deliveries.repeated(para_id, block.outcome.result, block.updates)
            if subscribes:
                record = self._record(para_id, parent, collation, block, None, message_bytes=message_bytes)
                self._note(para_id, account_checks(record, honest=collator.tamper is None))
                yield record
            self._check_block(collator, parent, collation, block, repeated)
            self._take_messages(parachain)

    def _note_deliveries(self, para_id: ParaId, parent: RelayBlock, block: ParachainBlock) -> None:
        """Note of a block what the records and the checks of later ones follow from."""
        self._is_pictured(para_id, block.updates)
        for update in block.updates:
            self._deliveries.delivered(para_id, update, self.tick)
        self._lost(para_id, parent, block.outcome.result)

    def _record(
        self,
        para_id: ParaId,
        parent: RelayBlock,
        collation: Collation,
        block: ParachainBlock | None,
        panic: str | None,
        *,
        message_bytes: int = 0,
    ) -> BlockRecord:
        result = collation.pruning if block is None else block.outcome.result
        inherent = collation.inherent if block is None else block.inherent
        budget = self.collators[para_id].parachain.parachain_system.budget.share_out(inherent.usage())
        relay_bytes = sum(read.size for read in result.reads if read.source.is_relay)
        updates, events = ((), ()) if block is None else (block.updates, block.events)
        account, picture = self._account(para_id, parent, collation, inherent, result, updates)
        return BlockRecord(
            tick=self.tick,
            para_id=para_id,
            number=self.parachains[para_id].head.number,
            relay_parent=parent.number,
            collected_bytes=collation.collected.proof_bytes,
            proof_bytes=inherent.proof_bytes,
            proof_nodes=len(inherent.relay_chain_state),
            static_bytes=inherent.proof_bytes - relay_bytes,
            own_bytes=0 if block is None else block.own_proof.proof_bytes,
            reads=_totals(result.reads),
            budget_bytes=budget.pubsub_bytes,
            message_bytes=message_bytes,
            waiting_bytes=self.inbound[para_id].waiting_bytes,
            refused_bytes=self.inbound[para_id].refused_bytes,
            consumed=result.consumed,
            complete=result.is_complete,
            deliveries=tuple(self._deliveries.delivered(para_id, update, self.tick) for update in updates),
            disabled=tuple(event.publisher for event in events if isinstance(event, PublisherDisabled)),
            panic=panic,
            cursor=result.cursor,
            account=account,
            picture=picture,
        )

    def _account(
        self,
        para_id: ParaId,
        parent: RelayBlock,
        collation: Collation,
        inherent: ParachainInherentData,
        result: ProofProcessingResult,
        updates: tuple[Update, ...],
    ) -> tuple[BlockAccount | None, ProofPicture | None]:
        is_pictured = self._is_pictured(para_id, updates)
        if not self.accounting or not result.plan.views:
            return None, None
        causes: dict[bytes, str] = {}
        account = account_for(
            result,
            relay_root=inherent.validation_data.relay_parent_storage_root,
            proof=inherent.relay_chain_state,
            collected=collation.collected,
            subscriber=self.parachains[para_id].subscriber,
            callbacks=Counter(publisher for publisher, _, _ in updates),
            by_key=self.accounting_by_key,
            causes=causes if is_pictured else None,
        )
        if not is_pictured:
            return account, None
        static_keys = self.parachains[para_id].parachain_system.static_keys()
        tries = picture_tries(result, account, causes, parent.state_root, static_keys, collation.collected)
        static_bytes = account.static.node_bytes
        picture = ProofPicture(
            self.tick, para_id, parent.number, result.is_complete, inherent.proof_bytes, static_bytes, tries
        )
        return account, picture

    def _is_pictured(self, para_id: ParaId, updates: tuple[Update, ...]) -> bool:
        """Return whether a block comes with a picture, and count that."""
        is_pictured = bool(updates) and self.pictured[para_id] > 0
        self.pictured[para_id] -= is_pictured
        return is_pictured

    def _check_block(
        self,
        collator: Collator,
        parent: RelayBlock,
        collation: Collation,
        block: ParachainBlock,
        repeated: list[Update],
    ) -> None:
        """Check the invariants that one block can show; a collator that lies need not agree with the chain."""
        para_id, subscriber = collator.parachain.para_id, collator.parachain.subscriber
        if collator.tamper is None:
            self._note(para_id, agreement_checks(collation, block))
        self._note(para_id, pass_checks(subscriber, block))
        lost = self._lost(para_id, parent, block.outcome.result)
        self._note(para_id, delivery_checks(subscriber, repeated, lost))

    def _lost(self, para_id: ParaId, parent: RelayBlock, result: ProofProcessingResult) -> list[Place]:
        entries = self.relay_chain.broadcaster.storage.entry
        return list(self._deliveries.lost(para_id, result, parent.number, entries)) if result.is_complete else []

    def _note(self, para_id: ParaId, checks: Iterable[Check]) -> None:
        for invariant, holds, seen in checks:
            self.invariants.check(invariant, holds, self.tick, para_id, seen=seen)

    def __repr__(self) -> str:
        return f"<Network at tick {self.tick}: {self.relay_chain!r}, {len(self.parachains)} parachains>"

    def _repr_html_(self) -> str:
        return network_card(self)


def manager_of(publisher: ParaId) -> bytes:
    """Return the account that manages a publisher which the network registers."""
    return blake2_256(b"manager" + publisher.encode())


def _totals(reads: list[NodeRead]) -> dict[str, ReadTotals]:
    sums: dict[ReadSource, list[int]] = {}
    for read in reads:
        total = sums.setdefault(read.source, [0, 0])
        total[0] += 1
        total[1] += read.size
    return {source.value: ReadTotals(*total) for source, total in sums.items()}
