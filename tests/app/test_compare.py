"""``relaycast compare`` and policies by name: what another design costs, and what it breaks."""

import re
from typing import Any

import pytest
from msgspec.structs import asdict

from app.weather import weather
from command_line import Command, Refused, Written
from relaycast.compare.comparison import compare_runs, measure
from relaycast.refusal import BadInput
from relaycast.scenario.message_load import MessageLoad
from relaycast.scenario.policy_choice import (
    KINDS,
    PolicyTable,
    budget_of,
    check_policies,
    described,
    names_of,
    policies_of,
    with_overrides,
)
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast_pallets.parachain_system.relay_budget import CumulusSixths, Floor, Remaining
from relaycast_pallets.subscriber.policies import Policies, StructureNodes
from relaycast_pallets.subscriber.variants.drafts import AfterFirstKey, NoCache

FEEDS = """
blocks = 12
seed = 4
[[parachains]]
id = 2000
publish = { keys = 40, value_bytes = 30, changed = 2, every = 2 }
[[parachains]]
id = 3000
name = "reader"
subscribe = [{ publisher = 2000 }]
"""
"""Two of forty keys change in every second block: the cache has something to save."""

STARVED = (
    FEEDS.replace("blocks = 12", "blocks = 24").replace("changed = 2, every = 2", "every = 10")
    + "\n[relaychain]\nmax_pov_bytes = 6_000\n"
)
"""All keys change every ten blocks, and a block has no room for all of them."""

TABLE = '\n[policies]\nroot_commit = "after-first-key"\n'


def figures(shown: Any, which: str) -> Any:
    return shown[which]["subscribers"]["3000"]


def scenario(**policies: Any) -> Scenario:
    reader = ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)])
    publisher = ParachainTable(id=2_000, publish=PublishTable(keys=12, every=3, changed=2))
    return Scenario(parachains=[publisher, reader], blocks=12, policies=PolicyTable(**policies))


def test_a_design_compared_with_itself_differs_in_nothing() -> None:
    comparison = compare_runs(scenario(), scenario()).comparison
    assert comparison.first == comparison.second
    assert comparison.same_trace
    assert comparison.first.broken == []


def test_without_a_cache_proofs_are_larger_and_the_own_state_is_cheaper(relaycast: Command, file: Written) -> None:
    ended = relaycast("compare", file(FEEDS, "feeds.toml"), "--policy", "cache=none", "--json")
    kept, none = figures(ended.json, "first"), figures(ended.json, "second")
    assert ended.code == 0
    assert ended.json["same_trace"] is True
    assert none["proof_bytes"]["total"] > kept["proof_bytes"]["total"]
    assert none["own_bytes"]["total"] < kept["own_bytes"]["total"]
    assert none["callbacks"] - none["redeliveries"] == kept["callbacks"] > 40
    assert none["redeliveries"] > 0  # without the old paths nothing can be told from what changed
    nodes = none["proof_bytes"]["total"] + none["own_bytes"]["total"]
    assert nodes < none["pov_bytes"]["total"] < nodes + 12 * 700, "beside nodes: the header, lengths, validation data"
    assert none["lost_updates"] == kept["lost_updates"] == kept["redeliveries"] == 0
    assert ended.json["second"]["broken"] == []


def test_forgetting_unchanged_roots_tells_everything_again(relaycast: Command, file: Written) -> None:
    ended = relaycast("compare", file(FEEDS, "feeds.toml"), "--policy", "root_commit=forget-unchanged", "--json")
    sound, forgetful = figures(ended.json, "first"), figures(ended.json, "second")
    assert ended.code == 0
    assert sound["redeliveries"] == 0
    assert forgetful["redeliveries"] == forgetful["callbacks"] - sound["callbacks"] > 100
    assert forgetful["latency_blocks"] == sound["latency_blocks"]
    assert ended.json["first"]["broken"] == []
    assert [it["subscribers"] for it in ended.json["second"]["broken"]] == [[3000]]


def test_storing_the_root_after_the_first_key_loses_updates(relaycast: Command, file: Written) -> None:
    ended = relaycast("compare", file(STARVED, "starved.toml"), "--policy", "root_commit=after-first-key", "--json")
    sound, lossy = figures(ended.json, "first"), figures(ended.json, "second")
    assert ended.code == 0
    assert sound["incomplete_blocks"] > 0
    assert sound["lost_updates"] == sound["undelivered"] == 0
    assert lossy["lost_updates"] > 0
    assert lossy["undelivered"] > 0
    assert lossy["callbacks"] < sound["callbacks"]
    assert any("lost" in it["invariant"] for it in ended.json["second"]["broken"])


def test_a_first_design_that_violates_an_invariant_makes_the_exit_code_three(relaycast: Command, file: Written) -> None:
    sound, lossy = file(STARVED, "sound.toml"), file(STARVED + TABLE, "lossy.toml")
    assert relaycast("compare", lossy, sound, "--json").code == 3
    assert relaycast("compare", sound, lossy, "--json").code == 0


def test_a_table_in_the_scenario_says_what_the_option_says(relaycast: Command, file: Written) -> None:
    by_table = relaycast("compare", file(STARVED, "a.toml"), file(STARVED + TABLE, "b.toml"), "--json").json
    by_option = relaycast("compare", file(STARVED, "a.toml"), "--policy", "root_commit=after-first-key", "--json").json
    assert by_table == by_option


def test_a_budget_with_a_floor_delivers_under_heavy_messages() -> None:
    busy = ParachainTable(
        id=3_000, subscribe=[SubscriptionTable(publisher=2_000)], messages=MessageLoad(horizontal=80_000)
    )
    publisher = ParachainTable(id=2_000, publish=PublishTable(keys=12, changed=2))
    base = Scenario(
        parachains=[publisher, busy], blocks=8, relaychain=RelayChainTable(max_pov_bytes=100_000, pov_percent=80)
    )
    starved = measure(base).subscribers[3_000]
    floored = measure(Scenario(**{**asdict(base), "policies": PolicyTable(budget="floor:20000")})).subscribers[3_000]
    assert starved.callbacks == 0
    assert starved.undelivered == 12
    assert floored.callbacks > 12
    assert floored.undelivered == 0


def test_a_run_follows_its_policies(relaycast: Command, file: Written) -> None:
    sound = relaycast("run", file(FEEDS, "sound.toml"), "--json").json
    table = '\n[policies]\nroot_commit = "forget-unchanged"\n'
    forgetful = relaycast("run", file(FEEDS + table, "forgetful.toml"), "--json").json
    assert forgetful["subscribers"][0]["callbacks"] > 2 * sound["subscribers"][0]["callbacks"]
    assert forgetful["run_id"] != sound["run_id"]


def test_a_parachain_that_publishes_and_subscribes_follows_its_policies() -> None:
    both = ParachainTable(id=3_000, publish=PublishTable(keys=1), subscribe=[SubscriptionTable(publisher=2_000)])
    publisher = ParachainTable(id=2_000, publish=PublishTable(keys=12, every=6))
    design = measure(
        Scenario(parachains=[publisher, both], blocks=10, policies=PolicyTable(root_commit="forget-unchanged"))
    )
    assert design.subscribers[3_000].redeliveries > 0


def test_scenarios_that_publish_other_things_are_told_apart(relaycast: Command, file: Written) -> None:
    first, second = file(FEEDS, "a.toml"), file(FEEDS.replace("keys = 40", "keys = 20"), "b.toml")
    ended = relaycast("compare", first, second)
    assert ended.code == 0
    assert "the two publish different things" in ended.out
    assert relaycast("compare", first, second, "--json").json["same_trace"] is False


def test_the_table_shows_figures_side_by_side(relaycast: Command, file: Written) -> None:
    ended = relaycast("compare", file(FEEDS, "feeds.toml"), "--policy", "cache=none")
    rows = {line[:28].strip(): line.split()[-2:] for line in ended.out.splitlines()}
    assert "second  scenario: cache=none" in ended.out
    assert "subscriber 3000 reader" in ended.out
    assert rows["own state proof total, bytes"][0].startswith("-")
    assert rows["relay proof total, bytes"][1].startswith("+")
    assert "first: every invariant held" in ended.out


def test_both_designs_start_from_the_genesis_that_is_given(relaycast: Command, file: Written) -> None:
    file(weather(), "weather.toml")
    file([[f"0x{number:04x}", "0x02"] for number in range(4)], "pairs.json")
    arguments = ("weather.toml", "--policy", "cache=none", "--genesis", "pairs.json", "--json")
    told = relaycast("compare", *arguments).json
    for side, policies in (("first", ()), ("second", ("--policy", "cache=none"))):
        run = relaycast("run", "weather.toml", "--genesis", "pairs.json", *policies, "--json").json
        (reader,) = run["subscribers"]
        assert told[side]["subscribers"]["3000"]["proof_bytes"] == reader["proof_bytes"]


def test_presets_go_by_their_names(relaycast: Command) -> None:
    ended = relaycast("compare", "oracle", "--policy", "order=numeric", "--blocks", "3", "--seed", "1", "--json")
    assert ended.code == 0
    assert ended.json["first"]["subscribers"]["3000"]["blocks"] == 3


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("oracle",), "compare: got one scenario, expected a second one, or --policy KIND=NAME"),
        (("orcle", "--policy", "cache=none"), "(did you mean oracle?)"),
        (("oracle", "--policy", "cach=none"), "(did you mean cache?)"),
        (("oracle", "--policy", "cache=nome"), "--policy cache: got 'nome'"),
        (("oracle", "--policy", "cache=nome"), "(did you mean none?)"),
        (("oracle", "--policy", "cache"), "--policy: got 'cache', expected KIND=NAME"),
        (("oracle", "--policy", "cache=none", "--policy", "cache=none"), "expected every kind of policy once"),
        (("oracle", "--policy", "budget=floor:x"), "expected floor:N with N from 0 to"),
        (("oracle", "--policy", "budget=cumulus:1"), "expected cumulus without a number"),
        (("oracle", "--policy", "budget=remaining:101"), "expected remaining:N with N from 1 to 100"),
        (("oracle", "--policy", "max_cached_node=751"), "expected a number of bytes from 1 to 750"),
        (("oracle", "--policy", "cache=none", "--blocks", "0"), "--blocks"),
        (("nowhere.toml", "oracle"), "nowhere.toml: got no such file"),
    ],
)
def test_designs_that_are_none_are_refused(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert line in refused("compare", *arguments)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ('cache = "nome"', "feeds.toml at policies.cache: got 'nome', expected the name of a policy for cache"),
        ('cach = "none"', "feeds.toml at policies: got the name 'cach', expected a known name (did you mean cache?)"),
        ("cache = 1", "feeds.toml at policies.cache: got 1, expected a text"),
        ("max_cached_node = 751", "feeds.toml at policies.max_cached_node: got 751"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(refused: Refused, file: Written, table: str, line: str) -> None:
    assert line in refused("run", file(f"{FEEDS}\n[policies]\n{table}\n", "feeds.toml"))


def test_every_name_makes_its_policy() -> None:
    for kind, names in KINDS.items():
        for name in names:
            table = with_overrides(PolicyTable(), [f"{kind}={name}"])
            check_policies(table, "here")
            assert isinstance(policies_of(table), Policies)
            budget_of(table, pov_percent=85)


def test_a_table_without_names_gives_what_the_pallets_default_to() -> None:
    made, default = policies_of(PolicyTable()), Policies()
    names = names_of(PolicyTable())
    for kind in ("order", "metering", "root_commit", "callback", "cache", "deletion"):
        assert type(getattr(made, kind)) is type(getattr(default, kind))
        assert next(iter(KINDS[kind])) == names[kind]
    assert made.cache == default.cache
    assert budget_of(PolicyTable(), pov_percent=85) == Remaining()


@pytest.mark.parametrize(
    ("budget", "made"),
    [
        ("remaining", Remaining(70)),
        ("remaining:50", Remaining(50)),
        ("cumulus", CumulusSixths()),
        ("floor:65536", Floor(65_536, Remaining(70))),
        ("floor", Floor(1 << 20, Remaining(70))),
    ],
)
def test_a_budget_carries_its_number(budget: str, made: object) -> None:
    assert budget_of(PolicyTable(budget=budget), pov_percent=70) == made


def test_overrides_change_what_they_name_and_nothing_else() -> None:
    base = PolicyTable(order="numeric")
    table = with_overrides(base, ["cache=structure", "max_cached_node=512", "root_commit=after-first-key"])
    made = policies_of(table)
    assert made.cache == StructureNodes(512)
    assert isinstance(made.root_commit, AfterFirstKey)
    assert described(table) == "order=numeric, root_commit=after-first-key, max_cached_node=512"
    assert described(PolicyTable()) == "default policies"
    assert isinstance(policies_of(with_overrides(base, ["cache=none"])).cache, NoCache)
    with pytest.raises(BadInput):
        with_overrides(base, ["order"])
    assert base == PolicyTable(order="numeric")


def test_deletions_that_the_second_design_tells_are_a_figure_of_its_own(relaycast: Command) -> None:
    ended = relaycast("compare", "mass-expiry", "--policy", "deletion=told", "--json")
    figures = [design["subscribers"]["3000"] for design in (ended.json["first"], ended.json["second"])]
    assert [it.get("deletions") for it in figures] == [None, 100]
    assert figures[0]["proof_bytes"] == figures[1]["proof_bytes"]
    shown = relaycast("compare", "mass-expiry", "--policy", "deletion=told").out
    assert re.search(r"deletions told +- +100", shown)


@pytest.mark.parametrize(
    "verb", ["compare", "attack spam", "attack depth", "attack omit", "attack extra", "xcm encode"]
)
def test_help_shows_an_example(relaycast: Command, verb: str) -> None:
    ended = relaycast(*verb.split(), "--help")
    assert ended.code == 0
    assert "Example:" in ended.out


def test_the_screen_says_why_parts_of_a_block_add_up_to_more_than_it(relaycast: Command) -> None:
    ended = relaycast("compare", "oracle", "--policy", "cache=none", "--blocks", "8", "--json")
    it = ended.json["first"]["subscribers"]["3000"]
    assert it["proof_bytes"]["total"] + it["own_bytes"]["total"] > it["pov_bytes"]["total"]
    shown = relaycast("compare", "oracle", "--policy", "cache=none", "--blocks", "8").out
    assert "own state proof: whole nodes; whole blocks carry them as compact proofs, which are smaller" in shown


def test_help_names_every_policy(relaycast: Command) -> None:
    shown = " ".join(relaycast("compare", "--help").out.split())
    for kind, names in KINDS.items():
        listed = re.search(rf"{kind} \((.*?)\)", shown)
        assert listed is not None, kind
        assert [re.sub(r"\[.*", "", name) for name in listed[1].split(", ")] == list(names)


def test_a_reader_of_one_scenario_alone_is_shown_alone(relaycast: Command) -> None:
    ended = relaycast("compare", "oracle", "config-sync", "--blocks", "4")
    assert "subscriber 3001 lender, in the first alone" in ended.out
    assert " - " not in ended.out.partition("3001")[2]
    assert "figures left out, zero or absent on this side: blocks that do not fit, told again, overtaken" in ended.out


def test_figures_without_a_side_that_has_any_are_named_below(relaycast: Command) -> None:
    ended = relaycast("compare", "oracle", "block-times", "--blocks", "1")
    assert not any(line.endswith("  0") or "  0  " in line for line in ended.out.splitlines())
    nothing = "told again, overtaken values, latency p50, latency p99, incomplete blocks,"
    assert f": blocks that do not fit, callbacks, {nothing}" in ended.out
    figures = relaycast("compare", "oracle", "block-times", "--blocks", "1", "--json").json["first"]["subscribers"]
    assert figures["3000"]["callbacks"] == 0, "all are in the file"
    assert figures["3000"]["latency_blocks"] == {"p50": None, "p99": None, "max": None}
