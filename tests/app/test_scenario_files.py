"""``relaycast new`` and ``relaycast schema``: files to begin with, and a schema that knows what the command knows."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from command_line import Command, Refused, Written
from relaycast.scenario.files import load_preset, load_scenario, preset_text, runnable_presets
from relaycast.scenario.policy_choice import KINDS
from relaycast.scenario.scenario import Scenario
from relaycast.scenario.schema import scenario_schema, structs_below, told_of

SCHEMA = scenario_schema()
READER = 'extends = "oracle"\n[[parachains]]\nid = 3000\n'
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def slips(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))]


def test_the_schema_is_one_and_is_what_the_verb_prints(relaycast: Command) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert relaycast("schema").json == json.loads(json.dumps(SCHEMA))


@pytest.mark.parametrize("name", runnable_presets())
def test_every_preset_is_valid(name: str) -> None:
    assert slips(preset_text(name)) == []


def test_the_ground_is_valid_with_something_on_it() -> None:
    assert slips(preset_text("polkadot-2026"))
    assert slips('extends = "oracle"\n' + preset_text("polkadot-2026")) == []


@pytest.mark.parametrize(
    "text",
    [
        'extends = "oracle"\n[[parachains]]\nid = 2000\npublish = { changed = 2 }',
        'extends = "mine.toml"\n[relaychain]\nblock_seconds = 2',
        'extends = "oracle"\n[policies]\nbudget = "floor:65536"\norder = "numeric"',
        READER + 'messages = { downward = { shape = "poisson", mean_messages = 3 } }',
        'extends = "oracle"\n[[parachains]]\nid = 3000\nsubscribe = [{ publisher = 2000, keys = ["price/1"] }]',
        '"$schema" = "./scenario.schema.json"\nextends = "oracle"',
    ],
)
def test_what_loads_is_valid(text: str, file: Written, relaycast: Command) -> None:
    assert slips(text) == []
    if "mine.toml" in text:
        file('extends = "oracle"', "mine.toml")
    assert relaycast("run", file(text, "a.toml"), "--blocks", "1", "--json").code == 0


@pytest.mark.parametrize(
    "text",
    [
        "blocks = 3",
        'extends = "orcale"',
        'extends = "oracle"\nblcoks = 3',
        'extends = "oracle"\nblocks = 0',
        'extends = "oracle"\n[relaychain]\npov = 3',
        'extends = "oracle"\n[policies]\ncache = "nome"',
        'extends = "oracle"\n[policies]\nbudget = "cumulus:3"',
        'extends = "oracle"\n[[parachains]]\nname = "x"',
        'extends = "oracle"\n[[parachains]]\nid = 2000\npublish = { kyes = 3 }',
        'extends = "oracle"\n[[parachains]]\nid = 3000\nsubscribe = [{ keys = 3 }]',
        READER + 'messages = { downward = { shape = "poison", mean_messages = 3 } }',
        READER + 'messages = { downward = { shape = "poisson", men_messages = 3 } }',
        READER + 'messages = { downward = "much" }',
    ],
)
def test_what_is_refused_is_not_valid(text: str, file: Written, refused: Refused) -> None:
    assert slips(text)
    refused("run", file(text, "a.toml"))


def test_every_name_is_explained_or_explains_itself() -> None:
    plain = {"name", "max_publishers", "max_stored_keys", "max_total_bytes", "pov_percent", *KINDS, "id", "publisher"}
    sizes = {"low_bytes", "high_bytes", "median_bytes", "mean_messages", "bytes", "every", "length", "otherwise_bytes"}
    for struct in structs_below(Scenario):
        unsaid = {field.encode_name for field in msgspec.structs.fields(struct)} - told_of(struct).keys()
        assert unsaid <= plain | sizes | ({"keys"} if struct.__name__ == "Grief" else set()), struct
    assert "``" not in json.dumps(SCHEMA)


def test_defaults_and_ranges_are_in_the_schema() -> None:
    blocks = SCHEMA["$defs"]["Scenario"]["properties"]["blocks"]
    assert (blocks["default"], blocks["minimum"], blocks["maximum"]) == (60, 1, 1_000_000)
    assert "null" not in json.dumps(SCHEMA)


def test_a_new_scenario_runs_as_it_is(relaycast: Command, tmp_path: Path) -> None:
    ended = relaycast("new", "weather", "--from", "late-subscriber")
    assert (ended.code, ended.out) == (0, "weather.toml is written. Run it: relaycast run weather.toml\n")
    written, preset = load_scenario(str(tmp_path / "weather.toml")), load_preset("late-subscriber")
    assert written == msgspec.structs.replace(preset, name="weather")
    assert relaycast("run", "weather.toml", "--blocks", "2", "--json").json["name"] == "weather"


@pytest.mark.parametrize("name", runnable_presets())
def test_what_is_written_is_valid_and_says_everything_that_can_be_said(
    name: str, relaycast: Command, tmp_path: Path
) -> None:
    assert relaycast("new", "mine", "--from", name, "--quiet").out == ""
    text = (tmp_path / "mine.toml").read_text()
    assert slips(text) == []
    assert all(line.isascii() and len(line) <= 140 for line in text.splitlines())
    for struct in structs_below(Scenario):
        for field in msgspec.structs.fields(struct):
            assert f"#   {field.encode_name}" in text


def held(text: str, place: str) -> dict[str, Any]:
    """Return the values that the reference names in the section which begins with ``place``."""
    section = text.split(f"\n# {place}: ", 1)[1].split("\n#\n", 1)[0]
    lines = [line.removeprefix("#   ") for line in section.splitlines() if re.match(r"#   \w+ = ", line)]
    return tomllib.loads("\n".join(lines))


@pytest.mark.parametrize("origin", [*runnable_presets(), "mine.toml"])
def test_the_reference_names_what_holds_without_a_line(
    origin: str, file: Written, relaycast: Command, tmp_path: Path
) -> None:
    file('extends = "lower.yaml"\nseed = 9\n[policies]\ncache = "none"', "mine.toml")
    file("extends: late-subscriber\nname: lower\nblocks: 13\nrelaychain: {pov_percent: 50}", "lower.yaml")
    relaycast("new", "weather", "--from", origin)
    text = (tmp_path / "weather.toml").read_text()
    silent = re.sub(r"(?m)^(name|blocks|description) = (\"{3}(.|\n)*?\"{3}|.*)", "", text)
    (tmp_path / "weather.toml").write_text(silent)
    loaded, lifted = msgspec.to_builtins(load_scenario("weather.toml")), tomllib.loads(silent).get("relaychain", {})
    for place, table in (
        ("at the top", loaded),
        ("[relaychain]", loaded["relaychain"]),
        ("[policies]", loaded["policies"]),
    ):
        named = held(text, place)
        assert {**named, **lifted} == {**{name: table[name] for name in named}, **lifted}
        silent_about = {name for name, value in table.items() if value is None or isinstance(value, list | dict)}
        assert table.keys() - named.keys() - {"extends"} == silent_about - {"extends"}
    if origin == "mine.toml":
        assert (loaded["seed"], loaded["blocks"], loaded["name"]) == (9, 13, "lower")
        assert (loaded["relaychain"]["pov_percent"], loaded["policies"]["cache"]) == (50, "none")
        assert "pov_percent = 50  # from mine.toml" in text


def test_the_reference_names_what_parachains_keep(file: Written, relaycast: Command, tmp_path: Path) -> None:
    file(READER + "max_trie_depth = 64\nmessages = { downward = 70_000 }", "mine.toml")
    relaycast("new", "weather", "--from", "mine.toml")
    text = " ".join((tmp_path / "weather.toml").read_text().replace("\n#", "").split())
    assert "parachains # 2000, 3000, 3001 from mine.toml" in text
    depth = "max_trie_depth = 16 Nodes on the way to a key beyond which a publisher is disabled."
    assert f"{depth} Kept from mine.toml: 64 (parachain 3000)." in text
    assert 'Kept from mine.toml: "price" (parachain 2000).' in text
    assert "Bytes from the relay chain. Kept from mine.toml: 70_000 (parachain 3000)." in text
    subscriptions = '[{ publisher = 2000, keys = "all" }] (parachain 3000), [{ publisher = 2000, keys = 10 }]'
    assert f"Kept from mine.toml: {subscriptions} (parachain 3001)." in text
    assert "Kept from mine.toml: 2000" not in text


def test_a_file_is_extended_and_runs_as_it_did(file: Written, relaycast: Command, refused: Refused) -> None:
    file(READER + "max_trie_depth = 64", "mi ne.toml")
    assert relaycast("new", "weather", "--from", "mi ne.toml").code == 0
    assert load_scenario("weather.toml") == msgspec.structs.replace(
        load_scenario("mi ne.toml"), name="weather", description="", extends="mi ne.toml"
    )
    file("extends = 'oracle'\nblocks = 'ten'", "wrong.toml")
    assert refused("new", "storm", "--from", "wrong.toml").startswith("wrong.toml at blocks: got 'ten', expected")
    assert not Path("storm.toml").exists()


def test_blocks_of_recorded_publications_hold_without_a_line(file: Written, relaycast: Command) -> None:
    key = "0x" + 32 * "01"
    file(f"block,para_id,key,value,ttl\n1,2000,{key},0x02,0\n7,2000,{key},0x03,0\n", "trace.csv")
    chains = "[[parachains]]\nid = 2000\n[[parachains]]\nid = 3000\nsubscribe = [{ publisher = 2000 }]\n"
    file('publications = "trace.csv"\n' + chains, "mine.toml")
    relaycast("new", "weather", "--from", "mine.toml")
    assert held(Path("weather.toml").read_text(), "at the top")["blocks"] == load_scenario("weather.toml").blocks == 9


def test_a_file_that_is_there_is_left_alone(refused: Refused, file: Written) -> None:
    file("mine", "mine.toml")
    for name in ("mine", "mine.toml"):
        assert refused("new", name) == "mine.toml: got a file that exists, expected a new name"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("../mine",), "new: got '../mine', expected a name of letters"),
        (("",), "new: got '', expected a name of letters"),
        (("a" * 101,), "new: got 'aaaa"),
        (
            ("mine", "--from", "heatbeats"),
            "--from: got 'heatbeats', expected the name of a preset",
        ),
        (
            ("mine", "--from", "polkadot-2026"),
            "--from: got 'polkadot-2026', expected the name of a preset",
        ),
        (("missing/mine",), "new: got 'missing/mine', expected a name of letters"),
    ],
)
def test_a_name_that_is_none_is_refused(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert refused("new", *arguments).startswith(line)
