"""What a broadcaster allows and how long it waits, in one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BroadcastPolicy:
    """Limits of a broadcaster; beyond each of them a call gets an error that names it."""

    most_events: int = 1_000
    """Of a call to ``icrc72_publish`` or ``icrc72_publish_relay``."""

    most_event_bytes: int = 1 << 20
    """Of the stored form of an event."""

    most_waiting_bytes: int = 16 << 20
    """Of events that were taken and are not durable yet; beyond it publishers are told ``Busy``."""

    most_confirmations: int = 10_000
    """Of a call to ``icrc72_confirm_messages``."""

    notifications_a_call: int = 64
    most_unconfirmed: int = 1_024
    """Of a subscription: it gets no further notifications until it has confirmed some."""

    confirm_seconds: float = 60.0
    """After which a notification that was not confirmed is sent again."""

    most_repetitions: int = 10
    """Of a notification that nobody confirms; then it counts as given up."""

    least_back_off_seconds: float = 1.0
    most_back_off_seconds: float = 60.0
    most_waiting_replayed: int = 256
    """Events of a replay that wait for its requester; its publisher is held back meanwhile."""

    most_contents_bytes: int = 32 << 20
    """Of events held in memory for subscriptions that have yet to get them; the log has the others."""

    most_audiences: int = 1_024
    """Of those held in memory; the store has the others."""

    def back_off_seconds(self, failures: int, share: float) -> float:
        """Return how long to wait after some failures in a row; ``share`` is drawn from 0 to 1: full jitter."""
        return share * min(self.most_back_off_seconds, self.least_back_off_seconds * float(1 << min(failures, 30)))
