"""What a broadcaster allows and how long it waits, in one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BroadcastPolicy:
    """Limits of a broadcaster; beyond each of them a call gets an error that names it."""

    most_events: int = 1_000
    """Events in a call to ``icrc72_publish`` or ``icrc72_publish_relay``."""

    most_event_bytes: int = 1 << 20
    """Bytes of the stored form of an event."""

    most_waiting_bytes: int = 16 << 20
    """Bytes of events that are accepted and not durable yet; beyond it publishers get ``Busy``."""

    most_confirmations: int = 10_000
    """Confirmations in a call to ``icrc72_confirm_messages``."""

    notifications_a_call: int = 64
    most_unconfirmed: int = 1_024
    """Notifications of a subscription without a confirmation: it gets no more until it has confirmed some."""

    confirm_seconds: float = 60.0
    """Seconds after which a notification that was not confirmed is sent again."""

    most_repetitions: int = 10
    """Times that a notification without a confirmation is sent again; then it is given up."""

    least_back_off_seconds: float = 1.0
    most_back_off_seconds: float = 60.0
    most_waiting_replayed: int = 256
    """Events of a replay that wait for its requester; its publisher is held back meanwhile."""

    most_contents_bytes: int = 32 << 20
    """Bytes of events held in memory for subscriptions that have yet to get them; the log has the others."""

    most_audiences: int = 1_024
    """Audiences held in memory; the store has the others."""

    def back_off_seconds(self, failures: int, share: float) -> float:
        """Return how long to wait after some failures in a row; ``share`` is drawn from 0 to 1: full jitter."""
        return share * min(self.most_back_off_seconds, self.least_back_off_seconds * float(1 << min(failures, 30)))
