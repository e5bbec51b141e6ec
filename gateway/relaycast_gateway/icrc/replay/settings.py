"""Limits and hooks of replays."""

from collections.abc import Callable
from dataclasses import dataclass

from relaycast_gateway.icrc.naturals import shown
from relaycast_gateway.icrc.replay.request import ReplayRequest

PaymentCheck = Callable[[bytes, ReplayRequest, int], str | None]
"""Takes the subscriber, its request and the price; returns why the price is not paid, ``None`` where it is."""


def pays_by_entry(_subscriber: bytes, request: ReplayRequest, price: int) -> str | None:
    """Take the entry ``icrc77:payment`` for the payment itself: modelled, no ledger is asked."""
    return (
        None
        if request.payment >= price
        else (f"the replay costs {shown(price)}, icrc77:payment offers {shown(request.payment)}")
    )


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What one subscriber may ask for, and how long is waited for canisters."""

    most_active: int = 4
    """Replays of a subscriber at one time."""

    most_a_minute: int = 60
    """Replays that a subscriber registers in a minute."""

    most_events: int = 1_000_000
    """Events of one replay."""

    most_a_batch: int = 100
    """Items of one call."""

    most_kept: int = 10_000
    """Ended replays that are remembered; the oldest go."""

    tries: int = 5
    """How often a canister is told before its replay fails."""

    retry_seconds: float = 1.0
    pays: PaymentCheck = pays_by_entry
    has_place: Callable[[bytes], bool] = lambda _subscriber: True
    """Returns whether a subscriber can be reached; a replay is started only then."""

    check_url: Callable[[str], None] = lambda _url: None
    """Raises ``ValueError`` for a URL that is not allowed for subscribers."""
