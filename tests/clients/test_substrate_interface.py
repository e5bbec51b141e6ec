"""substrate-interface 1.8.1 uses a served network, from an environment of its own (run with ``-m clients``)."""

from pathlib import Path

import pytest

from clients.conversation import Said, listen_to, python_of
from clients.random_lists import walk_list
from clients.served import Line, Served
from clients.whole_list import WholeList
from long_hauls import soak

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def python() -> Path:
    return python_of("substrate-interface")


@pytest.fixture(scope="module")
def said(python: Path, served: Served, line: Line, tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("substrate-interface")
    return listen_to([python, "-m", "clients.scripts.substrate_interface", served.url, line.url], line, folder)


class TestSubstrateInterface(WholeList):
    """The whole list, and the fee as the client adds it up."""

    def test_it_knows_the_fee_that_was_paid(self, said: Said) -> None:
        seen = said("transfer")
        assert seen["paid_fee"] == seen["predicted_fee"]


@soak(rounds=50)
def test_it_goes_through_any_forks_and_kills(python: Path, tmp_path: Path, soak_round: int) -> None:
    walk_list([python, "-m", "clients.scripts.steps_substrate_interface"], tmp_path, tmp_path / "data", seed=soak_round)
