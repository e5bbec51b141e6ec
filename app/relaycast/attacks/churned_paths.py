"""The churn attack: a publisher that moves the nodes on subscribed paths, while no subscribed value changes.

In every block it publishes keys that part from a subscribed key somewhere on its path, with a time to live of one
block. The branches that they make split the path in that block and are gone in the next, so subscribers read, prove and
cache new nodes without a callback. Keys are 32 bytes of the publisher's choice, and values may be empty.
"""

from collections.abc import Iterator, Sequence
from random import Random

from msgspec import Struct

from relaycast.attacks.bystander import Bystander, Carried, Service, add_bystanders, bystander, carried
from relaycast.attacks.deep_paths import ATTACKER, FEEDS, SUBSCRIBER
from relaycast.attacks.message_flood import PUBLISHES_A_BLOCK
from relaycast.scenario.workload import value_of
from relaycast_collator import ChainSimulator, Fact, MessagesQueued
from relaycast_ledger import BlockRecord, Ledger
from relaycast_ledger.outcome import Percentiles, percentiles
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import Engine
from relaycast_xcm import ParaId

TARGETS = tuple(SubscribedKey.from_data(f"target/{index}".encode()) for index in range(10))
"""The attacker's subscribed keys: published in the first block, and never again."""

PARTING_NIBBLES = 12
"""Keys part at one of the first nibbles: a branch at each of them is still within the default ``MaxTrieDepth``."""

CHURN_AT = 6
FEWEST_BLOCKS = CHURN_AT + 4
"""The subscriber sees the first churned keys two blocks after they were sent."""

SETTLING_BLOCKS = 64
"""Quiet blocks in which a subscriber may catch up before a value counts as lost."""


class ChurnReport(Struct, frozen=True, kw_only=True):
    """What churn cost the attacker, its subscriber and other publishers; sizes of blocks that see the churn."""

    keys: int
    blocks: int
    seed: int
    budget_bytes: int | None
    """Bytes for messages and pub-sub in the subscriber's blocks; ``None`` for the specification's part of a PoV."""

    churned_at: int
    """The block in which the first churned keys are sent."""

    sent_messages: int
    sent_bytes: int
    own_alone: Percentiles
    own_attacked: Percentiles
    """Bytes of the subscriber's own state that its blocks carry."""

    target_alone: Service
    target_attacked: Service
    """What the subscriber was handed of the attacker's keys, over the whole run."""

    lost_alone: int
    lost_attacked: int
    """Subscribed keys whose value had not arrived when it was quiet again."""

    bystanders: tuple[Bystander, ...]
    carried_alone: Carried
    carried_attacked: Carried
    violations: tuple[str, ...]

    @property
    def harmed(self) -> bool:
        """Whether anything of other publishers arrives later or less often, or any value not at all."""
        return self.lost_attacked > self.lost_alone or any(it.harmed for it in self.bystanders)

    def __repr__(self) -> str:
        before, after = self.carried_alone.proof_bytes.p50, self.carried_attacked.proof_bytes.p50
        harm = "others were harmed" if self.harmed else "nobody else was harmed"
        return f"<ChurnReport {self.keys} keys a block: proofs of {before:,} -> {after:,} bytes, {harm}>"


def churn(
    *, keys: int = 64, blocks: int = 20, budget_bytes: int | None = None, seed: int = 0, trie_engine: Engine = "auto"
) -> ChurnReport:
    """Churn ``keys`` keys in every block, beside those of a subscriber with ``budget_bytes`` in a block for pub-sub."""
    if not 1 <= keys <= PUBLISHES_A_BLOCK or blocks < FEWEST_BLOCKS or (budget_bytes is not None and budget_bytes < 1):
        raise ValueError(
            f"1 to {PUBLISHES_A_BLOCK} keys, {FEWEST_BLOCKS} blocks or more and a budget of at least one byte, "
            f"got {keys}, {blocks} and {budget_bytes}"
        )
    networks = (ChainSimulator(seed=seed, window=2, trie_engine=trie_engine) for _ in range(2))
    alone, attacked = (_Churn(keys, budget_bytes, network) for network in networks)
    for _ in range(blocks):
        alone.step(churning=False)
        attacked.step(churning=True)
    return attacked.report(alone, blocks)


class _Churn:
    """A network with bystanders, the attacker, and a subscriber of all of them."""

    def __init__(self, keys: int, budget_bytes: int | None, network: ChainSimulator) -> None:
        self.keys = keys
        self.budget_bytes = budget_bytes
        self.network, self.ledger = network, Ledger(network)
        budget = None if budget_bytes is None else Remaining(limit_bytes=budget_bytes)
        add_bystanders(self.network, FEEDS, SUBSCRIBER, budget=budget)
        self.attacker = self.network.add_parachain(ATTACKER)
        self.network.register_publisher(ATTACKER)
        self.network.subscribe(SUBSCRIBER, ATTACKER, list(TARGETS))
        self.network.listeners.append(self._on_fact)
        self.records: list[BlockRecord] = []
        self.sent_messages = self.sent_bytes = 0

    def step(self, *, churning: bool) -> None:
        tick = self.network.tick + 1
        for feed in FEEDS:
            feed.publish(self.network)
        if tick == 1:
            for index, key in enumerate(TARGETS):
                self.attacker.publish(key, value_of(self.network.seed, int(ATTACKER), index, tick, 16), tick=tick)
        if churning and tick >= CHURN_AT:
            draw = Random(f"churn {self.network.seed} {tick}")  # noqa: S311 - no secret
            for key in sibling_keys(draw, TARGETS, self.keys):
                self.attacker.publish(key, b"", ttl=1, tick=tick)
        self.records.extend(self.ledger.step())

    def lost(self) -> int:
        """Let it be quiet until a pass is complete, and return how many keys are not as the relay chain has them."""
        sent_last = self.network.tick
        for _ in range(SETTLING_BLOCKS):
            records = self.ledger.step()
            if self.network.tick > sent_last + 2 and all(record.complete for record in records):
                break
        kept, storage = self.network.parachains[ParaId(SUBSCRIBER)].kept, self.network.relay_chain.broadcaster.storage
        places = [(publisher, key) for publisher, keys in kept.wanted.items() for key in keys]
        entries = {place: entry for place in places if (entry := storage.entry(*place)) is not None}
        return sum(kept.values.get(place, (None,))[0] != entry.value for place, entry in entries.items())

    def report(self, alone: "_Churn", blocks: int) -> ChurnReport:
        runs = (alone.records, self.records)
        seen = [[record for record in records if record.tick >= CHURN_AT + 2] for records in runs]
        own = [percentiles([record.own_bytes for record in records]) for records in seen]
        target = bystander(int(ATTACKER), SUBSCRIBER, *runs)
        messages, size = self.sent_messages - alone.sent_messages, self.sent_bytes - alone.sent_bytes
        lost = [run.lost() for run in (alone, self)]
        violations = (*self.ledger.invariants.violations, *alone.ledger.invariants.violations)
        return ChurnReport(
            keys=self.keys,
            blocks=blocks,
            seed=self.network.seed,
            budget_bytes=self.budget_bytes,
            churned_at=CHURN_AT,
            sent_messages=messages,
            sent_bytes=size,
            own_alone=own[0],
            own_attacked=own[1],
            target_alone=target.alone,
            target_attacked=target.attacked,
            lost_alone=lost[0],
            lost_attacked=lost[1],
            bystanders=tuple(bystander(int(it.para_id), SUBSCRIBER, *runs) for it in FEEDS),
            carried_alone=carried(seen[0]),
            carried_attacked=carried(seen[1]),
            violations=tuple(map(str, violations)),
        )

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, MessagesQueued) and fact.para_id == ATTACKER:
            self.sent_messages += len(fact.messages)
            self.sent_bytes += sum(len(message.data) for message in fact.messages)


def sibling_keys(draw: Random, targets: Sequence[SubscribedKey], count: int) -> Iterator[SubscribedKey]:
    """Yield ``count`` keys that each differ from one of ``targets`` in one nibble."""
    for place in draw.sample(range(len(targets) * PARTING_NIBBLES * 15), count):
        rest, change = divmod(place, 15)
        target, depth = divmod(rest, PARTING_NIBBLES)
        yield parting_key(targets[target], depth, change + 1)


def parting_key(target: SubscribedKey, depth: int, change: int) -> SubscribedKey:
    """Return ``target`` with another nibble at ``depth``: ``change``, from 1 to 15, is added to it bit by bit."""
    key = bytearray(target)
    key[depth // 2] ^= change if depth % 2 else change << 4
    return SubscribedKey(bytes(key))
