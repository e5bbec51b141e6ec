"""Refusals have the bytes of sp-runtime's ``DispatchError``."""

import pytest

from relaycast_pallets import BadOrigin, DispatchError, ExhaustsResources, InsufficientBalance, NotRegistered
from relaycast_pallets.balances import BelowMinimum, CannotCreateHold, Frozen, NotExpendable
from relaycast_pallets.frame.dispatch import ArithmeticOverflow, ConsumerRemaining, NoProviders


@pytest.mark.parametrize(
    ("error", "encoded"),
    [
        (BadOrigin, "02"),
        (ConsumerRemaining, "04"),
        (NoProviders, "05"),
        (InsufficientBalance, "0700"),  # Token(FundsUnavailable)
        (BelowMinimum, "0702"),
        (Frozen, "0705"),
        (CannotCreateHold, "0707"),
        (NotExpendable, "0708"),
        (ArithmeticOverflow, "0801"),  # Arithmetic(Overflow)
        (ExhaustsResources, "0a"),
    ],
)
def test_an_error_of_the_runtime_is_its_variant(error: type[DispatchError], encoded: str) -> None:
    assert error.encode().hex() == encoded
    assert error.encode(module=(1, 2)).hex() == encoded, "the pallet's index is not needed"


def test_a_pallets_own_error_is_its_index_and_the_pallets() -> None:
    assert NotRegistered.encode(module=(200, 3)).hex() == "03c803000000"
    with pytest.raises(ValueError, match="expected the indices of pallet and error"):
        NotRegistered.encode()
