"""E20: the cost of each attack to the attacker, beside its harm to every subscriber.

The attacks are those of ``relaycast attack price``.
"""

from collections.abc import Sequence

from relaycast.attacks.price import AttackPrice, PriceReport, Terms, price
from relaycast.attacks.price.griefers import CALLBACK_MS
from relaycast.attacks.price.ground import FEEDS
from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale
from relaycast_pallets.broadcaster.config import UNITS

KEYS = (1, 4, 16, 64, 256)
DEEP = "deep-paths"
WIDENING = (DEEP, "large-values", "deletion", "heartbeat", "churn")
"""Attacks that make every subscriber's block larger: priced for every number of keys."""

MOST_DEEP = 16
"""More keys make no more deep paths."""

TIGHT_KEYS, TIGHT_BUDGET_BYTES = 16, 65_536
"""A budget in which the bystanders of these attacks have room for all that they send."""

OTHERS = ("spam", "depth", "callbacks", "metered-callbacks", "squat", "lies")
OTHERS_KEYS = 64
OTHERS_CALLBACKS = sum(feed.per_block for feed in FEEDS)
"""Callbacks that a subscriber gets from the bystanders in every block."""


class Priced(Row, frozen=True, kw_only=True):
    """One attack on subscribers of ``keys`` of the attacker's; bytes, callbacks and time are added to each block."""

    attack: str
    keys: int
    budget_bytes: int | None
    """Bytes for messages and pub-sub in the subscriber's blocks, ``None`` for 85% of a PoV."""

    blocks: int
    publications_a_day: int
    pov_bytes: float | None
    compressed_bytes: float | None
    relay_bytes: float | None
    own_bytes: float | None
    callbacks: float
    ref_time_us: float
    missed_callbacks: float
    missing_values: float
    incomplete_blocks: int
    oversize_blocks: int
    delay_blocks: int
    disabled: int
    relay_share: float
    deposit_planck: int
    free_once_planck: int
    free_day_planck: int
    paid_once_planck: int
    paid_day_planck: int
    paid_planck_a_byte: int | None


def measure(scale: Scale) -> list[Priced]:
    """Price all attacks, those on the size of blocks by the number of keys."""
    blocks = scale.pick(12, 4)
    rows = list[Priced]()
    for keys in scale.pick(KEYS, KEYS[:3]):
        attacks = WIDENING if keys <= MOST_DEEP else WIDENING[1:]
        rows += _rows(scale, keys, blocks, attacks)
    rows += _rows(scale, TIGHT_KEYS, blocks, WIDENING, budget_bytes=TIGHT_BUDGET_BYTES)
    return rows + _rows(scale, OTHERS_KEYS, blocks, OTHERS)


def _rows(
    scale: Scale, keys: int, blocks: int, attacks: Sequence[str], *, budget_bytes: int | None = None
) -> list[Priced]:
    report = price(Terms(keys=keys, blocks=blocks, budget_bytes=budget_bytes, seed=scale.seed), attacks)
    assert not report.violations, report.violations[0]
    return [_row(report.of(attack), report) for attack in attacks]


def _row(found: AttackPrice, report: PriceReport) -> Priced:
    harm = found.harm
    return Priced(
        attack=found.attack,
        keys=report.keys,
        budget_bytes=report.budget_bytes,
        blocks=report.blocks,
        publications_a_day=found.free.publications,
        pov_bytes=harm.pov_bytes,
        compressed_bytes=harm.compressed_bytes,
        relay_bytes=harm.relay_bytes,
        own_bytes=harm.own_bytes,
        callbacks=harm.callbacks,
        ref_time_us=harm.ref_time_us,
        missed_callbacks=harm.missed_callbacks,
        missing_values=harm.missing_values,
        incomplete_blocks=harm.incomplete_blocks,
        oversize_blocks=harm.oversize_blocks,
        delay_blocks=harm.delay_blocks,
        disabled=len(harm.disabled),
        relay_share=harm.relay_share,
        deposit_planck=found.deposit_planck,
        free_once_planck=found.free.once_planck,
        free_day_planck=found.free.day_planck,
        paid_once_planck=found.paid.once_planck,
        paid_day_planck=found.paid.day_planck,
        paid_planck_a_byte=found.paid_planck_a_byte,
    )


def answer(rows: Sequence[Priced]) -> str:
    """Say what a byte in every block costs, free and paid, and what the attacks on others cost."""
    ample = [row for row in rows if row.budget_bytes is None]
    most = [max((row for row in ample if row.attack == name), key=lambda row: row.keys) for name in WIDENING]
    deep, large = most[:2]
    free = max(row.free_day_planck for row in most)
    added = max(row.pov_bytes or 0 for row in most)
    return (
        f"Where messages of Publish run free, an attacker adds as many as {added:,.0f} bytes to each block of every "
        f"subscriber for {_dot(deep.deposit_planck)} DOT of deposit and {_dot(free)} DOT a day; the publisher gets the "
        f"deposit back; {_bytes_added(most)}; {_where_messages_pay(rows, most)}; {_on_others(rows)} (means of "
        f"{deep.blocks} blocks beyond the same run without the attack; bytes of PoV before compression unless said; "
        f"{deep.keys} deep paths and {large.keys} keys of the others; fees modelled with Polkadot's benchmarks and "
        "Westend's placeholder for Publish; 14,400 relay blocks a day)."
    )


def _bytes_added(most: Sequence[Priced]) -> str:
    found = ", ".join(f"{row.pov_bytes:,.0f} ({row.attack})" for row in most)
    compressed = ", ".join(f"{row.compressed_bytes:,.0f} ({row.attack})" for row in most)
    return f"each block grows by these bytes: {found}; compressed, by these: {compressed}"


def _where_messages_pay(rows: Sequence[Priced], most: Sequence[Priced]) -> str:
    """Say what bytes cost, and what a short budget does."""
    by_attack = {row.attack: row for row in most}
    cheapest, large, short = min(most, key=_a_byte), by_attack["large-values"], by_attack["heartbeat"]
    (starved,) = (row for row in rows if row.budget_bytes is not None and row.attack == DEEP)
    a_byte = ", ".join(f"{_dot(_a_byte(row))} ({row.attack})" for row in most)
    return (
        f"where messages pay, a byte in each block of every subscriber costs, in DOT a day, {a_byte}; the cheapest "
        f"attack is {cheapest.attack}, at {_dot(cheapest.paid_day_planck)} DOT a day for {cheapest.keys} values a "
        f"block; long values cost about what short ones do, because nothing prices a byte; for {large.keys} values in "
        f"every block, a publisher pays {_dot(large.paid_day_planck)} DOT a day with 2,048 bytes each and "
        f"{_dot(short.paid_day_planck)} with 16; in a budget of {starved.budget_bytes:,} bytes deep paths make others "
        f"miss {starved.missed_callbacks:g} of {OTHERS_CALLBACKS} callbacks a block"
    )


def _on_others(rows: Sequence[Priced]) -> str:
    """Say what the attacks cost that do not widen blocks."""
    found = {row.attack: row for row in rows if row.attack in OTHERS}
    spam, squat, heavy, metered = (found[name] for name in ("spam", "squat", "callbacks", "metered-callbacks"))
    return (
        f"a flood that takes {spam.relay_share:.0%} of a relay block makes others miss {spam.missed_callbacks:g} "
        f"callbacks a block; it costs {_dot(spam.deposit_planck)} DOT of deposits where messages run free, and "
        f"{_dot(spam.paid_day_planck)} DOT a day where they pay; squatting on an id costs {_dot(squat.deposit_planck)} "
        f"DOT of deposit and {_dot(squat.free_day_planck)} DOT a day of transactions; with {heavy.keys} callbacks of "
        f"{CALLBACK_MS} ms each, {heavy.oversize_blocks} of {heavy.blocks} blocks exceed their time; that costs "
        f"{_dot(heavy.deposit_planck)} DOT of deposit where messages run free, and {_dot(heavy.paid_day_planck)} DOT a "
        f"day where they pay; with a limit of 500 ms of callbacks {metered.oversize_blocks} blocks exceed it, and "
        f"others miss {metered.missed_callbacks:g} of {OTHERS_CALLBACKS} callbacks a block; a path that is too deep "
        f"disables its own publisher, once, for {_dot(found['depth'].paid_once_planck)} DOT; a lie costs a collator "
        "its block and no fee"
    )


def _a_byte(row: Priced) -> int:
    assert row.paid_planck_a_byte is not None, "these attacks make blocks larger"
    return row.paid_planck_a_byte


def _dot(planck: int) -> str:
    amount = planck / UNITS
    return f"{amount:,.0f}" if amount >= 100 or not planck else f"{amount:.3g}"


def chart(rows: Sequence[Priced]) -> Chart:
    """Draw fees against bytes in every block."""
    return Chart(
        title="What bytes in every block of every subscriber cost, where messages pay",
        mark="line",
        x=Axis(field="bytes", title="bytes of PoV added to each block, before compression", log=True),
        y=Axis(field="fees", title="fees, DOT a day", log=True),
        colour=Axis(field="attack", title="", names=True, order=WIDENING),
        points=[
            {"bytes": row.pov_bytes, "fees": row.paid_day_planck / UNITS, "attack": row.attack}
            for row in rows
            if row.attack in WIDENING and row.budget_bytes is None
        ],
    )


EXPERIMENT = Experiment(
    name="E20",
    slug="price-of-attacks",
    question="What does an attack cost its publisher?",
    row=Priced,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Exact: bytes, callbacks and messages, from runs with and without the attack, against a subscriber that reads "
        "all keys of the attacker and ten keys each of three others.",
        "Exact under the draft's plan for Polkadot: the deposit of 100 DOT a publisher, which is held and returned.",
        "Modelled: fees of messages, executed with Polkadot's XCM benchmarks of June 2025 and its price of ref_time. "
        "Publish has no benchmark: it weighs Westend's placeholder with the accesses of the pallet. Proof size is "
        "free, the fee multiplier is 1.",
        "Modelled: fees of transactions, from declared weights and lengths of 112 and 121 bytes that are assumed.",
        "Left out: what a parachain pays to build blocks at all (coretime and collators), and what a token is worth. "
        "System parachains hold no deposit.",
        "Assumed: callbacks of the attacks on callbacks take 40 ms each, all others nothing.",
        "Deep paths: 225 keys beside each read key, published once, make each of its 16 nodes a full branch, as deep "
        "as MaxTrieDepth allows.",
    ),
)
