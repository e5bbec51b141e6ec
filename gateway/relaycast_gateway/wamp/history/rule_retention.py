"""How far back the events of each rule go: its count, age and bytes, or the beginning of this run.

Law: what goes is a prefix of the rule's events, hidden ones included, and never comes back. The log keeps events for
as long as its own retention says: here they are only left out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.clock import SECOND
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.wamp.history.rules import EVERYTHING, HistoryRule
from relaycast_gateway.wamp.history.topic_rules import TopicRules

EVENTS_A_LOOK = 65_536


class RuleRetention:
    """The first event that each rule still shows, by the rule's place."""

    def __init__(
        self, log: EventLog, topics: TopicRules, rules: Sequence[HistoryRule], *, first_seq_of_run: int
    ) -> None:
        self._log = log
        self._topics = topics
        self._first = np.array([0 if it.is_persistent else first_seq_of_run for it in rules], np.int64)
        self._bounded = {
            place: _Span(log, it.retention, int(self._first[place]))
            for place, it in enumerate(rules)
            if it.is_kept and it.retention != EVERYTHING
        }
        self._scanned = 0

    def first_shown(self, end: int) -> NDArray[np.int64]:
        """Return for each rule the first event that it shows, of those before ``end``."""
        if self._bounded:
            self._extend(end)
            now_ns = self._log.clock.now_ns()
            for place, span in self._bounded.items():
                self._first[place] = max(self._first[place], span.first_kept(now_ns))
        return self._first

    def _extend(self, end: int) -> None:
        if self._scanned >= end:
            return
        first, rows = self._log.slice(self._scanned, end)
        self._topics.refresh()
        places = self._topics.places[rows.topic]
        first_size, sizes = self._log.sizes(first, end)
        if first_size > first:  # a purge came between
            places, first = places[first_size - first :], first_size
        for place, span in self._bounded.items():
            hits = np.flatnonzero(places == place)
            span.extend(hits + first, sizes[hits])
        self._scanned = end


class _Span:
    """The events of one rule that it keeps: their numbers, and the sum of stored bytes up to and with each."""

    def __init__(self, log: EventLog, retention: Retention, first: int) -> None:
        self._log = log
        self._retention = retention
        self._first = first
        self._seqs: NDArray[Any] = np.empty(0, np.int64)
        self._sums: NDArray[Any] = np.empty(0, np.int64)
        self._start = self._end = 0

    def extend(self, seqs: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        wanted = seqs >= self._first
        seqs, sizes = seqs[wanted], sizes[wanted]
        if not len(seqs):
            return
        total = int(self._sums[self._end - 1]) if self._end else 0
        if self._end + len(seqs) > len(self._seqs):
            kept = slice(self._start, self._end)
            room = (self._end - self._start + len(seqs)) * 3 // 2 + 64
            before = int(self._sums[self._start - 1]) if self._start else 0
            self._seqs, self._sums = _moved(self._seqs[kept], room), _moved(self._sums[kept] - before, room)
            total -= before
            self._start, self._end = 0, self._end - self._start
        end = self._end + len(seqs)
        self._seqs[self._end : end] = seqs
        self._sums[self._end : end] = total + np.cumsum(sizes)
        self._end = end

    def first_kept(self, now_ns: int) -> int:
        """Drop what the bounds do not keep; return the first event that is left, or the number behind the last."""
        bound, place = self._retention, self._start
        if bound.count is not None:
            place = max(place, self._end - int(bound.count))
        if bound.bytes is not None:
            place = max(place, self._first_within(int(bound.bytes)))
        if bound.age_seconds is not None:
            place = self._first_since(place, now_ns - round(bound.age_seconds * SECOND))
        self._start = place
        if place < self._end:
            return int(self._seqs[place])
        return int(self._seqs[place - 1]) + 1 if place else self._first

    def _first_within(self, most_bytes: int) -> int:
        """Return the first place from which on at most ``most_bytes`` are stored."""
        surplus = int(self._sums[self._end - 1]) - most_bytes if self._end else 0
        return int(np.searchsorted(self._sums[: self._end], surplus)) + 1 if surplus > 0 else 0

    def _first_since(self, place: int, moment_ns: int) -> int:
        while place < self._end:
            seqs = self._seqs[place : min(place + EVENTS_A_LOOK, self._end)]
            first, rows = self._log.slice(int(seqs[0]), int(seqs[-1]) + 1)
            gone = int(np.searchsorted(seqs, first))
            if gone:
                place += gone
                continue
            young = rows.received_ns[seqs - first] >= moment_ns
            if young.any():
                return place + int(young.argmax())
            place += len(seqs)
        return place


def _moved(kept: NDArray[Any], room: int) -> NDArray[Any]:
    grown = np.empty(room, kept.dtype)
    grown[: len(kept)] = kept
    return grown
