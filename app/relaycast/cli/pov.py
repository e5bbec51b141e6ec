"""``relaycast pov``: proof sizes under version control, as ``forge snapshot --check`` does for gas; real blocks."""

import json as json_text
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.run import GenesisFile, TraceFlags, adjusted
from relaycast.cli.options import AllowOversize, AllowStarved, Json, TrieEngine
from relaycast.inputs import STDIN, place_of
from relaycast.refusal import SHOWN_CHARACTERS, BadInput, nearest, shown
from relaycast.simulation.run_folder import check_writable
from relaycast.terminal import say, shows_progress

if TYPE_CHECKING:
    from rich.console import Console

    from relaycast.pov.gate import Verdict
    from relaycast.pov.github import Findings
    from relaycast.pov.snapshot import ScenarioSizes, Snapshot
    from relaycast.scenario.scenario import Scenario
    from relaycast_trie import Engine

app = App(name="pov", help="Keep proof sizes under version control, and take a real block apart.")

Scenarios = Annotated[str, Parameter(help="scenario files or presets; without any, those of the kept file")]
Kept = Annotated[Path, Parameter(name="--out", help="the kept file, to be written or compared with")]
Check = Annotated[bool, Parameter(name="--check", help="compare with the kept file; exit code 1 when a size grew")]
Tolerance = Annotated[str, Parameter(name="--tolerance", help="by how much a size may grow with --check")]
GitHub = Annotated[
    bool,
    Parameter(
        name="--github",
        help="with --check: print annotations for GitHub, and append to the summary of the job "
        "(the file that GITHUB_STEP_SUMMARY names)",
    ),
]
BlockSource = Annotated[str, Parameter(help="a parachain block: hexadecimal, a file, or the URL of a node")]
At = Annotated[
    str | None,
    Parameter(
        name="--at",
        help="of a node, the hash or number of the block; by default its newest, by archive_v1 its newest final one",
    ),
]


class _Wanted(NamedTuple):
    """A scenario to measure, and the files that it and its genesis come from, relative to the kept file."""

    scenario: "Scenario"
    source: str
    genesis: str


@app.command
def snapshot(
    *scenario: Scenarios,
    out: Kept = Path("pov.snapshot.toml"),
    check: Check = False,
    tolerance: Tolerance = "0%",
    genesis: GenesisFile = None,
    trie_engine: TrieEngine = "auto",
    allow_oversize: AllowOversize = False,
    allow_starved: AllowStarved = False,
    github: GitHub = False,
    json: Json = False,
) -> ExitCode:
    """Measure the proof sizes of scenarios and keep them in a file, or --check them against it.

    With --check nothing is written: exit code 1 names every size that grew beyond the tolerance, from how much to how
    much, and what its bytes are for. What is kept of other scenarios stays as it is. The kept file records --genesis
    of each scenario; without scenarios on the command line, it is taken from there. Blocks that do not fit into a PoV
    make the exit code 1 in any case, unless --allow-oversize; so do readers that starve, unless --allow-starved, and a
    real runtime that traps.

    Example: relaycast pov snapshot oracle weather.toml

    Example: relaycast pov snapshot --check --tolerance 2%

    Example: relaycast pov snapshot --check --github
    """
    from relaycast.pov.gate import judge, tolerance_of  # noqa: PLC0415
    from relaycast.pov.github import Findings  # noqa: PLC0415
    from relaycast.pov.snapshot import Snapshot, read_snapshot, write_kept  # noqa: PLC0415

    allowed = tolerance_of(tolerance, "--tolerance")
    if github and not check:
        raise BadInput("--github", "no --check", "--check beside it, whose verdict it is about")
    there = out.exists()
    if check and not there:
        raise BadInput(str(out), "no such file", "a kept snapshot (relaycast pov snapshot SCENARIO writes one)")
    if not check:
        check_writable(out.parent)
    kept = read_snapshot(out) if there else Snapshot()
    wanted = _wanted(scenario, kept, out, genesis)
    measured, found = _measure_all(wanted, trie_engine, shown=shows_progress() and not json)
    verdict = judge(kept, measured, tolerance=allowed)
    if not check:
        write_kept(out, kept.with_scenarios(measured))
    if json:
        _print_json(verdict, out, check, found)
    else:
        wrong = [*(f"violated: {line}" for line in found.broken), *found.trapped, *found.oversize, *found.starved]
        _print(verdict, kept, measured, out, check, wrong)
    findings = Findings(
        [*found.broken, *found.trapped], found.oversize, allow_oversize, found.starved, allow_starved=allow_starved
    )
    if github:
        _tell_github(verdict, measured, out, findings, json=json)
    if found.broken:
        return ExitCode.INVARIANT_VIOLATED
    failed = findings.has_failed or (check and not verdict.ok)
    return ExitCode.CHECK_FAILED if failed else ExitCode.FINE


@app.command
def inspect(block: BlockSource, /, *, at: At = None, json: Json = False) -> ExitCode:
    """Take a parachain block apart: its relay proof by purpose, its messages, and its size.

    BLOCK is hexadecimal, a file (SCALE, hexadecimal, or what chain_getBlock answers), or the URL of a node
    (http, https, ws, wss). The inherent set_validation_data is found in the block, whatever the runtime. Its relay
    proof is checked from the state root on, node by node. Nodes that no known key needs, and nodes that the root does
    not lead to, are listed apart. The parachain's own state proof is not part of a block.

    Example: relaycast pov inspect block.json

    Example: relaycast pov inspect wss://example.org --at 1000000
    """
    from relaycast.cli.tables.inspection import print_inspection, print_inspection_json  # noqa: PLC0415
    from relaycast.pov.block_input import read_block  # noqa: PLC0415
    from relaycast.pov.inspection import inspect_block  # noqa: PLC0415

    found = inspect_block(read_block(block, at=at))
    if found is None:
        raise BadInput(
            place_of(block)[:SHOWN_CHARACTERS],
            "a block without set_validation_data",
            "a parachain block whose body holds that inherent",
        )
    if json:
        print_inspection_json(found)
    else:
        print_inspection(found)
    return ExitCode.FINE


def _wanted(names: tuple[str, ...], kept: "Snapshot", file: Path, genesis: str | None) -> "dict[str, _Wanted]":
    """Return the scenarios by name; ``genesis`` is for all of them, instead of kept ones."""
    from relaycast.scenario.files import load_named, presets  # noqa: PLC0415

    given = [(name, genesis) for name in names]
    if not given:
        for name, it in kept.scenarios.items():
            start = str(file.parent / it.genesis) if it.genesis and genesis is None else genesis
            given.append((str(_found(it.source or name, file, presets())), start))
    if not given:
        raise BadInput("pov snapshot", "no scenario", "a scenario file or the name of a preset")
    found: dict[str, _Wanted] = {}
    for name, start in given:
        scenario = adjusted(load_named(name, "pov snapshot"), TraceFlags(genesis=start))
        if scenario.name in found:
            raise BadInput(name, f"the name {shown(scenario.name)} again", "scenarios with names of their own")
        source = name if name in presets() else _from(file, name)
        found[scenario.name] = _Wanted(scenario, source, _from(file, start or STDIN))
    return found


def _from(kept: Path, file: str) -> str:
    """Return the name of ``file`` relative to the kept file; standard input has none."""
    return "" if file == STDIN else Path(os.path.relpath(file, kept.parent)).as_posix()


def _found(source: str, file: Path, presets: list[str]) -> Path:
    """Return where a kept scenario comes from, as it is seen from here."""
    if source in presets:
        return Path(source)
    path = file.parent / source
    if not path.exists():
        raise BadInput(f"{file} at source", shown(source), "a scenario file, or a preset", nearest(source, presets))
    return path


class _Found(NamedTuple):
    """Faults found in the runs of the scenarios, one line each."""

    broken: list[str]
    """Invariants that were violated."""

    trapped: list[str]
    """Where real runtimes failed."""

    oversize: list[str]
    starved: list[str]


def _measure_all(
    wanted: "dict[str, _Wanted]", trie_engine: "Engine", *, shown: bool
) -> "tuple[dict[str, ScenarioSizes], _Found]":
    """Return the sizes of every scenario, and what else was found."""
    from relaycast.cli.simulate import progress_bar  # noqa: PLC0415
    from relaycast.pov.snapshot import sizes_of_run  # noqa: PLC0415
    from relaycast.report.verdicts import Severity, verdicts  # noqa: PLC0415
    from relaycast.simulation.simulation import Simulation  # noqa: PLC0415

    measured, found = {}, _Found([], [], [], [])
    for name, it in wanted.items():
        with progress_bar(it.scenario, shown=shown) as progress:
            simulation = Simulation.prepare(it.scenario, trie_engine=trie_engine)
            simulation.keep_accounts(per_key=False)
            run = simulation.run(progress)
        measured[name] = sizes_of_run(run, source=it.source, genesis=it.genesis)
        found.broken.extend(f"{name}: {violation}" for violation in run.invariants.violations)
        found.trapped.extend(f"{name}: the runtime failed: {line}" for line in run.refusals)
        bad = {it.about: f"{name}: {it.text}" for it in verdicts(run) if it.ending is Severity.BAD}
        found.oversize.extend(line for about, line in bad.items() if about == "fits")
        found.starved.extend(line for about, line in bad.items() if about == "starved")
    return measured, found


def _print_json(verdict: "Verdict", file: Path, check: bool, found: _Found) -> None:
    import msgspec  # noqa: PLC0415

    from relaycast_ledger.outcome import SCHEMA_VERSION  # noqa: PLC0415

    broken = [*found.broken, *found.trapped]
    head = {"schema": SCHEMA_VERSION, "file": str(file), "checked": check, "ok": verdict.ok and not broken}
    lines = {"violations": broken, "oversize": found.oversize, "starved": found.starved}
    print(json_text.dumps({**head, **lines, **msgspec.to_builtins(verdict)}))


def _tell_github(
    verdict: "Verdict", measured: "dict[str, ScenarioSizes]", file: Path, findings: "Findings", *, json: bool
) -> None:
    """Print annotations, on stderr where JSON has stdout for itself, and write the summary of the job."""
    from relaycast.pov.github import annotation_lines, summary, write_summary  # noqa: PLC0415

    for line in annotation_lines(verdict, findings, file):
        print(line, file=sys.stderr if json else sys.stdout)
    sys.stdout.flush()
    write_summary(summary(verdict, findings, measured, file))


def _print(
    verdict: "Verdict",
    kept: "Snapshot",
    measured: "dict[str, ScenarioSizes]",
    file: Path,
    check: bool,
    wrong: list[str],
) -> None:
    from relaycast.pov.gate import described  # noqa: PLC0415
    from relaycast.terminal import console  # noqa: PLC0415

    out = console()
    for line in wrong:
        say(line, style="red")
    for line in described(verdict):
        style = "red" if line.startswith("grew") else "green" if line.startswith("shrank") else ""
        say(line, style=style)
    if check:
        _print_verdict(out, verdict, measured, file)
    else:
        written = ", ".join(f"{name} ({'new' if name not in kept.scenarios else 'again'})" for name in measured)
        say(f"{file}: kept {written}")


def _print_verdict(out: "Console", verdict: "Verdict", measured: "dict[str, ScenarioSizes]", file: Path) -> None:
    for line in verdict.wrong:
        say(f"cannot be compared: {line}", style="red")
    sizes = f"{verdict.compared:,} sizes of {', '.join(measured)} compared with {file}"
    limit = f"grew beyond {_percent(verdict.tolerance)}"
    if verdict.ok:
        say(f"{sizes}: none {limit}", style="green")
        if verdict.shrunk:
            out.print("keep the smaller ones: the same command without --check", markup=False)
    else:
        out.print(f"{sizes}: {len(verdict.grown)} {limit}", style="red", markup=False)
        out.print("if that is meant, keep it: the same command without --check", markup=False)


def _percent(part: float) -> str:
    return f"{100 * part:g}%"
