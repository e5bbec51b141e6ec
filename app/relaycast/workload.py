"""What publishers of a scenario send in which block: everything follows from the seed."""

from collections.abc import Iterator
from hashlib import blake2b

from relaycast.scenario import Publish, Scenario, key_name


def publications(scenario: Scenario, block: int) -> Iterator[tuple[int, str, bytes, int]]:
    """Yield ``(para_id, name, value, ttl)`` for all that is given away in relay block ``block``, counted from 1."""
    for para_id, publish in scenario.publishers().items():
        turn, rest = divmod(block - 1, publish.every)
        if rest:
            continue
        for index in indices(publish, turn):
            value = value_of(scenario.seed, para_id, index, turn, publish.size_of(index))
            yield para_id, key_name(publish, index), value, publish.ttl


def indices(publish: Publish, turn: int) -> Iterator[int]:
    """Yield the keys that publication number ``turn`` sends: all in the first, then ``changed`` of them in turns."""
    if turn == 0 or publish.changed is None:
        yield from range(publish.keys)
        return
    first = (turn - 1) * publish.changed
    for offset in range(publish.changed):
        yield (first + offset) % publish.keys


def value_of(seed: int, para_id: int, index: int, turn: int, size: int) -> bytes:
    """Return ``size`` bytes that no other publication has."""
    label = b"".join(number.to_bytes(8, "little") for number in (seed, para_id, index, turn))
    blocks = (blake2b(label + part.to_bytes(4, "little")).digest() for part in range(-(-size // 64)))
    return b"".join(blocks)[:size]
