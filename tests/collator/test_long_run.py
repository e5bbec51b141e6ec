"""A long run needs no more memory than a short one."""

import gc
import tracemalloc

import pytest

from collator.networks import EVERYTHING, OTHER_SUBSCRIBER, PUBLISHER, SUBSCRIBER, keys, network, publish, values
from relaycast_collator import Network


def one_tick(net: Network, tick: int) -> None:
    publish(net, PUBLISHER, values(20, tick, 100), ttl=3 + tick % 5)
    for record in net.step():
        assert record.panic is None


@pytest.mark.slow
def test_two_thousand_ticks_stay_in_bounded_memory() -> None:
    """What is kept of each key is full after 256 publications; from then on nothing may grow with time."""
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER)
    net.add_parachain(OTHER_SUBSCRIBER, budget=EVERYTHING, max_pov_size=3_000)
    for subscriber in (SUBSCRIBER, OTHER_SUBSCRIBER):
        net.subscribe(subscriber, PUBLISHER, keys(20))
    tracemalloc.start()
    sizes, nodes = [], []
    for tick in range(2_000):
        one_tick(net, tick)
        if tick in {999, 1_999}:
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            nodes.append(len(net.relay_chain.state.db))
    tracemalloc.stop()
    print("traced bytes", sizes, "nodes", nodes)
    assert net.invariants.ok
    assert sizes[1] - sizes[0] < 1 << 20
    assert nodes[1] < nodes[0] * 1.05
