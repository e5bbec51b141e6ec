"""Confirmations of notifications by their subscribers.

Law: each notification is confirmed once, by its own subscriber. The answer lists each id in the order in which it came
as soon as one of them is refused. Source: ICRC-72, "icrc72_confirm_messages".
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from relaycast_gateway.candid import Variant

MOST_REMEMBERED = 65_536
"""Confirmed notifications that are told from unknown ones."""

ALL_ACCEPTED = Variant("allAccepted")

Confirm = Callable[[bytes, int], str | None]
"""Takes a confirmation of a caller; returns the ``ConfirmationError`` by its name, ``None`` where it was taken."""


class ConfirmedNotifications:
    """The newest notifications that were confirmed, with their subscribers."""

    def __init__(self) -> None:
        self._subscribers: OrderedDict[int, bytes] = OrderedDict()

    def add(self, notification_id: int, subscriber: bytes) -> None:
        self._subscribers[notification_id] = subscriber
        if len(self._subscribers) > MOST_REMEMBERED:
            self._subscribers.popitem(last=False)

    def refusal(self, notification_id: int, caller: bytes) -> str:
        """Return why a notification that nobody is waited for cannot be confirmed."""
        subscriber = self._subscribers.get(notification_id)
        if subscriber is None:
            return "NotFound"
        return "AlreadyConfirmed" if subscriber == caller else "Unauthorized"


def confirmation_result(caller: bytes, ids: Sequence[int], confirm: Confirm) -> Variant:
    """Confirm ``ids`` and return a ``ConfirmationResult``."""
    errors = [confirm(caller, it) for it in ids]
    if not any(errors):
        return ALL_ACCEPTED
    return Variant("itemized", [Variant("Ok") if error is None else Variant("Err", Variant(error)) for error in errors])
