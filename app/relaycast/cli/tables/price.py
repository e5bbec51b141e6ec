"""How the prices of attacks are printed: what each harms, what it costs, and which figures are exact."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from relaycast.terminal import console, counted, print_table
from relaycast_pallets.broadcaster.config import UNITS

if TYPE_CHECKING:
    from relaycast.attacks.price import AttackPrice, PriceReport

HARMS = (
    "attack",
    "PoV bytes",
    "zstd",
    "proof",
    "own state",
    "callbacks",
    "compute (ms)",
    "others: missed",
    "gone",
    "delay (blocks)",
    "cut short",
    "refused",
    "disabled",
    "relay block",
)
COSTS = (
    "attack",
    "paid by",
    "publications a day",
    "MB a day",
    "deposit (DOT)",
    "once, paid (DOT)",
    "a day, free (DOT)",
    "a day, paid (DOT)",
    "a byte, free (DOT)",
    "a byte, paid (DOT)",
)

ON_SCREEN = {
    "publications, messages, message_bytes": "publications, MB",
    "deposit_planck": "deposit",
    "callbacks": "time of callbacks",
}
"""What the tables call the fields that labels are about."""


def print_prices(report: "PriceReport") -> None:
    """Print what attacks harm, what they cost, and how the figures are known."""
    out = console()
    budget = "85% of a PoV" if report.budget_bytes is None else f"{report.budget_bytes:,} bytes"
    out.print(
        f"[bold]price[/bold]  {counted(len(report.rows), 'attack')} on subscribers of {counted(report.keys, 'key')} of "
        f"the attacker, {report.blocks} relay blocks each, a budget of {budget}, seed {report.seed}\n"
    )
    width = max(len(row.attack) for row in report.rows)
    for row in report.rows:
        out.print(f"{row.attack:{width}}  {row.meaning}", markup=False)
    out.print("\nharm, added to each block of every subscriber:")
    print_table(out, HARMS, map(_harm, report.rows), right=HARMS[1:])
    out.print("\ncost:")
    print_table(out, COSTS, map(_cost, report.rows), right=COSTS[2:])
    out.print("\n".join(_notes(report)), markup=False)
    for violation in report.violations:
        out.print(f"violated: {violation}", style="red", markup=False)


def _notes(report: "PriceReport") -> Iterator[str]:
    yield ""
    yield "others: callbacks of other publishers that are missed, and keys without a value, in each block."
    yield "cut short, refused: blocks of the run that end incomplete, and that exceed what the relay chain takes."
    yield "relay block: of the weight that a relay block may use. MB: the messages that carry the publications."
    yield "once: the registration, and what is published a single time; each day comes on top."
    yield "free: messages of Publish alone run without payment, as drafted. paid: the same publications buy execution."
    yield "a byte: a day's fees for one byte of PoV more in each block of every subscriber, however many there are."
    yield ""
    for what, known in report.labels.items():
        yield f"{ON_SCREEN.get(what, what)}: {known}"


def _harm(row: "AttackPrice") -> tuple[str, ...]:
    it = row.harm
    return (
        row.attack,
        _signed(it.pov_bytes),
        _signed(it.compressed_bytes),
        _signed(it.relay_bytes),
        _signed(it.own_bytes),
        _some(it.callbacks, f"{it.callbacks:+,g}"),
        _some(round(it.ref_time_us / 1_000, 1), f"{it.ref_time_us / 1_000:+,.1f}"),
        _some(it.missed_callbacks, f"{it.missed_callbacks:,g}"),
        _some(it.missing_values, f"{it.missing_values:,g}"),
        _some(it.delay_blocks, f"+{it.delay_blocks}"),
        _some(it.incomplete_blocks, f"{it.incomplete_blocks:+}"),
        _some(it.oversize_blocks, str(it.oversize_blocks)),
        _listed(it.disabled),
        _some(round(it.relay_share, 3), f"{it.relay_share:+.1%}"),
    )


def _cost(row: "AttackPrice") -> tuple[str, ...]:
    return (
        row.attack,
        row.payer,
        _some(row.free.publications, f"{row.free.publications:,}"),
        _some(row.free.message_bytes, f"{row.free.message_bytes / 1_000_000:,.0f}"),
        _some(row.deposit_planck, f"{row.deposit_planck // UNITS:,}"),
        _dot(row.paid.once_planck),
        _dot(row.free.day_planck),
        _dot(row.paid.day_planck),
        _dot(row.free_planck_a_byte),
        _dot(row.paid_planck_a_byte),
    )


def _signed(value: float | None) -> str:
    return "-" if value is None or not round(value) else f"{value:+,.0f}"


def _some(value: float, shown: str) -> str:
    return shown if value else "-"


def _dot(planck: int | None) -> str:
    """Return an amount in DOT with three digits that count."""
    if planck is None:
        return "-"
    amount = planck / UNITS
    return f"{amount:,.0f}" if amount >= 100 or not planck else f"{amount:,.3g}"


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids)) or "-"
