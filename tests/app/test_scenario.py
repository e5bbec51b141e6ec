"""Scenario files: what they say, what is folded in, and what is refused by name and place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from command_line import Command, Refused, Written
from relaycast.scenario.files import load_preset, load_scenario, presets
from relaycast.scenario.scenario import PublishTable, Scenario, SubscriptionTable
from relaycast.scenario.workload import indices, names_of, publications, value_of

BASE = 'extends = "oracle"\n'

Loaded = Callable[..., Scenario]


@pytest.fixture
def loaded(file: Written, relaycast: Command) -> Loaded:
    def load(text: str, name: str = "scenario.toml") -> Scenario:
        return load_scenario(file(text, name))

    return load


@pytest.mark.parametrize(
    ("name", "keys", "sizes"),
    [
        ("oracle", 50, {16}),
        ("ring-roots", 24, {1620, 776}),
        ("config-sync", 8, {64}),
    ],
)
def test_a_preset_has_real_sizes(name: str, keys: int, sizes: set[int]) -> None:
    scenario = load_preset(name)
    (publish,) = scenario.publishers().values()
    assert (scenario.name, publish.keys, {publish.size_of(index) for index in range(keys)}) == (name, keys, sizes)
    assert scenario.relaychain.max_pov_bytes == 10 * 1024 * 1024


def test_the_ground_is_a_preset_too_but_no_scenario() -> None:
    assert "polkadot-2026" in presets()


def test_tables_merge_by_name_and_parachains_by_id(loaded: Loaded) -> None:
    scenario = loaded(
        BASE
        + """
        blocks = 3
        [relaychain]
        block_seconds = 2
        [[parachains]]
        id = 2000
        publish = { keys = 60 }
        [[parachains]]
        id = 3002
        subscribe = [{ publisher = 2000, keys = ["price/59"] }]
        """
    )
    assert [chain.id for chain in scenario.parachains] == [2000, 3000, 3001, 3002]
    assert scenario.publishers()[2000] == PublishTable(keys=60, value_bytes=16, prefix="price")
    assert (scenario.blocks, scenario.relaychain.block_seconds, scenario.relaychain.pov_percent) == (3, 2, 85)


def test_yaml_and_json_say_the_same_as_toml(loaded: Loaded) -> None:
    toml = loaded(BASE + "blocks = 3\n[relaychain]\npov_percent = 50")
    yaml = loaded("extends: oracle\nblocks: 3\nrelaychain:\n  pov_percent: 50\n", "scenario.yaml")
    json = loaded('{"extends": "oracle", "blocks": 3, "relaychain": {"pov_percent": 50}}', "scenario.json")
    assert toml == yaml == json


def test_a_scenario_extends_a_file_beside_it(loaded: Loaded, file: Written, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file(BASE + '[relaychain]\ngenesis = "spec.json"', "below/base.toml")
    scenario = loaded('extends = "below/base.toml"\nblocks = 9')
    assert scenario.blocks == 9
    assert scenario.relaychain.genesis == "below/spec.json"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("blcoks = 3", "scenario.toml: got the name 'blcoks', expected a known name (did you mean blocks?)"),
        ("blocks = '3'", "scenario.toml at blocks: got '3', expected a whole number"),
        ("blocks = 0", "scenario.toml at blocks: got 0, expected a whole number >= 1"),
        (
            "[relaychain]\nmax_value_bytes = 2049",
            "scenario.toml at relaychain.max_value_bytes: got 2049, expected a whole number <= 2048",
        ),
        ("blocks = true", "scenario.toml at blocks: got true, expected a whole number"),
        ("[relaychain]\npov = 3", "scenario.toml at relaychain: got the name 'pov', expected a known name ("),
        (
            "[[parachains]]\nid = 2000\npublish = { kyes = 3 }",
            "scenario.toml at parachains[0].publish: got the name 'kyes', expected a known name (did you mean keys?)",
        ),
        ("[[parachains]]\nname = 'x'", "scenario.toml at parachains[3]: got no id, expected id = ..."),
        ("[[parachains]]\nid = 4000", "scenario.toml at parachains[3]: got parachain 4000 with nothing to do, exp"),
        (
            "[[parachains]]\nid = 2000\npublish = { value_bytes = 4096 }",
            "scenario.toml at parachains[0].publish.value_bytes: got 4096, "
            "expected at most relaychain.max_value_bytes = 2048",
        ),
        (
            "[[parachains]]\nid = 2000\npublish = { keys = 5000 }",
            "scenario.toml at parachains[0].publish.keys: got 5000, expected at most relaychain.max_stored_keys = 4000",
        ),
        (
            "[[parachains]]\nid = 2000\npublish = { changed = 51 }",
            "scenario.toml at parachains[0].publish.changed: got 51, expected at most keys = 50",
        ),
        (
            "[[parachains]]\nid = 3000\nsubscribe = [{ publisher = 9 }]",
            "scenario.toml at parachains[1].subscribe[0].publisher: got 9, "
            "expected the id of a parachain that publishes (2000)",
        ),
        (
            "[[parachains]]\nid = 3000\nsubscribe = [{ publisher = 2000, keys = ['price/50'] }]",
            "scenario.toml at parachains[1].subscribe[0].keys: got 'price/50', "
            "expected a published name, price/0 to price/49",
        ),
        ("blocks = ", "scenario.toml: got text that is not TOML (Invalid value"),
    ],
)  # fmt: skip
def test_a_slip_is_named_with_its_place(refused: Refused, file: Written, text: str, line: str) -> None:
    assert refused("run", file(BASE + text, "scenario.toml")).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("extends: oracle\nblocks: 3\nblocks: 4\n", "s.yaml line 3 column 1: got the name 'blocks' twice"),
        ("extends: &name oracle\nname: *name\n", "s.yaml line 2 column 7: got a reference to an anchor"),
        ("!!python/object:os.system x\n", "s.yaml line 1 column 1: got could not determine a constructor"),
        ("extends: oracle\n1: 2\n", "s.yaml line 2 column 1: got the name 1 that is no text"),
        ("[1]", "s.yaml: got a list of 1 item, expected a scenario"),
    ],
)
def test_yaml_is_strict(refused: Refused, file: Written, text: str, line: str) -> None:
    assert refused("run", file(text, "s.yaml")).startswith(line)


def test_extending_oneself_and_nobody_is_refused(refused: Refused, file: Written) -> None:
    assert "expected a scenario that does not lead back" in refused("run", file('extends = "a.toml"', "a.toml"))
    assert "did you mean oracle?" in refused("run", file('extends = "orcale"', "a.toml"))
    assert "did you mean oracle?" in refused("demo", "oracel")


def test_the_first_publication_sends_all_keys_and_later_ones_take_turns() -> None:
    publish = PublishTable(keys=5, changed=2)
    sent = [list(indices(publish, turn, "")) for turn in range(4)]
    assert sent == [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4, 0]]


@pytest.mark.parametrize(
    ("keys", "changed", "count"), [(200, "10%", 20), (7, "50%", 4), (7, "1%", 1), (9, "100%", 9), (1_000, "0.5%", 5)]
)
def test_a_share_of_the_keys_changes_and_at_least_one(keys: int, changed: str, count: int) -> None:
    for picked in (UNSET, "in-turn", "random"):
        publish = PublishTable(keys=keys, changed=changed, picked=picked)
        drawn = [set(indices(publish, turn, "7 2000")) for turn in range(3)]
        assert [len(it) for it in drawn] == [keys, count, count]
        assert drawn[1] | drawn[2] <= drawn[0] == set(range(keys))


def test_keys_that_change_are_drawn_anew_for_each_publication_from_the_seed() -> None:
    publish = PublishTable(keys=100, changed=10, picked="random")
    drawn = [[list(indices(publish, turn, seed)) for turn in (1, 2)] for seed in ("1", "1", "2")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0][0] != drawn[0][1]


@pytest.mark.parametrize(("keys", "names"), [("2..4", ["key/2", "key/3"]), (1, ["key/0"]), (["key/4"], ["key/4"])])
def test_a_reader_takes_the_first_keys_a_range_of_them_or_some_by_name(keys: Any, names: list[str]) -> None:
    assert names_of(SubscriptionTable(publisher=1, keys=keys), PublishTable(keys=5), 0) == names


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        ("parachains.3000.subscribe.2000.keys", '"some"', "got 'some', expected a number from 1 on, a range such as"),
        ("parachains.3000.subscribe.2000.keys", '"40..51"', "got 40..51, expected at most the 50 keys"),
        ("parachains.3000.subscribe.2000.keys", '"7..7"', "got 7..7, expected a range with a key in it, such as 0..50"),
        ("parachains.3000.subscribe.2000.keys", "1.5", "got 1.5, expected a number from 1 on, a range such as"),
        (
            "parachains.2000.publish.changed",
            '"0%"',
            "got '0%', expected a number from 1 on, or a share of the keys such",
        ),
        (
            "parachains.2000.publish.changed",
            '"10"',
            "got '10', expected a number from 1 on, or a share of the keys such",
        ),
        ("parachains.2000.publish.changed", '"100.5%"', "got '100.5%', expected a number from 1 on, or a share"),
    ],
)
def test_a_form_that_there_is_not_is_refused_with_those_that_there_are(
    place: str, value: str, line: str, refused: Refused
) -> None:
    assert line in refused("run", "oracle", "--set", f"{place}={value}")


def test_publications_come_every_so_many_blocks() -> None:
    scenario = load_preset("ring-roots")
    counts = [len(list(publications(scenario, block))) for block in range(1, 23)]
    assert counts == [24, *[0] * 9, 2, *[0] * 9, 2, 0]


def test_no_two_publications_are_alike_and_the_seed_decides() -> None:
    values = {value_of(seed, 2000, index, turn, 100) for seed in (1, 2) for index in range(5) for turn in range(5)}
    assert len(values) == 50
    assert {len(value) for value in values} == {100}
    assert value_of(1, 2000, 0, 0, 16) == value_of(1, 2000, 0, 0, 100)[:16]


def test_a_scenario_describes_itself_and_not_what_it_stands_on(file: Written, tmp_path: Path) -> None:
    chain = "id = 2000\npublish = { keys = 1 }\nsubscribe = [{ publisher = 2000 }]"
    text = f"extends = 'polkadot-2026'\n[[parachains]]\n{chain}"
    assert load_scenario(str(tmp_path / file(text, "own.toml"))).description == ""
    assert "oracle" in load_preset("oracle").description


def test_a_preset_runs_by_its_name(relaycast: Command) -> None:
    assert relaycast("run", "config-sync", "--blocks", "3", "--json").json["name"] == "config-sync"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["demo", "polkadot-2026"], "the preset: got 'polkadot-2026', expected the name of a preset that can run"),
        (["demo", "ring-root"], "the preset: got 'ring-root', expected the name of a preset that can"),
        (["run", "oracel"], "run: got 'oracel', expected a scenario file, or the name of a preset (did you"),
        (["run", "oracel.toml"], "oracel.toml: got no such file or directory"),
        (["demo", "oracle", "twice"], "demo: got 'twice' too, expected no further argument (see relaycast"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_by_name(refused: Refused, arguments: list[str], line: str) -> None:
    assert refused(*arguments).startswith(line)
