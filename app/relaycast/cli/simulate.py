"""``relaycast demo`` and ``relaycast run``: simulate a scenario, sum it up, write its files."""

import json as json_text
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.run import NO_FLAGS, RunFlags, overridden, show
from relaycast.cli.flags.spark import RunEngine, SparkFlags, refuse_spark_flags, resumable, run_on_spark
from relaycast.cli.options import Json, TrieEngine, Verbose, checked_workers
from relaycast.refusal import BadInput
from relaycast.scenario.scenario import MAX_BLOCKS, MAX_SEED, Scenario
from relaycast.terminal import shows_progress

if TYPE_CHECKING:
    from relaycast.simulation.run_files import Finished
    from relaycast.simulation.simulation import Progress
    from relaycast.simulation.spark_estimate import Way
    from relaycast_trie import Engine

Blocks = Annotated[int | None, Parameter(name="--blocks", help="relay blocks, instead of the scenario's")]
Seed = Annotated[int | None, Parameter(name="--seed", help="seed, instead of the scenario's")]
Out = Annotated[Path, Parameter(name="--out", help="folder for the files, one folder in it for each run")]
PerKey = Annotated[
    bool | None,
    Parameter(
        name="--per-key",
        negative="--no-per-key",
        help="write keys.parquet, what each key took of each block; written by default up to 200,000 rows",
    ),
]
Workers = Annotated[
    int | None,
    Parameter(
        name="--workers",
        help="processes of this machine that build readers' blocks side by side, 1 by default; Spark chooses by itself",
    ),
]
GenesisFile = Annotated[
    str | None,
    Parameter(name="--genesis", help="a raw chain spec, keys and values, or a witness, to start the relay chain from"),
]

OUT = Path("out")


def demo(
    preset: str = "oracle",
    /,
    *,
    blocks: Blocks = None,
    seed: Seed = None,
    genesis: GenesisFile = None,
    out: Out = OUT,
    json: Json = False,
    verbose: Verbose = False,
    per_key: PerKey = None,
    trie_engine: TrieEngine = "auto",
    workers: Workers = None,
    flags: Annotated[RunFlags, Parameter(name="*")] = NO_FLAGS,
) -> ExitCode:
    """Run a preset end to end: a summary here, run.json, Parquet tables, events.jsonl and report.html in out/.

    Presets: oracle, ring-roots, config-sync; heavy-messages, late-subscriber, griefed-publisher, mass-expiry,
    heartbeats, moving-window, block-times, hundred-subscribers. docs/gallery.md says what each of them shows.

    Example: relaycast demo ring-roots --genesis kusama-genesis.json.gz
    """
    from relaycast.scenario.files import load_preset  # noqa: PLC0415

    scenario = overridden(adjusted(load_preset(preset), blocks, seed, genesis), flags)
    return _told(_simulate(scenario, out, json, per_key, trie_engine, workers), json, verbose, flags)


def run(
    scenario: Annotated[
        str, Parameter(help="a scenario in TOML, YAML or JSON, the name of a preset, or - for TOML on standard input")
    ],
    /,
    *,
    blocks: Blocks = None,
    seed: Seed = None,
    genesis: GenesisFile = None,
    out: Out = OUT,
    json: Json = False,
    verbose: Verbose = False,
    per_key: PerKey = None,
    trie_engine: TrieEngine = "auto",
    workers: Workers = None,
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

    With --workers, several processes build the blocks of readers side by side: the files are the same, byte for byte.

    With --engine spark, the cores of a cluster share the run. One line says how: by segments of blocks, where a run
    that is stopped resumes, or by readers side by side, where it starts over. --resume asks for segments.

    Example: relaycast run scenario.toml --blocks 100000 --engine spark --master local[8]
    """
    from relaycast.scenario.files import load_named  # noqa: PLC0415
    from relaycast.scenario.wasm_checks import refuse_runtimes  # noqa: PLC0415

    wanted = overridden(adjusted(load_named(scenario, "run"), blocks, seed, genesis), flags)
    if engine == "local":
        refuse_spark_flags(spark)
        return _told(_simulate(wanted, out, json, per_key, trie_engine, workers), json, verbose, flags)

    if workers is not None:
        checked_workers(workers)
    refuse_runtimes(wanted, "--engine spark", "--engine local, which builds the blocks of real runtimes")

    ways: list[Way] = []

    def say(way: "Way") -> None:
        print(f"relaycast: {way}", file=sys.stderr)
        ways.append(way)

    def work() -> ExitCode:
        given = spark or SparkFlags()
        finished = run_on_spark(wanted, out, given, per_key=per_key, trie_engine=trie_engine, workers=workers, say=say)
        return _told(finished, json, verbose, flags)

    return resumable(work, lambda: all(way.resumes for way in ways))


def adjusted(scenario: Scenario, blocks: int | None, seed: int | None, genesis: str | None) -> Scenario:
    """Return ``scenario`` with what the command line says instead."""
    if blocks is not None:
        if not 1 <= blocks <= MAX_BLOCKS:
            raise BadInput("--blocks", str(blocks), f"a number from 1 to {MAX_BLOCKS:,}")
        scenario = replace(scenario, blocks=blocks)
    if seed is not None:
        if not 0 <= seed <= MAX_SEED:
            raise BadInput("--seed", str(seed), "a number from 0 to 2^63 - 1")
        scenario = replace(scenario, seed=seed)
    if genesis is not None:
        scenario = replace(scenario, relaychain=replace(scenario.relaychain, genesis=genesis))
    return scenario


def _simulate(
    scenario: Scenario, out: Path, json: bool, per_key: bool | None, trie_engine: "Engine", workers: int | None
) -> "Finished":
    from relaycast.simulation.run_files import simulate  # noqa: PLC0415

    workers = checked_workers(1 if workers is None else workers)
    with progress_bar(scenario, shown=shows_progress() and not json) as progress:
        return simulate(scenario, out=out, progress=progress, per_key=per_key, trie_engine=trie_engine, workers=workers)


def _told(finished: "Finished", json: bool, verbose: bool, flags: RunFlags) -> ExitCode:
    """Say what a run came to, and return how it ends."""
    from relaycast.simulation.run_files import to_json  # noqa: PLC0415

    if json:
        print(json_text.dumps(to_json(finished.outcome)))
    else:
        from relaycast.cli.tables.summary import print_summary  # noqa: PLC0415

        print_summary(finished, verbose=verbose)
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
