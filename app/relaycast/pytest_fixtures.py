"""What the fixtures of the pytest plugin do; loaded when a test first asks for one."""

from contextlib import AbstractContextManager
from hashlib import blake2b
from os import PathLike, environ, fspath
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from relaycast.network import Network
from relaycast.pov.gate import described, judge, tolerance_of
from relaycast.pov.snapshot import ScenarioSizes, Snapshot, read_snapshot, sizes_of, sizes_of_runtime
from relaycast.pytest_notes import name_of_item, notes_of
from relaycast.refusal import BadInput, nearest
from relaycast.report.full_block import fullest
from relaycast.report.verdicts import starved_line
from relaycast.run import Run
from relaycast.scenario.scenario import MAX_SEED

if TYPE_CHECKING:
    from relaycast.serve.in_process import ServedNetwork

LIVE_ARGUMENTS = ("block_time", "host", "port")
"""What the marker ``live`` takes beside the scenario, as ``relaycast.serve`` does."""

ARGUMENTS = ("seed", "policies", "budget", "broadcaster", "genesis", "trie_engine")
"""What the marker takes, as ``relaycast.Network`` does."""


def network_for(request: pytest.FixtureRequest) -> Network:
    """Return the network of a test; raises ``UsageError`` for a wrong marker."""
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
    genesis = options.get("genesis")
    if isinstance(genesis, str | PathLike):
        options["genesis"] = relpath(request.path.parent / fspath(genesis))
    try:
        net = Network(seed=seed, accounting=True, **options)  # type: ignore[arg-type]
    except (TypeError, ValueError, BadInput) as error:
        raise pytest.UsageError(f"{name_of(request)}: {error}") from None
    request.node.add_report_section("setup", "relaycast", f"net = relaycast.Network(seed={seed}, ...)")
    return net


def served_for(request: pytest.FixtureRequest) -> "AbstractContextManager[ServedNetwork]":
    """Return what the marker ``live`` asks for, to be entered; raises ``UsageError`` for a wrong one."""
    __tracebackhide__ = True
    from relaycast.serve.in_process import serve  # noqa: PLC0415 - loads the server

    marker = request.node.get_closest_marker("live")
    given = () if marker is None else marker.args
    options = {} if marker is None else dict(marker.kwargs)
    for name in options:
        if name not in LIVE_ARGUMENTS:
            hint = nearest(name, list(LIVE_ARGUMENTS))
            raise pytest.UsageError(f"{name_of(request)}: live has no argument {name!r} ({hint})")
    if len(given) > 1:
        raise pytest.UsageError(f"{name_of(request)}: live takes one scenario, got {given!r}")
    scenario = given[0] if given else "oracle"
    beside = request.path.parent / fspath(scenario)
    return serve(relpath(beside) if beside.is_file() else scenario, **options)


def name_of(request: pytest.FixtureRequest) -> str:
    """Return how a test is called in the folder of its file: ``test_feeds.py::TestOracle::test_prices[a]``."""
    return name_of_item(request.node)


def seed_of(name: str) -> int:
    """Return the seed that a test of this name has by default."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") & MAX_SEED


def is_continuous_integration() -> bool:
    """Return whether the environment says ``CI``, as services for continuous integration do."""
    return environ.get("CI", "").lower() not in {"", "0", "false"}


class PovSnapshot:
    """The gate of one test: ``pov_snapshot(run)`` holds the sizes of a run against those that are kept.

    They are kept in one file for all tests of a folder, under the test's name.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._test = name_of(request)
        self._notes = notes_of(request.config)
        self._seen: set[str] = set()
        self.file: Path = request.path.parent / str(request.config.getini("pov_snapshot_file"))
        self.updates = bool(request.config.getoption("--pov-update", default=False))
        if self.updates and is_continuous_integration():
            raise pytest.UsageError("--pov-update: got CI in the environment, expected sizes to be kept by a person")

    def __call__(
        self,
        run: Run,
        *,
        name: str = "",
        tolerance: str = "0%",
        allow_oversize: bool = False,
        allow_starved: bool = False,
    ) -> None:
        """Assert that no size of ``run`` grew beyond ``tolerance``, every block fits into a PoV, and no reader starved.

        ``name`` tells several runs of a test apart. ``allow_oversize`` is for studies of blocks that do not fit,
        ``allow_starved`` for studies of readers that are not given what they subscribe to.
        """
        __tracebackhide__ = True
        allowed = _tolerance(tolerance)
        if not isinstance(run, Run):
            raise TypeError(f"pov_snapshot is given what net.run(blocks=..) returns, got {run!r}")
        entry = f"{self._test} {name}".rstrip()
        if entry in self._seen:
            raise ValueError(f"{entry} was compared already: name the runs, as in pov_snapshot(run, name='later')")
        self._seen.add(entry)
        self._notes.compared.setdefault(str(self.file), []).append(entry)
        if run.oversize_blocks and run.fullest_block is not None and not allow_oversize:
            built = sum(len(it.points) for it in run.subscribers.values())
            built += sum(it.blocks for it in run.runtimes.values())
            blocks = f"{run.oversize_blocks:,} of {built:,} blocks do not fit into a PoV"
            raise AssertionError(f"{blocks}: {fullest(run.fullest_block)}")
        if run.starved and not allow_starved:
            raise AssertionError("\n".join(f"starved: {starved_line(str(it), why)}" for it, why in run.starved.items()))
        subscribers = {int(para_id): sizes_of(it) for para_id, it in run.subscribers.items()}
        runtimes = {para_id: sizes_of_runtime(it) for para_id, it in run.runtimes.items()}
        sizes = ScenarioSizes(blocks=run.blocks, seed=run.seed, subscribers=subscribers, runtimes=runtimes)
        self._compare(entry, sizes, allowed)

    def _compare(self, entry: str, sizes: ScenarioSizes, allowed: float) -> None:
        __tracebackhide__ = True
        if self.updates:
            plain = msgspec.to_builtins(sizes, str_keys=True)
            self._notes.measured.setdefault(str(self.file), {})[entry] = plain
            return
        verdict = judge(_read(self.file), {entry: sizes}, tolerance=allowed)
        if verdict.ok:
            for line in described(verdict) if verdict.shrunk else ():
                self._notes.lines.append(line)
            return
        lines = [*described(verdict), *(f"cannot be compared: {line}" for line in verdict.wrong)]
        raise AssertionError("\n".join([*lines, f"if that is meant: pytest --pov-update keeps it in {self.file.name}"]))

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
