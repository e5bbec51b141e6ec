"""A parachain's account on the relay chain: what it pays the fees of its messages with.

>>> import relaycast as rc
>>> net = rc.Network()
>>> account = net.publisher(2000).account
>>> account.fund(10_000_000_000)
>>> net.run(blocks=1), account
(<Run of 1 blocks: ...>, <Account of 2000, 1 DOT>)
"""

from functools import partial

import relaycast_collator as collator
from relaycast_pallets.broadcaster.config import UNITS
from relaycast_pallets.xcm import CENT
from relaycast_xcm import ParaId, Weight, parachain_account

FEES = 2 * CENT
"""What a publication may cost unless something else is said: alone in its message it costs half of that."""

MAX_AMOUNT = 2**64 - 1
"""Planck that one call issues or one publication pays at most."""


class Account:
    """The sovereign account of a parachain; amounts are in planck, of which one DOT has 10,000,000,000."""

    def __init__(self, para_id: ParaId, chains: collator.ChainSimulator) -> None:
        self._para_id = para_id
        self._chains = chains

    @property
    def id(self) -> bytes:
        """The 32 bytes of the account."""
        return parachain_account(self._para_id)

    @property
    def balance(self) -> int:
        """What the account owns."""
        return self._chains.relay_chain.balances.free(self.id)

    def fund(self, amount: int) -> None:
        """Issue ``amount`` to the account with the next relay block."""
        amount = planck(amount, "an amount")
        call = partial(self._chains.relay_chain.fund, self._para_id, amount)
        self._chains.call(call, declared=Weight.ZERO)

    def __repr__(self) -> str:
        return f"<Account of {self._para_id}, {dot(self.balance)}>"


def planck(amount: int, what: str) -> int:
    """Return ``amount``; ``TypeError`` or ``ValueError`` for what is no amount above zero."""
    if type(amount) is bool or not isinstance(amount, int):
        raise TypeError(f"{what} must be a whole number of planck, got {amount!r} of type {type(amount).__name__}")
    if not 0 < amount <= MAX_AMOUNT:
        raise ValueError(f"{what} must be from 1 to {MAX_AMOUNT} planck, got {amount}")
    return amount


def dot(amount: int) -> str:
    """Return an amount of planck in DOT, as ``0.0003 DOT``."""
    whole, rest = divmod(amount, UNITS)
    fraction = f"{rest:010}".rstrip("0")
    return f"{whole:,}{'.' if fraction else ''}{fraction} DOT"
