"""The price of each attack beside its harm: every attack is run, with free messages and with messages that pay.

An attack is one entry of ``MEASURED``: a function that measures it under given terms. Attacks that are made of
publications are entries of ``GRIEFERS`` and need no function of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from relaycast.attacks.bystander import Bystander, bystander
from relaycast.attacks.lying_collator import LieReport, extra, omit
from relaycast.attacks.price.bills import (
    BLOCKS_A_DAY,
    LABELS,
    AttackPrice,
    Harm,
    bill_of,
    priced,
    registration_fee,
    renewal_fee,
    transactions_bill,
)
from relaycast.attacks.price.griefers import GRIEFERS, Griefer
from relaycast.attacks.price.ground import ATTACKER, FEEDS, FIRST_READER, Course, PriceGround, Terms
from relaycast.attacks.squatted_ids import PUBLIC, squat
from relaycast_collator.relay_chain import BLOCK_WEIGHT
from relaycast_ledger import BlockRecord
from relaycast_ledger.pov import PovSize

SQUAT_EVERY, SQUAT_BLOCKS = 4, 24
"""As in ``relaycast attack squat``: late readers lose values only after some blocks."""

LIES_OF_A_KIND = 2
"""Ways to tell each lie in each block."""


class PriceReport(Struct, frozen=True, kw_only=True):
    """Harm and cost of every attack. ``labels`` say which figures are exact, modelled or assumed."""

    keys: int
    blocks: int
    budget_bytes: int | None
    readers: int
    seed: int
    blocks_a_day: int
    rows: tuple[AttackPrice, ...]
    labels: dict[str, str]
    violations: tuple[str, ...]

    def of(self, attack: str) -> AttackPrice:
        """Return the line of an attack; ``KeyError`` if it was not measured."""
        return {row.attack: row for row in self.rows}[attack]

    def __repr__(self) -> str:
        return f"<PriceReport of {len(self.rows)} attacks, {self.keys} keys>"


class Measuring:
    """State shared by a table's measurements: terms, courses without an attack, and broken invariants."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.violations: list[str] = []
        self._alone: dict[int, Course] = {}

    def alone(self, prepared_in: int) -> Course:
        """Return the course without an attack that is as long as one with ``prepared_in`` blocks of preparation."""
        if prepared_in not in self._alone:
            self._alone[prepared_in] = self.noted(PriceGround(self.terms).course(prepared_in))
        return self._alone[prepared_in]

    def noted(self, course: Course) -> Course:
        """Return ``course``, and record the invariants that it broke."""
        self.violations += course.violations
        return course


Measure = Callable[[Measuring], AttackPrice]


def price(terms: Terms, attacks: Sequence[str] = ()) -> PriceReport:
    """Price ``attacks``, by default all; ``ValueError`` for one that is not in ``MEASURED``."""
    unknown = [name for name in attacks if name not in MEASURED]
    if unknown:
        raise ValueError(f"attacks must be among {', '.join(MEASURED)}, got {', '.join(unknown)}")
    measuring = Measuring(terms)
    rows = tuple(measure(measuring) for name, measure in MEASURED.items() if name in attacks or not attacks)
    return PriceReport(
        keys=terms.keys,
        blocks=terms.blocks,
        budget_bytes=terms.budget_bytes,
        readers=terms.readers,
        seed=terms.seed,
        blocks_a_day=BLOCKS_A_DAY,
        rows=rows,
        labels=LABELS,
        violations=tuple(measuring.violations),
    )


def price_griefer(griefer: Griefer, measuring: Measuring) -> AttackPrice:
    """Run a griefer with free and with paid messages; its harm is that of the free ones."""
    grounds = [PriceGround(measuring.terms, griefer, pays=pays) for pays in (False, True)]
    prepared_in = grounds[0].prepared_in()
    free, paid = (measuring.noted(ground.course(prepared_in)) for ground in grounds)
    blocks = measuring.terms.blocks
    return priced(
        griefer.name,
        griefer.meaning,
        _harm(measuring.alone(prepared_in), free, blocks),
        free=bill_of(free, blocks=blocks, registered=griefer.publishers),
        paid=bill_of(paid, blocks=blocks, registered=griefer.publishers),
        deposit_planck=free.deposit_planck,
        payer="publisher" if griefer.publishers == 1 else f"{griefer.publishers} publishers",
    )


def price_squat(measuring: Measuring) -> AttackPrice:
    """Squat on an unregistered public id; its transactions pay fees even where messages run free."""
    terms = measuring.terms
    blocks = max(terms.blocks, SQUAT_BLOCKS)
    report = squat(every=SQUAT_EVERY, blocks=blocks, seed=terms.seed, trie_engine=terms.trie_engine)
    measuring.violations += report.violations
    row = report.rows[0]
    bill = transactions_bill(
        once_planck=registration_fee(),
        day_planck=renewal_fee(len(PUBLIC.keys)) * BLOCKS_A_DAY // report.every,
    )
    harm = Harm(
        pov_bytes=None,
        compressed_bytes=None,
        relay_bytes=None,
        own_bytes=None,
        missed_callbacks=round(max(map(_missed, row.bystanders)) / blocks, 1),
        missing_values=round(row.missing_values / blocks, 1),
        delay_blocks=max(map(_delay, row.bystanders)),
    )
    meaning = f"an account registers the parachain of others and removes its values every {report.every} blocks"
    return priced("squat", meaning, harm, free=bill, paid=bill, deposit_planck=row.deposit_planck, payer="account")


def price_lies(measuring: Measuring) -> AttackPrice:
    """Let collators lie: a caught lie costs a block, one that passes delays callbacks by a block."""
    terms = measuring.terms
    reports: list[LieReport] = [
        tell(blocks=terms.blocks, samples=LIES_OF_A_KIND, seed=terms.seed, trie_engine=terms.trie_engine)
        for tell in (omit, extra)
    ]
    for report in reports:
        measuring.violations += report.violations
        measuring.violations += [f"undetected: {escape}" for escape in report.escapes]
    told, caught = sum(it.told for it in reports), sum(it.caught for it in reports)
    late = max(it.most_held_back for it in reports)
    harm = Harm(delay_blocks=1)
    meaning = (
        f"collators leave out or invent nodes and messages: {caught:,} of {told:,} lies cost the block, one that "
        f"passes puts off {late} callbacks at most"
    )
    bill = transactions_bill()
    return priced("lies", meaning, harm, free=bill, paid=bill, deposit_planck=0, payer="collator, with its block")


def _harm(alone: Course, attacked: Course, blocks: int) -> Harm:
    before, after = alone.of(FIRST_READER), attacked.of(FIRST_READER)
    others = [bystander(int(feed.para_id), FIRST_READER, before, after) for feed in FEEDS]

    def added(measured: Callable[[BlockRecord], int]) -> float:
        return (sum(map(measured, after)) - sum(map(measured, before))) / blocks

    def carried(measured: Callable[[PovSize], int]) -> float:
        return added(lambda record: 0 if record.pov is None else measured(record.pov))

    ref_time = attacked.relay_ref_time - alone.relay_ref_time
    return Harm(
        pov_bytes=round(carried(lambda pov: pov.pov_bytes), 1),
        compressed_bytes=round(carried(lambda pov: pov.sent_bytes), 1),
        relay_bytes=round(added(lambda it: it.proof_bytes), 1),
        own_bytes=round(carried(lambda pov: pov.own_bytes), 1),
        callbacks=round(added(_attackers_callbacks), 1),
        ref_time_us=round(carried(lambda pov: pov.ref_time) / 1_000_000, 1),
        missed_callbacks=round(sum(map(_missed, others)) / blocks, 1),
        delay_blocks=max(map(_delay, others)),
        incomplete_blocks=round(added(lambda it: not it.complete) * blocks),
        oversize_blocks=sum(it.pov is not None and it.pov.is_oversize for it in after),
        disabled=tuple(sorted({*attacked.disabled} - {*alone.disabled})),
        relay_share=round(ref_time / blocks / BLOCK_WEIGHT.ref_time, 6),
    )


def _attackers_callbacks(record: BlockRecord) -> int:
    return sum(delivery.publisher == ATTACKER for delivery in record.deliveries)


def _missed(it: Bystander) -> int:
    return max(0, it.alone.callbacks - it.attacked.callbacks)


def _delay(it: Bystander) -> int:
    """Return the extra latency of the latest value in blocks; 0 if none comes, as it counts as missed."""
    before, after = it.alone.latency_blocks.max, it.attacked.latency_blocks.max
    return 0 if before is None or after is None else max(0, after - before)


MEASURED: Mapping[str, Measure] = {
    **{griefer.name: partial(price_griefer, griefer) for griefer in GRIEFERS},
    "squat": price_squat,
    "lies": price_lies,
}
"""The measurement of each attack, by the name of its line."""
