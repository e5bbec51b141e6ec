"""@polkadot/api 16.5.6 uses a served network (run with ``-m clients``)."""

from pathlib import Path

import pytest

from clients.conversation import SCRIPTS, Said, listen_to, node_packages, npm_project
from clients.random_lists import walk_list
from clients.served import Line, Served
from clients.whole_list import WholeList
from long_hauls import soak

pytestmark = pytest.mark.clients

SOURCES = ("polkadot_js.mjs", "items.mjs", "network.mjs", "steps.mjs", "steps_polkadot_js.mjs")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("polkadot-js")
    npm_project(
        folder,
        node_packages("@polkadot/api"),
        [SCRIPTS / name for name in SOURCES],
    )
    return folder


@pytest.fixture(scope="module")
def said(project: Path, served: Served, line: Line) -> Said:
    return listen_to(["node", "polkadot_js.mjs", served.url, line.url], line, project)


class TestPolkadotJs(WholeList):
    """The whole list, and names."""

    def test_every_name_resolves(self, said: Said) -> None:
        assert said("names")["unknown"] == []

    def test_ecdsa_signatures_are_taken(self, said: Said) -> None:
        assert set(said("other signatures")["events"]) == {"ed25519", "ecdsa"}


@soak(rounds=50)
def test_it_goes_through_any_forks_and_kills(project: Path, tmp_path: Path, soak_round: int) -> None:
    walk_list(["node", "steps_polkadot_js.mjs"], project, tmp_path / "data", seed=soak_round)
