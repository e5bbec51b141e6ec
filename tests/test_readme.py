"""What the README and the guides to runs say besides their code blocks, which are tested with those of all pages."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from docs.code_blocks import blocks_of
from relaycast.cli.command import execute
from relaycast.scenario.files import load_preset, load_scenario
from relaycast.simulation.simulation import Simulation
from rooms import ROOMS, ROOT
from shared_vectors import shared

README = (ROOT / "README.md").read_text()
GUIDES = ROOT / "docs" / "guides"
MOST_LINES = 150


def test_the_scenario_is_one(tmp_path: Path) -> None:
    (example,) = (block for block in blocks_of(GUIDES / "scenarios.md") if block.title == "weather.toml")
    file = tmp_path / "weather.toml"
    file.write_text(example.text)
    scenario = load_scenario(str(file))
    assert scenario.publishers()[2000].size_of(1) == 200
    assert execute(["run", str(file), "--blocks", "10", "--out", str(tmp_path), "--json"]) == 0


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) < MOST_LINES


def test_what_is_linked_is_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert targets
    assert not missing


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """relaycast is not published: every example and every hint installs a clone, or a wheel made of one."""
    named = re.compile(r"(pip install|uvx|uv tool install|pipx run)( -\S+)* ['\"]?relaycast(?![-/*\w])")
    kinds = {".md", ".py", ".sh", ".toml", ".yml"}
    files = [file for place in (*ROOMS, "docs") for file in (ROOT / place).rglob("*") if file.suffix in kinds]
    wrong = [str(file) for file in [ROOT / "README.md", *files] if named.search(file.read_text())]
    assert wrong == []
    assert named.search("$ pip install relaycast\n")
    assert named.search("uvx relaycast demo")
    assert named.search("pip install 'relaycast[spark]'")


GENESIS_TABLE = re.findall(
    r"^\| (oracle|ring-roots|config-sync) \|[^|]*\| (.*) \|$", (GUIDES / "runs.md").read_text(), re.MULTILINE
)


@pytest.mark.parametrize("blocks", [20, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("preset", "figures"), GENESIS_TABLE)
def test_the_table_says_what_the_demos_measure(preset: str, figures: str, blocks: int | None) -> None:
    """A third of a demo has the medians of the whole."""
    shown = [int(figure.replace(",", "")) for figure in figures.split(" | ")]
    kusama = str(shared("data/kusama-genesis.json.gz"))
    measured = [figure for genesis in (None, kusama) for figure in medians(preset, blocks, genesis)]
    assert measured == shown


def medians(preset: str, blocks: int | None, genesis: str | None) -> list[int]:
    scenario = load_preset(preset)
    scenario = replace(
        scenario, blocks=blocks or scenario.blocks, relaychain=replace(scenario.relaychain, genesis=genesis)
    )
    first = Simulation.prepare(scenario).run().subscribers[0]
    return [first.proof_bytes.p50, first.static_bytes.p50]
