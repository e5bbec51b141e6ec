"""``relaycast demo`` and ``relaycast run``: simulate a scenario, sum it up, write its files."""

import json as json_text
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.run import NO_FLAGS, RunFlags, overridden, show
from relaycast.cli.flags.spark import RunEngine, SparkFlags, refuse_spark_flags, resumable, run_on_spark
from relaycast.cli.options import checked_workers
from relaycast.scenario.scenario import Scenario
from relaycast.terminal import is_hushed, shows_progress

if TYPE_CHECKING:
    from relaycast.simulation.run_estimate import Way
    from relaycast.simulation.run_files import Finished
    from relaycast.simulation.simulation import Progress


def demo(
    preset: str = "oracle",
    /,
    *,
    flags: Annotated[RunFlags, Parameter(name="*")] = NO_FLAGS,
) -> ExitCode:
    """Run a preset end to end: a summary here, run.json, Parquet tables, events.jsonl and report.html in out/.

    Presets: oracle, ring-roots, config-sync; heavy-messages, late-subscriber, griefed-publisher, mass-expiry,
    heartbeats, moving-window, block-times, hundred-subscribers, many-keys. docs/gallery.md says what each shows.

    Example: relaycast demo ring-roots --genesis kusama-genesis.json.gz
    """
    from relaycast.scenario.files import load_preset  # noqa: PLC0415

    scenario = overridden(load_preset(preset), flags)
    return _told(_simulate(scenario, flags), flags)


def run(
    scenario: Annotated[
        str, Parameter(help="a scenario in TOML, YAML or JSON, the name of a preset, or - for TOML on standard input")
    ],
    /,
    *,
    flags: Annotated[RunFlags, Parameter(name="*")] = NO_FLAGS,
    engine: RunEngine = "local",
    spark: Annotated[SparkFlags | None, Parameter(name="*")] = None,
) -> ExitCode:
    """Simulate a scenario file: a summary here, run.json, Parquet tables, events.jsonl and report.html in out/.

    A block whose compressed proof of validity (PoV) exceeds max_pov_bytes, or that takes more than two seconds to
    compute, does not fit: the exit code is 1, unless --allow-oversize. The same holds where a real runtime traps, and
    where a reader starves, unless --allow-starved: it is not given what it subscribes to.

    Example: relaycast run scenario.toml --blocks 200 --seed 1

    Example: relaycast run oracle --set parachains.2000.publish.keys=200 --policy cache=none

    Several processes build the blocks of readers side by side when that pays, or as many as --workers says. The files
    are the same, byte for byte.

    With --engine spark, the cores of a cluster share the run. One line says how: by segments of blocks, where a run
    that is stopped resumes, or by readers side by side, where it starts over. --resume asks for segments.

    Example: relaycast run scenario.toml --blocks 100000 --engine spark --master local[8]
    """
    from relaycast.scenario.files import load_named  # noqa: PLC0415
    from relaycast.scenario.wasm_checks import refuse_runtimes  # noqa: PLC0415

    wanted = overridden(load_named(scenario, "run"), flags)
    if engine == "local":
        refuse_spark_flags(spark)
        return _told(_simulate(wanted, flags), flags)

    if flags.workers is not None:
        checked_workers(flags.workers)
    refuse_runtimes(wanted, "--engine spark", "--engine local, which builds the blocks of real runtimes")

    ways: list[Way] = []

    def say(way: "Way") -> None:
        print(f"relaycast: {way}", file=sys.stderr)
        ways.append(way)

    def work() -> ExitCode:
        return _told(run_on_spark(wanted, flags, spark or SparkFlags(), say=say), flags)

    return resumable(work, lambda: all(way.resumes for way in ways))


def _simulate(scenario: Scenario, flags: RunFlags) -> "Finished":
    from relaycast.simulation.run_files import simulate  # noqa: PLC0415

    forks = hasattr(os, "sched_getaffinity")  # on Linux; elsewhere a process that has begun is not safely forked
    is_chosen = flags.workers is None and forks
    workers = checked_workers(1 if flags.workers is None and not forks else flags.workers)
    with progress_bar(scenario, shown=shows_progress() and not flags.json) as progress:
        return simulate(
            scenario,
            out=flags.out,
            progress=progress,
            per_key=flags.per_key,
            trie_engine=flags.trie_engine,
            workers=workers,
            say=_say if is_chosen else None,
        )


def _say(line: str) -> None:
    if not is_hushed():
        print(f"relaycast: {line}", file=sys.stderr)


def _told(finished: "Finished", flags: RunFlags) -> ExitCode:
    """Say what a run came to, and return how it ends."""
    from relaycast.simulation.run_files import to_json  # noqa: PLC0415

    if flags.json:
        print(json_text.dumps(to_json(finished.outcome)))
    else:
        from relaycast.cli.tables.summary import print_summary  # noqa: PLC0415

        print_summary(finished, verbose=flags.verbose)
    if flags.open:
        show(finished.folder / "report.html")
    if not finished.outcome.invariants.ok:
        return ExitCode.INVARIANT_VIOLATED
    outcome = finished.outcome
    refused = outcome.oversize_blocks and not flags.allow_oversize
    starved = outcome.starved and not flags.allow_starved
    return ExitCode.CHECK_FAILED if refused or starved or outcome.refusals else ExitCode.FINE


@contextmanager
def progress_bar(scenario: Scenario, *, shown: bool) -> Iterator["Progress | None"]:
    if not shown:
        yield None
        return
    from rich.progress import Progress as Bar  # noqa: PLC0415

    from relaycast.terminal import console  # noqa: PLC0415

    with Bar(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(scenario.name, total=scenario.blocks)
        yield lambda _block: bar.advance(task)
