"""What the fixtures of the pytest plugin do; loaded when a test first asks for one."""

from hashlib import blake2b
from pathlib import Path

import pytest

from relaycast.network import Network, Run
from relaycast.pov.gate import described, judge, tolerance_of
from relaycast.pov.snapshot import ScenarioSizes, Snapshot, read_snapshot, sizes_of, write_kept
from relaycast.refusal import BadInput, nearest
from relaycast.scenario.scenario import MAX_SEED

ARGUMENTS = ("seed", "policies", "budget", "broadcaster", "genesis", "trie_engine")
"""What the marker takes, as ``relaycast.Network`` does."""


def network_for(request: pytest.FixtureRequest) -> Network:
    """Return the network of a test; raises ``UsageError`` for a marker that cannot be meant."""
    __tracebackhide__ = True
    options: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("relaycast"))):
        if marker.args:
            raise pytest.UsageError(f"{name_of(request)}: relaycast takes arguments by name, got {marker.args[0]!r}")
        for name in marker.kwargs:
            if name not in ARGUMENTS:
                hint = nearest(name, list(ARGUMENTS))
                raise pytest.UsageError(f"{name_of(request)}: relaycast has no argument {name!r} ({hint})")
        options |= marker.kwargs
    given = request.config.getoption("--relaycast-seed", default=None)
    seed = options.pop("seed", seed_of(name_of(request)) if given is None else given)
    try:
        net = Network(seed=seed, accounting=True, **options)  # type: ignore[arg-type]
    except (TypeError, ValueError, BadInput) as error:
        raise pytest.UsageError(f"{name_of(request)}: {error}") from None
    request.node.add_report_section("setup", "relaycast", f"net = relaycast.Network(seed={seed}, ...)")
    return net


def name_of(request: pytest.FixtureRequest) -> str:
    """Return how a test is called in the folder of its file: ``test_feeds.py::TestOracle::test_prices[a]``."""
    inside = request.node.nodeid.partition("::")[2]
    return f"{request.path.name}::{inside}"


def seed_of(name: str) -> int:
    """Return the seed that a test of this name has by default."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") & MAX_SEED


class PovSnapshot:
    """The gate of one test: ``pov_snapshot(run)`` holds the sizes of a run against those that are kept.

    They are kept in one file for all tests of a folder, under the test's name.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._test = name_of(request)
        self._config = request.config
        self._seen: set[str] = set()
        self.file: Path = request.path.parent / str(request.config.getini("pov_snapshot_file"))
        self.updates = bool(request.config.getoption("--pov-update", default=False))
        if self.updates and hasattr(request.config, "workerinput"):
            raise pytest.UsageError("--pov-update writes one file: without -n")

    def __call__(self, run: Run, *, name: str = "", tolerance: str = "0%") -> None:
        """Assert that no size of ``run`` grew beyond ``tolerance``; ``name`` tells several runs of a test apart."""
        __tracebackhide__ = True
        allowed = _tolerance(tolerance)
        if not isinstance(run, Run):
            raise TypeError(f"pov_snapshot is given what net.run(blocks=..) returns, got {run!r}")
        entry = f"{self._test} {name}".rstrip()
        if entry in self._seen:
            raise ValueError(f"{entry} was compared already: name the runs, as in pov_snapshot(run, name='later')")
        self._seen.add(entry)
        subscribers = {int(para_id): sizes_of(it) for para_id, it in run.subscribers.items()}
        self._compare(entry, ScenarioSizes(blocks=run.blocks, seed=run.seed, subscribers=subscribers), allowed)

    def _compare(self, entry: str, sizes: ScenarioSizes, allowed: float) -> None:
        __tracebackhide__ = True
        kept = _read(self.file)
        if self.updates:
            if kept.scenarios.get(entry) != sizes:
                write_kept(self.file, kept.with_scenarios({entry: sizes}))
                self._tell(f"{self.file.name}: kept {entry}")
            return
        verdict = judge(kept, {entry: sizes}, tolerance=allowed)
        if verdict.ok:
            for line in described(verdict) if verdict.shrunk else ():
                self._tell(line)
            return
        lines = [*described(verdict), *(f"cannot be compared: {line}" for line in verdict.wrong)]
        raise AssertionError("\n".join([*lines, f"if that is meant: pytest --pov-update keeps it in {self.file.name}"]))

    def _tell(self, line: str) -> None:
        lines = getattr(self._config, "_relaycast_lines", None)
        if lines is None:
            lines = self._config._relaycast_lines = []  # type: ignore[attr-defined]
        lines.append(line)

    def __repr__(self) -> str:
        return f"<PovSnapshot of {self._test} in {self.file.name}>"


def _tolerance(text: str) -> float:
    __tracebackhide__ = True
    try:
        return tolerance_of(text, "tolerance")
    except BadInput as error:
        raise ValueError(str(error)) from None


def _read(file: Path) -> Snapshot:
    __tracebackhide__ = True
    if not file.exists():
        return Snapshot()
    try:
        return read_snapshot(file)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None
