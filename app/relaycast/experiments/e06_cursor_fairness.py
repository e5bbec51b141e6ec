"""E6: whether the cursor treats publishers alike when the budget is short, in either order of publishers.

Eight public publishers with equal feeds and one reader. All values change in every block, or in bursts with quiet
blocks between, in which the reader catches up.
"""

from collections.abc import Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.contest import Contest, fairness, mean_latency, p99_latency
from relaycast.scenario.policy_choice import PolicyTable

PUBLISHERS = tuple(range(2_000, 2_008))
KEYS, VALUE_BYTES = 10, 100
ORDERS = ("shuffled", "numeric")
BURSTS = (1, 3)
SHARES = (0.25, 0.5, 0.75, 0.9)
"""The budget, of what a block with all values new takes."""


class Fairness(Row, frozen=True, kw_only=True):
    """A budget under an order; ``first`` and ``last`` are the publishers with the lowest and the highest number."""

    order: str
    every: int
    budget_share: float
    budget_bytes: int
    blocks: int
    complete_share: float
    delivered_share: float
    """Share of the published values; overtaken ones count as not delivered."""

    fairness: float
    """Jain's index over the publishers' callbacks."""

    fewest_callbacks: int
    most_callbacks: int
    best_mean_latency: float
    worst_mean_latency: float
    first_mean_latency: float
    last_mean_latency: float
    p99_latency_blocks: int


def measure(scale: Scale) -> list[Fairness]:
    """Give the reader less and less."""
    rows: list[Fairness] = []
    for every in BURSTS:
        contest = Contest(
            dict.fromkeys(PUBLISHERS, KEYS), VALUE_BYTES, scale.seed, every=every, blocks=scale.pick(36, 9)
        )
        demand = contest.demand()
        for share in scale.pick(SHARES, SHARES[1:2]):
            rows += [_row(contest, order, share, round(share * demand)) for order in ORDERS]
    return rows


def _row(contest: Contest, order: str, share: float, budget_bytes: int) -> Fairness:
    outcome = contest.run(budget_bytes, PolicyTable(order=order, budget="remaining:100"))
    by_publisher = [outcome.of(para_id) for para_id in PUBLISHERS]
    latencies = [mean_latency(deliveries) or 0.0 for deliveries in by_publisher]
    everything = outcome.of(*PUBLISHERS)
    bursts = sum(record.tick % contest.every == 0 for record in outcome.records)
    return Fairness(
        order=order,
        every=contest.every,
        budget_share=share,
        budget_bytes=budget_bytes,
        blocks=len(outcome.records),
        complete_share=outcome.complete_share,
        delivered_share=round(len(everything) / (bursts * KEYS * len(PUBLISHERS)), 4),
        fairness=fairness([len(deliveries) for deliveries in by_publisher]),
        fewest_callbacks=min(map(len, by_publisher)),
        most_callbacks=max(map(len, by_publisher)),
        best_mean_latency=min(latencies),
        worst_mean_latency=max(latencies),
        first_mean_latency=latencies[0],
        last_mean_latency=latencies[-1],
        p99_latency_blocks=p99_latency(everything) or 0,
    )


def answer(rows: Sequence[Fairness]) -> str:
    """Say who gets how much, and who waits."""
    least = min(row.fairness for row in rows)
    steady = [row for row in rows if row.every == 1]
    first, *others = (row for row in steady if row.order == ORDERS[0])
    shares = "".join(f", {row.delivered_share:.0%} at {row.budget_share:.0%}" for row in others)
    late = max(row.p99_latency_blocks for row in steady)
    half = {row.order: row for row in rows if row.every == BURSTS[1] and row.budget_share == SHARES[1]}
    numeric, shuffled = half["numeric"], half["shuffled"]
    return (
        "The cursor shares a short budget out evenly among publishers: Jain's index of their callbacks is at least "
        f"{least:.3f}, in numeric as in shuffled order; when everything changes in every block, "
        f"{first.delivered_share:.0%} of the values come through at {first.budget_share:.0%} of the budget "
        f"needed{shares}; of what then comes through, 99% is {late} blocks old at most; in bursts at "
        f"{numeric.budget_share:.0%} of the budget needed, numeric order makes the highest number wait "
        f"{numeric.last_mean_latency:.2f} blocks on average and the lowest {numeric.first_mean_latency:.2f}; in "
        f"shuffled order the worst off then waits {shuffled.worst_mean_latency:.2f} blocks and the best off "
        f"{shuffled.best_mean_latency:.2f} ({len(PUBLISHERS)} public publishers with {KEYS} keys of {VALUE_BYTES} "
        f"bytes; bursts every {BURSTS[1]} blocks; an undisturbed value takes 2)."
    )


def chart(rows: Sequence[Fairness]) -> Chart:
    """Draw the latencies of the best and the worst off."""
    return Chart(
        title="How long the best and the worst off publisher wait",
        mark="line",
        x=Axis(field="share", title="budget, of what is needed", percent=True, zero=False),
        y=Axis(field="latency", title="mean blocks from publication to callback", zero=False),
        colour=Axis(field="order", title="order of publishers", names=True, order=ORDERS),
        dash=Axis(field="which", title="", names=True, order=("worst off", "best off")),
        panel=Axis(field="every", title="", names=True, order=_PANELS),
        points=[
            {"share": row.budget_share, "latency": latency, "order": row.order, "which": which, "every": _panel(row)}
            for row in rows
            for which, latency in (("worst off", row.worst_mean_latency), ("best off", row.best_mean_latency))
        ],
        width=250,
    )


_PANELS = ("new in every block", f"bursts every {BURSTS[1]} blocks")


def _panel(row: Fairness) -> str:
    return _PANELS[row.every != 1]


EXPERIMENT = Experiment(
    name="E6",
    slug="cursor-fairness",
    question="Does the cursor treat publishers alike?",
    row=Fairness,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "A pass that is cut short goes on in the next block from its cursor, in the same order; a new pass begins when "
        "one is complete. Where the budget never suffices no pass ends and the cursor goes round and round.",
        "The budget is metered: nodes read from the cache count.",
    ),
)
