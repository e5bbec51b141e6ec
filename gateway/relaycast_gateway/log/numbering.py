"""Places, ids and numbers: drafts become rows and records, and rows become records again.

Law: numbers of namespaces, topics and visibilities are dense from 0 and are never used for another name. What a commit
would add counts from ``keep`` on; a commit that fails leaves nothing behind.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from relaycast_gateway.log.event_table import EXPECTED
from relaycast_gateway.log.group_commit import Append
from relaycast_gateway.log.publication_ids import PublicationIds
from relaycast_gateway.log.record_codec import decode_body
from relaycast_gateway.log.rows import Commit, EventRow, NamedRow, Table
from relaycast_gateway.log.unusable import DamagedEvent
from relaycast_gateway.record import EVERYBODY, EventRecord, Visibility

IDS_AHEAD = 1_024
"""Publication ids that are made at once: small commits come often."""


class Numbered(NamedTuple):
    """What a commit is about to write, and the records of its events."""

    records: list[EventRecord]
    commit: Commit
    ordinals: list[int]


Name = TypeVar("Name", bound=Hashable)


class _Numbers(dict[Name, int]):
    """The numbers of names that a commit uses: those known, and the next ones for those that it adds."""

    def __init__(self, known: Mapping[Name, int]) -> None:
        super().__init__()
        self._known = known
        self.added: list[tuple[int, Name]] = []

    def __missing__(self, name: Name) -> int:
        number = self._known.get(name)
        if number is None:
            number = len(self._known) + len(self.added)
            self.added.append((number, name))
        self[name] = number
        return number


class Numbering:
    """What a log knows by number."""

    def __init__(self, table: Table, place: str) -> None:
        self._place = place
        self._ids = PublicationIds(table.key)
        self._ahead: tuple[int, list[int]] = (0, [])
        named = table.namespaces()
        self.names = [row.name for row in named]
        self.numbers = {row.name: row.number for row in named}
        self.last_ids = {row.name: row.last_event_id for row in named}
        self.counts = {row.name: row.events for row in named}
        """The number of events that each namespace has had."""

        self.topics = table.topics()
        self.topic_numbers = {name: number for number, name in enumerate(self.topics)}
        self.visibilities: list[Visibility] = table.visibilities()
        self.visibility_numbers = {it: number for number, it in enumerate(self.visibilities)}

    def seq_of(self, pub_id: int) -> int:
        """Return the ``seq`` that a publication id belongs to, whether or not the log has got so far."""
        return self._ids.seq_of(pub_id)

    def number(self, first: int, appends: Iterable[Append]) -> Numbered:
        """Give drafts their place from ``first`` on and their ids."""
        numbers, topics, seers = _Numbers(self.numbers), _Numbers(self.topic_numbers), _Numbers(self.visibility_numbers)
        last_ids: dict[str, int] = {}
        counts: dict[str, int] = {}
        known_ids, known_counts = self.last_ids, self.counts
        ordinals: list[int] = []
        records: list[EventRecord] = []
        rows: list[EventRow] = []
        seq = first
        for job in appends:
            received_ns = job.received_ns
            for draft, body in zip(job.drafts, job.bodies, strict=True):
                name, data, source, occurred_ns, event_id, prev_id, is_ordered, subject, headers, seer, topic = draft
                if topic == name:
                    topic = None
                if event_id is None:
                    event_id = seq
                if prev_id is None and is_ordered:
                    prev_id = last_ids[name] if name in last_ids else known_ids.get(name)
                last_ids[name] = event_id
                counts[name] = ordinal = (counts[name] if name in counts else known_counts.get(name, 0)) + 1
                ordinals.append(ordinal)
                numbered = (seq, numbers[name], topics[topic or name], 0 if seer is EVERYBODY else seers[seer])
                rows.append((*numbered, occurred_ns, received_ns, event_id, prev_id, body))
                placed = (seq, event_id, prev_id, self._pub_id(seq), occurred_ns, received_ns)
                records.append(_new_record(EventRecord, (*placed, name, source, subject, data, headers, seer, topic)))
                seq += 1
        named = [NamedRow(numbers[name], name, last_id, counts[name]) for name, last_id in last_ids.items()]
        return Numbered(records, Commit(rows, named, topics.added, seers.added), ordinals)

    def keep(self, commit: Commit) -> None:
        """Take up the numbers of a commit that was written. Lists grow first: who finds a number finds its name."""
        for row in commit.named:
            if row.number == len(self.names):
                self.names.append(row.name)
                self.numbers[row.name] = row.number
            self.last_ids[row.name] = row.last_event_id
            self.counts[row.name] = row.events
        for number, topic in commit.topics:
            self.topics.append(topic)
            self.topic_numbers[topic] = number
        for number, visibility in commit.visibilities:
            self.visibilities.append(visibility)
            self.visibility_numbers[visibility] = number

    def records(self, rows: Sequence[EventRow]) -> list[EventRecord]:
        """Return the records of rows; ``DamagedEvent`` names the first one that is damaged."""
        pub_ids = self._ids.of([row[0] for row in rows])
        return [self._record(row, pub_id) for row, pub_id in zip(rows, pub_ids, strict=True)]

    def _record(self, row: EventRow, pub_id: int) -> EventRecord:
        seq, number, topic_number, seer, occurred_ns, received_ns, event_id, prev_id, body = row
        try:
            source, subject, data, headers = decode_body(body)
            namespace, topic, visibility = self.names[number], self.topics[topic_number], self.visibilities[seer]
        except (ValueError, IndexError) as error:
            raise DamagedEvent(self._place, str(error), EXPECTED, seq) from None
        placed = (seq, event_id, prev_id, pub_id, occurred_ns, received_ns)
        own_topic = None if topic == namespace else topic
        more = (namespace, source, subject, data, headers, visibility, own_topic)
        return _new_record(EventRecord, (*placed, *more))

    def _pub_id(self, seq: int) -> int:
        start, ids = self._ahead
        if not start <= seq < start + len(ids):
            start, ids = self._ahead = seq, self._ids.of(range(seq, seq + IDS_AHEAD))
        return ids[seq - start]


_new_record: Callable[..., EventRecord] = tuple.__new__
"""Makes a named tuple without the detour over its ``__new__``."""
