"""E20: the cost of each attack to the attacker, beside its harm to every subscriber.

The attacks are those of ``relaycast attack price``.
"""

from collections.abc import Sequence

from relaycast.attacks.price import AttackPrice, PriceReport, price
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
    report = price(keys=keys, blocks=blocks, attacks=attacks, budget_bytes=budget_bytes, seed=scale.seed)
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
    most = {attack: max((row for row in ample if row.attack == attack), key=lambda it: it.keys) for attack in WIDENING}
    (starved,) = (row for row in rows if row.budget_bytes is not None and row.attack == DEEP)
    found = {row.attack: row for row in rows if row.attack in OTHERS}
    deep, large, short = most[DEEP], most["large-values"], most["heartbeat"]
    spam, squat, heavy, metered = (found[name] for name in ("spam", "squat", "callbacks", "metered-callbacks"))
    free = max(row.free_day_planck for row in most.values())
    bytes_added = ", ".join(
        f"{row.pov_bytes:,.0f} bytes ({row.compressed_bytes:,.0f} compressed) by {name}" for name, row in most.items()
    )
    a_byte = ", ".join(f"{_dot(row.paid_planck_a_byte)} by {name}" for name, row in most.items())
    return (
        f"Where messages of Publish run free, an attack on every subscriber costs its publisher a deposit of "
        f"{_dot(deep.deposit_planck)} DOT, which it gets back, and {_dot(free)} DOT a day, and adds {bytes_added} to "
        f"each block of each; where the same messages pay, one byte more in each block of every subscriber costs "
        f"{a_byte}, in DOT a day: deep paths are the cheapest, {_dot(deep.paid_day_planck)} DOT a day for {deep.keys} "
        f"values a block; in a budget of {starved.budget_bytes:,} bytes deep paths make others miss "
        f"{starved.missed_callbacks:g} of {OTHERS_CALLBACKS} callbacks a block; long values cost about what short ones "
        f"do, because nothing prices a byte "
        f"({_dot(large.paid_day_planck)} DOT a day for {large.keys} values of 2,048 bytes in every block, "
        f"{_dot(short.paid_day_planck)} for 16 bytes); a flood that takes {spam.relay_share:.0%} of a relay block, of "
        f"which others miss {spam.missed_callbacks:g} callbacks a block, costs {_dot(spam.deposit_planck)} DOT of "
        f"deposits free and {_dot(spam.paid_day_planck)} DOT a day paid; squatting on an id costs "
        f"{_dot(squat.deposit_planck)} DOT of deposit and {_dot(squat.free_day_planck)} DOT a day of transactions; "
        f"{heavy.keys} callbacks of {CALLBACK_MS} ms each make {heavy.oversize_blocks} of {heavy.blocks} blocks exceed "
        f"their time for {_dot(heavy.deposit_planck)} DOT of deposit free and {_dot(heavy.paid_day_planck)} DOT a day "
        f"paid, and with a limit of 500 ms of callbacks {metered.oversize_blocks} of them, while others miss "
        f"{metered.missed_callbacks:g} of {OTHERS_CALLBACKS} callbacks a block; a path that is too deep disables its "
        f"own publisher, once, for {_dot(found['depth'].paid_once_planck)} DOT, "
        f"and a lie costs a collator its block and no fee (means of {deep.blocks} blocks beyond the same run without "
        f"the attack, bytes of PoV before compression unless said, {deep.keys} deep paths and {large.keys} keys of the "
        f"others; fees modelled with Polkadot's benchmarks and Westend's placeholder for Publish, 14,400 relay blocks "
        f"a day)."
    )


def _dot(planck: int | None) -> str:
    assert planck is not None, "these attacks make blocks larger"
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
        "Modelled: fees of messages, executed with Polkadot's XCM benchmarks of June 2025 and its price of ref_time; "
        "Publish has no benchmark and weighs Westend's placeholder with the accesses of the pallet; proof size is "
        "free, the fee multiplier is 1.",
        "Modelled: fees of transactions, from declared weights and lengths of 112 and 121 bytes that are assumed.",
        "Left out: what a parachain pays to build blocks at all (coretime and collators), and what a token is worth. "
        "System parachains hold no deposit.",
        "Assumed: callbacks of the attacks on callbacks take 40 ms each, all others nothing.",
        "Deep paths: 225 keys beside each read key, published once, make each of its 16 nodes a full branch, as deep "
        "as MaxTrieDepth allows.",
    ),
)
