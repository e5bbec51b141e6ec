"""polkadot-api 2.2.2 uses a served network, with types that its own generator made (run with ``-m clients``)."""

from pathlib import Path

import pytest

from clients.conversation import Said, listen_to
from clients.papi_project import PapiList
from clients.random_lists import walk_list
from clients.served import Line, Served
from long_hauls import soak

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def said(compiled: Path, served: Served, line: Line) -> Said:
    return listen_to(["node", "papi.mjs", served.url, line.url, "legacy"], line, compiled)


class TestPapi(PapiList):
    """All methods are served; what has no typed call is asked with the legacy ones."""


@soak(rounds=50)
def test_it_goes_through_any_forks_and_kills(compiled: Path, tmp_path: Path, soak_round: int) -> None:
    walk_list(["node", "steps_papi.mjs"], compiled, tmp_path / "data", seed=soak_round)
