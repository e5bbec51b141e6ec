"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from relaycast.cli import execute
from relaycast.run import simulate
from relaycast.scenario_file import load_preset, load_scenario
from shared_vectors import shared

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_python_example_runs() -> None:
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})


def test_the_demo_prints_what_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (shown,) = blocks("text")
    assert execute(["demo", "--out", str(tmp_path)]) == 0
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert printed.startswith(shown.rstrip("\n"))


def test_the_scenario_is_one(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    file = tmp_path / "weather.toml"
    file.write_text(example)
    scenario = load_scenario(str(file))
    assert scenario.publishers()[2000].size_of(1) == 200
    assert execute(["run", str(file), "--blocks", "10", "--out", str(tmp_path), "--json"]) == 0


@pytest.mark.parametrize("command", re.findall(r"^\$ \./relaycast (\S+(?: [a-z-]+(?=\s))?)", README, re.MULTILINE))
def test_a_command_that_is_shown_has_a_help_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([*command.split(), "--help"]) == 0
    assert f"relaycast {command}".strip() in capsys.readouterr().out


def test_what_is_linked_is_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    missing = [target for target in targets if not (Path(__file__).parents[1] / target).exists()]
    assert targets
    assert not missing


GENESIS_TABLE = re.findall(r"^\| (oracle|ring-roots|config-sync) \|[^|]*\| (.*) \|$", README, re.MULTILINE)


@pytest.mark.parametrize(("preset", "figures"), GENESIS_TABLE)
def test_the_table_says_what_the_demos_measure(preset: str, figures: str, tmp_path: Path) -> None:
    shown = [int(figure.replace(",", "")) for figure in figures.split(" | ")]
    kusama = str(shared("data/kusama-genesis.json.gz"))
    measured = [figure for genesis in (None, kusama) for figure in medians(preset, genesis, tmp_path)]
    assert measured == shown


def medians(preset: str, genesis: str | None, out: Path) -> list[int]:
    scenario = load_preset(preset)
    scenario = replace(scenario, relaychain=replace(scenario.relaychain, genesis=genesis))
    first = simulate(scenario, out=out).outcome.subscribers[0]
    return [first.proof_bytes.p50, first.static_bytes.p50]
