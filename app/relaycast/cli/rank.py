"""``relaycast rank``: every policy on one scenario, the cheapest for each reader first."""

import json as json_text
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.run import NO_FLAGS, ScenarioFlags, overridden
from relaycast.cli.options import Json, TrieEngine, Verbose
from relaycast.terminal import is_hushed
from relaycast_ledger.outcome import SCHEMA_VERSION

if TYPE_CHECKING:
    from relaycast.compare.ranking import Ranked


def rank(
    scenario: Annotated[str, Parameter(help="a scenario file, the name of a preset, or - for TOML on standard input")],
    /,
    *,
    flags: Annotated[ScenarioFlags, Parameter(name="*")] = NO_FLAGS,
    trie_engine: TrieEngine = "auto",
    json: Json = False,
    verbose: Verbose = False,
) -> ExitCode:
    """Run a scenario under every policy, one at a time, and say which makes each reader's blocks smallest.

    What counts is all that a reader's blocks carry over the run, before compression. A policy that loses values,
    leaves some behind, breaks an invariant, starves a reader or does not fit is listed and never chosen. With
    --verbose there is a table for each reader; --policy changes what all others are held against.

    Example: relaycast rank oracle --blocks 30
    """
    from relaycast.compare.ranking import apart, measured, ranking, same_as_own, sentences  # noqa: PLC0415
    from relaycast.scenario.files import load_named  # noqa: PLC0415
    from relaycast.scenario.wasm_checks import refuse_runtimes  # noqa: PLC0415
    from relaycast.terminal import console, print_table  # noqa: PLC0415

    wanted = overridden(load_named(scenario, "rank"), flags)
    refuse_runtimes(wanted, "rank", "modelled parachains; relaycast pov snapshot compares real runtimes")

    def say(policy: str) -> None:
        if not is_hushed():
            print(f"relaycast: {wanted.blocks:,} blocks, {policy}", file=sys.stderr)

    found = ranking(wanted, measured(wanted, trie_engine=trie_engine, progress=say))
    if json:
        print(json_text.dumps({"schema": SCHEMA_VERSION, **msgspec.to_builtins(found, str_keys=True)}))
        return ExitCode.FINE
    out = console()
    for sentence in sentences(found):
        out.print(sentence, markup=False, highlight=False)
    tables = {"all readers together": found.together}
    if verbose:
        tables |= {f"{para_id} {found.names[para_id]}".rstrip(): it for para_id, it in found.readers.items()}
    for title, ranked in tables.items():
        out.print()
        print_table(out, COLUMNS, map(partial(_row, found.blocks), apart(ranked)), right=COLUMNS[1:], title=title)
        if same := same_as_own(ranked):
            out.print(f"no difference: {', '.join(same)}", style="dim", markup=False)
    out.print()
    out.print(LEGEND, style="dim", markup=False)
    return ExitCode.FINE


COLUMNS = ("policy", "bytes", "change", "zstd", "told\nagain", "late\np99")

LEGEND = (
    "bytes: what blocks carry for each relay block; zstd: the same compressed; told again: values that a reader was "
    "told before; late: relay blocks from a publication to its delivery"
)


def _row(blocks: int, it: "Ranked") -> tuple[str, ...]:
    return (
        it.policy,
        f"{it.pov_bytes // blocks:,}",
        f"{it.change:+.1%}",
        f"{it.compressed_bytes // blocks:,}",
        f"{it.told_again:,}",
        "-" if it.latency_p99 is None else str(it.latency_p99),
    )
