"""Why balances refuse a call: one class for each reason, all of them variants of sp-runtime's ``TokenError``.

::

    DispatchError
    └── TokenError
        ├── InsufficientBalance   less is free, or held, than the call needs (FundsUnavailable)
        ├── BelowMinimum          an account would begin below the existential deposit
        ├── Frozen                a freeze, or a hold that needs the account, keeps the funds where they are
        ├── NotExpendable         the call must keep the account alive and would not
        └── CannotCreateHold      an account that does not exist cannot have a hold
"""

from relaycast_pallets.frame.dispatch import TokenError
from relaycast_xcm.primitives import AccountId


class InsufficientBalance(TokenError, message="account {account} has {available}, needs {needed}"):
    """``account`` has ``available`` where ``needed`` is asked for (``TokenError::FundsUnavailable``)."""

    detail = "FundsUnavailable"

    account: AccountId
    available: int
    needed: int


class BelowMinimum(
    TokenError, message="account {account} would have {free}, the existential deposit is {existential_deposit}"
):
    """``account`` would have ``free``, less than the ``existential_deposit``."""

    detail = "BelowMinimum"

    account: AccountId
    free: int
    existential_deposit: int


class Frozen(TokenError, message="account {account} may spend {spendable}, needs {needed}"):
    """``account`` may spend ``spendable`` of its free funds, and ``needed`` is asked for."""

    detail = "Frozen"

    account: AccountId
    spendable: int
    needed: int


class NotExpendable(
    TokenError, message="account {account} would be left with {left}, less than the existential deposit"
):
    """The call keeps ``account`` alive and would leave it ``left``, less than the existential deposit."""

    detail = "NotExpendable"

    account: AccountId
    left: int


class CannotCreateHold(TokenError, message="account {account} does not exist: nothing of it can be held"):
    """``account`` does not exist."""

    detail = "CannotCreateHold"

    account: AccountId
