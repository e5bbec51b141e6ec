"""Publishers that cost their readers as much as they can: what they cost is theirs, others get what they got before."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from collator.networks import OTHER_PUBLISHER, PUBLISHER, SUBSCRIBER, key, keys, publish, values
from ledger.watched import Watched
from relaycast_ledger import Accounts, BlockRecord
from relaycast_ledger.accounting import PublisherAccount
from relaycast_xcm import ParaId

TICKS = 24
HONEST_KEYS, HARMFUL_KEYS = 20, 40
LARGEST_VALUE = 2_048

Harm = Callable[[Watched, int], None]


def silent(net: Watched, tick: int) -> None:
    """Nothing: what the others get when nobody harms them."""


def heartbeats(net: Watched, tick: int) -> None:
    """The same values again in every block: only the block number in each entry moves, and with it every path."""
    publish(net, OTHER_PUBLISHER, values(HARMFUL_KEYS, version=999))


def churn(net: Watched, tick: int) -> None:
    """Keys that come and go: half of them are written in turn, to expire two blocks later."""
    half = HARMFUL_KEYS // 2
    start = half * (tick % 2)
    chosen: dict[bytes, bytes] = {key(number): b"here" for number in range(start, start + half)}
    publish(net, OTHER_PUBLISHER, chosen, ttl=2)


def largest_values(net: Watched, tick: int) -> None:
    """Values at the limit, all of them new in every block."""
    publish(net, OTHER_PUBLISHER, values(HARMFUL_KEYS, version=tick, size=LARGEST_VALUE))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run looked like from the subscriber."""

    honest: list[tuple[int, int, int]]
    """The honest publisher's bytes of relay nodes, bytes of cached nodes and callbacks, block by block."""

    latencies: set[int]
    conflated: int
    harmful_bytes: int
    all_complete: bool


@cache
def observed(harm: Harm) -> Seen:
    """Run the network, once for each harm."""
    net = Watched(seed=7, accounts=Accounts.BY_PUBLISHER)
    for para_id in (PUBLISHER, OTHER_PUBLISHER):
        net.add_parachain(para_id)
        net.register_publisher(para_id)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(HONEST_KEYS))
    net.subscribe(SUBSCRIBER, OTHER_PUBLISHER, keys(HARMFUL_KEYS))
    records: list[BlockRecord] = []
    for tick in range(TICKS):
        publish(net, PUBLISHER, values(HONEST_KEYS, version=tick))
        harm(net, tick)
        records += [record for record in net.recorded_step() if record.para_id == SUBSCRIBER]
    assert net.invariants.ok, net.invariants.violations
    honest = [delivery for record in records for delivery in record.deliveries if delivery.publisher == PUBLISHER]
    return Seen(
        honest=[(relay_bytes(one), one.cached.node_bytes, one.callbacks) for one in accounts(records, PUBLISHER)],
        latencies={delivery.latency_blocks for delivery in honest},
        conflated=sum(delivery.conflated for delivery in honest),
        harmful_bytes=sum(map(relay_bytes, accounts(records, OTHER_PUBLISHER))),
        all_complete=all(record.complete for record in records),
    )


def accounts(records: list[BlockRecord], publisher: ParaId) -> Iterator[PublisherAccount]:
    for record in records:
        assert record.account is not None
        yield from (one for one in record.account.publishers if one.publisher == publisher)


def relay_bytes(account: PublisherAccount) -> int:
    return sum(totals.node_bytes for totals in (account.new, account.changed, account.unseen, account.value))


@pytest.mark.upstream("publisher_rapid_changes")
@pytest.mark.parametrize("harm", [heartbeats, churn, largest_values])
def test_what_one_publisher_does_costs_no_other_a_byte_or_a_block(harm: Harm) -> None:
    alone, harmed = observed(silent), observed(harm)
    assert alone.harmful_bytes == 0
    assert harmed.harmful_bytes > 10_000, "the harm must be worth the name"
    assert harmed.honest == alone.honest
    assert harmed.latencies == alone.latencies == {2}
    assert harmed.conflated == alone.conflated == 0
    assert harmed.all_complete


def test_heartbeats_cost_a_path_for_every_key_although_no_value_moves() -> None:
    beaten = observed(heartbeats)
    once = observed(lambda net, tick: heartbeats(net, tick) if tick == 0 else None)
    assert beaten.harmful_bytes > 10 * once.harmful_bytes
