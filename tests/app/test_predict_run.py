"""A run says what the closed forms give beside what it measured."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from command_line import Command, Written
from relaycast.predict.ground import MODELLED
from relaycast.predict.run import passes, stays
from relaycast.predict.scenario import predicted_readers
from relaycast.scenario.files import load_preset
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation.alternative import with_alternative
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import PublisherCost

FEW_OF_MANY = Scenario(
    parachains=[
        ParachainTable(
            id=2000, publish=PublishTable(keys=150, value_bytes=[40, 10], changed=12, every=2, prefix="few")
        ),
        ParachainTable(id=2001, publish=PublishTable(keys=80, value_bytes=200, changed=3)),
        ParachainTable(
            id=3000,
            subscribe=[SubscriptionTable(publisher=2000, keys=60), SubscriptionTable(publisher=2001, keys="all")],
        ),
    ],
    blocks=60,
)
"""Some keys of a large publisher, which is news elsewhere most of the time, and all of a smaller one."""


BRIEFLY = replace(FEW_OF_MANY, blocks=8)


def replaced(chain: ParachainTable, **changes: Any) -> ParachainTable:
    """Return ``chain`` with another rule of publication, where it has one."""
    return chain if chain.publish is None else replace(chain, publish=replace(chain.publish, **changes))


def costs(scenario: Scenario) -> list[PublisherCost]:
    simulation = Simulation.prepare(scenario)
    simulation.keep_accounts()
    return [cost for reader in simulation.run().subscribers for cost in reader.publishers]


def structure_and_values(cost: PublisherCost) -> int:
    return cost.proof_bytes - cost.by_cause["top"].node_bytes


@pytest.mark.parametrize("blocks", [20, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["oracle", "ring-roots", "config-sync"])
def test_formulas_of_the_presets_are_close_to_what_they_measure(name: str, blocks: int | None) -> None:
    preset = load_preset(name)
    for cost in costs(replace(preset, blocks=blocks or preset.blocks)):
        assert cost.formula_bytes == pytest.approx(structure_and_values(cost), rel=0.05)


@pytest.mark.parametrize("blocks", [20, pytest.param(FEW_OF_MANY.blocks, marks=pytest.mark.slow)])
@pytest.mark.parametrize("policies", [PolicyTable(), PolicyTable(cache="none", order="numeric")])
def test_formulas_know_what_is_new_elsewhere_and_what_a_policy_proves_again(policies: PolicyTable, blocks: int) -> None:
    found = costs(replace(FEW_OF_MANY, blocks=blocks, policies=policies))
    assert [passes(cost) for cost in found] == [blocks // 2 - 1, blocks - 2]
    for cost in found:
        assert cost.formula_bytes == pytest.approx(structure_and_values(cost), rel=0.05)


def test_formulas_hold_for_a_brief_run() -> None:
    assert None not in [cost.formula_bytes for cost in costs(BRIEFLY)]


@pytest.mark.parametrize(
    "scenario",
    [
        replace(BRIEFLY, policies=PolicyTable(max_cached_node=512)),
        replace(BRIEFLY, policies=PolicyTable(callback="all-keys")),
        replace(BRIEFLY, blocks=2),
        replace(BRIEFLY, parachains=[replaced(chain, ttl=5) for chain in BRIEFLY.parachains]),
        replace(BRIEFLY, parachains=[replaced(chain, deregisters_at=7) for chain in BRIEFLY.parachains]),
    ],
    ids=["the cache refuses full branches", "which keys changed is not told", "nothing was read", "expiry", "going"],
)
def test_where_no_formula_holds_none_is_given(scenario: Scenario) -> None:
    assert [cost.formula_bytes for cost in costs(scenario)] == [None, None]


def test_both_sides_are_printed_when_asked_and_always_written(
    relaycast: Command, file: Written, tmp_path: Path
) -> None:
    shown = relaycast("demo", "oracle", "--blocks", "12", "--verbose").out
    assert "3001 lender    2000         10         10     2,096    2,068  -1.3%" in shown
    assert "formula" not in relaycast("demo", "oracle", "--blocks", "12").out
    (written,) = tmp_path.glob("out/*/run.json")
    for reader in json.loads(written.read_text())["subscribers"]:
        assert [cost["formula_bytes"] > 0 for cost in reader["publishers"]] == [True]


@pytest.mark.parametrize(
    ("rule", "blocks", "holds"),
    [
        (PublishTable(keys=10, ttl=0), 100, True),
        (PublishTable(keys=10, every=5, ttl=5), 100, True),  # each is sent anew before it expires
        (PublishTable(keys=10, every=5, ttl=4), 100, False),
        (PublishTable(keys=10, changed=3, ttl=4), 100, True),  # four publications go once around
        (PublishTable(keys=10, changed=3, ttl=3), 100, False),
        (PublishTable(keys=10, every=1_000, ttl=60), 60, True),  # nothing expires before the end
    ],
)
def test_keys_stay_when_they_are_sent_anew_before_they_expire(rule: PublishTable, blocks: int, holds: bool) -> None:
    assert stays(rule, blocks) is holds


def watched(read: list[int], **published: Any) -> Scenario:
    readers = [
        ParachainTable(id=3000 + at, subscribe=[SubscriptionTable(publisher=2000, keys=keys)])
        for at, keys in enumerate(read)
    ]
    publisher = ParachainTable(id=2000, publish=PublishTable(**published))
    return Scenario(parachains=[publisher, *readers], blocks=30)


@pytest.mark.parametrize(
    "scenario",
    [
        replace(load_preset("oracle"), blocks=24),
        replace(load_preset("ring-roots"), blocks=30),
        replace(load_preset("heartbeats"), blocks=24),
        watched([60, 150, 5], keys=150, value_bytes=[40, 10], changed=12, every=2),
        watched([100, 20], keys=100, changed=16),
        watched([100, 20], keys=100, value_bytes=24, changed=5),
        watched([300, 50], keys=300, value_bytes=500, changed=150),
        watched([24, 4], keys=24, value_bytes=1_620, changed=2),
    ],
    ids=lambda it: f"{it.name} {it.parachains[0].publish.keys}",
)
def test_a_prediction_of_what_the_cache_saves_has_the_sign_that_a_run_measures(scenario: Scenario) -> None:
    simulation = Simulation.prepare(scenario)
    run = with_alternative(simulation.run(), simulation)
    assert run.alternative is not None
    predicted = {it.para_id: it.saved for it in predicted_readers(scenario, MODELLED)}
    for it in run.alternative.readers:
        measured = 1 - it.pov_bytes / it.its_pov_bytes
        assert abs(measured) > 0.005
        assert (measured > 0) == (predicted[it.para_id] > 0)
