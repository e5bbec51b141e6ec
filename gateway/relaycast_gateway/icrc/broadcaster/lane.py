"""Lanes: the way of notifications to one subscriber, one call at a time.

Law: a lane sends in order; what could not be handed over is sent first at the next attempt, with the same ids, in calls
of half as many. A subscriber that cannot be reached is tried again for ever, with full-jitter back-off. What was handed
over and is not confirmed in time is sent again, up to a number of times, before anything new. The number of unconfirmed
notifications is bounded. Source: ICRC-72, "icrc72_confirm_messages"; ``gateway.md``, "Delivery".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import SECOND, Alarm
from relaycast_gateway.icrc.broadcaster.contents import Notification
from relaycast_gateway.icrc.broadcaster.policy import BroadcastPolicy
from relaycast_gateway.icrc.canister import Answer, Canister

ONE_SHOT = "icrc72_handle_notification"
TRUSTED = "icrc72_handle_notification_trusted"


@dataclass(slots=True)
class LaneCounts:
    """What the lanes of a broadcaster have done."""

    notifications: int = 0
    """Handed over for the first time."""

    repeated: int = 0
    confirmations: int = 0
    refused_calls: int = 0
    """That could not be handed over."""

    trusted_errors: int = 0
    given_up: int = 0
    """Never confirmed."""

    dropped: int = 0
    """Not sent: purged from the log, or the right to receive them was taken away."""

    @property
    def errors(self) -> int:
        return self.refused_calls + self.trusted_errors + self.given_up + self.dropped


class LaneSource(Protocol):
    """What a lane sends, and who is told of it."""

    @property
    def subscriber(self) -> bytes: ...

    @property
    def is_trusted(self) -> bool: ...

    def is_open(self) -> bool:
        """Return whether anything may be sent now; drops what will not be sent."""
        ...

    def take(self, most: int) -> list[int]:
        """Return the ids of the next notifications, in order."""
        ...

    def put_back(self, ids: Sequence[int]) -> None:
        """Take again what ``take`` returned last and could not be sent: the next ``take`` begins with it."""
        ...

    def made(self, notification_id: int) -> Notification | None:
        """Return a notification as it is sent now, ``None`` where it is not to be sent."""
        ...

    def sent(self, ids: Sequence[int]) -> None:
        """Hear what was handed over for the first time."""
        ...

    def finished(self, notification_id: int, *, is_confirmed: bool) -> None:
        """Hear of a notification that is not sent again."""
        ...


@dataclass(slots=True)
class _Handed:
    """A notification that was handed over, or is just being."""

    last_ns: int
    times: int = 0


class NotificationLane:
    """Sends what ``source`` has, as ``canister``."""

    def __init__(
        self, source: LaneSource, canister: Canister, policy: BroadcastPolicy, counts: LaneCounts, *, seed: bytes
    ) -> None:
        self._source = source
        self._canister = canister
        self._policy = policy
        self._counts = counts
        self._random = Random(seed)  # noqa: S311 - spreads retries
        self.unconfirmed: dict[int, _Handed] = {}
        """By id, in order."""

        self._failures = 0
        self._most_a_call = policy.notifications_a_call
        """Half after each call that was refused: it may have been too large."""

        self._is_calling = False
        self._is_closed = False
        self._is_late = False
        """Whether something may be overdue."""

        self._pause: Alarm | None = None
        self._reminder: Alarm | None = None

    def pump(self) -> None:
        """Send what is due, unless a call is under way or the subscriber could not be reached just now."""
        if not self._source.is_open():
            self.forget()
            return
        while not self._is_calling and self._pause is None:
            ids = self._overdue() if self._is_late else []
            if not ids:
                room = self._policy.most_unconfirmed - len(self.unconfirmed)
                ids = self._source.take(min(self._most_a_call, room)) if room > 0 else []
                now_ns = self._canister.wire.passed_ns()
                self.unconfirmed.update((it, _Handed(now_ns)) for it in ids)
            if not ids:
                break
            self._send(ids)
        self._remind()

    def confirm(self, notification_id: int) -> bool:
        """Take a confirmation; ``False`` where the notification is not unconfirmed."""
        if self.unconfirmed.pop(notification_id, None) is None:
            return False
        self._counts.confirmations += 1
        self._source.finished(notification_id, is_confirmed=True)
        return True

    def forget(self) -> None:
        """Expect no more confirmations."""
        for it in list(self.unconfirmed):
            self._drop(it)

    def close(self) -> None:
        """Send nothing more, and take no answer."""
        self._is_closed = self._is_calling = True
        for alarm in (self._pause, self._reminder):
            if alarm is not None:
                alarm.cancel()

    def _send(self, ids: Sequence[int]) -> None:
        messages: list[Notification] = []
        for it in ids:
            made = self._source.made(it)
            if made is None:
                self._counts.dropped += 1
                self._drop(it)
            else:
                messages.append(made)
        if messages:
            self._is_calling = True
            kept = [message["id"] for message in messages]
            method = TRUSTED if self._source.is_trusted else ONE_SHOT
            fresh = [it for it in kept if not self.unconfirmed[it].times]

            def answered(answer: Answer) -> None:
                self._answered(kept, fresh, answer)

            self._canister.call(self._source.subscriber, method, messages, answered)

    def _answered(self, ids: Sequence[int], fresh: Sequence[int], answer: Answer) -> None:
        if self._is_closed:
            return
        self._is_calling = False
        waiting = [it for it in ids if it in self.unconfirmed]
        if answer.refusal is not None:
            self._most_a_call = max(1, len(ids) // 2)
            self._refused(waiting)
            return
        self._failures = 0
        self._most_a_call = min(self._policy.notifications_a_call, 2 * self._most_a_call)
        now_ns = self._canister.wire.passed_ns()
        self._counts.notifications += len(fresh)
        self._counts.repeated += len(ids) - len(fresh)
        self._source.sent(fresh)
        for it in waiting:
            handed = self.unconfirmed[it]
            handed.last_ns = now_ns
            handed.times += 1
        if self._source.is_trusted:
            self._judge(waiting, answer.value)
        self.pump()

    def _judge(self, ids: Sequence[int], reply: object) -> None:
        """Take the answer of a trusted subscriber, which holds for all that it got."""
        if isinstance(reply, Variant) and reply.tag == "Ok":
            for it in ids:
                self.confirm(it)
        else:
            self._counts.trusted_errors += 1

    def _refused(self, waiting: Sequence[int]) -> None:
        self._counts.refused_calls += 1
        fresh = [it for it in waiting if not self.unconfirmed[it].times]
        for it in fresh:
            del self.unconfirmed[it]
        if fresh:
            self._source.put_back(fresh)
        seconds = self._policy.back_off_seconds(self._failures, self._random.random())
        self._failures += 1
        self._pause = self._canister.wire.call_later(seconds, self._try_again)

    def _try_again(self) -> None:
        self._pause = None
        self.pump()

    def _overdue(self) -> list[int]:
        """Return unconfirmed notifications whose time is over; those that were repeated often enough are given up."""
        before_ns = self._canister.wire.passed_ns() - round(self._policy.confirm_seconds * SECOND)
        found: list[int] = []
        for it, handed in list(self.unconfirmed.items()):
            if handed.times and handed.last_ns <= before_ns:
                if handed.times > self._policy.most_repetitions:
                    self._counts.given_up += 1
                    self._drop(it)
                else:
                    found.append(it)
                    if len(found) >= self._most_a_call:
                        return found
        self._is_late = False
        return found

    def _drop(self, notification_id: int) -> None:
        self.unconfirmed.pop(notification_id, None)
        self._source.finished(notification_id, is_confirmed=False)

    def _remind(self) -> None:
        if self._reminder is None and self.unconfirmed and not self._is_calling and self._pause is None:
            oldest = min(handed.last_ns for handed in self.unconfirmed.values())
            passed = (self._canister.wire.passed_ns() - oldest) / SECOND
            seconds = max(0.0, self._policy.confirm_seconds - passed)
            self._reminder = self._canister.wire.call_later(seconds, self._reminded)

    def _reminded(self) -> None:
        self._reminder = None
        self._is_late = True
        self.pump()
