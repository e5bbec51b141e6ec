"""polkadot-api 2.2.2 uses a served network, with types that its own generator made (run with ``-m clients``)."""

from pathlib import Path

import pytest

from clients.conversation import Said, listen_to
from clients.papi_project import PapiList
from clients.served import Line, Served

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def said(compiled: Path, served: Served, line: Line) -> Said:
    return listen_to(["node", "papi.mjs", served.url, line.url, "legacy"], line, compiled)


class TestPapi(PapiList):
    """All methods are served; what has no typed call is asked with the legacy ones."""
