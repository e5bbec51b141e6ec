"""Runtime upgrades of a network that a program drives."""

from typing import Any

import pytest

import relaycast as rc
from relaycast.choices import policies_of
from relaycast_xcm import ParaId


def test_an_upgrade_in_python_declares_what_callbacks_weigh() -> None:
    net = rc.Network(seed=3)
    prices = net.publisher(2000).publish_many({f"price/{number}": b"7" for number in range(4)})
    reader = net.subscriber(3000, keys=prices[:1])
    net.run(blocks=3)
    net.upgrade(3000, keys=prices, callback_us=300, callback_limit_us=700)
    arrived = []
    for _ in range(3):
        net.run(blocks=1)
        arrived.append(len(reader))
    assert arrived == [3, 4, 4]
    with pytest.raises(ValueError, match="a callback weighs at most"):
        net.upgrade(3000, keys=prices, callback_us=701)
    with pytest.raises(ValueError, match="callback_us and callback_proof_bytes are for keys"):
        net.upgrade(3000, callback_us=7)


def test_a_network_upgrades_in_python() -> None:
    net = rc.Network(seed=7, policies={"order": "numeric"})
    oracle = net.publisher(2000)
    prices = [oracle.publish(f"price/{number}", b"1") for number in range(4)]
    reader = net.subscriber(3000, keys=prices[:2])
    net.run(blocks=3)
    net.upgrade(3000, keys=prices[2:], policies={"max_cached_node": 300}, max_trie_depth=5)
    net.upgrade(3000, at=6, policies={"cache": "none"}, budget="floor:4096", max_value_bytes=4_000)
    net.upgrade_relay_chain(at=6, max_stored_keys=4)
    assert net.run(blocks=1).invariants.ok
    chain = net.chains.parachains[ParaId(3000)]
    assert [reader.get(price) for price in prices] == [b"1"] * 4
    assert chain.subscriber.config.max_trie_depth == 5
    assert policies_of({"order": "numeric", "max_cached_node": 300}) == chain.subscriber.policies
    oracle.publish("price/4", b"5")
    assert net.run(blocks=6).invariants.ok
    assert chain.subscriber.policies == policies_of({"order": "numeric", "cache": "none"})
    assert chain.subscriber.config.max_value_length == 4_000
    assert net.chains.relay_chain.broadcaster.config.max_stored_keys == 4


@pytest.mark.parametrize(
    ("upgrade", "expected"),
    [
        ({"max_trie_dept": 5}, "an upgrade has no limit 'max_trie_dept' (did you mean max_trie_depth"),
        ({"max_trie_depth": "5"}, "max_trie_depth"),
        ({"max_value_bytes": 5}, "must be at least 2048"),
        ({"policies": {"cash": "none"}}, "'cash' is no kind of policy"),
        ({"policies": 5}, "policies are Policies(..)"),
        ({"budget": "flor:5"}, "flor"),
        ({"budget": 5}, "a budget shares out a block"),
        ({"keys": ["price"]}, "keys are feeds"),
        ({"at": -1}, "at relay block 0 or later, got -1"),
    ],
)
def test_an_upgrade_that_cannot_be_is_refused_at_once(upgrade: dict[str, Any], expected: str) -> None:
    net = rc.Network(seed=7)
    net.subscriber(3000, keys=[net.publisher(2000).publish("price", b"1")])
    with pytest.raises((TypeError, ValueError)) as refusal:
        net.upgrade(3000, **upgrade)
    assert expected in str(refusal.value)
    assert not net.chains.parachains[ParaId(3000)].upgrades.scheduled


def test_publishers_may_upgrade_to_limits_that_no_reader_expects() -> None:
    """There is no reader yet; a later one is refused."""
    net = rc.Network(seed=7)
    price = net.publisher(2000).publish("price", b"1")
    net.upgrade_relay_chain(at=5, max_value_bytes=4_000)
    with pytest.raises(ValueError, match="from relay block 5 on must be at least 4000"):
        net.subscriber(3000, keys=[price])
