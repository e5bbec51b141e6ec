"""The callback attack: a publisher that changes every key in every block, against a reader whose callbacks take long.

The inherent of a block is mandatory, and so are its callbacks. Without a limit publishers decide how long they take,
and a block that takes longer than two seconds is invalid. With a limit, callbacks that do not fit wait for the next
block, those for other publishers included.
"""

from collections.abc import Sequence

from msgspec import Struct

from relaycast.attacks.bystander import Bystander, HonestPublisher, Service, add_bystanders, bystander
from relaycast.attacks.deep_paths import ATTACKER, SUBSCRIBER
from relaycast.attacks.message_flood import PUBLISHES_A_BLOCK
from relaycast.callback_time import MAX_MICROSECONDS, limit_of, weight_of
from relaycast.scenario.workload import value_of
from relaycast_collator import ChainSimulator, Fact, MessagesQueued
from relaycast_ledger import BlockRecord, Ledger
from relaycast_ledger.outcome import Percentiles, percentiles
from relaycast_ledger.pov import MAX_BLOCK_REF_TIME
from relaycast_pallets.subscriber.config import CALLBACK_LIMIT, SubscriberConfig
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import Engine
from relaycast_xcm import ParaId

FEEDS = (
    HonestPublisher.of(1_000, 10),
    HonestPublisher.of(2_000, 10),
    HonestPublisher.of(2_002, 10, per_block=1),
)
"""Bystanders: two change every value in every block, the third changes one value in each block."""

KEYS_READ = tuple(SubscribedKey.from_data(f"heavy/{index}".encode()) for index in range(PUBLISHES_A_BLOCK))
VALUE_BYTES = 16

CALLBACK_US, LIMIT_US = 10_000, CALLBACK_LIMIT.ref_time // weight_of(1).ref_time

STRIKE_AT = 6
FEWEST_BLOCKS = STRIKE_AT + 4
"""The subscriber sees the first changes two blocks after they were sent."""

SETTLING_BLOCKS = 512
"""Blocks without changes in which a subscriber may catch up before a value counts as lost."""


class TimeTaken(Struct, frozen=True, kw_only=True):
    """Computation time of the subscriber's blocks from the strike on, in picoseconds."""

    ref_time: Percentiles
    blocks: int
    refused_blocks: int
    """Blocks that the relay chain would refuse."""

    waiting_blocks: int
    """Blocks that left callbacks to the next one."""

    callbacks: int


class CallbackReport(Struct, frozen=True, kw_only=True):
    """The effect of heavy callbacks on their reader and on other publishers, without a limit and with one."""

    keys: int
    blocks: int
    seed: int
    callback_us: int
    limit_us: int
    """Microseconds that a block has for callbacks; 0 is no limit."""

    max_ref_time: int
    """Picoseconds that a block may take."""

    struck_at: int
    """The block from which on the attacker changes every key in every block."""

    sent_messages: int
    sent_bytes: int
    alone: TimeTaken
    unlimited: TimeTaken
    """Under attack without a limit, as in the drafts."""

    limited: TimeTaken
    """Under attack with the limit."""

    target_alone: Service
    target_limited: Service
    """Deliveries of the attacker's keys over the whole run; none without the attack."""

    lost: int
    """Subscribed keys whose value had not arrived after the quiet blocks."""

    bystanders: tuple[Bystander, ...]
    """Other publishers, without the attack and under it with the limit."""

    violations: tuple[str, ...]

    @property
    def contained(self) -> bool:
        """Whether every block fits and no value is lost."""
        return not self.limited.refused_blocks and not self.lost

    @property
    def harmed(self) -> bool:
        """Whether values of other publishers arrive later or less often."""
        return any(it.harmed for it in self.bystanders)

    def __repr__(self) -> str:
        refused = f"{self.unlimited.refused_blocks} -> {self.limited.refused_blocks} blocks refused"
        return f"<CallbackReport {self.keys} callbacks of {self.callback_us:,} us a block: {refused}>"


def callbacks(
    *,
    keys: int = PUBLISHES_A_BLOCK,
    blocks: int = 24,
    callback_us: int = CALLBACK_US,
    limit_us: int = LIMIT_US,
    seed: int = 0,
    trie_engine: Engine = "auto",
) -> CallbackReport:
    """Change ``keys`` keys in every block; a callback takes ``callback_us``, a block has ``limit_us`` for all."""
    fits = limit_us == 0 or callback_us <= limit_us
    if not (
        1 <= keys <= PUBLISHES_A_BLOCK and blocks >= FEWEST_BLOCKS and 1 <= callback_us <= MAX_MICROSECONDS and fits
    ):
        raise ValueError(
            f"keys must be 1 to {PUBLISHES_A_BLOCK}, blocks at least {FEWEST_BLOCKS}, callback_us 1 to "
            f"{MAX_MICROSECONDS:,} and limit_us 0 or at least callback_us, "
            f"got {keys}, {blocks}, {callback_us} and {limit_us}"
        )

    def readers(limit_us: int) -> _Readers:
        return _Readers(keys, callback_us, limit_us, ChainSimulator(seed=seed, window=2, trie_engine=trie_engine))

    alone, unlimited = readers(limit_us), readers(0)
    limited = readers(limit_us) if limit_us else unlimited
    for _ in range(blocks):
        alone.step(striking=False)
        for run in {id(it): it for it in (unlimited, limited)}.values():
            run.step(striking=True)
    return _report(alone, unlimited, limited, blocks)


class _Readers:
    """A network with bystanders, the attacker, and a subscriber of all of them whose callbacks take long."""

    def __init__(self, keys: int, callback_us: int, limit_us: int, network: ChainSimulator) -> None:
        self.keys = KEYS_READ[:keys]
        self.callback_us, self.limit_us = callback_us, limit_us
        self.network, self.ledger = network, Ledger(network)
        add_bystanders(self.network, FEEDS, SUBSCRIBER, config=SubscriberConfig(callback_limit=limit_of(limit_us)))
        self.attacker = self.network.add_parachain(ATTACKER)
        self.network.register_publisher(ATTACKER)
        self.network.subscribe(SUBSCRIBER, ATTACKER, list(self.keys))
        reader = self.network.parachains[ParaId(SUBSCRIBER)]
        for publisher, wanted in reader.kept.wanted.items():
            reader.declare(publisher, list(wanted), weight_of(callback_us))
        self.network.listeners.append(self._on_fact)
        self.records: list[BlockRecord] = []
        self.sent_messages = self.sent_bytes = 0

    def step(self, *, striking: bool) -> None:
        tick = self.network.tick + 1
        for feed in FEEDS:
            feed.publish(self.network)
        if striking and tick >= STRIKE_AT:
            for index, key in enumerate(self.keys):
                value = value_of(self.network.seed, int(ATTACKER), index, tick, VALUE_BYTES)
                self.attacker.publish(key, value, tick=tick)
        self.records.extend(self.ledger.step())

    @property
    def time_taken(self) -> TimeTaken:
        seen = [record for record in self.records if record.tick >= STRIKE_AT + 2]
        povs = [record.pov for record in seen if record.pov is not None]
        return TimeTaken(
            ref_time=percentiles([pov.ref_time for pov in povs]),
            blocks=len(povs),
            refused_blocks=sum(pov.is_oversize for pov in povs),
            waiting_blocks=sum(record.ended_by_callbacks for record in seen),
            callbacks=sum(len(record.deliveries) for record in seen),
        )

    def lost(self) -> int:
        """Run without changes until a pass is complete, and return how many keys differ from the relay chain."""
        sent_last = self.network.tick
        for _ in range(SETTLING_BLOCKS):
            records = self.ledger.step()
            if self.network.tick > sent_last + 2 and all(record.complete for record in records):
                break
        kept, storage = self.network.parachains[ParaId(SUBSCRIBER)].kept, self.network.relay_chain.broadcaster.storage
        places = [(publisher, key) for publisher, keys in kept.wanted.items() for key in keys]
        entries = {place: entry for place in places if (entry := storage.entry(*place)) is not None}
        return sum(kept.values.get(place, (None,))[0] != entry.value for place, entry in entries.items())

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, MessagesQueued) and fact.para_id == ATTACKER:
            self.sent_messages += len(fact.messages)
            self.sent_bytes += sum(len(message.data) for message in fact.messages)


def _report(alone: _Readers, unlimited: _Readers, limited: _Readers, blocks: int) -> CallbackReport:
    runs: Sequence[Sequence[BlockRecord]] = (alone.records, limited.records)
    target = bystander(int(ATTACKER), SUBSCRIBER, *runs)
    taken = [run.time_taken for run in (alone, unlimited, limited)]
    messages, size = limited.sent_messages - alone.sent_messages, limited.sent_bytes - alone.sent_bytes
    lost = limited.lost()
    every = (alone, unlimited, limited)
    violations = dict.fromkeys(str(it) for run in every for it in run.ledger.invariants.violations)
    return CallbackReport(
        keys=len(limited.keys),
        blocks=blocks,
        seed=limited.network.seed,
        callback_us=limited.callback_us,
        limit_us=limited.limit_us,
        max_ref_time=MAX_BLOCK_REF_TIME,
        struck_at=STRIKE_AT,
        sent_messages=messages,
        sent_bytes=size,
        alone=taken[0],
        unlimited=taken[1],
        limited=taken[2],
        target_alone=target.alone,
        target_limited=target.attacked,
        lost=lost,
        bystanders=tuple(bystander(int(it.para_id), SUBSCRIBER, *runs) for it in FEEDS),
        violations=tuple(violations),
    )
