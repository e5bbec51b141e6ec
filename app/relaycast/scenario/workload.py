"""What the parachains of a scenario send and want in which block: everything follows from the seed."""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random
from struct import Struct

from relaycast.scenario.ranges import range_of
from relaycast.scenario.scenario import (
    ParachainTable,
    PublishTable,
    Scenario,
    SubscriptionTable,
    key_name,
    upgraded_subscriptions,
)
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.nibbles import to_nibbles

GRIEF_VALUE_BYTES = 32
"""Long enough to stand outside of its node, so that every node of the path has a hash."""

KEY_NIBBLES = 64
_DIGEST_BYTES = 64
_LABEL = Struct("<4Q").pack
Publication = tuple[int, str | bytes, bytes, int]
"""A parachain, a key by its name or its bytes, the value and its time to live."""


def publications(scenario: Scenario, block: int) -> Iterator[Publication]:
    """Yield every publication sent in relay block ``block``, counted from 1."""
    for para_id, publish in scenario.publishers().items():
        if block < publish.starts_at or (publish.stops_at is not None and block >= publish.stops_at):
            continue
        if publish.grief is not None and 0 <= block - publish.grief.at < publish.grief.keys:
            depth = block - publish.grief.at
            (*_, crafted) = crafted_keys(SubscribedKey.from_data(key_name(publish, 0).encode()), depth + 1)
            yield para_id, bytes(crafted), value_of(scenario.seed, para_id, depth, block, GRIEF_VALUE_BYTES), 0
        turn, rest = divmod(block - publish.starts_at, publish.every)
        if rest:
            continue
        version = turn // publish.new_value_every
        for index in indices(publish, turn, f"{scenario.seed} {para_id}"):
            value = value_of(scenario.seed, para_id, index, version, publish.size_of(index))
            yield para_id, key_name(publish, index), value, publish.ttl


def indices(publish: PublishTable, turn: int, seed: str) -> Iterator[int]:
    """Yield the keys that publication number ``turn`` sends: all in the first, then ``changed`` of them."""
    changed = publish.changed_keys
    if turn == 0 or publish.changed is None:
        yield from range(publish.keys)
    elif publish.picked == "random":
        yield from sorted(Random(f"{seed} {turn}").sample(range(publish.keys), changed))  # noqa: S311 - drawn again
    else:
        first = (turn - 1) * changed
        yield from ((first + offset) % publish.keys for offset in range(changed))


def value_of(seed: int, para_id: int, index: int, turn: int, size: int) -> bytes:
    """Return ``size`` bytes that no other publication has."""
    label = _LABEL(seed, para_id, index, turn)
    if size <= _DIGEST_BYTES:
        return blake2b(label + bytes(4)).digest()[:size]
    blocks = (blake2b(label + part.to_bytes(4, "little")).digest() for part in range(-(-size // _DIGEST_BYTES)))
    return b"".join(blocks)[:size]


def replaced_at(chain: ParachainTable) -> int | None:
    """Return the relay block of the first upgrade that replaces what ``chain`` subscribes to, ``None`` without one."""
    return min(upgraded_subscriptions(chain), default=None)


def wanted(chain: ParachainTable, block: int) -> list[tuple[SubscriptionTable, int]]:
    """Return the subscriptions that hold in relay block ``block``, each with the number of keys it has moved on by.

    Those of an upgrade are left out: the parachain itself takes them over.
    """
    return [(it, slid) for it in chain.subscribe if (slid := _slid(it, block)) is not None]


def wants_change(chain: ParachainTable, block: int) -> bool:
    """Return whether ``chain`` subscribes to other keys in relay block ``block`` than in the one before."""
    upgraded = replaced_at(chain)
    if upgraded is not None and block >= upgraded:
        return False
    return any(_slid(it, block) != _slid(it, block - 1) for it in chain.subscribe)


def slides(subscription: SubscriptionTable, blocks: int, keys: int) -> range:
    """Return the numbers of keys that a subscription moves on by in a run, until it has seen all ``keys``."""
    last = blocks if subscription.stops_at is None else min(blocks, subscription.stops_at - 1)
    moved = _slid(subscription, last)
    return range(0) if moved is None else range(min(moved, keys) + 1)


def key_names(scenario: Scenario) -> dict[tuple[int, bytes], str]:
    """Return the names that were hashed into keys, by publisher and key."""
    return {
        (para_id, bytes(SubscribedKey.from_data(name.encode()))): name
        for para_id, publish in scenario.publishers().items()
        for name in (key_name(publish, index) for index in range(publish.keys))
    }


def names_of(subscription: SubscriptionTable, publish: PublishTable, slid: int) -> list[str]:
    """Return the names that a subscription means, once it has moved on by ``slid`` keys."""
    if isinstance(subscription.keys, list):
        return subscription.keys
    return [key_name(publish, (slid + it) % publish.keys) for it in range_of(subscription.keys, publish.keys)]


def recorded_keys_of(subscription: SubscriptionTable, recorded: list[bytes], slid: int) -> list[bytes]:
    """Return the same of a publisher whose keys come from a recording."""
    if isinstance(subscription.keys, list):
        from relaycast_spark.publications import key_of  # noqa: PLC0415 - pyarrow is slow to load

        return [key for name in subscription.keys if (key := key_of(name)) is not None]
    return [recorded[(slid + it) % len(recorded)] for it in range_of(subscription.keys, len(recorded))]


def crafted_keys(target: SubscribedKey, count: int) -> list[SubscribedKey]:
    """Return keys of which each shares one nibble more with ``target`` than the one before it, from none on.

    Together with ``target`` they make a path of ``count`` branches and a leaf.
    """
    if not 0 <= count <= KEY_NIBBLES:
        raise ValueError(f"a key of 32 bytes parts from another at one of 64 nibbles, got {count}")
    return [_parting_at(target, depth) for depth in range(count)]


def _parting_at(target: SubscribedKey, depth: int) -> SubscribedKey:
    nibbles = bytearray(to_nibbles(target))
    nibbles[depth] ^= 8
    return SubscribedKey(bytes(high << 4 | low for high, low in zip(nibbles[::2], nibbles[1::2], strict=True)))


def _slid(subscription: SubscriptionTable, block: int) -> int | None:
    """Return by how many keys a subscription has moved on, ``None`` where it does not hold."""
    if block < subscription.starts_at or (subscription.stops_at is not None and block >= subscription.stops_at):
        return None
    return 0 if subscription.slides_every is None else (block - subscription.starts_at) // subscription.slides_every
