"""Networks for tests: a publisher and a subscriber unless told otherwise, and a run boiled down to one hash."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ledger.watched import Watched
from relaycast_ledger import Accounts, BlockRecord, Delivery
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import blake2_256
from relaycast_xcm import ParaId

PUBLISHER, OTHER_PUBLISHER, SYSTEM_PUBLISHER = ParaId(2_000), ParaId(2_001), ParaId(1_000)
SUBSCRIBER, OTHER_SUBSCRIBER = ParaId(3_000), ParaId(3_001)

EVERYTHING = Remaining(percent=100)
"""A budget of which the largest proof is the whole: its bytes can be chosen exactly."""


def key(number: int) -> SubscribedKey:
    return SubscribedKey.from_data(b"key/%d" % number)


def keys(count: int, *, start: int = 0) -> list[bytes]:
    return [key(number) for number in range(start, start + count)]


def value(number: int, size: int = 16) -> bytes:
    return (blake2_256(b"value/%d" % number) * (size // 32 + 1))[:size]


def values(count: int, version: int = 0, size: int = 16) -> dict[bytes, bytes]:
    """Return a value of its own for each of ``count`` keys: equal values would share one node where they are large."""
    return {key(number): value(1_000 * version + number, size) for number in range(count)}


def deep_keys(count: int) -> list[bytes]:
    """Return keys that part from 32 bytes of zero at one nibble after another: its path passes as many branches."""
    return [int.to_bytes(0xF << 4 * (63 - depth), 32, "big") for depth in range(count)]


def network(*, publishers: Iterable[int] = (PUBLISHER,), subscribers: Iterable[int] = (SUBSCRIBER,)) -> Watched:
    """Return a network whose publishers are registered and whose subscribers want nothing yet."""
    net = Watched(seed=7)
    for para_id in publishers:
        net.add_parachain(para_id)
        net.register_publisher(para_id)
    for para_id in subscribers:
        net.add_parachain(para_id)
    return net


def accounted(
    wanted: Mapping[ParaId, Sequence[bytes]], *, accounts: Accounts = Accounts.BY_PUBLISHER, **subscriber: Any
) -> Watched:
    """Return a network that keeps accounts; its subscriber wants these keys."""
    net = network(publishers=wanted, subscribers=())
    net.ledger.accounts = accounts
    net.add_parachain(SUBSCRIBER, **subscriber)
    for publisher, names in wanted.items():
        net.subscribe(SUBSCRIBER, publisher, list(names))
    return net


def publish(net: Watched, publisher: int, values: Mapping[bytes, bytes], *, ttl: int = 0) -> None:
    for name, data in values.items():
        net.parachains[ParaId(publisher)].publish(name, data, ttl=ttl)


def run(net: Watched, ticks: int) -> list[BlockRecord]:
    return [record for _ in range(ticks) for record in net.recorded_step()]


def deliveries(records: Iterable[BlockRecord], subscriber: int | None = None) -> list[Delivery]:
    return [
        delivery
        for record in records
        if subscriber is None or record.para_id == subscriber
        for delivery in record.deliveries
    ]


def told(records: Iterable[BlockRecord], subscriber: int | None = None) -> list[tuple[bytes, bytes]]:
    """Return keys and values in the order in which they were delivered."""
    return [(delivery.key, delivery.entry.value) for delivery in deliveries(records, subscriber)]


def kept(net: Watched, subscriber: int, publisher: int = PUBLISHER) -> dict[bytes, bytes]:
    """Return what a subscriber holds of a publisher."""
    values = net.parachains[ParaId(subscriber)].kept.values
    return {name: data for (source, name), (data, _) in values.items() if source == publisher}


def plainly(value: object) -> object:
    """Return a number or bytes with a name of their own without it."""
    return bytes(value) if isinstance(value, bytes) else int(value)  # type: ignore[call-overload]


def fingerprint(seed: int, ticks: int = 12) -> str:
    """Return a hash over every header, event and record of a run with much in it."""
    net = Watched(seed=seed)
    for para_id in (SYSTEM_PUBLISHER, PUBLISHER, OTHER_PUBLISHER):
        net.add_parachain(para_id)
        net.register_publisher(para_id)
    net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=4_000)
    net.add_parachain(OTHER_SUBSCRIBER, tamper=lambda inherent: inherent)
    for subscriber in (SUBSCRIBER, OTHER_SUBSCRIBER):
        for publisher in (SYSTEM_PUBLISHER, PUBLISHER, OTHER_PUBLISHER):
            net.subscribe(subscriber, publisher, keys(12))
    seen = b""
    for tick in range(ticks):
        for publisher in (SYSTEM_PUBLISHER, PUBLISHER, OTHER_PUBLISHER):
            publish(net, publisher, {name: value(tick + seed) for name in keys(12)[tick % 3 :: 2]}, ttl=3 + tick % 4)
        records = net.recorded_step()
        heads = [parachain.head for parachain in net.parachains.values()]
        seen = blake2_256(seen + repr((net.relay_chain.head.header, net.relay_chain.head.events)).encode())
        seen = blake2_256(seen + repr(heads).encode() + msgspec.msgpack.encode(records, enc_hook=plainly))
    assert net.invariants.ok, net.invariants.violations
    return seen.hex()
