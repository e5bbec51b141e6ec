"""The events that callers of one kind may see of one pattern: their numbers, found in the log's index.

Law: a view grows with the log and is never wrong about the part that it has scanned. Visibilities are numbered in the
order in which they came: those that a view did not know when it scanned an event cannot be that event's.
"""

import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.history.positions import SeqList
from relaycast_gateway.wamp.history.topic_rules import NO_RULE, TopicRules


class HistoryView:
    """Events of topics that ``pattern`` matches, with the visibilities that ``seen`` allows: a byte 1 for each.

    Those of the namespaces whose numbers are ``hidden`` are left out.
    """

    def __init__(self, pattern: TopicPattern, hidden: tuple[int, ...] = ()) -> None:
        self.pattern = pattern
        self._hidden = np.array(hidden, np.uint32)
        self.seen = b""
        self.seqs = SeqList()
        self._scanned = 0
        self._wanted = np.empty(256, np.bool_)
        self._known = 0
        self._rules: set[int] = set()
        self._trimmed: dict[int, int] = {}
        """The bound of each rule that was looked at last."""

    @property
    def memory_bytes(self) -> int:
        return self.seqs.memory_bytes + self._wanted.nbytes

    def extend(self, log: EventLog, topics: TopicRules, seen: bytes, end: int) -> None:
        """Scan events up to ``end``; ``topics`` and ``seen`` know all of theirs, and ``seen`` begins as before."""
        if self._scanned < end:
            first, rows = log.slice(self._scanned, end)
            hits = self._of_pattern(topics, rows.topic)
            if 0 in seen:
                hits &= np.frombuffer(seen, np.bool_)[rows.visibility]
            if len(self._hidden):
                hits &= ~np.isin(rows.namespace, self._hidden)
            self.seqs.extend(np.flatnonzero(hits) + first)
            self._scanned = end
        self.seen = seen

    def trim(self, log: EventLog, topics: TopicRules, first_shown: NDArray[np.int64]) -> None:
        """Leave out what the log or a rule keeps no more."""
        bounds = {place: int(first_shown[place]) for place in self._rules}
        self.seqs.drop_before(max(log.history_start, min(bounds.values(), default=0)))
        if len(set(bounds.values())) > 1:
            self._trim_each(log, topics, first_shown, bounds)

    def _trim_each(
        self, log: EventLog, topics: TopicRules, first_shown: NDArray[np.int64], bounds: dict[int, int]
    ) -> None:
        """Look at each event that a bound has passed since the last time."""
        moved = {place: bound for place, bound in bounds.items() if bound > self._trimmed.get(place, 0)}
        if not moved or not len(self.seqs):
            return
        start = self.seqs.place(min(self._trimmed.get(place, 0) for place in moved))
        end = self.seqs.place(max(moved.values()))
        self._trimmed = bounds
        old = self.seqs.seqs(start, end)
        if len(old):
            first, rows = log.slice(int(old[0]), int(old[-1]) + 1)
            old = old[np.searchsorted(old, first) :]
            kept = old[old >= first_shown[topics.places[rows.topic[old - first]]]]
            self.seqs.replace(start, end, kept)

    def _of_pattern(self, topics: TopicRules, numbers: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which of the events have a topic that is meant."""
        if self.pattern.match is Match.EXACT:
            number = topics.number(self.pattern.uri)
            if number is None:
                return np.zeros(len(numbers), np.bool_)
            self._rules.add(int(topics.places[number]))
            exact: NDArray[np.bool_] = numbers == np.uint32(number)
            return exact
        self._learn(topics)
        if self._wanted[: self._known].all():
            return np.ones(len(numbers), np.bool_)
        return self._wanted[numbers]

    def _learn(self, topics: TopicRules) -> None:
        """Note which topics the pattern matches, of those that are new."""
        names, places = topics.names, topics.places
        while len(self._wanted) < len(names):
            self._wanted = np.concatenate([self._wanted] * 2)
        for number in range(self._known, len(names)):
            name = names[number]
            is_wanted = self._wanted[number] = name is not None and self.pattern.matches(name)
            if is_wanted and places[number] != NO_RULE:
                self._rules.add(int(places[number]))
        self._known = len(names)
