"""polkadot-api 2.2.2 uses a served network, with types that its own generator made (run with ``-m clients``)."""

from pathlib import Path

import pytest

from clients.conversation import SCRIPTS, Facts, Said, listen_to, node_packages, npm_project
from clients.descriptors import add_descriptors, ran
from clients.served import Line, Served
from clients.whole_list import READER, WholeList

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a project without descriptors; skips before anything is served where packages are missing."""
    folder = tmp_path_factory.mktemp("papi")
    sources = [SCRIPTS / name for name in ("papi.mts", "items.mjs", "network.mjs", "tsconfig.json")]
    npm_project(folder, node_packages("polkadot-api"), sources)
    return folder


@pytest.fixture(scope="module")
def project(folder: Path, served: Served) -> Path:
    """Add descriptors of both chains, as ``papi add`` generates them."""
    add_descriptors(folder, {"relay": served.url, "parachain": f"{served.url}/para/{READER}"})
    return folder


@pytest.fixture(scope="module")
def compiled(project: Path) -> Path:
    """Compile the script against the descriptors, strictly."""
    ran(project, "tsc", "--outDir", "built")
    return project / "built"


@pytest.fixture(scope="module")
def said(compiled: Path, served: Served, line: Line) -> Said:
    return listen_to(["node", "papi.mjs", served.url, line.url], line, compiled)


class TestPapi(WholeList):
    """The whole list, and generated types."""

    def test_its_generator_makes_descriptors_of_our_metadata(self, project: Path) -> None:
        made = {file.name for file in (project / ".papi" / "descriptors" / "dist").iterdir()}
        assert {"index.js", "relay.d.ts", "parachain.d.ts"} <= made

    def test_a_program_against_the_descriptors_compiles(self, compiled: Path) -> None:
        assert (compiled / "papi.mjs").is_file()

    def test_it_reads_the_metadata(self, said: Said) -> None:
        assert said("metadata")["version"] in {14, 15}

    def test_it_calls_runtime_apis(self, said: Said) -> None:
        seen = said("runtime apis")
        assert seen["nonce"] == seen["system_nonce"]

    def refused(self, seen: Facts, variant: str, text: str) -> None:
        """PAPI asks for the validity before it sends, and names the variant."""
        assert (seen["kind"], seen["reason"]) == ("Invalid", variant)
