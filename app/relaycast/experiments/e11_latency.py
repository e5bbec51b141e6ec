"""E11: how many relay blocks lie between publishing a value and the callback, and what makes them more.

Bursts of values from one publisher at a fixed interval: more of them than a parachain can send with a block, or more
than a reader's budget holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.contest import Contest
from relaycast.experiments.ground.feeds import UPSTREAM_A_BLOCK
from relaycast.experiments.ground.simulations import percentile
from relaycast.scenario.policy_choice import PolicyTable

PUBLISHER, VALUE_BYTES = 2_000, 100
EVERY = 12
BLOCK_SECONDS = 6
SENT = (1, 64, 256, 512, 1_024)
"""Values in a burst, with all the budget there is."""

READ, SHARES = 128, (1.0, 0.5, 0.25, 0.125)
"""Values in a burst, and the budget, of what a block with all of them takes."""

PACES = ((2, 0), (1, 2), (2, 2))
"""Relay blocks between a parachain's blocks, and how much older than the newest its relay parents are."""

PACED = 16
"""Values in a burst at these paces."""

SENDING, READING, PACE = "sending", "reading", "pace"


class HeldUpBurst(Row, frozen=True, kw_only=True):
    """Bursts of ``values`` and what holds them up.

    That is ``sending`` more than fits a block, ``reading`` with a short budget, or the ``pace`` of the parachains.
    """

    held_up_by: str
    values: int
    budget_share: float | None
    relay_blocks_per_block: int
    relay_parent_offset: int
    blocks: int
    delivered: int
    overtaken: int
    least_blocks: int
    p50_blocks: int
    p99_blocks: int
    most_blocks: int
    p50_seconds: int
    p99_seconds: int


def measure(scale: Scale) -> list[HeldUpBurst]:
    """Send bursts of every size, and read with every budget."""
    return list(_rows(scale))


def _rows(scale: Scale) -> Iterator[HeldUpBurst]:
    blocks = scale.pick(3, 1) * EVERY
    for values in scale.pick(SENT, (1, 256, 512)):
        contest = Contest({PUBLISHER: values}, VALUE_BYTES, scale.seed, every=EVERY, blocks=blocks)
        yield _row(contest, SENDING, values, None, 1 << 24)
    contest = Contest({PUBLISHER: READ}, VALUE_BYTES, scale.seed, every=EVERY, blocks=blocks)
    demand = contest.demand()
    for share in scale.pick(SHARES, SHARES[:3:2]):
        yield _row(contest, READING, READ, share, round(share * demand))
    for every, offset in scale.pick(PACES, PACES[:1]):
        paced = replace(
            contest, publishers={PUBLISHER: PACED}, relay_blocks_per_block=every, relay_parent_offset=offset
        )
        yield _row(paced, PACE, PACED, None, 1 << 24)


def _row(contest: Contest, held_up_by: str, values: int, share: float | None, budget_bytes: int) -> HeldUpBurst:
    outcome = contest.run(budget_bytes, PolicyTable(budget="remaining:100"))
    seen = outcome.of(PUBLISHER)
    latencies = [delivery.latency_blocks for delivery in seen]
    p50, p99 = percentile(latencies, 50) or 0, percentile(latencies, 99) or 0
    return HeldUpBurst(
        held_up_by=held_up_by,
        values=values,
        budget_share=share,
        relay_blocks_per_block=contest.relay_blocks_per_block,
        relay_parent_offset=contest.relay_parent_offset,
        blocks=len(outcome.records),
        delivered=len(seen),
        overtaken=sum(delivery.conflated for delivery in seen),
        least_blocks=min(latencies),
        p50_blocks=p50,
        p99_blocks=p99,
        most_blocks=max(latencies),
        p50_seconds=p50 * BLOCK_SECONDS,
        p99_seconds=p99 * BLOCK_SECONDS,
    )


def answer(rows: Sequence[HeldUpBurst]) -> str:
    """Say what a value takes, and what adds to it."""
    sending = [row for row in rows if row.held_up_by == SENDING]
    reading = [row for row in rows if row.held_up_by == READING and row.budget_share != 1]
    free = [row.values for row in sending if row.most_blocks == sending[0].most_blocks]
    sent = ", ".join(f"{row.most_blocks} blocks for {row.values:,}" for row in sending if row.values > max(free))
    first, *shorter = reading
    read = "".join(f", {row.p50_blocks} and {row.p99_blocks} with {row.budget_share:.1%}" for row in shorter)
    least = sending[0].least_blocks
    held = [row for row in rows if row.held_up_by == PACE]
    paced = ", ".join(f"{row.most_blocks} {'' if at else 'blocks '}{_pace(row)}" for at, row in enumerate(held))
    return (
        f"A value takes {least} relay blocks ({least * BLOCK_SECONDS} s) from the block that sends it to the block "
        f"that gets it, up to {max(free)} values at once; it takes at most {paced}; larger bursts wait for the "
        f"{UPSTREAM_A_BLOCK} that a parachain may send with a block: at most {sent}; a reader short of budget takes "
        f"{first.p50_blocks} blocks at p50 and {first.p99_blocks} at p99 with {first.budget_share:.1%} of it{read} "
        f"(short budgets with bursts of {READ} values every {EVERY} blocks; {VALUE_BYTES} bytes each; one parachain "
        f"block on every relay block of {BLOCK_SECONDS} s unless said; one relay block for backing and availability "
        "together)."
    )


def _pace(row: HeldUpBurst) -> str:
    older = f"with relay parents {row.relay_parent_offset} blocks old"
    rarer = f"with a parachain block on every {row.relay_blocks_per_block} relay blocks"
    if not row.relay_parent_offset:
        return rarer
    return older if row.relay_blocks_per_block == 1 else "with both"


def chart(rows: Sequence[HeldUpBurst]) -> Chart:
    """Draw the latencies of all cases."""
    cases = tuple(_case(row) for row in rows)
    marks = (("least", "least_blocks"), ("p50", "p50_blocks"), ("p99", "p99_blocks"))
    return Chart(
        title="Relay blocks from publication to callback, in bursts",
        mark="bar",
        x=Axis(
            field="case", title="values at once, and the budget of what they need", names=True, order=cases, angle=-30
        ),
        y=Axis(field="blocks", title="relay blocks"),
        colour=Axis(field="mark", title="", names=True, order=tuple(name for name, _ in marks)),
        points=[
            {"case": _case(row), "blocks": getattr(row, field), "mark": name} for row in rows for name, field in marks
        ],
        width=520,
    )


def _case(row: HeldUpBurst) -> str:
    if row.held_up_by == PACE:
        return f"{row.values:,}, every {row.relay_blocks_per_block}, offset {row.relay_parent_offset}"
    return f"{row.values:,}, {'ample' if row.budget_share is None else f'{row.budget_share:.1%}'}"


EXPERIMENT = Experiment(
    name="E11",
    slug="latency",
    question="How long does a value take?",
    row=HeldUpBurst,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Published at block t, applied by the relay chain at t + 1, proven to a reader's block at t + 2. On this clock "
        "a parachain block is backed and available one relay block after it is built, and no block is lost to a fork. "
        "A network that takes longer for these delivers later by the difference.",
        "The outbox counts: a value is published when a block could first have sent it.",
    ),
)
