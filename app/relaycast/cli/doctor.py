"""``relaycast doctor``: what is installed, what is slow, and how to fix it."""

import json as json_text
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from relaycast import __version__
from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json, Verbose
from relaycast_ledger.outcome import SCHEMA_VERSION

if TYPE_CHECKING:
    from relaycast.cli.installed import Finding

WarmUp = Annotated[
    bool, Parameter(name="--warm-up", help="compile what is not yet compiled, so that no later run waits")
]
SHOWN_CHARACTERS = 100
MANY = 6
"""Parts of a list from which a long one is shortened."""


def doctor(*, warm_up: WarmUp = False, verbose: Verbose = False, json: Json = False) -> ExitCode:
    """Print what is installed, what is slow, and how to fix it: packages, compiled code, CPU, and Java for Spark.

    The exit code is 1 when something is broken that every verb needs, and 0 when only a verb or some speed is missing.

    Example: relaycast doctor --json
    """
    from relaycast.cli.installed import Health, examine  # noqa: PLC0415

    if warm_up:
        from relaycast_trie import warm_up as compile_all  # noqa: PLC0415

        compile_all()
    findings = examine()
    healthy = all(it.state is not Health.BROKEN for it in findings)
    if json:
        about = {"schema": SCHEMA_VERSION, "version": __version__, "ok": healthy}
        print(json_text.dumps({**about, "findings": msgspec.to_builtins(findings)}))
    else:
        _print(findings, verbose=verbose)
    return ExitCode.FINE if healthy else ExitCode.CHECK_FAILED


def _print(findings: "list[Finding]", *, verbose: bool) -> None:
    from relaycast.cli.installed import Health  # noqa: PLC0415
    from relaycast.terminal import console, say  # noqa: PLC0415

    out = console()
    styles = {Health.OK: "", Health.SLOW: "yellow", Health.MISSING: "yellow", Health.BROKEN: "red"}
    width = max(len(it.name) for it in findings)
    for it in findings:
        found = it.found if verbose or len(it.found) <= SHOWN_CHARACTERS else _shortened(it.found)
        say(f"{it.state.value:<8}{it.name:<{width}}  {found}", hanging=width + 10, style=styles[it.state])
        if it.state is not Health.OK:
            for label, text in (("for", it.needed_for), ("fix", it.fix)):
                if text:
                    say(f"{'':<8}{'':<{width}}  {label}: {text}", hanging=width + 12)
    out.print()
    worst = [it for it in findings if it.state is Health.BROKEN]
    rest = [it for it in findings if it.state in (Health.SLOW, Health.MISSING)]
    if worst:
        out.print(f"broken: {', '.join(it.name for it in worst)}", style="red", markup=False)
    elif rest:
        out.print(f"relaycast works; not here or slow: {', '.join(it.name for it in rest)}", markup=False)
    else:
        out.print("everything is here, and fast", style="green")


def _shortened(text: str) -> str:
    """Return the first few of a list, and how many there are."""
    parts = text.split(", ")
    if len(parts) < MANY:
        return text
    return f"{', '.join(parts[:3])}, ... {len(parts)} in all (--verbose names them)"
