"""Runtime upgrades in scenarios: their options, their effects, and their place in the output of a run."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import fields

from command_line import Command
from relaycast.refusal import BadInput
from relaycast.report.upgrades import upgrade_sentence
from relaycast.scenario.files import load_scenario
from relaycast.scenario.policy_choice import KINDS, PolicyTable
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.scenario.upgrade_tables import (
    BROADCASTER_CONSTANTS,
    SUBSCRIBER_CONSTANTS,
    KeysTable,
    PolicyChange,
    RelayUpgradeTable,
    UpgradeTable,
)
from relaycast.simulation.batch import BatchSimulation
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.segments.checkpoint import closing_digest, freeze, thaw
from relaycast_pallets import BroadcasterConfig, SubscriberConfig
from relaycast_xcm import ParaId
from searches import examples

SCENARIO: dict[str, Any] = {
    "blocks": 12,
    "relaychain": {"max_value_bytes": 100},
    "parachains": [
        {"id": 2000, "publish": {"keys": 6, "value_bytes": 60}},
        {"id": 3000, "subscribe": [{"publisher": 2000, "keys": 3}]},
    ],
}


def written(folder: Path, *, relay: dict[str, Any] | None = None, upgrades: list[dict[str, Any]] | None = None) -> Path:
    """Write the scenario with upgrades of its reader, and other settings of its relay chain."""
    publisher, reader = SCENARIO["parachains"]
    chains = [publisher, reader | ({} if upgrades is None else {"upgrades": upgrades})]
    file = folder / "scenario.json"
    file.write_text(
        json.dumps(SCENARIO | {"relaychain": {"max_value_bytes": 100, **(relay or {})}, "parachains": chains})
    )
    return file


@pytest.mark.parametrize(
    ("relay", "upgrades", "expected"),
    [
        (
            {"upgrades": [{"at": 5, "max_value_bytes": 200}]},
            None,
            "relaychain.upgrades[0].max_value_bytes: got 200, expected at most 100, "
            "the longest value that parachain 3000 expects from relay block 5 on",
        ),
        (
            {},
            [{"at": 5, "max_value_bytes": 60}],
            "parachains[1].upgrades[0].max_value_bytes: got 60, expected at least 100, "
            "the longest value that may be published from relay block 5 on",
        ),
        (
            {"upgrades": [{"at": 5, "max_value_bytes": 60}, {"at": 8, "max_value_bytes": 100}]},
            [{"at": 6, "max_value_bytes": 60}],
            "relaychain.upgrades[1].max_value_bytes: got 100, expected at most 60",
        ),
        ({}, [{"at": 5}], "upgrades[0]: got an upgrade that changes nothing, expected one of max_trie_depth,"),
        (
            {},
            [{"at": 5, "max_trie_depth": 8}, {"at": 5, "max_trie_depth": 9}],
            "upgrades[1].at: got 5, expected a block after that of the upgrade before, 5",
        ),
        ({"upgrades": [{"at": 0, "max_publishers": 8}]}, None, "relaychain.upgrades[0].at: got 0, expected"),
        ({}, [{"at": 5, "policies": {"cache": "nune"}}], "policies.cache: got 'nune', expected the name of a policy"),
        ({}, [{"at": 5, "policies": {"cash": "none"}}], "the name 'cash'"),
        ({}, [{"at": 5, "subscribe": [{"publisher": 2001}]}], "upgrades[0].subscribe[0].publisher: got 2001"),
        ({}, [{"at": 5, "subscribe": [{"publisher": 2000, "keys": 7}]}], "subscribe[0].keys: got 7, expected at most"),
        (
            {},
            [{"at": 5, "subscribe": [{"publisher": 2000}, {"publisher": 2000}]}],
            "subscribe[1].publisher: got 2000 again, expected every publisher once",
        ),
        (
            {},
            [
                {"at": 3, "callback_limit_us": 40},
                {"at": 5, "subscribe": [{"publisher": 2000, "callback_us": 41}]},
            ],
            "subscribe[0].callback_us: got 41, expected at most what a block allows, callback_limit_us = 40",
        ),
        ({}, [{"at": 5, "max_depth": 3}], "the name 'max_depth'"),
    ],
)
def test_upgrades_that_do_not_fit_are_bad_input(
    relay: dict[str, Any], upgrades: list[dict[str, Any]] | None, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as refusal:
        load_scenario(str(written(tmp_path, relay=relay, upgrades=upgrades)))
    assert expected in str(refusal.value)


def test_values_that_a_later_limit_lets_through_may_be_published(tmp_path: Path) -> None:
    """A value above the current limit is refused by the relay chain, not when the file is read."""
    raised = {"max_value_bytes": 50, "upgrades": [{"at": 6, "max_value_bytes": 100}]}
    scenario = load_scenario(str(written(tmp_path, relay=raised, upgrades=[{"at": 6, "max_value_bytes": 100}])))
    outcome = Simulation.prepare(scenario).run()
    (publisher,) = outcome.publishers
    assert publisher.refused_messages == 4  # in relay blocks 2 to 5
    assert publisher.published == 6 * 7
    assert outcome.invariants.ok


def test_every_policy_and_every_constant_of_an_upgrade_is_known() -> None:
    assert {it.encode_name for it in fields(PolicyChange)} == {it.encode_name for it in fields(PolicyTable)}
    for table, constants, config in (
        (UpgradeTable, SUBSCRIBER_CONSTANTS, SubscriberConfig()),
        (RelayUpgradeTable, BROADCASTER_CONSTANTS, BroadcasterConfig()),
    ):
        options = {it.encode_name for it in fields(table)} - {"at", "policies", "subscribe"}
        assert options == constants.keys()
        assert all(hasattr(config, name) for name, _ in constants.values())


def test_a_run_tells_of_its_upgrades(relaycast: Command, tmp_path: Path) -> None:
    upgrades: list[dict[str, Any]] = [
        {"at": 4, "max_trie_depth": 9},
        {"at": 7, "policies": {"cache": "none"}, "subscribe": [{"publisher": 2000, "keys": "all"}]},
    ]
    relay = {"upgrades": [{"at": 6, "max_stored_keys": 40}]}
    file = written(tmp_path, relay=relay, upgrades=upgrades)
    out = tmp_path / "out"
    relaycast("run", str(file), "--out", str(out))
    (folder,) = out.iterdir()
    run = json.loads((folder / "run.json").read_text())
    assert run["upgrades"] == [
        {"at": 4, "para_id": 3000, "changes": ["max_trie_depth: 16 -> 9"]},
        {"at": 6, "para_id": None, "changes": ["max_stored_keys: 4000 -> 40"]},
        {
            "at": 7,
            "para_id": 3000,
            "changes": ["subscribe: 2000 (3 keys) -> 2000 (all keys)", "cache: structure -> none"],
        },
    ]
    assert run["scenario"]["parachains"][1]["upgrades"] == upgrades
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()[1:]]
    told = [(it["block"], it["chain"], it["data"]) for it in lines if it["event"] == "RuntimeUpgraded"]
    assert told == [(5, 3000, {"spec_version": 2}), (6, "relay", {"spec_version": 2}), (8, 3000, {"spec_version": 3})]
    report = (folder / "report.html").read_text()
    assert "3 runtime upgrades changed the code of 2 chains, on relay blocks 4, 6, 7." in report
    assert "cache: structure -&gt; none" in report
    assert report.count("<title>upgrade of 3000 on relay block 4: max_trie_depth: 16 -&gt; 9</title>") == 2


def test_one_upgrade_changes_code_on_one_block(tmp_path: Path) -> None:
    scenario = load_scenario(str(written(tmp_path, upgrades=[{"at": 4, "max_trie_depth": 9}])))
    told = upgrade_sentence(Simulation.prepare(scenario).run())
    assert told == " 1 runtime upgrade changed the code of 1 chain, on relay block 4."


def test_a_scenario_without_upgrades_says_nothing_of_them(tmp_path: Path) -> None:
    scenario = load_scenario(str(written(tmp_path)))
    assert b"upgrades" not in msgspec.json.encode(scenario)
    assert not Simulation.prepare(scenario).run().upgrades


def test_subscriptions_of_an_upgrade_replace_the_planned_ones() -> None:
    """Also keys that were to slide, or to be wanted later."""
    scenario = Scenario(
        blocks=14,
        parachains=[
            ParachainTable(id=2000, publish=PublishTable(keys=6)),
            ParachainTable(id=2001, publish=PublishTable(keys=2, prefix="other")),
            ParachainTable(
                id=3000,
                subscribe=[
                    SubscriptionTable(publisher=2000, keys=2, slides_every=1),
                    SubscriptionTable(publisher=2001, starts_at=10),
                ],
                upgrades=[UpgradeTable(at=5, subscribe=[KeysTable(publisher=2000, keys=["key/5", "key/0"])])],
            ),
        ],
    )
    simulation = Simulation.prepare(scenario)
    for passed in simulation.blocks():
        wanted = simulation.chains.parachains[ParaId(3000)].kept.wanted
        names = {simulation.network.key_names()[int(para_id), key] for para_id, keys in wanted.items() for key in keys}
        slid = passed.block - 1 if passed.block <= 4 else 3
        expected = {f"key/{slid}", f"key/{slid + 1}"} if passed.block <= 5 else {"key/5", "key/0"}
        assert names == expected, passed.block
    outcome = simulation.outcome()
    assert outcome.subscribers[0].keys == 6
    assert outcome.invariants.ok


def test_a_parachain_may_begin_to_read_with_an_upgrade() -> None:
    scenario = Scenario(
        blocks=9,
        parachains=[
            ParachainTable(id=2000, publish=PublishTable(keys=3)),
            ParachainTable(
                id=3000,
                publish=PublishTable(keys=1),
                upgrades=[
                    UpgradeTable(at=4, subscribe=[KeysTable(publisher=2000)]),
                    UpgradeTable(at=7, subscribe=[]),
                ],
            ),
        ],
    )
    outcome = Simulation.prepare(scenario).run()
    (reader,) = outcome.subscribers
    assert reader.callbacks == 3 * 3
    assert outcome.invariants.ok


def test_callbacks_weigh_what_an_upgrade_declares(tmp_path: Path) -> None:
    """Keys that were read before and new ones; without a weight, the first go on with what they had."""
    upgrades = [
        {"at": 4, "subscribe": [{"publisher": 2000, "keys": 4, "callback_us": 300}]},
        {"at": 7, "subscribe": [{"publisher": 2000, "keys": 6}], "callback_limit_us": 600},
        {"at": 10, "subscribe": [{"publisher": 2000, "keys": 6, "callback_us": 0, "callback_proof_bytes": 5}]},
    ]
    simulation = Simulation.prepare(load_scenario(str(written(tmp_path, upgrades=upgrades))))
    kept = simulation.chains.parachains[ParaId(3000)].kept
    declared = {}
    for passed in simulation.blocks():
        weights = [kept.callback_weight(ParaId(2000), key) for key in kept.wanted[ParaId(2000)]]
        declared[passed.block] = sorted((weight.ref_time // 10**6, weight.proof_size) for weight in weights)
    assert declared[4] == [(0, 0)] * 3
    assert declared[6] == [(300, 0)] * 4
    assert declared[9] == [(0, 0)] * 2 + [(300, 0)] * 4
    assert declared[12] == [(0, 5)] * 6
    outcome = simulation.outcome()
    assert outcome.invariants.ok
    assert isinstance(outcome.upgrades, list)
    assert [change for it in outcome.upgrades for change in it.changes if change.startswith("subscribe")] == [
        "subscribe: 2000 (3 keys) -> 2000 (4 keys, callbacks of 300 us)",
        "subscribe: 2000 (4 keys, callbacks of 300 us) -> 2000 (6 keys)",
        "subscribe: 2000 (6 keys) -> 2000 (6 keys, callbacks of 0 us and 5 B)",
    ]


KIND_NAMES = {kind: st.sampled_from(list(choices)) for kind, choices in KINDS.items()}
right_policies: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "order": KIND_NAMES["order"],
        "metering": st.sampled_from(["every-read", "carried"]),
        "cache": KIND_NAMES["cache"],
        "budget": st.sampled_from(["remaining", "remaining:3kB", "remaining:12kB", "floor:4096"]),
        "max_cached_node": st.sampled_from([100, 300, 512, 750]),
    },
)
subscriptions = st.lists(
    st.builds(
        KeysTable,
        publisher=st.sampled_from([2000, 2001]),
        keys=st.integers(1, 9),
        callback_us=st.sampled_from([UNSET, 0, 100_000, 200_000]),
    ),
    unique_by=lambda it: it.publisher,
)


@st.composite
def upgrade_lists(draw: st.DrawFn) -> list[UpgradeTable]:
    found = []
    for at in sorted(draw(st.sets(st.integers(1, 15), max_size=5))):
        options: dict[str, Any] = {}
        if draw(st.booleans()):
            options["policies"] = PolicyChange(**draw(right_policies))
        if draw(st.booleans()):
            options["subscribe"] = draw(subscriptions)
        if draw(st.booleans()):
            options["max_trie_depth"] = draw(st.sampled_from([2, 3, 16]))
        options["max_value_bytes"] = draw(st.sampled_from([200, 300, 4_000]))
        found.append(UpgradeTable(at=at, **options))
    return found


@settings(max_examples=examples(40), deadline=None)
@given(
    upgrades=upgrade_lists(),
    relay=st.integers(1, 15),
    seed=st.integers(0, 9),
    pace=st.integers(1, 3),
    cut=st.integers(2, 15),
)
def test_upgrades_at_random_lose_nothing_and_run_the_same_on_every_way(
    upgrades: list[UpgradeTable], relay: int, seed: int, pace: int, cut: int
) -> None:
    """In one go on either trie engine, and from a checkpoint at any block: every invariant, and the same heads."""
    table = RelayChainTable(
        pov_bytes=5_000,
        max_value_bytes=200,
        upgrades=[RelayUpgradeTable(at=relay, max_value_bytes=90, max_stored_keys=5)],
    )
    scenario = Scenario(
        seed=seed,
        blocks=16,
        relaychain=table,
        parachains=[
            ParachainTable(id=2000, publish=PublishTable(keys=12, value_bytes=[20, 90], changed=5)),
            ParachainTable(id=2001, publish=PublishTable(keys=9, value_bytes=90, every=3, ttl=4, prefix="b")),
            ParachainTable(
                id=3000,
                subscribe=[SubscriptionTable(publisher=2000, keys=8)],
                relay_blocks_per_block=pace,
                upgrades=upgrades,
            ),
        ],
    )
    at_once = BatchSimulation.prepare(scenario, trie_engine="plain")
    for block in range(1, cut):
        at_once.advance(block)
    frozen = freeze(at_once)
    again = BatchSimulation.prepare(scenario, trie_engine="array")
    thaw(frozen, again)
    for block in range(cut, scenario.blocks + 1):
        assert at_once.advance(block) == again.advance(block)
        assert closing_digest(at_once) == closing_digest(again)
    for simulation in (at_once, again):
        assert simulation.ledger.invariants.ok, simulation.ledger.invariants.violations
