"""What happens to each event that is notified: checked, known again, held back, handed over, remembered.

Law: an event reaches its handler once. Where a subscription selects all events of a namespace, an event reaches it
after the events before it in its chain. What a publisher sent before the first of its events that came lies before the
beginning and is not missed, except by a close-out. An event that waits longer than ``patience_seconds``, or with more
than ``most_held`` others, is handed over without those that are missing. Events of a subscription with a filter or a
skip come in the order of their notifications, because a subscriber cannot tell which earlier events were filtered out.
So do replayed ones of before the beginning, but they do not overtake an event before them that waits. Later replayed
events wait for those before them, which come live. What became of an event is told when its memory is durable.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from relaycast_gateway.clock import SECOND, Alarm
from relaycast_gateway.icrc.canister import Wire
from relaycast_gateway.icrc.id_runs import MOST_RUNS
from relaycast_gateway.icrc.store import EXPECTED, IcrcStore
from relaycast_gateway.icrc.subscriber.backlog import Backlog, HandingOutcome, HeldEvent, Settled
from relaycast_gateway.icrc.subscriber.handed_events import HandedDump, HandedEvents
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc16 import Icrc16
from relaycast_gateway.log.unusable import UnusableLog
from relaycast_gateway.matching.namespaces import NamespacePattern


class EventGap(NamedTuple):
    """An event that did not come, though one after it did."""

    namespace: str
    missing_id: int
    next_id: int
    """The event that waits for it."""


GapFound = Callable[[EventGap], None]
EventHandler = Callable[[NotifiedEvent], Icrc16 | None]


class NoHandler(Exception):
    """No subscription of this subscriber takes the event."""


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """How long and how much an intake remembers and holds back."""

    patience_seconds: float = 90.0
    """How long an event waits for those before it: longer than a broadcaster waits before it notifies again, because
    what waits is forgotten with a restart."""

    most_held: int = 1_024
    """Waiting events of a namespace."""

    most_runs: int = MOST_RUNS
    """Runs of ids that are remembered of a chain."""


@dataclass(slots=True)
class _Place:
    """One namespace."""

    handed: HandedEvents
    backlog: Backlog = field(default_factory=Backlog)


class EventIntake:
    """The events of one subscriber; ``finish`` ends each call or alarm that took some."""

    def __init__(
        self,
        wire: Wire,
        *,
        hand: EventHandler,
        selects_all: Callable[[str], bool],
        gap_found: GapFound,
        limits: IntakeLimits,
        store: IcrcStore | None,
        table: str,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.last_error: str | None = None
        self._wire = wire
        self._hand = hand
        self._selects_all = selects_all
        self._gap_found = gap_found
        self._limits = limits
        self._store = store
        self._table = table
        self._places = {} if store is None else dict(_kept(store, table, limits.most_runs))
        self._changed: set[str] = set()
        self._ended: list[tuple[Settled, HandingOutcome]] = []
        self._alarm: Alarm | None = None

    @property
    def held(self) -> int:
        """Number of events that wait."""
        return sum(len(place.backlog) for place in self._places.values())

    @property
    def runs(self) -> int:
        """Number of runs of ids that are remembered."""
        return sum(place.handed.runs for place in self._places.values())

    def take(self, event: NotifiedEvent, settled: Settled, *, is_trusted: bool) -> HandingOutcome | None:
        """Take an event, and tell ``settled`` at ``finish`` what became of it; returned where that is known at once."""
        place = self._places.get(event.namespace)
        if place is None:
            place = self._places[event.namespace] = _Place(HandedEvents(most_runs=self._limits.most_runs))
        if not event.is_intact:
            self.counts["tampered"] += 1
            error = f"event {event.text_id} of {event.namespace}: its data does not have the hash that it names"
            return self._end([settled], HandingOutcome(None, self._failed(error), is_final=False))
        if event in place.handed:
            self.counts["duplicates"] += 1
            return self._end([settled], HandingOutcome())
        held = place.backlog.get(event.event_id)
        if held is not None:
            self.counts["duplicates"] += 1
            held.settled.append(settled)
            held.is_trusted |= is_trusted
            return None
        missing = self._missing(place, event)
        if not missing:
            return self._hand_over(place, event, [settled], is_trusted=is_trusted)
        place.handed.begin(event)
        self._changed.add(event.namespace)
        self._hold(place, HeldEvent(event, self._wire.passed_ns(), is_trusted, missing, [settled]))
        return None

    def begin_again(self, pattern: NamespacePattern) -> None:
        """Miss nothing of some namespaces that was published before the next event of each publisher."""
        for namespace, place in self._places.items():
            if pattern.matches(namespace):
                place.handed.begin_again()
                self._changed.add(namespace)

    def finish(self) -> None:
        """Make durable what was handed over, then tell what became of the events."""
        if self._store is not None and self._changed:
            for namespace in sorted(self._changed):
                dump = self._places[namespace].handed.dump()
                self._store.put(self._table, namespace.encode(), msgspec.msgpack.encode(dump))
            self._store.flush()
        self._changed.clear()
        ended, self._ended = self._ended, []
        for settled, outcome in ended:
            settled(outcome)

    def close(self) -> None:
        """Hand over nothing more."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _missing(self, place: _Place, event: NotifiedEvent) -> set[int]:
        """Return the events that must come before this one."""
        if not self._selects_all(event.namespace):
            return set()
        handed, backlog = place.handed, place.backlog
        if event.replay_id is not None and handed.began_after(event.event_id, event):
            return {each for each in event.predecessors if backlog.get(each) is not None}
        found = {each for each in event.predecessors if not handed.precedes(each, event)}
        if event.ends_an_epoch:  # it says itself what came before
            return found
        return {each for each in found if backlog.get(each) is not None or not handed.began_after(each, event)}

    def _hold(self, place: _Place, held: HeldEvent) -> None:
        self.counts["held"] += 1
        for missing in place.backlog.hold(held):
            self.counts["gaps"] += 1
            self._gap_found(EventGap(held.event.namespace, missing, held.event.event_id))
        while len(place.backlog) > self._limits.most_held:
            self._release(place, place.backlog.take())
        if self._alarm is None:
            self._alarm = self._wire.call_later(self._limits.patience_seconds, self._end_of_patience)

    def _end_of_patience(self) -> None:
        self._alarm = None
        patience_ns = round(self._limits.patience_seconds * SECOND)
        now_ns = self._wire.passed_ns()
        for place in self._places.values():
            while held := place.backlog.take(now_ns - patience_ns):
                self._release(place, held)
        waiting = [it for place in self._places.values() if (it := place.backlog.oldest_ns) is not None]
        if waiting:
            seconds = max(0, min(waiting) + patience_ns - now_ns) / SECOND
            self._alarm = self._wire.call_later(seconds, self._end_of_patience)
        self.finish()

    def _release(self, place: _Place, held: HeldEvent | None) -> None:
        assert held is not None
        self.counts["released"] += 1
        self._hand_over(place, held.event, held.settled, is_trusted=held.is_trusted)

    def _hand_over(
        self, place: _Place, event: NotifiedEvent, settled: list[Settled], *, is_trusted: bool
    ) -> HandingOutcome:
        """Hand over an event, and those that waited for it alone; return what became of the event itself."""
        waiting = deque([(event, settled, is_trusted)])
        first: HandingOutcome | None = None
        while waiting:
            each, told, trusted = waiting.popleft()
            outcome = self._handed(each, is_trusted=trusted)
            first = first or outcome
            self._end(told, outcome)
            if outcome.is_final:
                place.handed.add(each)
                self._changed.add(each.namespace)
                waiting.extend((it.event, it.settled, it.is_trusted) for it in place.backlog.handed(each.event_id))
        assert first is not None
        return first

    def _handed(self, event: NotifiedEvent, *, is_trusted: bool) -> HandingOutcome:
        try:
            value = self._hand(event)
        except NoHandler as error:
            return HandingOutcome(None, self._failed(str(error)), is_final=False)
        except Exception as error:
            text = f"event {event.text_id} of {event.namespace}: {type(error).__name__}: {error}"
            self.counts["handler errors"] += 1
            self.counts["events"] += not is_trusted
            return HandingOutcome(None, self._failed(text), is_final=not is_trusted)
        self.counts["events"] += 1
        return HandingOutcome(value)

    def _end(self, settled: list[Settled], outcome: HandingOutcome) -> HandingOutcome:
        self._ended += [(each, outcome) for each in settled]
        return outcome

    def _failed(self, error: str) -> str:
        self.counts["errors"] += 1
        self.last_error = error
        return error


def _kept(store: IcrcStore, table: str, most_runs: int) -> Iterator[tuple[str, _Place]]:
    """Yield what was remembered of each namespace; ``UnusableLog`` names the one that is damaged."""
    for key, value in store.items(table):
        try:
            chains = msgspec.msgpack.decode(value, type=list[HandedDump])
            yield key.decode(), _Place(HandedEvents(chains, most_runs=most_runs))
        except ValueError as error:
            raise UnusableLog(f"{store.place}, {table}, {key!r}", str(error), EXPECTED) from None
