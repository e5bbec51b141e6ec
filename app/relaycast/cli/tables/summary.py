"""What a run says on the terminal: a few lines that answer what it cost."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from relaycast.predict.run import passes
from relaycast.report.runtimes import items_of, title_of
from relaycast.report.story import pruned_bytes, story
from relaycast.report.templates import percent
from relaycast.report.verdicts import Severity, title, verdicts
from relaycast.simulation.run_files import Finished
from relaycast.terminal import console, counted, print_table
from relaycast_ledger.outcome import Outcome, PublisherCost, RuntimeOutcome, SubscriberOutcome

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    "reader",
    "keys",
    "call\nbacks",
    "proof\nfirst",
    "\np50",
    "\np99",
    "own\np50",
    "of PoV\np99",
    "zstd\np99",
    "latency\np50/p99",
    "cut\nshort",
)
"""Sizes in bytes of one block, latencies in relay blocks; cut short: blocks whose budget ended before all was read.

First: the largest block of the first delivery, which the other sizes leave out.

Of PoV: all that a block carries over the largest PoV, before compression and (zstd) after it.
"""

PART_COLUMNS = ("reader", "static", "top", "proof", "own", "messages", "all", "compressed")
"""The p99 of each part of a block alone, and of the whole block before and after compression, over the largest PoV."""

STYLES = {Severity.FINE: "green", Severity.WARNING: "yellow", Severity.BAD: "red"}

CAUSE_COLUMNS = (
    "reader",
    "publisher",
    "changed\nkeys",
    "top",
    "new",
    "changed",
    "unseen",
    "value",
    "of them\nsiblings",
    "read from\ncache",
    "pruned",
)
"""Bytes of all blocks together: of the proofs by cause, of them what leads to no subscribed key, and beside them."""

FORMULA_COLUMNS = ("reader", "publisher", "keys", "blocks\nwith news", "measured\na block", "by\nformula", "off")
"""Mean bytes of the publisher's part of the proofs, without the way to it: measured, and what ``predict`` gives."""

FORMULA_NOTE = (
    "the formula takes passes to be alike: it is off where a first publication took several relay blocks, "
    "and where a budget cut passes short"
)

RUNTIME_COLUMNS = (
    "parachain",
    "runtime",
    "blocks",
    "extrin-\nsics",
    "relay\np50",
    "own\np50",
    "\np99",
    "\nmax",
    "com-\npact",
    "of PoV\np99",
    "zstd\np99",
)
"""Bytes of one block: the relay proof, nodes of its own state, and the median of these as a compact proof."""

ITEM_COLUMNS = ("parachain", "storage item", "keys\nread", "keys\nwritten", "own proof\nbytes", "part")
"""Figures of all blocks together; the parts of one parachain add up to 100 %."""

MAX_ITEMS = 8
MAX_VIOLATIONS = 10
MAX_READERS = 40
"""Readers that a terminal is shown."""

MAX_COSTS = 40
"""Rows by publisher that a terminal is shown; all of them are in ``run.json``."""


def print_summary(finished: Finished, *, verbose: bool = False) -> None:
    """Print the outcome and where its files are; by publisher where a reader has several, or when ``verbose``."""
    run = finished.outcome
    out = console()
    head = f"{run.name}  {counted(run.blocks, 'relay block')}, seed {run.seed}, genesis {run.relaychain.genesis}"
    head += f", relay chain run by {run.relaychain.runtime}" if run.relaychain.runtime else ""
    out.print(head, style="bold", markup=False)
    if run.relaychain.lifted:
        out.print(f"limits lifted above Polkadot's: {', '.join(run.relaychain.lifted)}", markup=False)
    out.print()
    if run.runtimes:
        _print_runtimes(out, run, verbose=verbose)
    if run.subscribers or not run.runtimes:
        _print_readers(out, run, verbose=verbose)
    _print_remarks(out, run)
    if run.description:
        out.print(run.description, markup=False)
        out.print()
    out.print(story(run), markup=False)
    out.print()
    _print_endings(out, run)
    out.print(f"report: {finished.folder / 'report.html'}", markup=False, soft_wrap=True)


def _print_runtimes(out: "Console", run: Outcome, *, verbose: bool) -> None:
    """Print what blocks of real runtimes carry, and the storage items that take most of it."""
    print_table(out, RUNTIME_COLUMNS, map(_runtime_row, run.runtimes[:MAX_READERS]), right=RUNTIME_COLUMNS[2:])
    if len(run.runtimes) > MAX_READERS:
        out.print(f"... and {len(run.runtimes) - MAX_READERS} more, all in run.json")
    out.print()
    most = MAX_COSTS if verbose else MAX_ITEMS
    rows = [
        (title_of(it), row.name, f"{row.reads:,}", f"{row.writes:,}", f"{row.proof_bytes:,}", percent(row.part))
        for it in run.runtimes[:MAX_READERS]
        for row in items_of(it, most=most)
    ]
    print_table(out, ITEM_COLUMNS, rows, right=ITEM_COLUMNS[2:])
    out.print()


def _runtime_row(it: RuntimeOutcome) -> tuple[str, ...]:
    own = it.own_proof_bytes
    sizes = (it.blocks, it.extrinsics, it.relay_proof_bytes.p50, own.p50, own.p99, own.max, it.own_compact_bytes.p50)
    shares = (percent(it.pov_share.p99), percent(it.compressed_share.p99))
    return title_of(it), f"{it.spec_name} {it.spec_version}", *(f"{size:,}" for size in sizes), *shares


def _print_readers(out: "Console", run: Outcome, *, verbose: bool) -> None:
    """Print what readers' blocks carry."""
    print_table(out, COLUMNS, map(_row, run.subscribers[:MAX_READERS]), right=COLUMNS[1:])
    if len(run.subscribers) > MAX_READERS:
        out.print(f"... and {len(run.subscribers) - MAX_READERS} more, all in run.json")
    out.print()
    if verbose or any(len(it.publishers) > 1 for it in run.subscribers):
        costs = [(it, cost) for it in run.subscribers for cost in it.publishers]
        rows = [_cost_row(it, cost) for it, cost in costs[:MAX_COSTS]]
        print_table(out, CAUSE_COLUMNS, rows, right=CAUSE_COLUMNS[2:])
        if len(costs) > MAX_COSTS:
            out.print(f"... and {len(costs) - MAX_COSTS} more, all in run.json")
        out.print()
    if verbose:
        rows = [row for it in run.subscribers for cost in it.publishers if (row := _formula_row(it, cost))]
        if rows:
            print_table(out, FORMULA_COLUMNS, rows[:MAX_COSTS], right=FORMULA_COLUMNS[2:])
            out.print(FORMULA_NOTE)
            out.print()
        print_table(out, PART_COLUMNS, map(_part_row, run.subscribers[:MAX_READERS]), right=PART_COLUMNS[1:])
        out.print(
            "shares of the largest PoV: the p99 of each part alone, so that parts may add up to more than the whole"
        )
        out.print()


def _print_remarks(out: "Console", run: Outcome) -> None:
    """Print what messages took of blocks, and which readers were told again what they knew."""
    lines = [_load_line(it) for it in run.subscribers[:MAX_READERS] if it.message_bytes.total]
    again = [it for it in run.subscribers[:MAX_READERS] if it.told_again]
    lines += [f"{title(it)}: {it.told_again:,} callbacks told again what it knew, in no latency" for it in again]
    told = [it for it in run.subscribers[:MAX_READERS] if it.deletions]
    lines += [f"{title(it)}: {counted(it.deletions or 0, 'deletion')} told, callbacks without a value" for it in told]
    for line in lines:
        out.print(line, markup=False)
    if lines:
        out.print()


def _print_endings(out: "Console", run: Outcome) -> None:
    """Print which invariants were violated, and the verdicts."""
    if run.invariants.ok:
        out.print("every invariant held", style="green")
    if run.subscribers and all(it.starvation is UNSET for it in run.subscribers):
        out.print("no reader starved", style="green")
    for violation in run.invariants.violations[:MAX_VIOLATIONS]:
        out.print(f"violated: {violation}", style="red", markup=False)
    for line in run.refusals[:MAX_VIOLATIONS]:
        out.print(f"the runtime failed: {line}", style="red", markup=False)
    if len(run.refusals) > MAX_VIOLATIONS:
        out.print(f"... and {len(run.refusals) - MAX_VIOLATIONS} more, all in run.json")
    left_out = len(run.invariants.violations) - MAX_VIOLATIONS
    if left_out > 0:
        out.print(f"... and {left_out} more, all in run.json")
    out.print()
    for verdict in verdicts(run):
        style = "" if verdict.about in ("cost", "runtimes") else STYLES[verdict.ending]
        out.print(verdict.text, style=style, markup=False)
    out.print()


def _row(it: SubscriberOutcome) -> tuple[str, ...]:
    sizes = (it.proof_bytes.p50, it.proof_bytes.p99, it.own_bytes.p50)
    return (
        title(it),
        f"{it.keys:,}",
        f"{it.callbacks:,}",
        f"{it.first_proof_bytes:,}" if it.first_proof_bytes else "-",
        *(f"{size:,}" for size in sizes),
        percent(it.pov_share.p99),
        percent(it.compressed_share.p99),
        it.latency_blocks.told("p50", "p99"),
        f"{it.incomplete_blocks:,}",
    )


def _part_row(it: SubscriberOutcome) -> tuple[str, ...]:
    parts = (*it.pov_parts.values(), it.pov_share, it.compressed_share)
    return title(it), *(percent(share.p99) for share in parts)


def _load_line(it: SubscriberOutcome) -> str:
    """Return what messages took of a reader's blocks before pub-sub was considered."""
    taken, waiting = it.message_bytes, it.waiting_bytes_max
    line = f"{title(it)}: messages went first with {taken.total:,} bytes, {taken.max:,} in the fullest block"
    line = f"{line}; at most {waiting:,} waited" if waiting else line
    return f"{line}; {it.refused_bytes:,} were refused, for too many waited" if it.refused_bytes else line


def _cost_row(it: SubscriberOutcome, cost: PublisherCost) -> tuple[str, ...]:
    sizes = [totals.node_bytes for totals in cost.by_cause.values()]
    sizes += [cost.sibling_bytes, cost.cached.node_bytes, pruned_bytes(cost)]
    return title(it), str(cost.para_id), f"{cost.keys_changed:,}", *(f"{size:,}" for size in sizes)


def _formula_row(it: SubscriberOutcome, cost: PublisherCost) -> tuple[str, ...]:
    """Return what was measured beside the closed form; nothing where there is none."""
    blocks, formula = passes(cost), cost.formula_bytes
    if formula is None or not blocks:
        return ()
    measured = cost.proof_bytes - cost.by_cause["top"].node_bytes
    off = f"{formula / measured - 1:+.1%}" if measured else ""
    sizes = (cost.keys, blocks, round(measured / blocks), round(formula / blocks))
    return title(it), str(cost.para_id), *(f"{size:,}" for size in sizes), off
