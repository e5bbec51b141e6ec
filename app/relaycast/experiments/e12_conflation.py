"""E12: how many values are overtaken by newer ones before their reader sees them.

A relay chain's state holds the last value of a key. A reader whose budget is short, or who looks less often than
values change, skips what came between.
"""

from collections.abc import Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.contest import Contest
from relaycast.scenario.policy_choice import PolicyTable

PUBLISHER, KEYS, VALUE_BYTES = 2_000, 120, 384
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""The budget, of what a block with all values new takes."""

PACES = (1, 2, 4, 8)
"""Blocks between new values."""


class Conflation(Row, frozen=True, kw_only=True):
    """A budget and a pace, and how many values were delivered and overtaken."""

    every: int
    budget_share: float
    budget_bytes: int
    blocks: int
    delivered: int
    overtaken: int
    overtaken_share: float


def measure(scale: Scale) -> list[Conflation]:
    """Give the reader less and less, at every pace."""
    rows: list[Conflation] = []
    for every in scale.pick(PACES, PACES[:3:2]):
        contest = Contest({PUBLISHER: KEYS}, VALUE_BYTES, scale.seed, every=every, blocks=scale.pick(32, 12))
        demand = contest.demand()
        for share in scale.pick(SHARES, SHARES[1:5:3]):
            outcome = contest.run(round(share * demand), PolicyTable(budget="remaining:100"))
            seen = outcome.of(PUBLISHER)
            overtaken = sum(delivery.conflated for delivery in seen)
            rows.append(
                Conflation(
                    every=every,
                    budget_share=share,
                    budget_bytes=round(share * demand),
                    blocks=len(outcome.records),
                    delivered=len(seen),
                    overtaken=overtaken,
                    overtaken_share=round(overtaken / (overtaken + len(seen)), 4),
                )
            )
    return rows


def answer(rows: Sequence[Conflation]) -> str:
    """Say what is overtaken."""
    short = sorted((row for row in rows if row.every == 1 and row.budget_share < 1), key=lambda row: row.budget_share)
    least, most = short[0], short[-1]
    safe: dict[int, float] = {}
    for row in sorted(rows, key=lambda row: -row.budget_share):
        if row.every > 1 and not row.overtaken:
            safe[row.every] = row.budget_share
    slow = ", ".join(f"{share:.0%} for {every} blocks" for every, share in sorted(safe.items()))
    longer = f"; of values that stay longer, none is overtaken from these budgets on: {slow}" if slow else ""
    return (
        f"When all change in every block, {least.overtaken_share:.0%} of values are overtaken unseen at "
        f"{least.budget_share:.0%} of the budget needed and {most.overtaken_share:.0%} at {most.budget_share:.0%}, "
        f"about what the budget falls short{longer} (of the budgets tried; {KEYS} keys of {VALUE_BYTES} bytes of one "
        "publisher; a reader gets the newest value, never a queue)."
    )


def chart(rows: Sequence[Conflation]) -> Chart:
    """Draw what is overtaken against the budget."""
    return Chart(
        title="Values overtaken before their reader sees them",
        mark="line",
        x=Axis(field="share", title="budget, of what all values at once need", percent=True),
        y=Axis(field="overtaken", title="values overtaken", percent=True),
        colour=Axis(field="every", title="blocks between values", names=True, order=tuple(map(str, PACES))),
        points=[{"share": row.budget_share, "overtaken": row.overtaken_share, "every": str(row.every)} for row in rows],
    )


EXPERIMENT = Experiment(
    name="E12",
    slug="conflation",
    question="How many values are overtaken before they are seen?",
    row=Conflation,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Values counted are those that reached the relay chain; one that is overtaken was there for at least a block.",
        "An event stream needs a key for each event, or messages: pub-sub carries state.",
    ),
)
