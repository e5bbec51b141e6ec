"""The way of events to one broadcaster: in order, one call at a time, tried again with the same ids.

Law: an event keeps its id and its link once it was sent, so that a broadcaster that took it before knows it again. An
event that is refused for good is dropped and its caller told. Events that are busy or were not processed, and all
events of a call that did not arrive, are sent again after a wait with full jitter.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol, cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.delivery.schedule import Dice
from relaycast_gateway.icrc.canister import Answer, Promise, Wire

MOST_A_CALL = 64
FIRST_RETRY_SECONDS = 0.1
LONGEST_RETRY_SECONDS = 30.0
_MOST_DOUBLINGS = 20


class AcceptedEvent(NamedTuple):
    """An event that a broadcaster took."""

    event_id: int
    notification_ids: list[int]
    """Notifications that were sent at once."""


class EventOwner(Protocol):
    """The namespace that an event belongs to."""

    def link(self, outgoing: "OutgoingEvent") -> None:
        """Give an event its place in the chain, when it is sent for the first time."""
        ...

    def answered(self, outgoing: "OutgoingEvent", answer: Answer) -> None:
        """Hear how the event ended."""
        ...


@dataclass(slots=True, eq=False)
class OutgoingEvent:
    """An event that was not acknowledged yet."""

    owner: EventOwner
    event: dict[str, Any]
    """An ``Event`` as ``icrc72_publish`` takes it."""

    closes_epoch: bool = False
    is_linked: bool = False
    before: int | None = None
    """The event before it in its chain, once it is linked."""

    promise: Promise[Answer] = field(default_factory=Promise)

    @property
    def event_id(self) -> int:
        return cast("int", self.event["id"])


CallPublish = Callable[[bytes, list[dict[str, Any]], Callable[[Answer], None]], None]


class OutgoingQueue:
    """The events on their way to one broadcaster."""

    def __init__(self, broadcaster: bytes, call: CallPublish, wire: Wire, dice: Dice) -> None:
        self.broadcaster = broadcaster
        self.retries = 0
        """Number of calls after which something had to be sent again."""

        self._call = call
        self._wire = wire
        self._dice = dice
        self._waiting: deque[OutgoingEvent] = deque()
        self._is_busy = False
        self._attempts = 0
        self._most_a_call = MOST_A_CALL
        self._is_closed = False

    def __len__(self) -> int:
        """Return the number of events that are not acknowledged."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[OutgoingEvent]:
        return iter(self._waiting)

    def add(self, outgoing: OutgoingEvent) -> None:
        """Send an event as soon as those before it were answered for."""
        self._waiting.append(outgoing)
        if not self._is_busy:
            self._is_busy = True
            self._wire.call_later(0.0, self._send)  # with all that is added at the same moment

    def close(self) -> None:
        """Send nothing more, and take no answer."""
        self._is_closed = True

    def _send(self) -> None:
        if self._is_closed:
            return
        batch = [self._waiting[at] for at in range(min(len(self._waiting), self._most_a_call))]
        for each in batch:
            if not each.is_linked:
                each.owner.link(each)
        self._call(self.broadcaster, [each.event for each in batch], lambda answer: self._answered(batch, answer))

    def _answered(self, batch: list[OutgoingEvent], answer: Answer) -> None:
        if self._is_closed:
            return
        results = [] if answer.refusal is not None else cast("list[Variant | None]", answer.value)
        settled = [_settled(result) for result, _ in zip_longest(results[: len(batch)], batch)]
        if any(each is _CUT for each in settled):
            self._most_a_call = max(1, len(batch) // 2)
        for _ in batch:
            self._waiting.popleft()
        again = [each for each, outcome in zip(batch, settled, strict=True) if outcome is None or outcome is _CUT]
        if len(batch) == 1 and settled[0] is _CUT:
            again, settled = [], [Answer(refusal=_reason(results[0]))]
        self._waiting.extendleft(reversed(again))
        if len(again) < len(batch):
            self._attempts = 0
        self._go_on(is_again=bool(again))
        for each, outcome in zip(batch, settled, strict=True):
            if outcome is not None and outcome is not _CUT:
                ids = cast("list[int]", outcome.value)
                answer = outcome if outcome.refusal is not None else Answer(AcceptedEvent(each.event_id, ids))
                each.owner.answered(each, answer)
                each.promise.settle(answer)

    def _go_on(self, *, is_again: bool) -> None:
        if not is_again:
            self._is_busy = bool(self._waiting)
            if self._waiting:
                self._wire.call_later(0.0, self._send)
            return
        self.retries += 1
        longest = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(self._attempts, _MOST_DOUBLINGS))
        self._attempts += 1
        self._wire.call_later(self._dice.uniform(0.0, longest), self._send)


_CUT = Answer(refusal="the batch ended here")
"""An error of the batch, not of an event."""


def _settled(result: Variant | None) -> Answer | None:
    """Return how an event ended, ``None`` where it is to be sent again."""
    if result is None:
        return None
    if result.tag == "Ok":
        return Answer(result.value)
    error = cast("Variant", result.value)
    if error.tag == "Busy":
        return None
    return _CUT if error.tag == "GenericBatchError" else Answer(refusal=_reason(result))


def _reason(result: Variant | None) -> str:
    error = cast("Variant", result.value if result is not None else None)
    return str(error.tag) if error.value is None else f"{error.tag}: {error.value}"
