"""The history of subscriptions, derived from the log: nothing is stored for a pattern or a subscriber.

Law: an event is in the history of a subscription if its pattern matches the topic and the caller may see the event: its
list of receivers and those of its namespace allow it. A rule must keep the topic and still show the event. An event
that a caller may not see is not counted, is not a valid anchor and leaves no trace. The index in memory decides all
this; only the events of a page are read.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.record import EventRecord
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, WampError
from relaycast_gateway.wamp.history.query import ALL_TIMES, HistoryQuery
from relaycast_gateway.wamp.history.receipt_times import ReceiptTimes
from relaycast_gateway.wamp.history.rule_retention import RuleRetention
from relaycast_gateway.wamp.history.rules import HistoryRules
from relaycast_gateway.wamp.history.topic_rules import TopicRules
from relaycast_gateway.wamp.history.view import HistoryView

MOST_VIEWS = 1_024
MOST_VIEW_BYTES = 64 * 1024 * 1024
"""Views beyond these bounds are forgotten, the least used patterns first, and built again when they are asked for."""

MOST_CALLERS = 512
"""Callers for whom it is remembered which visibilities they pass."""


Hidden = tuple[int, ...]
"""Numbers of namespaces whose lists hide their events from a caller, ascending."""


class HistoryPage(NamedTuple):
    """A part of a history."""

    records: list[EventRecord]
    """In the order that was asked for."""

    more: bool
    """Whether events follow that fit the query, too."""

    history_start_ns: int | None
    """When the oldest event of the history that the caller may see was received; ``None`` where there is none."""


class EventHistory:
    """The histories of one realm.

    ``realm_prefix`` is what its topics begin with in the log. ``digits`` are those of a second's fraction in times that
    are returned and compared. Rules that are not persistent show events from ``first_seq_of_run`` on. One thread calls.
    """

    def __init__(
        self,
        log: EventLog,
        rules: HistoryRules,
        *,
        realm_prefix: str = "",
        digits: int = 9,
        first_seq_of_run: int = 1,
    ) -> None:
        self._log = log
        self._digits = digits
        self._topics = TopicRules(log, rules, realm_prefix)
        self._retention = RuleRetention(log, self._topics, rules.rules, first_seq_of_run=first_seq_of_run)
        self._times = ReceiptTimes(log)
        self._views: OrderedDict[tuple[TopicPattern, Hidden], list[HistoryView]] = OrderedDict()
        self._view_count = 0
        self._view_bytes = 0
        self._callers: OrderedDict[tuple[str, str], bytearray] = OrderedDict()

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that all views take."""
        return self._view_bytes

    def page(
        self,
        pattern: TopicPattern,
        query: HistoryQuery,
        *,
        authid: str,
        authrole: str,
        most_events: int,
        hidden_namespaces: Collection[str] = (),
    ) -> HistoryPage:
        """Return the first events of a query, at most ``most_events`` or the query's own limit.

        Events of ``hidden_namespaces`` are hidden from the caller.
        Raises ``WampError`` with ``invalid_argument`` for a publication that is not in the history of ``pattern``, is
        not kept, or is hidden from the caller: which of these is not told.
        """
        limit = most_events if query.limit is None else min(query.limit, most_events)
        while True:
            newest = self._log.last_seq
            self._topics.refresh()
            seen = self._seen(authid, authrole)
            first_shown = self._retention.first_shown(newest + 1)
            hidden = self._hidden(hidden_namespaces)
            bounds = self._between_anchors(pattern, query, newest, seen, hidden, first_shown)
            whole = self._view(pattern, hidden, newest, seen, first_shown)
            history_start_ns = None if not len(whole.seqs) else self._received_ns(whole.seqs.at(0))
            found: list[int] = []
            if query.topic is None:
                found = self._found(whole, query, bounds, limit + 1)
            elif pattern.matches(query.topic):
                view = self._view(TopicPattern(query.topic), hidden, newest, seen, first_shown)
                found = self._found(view, query, bounds, limit + 1)
            records = self._log.records(found[:limit])
            if len(records) == min(limit, len(found)) and (history_start_ns is not None or not len(whole.seqs)):
                return HistoryPage(records, len(found) > limit, history_start_ns)
            # else a purge came between: its events are gone

    def count(self, pattern: TopicPattern) -> int:
        """Return the number of events in the history of ``pattern``, hidden ones among them."""
        newest = self._log.last_seq
        self._topics.refresh()
        everything = b"\x01" * len(self._log.visibilities)
        return len(self._view(pattern, (), newest, everything, self._retention.first_shown(newest + 1)).seqs)

    def _hidden(self, namespaces: Collection[str]) -> Hidden:
        """Return the numbers of those namespaces of which the log has events."""
        numbers = map(self._log.namespace_number, namespaces)
        return tuple(sorted(number for number in numbers if number is not None))

    def _between_anchors(
        self,
        pattern: TopicPattern,
        query: HistoryQuery,
        newest: int,
        seen: bytes,
        hidden: Hidden,
        first_shown: NDArray[np.int64],
    ) -> tuple[int, int]:
        """Return the first event that the query's publications let through, and the one behind the last."""
        start, end = 1, newest + 1
        for name, behind, is_start in _ANCHORS:
            publication = getattr(query, name)
            if publication is not None:
                seq = self._log.seq_of(publication)
                if seq is None or not self._is_shown(pattern, seq, seen, hidden, first_shown):
                    said = f"{name}: expected a publication of this history, got unknown or purged publication"
                    raise WampError(INVALID_ARGUMENT, f"{said} {publication}")
                if is_start:
                    start = max(start, seq + behind)
                else:
                    end = min(end, seq + behind)
        return start, end

    def _is_shown(
        self, pattern: TopicPattern, seq: int, seen: bytes, hidden: Hidden, first_shown: NDArray[np.int64]
    ) -> bool:
        """Return whether the caller finds the event in the history of ``pattern``."""
        first, rows = self._log.slice(seq, seq + 1)
        if first != seq or not len(rows.topic):
            return False
        number, visibility = int(rows.topic[0]), int(rows.visibility[0])
        if number >= len(self._topics.names) or visibility >= len(seen):
            return False
        name = self._topics.names[number]
        return (
            name is not None
            and pattern.matches(name)
            and bool(seen[visibility])
            and int(rows.namespace[0]) not in hidden
            and seq >= first_shown[self._topics.places[number]]
        )

    def _found(self, view: HistoryView, query: HistoryQuery, bounds: tuple[int, int], most: int) -> list[int]:
        """Return the numbers of the first ``most`` events, in the order that is asked for."""
        found: list[int] = []
        moments = query.received_within(self._digits)
        for seqs in self._stretches(view, query, bounds, moments, most):
            found += (seqs[: most - len(found)]).tolist()
            if len(found) >= most:
                break
        return found

    def _stretches(
        self, view: HistoryView, query: HistoryQuery, bounds: tuple[int, int], moments: tuple[int, int], most: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield wanted events in the order that is asked for, a stretch of the log at a time."""
        if moments == ALL_TIMES:
            yield _some(view, view.seqs.place(bounds[0]), view.seqs.place(bounds[1]), most, reverse=query.reverse)
            return
        start = max(bounds[0], view.seqs.at(0)) if len(view.seqs) else bounds[1]
        for stretch in self._times.stretches(start, bounds[1], moments, reverse=query.reverse):
            left, right = view.seqs.place(stretch.start), view.seqs.place(stretch.end)
            if left == right:
                continue
            if stretch.is_whole:
                yield _some(view, left, right, most, reverse=query.reverse)
                continue
            seqs = view.seqs.seqs(left, right)
            first, rows = self._log.slice(int(seqs[0]), int(seqs[-1]) + 1)
            seqs = seqs[np.searchsorted(seqs, first) :]
            times = rows.received_ns[seqs - first]
            seqs = seqs[(times >= moments[0]) & (times < moments[1])]
            yield seqs[::-1] if query.reverse else seqs

    def _view(
        self, pattern: TopicPattern, hidden: Hidden, newest: int, seen: bytes, first_shown: NDArray[np.int64]
    ) -> HistoryView:
        """Return what the caller may see of a pattern, up to the event ``newest``."""
        views = self._views.setdefault((pattern, hidden), [])
        self._views.move_to_end((pattern, hidden))
        alike = [view for view in views if seen.startswith(view.seen)]
        if alike:
            view = max(alike, key=lambda it: len(it.seen))
            views.remove(view)
            self._view_bytes -= view.memory_bytes
        else:
            view = HistoryView(pattern, hidden)
            self._view_count += 1
        views.append(view)
        view.extend(self._log, self._topics, seen, newest + 1)
        view.trim(self._log, self._topics, first_shown)
        self._view_bytes += view.memory_bytes
        while self._view_count > 1 and (self._view_count > MOST_VIEWS or self._view_bytes > MOST_VIEW_BYTES):
            self._forget()
        return view

    def _forget(self) -> None:
        """Drop the oldest view of the least used pattern."""
        key, views = next(iter(self._views.items()))
        self._view_count -= 1
        self._view_bytes -= views.pop(0).memory_bytes
        if not views:
            del self._views[key]

    def _seen(self, authid: str, authrole: str) -> bytes:
        """Return a byte for each visibility: 1 where the caller passes it."""
        key = authid, authrole
        known = self._callers.setdefault(key, bytearray())
        self._callers.move_to_end(key)
        if len(self._callers) > MOST_CALLERS:
            self._callers.popitem(last=False)
        visibilities = self._log.visibilities
        for number in range(len(known), len(visibilities)):
            known.append(visibilities[number].allows(authid, authrole))
        return bytes(known)

    def _received_ns(self, seq: int) -> int | None:
        _, rows = self._log.slice(seq, seq + 1)
        return int(rows.received_ns[0]) if len(rows.received_ns) else None


_ANCHORS = (
    ("from_publication", 0, True),
    ("after_publication", 1, True),
    ("before_publication", 0, False),
    ("until_publication", 1, False),
)
"""An argument, how far behind its event the bound is, and whether it is where the wanted events begin."""


def _some(view: HistoryView, start: int, end: int, most: int, *, reverse: bool) -> NDArray[np.int64]:
    """Return at most ``most`` events of those at places from ``start`` on, before ``end``, from either side."""
    if reverse:
        return view.seqs.seqs(max(start, end - most), max(start, end))[::-1]
    return view.seqs.seqs(start, max(start, min(end, start + most)))
