"""Those whom an attack does not aim at: what they got without it, and what they got under it.

Law: both runs have the same seed, the same bystanders and the same publications; the attack is all that differs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import Struct

from relaycast.scenario.workload import value_of
from relaycast_collator import ChainSimulator
from relaycast_ledger import BlockRecord, Delivery
from relaycast_ledger.outcome import Latency, Percentiles, latency, percentiles
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId

VALUE_BYTES = 16


class Service(Struct, frozen=True, kw_only=True):
    """What reached a reader: ``callbacks``, how long they took, and how many values were overtaken on the way."""

    callbacks: int
    conflated: int
    latency_blocks: Latency


class Bystander(Struct, frozen=True, kw_only=True):
    """One publisher as one subscriber reads it, ``alone`` and ``attacked``."""

    publisher: int
    subscriber: int
    alone: Service
    attacked: Service

    @property
    def harmed(self) -> bool:
        """Whether anything arrives less often, or later."""
        before, after = self.alone, self.attacked
        slower = after.latency_blocks.later_than(before.latency_blocks)
        return slower or after.callbacks < before.callbacks or after.conflated > before.conflated


class Carried(Struct, frozen=True, kw_only=True):
    """Proof bytes in the blocks of the bystanding subscriber, and those of its blocks that ended incomplete."""

    proof_bytes: Percentiles
    incomplete_blocks: int


@dataclass(frozen=True, slots=True)
class HonestPublisher:
    """An honest publisher: in every block it sends new values for ``per_block`` of its ``keys``, which take turns."""

    para_id: ParaId
    keys: tuple[SubscribedKey, ...]
    per_block: int

    @classmethod
    def of(cls, para_id: int, count: int, *, per_block: int | None = None) -> "HonestPublisher":
        """Return one with ``count`` keys named ``feed/0`` and so on; all are new in every block by default."""
        keys = tuple(SubscribedKey.from_data(f"feed/{index}".encode()) for index in range(count))
        return cls(ParaId(para_id), keys, count if per_block is None else per_block)

    def publish(self, network: ChainSimulator) -> None:
        """Send this block's values."""
        parachain, tick = network.parachains[self.para_id], network.tick + 1
        first = (tick - 1) * self.per_block
        for index in (at % len(self.keys) for at in range(first, first + self.per_block)):
            value = value_of(network.seed, int(self.para_id), index, tick, VALUE_BYTES)
            parachain.publish(self.keys[index], value, tick=tick)


def add_bystanders(
    network: ChainSimulator,
    feeds: Sequence[HonestPublisher],
    subscriber: int,
    *,
    config: SubscriberConfig | None = None,
    budget: BudgetPolicy | None = None,
) -> None:
    """Add honest publishers, and a parachain that subscribes to all that they publish."""
    for feed in feeds:
        network.add_parachain(feed.para_id)
        if not feed.para_id.is_system:
            network.register_publisher(feed.para_id)
    network.add_parachain(subscriber, config=config, budget=budget)
    for feed in feeds:
        network.subscribe(subscriber, feed.para_id, list(feed.keys))


def bystander(
    publisher: int, subscriber: int, alone: Sequence[BlockRecord], attacked: Sequence[BlockRecord]
) -> Bystander:
    """Return what a publisher's readers got in two runs."""
    services = [_service(_deliveries(records, publisher)) for records in (alone, attacked)]
    return Bystander(publisher=publisher, subscriber=subscriber, alone=services[0], attacked=services[1])


def carried(records: Iterable[BlockRecord]) -> Carried:
    """Return what a subscriber's blocks brought along."""
    blocks = list(records)
    incomplete = sum(not record.complete for record in blocks)
    return Carried(proof_bytes=percentiles([record.proof_bytes for record in blocks]), incomplete_blocks=incomplete)


def _deliveries(records: Iterable[BlockRecord], publisher: int) -> Iterator[Delivery]:
    return (delivery for record in records for delivery in record.deliveries if delivery.publisher == publisher)


def _service(deliveries: Iterable[Delivery]) -> Service:
    found = list(deliveries)
    return Service(
        callbacks=len(found),
        conflated=sum(delivery.conflated for delivery in found),
        latency_blocks=latency(delivery.latency_blocks for delivery in found),
    )
