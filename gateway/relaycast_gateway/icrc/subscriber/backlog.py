"""Events of one namespace that came before the ones that precede them in their chain.

Law: an event waits until all events before it were handed over, or until it is taken out: because it has waited long
enough, or because there are too many. What waits for an event that waits itself is never taken out before it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc16 import Icrc16


@dataclass(frozen=True, slots=True)
class HandingOutcome:
    """What became of an event."""

    value: Icrc16 | None = None
    """What the handler answered."""

    error: str | None = None
    is_final: bool = True
    """Whether the subscriber needs no further notification of the event."""


Settled = Callable[[HandingOutcome], None]


@dataclass(slots=True, eq=False)
class HeldEvent:
    """An event that waits."""

    event: NotifiedEvent
    since_ns: int
    is_trusted: bool
    missing: set[int]
    """The events before it that were not handed over."""

    settled: list[Settled] = field(default_factory=list)
    """Who is to hear what became of it."""


class Backlog:
    """The waiting events of a namespace, in the order in which they came."""

    def __init__(self) -> None:
        self._held: dict[int, HeldEvent] = {}
        self._waiting_for: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def get(self, event_id: int) -> HeldEvent | None:
        return self._held.get(event_id)

    def hold(self, held: HeldEvent) -> list[int]:
        """Keep an event, and return the missing events that were not missed before and do not wait themselves."""
        event_id = held.event.event_id
        self._held[event_id] = held
        gaps = [it for it in sorted(held.missing) if it not in self._held and it not in self._waiting_for]
        for missing in held.missing:
            self._waiting_for.setdefault(missing, []).append(event_id)
        return gaps

    def handed(self, event_id: int) -> Iterator[HeldEvent]:
        """Take out the events that waited for this one alone."""
        for waiting in self._waiting_for.pop(event_id, ()):
            held = self._held.get(waiting)
            if held is not None:
                held.missing.discard(event_id)
                if not held.missing:
                    yield self._held.pop(waiting)

    def take(self, before_ns: int | None = None) -> HeldEvent | None:
        """Take out the event that comes first for the one that has waited longest.

        ``None`` where none waits, or, with ``before_ns``, where none has waited since before then.
        """
        held = next(iter(self._held.values()), None)
        if held is None or (before_ns is not None and held.since_ns > before_ns):
            return None
        passed = {held.event.event_id}
        while True:
            before = next((it for it in sorted(held.missing) if it in self._held and it not in passed), None)
            if before is None:
                break
            passed.add(before)
            held = self._held[before]
        for missing in held.missing:
            waiting = self._waiting_for[missing]
            waiting.remove(held.event.event_id)
            if not waiting:
                del self._waiting_for[missing]
        return self._held.pop(held.event.event_id)

    @property
    def oldest_ns(self) -> int | None:
        """Since when the first event waits."""
        return next((held.since_ns for held in self._held.values()), None)
