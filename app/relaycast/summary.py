"""What a run says on the terminal: a few lines that answer what it cost."""

from relaycast.outcome import SubscriberOutcome
from relaycast.report import percent, story, title
from relaycast.run import Finished
from relaycast.terminal import console, print_table

COLUMNS = (
    "reader",
    "keys",
    "call\nbacks",
    "proof\np50",
    "\np99",
    "\nmax",
    "own\np50",
    "of PoV\np99",
    "latency\np50/p99",
    "cut\nshort",
)
"""Sizes in bytes of one block, latencies in relay blocks; cut short: blocks whose budget ended before all was read."""

MAX_VIOLATIONS = 10


def print_summary(finished: Finished) -> None:
    """Print the outcome and where its files are."""
    run = finished.outcome
    out = console()
    head = f"{run.name}  {run.blocks:,} relay blocks, seed {run.seed}, genesis {run.relaychain.genesis}"
    out.print(head, style="bold", markup=False)
    out.print()
    print_table(out, COLUMNS, map(_row, run.subscribers), right=COLUMNS[1:])
    out.print()
    out.print(story(run), markup=False)
    out.print()
    if run.invariants.ok:
        out.print("every invariant held", style="green")
    for violation in run.invariants.violations[:MAX_VIOLATIONS]:
        out.print(f"violated: {violation}", style="red", markup=False)
    left_out = len(run.invariants.violations) - MAX_VIOLATIONS
    if left_out > 0:
        out.print(f"... and {left_out} more, all in run.json")
    out.print(f"report: {finished.folder / 'report.html'}", markup=False, soft_wrap=True)


def _row(it: SubscriberOutcome) -> tuple[str, ...]:
    sizes = (it.proof_bytes.p50, it.proof_bytes.p99, it.proof_bytes.max, it.own_bytes.p50)
    return (
        title(it),
        f"{it.keys:,}",
        f"{it.callbacks:,}",
        *(f"{size:,}" for size in sizes),
        percent(it.pov_share.p99),
        f"{it.latency_blocks.p50}/{it.latency_blocks.p99}",
        f"{it.incomplete_blocks:,}",
    )
