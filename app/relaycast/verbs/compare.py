"""``relaycast compare``: the same trace under two designs, side by side."""

import json as json_text
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from relaycast.exit_code import ExitCode
from relaycast.outcome import SCHEMA_VERSION
from relaycast.refusal import BadInput
from relaycast.verbs.options import Json
from relaycast.verbs.simulate import Blocks, Seed, adjusted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relaycast.comparison import Comparison, DesignFigures
    from relaycast.outcome import Spread
    from relaycast.scenario import Scenario

Overrides = Annotated[
    list[str] | None,
    Parameter(name="--policy", help="KIND=NAME for the second design, such as cache=none; may be given several times"),
]
ScenarioFile = Annotated[str, Parameter(help="a scenario file, the name of a preset, or - for TOML on standard input")]

COLUMNS = ("figure", "first", "second", "difference", "")
NUMBERS = COLUMNS[1:]


def compare(
    first: ScenarioFile,
    second: Annotated[
        str | None, Parameter(help="another scenario; without one, --policy makes it of the first")
    ] = None,
    /,
    *,
    policy: Overrides = None,
    blocks: Blocks = None,
    seed: Seed = None,
    json: Json = False,
) -> ExitCode:
    """Simulate two scenarios, or one under other policies, and print what each costs and breaks.

    Policies: root_commit (when-done, after-first-key, forget-unchanged), callback (changed-keys, all-keys), cache
    (structure, none), order (shuffled, numeric), metering (every-read, values-only), budget (remaining[:PERCENT],
    cumulus, floor[:BYTES]), max_cached_node (bytes). The first of each kind is the default; the others are what drafts
    do. A [policies] table in a scenario takes the same names.

    What the second design breaks is part of the comparison; an invariant that the first one violates makes the exit
    code 3.

    Example: relaycast compare oracle --policy cache=none --policy root_commit=forget-unchanged
    """
    from relaycast.comparison import compare as compare_scenarios  # noqa: PLC0415
    from relaycast.scenario_file import load_named  # noqa: PLC0415

    ours = adjusted(load_named(first, "compare"), blocks, seed, None)
    if second is None and not policy:
        raise BadInput("compare", "one scenario", "a second one, or --policy KIND=NAME")
    theirs = ours if second is None else adjusted(load_named(second, "compare"), blocks, seed, None)
    comparison = compare_scenarios(ours, _overridden(theirs, policy or []))
    if json:
        print(json_text.dumps({"schema": SCHEMA_VERSION, **msgspec.to_builtins(comparison, str_keys=True)}))
    else:
        _print(comparison)
    return ExitCode.INVARIANT_VIOLATED if comparison.first.broken else ExitCode.FINE


def _overridden(scenario: "Scenario", policy: list[str]) -> "Scenario":
    from relaycast.policy_choice import with_overrides  # noqa: PLC0415

    return msgspec.structs.replace(scenario, policies=with_overrides(scenario.policies, policy))


def _print(comparison: "Comparison") -> None:
    from relaycast.terminal import console, print_table  # noqa: PLC0415

    out = console()
    first, second = comparison.first, comparison.second
    out.print(f"[bold]first[/bold]   {first.name}: {first.policies}")
    out.print(f"[bold]second[/bold]  {second.name}: {second.policies}")
    if not comparison.same_trace:
        out.print("the two publish different things: figures compare scenarios, not designs alone", style="yellow")
    for para_id, name in comparison.names.items():
        out.print()
        rows = _rows(first.subscribers.get(para_id), second.subscribers.get(para_id))
        print_table(out, COLUMNS, rows, right=NUMBERS, title=f"subscriber {para_id} {name}".rstrip())
    out.print()
    for which, design in (("first", first), ("second", second)):
        if not design.broken:
            out.print(f"[green]{which}: every invariant held[/green]")
        for it in design.broken:
            where = f"from block {it.first_block} on, in {', '.join(map(str, it.subscribers))}"
            times = "once" if it.times == 1 else f"{it.times} times"
            out.print(f"{which}: violated {times}: {it.invariant} ({where})", style="red", markup=False)


def _rows(first: "DesignFigures | None", second: "DesignFigures | None") -> "Iterator[tuple[str, ...]]":
    ours, theirs = _figures(first), _figures(second)
    for figure in ours or theirs:
        yield _row(figure, ours.get(figure), theirs.get(figure))


def _figures(it: "DesignFigures | None") -> dict[str, int]:
    if it is None:
        return {}
    return {
        **_spread("relay proof", it.proof_bytes),
        **_spread("own state proof", it.own_bytes),
        **_spread("both", it.pov_bytes),
        "callbacks": it.callbacks,
        "  told again": it.redeliveries,
        "  overtaken values": it.conflated,
        "latency p50, blocks": it.latency_blocks.p50,
        "latency p99, blocks": it.latency_blocks.p99,
        "incomplete blocks": it.incomplete_blocks,
        "lost updates": it.lost_updates,
        "undelivered at rest": it.undelivered,
        "disabled publishers": len(it.disabled_publishers),
        "panics": it.panics,
    }


def _spread(name: str, sizes: "Spread") -> dict[str, int]:
    return {
        f"{name} p50, bytes": sizes.p50,
        f"{name} p99, bytes": sizes.p99,
        f"{name} max, bytes": sizes.max,
        f"{name} total, bytes": sizes.total,
    }


def _row(figure: str, first: int | None, second: int | None) -> tuple[str, ...]:
    cells = [figure, *("-" if value is None else f"{value:,}" for value in (first, second))]
    if first is None or second is None or first == second:
        return (*cells, "", "")
    return (*cells, f"{second - first:+,}", f"{second / first - 1:+.1%}" if first else "new")
