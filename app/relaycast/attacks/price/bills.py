"""Harm and cost of an attack: the fields of a price, each labelled exact, modelled or assumed."""

from msgspec import Struct

from relaycast.attacks.price.ground import Course
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.transaction_payment import BYTE_FEE
from relaycast_pallets.xcm import WeightToFee
from relaycast_xcm import Weight

BLOCKS_A_DAY = 14_400
"""Relay blocks of six seconds."""

SIGNED_BYTES = 106
"""A signed extrinsic without its call: length, version, address, signature, mortality, nonce, tip, metadata mode."""

REGISTER_BYTES = SIGNED_BYTES + 6
"""With ``register_publisher``: the indices of pallet and call, and the parachain's id."""

RENEW_BYTES = SIGNED_BYTES + 3 + 2 * 6
"""With ``batch_all`` of ``deregister_publisher`` and ``register_publisher``."""

LABELS = {
    "harm": "exact: the nodes, callbacks and blocks of this run, before compression unless said; compute is modelled",
    "publications, messages, message_bytes": "exact: the messages of this run",
    "deposit_planck": "exact under the preset polkadot, the draft's plan; held while registered, then returned",
    "fees of messages": "modelled: executed with Polkadot's XCM benchmarks of June 2025 and its price of ref_time, "
    "Publish with Westend's placeholder; proof size is free, the fee multiplier is 1",
    "fees of transactions": "modelled: the transaction payment pallet with declared weights, of lengths that are "
    "assumed",
    "callbacks": "assumed: what each takes in the attacks on callbacks; other callbacks take nothing",
    "a day": "assumed: 14,400 relay blocks, of which the attack uses each as those that were run",
    "left out": "what a parachain pays to build blocks (coretime, collators), tips, and what a token is worth",
}
"""How each field of a price is known."""


class Harm(Struct, frozen=True, kw_only=True):
    """The harm to one reader: means over its blocks under attack, minus those of the same run without it."""

    pov_bytes: float | None = 0.0
    """Bytes of the PoV before compression; ``None`` where the attack does not aim at blocks.

    Below 0, readers get fewer bytes than without the attack.
    """

    compressed_bytes: float | None = 0.0
    """Bytes of the PoV as it is sent."""

    relay_bytes: float | None = 0.0
    """Part of ``pov_bytes``: the relay proof."""

    own_bytes: float | None = 0.0
    """Part of ``pov_bytes``: the reader's own state, as a compact proof."""

    callbacks: float = 0.0
    """Callbacks of the attacker's keys."""

    ref_time_us: float = 0.0
    """Microseconds of computation, callbacks included."""

    missed_callbacks: float = 0.0
    """Callbacks of other publishers that the attack prevents."""

    missing_values: float = 0.0
    """Keys of other publishers that stand without a value."""

    delay_blocks: int = 0
    """Relay blocks by which the latest value of others comes later, over the run."""

    incomplete_blocks: int = 0
    """Blocks that end incomplete, over the run."""

    oversize_blocks: int = 0
    """Blocks that the relay chain refuses because they carry or compute too much, over the run."""

    disabled: tuple[int, ...] = ()
    """Publishers that readers disable."""

    relay_share: float = 0.0
    """The attack's share of a relay block's ``ref_time``."""


class Bill(Struct, frozen=True, kw_only=True):
    """Messages, bytes and planck of the attackers in a day, under one kind of execution."""

    publications: int
    messages: int
    message_bytes: int
    once_planck: int
    """Planck before the first strike: for registrations and preparing messages."""

    day_planck: int


class AttackPrice(Struct, frozen=True, kw_only=True):
    """One line of the table: an attack, its harm, its cost, and who pays."""

    attack: str
    meaning: str
    payer: str
    harm: Harm
    deposit_planck: int
    """Held while the attack lasts, not spent."""

    free: Bill
    """If messages of ``Publish`` alone run without payment, as drafted."""

    paid: Bill
    """If the same publications are sent in messages that pay for their execution."""

    free_planck_a_byte: int | None
    paid_planck_a_byte: int | None
    """A day's fees for one byte of PoV more in each block of every reader; ``None`` where messages add none."""


def priced(
    attack: str, meaning: str, harm: Harm, *, free: Bill, paid: Bill, deposit_planck: int, payer: str = "publisher"
) -> AttackPrice:
    """Return the line, with the price of a byte."""
    return AttackPrice(
        attack=attack,
        meaning=meaning,
        payer=payer,
        harm=harm,
        deposit_planck=deposit_planck,
        free=free,
        paid=paid,
        free_planck_a_byte=_a_byte(free, harm.pov_bytes),
        paid_planck_a_byte=_a_byte(paid, harm.pov_bytes),
    )


def bill_of(course: Course, *, blocks: int, registered: int) -> Bill:
    """Return a day of ``course``, struck for ``blocks``, by ``registered`` publishers."""
    struck = course.struck
    return Bill(
        publications=_a_day(struck.publications, blocks),
        messages=_a_day(struck.messages, blocks),
        message_bytes=_a_day(struck.message_bytes, blocks),
        once_planck=course.once.fees_planck + registered * registration_fee(),
        day_planck=_a_day(struck.fees_planck, blocks),
    )


def transactions_bill(*, once_planck: int = 0, day_planck: int = 0) -> Bill:
    """Return the bill of an attack that publishes nothing."""
    return Bill(publications=0, messages=0, message_bytes=0, once_planck=once_planck, day_planck=day_planck)


def registration_fee() -> int:
    """Return the planck that ``register_publisher`` costs its signer."""
    return transaction_fee(REGISTER_BYTES, POLKADOT.weight("register_publisher"))


def renewal_fee(entries: int) -> int:
    """Return the fee in planck of a batch that deregisters a publisher with ``entries`` and registers it again."""
    weight = POLKADOT.weight("deregister_publisher", k=entries) + POLKADOT.weight("register_publisher")
    return transaction_fee(RENEW_BYTES, weight)


def transaction_fee(length: int, weight: Weight) -> int:
    """Return the planck that an extrinsic of ``length`` bytes costs, without a tip (``FeeDetails``)."""
    prices = WeightToFee()
    return prices.fee(prices.extrinsic_base) + length * BYTE_FEE + prices.fee(weight)


def _a_day(of_blocks: int, blocks: int) -> int:
    return of_blocks * BLOCKS_A_DAY // blocks


def _a_byte(bill: Bill, added: float | None) -> int | None:
    return None if added is None or added < 1 or not bill.messages else round(bill.day_planck / added)
