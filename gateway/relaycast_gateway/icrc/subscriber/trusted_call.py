"""One trusted notification of several events, and its one answer.

Law: the answer is ``Err`` with the first error in the order of events, else ``Ok``. ``Ok`` holds the value that a
handler gave, an ``Array`` of the values where several handlers gave one, null where none did. A value outside of ICRC-3
is answered as its image. An event that waits for those before it counts as an error: its broadcaster can go on with
them, and hears ``Ok`` when it notifies again. Source: ICRC-72, ``icrc72_handle_notification_trusted``.
"""

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.subscriber.backlog import HandingOutcome, Settled
from relaycast_gateway.icrc.value_hash import icrc3_image
from relaycast_gateway.icrc.variants import variant_of
from relaycast_gateway.icrc16 import array


class TrustedCall:
    """Gathers what became of the events of one call."""

    def __init__(self) -> None:
        self._outcomes: list[HandingOutcome | None] = []

    def expect(self) -> Settled:
        """Return who is to be told what became of the next event."""
        at = len(self._outcomes)
        self._outcomes.append(None)

        def settled(outcome: HandingOutcome) -> None:
            self._outcomes[at] = outcome

        return settled

    def reply(self) -> Variant:
        """Return the answer; no event is expected after this."""
        outcomes = [_WAITS if outcome is None else outcome for outcome in self._outcomes]
        error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
        values = [outcome.value for outcome in outcomes if outcome.value is not None]
        if error is not None:
            return Variant("Err", error)
        if not values:
            return Variant("Ok", None)
        value = values[0] if len(outcomes) == 1 else array(*values)
        return Variant("Ok", variant_of(icrc3_image(value)))


_WAITS = HandingOutcome(None, "an event waits for those before it", is_final=False)
