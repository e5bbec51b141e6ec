"""``relaycast budget``: the smallest budget of a scenario, and what smaller ones cost."""

import json as json_text
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.run import NO_FLAGS, OUT, Out, ScenarioFlags, overridden, show
from relaycast.cli.options import Json, TrieEngine
from relaycast.simulation.run_folder import check_writable, staged
from relaycast.terminal import shows_progress
from relaycast_ledger.outcome import SCHEMA_VERSION

if TYPE_CHECKING:
    from relaycast.budget.search import BudgetCurve, Tried


def budget(
    scenario: Annotated[str, Parameter(help="a scenario file, the name of a preset, or - for TOML on standard input")],
    /,
    *,
    flags: Annotated[ScenarioFlags, Parameter(name="*")] = NO_FLAGS,
    out: Out = OUT,
    trie_engine: TrieEngine = "auto",
    open_: Annotated[bool, Parameter(name="--open", help="show the page in a browser")] = False,
    json: Json = False,
) -> ExitCode:
    """Find the smallest budget with which nothing is lost, and the smallest with which nothing is overtaken.

    Nothing is lost: the newest value of every key arrives, even if late. Nothing is overtaken: every value arrives. A
    budget is the bytes of a block that messages and pub-sub share. Each budget that is tried is a whole run, some
    twenty in all; the table and the chart show every one. The page, report.html, goes to a folder of its own in out/,
    with budget.json and budget.svg.

    Exit code 1 when values are lost even with the scenario's own budget.

    Example: relaycast budget oracle --blocks 40
    """
    from relaycast.budget.search import find_budget  # noqa: PLC0415
    from relaycast.scenario.files import load_named  # noqa: PLC0415
    from relaycast.scenario.wasm_checks import refuse_runtimes  # noqa: PLC0415

    wanted = overridden(load_named(scenario, "budget"), flags)
    refuse_runtimes(wanted, "budget", "modelled parachains, whose budgets are searched")
    check_writable(out)
    with _progress(shown=shows_progress() and not json) as tried:
        curve = find_budget(wanted, tried=tried, trie_engine=trie_engine)
    told = {"schema": SCHEMA_VERSION, **msgspec.to_builtins(curve)}
    folder = _write(curve, told, out)
    if json:
        print(json_text.dumps(told))
    else:
        _print(curve, folder)
    if open_:
        show(folder / "report.html")
    return ExitCode.CHECK_FAILED if curve.nothing_lost is None else ExitCode.FINE


def _write(curve: "BudgetCurve", told: dict[str, object], out: Path) -> Path:
    from relaycast.budget.page import budget_chart, render_budget  # noqa: PLC0415 - the template engine is slow to load

    text = msgspec.json.format(msgspec.json.encode(told), indent=2)
    name = f"budget-{blake2b(text, digest_size=8).hexdigest()}"
    with staged(out, name) as folder:
        (folder / "budget.json").write_bytes(text + b"\n")
        picture = budget_chart(curve).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        (folder / "budget.svg").write_text(picture, encoding="utf-8", newline="\n")
        (folder / "report.html").write_text(render_budget(curve), encoding="utf-8", newline="\n")
    return out / name


def _print(curve: "BudgetCurve", folder: Path) -> None:
    from relaycast.budget.page import COLUMNS, rows, sentence  # noqa: PLC0415
    from relaycast.terminal import console, print_table  # noqa: PLC0415

    out = console()
    print_table(out, COLUMNS, rows(curve), right=COLUMNS[:-1])
    out.print()
    out.print(sentence(curve), style="" if curve.nothing_lost is not None else "red", markup=False)
    out.print(f"report: {folder / 'report.html'}", markup=False, soft_wrap=True)


@contextmanager
def _progress(*, shown: bool) -> Iterator["Tried | None"]:
    """Show how many runs are done; how many there will be is not known before."""
    if not shown:
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from relaycast.terminal import console  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.completed} budgets tried"), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("budget", total=None)
        yield lambda runs: bar.update(task, completed=runs)
