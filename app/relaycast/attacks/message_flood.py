"""The spam attack: parachains that send as much as they may, and what the relay chain spends on them.

In every block each of them sends as many messages as a candidate may, each with as many ``Publish`` instructions as
pass the barrier. Every second message writes fresh keys until the pallet refuses more; the others write the same keys
again. What does not fit into the relay chain's queues is refused with its candidate. A ``Publish`` weighs what the
broadcaster's configuration says of it; nobody has benchmarked one, so that weights are modelled and all else is exact.
"""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from relaycast.attacks.bystander import Bystander, Carried, HonestPublisher, add_bystanders, bystander, carried
from relaycast.scenario.workload import value_of
from relaycast_collator import ChainSimulator
from relaycast_ledger import BlockRecord, Ledger
from relaycast_pallets.broadcaster.events import DataPublished
from relaycast_trie import Engine, blake2_256
from relaycast_xcm import (
    MAX_PUBLISH_INSTRUCTIONS,
    MAX_PUBLISH_VALUE_BYTES,
    POLKADOT_LIMITS,
    ParaId,
    Processed,
    Processing,
    ProcessingFailed,
    Publish,
    PublishWeight,
    UpwardQueueError,
    Weigher,
    Weight,
    encode_versioned_xcm,
)
from relaycast_xcm.executor import Incomplete

PUBLISHES_A_BLOCK = POLKADOT_LIMITS.messages_per_candidate * MAX_PUBLISH_INSTRUCTIONS
"""Publications that a parachain may send with a block in free messages."""

FIRST_SPAMMER = 4_000
MAX_PARACHAINS = 900
"""Together with the bystanders they fit the broadcaster's thousand publishers."""

FEED, SUBSCRIBER = HonestPublisher.of(2_000, 10), 3_000

OTHER_INSTRUCTIONS = Weight(10_000_000)
"""What an instruction that is no ``Publish`` weighs; assumed, as Westend does."""


class FloodBlock(Struct, frozen=True, kw_only=True):
    """One relay block under the flood, from 1 on: ``weight_share`` of its limit, and the queues as it leaves them."""

    block: int
    ref_time: int
    weight_share: float
    published: int
    refused: int
    waiting_messages: int
    waiting_bytes: int


class SpamReport(Struct, frozen=True, kw_only=True):
    """What the flood cost, and whether it harmed others. ``refused`` counts messages by why they failed."""

    parachains: int
    blocks: int
    value_bytes: int
    seed: int
    publish_ref_time: int
    limit_ref_time: int
    sent_messages: int
    sent_bytes: int
    published: int
    refused: dict[str, int]
    stored_keys: int
    stored_bytes: int
    """As the pallet counts them: 32 bytes and the value for each key."""

    state_bytes_before: int
    state_bytes_after: int
    """Bytes of all nodes and values of the relay chain's tries."""

    series: tuple[FloodBlock, ...]
    bystanders: tuple[Bystander, ...]
    carried_alone: Carried
    carried_attacked: Carried
    violations: tuple[str, ...]

    @property
    def harmed(self) -> bool:
        """Whether the flood kept anything from anybody else."""
        return any(it.harmed for it in self.bystanders)

    @property
    def block_fits_publishes(self) -> int:
        """How many ``Publish`` instructions a block has weight for."""
        return self.limit_ref_time // self.publish_ref_time

    @property
    def block_fits_parachains(self) -> float:
        """How many parachains can send all that they may before they wait for one another."""
        return self.block_fits_publishes / PUBLISHES_A_BLOCK

    def __repr__(self) -> str:
        harm = "others were harmed" if self.harmed else "nobody else was harmed"
        return (
            f"<SpamReport {self.published:,} published in {self.blocks} blocks by {self.parachains} parachains, {harm}>"
        )


class _Spammer:
    """A parachain that floods: what it sends in a block follows from the seed."""

    def __init__(self, para_id: ParaId, *, seed: int, value_bytes: int) -> None:
        self.para_id = para_id
        self._seed = seed
        self._value_bytes = value_bytes
        self._fresh = 0

    def messages(self, block: int) -> list[bytes]:
        return [self._message(block, number) for number in range(POLKADOT_LIMITS.messages_per_candidate)]

    def _message(self, block: int, number: int) -> bytes:
        first = number // 2 * MAX_PUBLISH_INSTRUCTIONS
        if number % 2 == 0:
            first, self._fresh = self._fresh, self._fresh + MAX_PUBLISH_INSTRUCTIONS
        turn = block * POLKADOT_LIMITS.messages_per_candidate + number
        program = [self._publish(first + at, turn) for at in range(MAX_PUBLISH_INSTRUCTIONS)]
        while len(data := encode_versioned_xcm(program)) > POLKADOT_LIMITS.message_bytes:
            program.pop()
        return data

    def _publish(self, index: int, turn: int) -> Publish:
        key = blake2_256(b"spam" + self.para_id.encode() + index.to_bytes(8, "little"))
        return Publish(key, value_of(self._seed, int(self.para_id), index, turn, self._value_bytes), 0)


def spam(
    *, blocks: int = 12, parachains: int = 8, value_bytes: int = 2_048, seed: int = 0, trie_engine: Engine = "auto"
) -> SpamReport:
    """Flood a relay chain for some ``blocks`` from some ``parachains``, with values of ``value_bytes`` bytes."""
    if blocks < 1 or not 1 <= parachains <= MAX_PARACHAINS or not 0 <= value_bytes <= MAX_PUBLISH_VALUE_BYTES:
        raise ValueError(
            f"at least one block, 1 to {MAX_PARACHAINS} parachains and values of at most {MAX_PUBLISH_VALUE_BYTES} "
            f"bytes, got {blocks}, {parachains} and {value_bytes}"
        )
    networks = (ChainSimulator(seed=seed, window=2, trie_engine=trie_engine) for _ in range(2))
    alone, attacked = (_Flood(parachains, value_bytes, network) for network in networks)
    before = attacked.state_bytes()
    for _ in range(blocks):
        alone.step(spamming=False)
        attacked.step(spamming=True)
    return attacked.report(alone, state_bytes_before=before)


class _Flood:
    """A network with bystanders and spammers; what the spammers do is counted block by block."""

    def __init__(self, parachains: int, value_bytes: int, network: ChainSimulator) -> None:
        self.network, self.ledger = network, Ledger(network)
        chain = self.network.relay_chain
        self.publish_weight = chain.broadcaster.config.weight("publish")
        chain.executor.weigher = Weigher(OTHER_INSTRUCTIONS, PublishWeight(self.publish_weight))
        add_bystanders(self.network, [FEED], SUBSCRIBER)
        ids = [ParaId(FIRST_SPAMMER + number) for number in range(parachains)]
        for para_id in ids:
            self.network.register_publisher(para_id)
        self.spammers = [_Spammer(para_id, seed=network.seed, value_bytes=value_bytes) for para_id in ids]
        self.value_bytes = value_bytes
        self.records: list[BlockRecord] = []
        self.series: list[FloodBlock] = []
        self.refused: Counter[str] = Counter()
        self.sent_messages = self.sent_bytes = 0
        self.ledger.step()

    def step(self, *, spamming: bool) -> None:
        FEED.publish(self.network)
        refused = sum(self.refused.values())
        if spamming:
            for spammer in self.spammers:
                self._send(spammer.para_id, spammer.messages(self.network.tick))
        self.records.extend(self.ledger.step())
        self._count(self.network.relay_chain.head.messages)
        self.series.append(self._block(sum(self.refused.values()) - refused))

    def state_bytes(self) -> int:
        db = self.network.relay_chain.state.db
        return sum(len(db.get(node_hash) or b"") for node_hash in db)

    def report(self, alone: "_Flood", *, state_bytes_before: int) -> SpamReport:
        storage = self.network.relay_chain.broadcaster.storage
        violations = (*self.ledger.invariants.violations, *alone.ledger.invariants.violations)
        return SpamReport(
            parachains=len(self.spammers),
            blocks=len(self.series),
            value_bytes=self.value_bytes,
            seed=self.network.seed,
            publish_ref_time=self.publish_weight.ref_time,
            limit_ref_time=self.network.relay_chain.system.max_block.ref_time,
            sent_messages=self.sent_messages,
            sent_bytes=self.sent_bytes,
            published=sum(block.published for block in self.series),
            refused=dict(sorted(self.refused.items())),
            stored_keys=sum(len(storage.child(it.para_id)) for it in self.spammers),
            stored_bytes=sum(storage.size_of(it.para_id) for it in self.spammers),
            state_bytes_before=state_bytes_before,
            state_bytes_after=self.state_bytes(),
            series=tuple(self.series),
            bystanders=(bystander(int(FEED.para_id), SUBSCRIBER, alone.records, self.records),),
            carried_alone=carried(alone.records),
            carried_attacked=carried(self.records),
            violations=tuple(map(str, violations)),
        )

    def _send(self, para_id: ParaId, messages: list[bytes]) -> None:
        self.sent_messages += len(messages)
        self.sent_bytes += sum(map(len, messages))
        try:
            self.network.relay_chain.upward.receive(para_id, messages)
        except UpwardQueueError as refusal:
            self.refused[f"queue: {type(refusal).__name__}"] += len(messages)

    def _count(self, messages: tuple[Processing, ...]) -> None:
        first = self.spammers[0].para_id
        self.refused.update(why for message in messages if message.origin >= first for why in _refusals(message))

    def _block(self, refused: int) -> FloodBlock:
        chain = self.network.relay_chain
        used = chain.system.meter
        first = self.spammers[0].para_id
        events = [event for event in chain.head.events if isinstance(event, DataPublished)]
        return FloodBlock(
            block=len(self.series) + 1,
            ref_time=used.consumed.ref_time,
            weight_share=round(used.consumed.ref_time / used.limit.ref_time, 6),
            published=sum(event.publisher >= first for event in events),
            refused=refused,
            waiting_messages=chain.upward.waiting,
            waiting_bytes=sum(chain.upward.size_bytes(spammer.para_id) for spammer in self.spammers),
        )


def _refusals(message: Processing) -> Iterator[str]:
    """Yield why a message did not do all that it says."""
    if isinstance(message, ProcessingFailed):
        yield f"not executed: {message.error.name}"
    elif not isinstance(message, Processed):
        yield "not executed: Overweight"
    elif isinstance(message.outcome, Incomplete):
        error = message.outcome.error
        yield f"pallet: {type(error.cause).__name__}" if error.cause is not None else f"executor: {error.error.name}"
