"""What a run says on the terminal: a few lines that answer what it cost."""

from relaycast.outcome import SubscriberOutcome
from relaycast.report import percent, story, title
from relaycast.run import Finished
from relaycast.terminal import console, print_table

COLUMNS = (
    "subscriber",
    "keys",
    "callbacks",
    "proof p50",
    "p99",
    "max",
    "of PoV p99",
    "latency p50",
    "p99",
    "incomplete",
)
MAX_VIOLATIONS = 10


def print_summary(finished: Finished) -> None:
    """Print the outcome and where its files are."""
    run = finished.outcome
    out = console()
    out.print(
        f"[bold]{run.name}[/bold]  {run.blocks:,} relay blocks, seed {run.seed}, genesis {run.relaychain.genesis}"
    )
    out.print()
    print_table(out, COLUMNS, map(_row, run.subscribers), right=COLUMNS[1:])
    out.print()
    out.print(story(run))
    out.print()
    if run.invariants.ok:
        out.print("[green]every invariant held[/green]")
    for violation in run.invariants.violations[:MAX_VIOLATIONS]:
        out.print(f"violated: {violation}", style="red", markup=False)
    left_out = len(run.invariants.violations) - MAX_VIOLATIONS
    if left_out > 0:
        out.print(f"... and {left_out} more, all in run.json")
    out.print(f"report: {finished.folder / 'report.html'}", markup=False, soft_wrap=True)


def _row(it: SubscriberOutcome) -> tuple[str, ...]:
    return (
        title(it),
        f"{it.keys:,}",
        f"{it.callbacks:,}",
        f"{it.proof_bytes.p50:,} B",
        f"{it.proof_bytes.p99:,} B",
        f"{it.proof_bytes.max:,} B",
        percent(it.pov_share.p99),
        f"{it.latency_blocks.p50} blocks",
        str(it.latency_blocks.p99),
        str(it.incomplete_blocks),
    )
