"""``relaycast compare``: the same trace under two designs, side by side."""

import json as json_text
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.run import NO_FLAGS, OUT, Out, TraceFlags, adjusted
from relaycast.cli.options import Json, TrieEngine
from relaycast.cli.simulate import progress_bar
from relaycast.refusal import BadInput
from relaycast.simulation.run_folder import check_writable, staged
from relaycast.terminal import shows_progress
from relaycast_ledger.outcome import SCHEMA_VERSION

if TYPE_CHECKING:
    from relaycast.compare.comparison import Compared, Comparison
    from relaycast.scenario.scenario import Scenario

Overrides = Annotated[
    list[str] | None,
    Parameter(name="--policy", help="KIND=NAME for the second design, such as cache=none; may be given several times"),
]
ScenarioFile = Annotated[str, Parameter(help="a scenario file, the name of a preset, or - for TOML on standard input")]


def compare(
    first: ScenarioFile,
    second: Annotated[
        str | None, Parameter(help="another scenario; without one, --policy makes it of the first")
    ] = None,
    /,
    *,
    policy: Overrides = None,
    flags: Annotated[TraceFlags, Parameter(name="*")] = NO_FLAGS,
    trie_engine: TrieEngine = "auto",
    out: Out = OUT,
    json: Json = False,
) -> ExitCode:
    """Simulate two scenarios, or one under other policies, and print what each costs and breaks.

    The page with both side by side, report.html, goes to a folder of its own in out/, with comparison.json.

    Policies: root_commit (when-done, after-first-key, forget-unchanged), callback (changed-keys, all-keys), cache
    (structure, none), order (shuffled, numeric), metering (every-read, values-only, carried), budget
    (remaining[:PERCENT], cumulus, floor[:BYTES]), deletion (silent, told), advancement (advanced, basic),
    max_cached_node (bytes). The first of each kind is the default; the others are what drafts do, or might. A
    [policies] table in a scenario takes the same names.

    What the second design breaks is part of the comparison; an invariant that the first one violates makes the exit
    code 3.

    Example: relaycast compare oracle --policy cache=none --policy root_commit=forget-unchanged
    """
    from relaycast.compare.comparison import compare_runs  # noqa: PLC0415
    from relaycast.scenario.files import load_named  # noqa: PLC0415
    from relaycast.scenario.wasm_checks import refuse_runtimes  # noqa: PLC0415

    ours = adjusted(load_named(first, "compare"), flags)
    if second is None and not policy:
        raise BadInput("compare", "one scenario", "a second one, or --policy KIND=NAME")
    theirs = ours if second is None else adjusted(load_named(second, "compare"), flags)
    for one in (ours, theirs):
        refuse_runtimes(one, "compare", "modelled parachains; relaycast pov snapshot compares real runtimes")
    theirs = _overridden(theirs, policy or [])
    check_writable(out)
    both = msgspec.structs.replace(ours, blocks=ours.blocks + theirs.blocks)
    with progress_bar(both, shown=shows_progress() and not json) as progress:
        compared = compare_runs(ours, theirs, progress=progress, trie_engine=trie_engine)
    comparison = compared.comparison
    told = {"schema": SCHEMA_VERSION, **msgspec.to_builtins(comparison, str_keys=True)}
    folder = _write(compared, told, out)
    if json:
        print(json_text.dumps(told))
    else:
        _print(comparison, folder)
    return ExitCode.INVARIANT_VIOLATED if comparison.first.broken else ExitCode.FINE


def _overridden(scenario: "Scenario", policy: list[str]) -> "Scenario":
    from relaycast.scenario.limit_checks import check_cache_limits  # noqa: PLC0415
    from relaycast.scenario.policy_choice import with_overrides  # noqa: PLC0415

    overridden = msgspec.structs.replace(scenario, policies=with_overrides(scenario.policies, policy))
    return check_cache_limits(overridden, "--policy")


def _write(compared: "Compared", told: dict[str, object], out: Path) -> Path:
    """Write the comparison's folder and return it; its name follows from the two runs."""
    from relaycast.compare.page import render_comparison  # noqa: PLC0415 - the template engine is slow to load

    runs = "\n".join(run.run_id for run in compared.runs)
    name = f"compare-{blake2b(runs.encode(), digest_size=8).hexdigest()}"
    with staged(out, name) as folder:
        text = msgspec.json.format(msgspec.json.encode(told), indent=2)
        (folder / "comparison.json").write_bytes(text + b"\n")
        (folder / "report.html").write_text(render_comparison(compared), encoding="utf-8", newline="\n")
    return out / name


def _print(comparison: "Comparison", folder: Path) -> None:
    from relaycast.compare.rows import (  # noqa: PLC0415
        COLUMNS,
        broken_lines,
        figure_rows,
        left_out,
        oversize_lines,
        starved_lines,
    )
    from relaycast.terminal import console, print_table  # noqa: PLC0415

    out = console()
    first, second = comparison.first, comparison.second
    out.print(f"[bold]first[/bold]   {first.name}: {first.policies}")
    out.print(f"[bold]second[/bold]  {second.name}: {second.policies}")
    if not comparison.same_trace:
        out.print("the two publish different things: figures compare scenarios, not designs alone", style="yellow")
    for para_id, name in comparison.names.items():
        out.print()
        ours, theirs = first.subscribers.get(para_id), second.subscribers.get(para_id)
        rows, title = figure_rows(ours, theirs), f"subscriber {para_id} {name}".rstrip()
        if ours is None or theirs is None:
            column = 1 if theirs is None else 2
            alone = (COLUMNS[0], COLUMNS[column])
            only = ((row[0], row[column]) for row in rows)
            out.print(f"{title}, in the {alone[1]} alone", style="italic", markup=False)
            print_table(out, alone, only, right=alone[1:])
        else:
            print_table(out, COLUMNS, rows, right=COLUMNS[1:], title=title)
        if missing := left_out(ours, theirs):
            out.print(missing, style="dim", markup=False)
    out.print()
    out.print("own state proof: whole nodes; whole blocks carry them as compact proofs, which are smaller", style="dim")
    for which, design in (("first", first), ("second", second)):
        if not design.broken:
            out.print(f"[green]{which}: every invariant held[/green]")
        for line in (
            *broken_lines(which, design),
            *oversize_lines(which, design),
            *starved_lines(which, design),
        ):
            out.print(line, style="red", markup=False)
    out.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)
