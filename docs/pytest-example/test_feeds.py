"""A price feed: its values arrive, they arrive in time, and they stay cheap."""

import pytest

import relaycast as rc


def test_a_new_price_arrives_within_two_blocks(net: rc.Network) -> None:
    price = net.publisher(2000).publish("price/dot", b"5.31")
    exchange = net.subscriber(3000, keys=[price])
    assert net.run(blocks=5).delivery.max_blocks <= 2
    assert exchange[price] == b"5.31"
    assert net.ledger.invariants.ok


@pytest.mark.relaycast(seed=7, policies={"cache": "structure"})
def test_fifty_feeds_stay_as_cheap_as_they_are(net: rc.Network, pov_snapshot: rc.PovSnapshot) -> None:
    feeds = net.publisher(2000).publish_many({f"price/{i}": bytes([i]) * 16 for i in range(50)})
    net.subscriber(3000, keys=feeds)
    pov_snapshot(net.run(blocks=20), tolerance="2%")
