"""One trusted notification of several events, and its one answer.

Law: the answer is ``Err`` with the first error in the order of events, else ``Ok``: the value of the handler of a
single event, an ``Array`` of the values where several handlers gave one, null where none did. A value outside of ICRC-3
is answered as its image. It comes when all events were handed over, or one of them failed. Source: ICRC-72,
``icrc72_handle_notification_trusted``.
"""

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import Promise
from relaycast_gateway.icrc.subscriber.backlog import HandingOutcome, Settled
from relaycast_gateway.icrc.value_hash import icrc3_image
from relaycast_gateway.icrc.variants import variant_of
from relaycast_gateway.icrc16 import array


class TrustedCall:
    """Gathers what became of the events of one call."""

    def __init__(self) -> None:
        self._outcomes: list[HandingOutcome | None] = []
        self._promise: Promise[object] = Promise()
        self._is_complete = False

    def expect(self) -> Settled:
        """Return who is to be told what became of the next event."""
        at = len(self._outcomes)
        self._outcomes.append(None)

        def settled(outcome: HandingOutcome) -> None:
            self._outcomes[at] = outcome
            self._answer()

        return settled

    def reply(self) -> Promise[object]:
        """Return the promise of the answer; no event is expected after this."""
        self._is_complete = True
        self._answer()
        return self._promise

    def _answer(self) -> None:
        if not self._is_complete or any(outcome is None for outcome in self._outcomes):
            return
        outcomes = [outcome for outcome in self._outcomes if outcome is not None]
        error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
        values = [outcome.value for outcome in outcomes if outcome.value is not None]
        if error is not None:
            self._promise.settle(Variant("Err", error))
        elif not values:
            self._promise.settle(Variant("Ok", None))
        else:
            value = values[0] if len(outcomes) == 1 else array(*values)
            self._promise.settle(Variant("Ok", variant_of(icrc3_image(value))))
