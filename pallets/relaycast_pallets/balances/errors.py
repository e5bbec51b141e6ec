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


class InsufficientBalance(TokenError):
    """``account`` has ``available`` where ``needed`` is asked for (``TokenError::FundsUnavailable``)."""

    detail = "FundsUnavailable"

    def __init__(self, account: AccountId, available: int, needed: int) -> None:
        super().__init__(account, available, needed)
        self.account = account
        self.available = available
        self.needed = needed

    def __str__(self) -> str:
        return f"account 0x{self.account.hex()} has {self.available}, needs {self.needed}"


class BelowMinimum(TokenError):
    """``account`` would have ``free``, less than the ``existential_deposit``."""

    detail = "BelowMinimum"

    def __init__(self, account: AccountId, free: int, existential_deposit: int) -> None:
        super().__init__(account, free, existential_deposit)
        self.account = account
        self.free = free
        self.existential_deposit = existential_deposit

    def __str__(self) -> str:
        return (
            f"account 0x{self.account.hex()} would have {self.free}, "
            f"the existential deposit is {self.existential_deposit}"
        )


class Frozen(TokenError):
    """``account`` may spend ``spendable`` of its free funds, and ``needed`` is asked for."""

    detail = "Frozen"

    def __init__(self, account: AccountId, spendable: int, needed: int) -> None:
        super().__init__(account, spendable, needed)
        self.account = account
        self.spendable = spendable
        self.needed = needed

    def __str__(self) -> str:
        return f"account 0x{self.account.hex()} may spend {self.spendable}, needs {self.needed}"


class NotExpendable(TokenError):
    """The call keeps ``account`` alive and would leave it ``left``, less than the existential deposit."""

    detail = "NotExpendable"

    def __init__(self, account: AccountId, left: int) -> None:
        super().__init__(account, left)
        self.account = account
        self.left = left

    def __str__(self) -> str:
        return f"account 0x{self.account.hex()} would be left with {self.left}, less than the existential deposit"


class CannotCreateHold(TokenError):
    """``account`` does not exist."""

    detail = "CannotCreateHold"

    def __init__(self, account: AccountId) -> None:
        super().__init__(account)
        self.account = account

    def __str__(self) -> str:
        return f"account 0x{self.account.hex()} does not exist: nothing of it can be held"
