"""``relaycast budget``, budgets in bytes, and single settings on a command line."""

import json
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import relaycast as rc
import run_digests
from app.page import parsed
from command_line import Command, Written
from relaycast.budget.search import BudgetCurve, find_budget
from relaycast.compare.comparison import compare_runs, measure
from relaycast.refusal import BadInput
from relaycast.scenario.files import load_scenario
from relaycast.scenario.policy_choice import PolicyTable, budget_of
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.scenario.settings import parsed_settings
from relaycast.simulation.sources import Sources
from relaycast_pallets.parachain_system.relay_budget import Floor, PovUsage, Remaining
from relaycast_xcm import Weight

FEEDS = """
blocks = 8
[[parachains]]
id = 2000
publish = { keys = 12, value_bytes = 20, every = 4 }
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000 }]
"""

SMALL = Scenario(
    parachains=[
        ParachainTable(id=2_000, publish=PublishTable(keys=12, value_bytes=20, every=2)),
        ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)]),
    ],
    blocks=6,
)


@cache
def found() -> tuple[BudgetCurve, list[int]]:
    """Search once, for all that looks at what came of it; return the numbers that were told, too."""
    tried: list[int] = []
    return find_budget(SMALL, tried=tried.append), tried


@pytest.mark.parametrize("name", ["genesis-spec", "genesis-pairs", "recorded", "message-loads"])
def test_runs_of_one_scenario_share_what_its_files_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = replace(load_scenario(str(run_digests.FOLDER / f"{name}.toml")), blocks=4)
    other = replace(scenario, policies=PolicyTable(cache="none"))
    alone = [measure(it) for it in (scenario, other)]
    sources = Sources.of(scenario.with_copies()).for_many_runs(scenario)
    assert [measure(it, sources=sources) for it in (scenario, other)] == alone
    read = list[Scenario]()

    def of(given: Scenario) -> Sources:
        read.append(given)
        return sources

    monkeypatch.setattr(Sources, "of", of)
    comparison = compare_runs(scenario, other).comparison
    assert comparison.same_trace
    assert len(read) == 1
    assert [comparison.first, comparison.second] == alone


def test_the_smallest_budgets_serve_and_what_is_tried_below_them_does_not() -> None:
    curve, tried = found()
    assert tried == list(range(1, curve.runs + 1))
    points = {it.budget_bytes: it for it in curve.points}
    assert list(points) == sorted(points)
    assert curve.nothing_lost is not None
    assert curve.nothing_overtaken is not None
    assert curve.nothing_lost <= curve.nothing_overtaken <= curve.allowed_bytes
    assert points[curve.nothing_lost].lost == 0
    assert points[curve.nothing_overtaken].overtaken == curve.unavoidable == 0
    below = max(budget for budget in points if budget < curve.nothing_lost)
    assert points[below].lost > 0
    assert curve.nothing_lost - below <= max(16, curve.nothing_lost // 100 + 1)


def test_every_value_arrives_is_overtaken_or_is_under_way_at_the_end() -> None:
    """With the smallest budgets most values are overtaken, although no reader was told a later one."""
    curve, _ = found()
    sent = 3 * 12
    for point in curve.points:
        assert sent - 12 <= point.callbacks + point.overtaken <= sent
    assert [it.overtaken for it in curve.points] == sorted((it.overtaken for it in curve.points), reverse=True)


def test_values_that_expire_unseen_are_overtaken() -> None:
    publish = PublishTable(keys=12, value_bytes=20, every=20, ttl=3)
    chains = [ParachainTable(id=2_000, publish=publish), *SMALL.parachains[1:]]
    curve = find_budget(Scenario(parachains=chains, blocks=8))
    fewest = curve.points[0]
    assert fewest.callbacks + fewest.overtaken == 12
    assert fewest.overtaken > 0


def test_the_curve_is_a_table_a_chart_and_json(searched_once: None, relaycast: Command, file: Written) -> None:
    ended = relaycast("budget", file(FEEDS.replace("keys = 12", "keys = 6"), "feeds.toml"))
    assert ended.code == 0
    assert "bytes in a block nothing is lost" in ended.out
    (folder,) = Path("out").glob("budget-*")
    page = parsed((folder / "report.html").read_text())
    assert page.named("svg")
    assert (folder / "budget.svg").read_text().startswith('<svg xmlns="')
    told = relaycast("budget", "feeds.toml", "--json").json
    assert told["nothing_lost"] <= told["nothing_overtaken"] <= told["allowed_bytes"]
    assert len(told["points"]) > 8
    assert len(list(Path("out").glob("budget-*"))) == 1, "the same scenario gives the same folder"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("remaining:400kB", Remaining(limit_bytes=400_000)),
        ("remaining:64KiB", Remaining(limit_bytes=65_536)),
        ("remaining:50", Remaining(50)),
        ("floor:2KiB", Floor(2_048, Remaining(85))),
    ],
)
def test_a_budget_with_a_unit_is_in_bytes(name: str, expected: object) -> None:
    assert budget_of(PolicyTable(budget=name), pov_percent=85) == expected


def test_a_budget_in_bytes_is_shared_with_messages_and_never_exceeds_the_pov() -> None:
    assert Remaining(limit_bytes=500).share_out(PovUsage(10_000, (bytes(100),))).pubsub_bytes == 400
    assert Remaining(limit_bytes=50_000).share_out(PovUsage(10_000)).pubsub_bytes == 10_000
    assert budget_of(PolicyTable(), pov_percent=85, pov_bytes=700) == Remaining(85, 700)


@pytest.mark.parametrize("name", ["remaining:0B", "remaining:5GB", "remaining:9999MiB", "cumulus:1kB"])
def test_a_budget_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        budget_of(PolicyTable(budget=name), pov_percent=85)


def test_single_settings_and_policies_change_a_run(relaycast: Command, file: Written) -> None:
    name = file(FEEDS, "feeds.toml")
    arguments = ("--set", "parachains.3000.subscribe.2000.keys=5", "--policy", "cache=none", "--json")
    told = relaycast("run", name, *arguments).json
    assert told["subscribers"][0]["keys"] == 5
    assert told["subscribers"][0]["own_bytes"]["max"] < 700


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("relaychain.pov_percnt=5", "did you mean pov_percent?"),
        ("relaychain.pov_percent=500", "got 500, expected"),
        ("nope.x=1", "got 'nope', expected a path inside the scenario"),
        ("x", "expected PATH=VALUE"),
        ("parachains.3000.subscribe.2000.keys=13", "at most the 12 keys that are published"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(relaycast: Command, file: Written, setting: str, line: str) -> None:
    ended = relaycast("run", file(FEEDS, "feeds.toml"), "--set", setting)
    assert ended.code == 2
    assert line in ended.err
    assert ended.err.count("\n") == 1
    assert not Path("out").exists()


def test_values_of_settings_are_toml_and_bare_words_are_text() -> None:
    texts = ["a.b=5", "c=true", 'd="x"', "e=word", "f=[1, 2]"]
    assert parsed_settings(texts) == {"a.b": 5, "c": True, "d": "x", "e": "word", "f": [1, 2]}


def test_presets_are_listed_with_what_they_show(relaycast: Command) -> None:
    listed = relaycast("list", "--json").json
    assert {"oracle", "ring-roots", "config-sync"} <= {it["name"] for it in listed}
    assert all(it["description"] for it in listed)
    assert "oracle" in relaycast("list").out


def test_keys_are_named_in_their_table(relaycast: Command, file: Written) -> None:
    told = relaycast("run", file(FEEDS, "feeds.toml"), "--json").json
    rows = pq.read_table(Path("out") / told["run_id"] / "keys.parquet").to_pylist()
    assert {row["name"] for row in rows} == {f"key/{index}" for index in range(12)}


def test_a_run_in_python_is_a_table_for_pandas() -> None:
    pytest.importorskip("pandas")
    net = rc.Network(seed=7)
    net.subscriber(3000, keys=[net.publisher(2000).publish("a", b"1")])
    run = net.run(blocks=5)
    frame = run.to_pandas()
    assert list(frame["block"]) == [1, 2, 3, 4, 5]
    assert frame["callbacks"].sum() == run.delivery.callbacks == 1
    assert set(frame["para_id"]) == {3000}
    assert frame["complete"].dtype == bool


@pytest.mark.parametrize("version", [0, 1])
def test_the_state_before_block_1_is_of_the_version_that_is_asked_for(
    relaycast: Command, file: Written, version: int
) -> None:
    spec = json.dumps(
        {"name": "old", "genesis": {"raw": {"top": {"0x01": f"0x{'ab' * 40}", "0x02": "0x03"}, "childrenDefault": {}}}}
    )
    arguments = ("run", file(FEEDS, "feeds.toml"), "--genesis", file(spec, "spec.json"), "--json")
    as_it_is = relaycast(*arguments).json["relaychain"]["genesis_root"]
    root = relaycast(*arguments, "--state-version", str(version)).json["relaychain"]["genesis_root"]
    assert (root == as_it_is) == (version == 0), "a chain spec is of version 0"
    shown = relaycast("import", "chain-spec", "spec.json", "--state-version", str(version), "--json").json
    assert root == shown["state_root"]


def test_no_limit_prints_as_unlimited() -> None:
    assert str(Weight(Weight.MAX.ref_time, 5)) == "(unlimited ps, 5 B)"
    assert "18,446,744,073,709,551,615" not in str(Weight.MAX)
