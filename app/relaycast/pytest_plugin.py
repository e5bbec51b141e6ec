"""The pytest plugin: networks and proof-size snapshots as fixtures, wherever relaycast is installed.

Law: it costs a test run that does not use it nothing. Nothing of relaycast is imported before a fixture is asked for.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from relaycast.network import Network
    from relaycast.pytest_fixtures import PovSnapshot
    from relaycast.serve.in_process import ServedNetwork

MARKER = (
    "relaycast(seed=N, policies={..}, budget=.., broadcaster=.., genesis=.., trie_engine=..): "
    "what the net fixture of this test is made of, see docs/guides/pytest.md"
)

LIVE_MARKER = "live(scenario, block_time=..): what the live_network fixture of this test serves, see relaycast.serve"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a command line and a configuration file can say."""
    group = parser.getgroup("relaycast")
    group.addoption("--pov-update", action="store_true", help="keep the proof sizes that are measured")
    group.addoption("--relaycast-seed", type=int, metavar="N", help="seed of every net that no marker gives one")
    parser.addini(
        "pov_snapshot_file", "where pov_snapshot keeps sizes, beside the test file", default="pov.pytest.toml"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and watch the session."""
    config.addinivalue_line("markers", MARKER)
    config.addinivalue_line("markers", LIVE_MARKER)
    config.pluginmanager.register(Hooks(config), "relaycast_session")


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


@pytest.fixture
def live_network(request: pytest.FixtureRequest) -> "Iterator[ServedNetwork]":
    """Serve a preset or a scenario file for one test, on a free port; blocks come on demand.

    ``@pytest.mark.live("scenario.toml", block_time="500ms")`` says what else: what ``relaycast.serve`` takes.
    """
    from relaycast.pytest_fixtures import served_for  # noqa: PLC0415 - loads every room

    with served_for(request) as served:
        yield served


class _Session:
    """What this session has seen; of relaycast only where a test asked for its fixtures."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.deselected = False


def _session(config: pytest.Config) -> _Session:
    known = getattr(config, "_relaycast_session", None)
    if known is None:
        known = config._relaycast_session = _Session()  # type: ignore[attr-defined]
    assert isinstance(known, _Session)
    return known


class Hooks:
    """Hooks of one session, of which the configuration is known."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen = _session(config)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember that not all tests ran."""
        self._seen.deselected |= bool(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember which tests passed."""
        if report.when == "call" and report.passed:
            file, _, inside = report.nodeid.partition("::")
            self._seen.passed.add(f"{Path(file).name}::{inside}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the notes of a worker of pytest-xdist."""
        notes = getattr(node, "workeroutput", {}).get("relaycast")
        if notes is not None:
            from relaycast.pytest_notes import notes_of  # noqa: PLC0415 - loads every room

            notes_of(self._config).add(notes)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep sizes, and find kept ones that no test uses."""
        if hasattr(self._config, "_relaycast_notes"):
            from relaycast.pytest_notes import finish  # noqa: PLC0415 - loads every room

            finish(session, self._seen.passed, deselected=self._seen.deselected)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was kept, and what could be."""
    notes = getattr(config, "_relaycast_notes", None)
    if notes is not None and notes.lines:
        terminalreporter.section("relaycast")
        for line in notes.lines:
            terminalreporter.write_line(line)
