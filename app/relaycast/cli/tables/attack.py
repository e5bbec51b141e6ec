"""How an attack's report is printed: what it cost, whom it harmed, and a verdict; or JSON."""

import json as json_text
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from relaycast.attacks import (
    Bystander,
    CallbackReport,
    Carried,
    ChurnReport,
    DepthReport,
    LieReport,
    LieRow,
    SpamReport,
    SquatReport,
    SquatRow,
    TimeTaken,
)
from relaycast.terminal import console, print_table
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_pallets.broadcaster.config import UNITS

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_BLOCKS = 24

FLOOD = ("block", "of weight limit", "published", "refused", "waiting messages", "waiting bytes")
OTHERS = ("publisher", "subscriber", "callbacks alone -> attacked", "overtaken", "latency p99 (blocks)", "max")
TIME = ("run", "seconds p50", "max", "blocks refused", "callbacks waited in", "callbacks")
SQUATTED = ("id", "registration", "attacker", "owner", "values removed", "missing", "deposit (DOT)")


def print_json(attack: str, report: msgspec.Struct, *, ok: bool, **derived: Any) -> None:
    """Print the whole report as one JSON object."""
    figures = msgspec.to_builtins(report)
    print(json_text.dumps({"schema": SCHEMA_VERSION, "attack": attack, "ok": ok, **derived, **figures}))


def print_spam(report: SpamReport) -> None:
    """Print what a flood cost."""
    out = console()
    out.print(
        f"[bold]spam[/bold]  {report.parachains} parachains at their limits for {report.blocks} relay blocks, "
        f"values of {report.value_bytes:,} bytes, seed {report.seed}\n"
    )
    rows = [
        (
            str(it.block),
            f"{it.weight_share:.1%}",
            f"{it.published:,}",
            f"{it.refused:,}",
            f"{it.waiting_messages:,}",
            f"{it.waiting_bytes:,}",
        )
        for it in report.series[:SHOWN_BLOCKS]
    ]
    print_table(out, FLOOD, rows, right=FLOOD)
    if len(report.series) > SHOWN_BLOCKS:
        out.print(f"... and {len(report.series) - SHOWN_BLOCKS} more (--json has all)")
    refused = ", ".join(f"{count:,} {why}" for why, count in report.refused.items()) or "none"
    growth = report.state_bytes_after - report.state_bytes_before
    out.print()
    for line in (
        f"sent       {report.sent_messages:,} messages, {report.sent_bytes:,} bytes",
        f"published  {report.published:,} values, each of {report.publish_ref_time:,} ps (modelled: not benchmarked)",
        f"refused    {refused}",
        f"state      {growth:,} bytes more in tries",
        f"stored     {report.stored_keys:,} keys, {report.stored_bytes:,} bytes as the pallet counts them",
        f"a block    fits {report.block_fits_publishes:,} publishes, of {report.block_fits_parachains:.1f} parachains",
    ):
        out.print(line, markup=False)
    _print_others(out, report.bystanders, report.carried_alone, report.carried_attacked)
    _print_verdict(
        out, report.violations, ok=not report.harmed, good="nobody else was harmed", bad="others were harmed"
    )


def print_depth(report: DepthReport) -> None:
    """Print what became of a publisher with crafted keys."""
    out = console()
    out.print(
        f"[bold]depth[/bold]  {report.crafted_keys} crafted keys against a limit of {report.limit} nodes, "
        f"{report.blocks} relay blocks, seed {report.seed}\n"
    )
    disabled = "never"
    if report.disabled_at is not None:
        disabled = f"at block {report.disabled_at} (the subscriber's #{report.disabled_at_number})"
    for line in (
        f"path       {report.path_nodes_before} nodes, then {report.path_nodes_after}",
        f"last key   sent at block {report.struck_at}",
        f"disabled   {disabled}; without that key: {', '.join(map(str, report.disabled_alone)) or 'nobody'}",
        f"since then {report.attacker_callbacks_after} callbacks of the attacker",
    ):
        out.print(line, markup=False)
    _print_others(out, report.bystanders, report.carried_alone, report.carried_attacked)
    good = "the attacker is out, nobody else was harmed"
    bad = "others were harmed" if report.harmed else "the attacker was not stopped"
    _print_verdict(out, report.violations, ok=report.contained, good=good, bad=bad)


def print_churn(report: ChurnReport) -> None:
    """Print what churned keys cost."""
    out = console()
    budget = "85% of a PoV" if report.budget_bytes is None else f"{report.budget_bytes:,} bytes"
    out.print(
        f"[bold]churn[/bold]  {report.keys} keys in and out in every block from {report.churned_at} on, "
        f"{report.blocks} relay blocks, a budget of {budget}, seed {report.seed}\n"
    )
    before, after = report.own_alone, report.own_attacked
    told = (report.target_alone.callbacks, report.target_attacked.callbacks)
    for line in (
        f"sent       {report.sent_messages:,} messages, {report.sent_bytes:,} bytes of the attacker's",
        f"own state  p50 {before.p50:,} -> {after.p50:,} B of a block, max {before.max:,} -> {after.max:,} B",
        f"callbacks  {told[0]:,} -> {told[1]:,} of the attacker's subscribed keys: their values do not change",
        f"lost       {report.lost_alone:,} -> {report.lost_attacked:,} values, once it is quiet again",
    ):
        out.print(line, markup=False)
    _print_others(out, report.bystanders, report.carried_alone, report.carried_attacked)
    _print_verdict(
        out, report.violations, ok=not report.harmed, good="nobody else was harmed", bad="others were harmed"
    )


def print_callbacks(report: CallbackReport) -> None:
    """Print how long callbacks take without a limit and with one, and who waits."""
    out = console()
    limit = "no limit" if not report.limit_us else f"a limit of {report.limit_us / 1e6:g} s a block"
    out.print(
        f"[bold]callbacks[/bold]  {report.keys} keys that change in every block from {report.struck_at} on, callbacks "
        f"of {report.callback_us:,} us, {limit}, {report.blocks} relay blocks, seed {report.seed}\n"
    )
    runs = [("alone", report.alone), ("attacked, no limit", report.unlimited)]
    runs += [("attacked, with the limit", report.limited)] if report.limit_us else []
    print_table(out, TIME, (_time(name, it) for name, it in runs), right=TIME[1:])
    out.print(f"the reader's {report.limited.blocks:,} blocks that see the attack; what follows counts the whole run\n")
    for line in (
        f"sent       {report.sent_messages:,} messages, {report.sent_bytes:,} bytes of the attacker's",
        f"callbacks  {report.target_limited.callbacks:,} for the attacker's keys, "
        f"{report.target_limited.conflated:,} values overtaken",
        f"lost       {report.lost:,} values, once it is quiet again",
        "",
    ):
        out.print(line, markup=False)
    print_table(out, OTHERS, map(_other, report.bystanders), right=OTHERS[2:])
    waits = "values of others wait" if report.harmed else "no value of others waits"
    most = f"{report.max_ref_time / 1e12:g} seconds"
    good, bad = f"every block fits its {most}; {waits}", f"{report.limited.refused_blocks} blocks exceed {most}"
    _print_verdict(out, report.violations, ok=report.contained, good=good, bad=bad)


def _time(name: str, it: TimeTaken) -> tuple[str, ...]:
    seconds = (f"{time / 1e12:.3f}" for time in (it.ref_time.p50, it.ref_time.max))
    return name, *seconds, f"{it.refused_blocks:,}", f"{it.waiting_blocks:,}", f"{it.callbacks:,}"


def print_squat(report: SquatReport) -> None:
    """Print who can squat on which id, and what readers of it lose."""
    out = console()
    out.print(
        f"[bold]squat[/bold]  an account registers a parachain of others and removes its values every "
        f"{report.every} blocks, {report.blocks} relay blocks, seed {report.seed}\n"
    )
    print_table(out, SQUATTED, map(_squatted, report.rows), right=SQUATTED[4:])
    for row in report.rows:
        if row.harmed:
            out.print(f"\nreaders of {row.para_id} under {row.registration!r} registration:", markup=False)
            print_table(out, OTHERS, map(_other, row.bystanders), right=OTHERS[2:])
    spent = sum(row.spent_planck for row in report.rows)
    out.print(
        f"\n3000 builds on every relay block, 3001 on every third, 3002 subscribes at block {report.late_from}.\n"
        "missing: keys without a value that have one without the attack, summed over all blocks.\n"
        f"Of the deposit {spent:,} planck are gone. Transaction fees are apart: relaycast attack price squat.",
        markup=False,
    )
    _print_verdict(
        out, report.violations, ok=not report.harmed, good="nobody else was harmed", bad="others were harmed"
    )


def print_lies(report: LieReport) -> None:
    """Print the matrix of lies and what caught them."""
    out = console()
    met = ", ".join(f"{count} x {kind}" for kind, count in report.moments.items())
    out.print(
        f"[bold]{report.family}[/bold]  {report.told:,} lies in {sum(report.moments.values())} subscriber blocks, "
        f"{report.blocks} relay blocks, seed {report.seed}",
    )
    out.print(f"blocks lied about: {met}\n", markup=False)
    causes = sorted({cause for row in report.rows for cause in row.caught})
    columns = ("lie", "told", *map(_words, causes), "no lie", "last min_weight", "put off", "undetected")
    print_table(out, columns, (_lie(row, causes) for row in report.rows), right=columns[1:])
    out.print()
    out.print("\n".join(_explained(report)), markup=False)
    for escape in report.escapes:
        out.print(f"undetected: {escape}", style="red", markup=False)
    good = "everything that can be caught was caught"
    bad = f"{report.undetected:,} lies went undetected"
    _print_verdict(out, report.violations, ok=not report.undetected, good=good, bad=bad)


def _words(name: str) -> str:
    """Return an error's name as words, so that a narrow terminal can break it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _lie(row: LieRow, causes: Iterable[str]) -> tuple[str, ...]:
    passed = row.no_lie, row.within_min_weight, row.put_off, row.undetected
    counts = [*(row.caught.get(cause, 0) for cause in causes), *passed]
    return row.lie.replace("_", " "), f"{row.told:,}", *(f"{count:,}" if count else "" for count in counts)


def _explained(report: LieReport) -> Iterable[str]:
    told_apart = report.caught + report.undetected
    yield f"caught {report.caught:,} of {told_apart:,} that can be caught ({report.caught / max(1, told_apart):.2%})"
    no_lie = sum(row.no_lie for row in report.rows)
    if no_lie:
        yield f"{no_lie:,} were no lies: the same nodes, and the block did what the honest one does"
    if report.within_min_weight:
        yield (
            f"{report.within_min_weight:,} left something out within the last min_weight: at most "
            f"{report.most_bytes_left:,} bytes of the budget were left, a read may take {report.min_weight_bytes:,}."
        )
        yield (
            "An honest collator may have to end there too, so no chain can tell; "
            f"up to {report.most_held_back} callbacks were put off, none was lost: the cursor stands before them."
        )

    if report.put_off:
        yield (
            f"{report.put_off:,} gave hashes for downward messages that would fit: a block must advance one, "
            "and may leave the rest to later blocks."
        )


def _squatted(row: SquatRow) -> tuple[str, ...]:
    attacker, owner = (
        _attempts(registered, refused)
        for registered, refused in (
            (row.attacker_registered, row.attacker_refused),
            (row.owner_registered, row.owner_refused),
        )
    )
    figures = f"{row.removed_values:,}", f"{row.missing_values:,}"
    deposit = f"{row.deposit_planck // UNITS:,} for {row.deposit_blocks:,} blocks" if row.deposit_blocks else "-"
    policy = f"{row.registration}, owner first" if row.owner_first else row.registration
    return str(row.para_id), policy, attacker, owner, *figures, deposit


def _attempts(registered: int, refused: Mapping[str, int]) -> str:
    parts = [f"registered {registered}x"] if registered else []
    parts += [f"{_words(why)} {count}x" for why, count in refused.items()]
    return ", ".join(parts) or "needs none"


def _print_others(out: "Console", others: Iterable[Bystander], alone: Carried, attacked: Carried) -> None:
    out.print()
    print_table(out, OTHERS, map(_other, others), right=OTHERS[2:])
    before, after = alone.proof_bytes, attacked.proof_bytes
    out.print(
        f"their subscriber's proof: p50 {before.p50:,} -> {after.p50:,} B, max {before.max:,} -> {after.max:,} B, "
        f"incomplete blocks {alone.incomplete_blocks} -> {attacked.incomplete_blocks}"
    )


def _other(it: Bystander) -> tuple[str, ...]:
    before, after = it.alone, it.attacked
    pairs = (
        (before.callbacks, after.callbacks),
        (before.conflated, after.conflated),
    )
    late = (f"{before.latency_blocks.told(which)} -> {after.latency_blocks.told(which)}" for which in ("p99", "max"))
    return str(it.publisher), str(it.subscriber), *(f"{first:,} -> {second:,}" for first, second in pairs), *late


def _print_verdict(out: "Console", violations: Iterable[str], *, ok: bool, good: str, bad: str) -> None:
    out.print()
    for violation in violations:
        out.print(f"violated: {violation}", style="red", markup=False)
    out.print(f"[green]{good}[/green]" if ok else f"[red]{bad}[/red]")
