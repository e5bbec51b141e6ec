"""Confirmations, in batches: one call at a time to each broadcaster.

Law: a notification is confirmed when its event was handed over and that is kept. A broadcaster that cannot be reached
is called again; after ``ATTEMPTS`` calls its confirmations are dropped, because it notifies again what it misses.
"""

from collections.abc import Callable
from typing import Any, cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import Answer, Wire

CONFIRM_AFTER_SECONDS = 0.05
MOST_A_CALL = 256
ATTEMPTS = 8
FIRST_RETRY_SECONDS = 0.5

CallBroadcaster = Callable[[bytes, str, object, Callable[[Answer], None]], None]


class Confirming:
    """The confirmations of one subscriber."""

    def __init__(self, call: CallBroadcaster, wire: Wire) -> None:
        self.confirmed = 0
        """Number of notifications whose confirmation was accepted."""

        self.refused = 0
        self._call = call
        self._wire = wire
        self._waiting: dict[bytes, list[int]] = {}
        self._busy: set[bytes] = set()
        self._is_closed = False

    def add(self, broadcaster: bytes, notification_id: int) -> None:
        """Confirm a notification soon."""
        self._waiting.setdefault(broadcaster, []).append(notification_id)
        if broadcaster not in self._busy:
            self._busy.add(broadcaster)
            self._wire.call_later(CONFIRM_AFTER_SECONDS, lambda: self._send(broadcaster, 1))

    def close(self) -> None:
        """Confirm nothing more."""
        self._is_closed = True

    def _send(self, broadcaster: bytes, attempt: int) -> None:
        if self._is_closed:
            return
        batch = self._waiting.get(broadcaster, [])[:MOST_A_CALL]

        def answered(answer: Answer) -> None:
            if answer.refusal is not None and attempt < ATTEMPTS:
                wait = FIRST_RETRY_SECONDS * 2 ** (attempt - 1)
                self._wire.call_later(wait, lambda: self._send(broadcaster, attempt + 1))
                return
            del self._waiting[broadcaster][: len(batch)]
            accepted = 0 if answer.refusal is not None else _accepted(answer.value, len(batch))
            self.confirmed += accepted
            self.refused += len(batch) - accepted
            if self._waiting[broadcaster]:
                self._send(broadcaster, 1)
            else:
                del self._waiting[broadcaster]
                self._busy.discard(broadcaster)

        self._call(broadcaster, "icrc72_confirm_messages", list(batch), answered)


def _accepted(result: object, sent: int) -> int:
    tag, items = cast("Variant", result)
    if tag == "allAccepted":
        return sent
    return sum(item is not None and item.tag == "Ok" for item in cast("list[Any]", items))
