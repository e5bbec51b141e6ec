"""E18: how long a block computes when a publisher changes every key, and who waits where a limit bounds callbacks.

The attack is that of ``relaycast attack callbacks``.
"""

from collections.abc import Iterator, Sequence

from relaycast.attacks import CallbackReport, TimeTaken, callbacks
from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale

ALONE, UNLIMITED, LIMITED = "no attack", "no limit", "limit"
LIMIT_US = 500_000
USUAL_US = 10_000
"""Microseconds of a callback in the answer: some hundred database accesses."""


class CallbackRow(Row, frozen=True, kw_only=True):
    """One attack with one limit; times of a block in microseconds, latencies in relay blocks."""

    run: str
    keys: int
    callback_us: int
    limit_us: int
    """0 is no limit."""

    declared_us: int
    """Time of all callbacks for the attacker's keys."""

    block_us_p50: int
    block_us_max: int
    max_block_us: int
    refused_blocks: int
    waiting_blocks: int
    """Blocks that left callbacks to the next one."""

    blocks: int
    callbacks: int
    overtaken: int
    """Values of the bystanders that were overwritten before their reader saw them."""

    heard: int
    """Values of the bystanders that their reader saw."""

    latency_p99: int
    """That of the slowest bystander."""

    lost: int


def measure(scale: Scale) -> list[CallbackRow]:
    """Attack with callbacks of several lengths, without a limit and with several."""
    blocks = scale.pick(48, 24)
    times = scale.pick((1_000, 2_000, 5_000, 7_500, USUAL_US, 20_000, 50_000), (1_000, USUAL_US))
    limits = scale.pick((LIMIT_US, 1_000_000), (LIMIT_US,))
    rows: list[CallbackRow] = []
    for callback_us in times:
        for limit_us in limits:
            report = callbacks(blocks=blocks, callback_us=callback_us, limit_us=limit_us, seed=scale.seed)
            assert not report.violations, report.violations[0]
            rows.extend(row for row in _rows(report) if row.run == LIMITED or limit_us == limits[0])
    return rows


def _rows(report: CallbackReport) -> Iterator[CallbackRow]:
    runs = ((ALONE, report.alone, 0), (UNLIMITED, report.unlimited, 0), (LIMITED, report.limited, report.limit_us))
    for run, taken, limit_us in runs:
        yield _row(report, run, taken, limit_us)


def _row(report: CallbackReport, run: str, taken: TimeTaken, limit_us: int) -> CallbackRow:
    others = [it.attacked if run == LIMITED else it.alone for it in report.bystanders]
    return CallbackRow(
        run=run,
        keys=report.keys,
        callback_us=report.callback_us,
        limit_us=limit_us,
        declared_us=report.keys * report.callback_us,
        block_us_p50=taken.ref_time.p50 // 1_000_000,
        block_us_max=taken.ref_time.max // 1_000_000,
        max_block_us=report.max_ref_time // 1_000_000,
        refused_blocks=taken.refused_blocks,
        waiting_blocks=taken.waiting_blocks,
        blocks=taken.blocks,
        callbacks=taken.callbacks,
        overtaken=sum(it.conflated for it in others),
        heard=sum(it.callbacks for it in others),
        latency_p99=max(it.latency_blocks.p99 or 0 for it in others),
        lost=report.lost if run == LIMITED else 0,
    )


def answer(rows: Sequence[CallbackRow]) -> str:
    """Say from which callbacks on blocks do not fit, and what a limit costs others."""
    unlimited = [row for row in rows if row.run == UNLIMITED]
    limited = [row for row in rows if row.run == LIMITED]
    usual = next(row for row in unlimited if row.callback_us == USUAL_US)
    held = next(row for row in limited if (row.callback_us, row.limit_us) == (USUAL_US, LIMIT_US))
    alone = next(row for row in rows if row.run == ALONE and row.callback_us == USUAL_US)
    refused = sum(row.refused_blocks for row in limited)
    too_long = min(row.callback_us for row in unlimited if row.refused_blocks)
    values = held.overtaken + held.heard
    return (
        f"Without a limit, a publisher that changes {usual.keys} keys in every block, with callbacks of "
        f"{USUAL_US // 1_000} ms, makes its reader's blocks compute {usual.block_us_p50 / 1e6:.2f} of "
        f"{usual.max_block_us / 1e6:g} seconds; of these blocks, {usual.refused_blocks} of {usual.blocks} are refused; "
        f"some blocks are refused from callbacks of {too_long / 1_000:g} ms on; with a limit of {LIMIT_US / 1e6:g} s "
        f"the longest block takes {held.block_us_max / 1e6:.2f} s; of {sum(row.blocks for row in limited):,} blocks "
        f"with any limit, {refused} are refused and {sum(row.lost for row in limited)} values are lost; others pay in "
        f"time: p99 of {held.latency_p99} relay blocks instead of {alone.latency_p99}, and "
        f"{held.overtaken / values:.0%} of their values are overtaken (three other publishers of the same reader, "
        "whose callbacks take as long; limits count what callbacks declare, and these take what they declare)."
    )


def chart(rows: Sequence[CallbackRow]) -> Chart:
    """Draw the time of the longest block against that of a callback."""
    names = {(row.run, row.limit_us): _named(row) for row in rows if row.run != ALONE}
    return Chart(
        title="Time of a block under heavy callbacks",
        mark="line",
        x=Axis(field="callback_ms", title="time of a callback (ms)", log=True),
        y=Axis(field="seconds", title="longest block (s)", log=True),
        colour=Axis(field="limit", title="", names=True, order=tuple(names.values())),
        points=[
            {"callback_ms": row.callback_us / 1e3, "seconds": row.block_us_max / 1e6, "limit": _named(row)}
            for row in rows
            if row.run != ALONE
        ],
        rules=((rows[0].max_block_us / 1e6, "what a block may take"),),
    )


def _named(row: CallbackRow) -> str:
    return UNLIMITED if row.run == UNLIMITED else f"limit of {row.limit_us / 1e6:g} s"


EXPERIMENT = Experiment(
    name="E18",
    slug="callback-weight",
    question="How long may callbacks take, and who waits where they are bounded?",
    row=CallbackRow,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "The time of a block is modelled: reads of the pass, callbacks as they are declared, and what the "
        "subscriptions weigh. A parachain has two seconds.",
        "Every round of the keys takes as many blocks as their callbacks take limits: a reader of more, or of heavier "
        "ones, sees each of them less often. Publishers whose values change rarely wait for the same round.",
        "One more change than a limit has room for ends a pass there, and the next block goes on with it; a collator "
        "has no say in that.",
    ),
    first_cut=(
        "Expected: the limit costs as many blocks as the callbacks of a round take limits (2.77 s over 0.5 s are 6). "
        "Confirmed: 5 blocks more than without the attack."
    ),
)
