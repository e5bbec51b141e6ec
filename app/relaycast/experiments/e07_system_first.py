"""E7: what it is worth to be a system parachain, whose publications are read before all others.

Eight publishers with equal feeds and one reader whose budget is short; some of them are system parachains.
"""

from collections.abc import Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.contest import Contest, mean_latency
from relaycast.scenario.policy_choice import PolicyTable

PUBLISHERS, KEYS, VALUE_BYTES = 8, 10, 100
SYSTEM = (1, 4, 7)
BURSTS = (1, 3)
SHARES = (0.25, 0.5, 0.75)
"""The budget, of what a block with all values new takes."""


class SystemFirst(Row, frozen=True, kw_only=True):
    """System and public publishers under one budget: what of their values arrives, and when."""

    system_publishers: int
    every: int
    budget_share: float
    blocks: int
    complete_share: float
    system_callbacks_each: float
    public_callbacks_each: float
    system_mean_latency: float
    public_mean_latency: float


def measure(scale: Scale) -> list[SystemFirst]:
    """Let more and more of the publishers be system parachains."""
    rows: list[SystemFirst] = []
    for every in BURSTS:
        for system in scale.pick(SYSTEM, SYSTEM[1:2]):
            first = [*range(1_000, 1_000 + system)]
            rest = [*range(2_000, 2_000 + PUBLISHERS - system)]
            contest = Contest(
                dict.fromkeys((*first, *rest), KEYS),
                VALUE_BYTES,
                scale.seed,
                every=every,
                blocks=scale.pick(36, 9),
            )
            demand = contest.demand()
            shares = scale.pick(SHARES, SHARES[1:2])
            rows += [_row(contest, first, rest, share, round(share * demand)) for share in shares]
    return rows


def _row(contest: Contest, first: list[int], rest: list[int], share: float, budget_bytes: int) -> SystemFirst:
    outcome = contest.run(budget_bytes, PolicyTable(budget="remaining:100"))
    system, public = outcome.of(*first), outcome.of(*rest)
    return SystemFirst(
        system_publishers=len(first),
        every=contest.every,
        budget_share=share,
        blocks=len(outcome.records),
        complete_share=outcome.complete_share,
        system_callbacks_each=round(len(system) / len(first), 1),
        public_callbacks_each=round(len(public) / len(rest), 1),
        system_mean_latency=mean_latency(system) or 0.0,
        public_mean_latency=mean_latency(public) or 0.0,
    )


def answer(rows: Sequence[SystemFirst]) -> str:
    """Say what being first is worth, and when it is worth nothing."""
    endless = [row for row in rows if row.complete_share == 0]
    passing = [row for row in rows if row.complete_share > 0]
    gap = max(abs(row.system_callbacks_each / row.public_callbacks_each - 1) for row in endless)
    worst = max(passing, key=lambda row: row.public_mean_latency - row.system_mean_latency)
    fewest = min(row.public_callbacks_each / row.system_callbacks_each for row in passing)
    return (
        f"Being read first is worth up to {worst.public_mean_latency - worst.system_mean_latency:.2f} blocks: in "
        f"bursts, system parachains wait {worst.system_mean_latency:.2f} blocks on average and the others "
        f"{worst.public_mean_latency:.2f}; the others still get at least {fewest:.0%} as many values through; where "
        f"the budget never suffices, no pass ends and being first is worth nothing: callbacks differ by {gap:.0%} at "
        f"most ({KEYS} keys of {VALUE_BYTES} bytes each, new in every block or in bursts every {BURSTS[1]}; shuffled "
        f"order; most is gained by {worst.system_publishers} system parachains of {PUBLISHERS} publishers, at "
        f"{worst.budget_share:.0%} of the budget needed)."
    )


def chart(rows: Sequence[SystemFirst]) -> Chart:
    """Draw latencies of both kinds in bursts."""
    kinds = ("system", "public")
    return Chart(
        title="How long system and other publishers wait, in bursts",
        mark="line",
        x=Axis(field="share", title="budget, of what is needed", percent=True, zero=False),
        y=Axis(field="latency", title="mean blocks from publication to callback", zero=False),
        colour=Axis(field="kind", title="", names=True, order=kinds),
        panel=Axis(
            field="system",
            title=f"system parachains among {PUBLISHERS} publishers",
            names=True,
            order=tuple(map(str, SYSTEM)),
        ),
        points=[
            {"share": row.budget_share, "latency": latency, "kind": kind, "system": str(row.system_publishers)}
            for row in rows
            if row.every == BURSTS[1]
            for kind, latency in zip(kinds, (row.system_mean_latency, row.public_mean_latency), strict=True)
        ],
        width=230,
    )


EXPERIMENT = Experiment(
    name="E7",
    slug="system-first",
    question="What is it worth to be a system parachain?",
    row=SystemFirst,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "System parachains come first in a pass; a pass that was cut short goes on from its cursor, whoever is there.",
        "Without a cursor that is kept until the pass is complete, system parachains could shut the others out.",
    ),
)
