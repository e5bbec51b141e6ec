"""A network in a process of its own for each client, and a line to it that can be cut."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("clients.whole_list", "clients.papi_project")

from clients.descriptors import add_descriptors, ran  # noqa: E402 - rewritten assertions come first
from clients.papi_project import make_project  # noqa: E402
from clients.served import Line, Served  # noqa: E402
from clients.whole_list import READER  # noqa: E402


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder in which a network is kept."""
    return str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def served(data: str) -> Iterator[Served]:
    """Serve the oracle of the presets, a block every half second."""
    with Served.serving("oracle", "--block-time", "500ms", "--data", data) as network:
        network.wait_for(4)  # scripts look two blocks back, and some begin at once
        yield network


@pytest.fixture(scope="module")
def line(served: Served) -> Iterator[Line]:
    line = Line(served)
    yield line
    line.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a project of polkadot-api; skips before anything is served where packages are missing."""
    folder = tmp_path_factory.mktemp("papi")
    make_project(folder)
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
