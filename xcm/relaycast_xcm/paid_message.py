"""A message that pays for itself, as parachains send it to the relay chain.

The fees leave the sender's account, buy the weight of the message, and what they did not buy returns to that account,
whether or not an instruction failed.

>>> from relaycast_xcm.instructions import Publish
>>> message = paid_message([Publish(bytes(32), b"5.31")], fees=100_000_000, account=Location.parachain(2000))
>>> [type(instruction).__name__ for instruction in message]
['WithdrawAsset', 'BuyExecution', 'SetAppendix', 'Publish']
"""

from collections.abc import Sequence

from relaycast_xcm.assets import AllCounted, Asset, Wild
from relaycast_xcm.codec import MAX_INSTRUCTIONS_TO_DECODE
from relaycast_xcm.instructions import (
    BuyExecution,
    DepositAsset,
    Instruction,
    RefundSurplus,
    SetAppendix,
    WithdrawAsset,
    Xcm,
)
from relaycast_xcm.location import Location

PAYMENT_INSTRUCTIONS = 3
"""Instructions that stand before those which are paid for."""

REFUND_INSTRUCTIONS = 2
"""Instructions of the appendix."""

MAX_PAID_INSTRUCTIONS = MAX_INSTRUCTIONS_TO_DECODE - PAYMENT_INSTRUCTIONS - REFUND_INSTRUCTIONS
"""Instructions that one message can pay for: a receiver decodes 100, nested ones counted."""


def paid_message(instructions: Sequence[Instruction], *, fees: int, account: Location) -> Xcm:
    """Return a message that pays up to ``fees`` planck from ``account`` and executes ``instructions``.

    ``ValueError`` for more than ``MAX_PAID_INSTRUCTIONS`` of them.
    """
    if len(instructions) > MAX_PAID_INSTRUCTIONS:
        raise ValueError(f"a message pays for at most {MAX_PAID_INSTRUCTIONS} instructions, got {len(instructions)}")
    payment = Asset.fungible(Location.here(), fees)
    refund = (RefundSurplus(), DepositAsset(Wild(AllCounted(1)), account))
    return (WithdrawAsset((payment,)), BuyExecution(payment, None), SetAppendix(refund), *instructions)
