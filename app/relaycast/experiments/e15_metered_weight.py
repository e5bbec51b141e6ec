"""E15: what the meter charges against what a block really carries, and how a budget holds under each metering.

Metered are reads of the relay proof and of the cache. Carried are the nodes of the relay proof, and those of the
parachain's own state, for reading the cache and for rewriting it.
"""

from collections.abc import Sequence

from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast.experiments.ground.feeds import Feeds
from relaycast.experiments.ground.simulations import mean
from relaycast.scenario.policy_choice import PolicyTable
from relaycast_pallets.frame.weights import parse_weights
from relaycast_xcm.primitives import ROCKS_DB

METERINGS = EVERY_READ, VALUES_ONLY, CARRIED = "every-read", "values-only", "carried"
KEYS, READ = 400, 200
CHANGED = (1, 10, 50, 200)
QUICK_READ, QUICK_CHANGED = 60, (10, 60)
VALUE_BYTES = (16, 384)
TIGHT_BYTES_PER_KEY = 100
"""Bytes of the largest block for each subscribed key, where the budget is short: 85 % of it are shared out."""

BENCHMARKED = parse_weights(
    """
    fn process_published_data(n: u32, k: u32) -> Weight {
        Weight::from_parts(51_000_000, 5187)
            .saturating_add(Weight::from_parts(33_087_314, 0).saturating_mul(n.into()))
            .saturating_add(Weight::from_parts(311_706_924, 0).saturating_mul(k.into()))
            .saturating_add(T::DbWeight::get().reads(1))
            .saturating_add(T::DbWeight::get().writes(1))
    }
    """,
    source="the draft's subscriber weights.rs, asset-hub-westend, 2025-12-16",
)
"""``n`` publishers with ``k`` keys in all."""


class Metered(Row, frozen=True, kw_only=True):
    """A pace of changes under a metering, with room for all or with a tight budget; bytes a block, means."""

    metering: str
    tight: bool
    value_bytes: int
    read: int
    changed: int
    blocks: int
    budget_bytes: float
    metered_bytes: float
    relay_bytes: float
    own_bytes: float
    metered_of_relay: float
    metered_of_both: float
    most_over_budget: float
    """The largest relay proof beyond the static keys, of the budget of its block."""

    both_over_budget: float
    """Relay and own proof together, of the budget: the mean."""

    violations: int
    """Invariants found broken: more read than is allowed."""

    metered_ref_time: float
    benchmark_ref_time: int
    """What the draft's benchmark gives for one publisher and the changed keys."""

    benchmark_bytes: int
    callbacks: float


def measure(scale: Scale) -> list[Metered]:
    """Meter every pace in each way, with room and without."""
    return [
        _row(scale, metering, tight, value_bytes, changed)
        for metering in METERINGS
        for tight in (False, True)
        for value_bytes in scale.pick(VALUE_BYTES, VALUE_BYTES[:1])
        for changed in scale.pick(CHANGED, QUICK_CHANGED)
    ]


def _row(scale: Scale, metering: str, tight: bool, value_bytes: int, changed: int) -> Metered:
    keys, read = scale.pick((KEYS, READ), (QUICK_READ, QUICK_READ))
    feeds = Feeds.settled(
        keys=keys,
        read=read,
        value_bytes=value_bytes,
        seed=scale.seed,
        policies=PolicyTable(metering=metering),
        max_pov_bytes=TIGHT_BYTES_PER_KEY * read if tight else None,
    )
    records = feeds.blocks(scale.pick(6, 4), changed=changed, held_to_invariants=metering != VALUES_ONLY)
    relay = [record.proof_bytes - record.static_bytes for record in records]
    metered, own = mean(it.consumed.proof_size for it in records), mean(it.own_bytes for it in records)
    benchmark = BENCHMARKED["process_published_data"].at(ROCKS_DB, n=1, k=changed)
    return Metered(
        metering=metering,
        tight=tight,
        value_bytes=value_bytes,
        read=read,
        changed=changed,
        blocks=len(records),
        budget_bytes=mean(record.budget_bytes for record in records),
        metered_bytes=metered,
        relay_bytes=mean(relay),
        own_bytes=own,
        metered_of_relay=round(metered / mean(relay), 4),
        metered_of_both=round(metered / (mean(relay) + own), 4),
        most_over_budget=round(max(size / record.budget_bytes for size, record in zip(relay, records, strict=True)), 4),
        both_over_budget=round((mean(relay) + own) / mean(record.budget_bytes for record in records), 4),
        violations=feeds.network.ledger.invariants.violated,
        metered_ref_time=mean(record.consumed.ref_time for record in records),
        benchmark_ref_time=benchmark.ref_time,
        benchmark_bytes=benchmark.proof_size,
        callbacks=mean(len(record.deliveries) for record in records),
    )


def answer(rows: Sequence[Metered]) -> str:
    """Say how far the meter is off, and whether budgets hold."""
    every = [row for row in rows if row.metering == EVERY_READ and not row.tight]
    low, high = min(row.metered_of_relay for row in every), max(row.metered_of_relay for row in every)
    least, most = min(row.metered_of_both for row in every), max(row.metered_of_both for row in every)
    over = {metering: max(row.most_over_budget for row in rows if row.metering == metering) for metering in METERINGS}
    small = [row for row in rows if row.metering == VALUES_ONLY and not row.tight and row.value_bytes == 16]
    share = max(row.metered_of_relay for row in small)
    full = max((row for row in every if row.value_bytes == 16), key=lambda row: row.changed)
    both = {metering: max(row.both_over_budget for row in rows if row.metering == metering) for metering in METERINGS}
    return (
        f"Charging every read meters {low:.2f} to {high:.2f} times the relay proof, but only {least:.0%} to {most:.0%} "
        "of relay and own proof together; nodes of the cache are charged as well, rewriting the cache is not; the "
        f"relay proof stays within its budget, {over[EVERY_READ]:.0%} of it at most; relay and own proof together "
        f"reach {both[EVERY_READ]:.1f} times a tight budget, and {both[CARRIED]:.1f} times where all that a block "
        f"carries is charged; charging values alone meters {share:.0%} of a proof with values of 16 bytes, and lets "
        f"relay proofs grow to {over[VALUES_ONLY]:.1f} times their budget; with all {full.changed} keys new, reads are "
        f"charged {full.metered_ref_time / 1e9:.1f} ms, and the draft's benchmark gives "
        f"{full.benchmark_ref_time / 1e9:.1f} ms; that benchmark gives {full.benchmark_bytes:,} bytes for the "
        f"{full.relay_bytes:,.0f} of the relay proof ({full.read} subscribed keys; values of 16 and 384 bytes; with "
        f"room for all and with 85 % of {TIGHT_BYTES_PER_KEY * full.read:,} bytes; no time was measured)."
    )


def chart(rows: Sequence[Metered]) -> Chart:
    """Draw what is metered beside what is carried."""
    parts = (("relay proof", "relay_bytes"), ("own proof", "own_bytes"))
    order = ("relay proof", "own proof", *(f"metered: {it}" for it in METERINGS))
    every = [row for row in rows if not row.tight]
    points = [
        {"changed": row.changed, "bytes": getattr(row, field), "what": name, "value": f"{row.value_bytes:,}"}
        for row in every
        if row.metering == EVERY_READ
        for name, field in parts
    ]
    points += [
        {
            "changed": row.changed,
            "bytes": row.metered_bytes,
            "what": f"metered: {row.metering}",
            "value": f"{row.value_bytes:,}",
        }
        for row in every
    ]
    return Chart(
        title="What a block carries for pub-sub, and what the meter charges",
        mark="line",
        x=Axis(field="changed", title="keys that change in a block", log=True),
        y=Axis(field="bytes", title="bytes a block", log_from_zero=True),
        colour=Axis(field="what", title="", names=True, order=order),
        panel=Axis(field="value", title="bytes of a value", names=True, order=tuple(f"{it:,}" for it in VALUE_BYTES)),
        points=points,
        width=280,
    )


EXPERIMENT = Experiment(
    name="E15",
    slug="metered-weight",
    question="Does the meter charge what a block carries?",
    row=Metered,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "A read is charged 25 us (RocksDB) and its bytes; the benchmark is the draft's, whose keys and publishers are "
        "its components; both are published figures, neither was timed here.",
        "Under charging values alone the invariant that no more is read than allowed breaks, as it should.",
        "Where nothing but inline values is read, charging values alone meters 0 bytes.",
    ),
)
