"""The network that prices attacks: an attacker, its readers, bystanders, and an account that pays the attacker's fees.

Law: courses that differ only in griefer and payment have the same seed, bystanders and number of blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from relaycast.account import FEES
from relaycast.attacks.bystander import HonestPublisher, add_bystanders
from relaycast.attacks.churned_paths import SETTLING_BLOCKS
from relaycast.attacks.message_flood import PUBLISHES_A_BLOCK
from relaycast.attacks.price.griefers import Attacker, Griefer, Publishing
from relaycast.callback_time import weight_of
from relaycast_collator import ChainSimulator, Fact, MessagesQueued
from relaycast_collator.chains import manager_of
from relaycast_ledger import BlockRecord, Ledger
from relaycast_pallets.broadcaster.config import UNITS
from relaycast_pallets.broadcaster.pallet import PUBLISHER_DEPOSIT
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import Engine
from relaycast_xcm import ParaId, Weight, parachain_account

FEEDS = (HonestPublisher.of(1_000, 10), HonestPublisher.of(2_000, 10), HonestPublisher.of(2_002, 10))
"""Bystanders: ten new values of each in every block."""

ATTACKER, FIRST_READER, FIRST_SPAMMER = ParaId(2_001), 3_000, 4_000
QUIET_BLOCKS = 4
"""Blocks after which everything that was sent has reached the readers."""

MILLISECOND = 1_000
"""In microseconds."""

FUNDS = 1_000_000 * UNITS
"""Initial balance of each attacking account, in planck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Terms of all courses: each of ``readers`` subscribes to ``keys`` of the attacker, who strikes for ``blocks``.

    ``budget_bytes`` is for messages and pub-sub in a reader's block, ``None`` for the specification's share.
    Raises ``ValueError`` for a number out of range.
    """

    keys: int = 64
    blocks: int = 8
    budget_bytes: int | None = None
    readers: int = 1
    seed: int = 0
    trie_engine: Engine = "auto"

    def __post_init__(self) -> None:
        keys, blocks, readers, budget = self.keys, self.blocks, self.readers, self.budget_bytes
        if not 1 <= keys <= PUBLISHES_A_BLOCK or blocks < 2 or readers < 1 or (budget is not None and budget < 1):
            raise ValueError(
                f"keys must be 1 to {PUBLISHES_A_BLOCK}, blocks at least 2, readers and a budget at least 1, "
                f"got {keys}, {blocks}, {readers} and {budget}"
            )


@dataclass(slots=True)
class Sent:
    """Publications of the attackers in a phase, and the fees paid for what was executed in it."""

    publications: int = 0
    messages: int = 0
    message_bytes: int = 0
    fees_planck: int = 0


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a network: ``records`` of the readers' blocks under attack, and the attack's resources."""

    records: tuple[BlockRecord, ...]
    once: Sent
    struck: Sent
    deposit_planck: int
    disabled: tuple[int, ...]
    relay_ref_time: int
    """Picoseconds of the relay blocks that execute what is sent in the blocks under attack, summed up."""

    violations: tuple[str, ...]

    def of(self, reader: int) -> list[BlockRecord]:
        """Return the blocks of one reader."""
        return [record for record in self.records if record.para_id == reader]


class PriceGround:
    """A network under ``griefer``, or under none; with ``pays`` the attacker's messages buy their execution."""

    def __init__(self, terms: Terms, griefer: Griefer | None = None, *, pays: bool = False) -> None:
        self._terms, self._griefer, self._fees = terms, griefer, FEES if pays else 0
        self.network = ChainSimulator(seed=terms.seed, window=2, trie_engine=terms.trie_engine)
        self.ledger = Ledger(self.network)
        self.ledger.compresses = True
        keys = tuple(SubscribedKey.from_data(f"target/{index}".encode()) for index in range(terms.keys))
        self._read = Attacker(ATTACKER, terms.seed, keys, SubscriberConfig().max_trie_depth)
        self.attackers = (self._read,) if griefer is None else _attackers(griefer, self._read)
        self._phase = Sent()
        self._set_up()
        self.network.listeners.append(self._on_fact)

    def course(self, prepared_in: int) -> Course:
        """Settle, prepare for ``prepared_in`` blocks, strike, and let readers see the last strike."""
        self._settle()
        records, once = self._prepare(prepared_in)
        disabled = {int(para_id) for record in records for para_id in record.disabled}
        first_seen = self.network.tick + 3
        records, struck, ref_time = self._strike()
        disabled |= {int(para_id) for record in records for para_id in record.disabled}
        balances = self.network.relay_chain.balances
        return Course(
            records=tuple(record for record in records if record.tick >= first_seen),
            once=once,
            struck=struck,
            deposit_planck=sum(balances.held(manager_of(it.para_id), PUBLISHER_DEPOSIT) for it in self.attackers),
            disabled=tuple(sorted(disabled)),
            relay_ref_time=ref_time,
            violations=tuple(map(str, self.ledger.invariants.violations)),
        )

    def prepared_in(self) -> int:
        """Return the number of blocks from the first preparing message until readers have seen the last."""
        if self._griefer is None:
            return 0
        count = max(len(list(self._griefer.prepare(attacker))) for attacker in self.attackers)
        return -(-count // PUBLISHES_A_BLOCK) + QUIET_BLOCKS if count else 0

    def _set_up(self) -> None:
        terms, network = self._terms, self.network
        budget = None if terms.budget_bytes is None else Remaining(limit_bytes=terms.budget_bytes)
        limited = self._griefer is None or self._griefer.limits_callbacks
        config = SubscriberConfig() if limited else SubscriberConfig(callback_limit=Weight.MAX)
        readers = self._readers
        for reader in readers:
            add_bystanders(network, FEEDS if reader == FIRST_READER else (), reader, config=config, budget=budget)
        for para_id in dict.fromkeys((ATTACKER, *(it.para_id for it in self.attackers))):
            network.add_parachain(para_id)
            network.register_publisher(para_id)
            network.call(partial(network.relay_chain.fund, para_id, FUNDS), declared=Weight.ZERO)
        for reader in readers:
            for feed in FEEDS if reader != FIRST_READER else ():
                network.subscribe(reader, feed.para_id, list(feed.keys))
            network.subscribe(reader, ATTACKER, list(self._read.keys))

    @property
    def _readers(self) -> range:
        return range(FIRST_READER, FIRST_READER + self._terms.readers)

    def _settle(self) -> None:
        """Deliver a value of every key to all readers, and declare their callbacks."""
        keys = self._read.keys
        self._publish(self._read, [(key, self._read.value(index, 0), 0) for index, key in enumerate(keys)], fees=0)
        for _ in range(-(-len(keys) // PUBLISHES_A_BLOCK) + QUIET_BLOCKS):
            records = self._step()
        for _ in range(SETTLING_BLOCKS):
            if all(record.complete for record in records):
                break
            records = self._step()
        if self._griefer is not None and self._griefer.callback_ms:
            weight = weight_of(self._griefer.callback_ms * MILLISECOND)
            for reader in self._readers:
                self.network.parachains[ParaId(reader)].declare(ATTACKER, list(keys), weight)

    def _prepare(self, blocks: int) -> tuple[list[BlockRecord], Sent]:
        before, self._phase = self._funds(), Sent()
        if self._griefer is not None:
            for attacker in self.attackers:
                self._publish(attacker, self._griefer.prepare(attacker), fees=self._fees)
        records = [record for _ in range(blocks) for record in self._step()]
        self._phase.fees_planck = before - self._funds()
        return records, self._phase

    def _strike(self) -> tuple[list[BlockRecord], Sent, int]:
        """Strike in every block, until readers see the last; fees and time are those of the relay blocks after each."""
        before, self._phase = self._funds(), Sent()
        records, ref_times = list[BlockRecord](), list[int]()
        for block in range(self._terms.blocks + 1):
            if self._griefer is not None and block < self._terms.blocks:
                for attacker in self.attackers:
                    self._publish(attacker, self._griefer.strike(attacker, block), fees=self._fees)
            records += self._step()
            ref_times.append(self.network.relay_chain.system.meter.consumed.ref_time)
        self._phase.fees_planck = before - self._funds()
        struck, self._phase = self._phase, Sent()
        return records + self._step(), struck, sum(ref_times[1:])

    def _step(self) -> list[BlockRecord]:
        for feed in FEEDS:
            feed.publish(self.network)
        return self.ledger.step()

    def _publish(self, attacker: Attacker, publishing: Iterable[Publishing], *, fees: int) -> None:
        parachain = self.network.parachains[attacker.para_id]
        for key, value, ttl in publishing:
            parachain.publish(key, value, ttl=ttl, tick=self.network.tick + 1, fees=fees)

    def _funds(self) -> int:
        balances = self.network.relay_chain.balances
        return sum(balances.free(parachain_account(attacker.para_id)) for attacker in self.attackers)

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, MessagesQueued) and any(fact.para_id == attacker.para_id for attacker in self.attackers):
            self._phase.messages += len(fact.messages)
            self._phase.message_bytes += sum(len(message.data) for message in fact.messages)
            self._phase.publications += sum(len(message.publications) for message in fact.messages)


def _attackers(griefer: Griefer, read: Attacker) -> tuple[Attacker, ...]:
    if griefer.is_read:
        return (read,)
    return tuple(replace(read, para_id=ParaId(FIRST_SPAMMER + number)) for number in range(griefer.publishers))
