"""async-substrate-interface 2.2.1 uses a served network, from an environment of its own (run with ``-m clients``)."""

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
    return python_of("async-substrate-interface")


@pytest.fixture(scope="module")
def said(python: Path, served: Served, line: Line, tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("async-substrate-interface")
    return listen_to([python, "-m", "clients.scripts.async_substrate_interface", served.url, line.url], line, folder)


class TestAsyncSubstrateInterface(WholeList):
    """The whole list, and metadata V15."""

    def test_it_reads_version_15_of_the_metadata(self, said: Said) -> None:
        seen = said("metadata")
        assert seen["version"] == 15
        assert {"Core", "Metadata", "AccountNonceApi", "TransactionPaymentApi"} <= set(seen["apis"])

    def test_other_kinds_of_signatures_are_taken(self, said: Said) -> None:
        pytest.skip("its key pairs are the caller's own: sr25519 here, as in every other test of this class")


@soak(rounds=50)
def test_it_goes_through_any_forks_and_kills(python: Path, tmp_path: Path, soak_round: int) -> None:
    walk_list(
        [python, "-m", "clients.scripts.steps_async_substrate_interface"],
        tmp_path,
        tmp_path / "data",
        seed=soak_round,
    )
