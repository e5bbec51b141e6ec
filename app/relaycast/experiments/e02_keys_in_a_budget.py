"""E2: how many keys of a publisher fit a block's budget, when all of them are to be proven at once.

Exact child tries; and two networks in which a reader sees its publisher first with just that budget.
"""

from collections.abc import Callable, Sequence
from random import Random

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.exact_tries import ExactTrie, Keys, hashed_keys
from relaycast.experiments.ground.feeds import PUBLISHER, READER, UPSTREAM_A_BLOCK
from relaycast.network import Network
from relaycast.predict.closed_forms import entry_bytes, full_proof
from relaycast.scenario.workload import value_of
from relaycast_pallets.parachain_system.relay_budget import Remaining

BUDGETS = (50_000, 250_000, 1_250_000, 2_250_000, 3_750_000, 8_912_896)
"""Bytes; from 250 kB to 3.75 MB those that the draft's plan reckons with, the last 85 % of 10 MiB."""

PLANNED = {250_000: 93, 1_250_000: 463, 2_250_000: 833, 3_750_000: 1_389}
"""Keys of 384 bytes out of 5,000 that the draft's plan fits in."""

KEYS = (1_000, 5_000, 100_000)
VALUE_BYTES = (16, 384, 2_048)
NETWORKS = ((250_000, 384), (50_000, 16))
"""Budget and bytes of a value; their reader wants every key of a publisher."""


class Fitting(Row, frozen=True, kw_only=True):
    """A budget, and how many keys fit it; ``source`` is ``trie`` for drawn keys of an exact trie, or ``network``."""

    source: str
    budget_bytes: int
    keys: int
    value_bytes: int
    fit: int
    all_fit: bool
    proof_bytes: int
    bytes_per_key: float
    planned: int | None
    formula_fit: int | None
    """What the closed form for full proofs says."""


def measure(scale: Scale) -> list[Fitting]:
    """Draw keys until the budget is full."""
    rows: list[Fitting] = []
    for count in scale.pick(KEYS, KEYS[:2]):
        keys = hashed_keys(count, seed=scale.seed)
        drawn = keys[Random(f"{scale.seed} {count}").sample(range(count), count)]  # noqa: S311
        for value_bytes in VALUE_BYTES:
            trie = ExactTrie(keys, entry_bytes=entry_bytes(value_bytes))
            rows += [_fitting(trie, drawn, value_bytes, budget) for budget in BUDGETS]
    return [*rows, *(_in_a_network(scale, *network) for network in scale.pick(NETWORKS, NETWORKS[1:]))]


def _fitting(trie: ExactTrie, drawn: Keys, value_bytes: int, budget: int) -> Fitting:
    def size(count: int) -> int:
        return trie.proof_size(drawn[:count]).proof_bytes if count else 0

    fit = largest(size, budget, len(drawn))
    proof_bytes = size(fit)
    of_the_plan = len(drawn) == 5_000 and value_bytes == 384
    return Fitting(
        source="trie",
        budget_bytes=budget,
        keys=len(drawn),
        value_bytes=value_bytes,
        fit=fit,
        all_fit=fit == len(drawn),
        proof_bytes=proof_bytes,
        bytes_per_key=round(proof_bytes / max(1, fit), 1),
        planned=PLANNED.get(budget) if of_the_plan else None,
        formula_fit=largest(
            lambda count: full_proof(len(drawn), count, value_bytes).proof_bytes if count else 0, budget, len(drawn)
        ),
    )


def largest(size: Callable[[int], int], limit: int, most: int) -> int:
    """Return the largest number up to ``most`` whose ``size``, which never falls, stays within ``limit``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(middle) <= limit else (low, middle - 1)
    return low


def _in_a_network(scale: Scale, budget: int, value_bytes: int) -> Fitting:
    """Return what a reader gets in its first block with news, all keys of a publisher being news."""
    network, keys = Network(seed=scale.seed), 1_000
    publisher = network.publisher(PUBLISHER)
    values = {f"key/{index}": value_of(scale.seed, PUBLISHER, index, 0, value_bytes) for index in range(keys)}
    feeds = publisher.publish_many(values)
    for _ in range(-(-keys // UPSTREAM_A_BLOCK) + 2):
        network.ledger.step()
    network.subscriber(READER, keys=feeds, budget=Remaining(100), max_pov_bytes=budget)
    records = [record for _ in range(3) for record in network.ledger.step() if record.deliveries]
    first = records[0]
    relay_bytes = first.proof_bytes - first.static_bytes
    return Fitting(
        source="network",
        budget_bytes=budget,
        keys=keys,
        value_bytes=value_bytes,
        fit=len(first.deliveries),
        all_fit=first.complete,
        proof_bytes=relay_bytes,
        bytes_per_key=round(relay_bytes / len(first.deliveries), 1),
        planned=None,
        formula_fit=None,
    )


def answer(rows: Sequence[Fitting]) -> str:
    """Say what fits, beside what the plan says."""
    plan = [row for row in rows if row.planned is not None]
    least, most = plan[0], plan[-1]
    small = [row for row in rows if row.source == "trie" and row.value_bytes == VALUE_BYTES[0] and row.keys == 5_000]
    tried = [row for row in rows if row.formula_fit]
    off = max(abs((row.formula_fit or 0) / row.fit - 1) for row in tried)
    everything = next(row.budget_bytes for row in small if row.all_fit)
    return (
        f"Of {least.keys:,} keys with values of {least.value_bytes} bytes, {_fit(least)} fit in "
        f"{least.budget_bytes / 1e6:g} MB, where the draft's plan has {least.planned:,}, and {_fit(most)} fit in "
        f"{most.budget_bytes / 1e6:g} MB, where it has {most.planned:,}; with values of {VALUE_BYTES[0]} bytes, "
        f"{small[0].fit:,} fit in {small[0].budget_bytes / 1e6:g} MB and all 5,000 in {everything / 1e6:g} MB (keys "
        "drawn at random from one child trie; all proven in one block with nothing cached; the budget is what is left "
        f"for pub-sub; static keys are not charged to it; the closed form is within {off:.0%})."
    )


def _fit(row: Fitting) -> str:
    return f"all {row.fit:,}" if row.all_fit else f"{row.fit:,}"


def chart(rows: Sequence[Fitting]) -> Chart:
    """Draw keys against budgets."""
    return Chart(
        title="Keys that fit a budget, proven at once",
        mark="line",
        x=Axis(field="budget", title="budget for pub-sub, bytes", log=True),
        y=Axis(field="fit", title="keys that fit", log=True),
        colour=Axis(field="keys", title="keys of the publisher", names=True, order=tuple(f"{it:,}" for it in KEYS)),
        panel=Axis(field="value", title="bytes of a value", names=True, order=tuple(f"{it:,}" for it in VALUE_BYTES)),
        points=[
            {"budget": row.budget_bytes, "fit": row.fit, "keys": f"{row.keys:,}", "value": f"{row.value_bytes:,}"}
            for row in rows
            if row.source == "trie"
        ],
        width=230,
    )


EXPERIMENT = Experiment(
    name="E2",
    slug="keys-in-a-budget",
    question="How many keys fit a budget?",
    row=Fitting,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "The plan's figures are modelled: 2.7 kB a key, from a perfectly full tree and without state version 1.",
        "A reader takes keys in their order, neighbours share nodes: in the networks more keys fit than when drawn.",
        "A publisher has at most 4,000 keys and 2 MiB under the plan's limits; larger figures take several of them.",
    ),
    first_cut=(
        "The draft's plan expected 93 keys in 250 kB and 1,389 in 3.75 MB. It reckons 2.7 kB for each key at any "
        "number; keys share their upper nodes, so that the more are read the less each takes."
    ),
)
