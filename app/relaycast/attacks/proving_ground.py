"""A network in which a lying collator meets every state that a subscriber can be in, and a way to try lies out on it.

Law: a lie is tried on the block that the honest collator is about to build, and leaves no trace. Afterwards the network
goes on as if the lie had not been tried.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from relaycast.scenario.workload import value_of
from relaycast_collator import ChainSimulator, Collation, Messages, Parachain, RelayChain
from relaycast_collator.parachain import Update
from relaycast_ledger import Ledger
from relaycast_pallets.messaging.inbound_message import AbridgedMessages, InboundMessagesData
from relaycast_pallets.messaging.relay_queues import MODELLED_CHANNEL
from relaycast_pallets.parachain_system.pallet import Panic, ParachainInherentData, ValidationOutcome
from relaycast_pallets.parachain_system.relay_budget import Abridged, PovUsage, Remaining
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES, Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId, Weight

AMPLE, TIGHT, LATE, BUSY, SHALLOW = map(ParaId, range(3_000, 3_005))
"""Subscribers: one with room for all, one with a small block, one that comes later and drops keys. Then one whose
messages leave little or more than fit, and one that tolerates hardly any depth."""

TIGHT_POV_BYTES, BUSY_POV_BYTES, MESSAGE_BYTES = 3_600, 24_000, 2_000

SENDERS = (ParaId(2_100), ParaId(2_101))
"""Who sends the horizontal messages, each through a channel of its own."""

CHANNEL = replace(MODELLED_CHANNEL, max_message_size=MESSAGE_BYTES)
"""The channel allows no longer message than those sent, so a block has to advance as many as fit."""

OUTBURST_EVERY = 4
"""Every how many relay blocks more messages arrive than one block holds."""

Nodes = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Publisher:
    """``keys`` keys, ``changed`` of them new in every ``every``-th block; ``value_bytes`` take turns."""

    para_id: ParaId
    keys: int
    value_bytes: tuple[int, ...]
    every: int = 1
    changed: int = 4
    ttl: int = 0

    def key(self, index: int) -> SubscribedKey:
        return SubscribedKey.from_data(f"{self.para_id}/{index}".encode())


PUBLISHERS = (
    _Publisher(ParaId(1_000), 12, (16,), every=2),
    _Publisher(ParaId(2_000), 24, (16, 300), changed=5),
    _Publisher(ParaId(2_001), 6, (40,), every=7, changed=6, ttl=3),
    _Publisher(ParaId(2_002), 1, (16,), every=3, changed=1),
)
"""Few keys and many, inline values and long ones, values that expire, and a trie that is a single leaf."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A budget of ``pubsub_bytes``, whatever the messages take: how a collator prunes that wants to stop early."""

    pubsub_bytes: int

    def share_out(self, usage: PovUsage) -> Abridged:
        return Abridged(len(usage.downward_messages), len(usage.horizontal_messages), self.pubsub_bytes)


@dataclass(frozen=True, slots=True)
class BlockVerdict:
    """What the chain said to some nodes: ``caught_by`` names the error that the block panicked with.

    Where there is none the block was valid, with ``outcome`` and ``updates``.
    """

    caught_by: str | None
    outcome: ValidationOutcome | None = None
    updates: tuple[Update, ...] = ()


class _Undone(Exception):
    """Takes a valid block back."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A block that is about to be built: what an honest collator hands over, and what a lying one could use."""

    parachain: Parachain
    relay_chain: RelayChain
    collation: Collation
    earlier: Nodes
    """The proof of the parachain's block before."""

    earlier_messages: InboundMessagesData = InboundMessagesData()  # noqa: RUF009 - a frozen value
    """The messages that the block before was given."""

    @property
    def nodes(self) -> Nodes:
        """The honest proof."""
        return self.collation.inherent.relay_chain_state

    @property
    def kind(self) -> str:
        """Which state of the subscriber this is."""
        pruning = self.collation.pruning
        resumed = pruning.plan.cursor is not None
        if pruning.cursor is not None:
            return "cut short again" if resumed else "cut short"
        if resumed:
            return "finished after a cut"
        if any(change.disabled_by is not None for change in pruning.changes):
            return "disables a publisher"
        if any(
            change.root is not None and pruning.plan.views[change.para_id].root is None for change in pruning.changes
        ):
            return "sees a publisher first"
        return "changes" if pruning.changes else "nothing new"

    @property
    def min_weight(self) -> Weight:
        """One read of the largest node or entry: what an omission may hide behind, worked out anew."""
        config = self.parachain.subscriber.config
        return Weight(config.db_weight.read, max(config.max_value_length + 2 + 8, MAX_NODE_BYTES))

    @property
    def relay_parent_number(self) -> int:
        """The relay block that the block is built on."""
        return self.collation.inherent.validation_data.relay_parent_number

    def with_nodes(self, nodes: Sequence[bytes]) -> ParachainInherentData:
        """Return the honest inherent with other ``nodes`` for a proof."""
        return replace(self.collation.inherent, relay_chain_state=tuple(nodes))

    def with_messages(
        self, *, downward: AbridgedMessages | None = None, horizontal: AbridgedMessages | None = None
    ) -> ParachainInherentData:
        """Return the inherent with other messages, and the proof pruned to the budget that these leave."""
        honest = self.collation.inherent
        told = replace(
            honest,
            downward_messages=honest.downward_messages if downward is None else downward,
            horizontal_messages=honest.horizontal_messages if horizontal is None else horizontal,
            relay_chain_state=tuple(self.collation.collected),
        )
        pruned, _ = self.parachain.parachain_system.prune(told, seed=self.parachain.head.hash)
        return replace(told, relay_chain_state=tuple(pruned))

    def attempt(self, nodes: Sequence[bytes]) -> BlockVerdict:
        """Return what the chain says to ``nodes`` as a proof; nothing of it is kept."""
        return self.attempt_inherent(self.with_nodes(nodes))

    def attempt_inherent(self, inherent: ParachainInherentData) -> BlockVerdict:
        """Return what the chain says to an inherent; nothing of it is kept."""
        parachain = self.parachain
        delivered = parachain.subscriber.delivered
        verdict = BlockVerdict("nothing")
        try:
            with parachain.state.transaction():
                parachain.system.initialize(parachain.head.number + 1, parent_hash=parachain.head.hash)
                outcome = parachain.parachain_system.set_validation_data(inherent, seed=parachain.head.hash)
                verdict = BlockVerdict(None, outcome, tuple(parachain.subscriber.delivered.updates))
                raise _Undone
        except Panic as panic:
            verdict = BlockVerdict(type(panic.cause).__name__)
        except _Undone:
            pass
        parachain.subscriber.delivered = delivered
        return verdict

    def pruned(self, pubsub_bytes: int, *, cursor: tuple[ParaId, SubscribedKey] | None = None) -> Nodes:
        """Return the proof of a collator that prunes to another budget, and from ``cursor`` where one is given."""
        system = self.parachain.parachain_system
        full = replace(self.collation.inherent, relay_chain_state=tuple(self.collation.collected))
        honest, system.budget = system.budget, Fixed(pubsub_bytes)
        found: Nodes = ()
        try:
            with self.parachain.state.transaction():
                if cursor is not None:
                    self.parachain.subscriber.storage.relay_proof_processing_cursor.put(cursor)
                found = tuple(system.prune(full, seed=self.parachain.head.hash)[0])
                raise _Undone
        except _Undone:
            return found
        finally:
            system.budget = honest


class ProvingGround:
    """The network, and the moments that it comes to."""

    def __init__(self, *, seed: int = 0, policies: Policies | None = None, trie_engine: Engine = "auto") -> None:
        self.network = ChainSimulator(seed=seed, window=8, trie_engine=trie_engine)
        self.ledger = Ledger(self.network)
        self._earlier: dict[ParaId, tuple[Nodes, InboundMessagesData]] = {}
        for publisher in PUBLISHERS:
            self.network.add_parachain(publisher.para_id)
            if not publisher.para_id.is_system:
                self.network.register_publisher(publisher.para_id)
        add = self.network.add_parachain
        add(AMPLE, policies=policies)
        add(TIGHT, policies=policies, budget=Remaining(100), max_pov_size=TIGHT_POV_BYTES)
        add(LATE, policies=policies)
        add(BUSY, policies=policies, budget=Remaining(100), max_pov_size=BUSY_POV_BYTES)
        add(SHALLOW, policies=policies, config=SubscriberConfig(max_trie_depth=1))
        for sender in SENDERS:
            self.network.relay_chain.hrmp.open_channel(sender, BUSY, CHANNEL)
        self.network.traffic[BUSY], self.network.senders[BUSY] = self._messages, SENDERS
        for subscriber in (AMPLE, TIGHT, BUSY, SHALLOW):
            for publisher in PUBLISHERS:
                self._subscribe(subscriber, publisher, publisher.keys)

    def moments(self, blocks: int) -> Iterator[Moment]:
        """Let ``blocks`` blocks pass; before each, yield the blocks that subscribers are about to build."""
        for _ in range(blocks):
            tick = self.network.tick + 1
            self._change_subscriptions(tick)
            yield from self._moments()
            self._publish(tick)
            self.ledger.step()

    def _moments(self) -> Iterator[Moment]:
        network = self.network
        for para_id, collator in network.collators.items():
            if not collator.parachain.subscriber.subscribes:
                continue
            collation = collator.collate(network.relay_chain.head)
            earlier = self._earlier.get(para_id, ((), InboundMessagesData()))
            moment = Moment(collator.parachain, network.relay_chain, collation, *earlier)
            self._earlier[para_id] = moment.nodes, collation.inherent.messages
            yield moment

    def _messages(self, relay_block: int) -> Messages:
        """Return three messages of each kind, and at times some more; no two are alike."""
        count = 8 if relay_block % OUTBURST_EVERY == 0 else 3
        downward, horizontal = (
            tuple(
                value_of(self.network.seed, int(BUSY), kind * count + index, relay_block, MESSAGE_BYTES)
                for index in range(count)
            )
            for kind in (0, 1)
        )
        return downward, horizontal

    def _publish(self, tick: int) -> None:
        for publisher in PUBLISHERS:
            turn, rest = divmod(tick - 1, publisher.every)
            if rest:
                continue
            for offset in range(publisher.keys if turn == 0 else publisher.changed):
                index = offset if turn == 0 else (turn * publisher.changed + offset) % publisher.keys
                size = publisher.value_bytes[index % len(publisher.value_bytes)]
                value = value_of(self.network.seed, int(publisher.para_id), index, tick, size)
                parachain = self.network.parachains[publisher.para_id]
                parachain.publish(publisher.key(index), value, ttl=publisher.ttl, tick=tick)

    def _change_subscriptions(self, tick: int) -> None:
        changes: dict[int, Callable[[], None]] = {
            4: lambda: self._subscribe(LATE, PUBLISHERS[1], 12),
            6: lambda: self._subscribe(LATE, PUBLISHERS[1], 18),
            8: lambda: self._subscribe(LATE, PUBLISHERS[1], 6),
        }
        if tick in changes:
            changes[tick]()

    def _subscribe(self, subscriber: ParaId, publisher: _Publisher, count: int) -> None:
        """Let the subscriber want the first ``count`` keys of a publisher, and no others of it."""
        wanted = self.network.parachains[subscriber].kept.wanted
        wanted[publisher.para_id] = [publisher.key(index) for index in range(count)]
