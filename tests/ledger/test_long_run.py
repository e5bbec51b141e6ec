"""A long run needs no more memory than a short one."""

import functools
import gc
import sys
from types import FunctionType, ModuleType

import pytest

from collator.networks import EVERYTHING, OTHER_SUBSCRIBER, PUBLISHER, SUBSCRIBER, keys, network, publish, values
from ledger.watched import Watched

CACHE = type(functools.cache(len))
"""What remembers calls for the whole process, up to a number of them of its own."""


def held_bytes(root: object) -> int:
    """Return the bytes of everything that ``root`` keeps alive, code and caches of the process aside."""
    seen, todo, total = {id(root)}, [root], 0
    while todo:
        held = todo.pop()
        total += sys.getsizeof(held)
        for other in gc.get_referents(held):
            if id(other) not in seen and not isinstance(other, type | ModuleType | FunctionType | CACHE):
                seen.add(id(other))
                todo.append(other)
    return total


def long_run_sizes(at: tuple[int, ...]) -> tuple[Watched, list[int]]:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER)
    net.add_parachain(OTHER_SUBSCRIBER, budget=EVERYTHING, max_pov_size=3_000)
    for subscriber in (SUBSCRIBER, OTHER_SUBSCRIBER):
        net.subscribe(subscriber, PUBLISHER, keys(8))
    sizes = []
    for tick in range(1, max(at) + 1):
        publish(net, PUBLISHER, values(8, tick, 100), ttl=3 + tick % 5)
        for record in net.recorded_step():
            assert record.panic is None
        if tick in at:
            sizes.append(held_bytes(net))
    return net, sizes


@pytest.mark.slow
def test_two_thousand_ticks_stay_in_bounded_memory() -> None:
    """What is kept of each key is full after 256 publications; from then on nothing may grow with time."""
    net, sizes = long_run_sizes((400, 800, 2_000))
    assert net.invariants.ok
    assert sizes[0] > 1 << 18
    assert max(sizes) < 1.05 * min(sizes)


def test_what_is_kept_of_a_run_can_be_seen_to_grow() -> None:
    """The measure itself: before the windows are full it rises."""
    _, sizes = long_run_sizes((5, 40))
    assert sizes[1] > 1.2 * sizes[0]
