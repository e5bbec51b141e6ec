"""The pytest plugin: networks and proof-size snapshots as fixtures, wherever relaycast is installed.

Law: it costs a test run that does not use it nothing. Nothing of relaycast is imported before a fixture is asked for.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from relaycast.network import Network
    from relaycast.pytest_fixtures import PovSnapshot

MARKER = (
    "relaycast(seed=N, policies={..}, budget=.., broadcaster=.., genesis=.., trie_engine=..): "
    "what the net fixture of this test is made of, see docs/guides/pytest.md"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a command line and a configuration file can say."""
    group = parser.getgroup("relaycast")
    group.addoption("--pov-update", action="store_true", help="keep the proof sizes that are measured")
    group.addoption("--relaycast-seed", type=int, metavar="N", help="seed of every net that no marker gives one")
    parser.addini(
        "pov_snapshot_file", "where pov_snapshot keeps sizes, beside the test file", default="pov.pytest.toml"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def net(request: pytest.FixtureRequest) -> "Network":
    """Give a test a ``relaycast.Network`` of its own; the seed follows from the test's name unless a marker gives one.

    It keeps accounts, so that ``pov_snapshot`` can say why a size grew.
    """
    from relaycast.pytest_fixtures import network_for  # noqa: PLC0415 - loads every room

    return network_for(request)


@pytest.fixture
def pov_snapshot(request: pytest.FixtureRequest) -> "PovSnapshot":
    """Assert that proof sizes of a run are those that are kept; ``pytest --pov-update`` keeps new ones."""
    from relaycast.pytest_fixtures import PovSnapshot  # noqa: PLC0415 - loads every room

    return PovSnapshot(request)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was kept, and what could be."""
    lines = getattr(config, "_relaycast_lines", None)
    if lines:
        terminalreporter.section("relaycast")
        for line in lines:
            terminalreporter.write_line(line)
