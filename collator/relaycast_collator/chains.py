"""Many chains and one clock: a relay chain, parachains that publish and subscribe, a collator for each.

In every tick each parachain builds a block on the relay block of the tick before. The relay chain then builds the next
block with the messages that parachains sent in the tick before. A value published at tick t is in the relay chain at t
+ 1 and reaches subscribers at t + 2. Queues, budgets or the pace of a parachain may delay it. What the relay chain's
queue has no room for stays in the parachain's outbox. Messages for a parachain stand in the relay chain's queues until
a block that took them is included; one that a block has no room for goes with the next. Wasm parachains build
their blocks after the parachains that are modelled.

Within a tick every parachain executes its first block before any is sealed; then all their states are sealed together,
and facts are told in the order of the parachains. A block that panics drops out before the seal and leaves no trace.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET, UnsetType, field

from relaycast_collator.collator import Collation, Collator, Pace, Tamper
from relaycast_collator.facts import (
    BlockBuilt,
    BlockPanicked,
    Fact,
    InboundTotals,
    Listener,
    MessagesQueued,
    MessagesRefused,
    ParachainLeft,
    RelaySealed,
    TickBegan,
)
from relaycast_collator.header import Header
from relaycast_collator.inbound import MODELLED_SENDER, InboundState, InboundTracker, Traffic, by_sender
from relaycast_collator.outbox import Publication, SentMessage
from relaycast_collator.parachain import ExecutedBlock, Parachain, ParachainBlock, ParachainDump, seal_blocks
from relaycast_collator.relay_chain import BLOCK_WEIGHT, Call, Genesis, RelayBlock, RelayChain, RelayChainDump
from relaycast_collator.upgrades import ParachainUpgrade, RelayUpgrade
from relaycast_collator.wasm_parachain import WasmParachain
from relaycast_collator.wasm_parachains import WasmParachains, WasmParachainsDump
from relaycast_pallets.broadcaster.config import POLKADOT, BroadcasterConfig
from relaycast_pallets.frame.system import Origin
from relaycast_pallets.frame.tries import EngineChoice
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES, Panic, ParachainInherentData
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.config import SubscriberConfig, ensure_callbacks_fit, ensure_values_fit
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscriptionHandler, ensure_hears
from relaycast_trie import blake2_256
from relaycast_trie.engine import Engine
from relaycast_trie.gc_policy import uncollected
from relaycast_xcm import ParaId, Weight
from relaycast_xcm.checkpoint import U32, VERSION, CheckpointRefused, Count, Dump, DumpRow, Version, refusing
from relaycast_xcm.ump import POLKADOT_LIMITS, UpwardLimits

SentRow = tuple[ParaId, list[list[tuple[Publication, ...]]]]
"""Messages sent by the blocks of a parachain in the last tick, and the publications in each."""


class ChainsDump(Dump, frozen=True):
    """Chains between two ticks; ``inbound`` is about messages for the parachains, in the same order."""

    version: Version
    tick: Count
    relay_chain: RelayChainDump
    parachains: list[ParachainDump]
    inbound: list[InboundState]
    sent: list[SentRow]
    wasm_parachains: WasmParachainsDump | UnsetType = field(default=UNSET, name="guests")
    """Absent without any."""


class RemoteHead(DumpRow, frozen=True):
    """The head of a parachain, a header in SCALE, and what its new blocks took of messages."""

    para_id: U32
    head: bytes
    inbound: InboundState


class UpgradeTracker:
    """Schedules upgrades of all chains together, because they must agree on the longest value."""

    def __init__(self, relay_chain: RelayChain, parachains: Mapping[ParaId, Parachain]) -> None:
        self._relay_chain, self._parachains = relay_chain, parachains

    def schedule(
        self,
        *,
        relay: Sequence[RelayUpgrade] = (),
        parachains: Mapping[ParaId, Sequence[ParachainUpgrade]] | None = None,
    ) -> None:
        """Schedule upgrades: those of the relay chain from its next block on, the others from its newest one on.

        Schedules all or none. ``ValueError`` for

        * an unknown parachain, or constants that a configuration refuses,
        * a block that has passed, or that is before the block of an earlier upgrade,
        * values longer than a subscriber expects,
        * subscriptions that the parachain cannot have,
        * policy ``told`` with a handler that has no callback for deletions.
        """
        given, newest = parachains or {}, self._relay_chain.head.number
        limits = self._relay_chain.upgrades.timeline(relay)
        _ensure_ahead([it.at for it in relay], "the relay chain", newest + 1)
        for para_id, upgrades in given.items():
            if para_id not in self._parachains:
                raise ValueError(f"there is no parachain {para_id}")
            _ensure_ahead([it.at for it in upgrades], f"parachain {para_id}", newest)
            for it in upgrades:
                tells = it.policies is not None and it.policies.deletion.notifies
                ensure_hears(self._parachains[para_id].subscriber.handler, deletions=tells)
        for para_id, parachain in self._parachains.items():
            coming = given.get(para_id, ())
            timeline = parachain.upgrades.timeline(coming)
            if parachain.subscriber.subscribes or any(it.subscriptions for it in coming):
                _ensure_values_fit(para_id, timeline, limits, since=newest)
            _ensure_subscribable(parachain, parachain.kept.wanted.keys(), coming, timeline)
        self._relay_chain.upgrades.scheduled += relay
        for para_id, upgrades in given.items():
            self._parachains[para_id].upgrades.scheduled += upgrades

    def check_reader(self, para_id: ParaId, publisher: ParaId) -> None:
        """Raise ``ValueError`` if scheduled upgrades rule out a subscription to ``publisher``.

        They may allow longer values than the parachain expects, or fewer publishers.
        """
        parachain, newest = self._parachains[para_id], self._relay_chain.head.number
        timeline = parachain.upgrades.timeline()
        _ensure_values_fit(para_id, timeline, self._relay_chain.upgrades.timeline(), since=newest)
        _ensure_subscribable(parachain, parachain.kept.wanted.keys() | {publisher}, (), timeline)


def _ensure_ahead(blocks: Sequence[int], chain: str, first: int) -> None:
    for at in blocks:
        if at < first:
            raise ValueError(f"an upgrade of {chain} is at relay block {first} or later, got {at}")


def _ensure_values_fit(
    para_id: ParaId,
    subscriber: Sequence[tuple[int, SubscriberConfig]],
    relay: Sequence[tuple[int, BroadcasterConfig]],
    *,
    since: int,
) -> None:
    """Raise ``ValueError`` if the relay chain allows longer values than the subscriber expects.

    Looks at relay block ``since`` and later ones.
    """
    for block in sorted({max(at, since) for at, _ in (*subscriber, *relay)}):
        expected = [config for at, config in subscriber if at <= block][-1].max_value_length
        allowed = [config for at, config in relay if at <= block][-1].max_value_length
        if expected < allowed:
            raise ValueError(
                f"max_value_length of parachain {para_id} from relay block {block} on must be at least {allowed}, "
                f"the longest value that the relay chain lets be published, got {expected}"
            )


def _ensure_subscribable(
    parachain: Parachain,
    publishers: Collection[ParaId],
    coming: Sequence[ParachainUpgrade],
    timeline: Sequence[tuple[int, SubscriberConfig]],
) -> None:
    """Raise ``ValueError`` if upgrades replace fixed subscriptions or allow fewer than ``publishers``."""
    upgrades = [*parachain.upgrades.pending, *coming]
    for upgrade, (at, config) in zip(upgrades, timeline[len(timeline) - len(upgrades) :], strict=True):
        if upgrade.subscriptions is not None:
            if parachain.subscriber.handler is not parachain.kept:
                raise ValueError(f"parachain {parachain.para_id} has a handler of its own that says what it wants")
            publishers = upgrade.subscriptions.keys()
        if len(publishers) > config.max_publishers:
            raise ValueError(
                f"parachain {parachain.para_id} subscribes to at most {config.max_publishers} publishers "
                f"from relay block {at} on, got {len(publishers)}"
            )


class _Begun(NamedTuple):
    """The next block of a parachain on top of ``head``: ``built`` is ``None`` where it panicked for a ``reason``."""

    collator: Collator
    relay_parent: RelayBlock
    collation: Collation
    head: Header
    built: ExecutedBlock | ParachainBlock | None
    reason: str
    subscribes: bool


class ChainSimulator:
    """A relay chain from ``genesis``, and parachains; everything follows from ``seed`` and the calls made.

    ``window`` is the number of relay blocks that proofs can be made from, at least 2: parachains build on the last but
    one.
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
        trie_engine: Engine = "auto",
    ) -> None:
        if window < 2:
            raise ValueError(f"window must be at least 2, for parachains build on the last block but one, got {window}")
        self.seed = seed
        self.window = window
        self._choice = EngineChoice(trie_engine)
        self.listeners: list[Listener] = []
        """Told of every fact as it happens, in this order."""

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
        self.upgrades = UpgradeTracker(self.relay_chain, self.parachains)
        self.collators: dict[ParaId, Collator] = {}
        self._inbound = InboundTracker()
        self.wasm_parachains = WasmParachains(self.relay_chain, self._inbound)
        self.traffic: dict[ParaId, Traffic] = {}
        """What arrives for a parachain in a relay block: blocks that are built on it can take it."""

        self.senders: dict[ParaId, Sequence[ParaId]] = {}
        """Who sends the horizontal messages of a parachain's traffic; ``MODELLED_SENDER`` unless named here."""

        self.paces: dict[ParaId, Pace] = {}
        self.elsewhere: Collection[ParaId] = ()
        """Parachains that send no messages and whose blocks another process builds: see ``adopt``."""

        self.tick = 0
        self._leaving: set[ParaId] = set()
        self._calls: list[Call] = []
        self._sent: dict[ParaId, list[list[SentMessage]]] = {}
        self._facts: list[Fact] = []

    @property
    def trie_engine(self) -> Engine:
        """What works on the tries of every chain; nothing but time follows from it, and it may change between ticks."""
        return self._choice.engine

    @trie_engine.setter
    def trie_engine(self, engine: Engine) -> None:
        self._choice.choose(engine)
        chains: Iterable[Parachain | WasmParachain] = (*self.parachains.values(), *self.wasm_parachains.values())
        for state in (self.relay_chain.state, *(chain.state for chain in chains)):
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

        Without a ``config`` it reckons with the longest values that this relay chain lets anyone publish. Where the
        relay chain has queued messages for this id before, it takes over their heads: its relay parents are not older.
        ``ValueError`` when this id is taken, when ``config`` allows for shorter values than may be published, or when
        ``handler`` declares a callback that no block has time for. So it is when the relay parents would be older than
        can be proven from. ``CodecError`` when the relay chain's state has no such heads.
        """
        known, pace = ParaId(para_id), pace or Pace()
        self._check_addition(known, pace)
        limits, broadcaster = self.relay_chain.upward.limits, self.relay_chain.broadcaster.config
        if config is None:
            config = SubscriberConfig(max_value_length=broadcaster.max_value_length)
        ensure_values_fit(config, broadcaster)
        if handler is not None:
            ensure_callbacks_fit(config, handler)
        parachain = Parachain(
            known,
            handler=handler,
            config=config,
            policies=policies,
            budget=budget,
            upward_limits=limits,
            trie_engine=self._choice,
        )
        newest = self.relay_chain.head.number
        parachain.join(self.relay_chain.join(known), relay_block=newest)
        parachain.tick = self.tick + 1
        self.parachains[known] = parachain
        self.paces[known] = pace
        self._inbound.join(known, newest)
        self.collators[known] = Collator(parachain, self.relay_chain, max_pov_size=max_pov_size, tamper=tamper)
        return parachain

    def add_wasm_parachain(self, parachain: WasmParachain, *, pace: Pace | None = None) -> None:
        """Add a parachain that runs a supplied Wasm runtime, as ``add_parachain`` adds one that is modelled.

        Before block 1 a relay chain whose genesis is modelled gets a host configuration that can be read.
        """
        known, pace = parachain.para_id, pace or Pace()
        self._check_addition(known, pace)
        self.relay_chain.join(known)
        self.relay_chain.configure()
        parachain.state.engine = self.trie_engine
        self.wasm_parachains[known] = parachain
        self.paces[known] = pace
        self._inbound.join(known, self.relay_chain.head.number)

    def offboard(self, para_id: int) -> None:
        """Let a parachain go: it builds no more blocks, and the next relay block removes all that it published."""
        leaving = ParaId(para_id)
        if leaving in self.wasm_parachains:
            self.wasm_parachains.leave(leaving)
        else:
            del self.parachains[self._known(para_id).para_id]
            del self.collators[leaving]
        del self.paces[leaving]
        for known in (self._inbound, self.traffic, self.senders, self._sent):
            known.pop(leaving, None)
        self._leaving.add(leaving)
        self.call(lambda: self.relay_chain.offboard(leaving), declared=Weight.ZERO)
        self._emit(ParachainLeft(self.tick, leaving))

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
        parachain = self._known(para_id)
        self.upgrades.check_reader(parachain.para_id, ParaId(publisher))
        parachain.subscribe(ParaId(publisher), keys)

    def unsubscribe(self, para_id: int, publisher: int, keys: list[bytes]) -> None:
        """Let a parachain that keeps values want these keys no more; those that it did not want are passed over."""
        self._known(para_id).unsubscribe(ParaId(publisher), keys)

    @uncollected()
    def step(self) -> list[Fact]:
        """Let one tick pass and return its facts in order. Listeners hear each fact as it happens."""
        self.tick += 1
        self._emit(TickBegan(self.tick))
        parents = tuple(self.relay_chain.blocks)
        self._deliver_messages()
        self._build_relay_block()
        self._build_parachain_blocks(parents)
        for para_id in self.wasm_parachains:
            pace = self.paces[para_id]
            for _ in range(pace.blocks_in(self.tick, para_id)):
                parent = self._inbound.relay_parent(para_id, pace, parents)
                self._emit(self.wasm_parachains.build(para_id, parent, tick=self.tick))
        facts, self._facts = self._facts, []
        return facts

    def built(self, para_id: ParaId) -> RemoteHead:
        """Return where a parachain stands after a tick, for chains that ``adopt``."""
        return RemoteHead(int(para_id), self.parachains[para_id].head.encode(), self._inbound[para_id])

    def adopt(self, built: RemoteHead) -> None:
        """Let a parachain of ``elsewhere`` stand where it stands in the chains that built its blocks in this tick."""
        para_id = ParaId(built.para_id)
        self.parachains[para_id].head = Header.decode(built.head)
        self._inbound[para_id] = built.inbound

    @property
    def waiting_calls(self) -> tuple[Call, ...]:
        """The calls that the next relay block makes."""
        return tuple(self._calls)

    def dump(self, *, calls_apart: bool = False) -> ChainsDump:
        """Return where all chains stand between two ticks; ``ValueError`` while a call waits for the next block.

        With ``calls_apart`` the caller keeps ``waiting_calls`` itself.
        """
        if self._calls and not calls_apart:
            raise ValueError(f"{len(self._calls)} calls wait for the next relay block: they cannot be put away")
        return ChainsDump(
            version=VERSION,
            tick=self.tick,
            relay_chain=self.relay_chain.dump(),
            parachains=[chain.dump() for chain in self.parachains.values()],
            inbound=[self._inbound[para_id] for para_id in self.parachains],
            sent=[
                (para_id, [[one.publications for one in sent] for sent in blocks])
                for para_id, blocks in self._sent.items()
            ],
            wasm_parachains=self.wasm_parachains.dump(),
        )

    def load(self, dump: ChainsDump, calls: Iterable[Call] = ()) -> None:
        """Stand where others stood that were made like these; raises ``CheckpointRefused``.

        The listeners stay, and ``calls``, which waited in these very chains, wait again. Chains that refuse can no
        longer be used.
        """
        with refusing("the parachains"):
            known, given = list(self.parachains), [chain.para_id for chain in dump.parachains]
            if given != known or len(dump.inbound) != len(known):
                raise CheckpointRefused(f"got {given} with messages of {len(dump.inbound)}, expected {known}")
        self.relay_chain.load(dump.relay_chain)
        for parachain, its_dump, inbound in zip(self.parachains.values(), dump.parachains, dump.inbound, strict=True):
            parachain.load(its_dump)
            self._inbound[parachain.para_id] = inbound
        self.wasm_parachains.load(dump.wasm_parachains)
        with refusing("messages under way"):
            self._sent = {}
            for para_id, blocks in dump.sent:
                outbox = self._known(para_id).outbox
                self._sent[para_id] = [list(map(outbox.message_of, sent)) for sent in blocks]
        self.tick = dump.tick
        self._calls = list(calls)
        self._facts.clear()

    def _known(self, para_id: int) -> Parachain:
        parachain = self.parachains.get(ParaId(para_id))
        if parachain is None:
            raise ValueError(f"there is no parachain {para_id}")
        return parachain

    def _check_addition(self, para_id: ParaId, pace: Pace) -> None:
        """Raise ``ValueError`` unless a parachain of this id and pace can be added."""
        if para_id in self.parachains or para_id in self.wasm_parachains:
            raise ValueError(f"parachain {para_id} is there already")
        if para_id in self._leaving:
            raise ValueError(f"parachain {para_id} leaves with the next relay block: add it after that")
        if pace.relay_parent_offset > self.window - 2:
            raise ValueError(
                f"only {self.window} relay blocks can be proven from, no offset of {pace.relay_parent_offset}"
            )

    def _build_relay_block(self) -> None:
        chains: Iterable[Parachain | WasmParachain] = (*self.parachains.values(), *self.wasm_parachains.values())
        for chain in chains:
            para_id = chain.para_id
            self.relay_chain.include(para_id, chain.head.encode(), self._inbound.included(para_id))
            if para_id in self.traffic:
                self._receive(para_id)
        calls = tuple(self._calls)
        self._calls.clear()
        parent = self.relay_chain.head
        block = self.relay_chain.build_block(calls)
        self._leaving.clear()
        self._emit(RelaySealed(self.tick, block, parent))

    def _deliver_messages(self) -> None:
        for para_id, blocks in self._sent.items():
            for messages in blocks:
                self.relay_chain.upward.receive(para_id, [message.data for message in messages])
                self._emit(MessagesQueued(self.tick, para_id, tuple(messages)))
        self._sent.clear()
        for fact in self.wasm_parachains.deliver(tick=self.tick):
            self._emit(fact)

    def _take_messages(self, parachain: Parachain) -> None:
        upward, para_id = self.relay_chain.upward, parachain.para_id
        on_their_way = [message for messages in self._sent.get(para_id, ()) for message in messages]
        messages = parachain.take_messages(
            queued_count=upward.count(para_id) + len(on_their_way),
            queued_bytes=upward.size_bytes(para_id) + sum(len(message.data) for message in on_their_way),
        )
        if messages:
            self._sent.setdefault(para_id, []).append(messages)

    def _receive(self, para_id: ParaId) -> None:
        relay_block = self.relay_chain.head.number + 1
        downward, horizontal = self.traffic[para_id](relay_block)
        shares = by_sender(horizontal, self.senders.get(para_id, (MODELLED_SENDER,)), relay_block=relay_block)
        refused_bytes = self.relay_chain.receive(para_id, downward, shares)
        if refused_bytes:
            self._inbound.refuse(para_id, refused_bytes)
            self._emit(MessagesRefused(self.tick, para_id, refused_bytes))

    def _build_parachain_blocks(self, parents: tuple[RelayBlock, ...]) -> None:
        """Build the blocks of this tick: the first ones of all parachains are sealed together, then facts are told.

        The next block of a parachain is built when the one before is told of: what listeners see of it is that block's.
        """
        begun: dict[ParaId, _Begun] = {}
        for para_id in self.parachains:
            if para_id not in self.elsewhere and self.paces[para_id].blocks_in(self.tick, para_id):
                begun[para_id] = self._begin_block(para_id, parents)
        blocks = dict(zip(begun, _whole([it.built for it in begun.values()]), strict=True))
        for para_id, parachain in self.parachains.items():
            if para_id in begun:
                self._tell(begun[para_id], blocks[para_id], newest=parents[-1])
                for _ in range(self.paces[para_id].blocks_in(self.tick, para_id) - 1):
                    it = self._begin_block(para_id, parents)
                    self._tell(it, *_whole([it.built]), newest=parents[-1])
            parachain.tick = self.tick + 1

    def _begin_block(self, para_id: ParaId, parents: tuple[RelayBlock, ...]) -> "_Begun":
        """Execute the next block of a parachain."""
        collator, parent = self.collators[para_id], self._inbound.relay_parent(para_id, self.paces[para_id], parents)
        parachain = collator.parachain
        parachain.tick = self.tick
        parachain.upgrades.install(parent.number)
        subscribes, collation = parachain.subscriber.subscribes, collator.collate(parent)
        head, built, reason = parachain.head, None, ""
        try:
            built = collator.execute(collation)
        except Panic as panic:
            reason = str(panic)
        return _Begun(collator, parent, collation, head, built, reason, subscribes)

    def _tell(self, begun: "_Begun", block: ParachainBlock | None, *, newest: RelayBlock) -> None:
        """Emit the fact of a block that was built, or that panicked."""
        collator, parent, collation, head, _, reason, subscribes = begun
        parachain, honest = collator.parachain, collator.tamper is None
        para_id = parachain.para_id
        if block is None:
            left = self._inbound_totals(parachain, newest)
            self._emit(BlockPanicked(self.tick, para_id, parent, collation, head, reason, left, honest))
            return
        self._inbound.take(para_id, block.outcome.messages)
        left = self._inbound_totals(parachain, newest, block.inherent)
        self._emit(BlockBuilt(self.tick, para_id, parent, collation, head, block, left, honest, subscribes))
        self._take_messages(parachain)

    def _inbound_totals(
        self, parachain: Parachain, newest: RelayBlock, given: ParachainInherentData | None = None
    ) -> InboundTotals:
        """Return what became of the messages that stood in relay blocks when this tick began."""
        kinds = () if given is None else (given.downward_messages, given.horizontal_messages)
        queued = self.relay_chain.inbound_messages(newest, parachain.para_id)
        left = parachain.parachain_system.inbound.unprocessed(*queued)
        return InboundTotals(
            sum(messages.full_bytes for messages in kinds),
            sum(messages.hashed_bytes for messages in kinds),
            sum(len(message.data) for messages in left for message in messages),
            self._inbound[parachain.para_id].refused_bytes,
        )

    def _emit(self, fact: Fact) -> None:
        self._facts.append(fact)
        for listener in self.listeners:
            listener(fact)

    def __repr__(self) -> str:
        parachains = len(self.parachains) + len(self.wasm_parachains)
        return f"<ChainSimulator at tick {self.tick}: {self.relay_chain!r}, {parachains} parachains>"


def _whole(built: Sequence[ExecutedBlock | ParachainBlock | None]) -> list[ParachainBlock | None]:
    """Return blocks, where there are any, with those sealed together that are not yet."""
    sealed = iter(seal_blocks([it for it in built if isinstance(it, ExecutedBlock)]))
    return [next(sealed) if isinstance(it, ExecutedBlock) else it for it in built]


def manager_of(publisher: ParaId) -> bytes:
    """Return the account that manages a publisher which the network registers."""
    return blake2_256(b"manager" + publisher.encode())
