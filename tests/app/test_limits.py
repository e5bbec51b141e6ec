"""Limits in scenarios and networks: refusals that name their place, and runs within the limits."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

import relaycast as rc
from command_line import Command, Refused, Written
from relaycast.scenario.files import load_scenario
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_pallets import Policies, SubscriberConfig
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.subscriber.variants.cache_limit import CacheLimit
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_xcm import ParaId

TWO_PUBLISHERS = """
extends = "polkadot-2026"
blocks = 12
[[parachains]]
id = 2000
publish = { keys = 20, changed = 5 }
[[parachains]]
id = 2001
publish = { keys = 10 }
"""

READER = (
    TWO_PUBLISHERS + "[[parachains]]\nid = 3000\nsubscribe = [{ publisher = 2000 }, { publisher = 2001, keys = 4 }]\n"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("max_publishers = 1", ".subscribe: got 2 publishers at a time, expected at most max_publishers = 1"),
        (
            "max_subscribed_keys = 19",
            ".subscribe[0].keys: got 20 keys, expected at most max_subscribed_keys = 19",
        ),
        ("max_total_keys = 23", ".subscribe: got 24 keys at a time, expected at most max_total_keys = 23"),
        ("max_total_keys = 0", ".max_total_keys: got 0, expected a whole number >= 1"),
        ("max_cached_bytes = -1", ".max_cached_bytes: got -1, expected a whole number >= 0"),
        (
            "max_cached_bytes = 9\n[policies]\nmetering = 'carried'",
            ".max_cached_bytes: got 9 with metering = 'carried', expected another metering: here a node goes with its",
        ),
    ],
)
def test_what_is_beyond_a_limit_is_named_with_its_place(refused: Refused, file: Written, text: str, line: str) -> None:
    told = refused("run", file(READER + text, "scenario.toml"))
    assert told.startswith(f"scenario.toml at parachains[2]{line}")


@pytest.mark.parametrize(
    "text",
    [
        "max_publishers = 2\nmax_subscribed_keys = 20\nmax_total_keys = 24",
        "max_cached_bytes = 0",
        "max_cached_bytes = 4_294_967_295",
    ],
)
def test_equality_with_a_limit_is_allowed(relaycast: Command, file: Written, text: str) -> None:
    assert relaycast("run", file(READER + text, "scenario.toml"), "--quiet").code == 0


def test_publishers_that_take_turns_are_within_a_limit_of_one(relaycast: Command, file: Written) -> None:
    turns = TWO_PUBLISHERS + (
        "[[parachains]]\nid = 3000\nmax_publishers = 1\nmax_total_keys = 20\n"
        "subscribe = [{ publisher = 2000, stops_at = 5 }, { publisher = 2001, starts_at = 5 }]\n"
    )
    ended = relaycast("run", file(turns, "scenario.toml"), "--json")
    assert ended.code == 0
    assert ended.json["subscribers"][0]["callbacks"] > 30


def test_a_command_line_sets_limits_and_refuses_policies_that_do_not_go_with_them(
    relaycast: Command, refused: Refused, file: Written
) -> None:
    name = file(READER, "scenario.toml")
    set_it = ("--set", "parachains.3000.max_cached_bytes=300", "--set", "relaychain.max_publishes_per_block=4")
    ended = relaycast("run", name, "--json", *set_it)
    assert ended.json["subscribers"][0]["told_again"] > 0
    assert ended.json["publishers"][0]["refused_messages"] > 0
    line = refused("run", name, *set_it, "--policy", "metering=carried")
    assert line.startswith("--policy at parachains[2].max_cached_bytes: got 300 with metering = 'carried'")
    name = file(READER + "max_cached_bytes = 300", "limited.toml")
    line = refused("compare", name, "--policy", "metering=carried")
    assert line.startswith("--policy at parachains[2].max_cached_bytes: got 300 with metering = 'carried'")


def test_a_limit_in_the_wrong_table_is_no_setting(refused: Refused, file: Written) -> None:
    line = refused("run", file(READER, "s.toml"), "--set", "relaychain.max_cached_bytes=3")
    assert line.startswith("--set at relaychain: got the name 'max_cached_bytes', expected a known name")


def test_limits_that_nothing_reaches_leave_every_figure_but_the_own_state(relaycast: Command, file: Written) -> None:
    """A limit of cached bytes keeps a count in the parachain's state; no proof, callback or latency follows from it."""
    wide = "max_publishers = 9\nmax_subscribed_keys = 99\nmax_total_keys = 99\nmax_cached_bytes = 1_000_000"
    told = [
        relaycast("run", file(READER + text, "scenario.toml"), "--json").json
        for text in ("", wide.replace("max_cached_bytes = 1_000_000", ""), wide)
    ]
    keys = ("callbacks", "proof_bytes", "told_again", "latency_blocks")
    assert told[0]["subscribers"] == told[1]["subscribers"]
    assert [[it["subscribers"][0][key] for key in keys] for it in told] == [
        [told[0]["subscribers"][0][key] for key in keys]
    ] * 3
    assert told[2]["subscribers"][0]["own_bytes"]["p50"] > told[0]["subscribers"][0]["own_bytes"]["p50"]


def test_limits_that_are_not_set_are_not_told(file: Written, relaycast: Command) -> None:
    """So the digest that names a run is that of the scenario without them."""
    scenario = load_scenario(file(READER, "scenario.toml"))
    assert b"max_cached_bytes" not in msgspec.json.encode(scenario)
    assert b"max_publishes_per_block" not in msgspec.json.encode(scenario)


def limited(file: Written) -> Scenario:
    text = READER.replace("[[parachains]]", "[relaychain]\nmax_publishes_per_block = 6\n[[parachains]]", 1)
    return load_scenario(file(text + "max_cached_bytes = 700\n", "scenario.toml"))


def test_a_run_keeps_its_limits(file: Written, relaycast: Command) -> None:
    simulation = Simulation.prepare(limited(file))
    subscriber = simulation.chains.parachains[ParaId(3000)].subscriber
    for passed in simulation.blocks():
        events = simulation.chains.relay_chain.head.events
        for publisher in (2000, 2001):
            count = sum(type(it).__name__ == "DataPublished" and it.publisher == publisher for it in events)  # type: ignore[attr-defined]
            assert count <= 6, passed.block
        kept = sum(len(node) for _, _, node in subscriber.storage.cached_trie_nodes.items())
        assert kept <= 700, passed.block
    assert simulation.outcome().invariants.ok


def test_a_checkpoint_in_mid_run_leads_to_the_same_end(file: Written, relaycast: Command) -> None:
    whole, first = Simulation.prepare(limited(file)), Simulation.prepare(limited(file))
    for _ in whole.blocks():
        pass
    for _ in first.blocks(last=5):
        pass
    second = Simulation.prepare(limited(file))
    second.chains.load(first.chains.dump())
    second.load(first.dump())
    for _ in second.blocks():
        pass
    for para_id in (ParaId(3000), ParaId(2000)):
        assert second.chains.parachains[para_id].head == whole.chains.parachains[para_id].head
    assert second.chains.relay_chain.head.hash == whole.chains.relay_chain.head.hash


# -- networks


@pytest.fixture
def net() -> rc.Network:
    return rc.Network(seed=5)


def feeds(net: rc.Network, count: int, publisher: int = 2000) -> list[rc.Feed]:
    return [net.publisher(publisher).publish(f"key/{index}", b"%d" % index) for index in range(count)]


@pytest.mark.parametrize(
    ("limits", "slip", "line"),
    [
        ({"max_publishers": 1}, ValueError, "a parachain reads at most 1 publishers"),
        ({"max_subscribed_keys": 2}, ValueError, "at most max_subscribed_keys = 2, got 3 of publisher 2000"),
        ({"max_total_keys": 4}, ValueError, "at most max_total_keys = 4, got 5 in all"),
        ({"max_total_keys": 0}, ValueError, "max_total_keys is from 1 to 4294967295, got 0"),
        ({"max_cached_bytes": -1}, ValueError, "max_cached_bytes is from 0 to 4294967295, got -1"),
        ({"max_cached_bytes": "9"}, TypeError, "max_cached_bytes is a whole number, got '9'"),
        (
            {"max_cached_bytes": 9, "policies": Policies(metering=MeterOwnState())},
            ValueError,
            "max_cached_bytes = 9 needs a metering that does not charge the own state",
        ),
    ],
)
def test_a_reader_beyond_its_limits_is_refused_before_it_is_there(
    net: rc.Network, limits: dict[str, Any], slip: type[Exception], line: str
) -> None:
    wanted = [*feeds(net, 3), *feeds(net, 2, 2001)]
    with pytest.raises(slip, match=line):
        net.subscriber(3000, keys=wanted, **limits)
    assert ParaId(3000) not in net.chains.parachains


def test_a_reader_that_is_there_wants_more_up_to_its_limits_alone(net: rc.Network) -> None:
    wanted = feeds(net, 6)
    net.subscriber(3000, keys=wanted[:3], max_subscribed_keys=4)
    net.subscriber(3000, keys=wanted[:4])
    with pytest.raises(ValueError, match="at most max_subscribed_keys = 4, got 6 of publisher 2000"):
        net.subscriber(3000, keys=wanted)
    with pytest.raises(ValueError, match="limits are for new ones"):
        net.subscriber(3000, keys=wanted[:1], max_subscribed_keys=9)
    assert len(net.chains.parachains[ParaId(3000)].kept.wanted[ParaId(2000)]) == 4
    with pytest.raises(ValueError, match="keys that parachain 3000 subscribes to: at most max_subscribed_keys = 4"):
        net.chains.subscribe(3000, 2000, [wanted[5].key])


def test_more_publishers_than_the_default_may_be_read_where_the_limit_says_so(net: rc.Network) -> None:
    many = [rc.Feed(2000 + number, bytes(32)) for number in range(101)]
    with pytest.raises(ValueError, match="at most 100 publishers"):
        net.subscriber(3000, keys=many)
    assert repr(net.subscriber(3000, keys=many, max_publishers=101)) == "<Reader 3000, 0 of 101 values there>"


def test_a_small_cache_loses_nothing_and_tells_some_values_again(net: rc.Network) -> None:
    some = feeds(net, 30)
    reader = net.subscriber(3000, keys=some, max_cached_bytes=600)
    net.run(blocks=4)
    net.publisher(2000).publish("key/7", b"new")
    run = net.run(blocks=4)
    assert reader[some[7]] == b"new"
    assert all(reader[feed] == b"%d" % index for index, feed in enumerate(some) if index != 7)
    assert run.subscribers[3000].told_again > 0
    assert run.invariants.ok


def test_a_cache_beyond_its_limit_breaks_an_invariant_of_the_run(
    net: rc.Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CacheLimit, "room", lambda self, _: 1 << 30)
    net.subscriber(3000, keys=feeds(net, 30), max_cached_bytes=600)
    violations = net.run(blocks=4).invariants.violations
    assert {violation.invariant for violation in violations} == {"cached bytes are within their limit"}
    assert "more than the 600 bytes of a share" in str(violations[0])


def test_a_burst_beyond_the_limit_is_refused_message_by_message() -> None:
    net = rc.Network(seed=5, broadcaster=replace(POLKADOT, max_publishes_per_block=10))
    reader = net.subscriber(3000, keys=feeds(net, 40))
    run = net.run(blocks=5)
    assert len(reader) == 10
    assert run.invariants.ok


def test_the_default_configuration_limits_nothing_that_the_draft_does_not() -> None:
    config = SubscriberConfig()
    assert (config.max_subscribed_keys, config.max_total_keys, config.max_cached_bytes) == (None, None, None)
    assert POLKADOT.max_publishes_per_block is None
